"""What is told before finished runs serve again."""

import pytest

from isorun import workflow
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
