"""The report of a study with searches is about the searches, and not about the spread of a trial's only run."""

import json

import pytest

import isorun
from isorun.errors import NothingRecorded
from isorun.report import html, json_report, latex, markdown, terminal
from isorun.report.study_view import study_sections, study_view, verdict, warnings
from isorun.testing.instant_executor import Computed, InstantExecutor
from isorun.testing.memory_store import MemoryStore

SPACE = {"lr": {"float": [1e-4, 1.0], "log": True}, "units": [8, 16, 32]}
SEARCH = {"engine": "random", "trials": 12, "begin": 6, "prior": "none", "space": SPACE}


def trained(job):
    return Computed({"acc": 1 - float(job.cell.config_values["lr"])})


def searched(executed=trained, **declared):
    approaches = {"a": "python train.py {config.lr} {config.units}"}
    study = isorun.Study("tuned", approaches=approaches, metrics={"acc": "higher"}, **declared)
    store = MemoryStore()
    isorun.run(study, store=store, executor=InstantExecutor(executed))
    return isorun.analyse(study, store=store)


@pytest.fixture(scope="module")
def one():
    return searched(search=SEARCH)


@pytest.fixture(scope="module")
def several():
    return searched(searches={name: {**SEARCH, "seed": seed} for seed, name in enumerate(("first", "second"))})


def shown_text(result):
    return " ".join(terminal.render(result, colour=False, width=100).split())


def test_the_verdict_is_that_of_the_search_and_no_sentence_a_trial(one):
    assert verdict(one)[0].startswith("random study tuned: 12 trials (12 finished); the best score is 0.99")
    text = shown_text(one)
    assert "only run" not in text
    assert "few-runs" not in text
    assert "spread between runs" not in text
    assert "What isorun changed, and what that brought" in text
    assert "The best and the latest trials" in text
    assert str(one) == study_view(one).text(width=100).rstrip("\n")


def test_the_page_has_the_figures_of_the_search(one):
    names = [figure.name for section in study_sections(one) for figure in section.figures]
    assert {"best-by-trial", "best-by-time", "actions"} <= set(names)
    page = html.render(one)
    for title in ("Best score by trial", "Best score by time", "What each change brought", "The search"):
        assert f">{title}<" in page
    assert "1 search" in page
    assert "12 groups" not in page
    assert not [name for name in names if name.startswith(("overall", "time", "curves"))]


def test_machines_find_the_search_beside_its_trials(one):
    told = json.loads(json.dumps(json_report.to_json(one), allow_nan=False))
    (search,) = told["searches"]
    assert (search["name"], search["engine"], search["trials"]) == (None, "random", 12)
    assert search["best"]["score"] == max(
        run["values"]["acc"] for group in told["groups"] for run in group["selections"][0]["runs"]
    )
    assert len(search["taken"]) == 6
    assert told["verdict"] == list(verdict(one))
    assert "few-runs" not in {warning["code"] for warning in told["warnings"]}
    assert {warning["code"] for warning in search["warnings"]} <= {warning["code"] for warning in told["warnings"]}


def test_a_study_without_a_search_is_told_as_before():
    study, store = isorun.Study("plain", approaches={"a": "python a.py"}, repeats=2), MemoryStore()
    isorun.run(study, store=store, executor=InstantExecutor(lambda _: Computed({"acc": 0.5})))
    result = isorun.analyse(study, store=store)
    assert json_report.to_json(result)["searches"] == []
    assert warnings(result) == result.conditions
    assert "few-runs" in {warning.code for warning in warnings(result)}


def test_parts_of_several_searches_are_told_apart(several):
    view = study_view(several, figures=True)
    named = [sentence.partition(":")[0] for sentence in verdict(several)]
    assert named[:2] == ["random study tuned first", "random study tuned second"]
    assert list(dict.fromkeys(named[2:])) == ["first", "second"]
    for parts in (view.tables, view.figures):
        names = [part.name for part in parts]
        assert len(names) == len(set(names))
        assert {"first", "second"} <= {name.partition("-")[0] for name in names}
    assert [section.title for section in study_sections(several)][:2] == ["The search first", "The search second"]
    assert [told["name"] for told in json_report.to_json(several)["searches"]] == ["first", "second"]
    assert "2 searches" in html.render(several)
    codes = [warning for warning in warnings(several) if warning.code == "noise-unknown"]
    assert [warning.groups for warning in codes] == [("first", "second")]


def test_markdown_and_latex_have_the_tables_of_every_search(several):
    for text in (markdown.render(several), latex.render(several)):
        assert text.count("The best and the latest trials") == 2
        assert "Runs and what they took" in text
        assert "only run" not in text


def test_a_warning_of_many_trials_names_some_of_them():
    result = searched(lambda _: Computed({"acc": 0.5, "loss": float("nan")}), search=SEARCH)
    told = {condition.code: condition for condition in result.conditions}
    assert len(told["few-runs"].groups) == 12
    assert all(len(warning.groups) <= 4 for warning in warnings(result))


def test_what_failed_trials_said_is_shown():
    def sometimes(job):
        if job.cell.config_values["units"] != 8:
            raise ValueError("it is broken")
        return trained(job)

    result = searched(sometimes, search={**SEARCH, "begin": "never"})
    assert "6 failed" in verdict(result)[0]
    assert "runs-failed" not in {warning.code for warning in warnings(result)}  # the search is not to run them again
    text = shown_text(result)
    assert "Runs that left no result" in text
    assert "it is broken" in text


def test_a_search_without_a_score_has_a_report_too():
    result = searched(lambda _: Computed(exit_code=1), search={**SEARCH, "trials": 3})
    assert "no trial has finished with a score yet" in verdict(result)[0]
    assert "3 trials" in html.render(result)


def test_a_search_that_has_not_begun_has_nothing_to_report():
    study = isorun.Study("tuned", approaches={"a": "python t.py {config.lr} {config.units}"}, metrics={"acc": "higher"},
                         search=SEARCH)  # fmt: skip
    with pytest.raises(NothingRecorded, match="no run of the study"):
        isorun.analyse(study, store=MemoryStore())


def test_questions_about_runs_do_not_wait_for_what_is_said_of_searches(monkeypatch):
    study = isorun.Study("tuned", approaches={"a": "python t.py {config.lr} {config.units}"}, metrics={"acc": "higher"},
                         search=SEARCH)  # fmt: skip
    store = MemoryStore()
    isorun.run(study, store=store, executor=InstantExecutor(trained))
    monkeypatch.setattr("isorun.repair.told_searches.told_of", lambda *_, **__: pytest.fail("nobody asked for that"))
    assert len(isorun.summarize(study, value="acc", store=store)) == 12
