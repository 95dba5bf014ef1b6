"""Reproducing a paper is running its studies and presenting their records: held with a paper made for the test."""

import json
from types import MappingProxyType

import pytest

from isorun import plugins, reproducing, session
from isorun.errors import InputError, NothingRecorded, UsageError
from isorun.report import Column, Table, html, latex, markdown
from isorun.report.figures.distributions import strip
from isorun.study.design import Study
from isorun.study.records import RunState
from isorun.testing.instant_executor import Computed, InstantExecutor
from isorun.zoo import papers
from isorun.zoo.paper import SCALES, AbstractPaper, Exhibit, Omission, Presentation, Request, Scale, Undrawn

TRAIN = """
import isorun, sys
if sys.argv[1] == "1":
    raise ValueError("no such luck")
isorun.result(accuracy=0.5)
"""


class Tiny(AbstractPaper):
    name = "tiny"
    title = "A tiny paper"
    reference = "nobody, never"
    exhibits = (Exhibit("Table 1", "how many runs there were"),)
    not_attempted = (Omission("Figure 1", "a drawing."),)
    networks = ()
    data = ()
    parts = ("works", "fails")
    scales = MappingProxyType({name: Scale(name, "nothing") for name in SCALES})

    def studies(self, request):
        parts = request.only or ("works",)
        return tuple(
            Study(
                f"tiny-{part}",
                approaches={part: ["python", "-c", TRAIN, "0" if part == "works" else "1"]},
                levels=["fixed-seed"],
                repeats=request.runs or 2,
                folder=request.folder,
            )
            for part in parts
        )

    def present(self, request, records):
        rows = tuple((name, str(sum(r.state is RunState.FINISHED for r in found))) for name, found in records.items())
        columns = (Column("study", key=True), Column("runs", "n", "of all"))
        table = Table("one", "Table 1", columns, rows, ("A note.",), folded=True)
        drawn = strip({"a": [0.1, 0.25, 1 / 3, 0.5, 0.7, 0.7], "b": [1e-7, 2.0]}, "accuracy")
        return Presentation(("It ran.",), (table,), (drawn,), ("all of it",), numbers={"rows": len(rows)})


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setattr(reproducing, "paper", lambda _: Tiny())


def test_what_is_missing_is_run_and_presented_and_never_run_twice(tmp_path):
    first = reproducing.reproduce("tiny", folder=tmp_path)
    assert (first.finished, first.failed, first.stopped) == (2, 0, "")
    assert first.presentation.tables[0].rows == (("tiny-works", "2"),)
    more = reproducing.reproduce("tiny", folder=tmp_path, runs=3)
    assert more.presentation.tables[0].rows == (("tiny-works", "3"),)
    assert sorted(path.stem for path in (tmp_path / ".isorun" / "studies").glob("*.json")) == ["tiny-works"]


def test_all_studies_of_a_paper_share_one_store_and_one_executor(tmp_path, monkeypatch):
    opened = []
    for name in ("open_store", "open_executor"):
        original = getattr(session, name)
        monkeypatch.setattr(session, name, _counted(opened, name, original))
    done = reproducing.reproduce("tiny", folder=tmp_path, only=("works", "fails"), runs=1)
    assert (done.finished, done.failed) == (1, 1)
    assert opened == ["open_store", "open_executor"]


def _counted(opened, name, original):
    def counted(*arguments, **options):
        opened.append(name)
        return original(*arguments, **options)

    return counted


def test_what_there_is_to_know_about_the_runs_is_told_with_the_paper(tmp_path):
    reproducing.reproduce("tiny", folder=tmp_path)
    (tmp_path / ".isorun" / "inbox" / "bbbbbbbbbbbbbbbb-1.json").write_text("{")
    done = reproducing.reproduce("tiny", folder=tmp_path)
    assert [warning["code"] for warning in done.to_json()["warnings"]] == ["store-record-set-aside"]


def test_failed_runs_are_counted_and_warned_of(tmp_path):
    done = reproducing.reproduce("tiny", folder=tmp_path, only=("works", "fails"))
    assert (done.finished, done.failed) == (2, 2)
    assert [warning.code for warning in done.presentation.warnings] == ["failed-runs"]
    assert "2 runs did not finish" in done.presentation.warnings[0].message
    assert "ValueError: no such luck" in done.presentation.warnings[0].message
    assert done.stopped == "every run of tiny-fails failed"


def test_an_environment_that_cannot_be_had_is_told_with_the_resolvers_words():
    reason = "the packages of the environment 'torch' cannot be installed: no matching distribution found"
    lost = _record("a", 1, RunState.FAILED)
    lost.launch, lost.reason, lost.log_tail = "none", reason, "cannot be installed\n  found: no matching distribution"
    [warning] = reproducing._with_failures(Presentation(()), [lost, lost], "tiny").warnings
    assert reason in warning.message
    assert "registry" in warning.next_step


