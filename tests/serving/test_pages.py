"""Every page of a small study: as HTML, JSON and CSV, with links that lead somewhere; its address is its state."""

import csv
import io
import json
import random
import re
from dataclasses import replace
from urllib.parse import urljoin, urlsplit

import pytest
from read_pages import sound
from served import served
from shown_studies import kept, optimizers, trained

import isorun
from isorun.registry import STRANGER
from isorun.store.folder import FolderStore
from isorun.study.cells import cells_of
from isorun.study.design import document_of
from isorun.study.records import RunState
from isorun.testing.instant_executor import Computed
from record_builder import make_record

LARGEST = 300_000
STUDY = "/shelves/lab/optimizers"
PAGES = {
    "home": "/home",
    "home-found": "/home?q=adam",
    "study": f"{STUDY}/study",
    "study-asked": f"{STUDY}/study?metric=test_loss&level=default&difference=0.5",
    "runs": f"{STUDY}/runs",
    "runs-asked": f"{STUDY}/runs?approach=sgd",
    "compare": f"{STUDY}/compare",
    "compare-paired": f"{STUDY}/compare?a=adam,default,default,fixed-seed&b=sgd,default,default,fixed-seed&pair=seed",
    "compare-studies": f"{STUDY}/compare?with=lab/board",
    "compare-package": f"{STUDY}/compare?with=packages/optimizers",
    "leaderboard": "/shelves/lab/board/leaderboard",
    "leaderboard-of-several": "/leaderboard?of=lab/board&of=lab/optimizers",
    "environments": f"{STUDY}/environments",
    "searches": "/shelves/lab/tuned/searches",
    "study-with-search": "/shelves/lab/tuned/study",
    "package": "/shelves/packages/optimizers/study",
}


def ending(address, kind):
    path, mark, query = address.partition("?")
    return f"{path}.{kind}{mark}{query}"


def page_of(client, address):
    answer = client.get(address, headers={"accept": "text/html"})
    assert answer.status == 200, answer.body.decode()
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert len(answer.body) <= LARGEST
    return sound(answer.body.decode())


@pytest.fixture(scope="session")
def runs(client):
    return client.get(f"{STUDY}/runs.json").json["runs"]


