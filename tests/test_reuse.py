"""What is told before finished runs serve again."""

import os
import subprocess

import pytest

from isorun import workflow
from isorun.study import Policy
from isorun.study.design import Study, adhoc_study
from isorun.testing.memory_store import MemoryStore
from isorun.worker.usercode import hash_of_file
from record_builder import make_record


@pytest.fixture
def store():
    with MemoryStore() as opened:
        yield opened


def typed(folder, **options):
    return adhoc_study([("python", "t.py")], folder=folder, **options)


@pytest.mark.parametrize(
    "other", [{"environment": {"env": {"EPOCHS": "3"}}}, {"environment": {"python": "python3"}}, {"take_seeds": True}]
)
def test_a_command_in_another_environment_is_another_study_and_a_name_for_both_is_told(tmp_path, store, other):
    assert typed(tmp_path).name != typed(tmp_path, **other).name
    workflow.remember(typed(tmp_path, name="mine"), store=store)
    (told,) = workflow.reuse_conditions(typed(tmp_path, name="mine", **other), store, by_name=True)
    assert told.code == "name-taken"
    assert "this command with another environment" in told.message


def test_a_study_kept_under_an_older_name_is_found_and_its_runs_count(tmp_path, store):
    old = typed(tmp_path, name="t-0e54f0")
    store.finish(make_record(workflow.cells(old)[0], code={}))
    workflow.remember(old, store=store)
    assert workflow.analyse("t-0e54f0", store=store).groups[0].finished == 1
    (told,) = workflow.reuse_conditions(typed(tmp_path), store, by_name=True)
    assert "made before by the study t-0e54f0" in told.message


@pytest.mark.parametrize(("changed", "codes"), [(False, []), (True, ["code-changed"])])
def test_an_edited_script_is_told_before_its_runs_serve_again(tmp_path, changed, codes):
    (tmp_path / "a.py").write_text("print(1)")
    study = Study("s", approaches={"a": "python a.py"}, repeats=4, folder=tmp_path)
    store = MemoryStore()
    store.finish(make_record(workflow.cells(study)[0], code={"script_sha256": hash_of_file(tmp_path / "a.py")}))
    if changed:
        (tmp_path / "a.py").write_text("print(2)")
    told = workflow.reuse_conditions(study, store)
    assert [condition.code for condition in told] == codes


@pytest.fixture
def trained(tmp_path, monkeypatch):
    """A training of its own script, a module, settings in a file and a variable; its runs, made once."""
    (tmp_path / "model.py").write_text("WIDTH = 0.25\n")
    (tmp_path / "lr.json").write_text("0.5")
    (tmp_path / "out.txt").write_text("before")
    (tmp_path / "t.py").write_text(
        "import json, os, pathlib, sys, model\n"
        "pathlib.Path(sys.argv[2]).write_text(str(os.getpid()))\n"
        "print('acc:', model.WIDTH + json.loads(open(sys.argv[1].split('=')[1]).read()), os.environ.get('EPOCHS'))\n"
    )
    monkeypatch.setenv("EPOCHS", "3")
    command = ("python", "t.py", "--config=lr.json", "out.txt")
    study = adhoc_study([command], folder=tmp_path, repeats=2)
    assert len(workflow.run(study, store=tmp_path / "store", launch="fresh").records) == 2

    def told():
        return workflow.run(study, store=tmp_path / "store", only=lambda _cell: False).conditions

    return told


def test_nothing_is_told_where_nothing_that_a_run_used_has_changed(trained, tmp_path, monkeypatch):
    monkeypatch.setenv("NOT_READ", "1")
    (tmp_path / "other.py").write_text("")
    (tmp_path / "out.txt").write_text("what the runs write is no part of what they read")
    assert [condition.code for condition in trained()] == []


@pytest.mark.parametrize(("name", "text"), [("model.py", "WIDTH = 0.5\n"), ("lr.json", "0.25"), ("t.py", "print(1)\n")])
def test_a_file_that_a_run_was_made_of_and_that_changed_is_told_by_its_name(trained, tmp_path, name, text):
    (tmp_path / name).write_text(text)
    (told,) = trained()
    assert told.code == "code-changed"
    assert told.message.startswith(f"{name} changed since")
    assert "--store" in told.next_step


@pytest.mark.parametrize("value", ["5", None])
def test_a_variable_that_the_training_asks_for_and_that_changed_is_told(trained, monkeypatch, value):
    if value is None:
        monkeypatch.delenv("EPOCHS")
    else:
        monkeypatch.setenv("EPOCHS", value)
    (told,) = trained()
    assert told.message.startswith("the variable EPOCHS changed since")


DATA = "data.csv"


@pytest.fixture
def reading(tmp_path):
    """A training that reads a data file which its command does not name, and writes and reads one of its own."""
    (tmp_path / DATA).write_text("0.5\n")
    (tmp_path / "t.py").write_text(
        "import pathlib\n"
        "pathlib.Path('own.txt').write_text('1')\n"
        f"print('acc:', float(open('{DATA}').read()) * int(pathlib.Path('own.txt').read_text()))\n"
    )

    def told(**options):
        study = typed(tmp_path, **options)
        return workflow.run(study, store=tmp_path / "store", launch="fresh")

    return told


