"""Two groups of two studies, asked about by page and by command line: both say the same."""

import copy
import csv
import io
import json
import shlex

import pytest
from served import served

import isorun
from isorun.share.packing import pack
from isorun.store.folder import FolderStore
from isorun.study.cells import cells_of
from isorun.study.design import document_of
from isorun.study.records import Series
from record_builder import make_record
from typed_commands import typed

ENVIRONMENT = {
    "requested": {},
    "effective": {"cpu": {"model": "EPYC"}, "torch": {"version": "2.1", "threads": 2}},
}
ELSEWHERE = copy.deepcopy(ENVIRONMENT)
ELSEWHERE["effective"]["torch"] |= {"version": "1.9", "threads": 16}
CURVE = {"val_loss": Series([1.0, 2.0], [1.0, 2.0], [0.5, 0.4]), "acc": Series([1.0, 2.0], [1.0, 2.0], [0.1, 0.2])}


def study(name, **fields):
    given = {"approaches": {name: f"python {name}.py"}, "repeats": 8, "metrics": {"acc": {"direction": "higher"}}}
    return isorun.Study(name, **{**given, **fields})


def kept(folder, declared, height, *, environment=ENVIRONMENT, minute=0, **fields):
    """A store in this folder with a run of each cell of the study."""
    with FolderStore(folder) as store:
        for number, cell in enumerate(cells_of(declared, store.key)):
            started_at = f"2026-01-01T00:{minute:02}:{number:02}Z"
            where = {"host": fields.get("host", "here")}
            rest = {name: value for name, value in fields.items() if name != "host"}
            results = {"acc": height + number / 1000}
            store.finish(
                make_record(cell, results=results, environment=environment, where=where, started_at=started_at, **rest)
            )
        store.documents("studies").write(declared.name, {"folder": ".", **document_of(declared)})
    return folder


DRAWN = "&table=data-sides-strip"
MINE = {"digests": {"data": "aa" * 32}}
BASELINES = {
    "same-machine": (study("base"), {"digests": {"data": "aa" * 32}}, None),
    "data-not-told": (study("base"), {}, None),
    "other-host": (study("base"), {**MINE, "host": "there"}, None),
    "other-launch": (study("base"), {**MINE, "launch": "fresh"}, None),
    "other-threads": (study("base"), {**MINE, "environment": {**ENVIRONMENT, "effective": {
        **ENVIRONMENT["effective"], "torch": {"version": "2.1", "threads": 16}}}}, None),
    "other-data": (study("base"), {"digests": {"data": "bb" * 32}}, "different data"),
    "other-class": (study("base"), {**MINE, "environment": ELSEWHERE}, "environments of another class"),
    "other-epochs": (study("base"), {**MINE, "series": CURVE}, "judged at different epochs"),
    "other-direction": (study("base", metrics={"acc": "lower"}), MINE, "higher is better here, and lower in BASE"),
    "two-metrics": (study("base", metrics={"acc": "higher", "time": "lower"}), MINE, None),
    "metric-not-declared": (study("base", metrics={"loss": "lower"}), MINE, None),
}  # fmt: skip
NEVER = {"other-direction", "shared-runs"}
"""What is not compared, whatever is said."""


class Asked:
    """One question, by page and by command line; what both call the baseline is BASE in either answer."""

    def __init__(self, folder, mine, base, shown, words=()):
        self.folder, (self.page, self.name) = folder, shown
        self.places = [str(mine), str(base)]
        self.words = ("compare", "mine", "--store", str(mine), *words)
        self.typed_place = str(base)

    def by_page(self, *, anyway):
        with served(self.places) as client:
            query = "&anyway=yes" if anyway else ""
            answer = client.get(f"/shelves/mine/mine/compare.json?with={self.page}/{self.name}{query}")
            assert answer.status == 200, answer.body
            shown = client.get(f"/shelves/mine/mine/compare?with={self.page}/{self.name}{query}").body.decode()
        return json.loads(answer.body.decode().replace(f"{self.page}/{self.name}", "BASE")), shown

    def by_command(self, *, anyway):
        done = typed(*self.words, "--json", *(["--anyway"] if anyway else []), cwd=self.folder)
        said = " ".join(done.stderr.replace(self.typed_place, "BASE").split())
        return (json.loads(done.stdout.replace(self.typed_place, "BASE")) if done.returncode == 0 else None), said


