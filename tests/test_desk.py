"""The desk between scheduler and store."""

import pytest

from isorun.desk import Desk
from isorun.errors import StudyError
from isorun.study.adhoc import adhoc_study
from isorun.study.cells import cells_of
from isorun.study.document import kept_study, with_key, without_secrets
from isorun.study.records import RunState
from isorun.testing.memory_store import MemoryStore
from record_builder import make_record


@pytest.fixture
def store():
    with MemoryStore() as opened:
        yield opened


def study_of(tmp_path, *command, **environment):
    return adhoc_study([command or ("python", "t.py")], environment=environment, folder=tmp_path)


@pytest.mark.parametrize(
    ("state", "left_to_do"), [(RunState.INTERRUPTED, True), (RunState.FAILED, False), (RunState.FINISHED, False)]
)
def test_what_another_scheduler_tried_is_left_to_it_unless_it_was_interrupted(tmp_path, store, state, left_to_do):
    study = study_of(tmp_path)
    (cell,) = cells_of(study)
    here, elsewhere = Desk(study, store, tmp_path), Desk(study, store, tmp_path)
    ticket = elsewhere.claim(cell)
    elsewhere.keep(make_record(cell, attempt=ticket.attempt, state=state))
    ticket.release()
    assert here.is_done(cell) is not left_to_do
    assert (here.claim(cell) is not None) is left_to_do


@pytest.mark.parametrize("variables", [{"EPOCHS": "3"}, {"HF_TOKEN": "hidden-value"}, {"URL": "postgres://u:p@h/x"}])
def test_a_kept_study_has_the_same_cells_without_the_values_of_its_variables(tmp_path, store, variables):
    study = study_of(tmp_path, env={"OMP_NUM_THREADS": "1", **variables})
    study = with_key(study, store.key)
    document = without_secrets(study)
    kept = kept_study(document, tmp_path, study.name)
    (value,) = variables.values()
    assert f'"{value}"' not in str(document).replace("'", '"')
    assert kept.environments["default"].env["OMP_NUM_THREADS"] == "1"
    assert [cell.id for cell in cells_of(kept)] == [cell.id for cell in cells_of(study)]
    (cell,) = cells_of(kept)
    desk = Desk(kept, store, tmp_path)
    with pytest.raises(StudyError, match="not kept"):
        desk.job(cell, desk.claim(cell))