def test_a_run_that_failed_first_and_then_finished_is_no_failure():
    last = reproducing._last_records({"s": [_record("a", 1, RunState.FAILED), _record("a", 2, RunState.FINISHED)]})
    assert [record.state for record in last] == [RunState.FINISHED]


def test_studies_after_one_that_fails_whole_are_not_begun(tmp_path):
    done = reproducing.reproduce("tiny", folder=tmp_path, only=("fails", "works"))
    assert (done.finished, done.failed) == (0, 2)


def test_recorded_runs_are_presented_without_running(tmp_path):
    with pytest.raises(NothingRecorded, match="isorun reproduce tiny"):
        reproducing.reproduce("tiny", folder=tmp_path, run=False)
    reproducing.reproduce("tiny", folder=tmp_path)
    assert reproducing.reproduce("tiny", folder=tmp_path, run=False, runs=5).finished == 2


def test_json_has_the_tables_as_shown_and_where_the_runs_were_made(tmp_path):
    told = reproducing.reproduce("tiny", folder=tmp_path).to_json()
    assert told["tables"][0]["rows"] == [["tiny-works", "2"]]
    assert told["runs"] == {"finished": 2, "failed": 0, "stopped": ""}
    assert told["machines"][0]["runs"] == 2
    assert told["machines"][0]["python"]
    assert told["numbers"] == {"rows": 1}


def test_what_the_paper_does_not_have_is_refused_before_anything_runs(tmp_path):
    with pytest.raises(UsageError, match="works"):
        reproducing.studies_of("tiny", Request("smoke", tmp_path, only=("work",)))
    assert not list(tmp_path.iterdir())


def test_a_study_of_threads_gets_as_many_jobs_as_have_their_cpus(monkeypatch):
    monkeypatch.setattr(reproducing.os, "sched_getaffinity", lambda _: set(range(8)))

    def fitting(jobs, threads):
        study = Study("s", approaches={"a": "true"}, environments={"one": {"threads": 1}, "many": {"threads": threads}})
        return reproducing._fitting(jobs, study)

    assert (fitting(8, 1), fitting(8, 3), fitting(1, 3), fitting(8, 16)) == (8, 2, 1, 1)


def test_another_executor_is_not_measured_by_this_machine(tmp_path, monkeypatch):
    asked = []

    def open_executor(name, options):
        asked.append((name, options.jobs))
        return InstantExecutor(lambda _: Computed({"accuracy": 0.5}), options.jobs)

    monkeypatch.setattr(plugins, "load", lambda *_, **__: None)
    monkeypatch.setattr(session, "open_executor", open_executor)
    monkeypatch.setattr(reproducing, "gpu_is_visible", lambda: False)
    monkeypatch.setattr(reproducing.os, "sched_getaffinity", lambda _: {0})
    done = reproducing.reproduce("tiny", folder=tmp_path, device="cuda", executor="cluster", jobs=64)
    assert (done.finished, asked) == (2, [("cluster", 64)])


def test_a_gpu_that_is_not_there_is_said_once_before_anything_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(reproducing, "gpu_is_visible", lambda: False)
    with pytest.raises(UsageError, match="needs a GPU"):
        reproducing.reproduce("tiny", folder=tmp_path, device="cuda")
    assert not list(tmp_path.iterdir())


def _record(cell, attempt, state):
    class Cell:
        id = cell

    class Record:
        pass

    record = Record()
    record.cell, record.attempt, record.state = Cell(), attempt, state
    return record


def pages(done):
    """All that can be written of a reproduction."""
    view = done.view(figures=True)
    title, kicker = done.heading
    texts = html.render_view(title, kicker, view), markdown.render_view(title, view), latex.render_view(title, view)
    return *texts, view.text()


def test_pages_made_from_the_json_are_those_that_the_runs_made(tmp_path):
    done = reproducing.reproduce("tiny", folder=tmp_path, only=("works", "fails"))
    file = tmp_path / "tiny.json"
    file.write_text(json.dumps(done.to_json()))
    kept = reproducing.kept_reproduction(file)
    assert pages(kept) == pages(done)
    assert kept.view(figures=True) == done.view(figures=True)
    assert kept.to_json() == done.to_json()
    assert "<svg" in pages(kept)[0]
    assert "2 runs did not finish" in pages(kept)[0]