@pytest.fixture(params=[*BASELINES, "package", "shared-runs"])
def asked(request, tmp_path):
    mine = kept(tmp_path / "mine", study("mine"), 0.9, minute=1, **MINE)
    if request.param == "shared-runs":
        target = tmp_path / "mine.isorun"
        pack("mine", target, store=str(mine), with_code=False)
        return request.param, Asked(tmp_path, mine, target, ("packages", "mine"), ["--baseline", str(target)])
    declared, fields, _ = BASELINES.get(request.param, (study("base"), MINE, None))
    base = kept(tmp_path / "base", declared, 0.8, **fields)
    if request.param == "package":
        target = tmp_path / "base.isorun"
        pack("base", target, store=str(base), with_code=False)
        return request.param, Asked(tmp_path, mine, target, ("packages", "base"), ["--baseline", str(target)])
    words = ["--baseline", str(base), "--baseline-study", "base"]
    return request.param, Asked(tmp_path, mine, base, ("base", "base"), words)


def expected(case):
    if case == "shared-runs":
        return "are the baseline's own (8 runs of BASE"
    return BASELINES[case][2] if case in BASELINES else None


@pytest.mark.long
def test_page_and_command_line_answer_one_question_alike(asked):
    case, question = asked
    (page, shown), (typed_answer, said) = question.by_page(anyway=False), question.by_command(anyway=False)
    reason = expected(case)
    if reason is None:
        assert page.pop("not_comparable") == []
        assert page == typed_answer
        assert page["verdict"] in {"A better", "undecided"}
        (command,) = [line for line in shown.splitlines() if "isorun compare mine" in line]
        assert shlex.quote(question.places[0]) in command
        return
    assert page["verdict"] is None
    assert typed_answer is None
    assert reason in page["why"]
    for message in page["not_comparable"]:
        assert message in said
    (page, _), (typed_answer, said) = question.by_page(anyway=True), question.by_command(anyway=True)
    if case in NEVER:
        assert (page["verdict"], typed_answer) == (None, None)
        assert "--anyway" not in said
        return
    messages = page.pop("not_comparable")
    assert any(reason in message for message in messages)
    assert page == typed_answer
    assert set(messages) <= {one["message"] for one in page["warnings"]}


def test_what_lies_between_the_sides_goes_with_the_verdict(tmp_path):
    """Host, launch and threads, as the command tells them; each case differs in one of them."""
    mine = kept(tmp_path / "mine", study("mine"), 0.9, minute=1, **MINE)
    for case, code in (
        ("other-launch", "sides-differ-in-launch"),
        ("other-threads", "sides-differ-in-machine"),
        ("other-host", "sides-differ-in-host"),
    ):
        declared, fields, _ = BASELINES[case]
        base = kept(tmp_path / case, declared, 0.8, **fields)
        page, _ = Asked(tmp_path, mine, base, (case, "base")).by_page(anyway=False)
        assert code in {one["code"] for one in page["warnings"]}, case