@pytest.mark.parametrize("policy", [{}, {"isolate": True}])
def test_data_that_a_training_read_and_that_changed_are_told_by_their_name(reading, tmp_path, policy):
    (record,) = reading(policy=policy).records
    assert [item["path"] for item in record.environment["requested"]["read_files"]] == [DATA]
    assert "inputs" not in record.environment["effective"]
    assert [condition.code for condition in reading(policy=policy).conditions] == []
    (tmp_path / DATA).write_text("0.6\n")  # as long as before
    (told,) = reading(policy=policy).conditions
    assert (told.code, told.message.partition(" since")[0]) == ("code-changed", f"{DATA} changed")


def test_data_too_large_to_be_hashed_are_known_by_size_and_time(reading, tmp_path, monkeypatch):
    monkeypatch.setattr("isorun.execution.inputs._LARGEST_READ_FILE", 3)
    reading()
    assert [condition.code for condition in reading().conditions] == []
    os.utime(tmp_path / DATA, (1000, 1000))
    (told,) = reading().conditions
    assert told.message.startswith(f"the time of {DATA} changed since")
    (tmp_path / DATA).write_text("0.25\n")
    (told,) = reading().conditions
    assert told.message.startswith(f"{DATA} changed since")


def test_a_repository_around_a_training_may_change(tmp_path):
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(tmp_path)]
    (tmp_path / "t.py").write_text("print('acc: 0.5')\n")
    (tmp_path / "README").write_text("first\n")
    for words in (["init", "-q"], ["add", "t.py", "README"], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *words], check=True)

    def run(repeats):
        return workflow.run(typed(tmp_path, repeats=repeats), store=tmp_path / "store", launch="fresh")

    run(2)
    (tmp_path / "README").write_text("second\n")
    subprocess.run([*git, "commit", "-q", "-a", "-m", "second"], check=True)
    (tmp_path / "notes.py").write_text("nothing of the training's")
    assert [condition.code for condition in run(4).conditions] == []
    result = workflow.analyse(typed(tmp_path, repeats=4), store=tmp_path / "store")
    assert "code-differs" not in {condition.code for condition in result.conditions}


def test_what_a_training_tells_of_its_files_stops_no_study(tmp_path, store):
    (tmp_path / "a.py").write_text("print(1)")
    study = Study("s", approaches={"a": "python a.py"}, repeats=4, folder=tmp_path)
    odd = [5, {"path": 3}, {"path": "a\0b", "sha256": "x"}, {"path": "/dev/zero", "sha256": "x"}]
    for cell, sources in zip(workflow.cells(study), [odd, 7, "text", {}], strict=True):
        store.finish(make_record(cell, code={}, environment={"effective": {"sources": sources}}))
    assert workflow.reuse_conditions(study, store) == ()


def test_runs_of_another_study_and_a_taken_name_are_told(tmp_path, store):
    first = adhoc_study([("python", "a.py")], name="one", folder=tmp_path)
    store.finish(make_record(workflow.cells(first)[0], code={}))
    workflow.remember(first, store=store)
    same = adhoc_study([("python", "a.py")], name="two", folder=tmp_path)
    told = workflow.reuse_conditions(same, store, by_name=True)
    assert [condition.code for condition in told] == ["runs-reused"]
    assert "the study one" in told[0].message
    other = adhoc_study([("python", "b.py")], name="one", folder=tmp_path)
    assert [condition.code for condition in workflow.reuse_conditions(other, store, by_name=True)] == ["name-taken"]


def test_of_several_studies_with_the_same_runs_none_is_called_their_maker(tmp_path, store):
    for name in ("one", "two"):
        kept = adhoc_study([("python", "a.py")], name=name, folder=tmp_path)
        workflow.remember(kept, store=store)
    store.finish(make_record(workflow.cells(kept)[0], code={}))
    third = adhoc_study([("python", "a.py")], name="three", folder=tmp_path)
    (told,) = workflow.reuse_conditions(third, store, by_name=True)
    assert "made before by one of the studies one, two, and counts for three too" in told.message


def test_runs_made_without_a_copy_are_named_where_one_is_asked_for(tmp_path, store):
    study = Study("s", approaches={"a": "python a.py"}, repeats=2, folder=tmp_path, policy=Policy(isolate=True))
    without, isolated = workflow.cells(study)
    store.finish(make_record(without, code={}))
    store.finish(make_record(isolated, code={}, environment={"requested": {"isolated": {}}}))
    (told,) = workflow.reuse_conditions(study, store)
    assert told.code == "runs-not-isolated"
    assert "1 finished run was made without --isolate" in told.message
    as_before = Study("s", approaches={"a": "python a.py"}, repeats=2, folder=tmp_path)
    assert workflow.reuse_conditions(as_before, store) == ()
