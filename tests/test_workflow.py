"""The pipeline without processes: a store in memory, an executor that runs nothing."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from isorun import workflow
from isorun.errors import InputError, NothingRecorded, StoreBusy, StudyError
from isorun.in_progress import status
from isorun.scheduling import Observer
from isorun.store import STUDIES
from isorun.store.folder import FolderStore
from isorun.study.design import Study, adhoc_study, load_study, with_key
from isorun.study.records import Note, RunState
from isorun.testing.instant_executor import Computed, InstantExecutor
from isorun.testing.memory_store import MemoryStore
from record_builder import make_record


def study_of(folder=".", repeats=4, **changes):
    given = {"approaches": {"a": "python a.py"}, "metrics": {"acc": {"direction": "higher"}}}
    return Study("s", repeats=repeats, folder=folder, **(given | changes))


def accuracy(job):
    return Computed({"acc": 0.9 + job.cell.repeat / 100})


@pytest.fixture
def store():
    with MemoryStore() as opened:
        yield opened


@pytest.fixture
def instant():
    executor = InstantExecutor(accuracy, 2)
    yield executor
    executor.close()


def test_what_is_missing_is_run_and_what_is_there_is_not_run_again(store, instant):
    first = workflow.run(study_of(repeats=3), store=store, executor=instant)
    assert first.count(RunState.FINISHED) == 3
    more = workflow.run(study_of(repeats=5), store=store, executor=instant)
    assert more.count(RunState.FINISHED) == 2
    assert not workflow.missing(study_of(repeats=5), store=store)


@pytest.mark.parametrize("kind", ["memory", "folder"])
def test_two_that_extend_a_study_at_once_lose_nothing_of_each_other(kind, tmp_path, monkeypatch):
    """Each reads what is kept, and puts what it adds beside that: for one of them it was no longer what is kept."""
    both_read = threading.Barrier(2)
    real = workflow.together

    def slow(study, kept):
        with suppress(threading.BrokenBarrierError):
            both_read.wait(0.5)
        return real(study, kept)

    monkeypatch.setattr(workflow, "together", slow)
    with MemoryStore() if kind == "memory" else FolderStore(tmp_path / "store") as store:
        asked = [study_of(tmp_path, levels=[level]) for level in ("default", "fixed-seed", "deterministic")]
        workflow.remember(asked[0], store=store)
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda study: workflow.remember(study, store=store), asked[1:]))
        kept = store.documents(STUDIES).read("s")
        assert set(kept["levels"]) == {"default", "fixed-seed", "deterministic"}
        assert not store.holders()


def test_who_keeps_a_study_for_long_is_told_and_not_written_over(store, tmp_path, monkeypatch):
    monkeypatch.setattr(workflow, "_KEEPING_SECONDS", 0.05)
    workflow.remember(study_of(tmp_path), store=store)
    kept = store.documents(STUDIES).read("s")
    with workflow.kept_by_nobody_else("s", store):
        assert status(store=store).running == ()
        with pytest.raises(StoreBusy, match="keeping the study s"):
            workflow.remember(study_of(tmp_path, levels=["fixed-seed"]), store=store)
    assert store.documents(STUDIES).read("s") == kept


def test_a_study_is_not_moved_from_under_workers_by_who_runs_it_elsewhere(store, instant, tmp_path):
    """In a store that machines share; who says --queue there, or declares something else, does say where it lies."""
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
        (folder / "s.toml").write_text('name = "s"\nrepeats = 2\n[approaches.a]\ncommand = "python a.py"\n')

    def kept(name):
        return Path(store.documents(STUDIES).read(name)["folder"]).name

    workflow.queue(load_study(folders[0] / "s.toml"), store=store)
    workflow.run(folders[1] / "s.toml", store=store, executor=instant)
    assert kept("s") == "one"
    workflow.queue(load_study(folders[1] / "s.toml"), store=store)
    assert kept("s") == "two"
    for folder, queued, lies_in in ((folders[0], False, "one"), (folders[1], False, "one"), (folders[1], True, "two")):
        study = adhoc_study([["python", "a.py"]], name="typed", folder=folder)
        workflow.remember(study, store=store, queued=queued)
        assert kept("typed") == lies_in
    workflow.remember(adhoc_study([["python", "b.py"]], name="typed", folder=folders[0]), store=store)
    assert kept("typed") == "one", "it is another study now"


def test_only_some_cells_are_run_when_asked(store, instant):
    outcome = workflow.run(study_of(), store=store, executor=instant, only=lambda cell: cell.repeat == 2)
    assert [record.cell.repeat for record in outcome.records] == [2]


def test_records_and_analysis_come_from_the_same_store(store, instant):
    workflow.run(study_of(), store=store, executor=instant)
    assert sorted(record.results["acc"] for record in workflow.records(study_of(), store=store)) == [
        0.9,
        0.91,
        0.92,
        0.93,
    ]
    result = workflow.analyse(study_of(), store=store)
    assert result.primary.name == "acc"
    assert result.groups[0].finished == 4


def test_nothing_is_opened_or_made_to_say_that_nothing_was_recorded(tmp_path):
    study = study_of(tmp_path)
    assert len(workflow.missing(study)) == 4
    with pytest.raises(NothingRecorded, match="no store"):
        workflow.records(study)
    with pytest.raises(NothingRecorded, match="no store"):
        status(study)
    assert not list(tmp_path.iterdir())


def test_a_store_that_was_opened_by_others_stays_open(store, instant):
    workflow.run(study_of(), store=store, executor=instant)
    assert instant.submit is not None
    assert workflow.run(study_of(repeats=6), store=store, executor=instant).count(RunState.FINISHED) == 2


def test_one_run_opens_one_store_and_one_executor(tmp_path, monkeypatch):
    opened = []
    (tmp_path / "a.py").touch()
    monkeypatch.setattr(FolderStore, "__init__", _counting(opened, "store", FolderStore.__init__))
    executor = InstantExecutor(accuracy)
    monkeypatch.setattr("isorun.session.open_executor", lambda *_: opened.append("executor") or executor)
    workflow.run(study_of(tmp_path))
    assert opened == ["store", "executor"]
    workflow.run(study_of(tmp_path))
    assert opened == ["store", "executor", "store"]  # nothing was missing, so nothing was needed to run it


def _counting(opened, what, original):
    def counted(self, *arguments, **options):
        opened.append(what)
        original(self, *arguments, **options)

    return counted


def test_a_kept_study_wins_over_a_folder_or_file_of_its_name(tmp_path, monkeypatch, instant):
    monkeypatch.chdir(tmp_path)
    study = adhoc_study([("python", "a.py")], name="exp1", folder=tmp_path)
    workflow.remember(study)
    (tmp_path / "exp1").mkdir()
    assert workflow.load("exp1").approaches.keys() == study.approaches.keys()
    (tmp_path / "exp1").rmdir()
    (tmp_path / "exp1").write_text("not a study")
    assert workflow.load("exp1").name == "exp1"
    assert workflow.recent() == ("exp1",)


@pytest.mark.parametrize("variables", [{"EPOCHS": "3"}, {"HF_TOKEN": "hidden-value"}, {"URL": "postgres://u:p@h/x"}])
def test_a_kept_study_has_the_same_cells_without_the_values_of_its_variables(tmp_path, store, variables):
    environment = {"env": {"OMP_NUM_THREADS": "1", **variables}}
    study = adhoc_study([("python", "t.py")], name="kept", environment=environment, folder=tmp_path)
    workflow.remember(study, store=store)
    kept = workflow.load("kept", store=store)
    (value,) = variables.values()
    document = store.documents("studies").read("kept")
    assert f'"{value}"' not in str(document).replace("'", '"')
    assert kept.environments["default"].env["OMP_NUM_THREADS"] == "1"
    ids = [cell.id for cell in workflow.cells(study, store=store)]
    assert [cell.id for cell in workflow.cells(kept, store=store)] == ids


def test_two_commands_that_differ_in_a_secret_alone_are_two_cells(tmp_path, store, instant):
    for value in ("5", "10"):
        study = adhoc_study([("python", "t.py", "--salt", value)], folder=tmp_path)
        assert workflow.run(study, store=store, executor=instant).count(RunState.FINISHED) == 1
        assert not workflow.missing(study, store=store)


def typed(folder, *words, **options):
    return adhoc_study([words or ("python", "t.py")], folder=folder, **options)


def test_levels_of_one_command_are_kept_side_by_side(tmp_path, store, instant):
    first = typed(tmp_path, levels=["fixed-seed"], repeats=3)
    second = typed(tmp_path, levels=["deterministic"], repeats=3, metrics={"acc": "higher"})
    for study in (first, second):
        assert not workflow.reuse_conditions(study, store, by_name=True)
        workflow.remember(study, store=store)
        workflow.run(study, store=store, executor=instant)
    assert first.name == second.name
    assert workflow.recent(store) == (first.name,)
    result = workflow.analyse(store=store)
    assert [(str(group.key.level), group.finished) for group in result.groups] == [
        ("fixed-seed", 3),
        ("deterministic", 3),
    ]
    workflow.remember(typed(tmp_path, levels=["fixed-seed"]), store=store)  # fewer runs take none away
    kept = workflow.load(first.name, store=store)
    assert (kept.repeats, list(kept.metrics)) == (3, ["acc"])


def test_what_nobody_asked_for_is_not_missing_from_a_command_that_was_run_in_several_ways(tmp_path, store, instant):
    ways = ({"levels": ["default"], "repeats": 4}, {"levels": ["deterministic"], "seeds": [7, 8]})
    for way in ways:
        workflow.remember(typed(tmp_path, **way), store=store)
        workflow.run(typed(tmp_path, **way), store=store, executor=instant)
    kept = workflow.load(typed(tmp_path).name, store=store)
    assert len(workflow.cells(kept, store=store)) == 6
    assert not workflow.missing(kept, store=store)
    workflow.remember(typed(tmp_path, levels=["deterministic"], seeds=[8, 9]), store=store)
    again = workflow.load(kept.name, store=store)
    assert [cell.seed for cell in workflow.missing(again, store=store)] == [9]


def test_the_name_of_a_study_tells_nothing_of_a_secret(tmp_path):
    words = ("python", "t.py", "--password")
    names = set()
    for secret in ("hunter2", "swordfish"):
        for key in (b"1" * 32, b"2" * 32):
            names.add(with_key(typed(tmp_path, *words, secret), key).name)
    assert len(names) == 4
    assert typed(tmp_path, *words, "hunter2").name == typed(tmp_path, *words, "swordfish").name  # before there is a key
    plain = typed(tmp_path)
    assert with_key(plain, b"1" * 32).name == plain.name
    assert with_key(typed(tmp_path, *words, "hunter2", name="mine"), b"1" * 32).name == "mine"


def test_thousands_of_commands_have_as_many_names(tmp_path):
    assert len({typed(tmp_path, "python", "t.py", str(number)).name for number in range(2_000)}) == 2_000


def test_a_folder_that_was_moved_still_has_its_studies(tmp_path, monkeypatch, instant):
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    with FolderStore(before / ".isorun") as opened:
        workflow.remember(typed(before, name="exp"), store=opened)
        workflow.run(typed(before), store=opened, executor=instant)
    before.rename(after)
    monkeypatch.chdir(after)
    assert len(workflow.records("exp")) == 1


def test_a_study_file_wins_over_a_kept_study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    workflow.remember(adhoc_study([("python", "a.py")], name="x.toml", folder=tmp_path))
    (tmp_path / "x.toml").write_text('[approaches.other]\ncommand = "python b.py"\n')
    assert list(workflow.load("x.toml").approaches) == ["other"]
    (tmp_path / "x.toml").unlink()
    assert list(workflow.load("x.toml").approaches) == ["a"]


def test_a_name_that_nothing_has_lists_what_there_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StudyError, match="neither a study file nor"):
        workflow.load("exp1")
    workflow.remember(adhoc_study([("python", "a.py")], name="exp1", folder=tmp_path))
    with pytest.raises(StudyError, match="did you mean 'exp1'"):
        workflow.load("exp2")
    (tmp_path / "folder").mkdir()
    with pytest.raises(StudyError, match="is a folder"):
        workflow.load("folder")


def test_cells_beyond_the_study_are_shown_where_they_are_asked_for(store, instant):
    workflow.run(study_of(repeats=5), store=store, executor=instant)
    study, more = study_of(repeats=3), workflow.cells(study_of(repeats=5))
    assert len(workflow.records(study, store=store)) == 3
    assert len(workflow.records(study, store=store, beyond=more)) == 5
    assert workflow.analyse(study, store=store).states[RunState.FINISHED] == 3
    assert workflow.analyse(study, store=store, beyond=more).states[RunState.FINISHED] == 5


def test_what_the_store_has_to_say_is_a_warning_of_the_report(instant):
    class Telling(MemoryStore):
        def notes(self):
            return (Note("store-record-set-aside", "one file was set aside"),)

    store = Telling()
    workflow.run(study_of(), store=store, executor=instant)
    assert workflow.analyse(study_of(), store=store).conditions[-1].code == "store-record-set-aside"


class Listening(Observer):
    def __init__(self):
        self.told = []

    def warned(self, condition):
        self.told.append(condition.code)

    def run_started(self, cell):
        self.told.append("a run")


def test_what_there_is_to_know_about_runs_is_in_their_outcome_and_told_before_the_first(tmp_path, store, instant):
    (tmp_path / "a.py").write_text("print(1)")
    study = study_of(tmp_path, repeats=1)
    (cell,) = workflow.cells(study)
    store.finish(make_record(cell, code={"script_sha256": "another version"}))
    observer = Listening()
    outcome = workflow.run(study_of(tmp_path, repeats=2), store=store, executor=instant, observer=observer)
    assert observer.told == ["code-changed", "a run"]
    assert [condition.code for condition in outcome.conditions] == ["code-changed"]
    first, second, *_ = str(outcome).splitlines()
    assert (first, second.startswith("[code-changed] a.py changed since")) == ("1 finished", True)
    assert "<code>code-changed</code> a.py changed" in outcome._repr_html_()
    assert repr(outcome) == "<Outcome: 1 finished>"


def test_what_the_store_has_to_say_is_in_the_outcome(tmp_path, instant):
    store = tmp_path / "box"
    workflow.run(study_of(tmp_path), store=store, executor=instant)
    (store / "inbox" / "bbbbbbbbbbbbbbbb-1.json").write_text("{")
    outcome = workflow.run(study_of(tmp_path), store=store, executor=instant)
    assert [condition.code for condition in outcome.conditions] == ["store-record-set-aside"]
    assert str(outcome).startswith("nothing was missing\n[store-record-set-aside]")


def test_a_study_is_kept_by_its_name_where_that_is_asked_for(tmp_path, store, instant):
    workflow.run(typed(tmp_path, name="one"), store=store, executor=instant)
    assert workflow.recent(store) == ()
    workflow.run(typed(tmp_path, name="one"), store=store, executor=instant, keep_study=True)
    outcome = workflow.run(typed(tmp_path, name="two"), store=store, executor=instant, keep_study=True)
    assert set(workflow.recent(store)) == {"one", "two"}
    assert [condition.code for condition in outcome.conditions] == ["runs-reused"]


@pytest.mark.parametrize(
    ("asked", "kept"),
    [([["lss"]], []), ([["lss", "acc"]], ["acc"]), ([["acc"], ["lss"]], ["acc"]), ([["lss"], ["lss"]], [])],
)
def test_a_metric_that_no_run_has_is_told_and_not_kept(tmp_path, store, instant, asked, kept):
    for metrics in asked:
        study = typed(tmp_path, repeats=3, metrics=dict.fromkeys(metrics, "higher"))
        outcome = workflow.run(study, store=store, executor=instant, keep_study=True)
    assert [condition.code for condition in outcome.conditions] == ["metric-not-logged"]
    with workflow.opened(study.name, store) as (found, _):
        assert list(found.metrics) == kept
        assert found.repeats == 3


def test_what_is_asked_about_decides_which_factor_is_compared(tmp_path, store, instant):
    from isorun.questions import compare, results

    approaches = {name: f"python {name}.py" for name in ("a", "b")}
    study = Study("s", approaches=approaches, levels=["default", "fixed-seed"], repeats=3, folder=tmp_path)
    workflow.run(study, store=store, executor=instant)
    found = results(study, store=store)
    assert found.factor(None, {"level": "default"}) == "approach"
    compared = compare(found, where={"level": "default"})
    assert (compared.a.name, compared.b.name) == ("a", "b")
    with pytest.raises(InputError, match=r"varies in: approach, level[\s\S]*where=\{…\} \(--where\) for the others"):
        compare(found)