def test_the_command_that_a_page_shows_answers_as_the_page(tmp_path):
    """Of two groups a side, at a chosen selection, by pairs, with a margin."""
    two = {"levels": ["default", "fixed-seed"], "seeds": [1, 2, 3, 4], "repeats": 1}
    mine = kept(tmp_path / "mine", study("mine", **two), 0.9, minute=1, series=CURVE)
    base = kept(tmp_path / "base", study("base", **two), 0.8, series=CURVE)
    query = "a=mine,default,default,fixed-seed&b=base,default,default,fixed-seed&pair=seed&margin=0.001"
    with served([str(mine), str(base)]) as client:
        address = f"/shelves/mine/mine/compare{{}}?{query}&with=base/base&selection=best-loss"
        page = client.get(address.format(".json")).json
        shown = client.get(address.format("")).body.decode()
        unpaired = client.get(address.format(".json").replace("&pair=seed", "")).json
    (line,) = [line for line in shown.splitlines() if "isorun compare mine" in line]
    command = line[line.index("isorun compare") :].partition("<")[0]
    done = typed(*shlex.split(command)[1:], "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.replace(str(base), "base/base"))
    page.pop("not_comparable")
    assert page == answer
    assert page["test"] != unpaired["test"], "it was asked by pairs"


@pytest.mark.parametrize("alike", [True, False])
def test_groups_of_one_study_that_had_other_data_are_compared_and_told_by_both(tmp_path, alike):
    declared = study("mine", approaches={name: f"python {name}.py" for name in ("old", "new")})
    with FolderStore(tmp_path / "mine") as store:
        for number, cell in enumerate(cells_of(declared, store.key)):
            data = "aa" if alike or cell.approach == "old" else "bb"
            results = {"acc": 0.5 + number / 1000}
            digests = {"data": data * 32}
            store.finish(make_record(cell, results=results, environment=ENVIRONMENT, digests=digests))
        store.documents("studies").write("mine", {"folder": ".", **document_of(declared)})
    with served([str(tmp_path / "mine")]) as client:
        page = client.get("/shelves/mine/mine/compare.json").json
    done = typed("compare", "mine", "--store", tmp_path / "mine", "--json", cwd=tmp_path)
    command = json.loads(done.stdout)
    assert command["verdict"] == page["verdict"]
    told = [[one["message"] for one in said["warnings"] if one["code"] == "other-data"] for said in (command, page)]
    assert told[0] == told[1] == page["not_comparable"]
    assert len(told[0]) == (0 if alike else 1)


@pytest.mark.parametrize("case", ["same-machine", "other-data", "other-direction", "other-epochs"])
def test_a_board_of_two_studies_ranks_what_their_comparison_judges(case, tmp_path):
    declared, fields, reason = BASELINES[case]
    mine = kept(tmp_path / "mine", study("mine"), 0.9, minute=1, **MINE)
    base = kept(tmp_path / "base", declared, 0.8, **fields)
    with served([str(mine), str(base)]) as client:
        compared = client.get("/shelves/mine/mine/compare.json?with=base/base").json
        several = "/leaderboard.json?of=mine/mine&of=base/base"
        board, anyway = client.get(several).json, client.get(f"{several}&anyway=yes").json
        shown = client.get(several.replace(".json", "")).body.decode()
    ranked = [one["approach"] for one in board["approaches"]]
    assert (compared["verdict"] is None) == (ranked != ["mine", "base"]) == bool(board["left_out"])
    if reason is None:
        return
    assert all(message in board["left_out"][0] for message in compared["not_comparable"])
    assert ("ranked anyway" in shown) == (case not in NEVER)
    if case in NEVER:
        assert anyway["left_out"] == board["left_out"], "whatever is said"
        return
    assert ([one["approach"] for one in anyway["approaches"]], anyway["left_out"]) == (["mine", "base"], [])
    told = [one["message"] for one in anyway["warnings"]]
    assert all(message in told for message in compared["not_comparable"])


def test_the_csv_of_a_comparison_says_in_every_row_what_it_is_subject_to(tmp_path):
    mine = kept(tmp_path / "mine", study("mine"), 0.9, minute=1, **MINE)
    declared, fields, reason = BASELINES["other-data"]
    base = kept(tmp_path / "base", declared, 0.8, **fields)
    for anyway in ("", "&anyway=yes"):
        asked = f"with=base/base{anyway}"
        with served([str(mine), str(base)]) as client:
            told = client.get(f"/shelves/mine/mine/compare.json?{asked}").json
            tables = [client.get(f"/shelves/mine/mine/compare.csv?{asked}{of}").body.decode() for of in ("", DRAWN)]
            if anyway:
                listed = client.get(f"/shelves/mine/mine/compare.csv?{asked}&table=conditions").body.decode()
                messages = [row["message"] for row in csv.DictReader(io.StringIO(listed, newline=""))]
                assert messages == [one["message"] for one in told["warnings"]]
        for table in tables:
            rows = list(csv.DictReader(io.StringIO(table, newline="")))
            assert rows
            for row in rows:
                assert reason in row["conditions"]
                assert all(one["message"] in row["conditions"] for one in told.get("warnings", ()))