@pytest.mark.parametrize("address", PAGES.values(), ids=PAGES)
def test_every_page_is_there_as_html_json_and_csv(client, address):
    page = page_of(client, address)
    assert page.shown
    told = client.get(ending(address, "json"))
    assert told.status == 200
    json.loads(told.body, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    table = client.get(ending(address, "csv"))
    assert table.status == 200, table.body.decode()
    rows = list(csv.reader(io.StringIO(table.body.decode())))
    assert len(rows) > 1
    assert {len(row) for row in rows} == {len(rows[0])}


@pytest.mark.parametrize("page", ["runs", "study"])
def test_runs_as_csv_have_all_digits_of_what_was_judged(client, page):
    rows = list(csv.DictReader(io.StringIO(client.get(f"{STUDY}/{page}.csv").body.decode())))
    groups = client.get(f"{STUDY}/study.json").json["groups"]
    judged = {one["run_id"]: one for group in groups for one in group["selections"][0]["runs"]}
    assert {row["run"] for row in rows} == set(judged)
    for row in rows:
        one = judged[row["run"]]
        assert {name: float(row[name]) for name in one["values"]} == one["values"]
        assert row["seed"] == ("" if one["seed"] is None else str(one["seed"]))
        assert row["epoch"] == str(int(one["epoch"]))
        assert row["weights"] == one["weights"]


def test_what_a_study_does_not_have_is_said_to_be_missing_in_it(client):
    for place, what in (("runs/nothing", "has no such run"), ("searches", "no search was kept")):
        answer = client.get(f"{STUDY}/{place}")
        assert answer.status == 404
        assert what in answer.json["error"]["what"]


def test_a_run_has_a_page_with_its_values_curve_digests_log_and_command(client, runs):
    run = next(one["run"] for one in runs if one["state"] == "finished")
    page = page_of(client, f"{STUDY}/runs/{run}")
    assert f"isorun replay {run}" in page.shown
    assert "epoch 16: val_loss" in page.shown
    assert "weights.final" in page.shown
    assert "test_acc of this run while training" in page.shown
    assert "what it ran python train.py --optimizer" in page.shown
    assert client.get(f"{STUDY}/runs/{run}.json").json["run"] == run
    assert b"test_acc" in client.get(f"{STUDY}/runs/{run}.csv").body


def test_the_command_of_a_run_has_its_settings_in_it(tmp_path):
    command = "python train.py --lr {config.lr} --seed {seed} --out {run_dir}"
    study = optimizers(tmp_path, approaches={"adam": command}, configs={"high": {"lr": 0.3}}, levels=["fixed-seed"])
    place = tmp_path / "asked"
    kept(study, place)
    with served([str(place)]) as client:
        run = next(one for one in client.get("/shelves/asked/optimizers/runs.json").json["runs"] if one["seed"] == 2)
        page = page_of(client, f"/shelves/asked/optimizers/runs/{run['run']}")
    assert "what it ran python train.py --lr 0.3 --seed 2 --out '{run_dir}'" in page.shown


def test_a_comparison_by_pairs_draws_the_interval_of_the_pairs(client):
    address = PAGES["compare-paired"]
    low, high = client.get(ending(address, "json")).json["paired_difference_ci95"]
    table = client.get(f"{ending(address, 'csv')}&table=data-forest").body.decode()
    (row,) = csv.DictReader(io.StringIO(table))
    assert (float(row["lower"]), float(row["upper"])) == pytest.approx((low, high), rel=0.01)
    assert "The difference, pair by pair, with its 95" in page_of(client, address).shown
    assert "The difference, with its 95" in page_of(client, address.replace("&pair=seed", "")).shown


def test_a_lone_entry_that_could_be_ranked_is_named(tmp_path):
    study = optimizers(tmp_path, approaches={"adam": "python train.py --optimizer adam"}, seeds=[1])
    place = tmp_path / "lone"
    kept(study, place)
    with served([str(place)]) as client:
        told = client.get("/shelves/lone/optimizers/leaderboard.json").json
        page = page_of(client, "/shelves/lone/optimizers/leaderboard")
    said = "Nothing can be ranked: default alone has more than one draw, and a place takes two such entries."
    assert (told["why"], told["not_rankable"], told["approaches"]) == (said, ["fixed-seed"], [])
    assert said in page.shown


def test_environments_of_no_run_are_not_said_to_be_of_no_study(client):
    answer = client.get(f"{STUDY}/environments?a=zz")
    assert (answer.status, answer.json["error"]["what"]) == (404, "no run of this study is called so")


def test_a_run_that_failed_says_why_and_shows_its_other_attempt(client, runs):
    failed = next(one["run"] for one in runs if one["state"] == "failed")
    page = page_of(client, f"{STUDY}/runs/{failed}")
    assert "exit code 1" in page.shown
    assert "CUDA out of memory" in page.shown
    assert failed.replace("-1", "-2") in page.shown


@pytest.mark.long
def test_every_link_of_every_page_leads_somewhere(client, runs):
    seen, waiting = {}, [*PAGES.values(), f"{STUDY}/runs/{runs[0]['run']}"]
    while waiting and len(seen) < 150:
        address = waiting.pop()
        if address in seen:
            continue
        answer = client.get(address, headers={"accept": "text/html"})
        seen[address] = answer.status
        if answer.headers["content-type"].startswith("text/html"):
            links = [urljoin(address, link).partition("#")[0] for link in sound(answer.body.decode()).links if link]
            assert all(urlsplit(link).netloc == "" for link in links)
            waiting += [link for link in links if "/runs/" not in link or len(seen) < 60]
    assert {address: status for address, status in seen.items() if status != 200} == {}
    assert len(seen) > 60


def test_the_address_of_a_page_is_its_state(client):
    page = page_of(client, f"{STUDY}/study?metric=test_loss&level=default")
    chosen = [one.attributes["value"] for one in page.named("option") if "selected" in one.attributes]
    assert {"test_loss", "default"} <= set(chosen)
    assert "adam fixed-seed" not in page.shown
    assert "default / fixed-seed" not in page.shown
    assert client.get(f"{STUDY}/study.json?metric=test_loss&level=default").json["metrics"][0]["name"] == "test_loss"
    levels = {group["level"] for group in client.get(f"{STUDY}/study.json?level=default").json["groups"]}
    assert levels == {"default"}
    json_links = [
        one.attributes["href"] for one in page.named("link") if one.attributes.get("type") == "application/json"
    ]
    assert json_links == [f"{STUDY}/study.json?metric=test_loss&level=default"]


@pytest.mark.parametrize(
    ("address", "status"),
    [
        (f"{STUDY}/study?metric=nothing", 400),
        (f"{STUDY}/study?selection=nothing", 400),
        (f"{STUDY}/study?level=nothing", 400),
        (f"{STUDY}/study?difference=-1", 400),
        (f"{STUDY}/study?difference=nan", 400),
        (f"{STUDY}/study.csv?table=nothing", 400),
        (f"{STUDY}/runs?page=0", 400),
        (f"{STUDY}/runs?page=99999999999999999999", 400),
        (f"{STUDY}/runs/0123456789abcdef-1", 404),
        (f"{STUDY}/compare?a=nothing", 400),
        (f"{STUDY}/compare?pair=luck", 400),
        (f"{STUDY}/compare?margin=x", 400),
        (f"{STUDY}/compare?margin=nan", 400),
        (f"{STUDY}/compare?margin=1e999", 400),
        (f"{STUDY}/compare?with=lab/nothing", 404),
        (f"{STUDY}/compare?with=nothing", 404),
        (f"{STUDY}/environments?a=zz", 404),
        (f"{STUDY}/searches", 404),
        (f"{STUDY}/nothing", 404),
        ("/shelves/lab/nothing/study", 404),
        ("/shelves/nothing/optimizers/study", 404),
        ("/shelves/lab/..%2f..%2fetc/passwd/study", 404),
        ("/static/nothing.css", 404),
        ("/leaderboard", 400),
        ("/leaderboard?" + "&".join(["of=lab/board"] * 51), 400),
        ("/shelves/lab/board/leaderboard?of=lab/optimizers", 400),
        (f"{STUDY}/compare?marign=0.5", 400),
        (f"{STUDY}/study?table=every-run", 400),
        ("/home?luck=1", 400),
    ],
)
def test_what_is_not_there_is_refused_and_never_fails(client, address, status):
    for kind in ("text/html", "application/json"):
        assert client.get(address, headers={"accept": kind}).status == status


@pytest.mark.parametrize(
    ("address", "what", "allowed", "following"),
    [
        (STUDY, "which page of optimizers is not said", "study, runs, compare", f"{STUDY}/study"),
        (f"{STUDY}/nothing", "optimizers has no such page", "study, runs, compare", f"{STUDY}/study"),
        ("/shelves/lab/nothing", "there is no such study here", "", "the first page lists what there is"),
        ("/shelves/nothing/optimizers", "there is no such study here", "", "the first page lists what there is"),
        ("/shelves/lab", "there is nothing here", "/shelves/SHELF/NAME/study", "/ lists what there is"),
        ("/shelves", "there is nothing here", "/shelves/SHELF/NAME/study", "/ lists what there is"),
        ("/static", "there is nothing here", "/static/NAME", "/ lists what there is"),
        ("/nothing", "there is nothing here", "", "/ lists what there is"),
    ],
)
def test_an_address_that_is_none_is_answered_with_those_beside_it(client, address, what, allowed, following):
    error = client.get(address).error
    assert (error["status"], error["what"], error["next"]) == (404, what, following)
    assert error["found"]
    assert allowed in error["allowed"]
    answer = client.get(address, headers={"accept": "text/html"})
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    page = answer.body.decode()
    assert what in page
    assert (f'<a href="{following}">' in page) == following.startswith(STUDY)


def test_a_number_is_one_page_however_it_is_written(client, monkeypatch):
    from isorun.serving.pages import comparing

    made, compare_page = [], comparing.compare_page
    monkeypatch.setattr(comparing, "compare_page", lambda *words: made.append(1) or compare_page(*words))
    pages = [client.get(f"{STUDY}/compare?margin={said}").body for said in ("0.375", "0.3750", "375e-3", "0,375")]
    assert len(set(pages)) == len(made) == 1
    assert b'value="0.375"' in pages[0]
    client.get(f"{STUDY}/compare?margin=0.376")
    assert len(made) == 2


def test_a_word_that_a_page_does_not_know_is_refused_with_those_that_it_knows(client):
    error = client.get(f"{STUDY}/compare.json?marign=0.5").error
    assert (error["found"], "did you mean 'margin'?" in error["allowed"]) == ("marign", True)


@pytest.mark.parametrize("address", PAGES.values(), ids=PAGES)
def test_what_a_page_links_and_asks_for_is_what_its_server_knows(client, address):
    page = page_of(client, address)
    links = {one.attributes.get("href", "") for one in page.named("a")}
    inside = sorted(one for one in links if one.startswith("/") and "?" in one)
    fields = [*page.named("input"), *page.named("select")]
    asked = "&".join(f"{one.attributes['name']}=" for one in fields if one.attributes.get("name", "q") != "q")
    for wanted in (*inside, f"{address.partition('?')[0]}?{asked}"):
        answer = client.get(wanted)
        assert answer.status == 200 or "no such thing" not in answer.body.decode(), wanted


def test_strangers_see_no_study_of_a_store_or_package(shown_places):
    with served(shown_places, stranger=STRANGER) as client:
        assert client.get("/home.json").json["studies"] == []
        assert client.get(f"{STUDY}/study").status == 404
        assert client.get(f"{STUDY}/events").status == 404
        assert client.get("/shelves/packages/optimizers/study").status == 404
        assert client.get("/leaderboard?of=lab/board").status == 404


def test_the_page_says_what_the_report_says(client):
    told = client.get(f"{STUDY}/study.json").json
    page = page_of(client, f"{STUDY}/study")
    for sentence in told["verdict"]:
        assert " ".join(sentence.replace("\N{NO-BREAK SPACE}", " ").split()) in page.shown.replace(
            "\N{NO-BREAK SPACE}", " "
        )
    for part in ("Where the variance comes from", "What is still to be run", "What it comes from"):
        assert part in page.shown


@pytest.mark.parametrize(
    "asked", ["", "?approach=sgd", "?approach=adam&level=default", "?metric=test_loss", "?selection=best-loss"]
)
def test_runs_as_json_are_the_runs_that_the_page_shows_with_their_values(client, asked):
    told = client.get(f"{STUDY}/runs.json{asked}").json["runs"]
    with_values = [one for one in told if one["values"]]
    lines = list(csv.DictReader(io.StringIO(client.get(f"{STUDY}/runs.csv{asked}").body.decode())))
    assert {one["run"] for one in with_values} == {line["run"] for line in lines}
    of_line = {line["run"]: line for line in lines}
    for one in with_values:
        line = of_line[one["run"]]
        assert {name: line[name] for name in ("approach", "level")} == {
            name: one[name] for name in ("approach", "level")
        }
        for name, value in one["values"].items():
            assert float(line[name]) == value
        assert float(line["epoch"]) == one["epoch"]
    assert all(one["state"] != "finished" for one in told if not one["values"])
    if "approach" in asked:
        assert {one["approach"] for one in told} == {asked.split("approach=")[1].split("&")[0]}


def test_a_run_shows_all_that_it_logged_and_what_it_ended_with(client, runs):
    run = next(one["run"] for one in runs if one["state"] == "finished")
    lines = {
        line["metric"]: line
        for line in csv.DictReader(io.StringIO(client.get(f"{STUDY}/runs/{run}.csv?table=values").body.decode()))
    }
    assert set(lines) == {"test_acc", "test_loss", "val_loss"}
    assert all(float(line["at the end"]) > 0 for line in lines.values())


def test_of_a_study_with_many_words_the_first_page_says_how_many_more(tmp_path):
    (tmp_path / "train.py").write_text("import isorun\n")
    many = {f"net-{place}": f"python train.py {place}" for place in range(9)}
    kept(optimizers(tmp_path, approaches=many, levels=["default"], seeds=[1], repeats=1), tmp_path / ".isorun")
    with served([str(tmp_path / ".isorun")]) as client:
        page = page_of(client, "/home")
    assert "net-0, net-1, net-2, net-3, net-4, and 6 more" in page.shown  # four approaches and two metrics
    assert "compares and measures" in page.shown


def test_of_a_run_that_left_nothing_it_is_said(client, runs):
    run = next(one["run"] for one in runs if one["state"] == "failed")
    assert "It left no value." in page_of(client, f"{STUDY}/runs/{run}").shown


def test_a_form_shows_first_what_the_first_study_is_judged_by(tmp_path):
    (tmp_path / "train.py").write_text("import isorun\n")
    one = optimizers(tmp_path, name="one", selections={"at-the-end": {"metric": "test_acc", "direction": "higher"}})
    other = optimizers(tmp_path, name="other")
    for study in (one, other):
        kept(study, tmp_path / ".isorun")
    with served([str(tmp_path / ".isorun")]) as client:
        shelf = client.get("/home.json").json["studies"][0]["shelf"]
        page = page_of(client, f"/leaderboard?of={shelf}/one&of={shelf}/other")
        compare = page_of(client, f"/shelves/{shelf}/one/compare")
    options = [option.attributes["value"] for option in page.named("option")]
    assert options.index("at-the-end") < options.index("best-loss")
    assert "a difference that does not matter (0.01 is a point)" in compare.shown


def seed_of_its_own(repeat_sd):
    """A training whose seed means something else to every optimizer, and whose repeats differ by so much."""

    def training(job):
        of_seed = random.Random(f"{job.cell.approach} {job.cell.seed}").gauss(0, 0.01)
        of_repeat = random.Random(f"{job.cell.approach} {job.cell.seed} {job.cell.repeat}").gauss(0, repeat_sd)
        return Computed({"test_acc": 0.9 + of_seed + of_repeat}, wall_seconds=1.0)

    return training


def test_what_seeds_move_apart_is_no_share_of_the_repeats(tmp_path):
    (tmp_path / "train.py").write_text("import isorun\n")
    study = optimizers(
        tmp_path, levels=["fixed-seed"], seeds=[1, 2, 3, 4, 5, 6], repeats=3, metrics={"test_acc": "higher"}
    )
    kept(study, tmp_path / ".isorun", seed_of_its_own(0.001))
    with served([str(tmp_path / ".isorun")]) as client:
        (listed,) = client.get("/home.json").json["studies"]
        told = client.get(ending(listed["page"], "csv") + "?table=data-variance-shares").body.decode()
    shares = {row[0]: float(row[1]) for row in csv.reader(io.StringIO(told)) if row[0] in {"seed", "Residual"}}
    assert set(shares) == {"seed", "Residual"}
    assert shares["seed"] > 95


def test_of_repeats_that_give_the_same_it_is_said_that_they_hold_no_variance(tmp_path):
    (tmp_path / "train.py").write_text("import isorun\n")
    study = optimizers(tmp_path, levels=["fixed-seed"], seeds=[1, 2, 3, 4], repeats=3, metrics={"test_acc": "higher"})
    kept(study, tmp_path / ".isorun", seed_of_its_own(0.0))
    with served([str(tmp_path / ".isorun")]) as client:
        (listed,) = client.get("/home.json").json["studies"]
        page = page_of(client, listed["page"])
    assert "Runs of the same seed all gave the same test_acc: none of the variance comes from repeats." in page.shown


def test_who_ran_one_seed_often_is_not_called_a_single_run(tmp_path):
    (tmp_path / "train.py").write_text("import isorun\n")
    study = optimizers(tmp_path, levels=["default", "fixed-seed"], seeds=[1], repeats=3)
    kept(study, tmp_path / ".isorun")
    with served([str(tmp_path / ".isorun")]) as client:
        (listed,) = client.get("/home.json").json["studies"]
        page = page_of(client, f"{listed['page'].removesuffix('/study')}/leaderboard")
    assert "Not rankable: a single draw" in page.shown
    assert "a single run" not in page.shown


def test_the_board_has_places_bands_and_a_line_below_which_nobody_is_ranked(client):
    told = client.get("/shelves/lab/board/leaderboard.json").json
    assert {one["approach"] for one in told["approaches"]} == {"adam", "lion", "sgd"}
    assert told["not_rankable"] == ["lamb"]
    page = page_of(client, "/shelves/lab/board/leaderboard")
    assert "Not rankable: a single run" in page.shown
    assert "replicated by" in page.shown
    assert "nobody yet" in page.shown


def test_a_verdict_has_a_word_an_icon_and_what_it_rests_on(client):
    page = page_of(client, PAGES["compare-paired"])
    banners = [one for one in page.named("p") if "banner" in one.attributes.get("class", "")]
    assert len(banners) == 1
    assert any(word in page.shown for word in ("adam better", "undecided"))
    assert "test_acc of the same seeds under adam and sgd" in page.shown


def test_the_same_runs_twice_are_no_evidence(client):
    told = client.get(ending(PAGES["compare-package"], "json")).json
    assert told["verdict"] is None
    assert any("recorded once, and on both sides" in text for text in told["not_comparable"])
    anyway = client.get(f"{ending(PAGES['compare-package'], 'json')}&anyway=yes").json
    assert anyway == told, "whatever is said"


def test_a_board_of_a_store_and_its_package_counts_their_runs_once(client):
    page = page_of(client, "/leaderboard?of=lab/optimizers&of=packages/optimizers")
    alone = client.get("/leaderboard.json?of=lab/optimizers").json
    both = client.get("/leaderboard.json?of=lab/optimizers&of=packages/optimizers").json
    assert len(both["approaches"]) == len(alone["approaches"])
    assert "recorded once" in page.shown


def test_the_environments_of_a_package_are_typed_with_it(client):
    page = page_of(client, "/shelves/packages/optimizers/environments")
    assert re.search(r"isorun env diff \S+ \S+ --store \S+\.isorun", page.shown)


def test_files_of_pages_are_kept_for_good_and_named_by_their_content(client):
    page = page_of(client, "/home")
    (style,) = [one.attributes["href"] for one in page.named("link") if one.attributes["rel"] == "stylesheet"]
    answer = client.get(style)
    assert re.fullmatch(r"/static/pages-[0-9a-f]{12}\.css", style)
    assert "immutable" in answer.headers["cache-control"]
    assert "prefers-color-scheme:dark" in answer.body.decode()
    assert "url(" not in answer.body.decode()
    assert "@import" not in answer.body.decode()


def test_a_store_without_runs_says_so(tmp_path):
    from isorun.store.folder import FolderStore

    FolderStore(tmp_path / ".isorun").close()
    with served([str(tmp_path / ".isorun")]) as client:
        assert "Nothing is here yet" in page_of(client, "/").shown


def test_what_is_not_comparable_has_no_verdict_unless_it_is_asked_for_anyway(client):
    address = f"{STUDY}/compare.json?a=adam,default,default,fixed-seed&b=sgd,default,default,default&with=lab/board"
    told = client.get(address).json
    assert told["verdict"] is None
    assert any("different levels" in text for text in told["not_comparable"])
    anyway = client.get(f"{address}&anyway=yes").json
    assert anyway["verdict"] in {"A better", "undecided"}
    assert anyway["not_comparable"] == told["not_comparable"]
    assert not any(one["voids"] for one in anyway["warnings"] if one["code"] == "other-level")
    assert client.get(f"{STUDY}/compare.json").json["not_comparable"] == []


def in_another_way(job):
    """The same trainings as percentages, of other data."""
    found = trained(job)
    results = {name: 100 * value for name, value in found.results.items()}
    return replace(found, results=results, series={}, digests={"data.train": "ab" * 32})


def on_other_data(job):
    return replace(trained(job), digests={"data.train": "cd" * 32})


def on_these_data(job):
    return replace(trained(job), digests={"data.train": "ef" * 32})


def test_a_board_of_several_studies_ranks_nothing_on_another_scale_or_the_other_way_round(tmp_path):
    place = tmp_path / "lab" / ".isorun"
    few = {"levels": ["default"], "repeats": 5, "policy": {}}
    for name, compute, metrics in (
        ("first", on_these_data, {"test_acc": "higher"}),
        ("percent", in_another_way, {"test_acc": "higher"}),
        ("upside", trained, {"test_acc": "lower"}),
        ("data", on_other_data, {"test_acc": "higher"}),
    ):
        approaches = {one: f"python train.py {name} {one}" for one in ("adam", "sgd")}
        kept(optimizers(tmp_path, name=name, approaches=approaches, metrics=metrics, **few), place, compute)
    with served([str(place)]) as client:
        several = "&".join(f"of=lab/{name}" for name in ("first", "percent", "upside", "data"))
        told = client.get(f"/leaderboard.json?{several}").json
        assert {one["approach"].split(":")[0] for one in told["approaches"]} == {"first"}
        assert {one.split(":")[0] for one in told["left_out"]} == {"percent", "upside", "data"}
        anyway = client.get(f"/leaderboard.json?{several}&anyway=yes").json
        assert {one["approach"].split(":")[0] for one in anyway["approaches"]} == {"first", "data"}
        assert "other-data" in {one["code"] for one in anyway["warnings"]}


def test_a_board_of_several_studies_has_the_groups_that_are_asked_for(client):
    several = "of=lab/board&of=lab/optimizers"
    asked = client.get(f"/leaderboard.json?{several}&approach=adam&level=default").json
    assert asked["approaches"]
    assert all("adam" in one["approach"] or ":" not in one["approach"] for one in asked["approaches"])
    every = client.get(f"/leaderboard.json?{several}").json
    assert len(asked["approaches"]) < len(every["approaches"])
    assert all("at different levels" in why for why in every["left_out"]), "the first study has one level alone"
    anyway = client.get(f"/leaderboard.json?{several}&anyway=yes").json
    assert len(anyway["approaches"]) == len(every["approaches"]) + len(every["left_out"]) > len(every["approaches"])
    page = page_of(client, f"/leaderboard?{several}&approach=lamb")
    assert "optimizers: there is no such approach (lamb)" in page.shown
    refused = client.get(f"/leaderboard?{several}&approach=adamm")
    assert refused.status == 400
    assert "adam" in refused.body.decode()


def test_a_name_at_the_head_of_a_sentence_stays_as_it_was_written(client):
    told = client.get(ending(PAGES["compare-package"], "json")).json
    name = told["why"].split()[0]
    assert name.islower()
    page = page_of(client, PAGES["compare-package"])
    assert told["why"][:60] in page.shown.replace("\N{NO-BREAK SPACE}", " ")


def test_environments_begin_with_runs_that_finished(tmp_path):
    place = tmp_path / "few"
    declared = isorun.Study("broken", approaches={"a": "python a.py"}, repeats=4)
    with FolderStore(place) as store:
        cells = sorted(cells_of(declared, store.key), key=lambda cell: cell.repeat)
        for cell in cells:
            state = RunState.FAILED if cell.repeat in (0, 3) else RunState.FINISHED
            store.finish(make_record(cell, state=state, started_at=f"2026-01-01T00:00:0{cell.repeat}Z"))
        store.documents("studies").write(declared.name, {"folder": ".", **document_of(declared)})
    with served([str(place)]) as client:
        shown = page_of(client, "/shelves/few/broken/environments").shown
    assert f"isorun env diff {cells[1].id}-1 {cells[2].id}-1" in shown