def test_a_file_of_before_pages_were_kept_shows_its_tables_and_names_its_figures(tmp_path):
    done = reproducing.reproduce("tiny", folder=tmp_path)
    file = tmp_path / "tiny.json"
    file.write_text(json.dumps({key: value for key, value in done.to_json().items() if key != "page"}))
    kept = reproducing.kept_reproduction(file).view(figures=True)
    assert [(table.title, table.rows, table.notes) for table in kept.tables] == [
        (table.title, table.rows, table.notes) for table in done.view().tables
    ]
    assert [column.key for column in kept.tables[0].columns] == [True, False]
    assert kept.verdict == done.view().verdict
    why = "its paper draws it from the runs' records alone (isorun reproduce tiny --scale smoke draws it)"
    assert kept.listings[0].items == (f"strip: {why}. {done.presentation.figures[0].sentence}",)
    assert kept.listings[1:] == done.view().listings
    assert [warning.code for warning in kept.warnings] == ["older-file"]
    assert kept.warnings[0].next_step == "isorun reproduce tiny --scale smoke --recorded, where the records are"


def test_a_file_of_before_pages_were_kept_has_the_figures_that_its_numbers_draw(tmp_path, monkeypatch):
    class Drawing(Tiny):
        def figures(self, numbers):
            yield strip({"a": [0.1] * numbers["rows"]}, "accuracy")
            yield Undrawn("other", "what it needs")

    monkeypatch.setattr(reproducing, "paper", lambda _: Drawing())
    told = {
        key: value for key, value in reproducing.reproduce("tiny", folder=tmp_path).to_json().items() if key != "page"
    }
    told["figures"].append({"name": "other", "sentence": "It rose."})
    file = tmp_path / "tiny.json"
    file.write_text(json.dumps(told))
    kept = reproducing.kept_reproduction(file).view(figures=True)
    assert [figure.name for figure in kept.figures] == ["strip"]
    [said] = kept.listings[0].items
    assert said == "other: the file lacks what it needs (isorun reproduce tiny --scale smoke draws it). It rose."
    file.write_text(json.dumps({**told, "numbers": {"rows": "x"}}))
    with pytest.raises(InputError, match="is not the JSON of a reproduction"):
        reproducing.kept_reproduction(file)


def test_a_file_of_a_paper_that_is_not_installed_has_its_tables(tmp_path, monkeypatch):
    told = reproducing.reproduce("tiny", folder=tmp_path).to_json()
    del told["page"]
    file = tmp_path / "tiny.json"
    file.write_text(json.dumps(told))
    monkeypatch.setattr(reproducing, "paper", papers.paper)
    kept = reproducing.kept_reproduction(file).view(figures=True)
    assert kept.tables
    assert "there is no paper 'tiny'" in kept.listings[0].items[0]


@pytest.mark.parametrize(
    ("heading", "column"),
    [
        ("best in 25 trials: AKG (%)", Column("AKG", "%", "best in 25 trials")),
        ("accuracy (points): (CI)", Column("(CI)", "", "accuracy (points)")),
        ("mean (%)", Column("mean", "%")),
        ("p, by Holm", Column("p, by Holm")),
        ("", Column("")),
    ],
)
def test_a_column_is_known_again_by_its_heading(heading, column):
    assert reproducing._column(heading, is_text=False) == column
    assert Table("t", "t", (column,), ()).to_json()["columns"] == [heading]


NAMED = '{"paper": "p", "title": "t", "scale": "cpu"'
TORN_TABLE = '{"name": "n", "title": "t", "columns": [], "rows": [["too long"]]}'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not JSON"),
        ("[]", "is not the JSON of a reproduction"),
        ("{}", "is not the JSON of a reproduction"),
        (NAMED + "}", "is not the JSON of a reproduction"),
        (NAMED + ', "page": {"version": 99}}', "cannot be read"),
        (NAMED + ', "page": {"version": 1}}', "has no page.verdict"),
        (NAMED + ', "page": {"version": 1, "verdict": "x"}}', "page.verdict"),
        (NAMED + ', "page": {"version": 1, "verdict": [], "x": 1}}', "page.x"),
        (
            NAMED + ', "page": {"version": 1, "verdict": [], "tables": [' + TORN_TABLE + "]}}",
            "a row has 1 cells for 0 columns",
        ),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_what_is_no_reproduction_is_refused_in_a_sentence(tmp_path, text, said):
    file = tmp_path / "kept.json"
    file.write_text(text)
    with pytest.raises(InputError) as refused:
        reproducing.kept_reproduction(file)
    assert said in f"{refused.value.what} {refused.value.found}"


def test_a_file_that_is_not_there_is_refused_in_a_sentence(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        reproducing.kept_reproduction(tmp_path / "gone.json")
