"""Records travel as JSON and come back equal."""

import json

from hypothesis import given
from hypothesis import strategies as st

from isorun.study.cells import Cell
from isorun.study.levels import Level
from isorun.study.records import Note, Predictions, RunRecord, RunState, Seeded, Series

CELL = Cell("a", ("python", "t.py"), "default", {}, "default", {}, Level.FIXED_SEED, 1, 0)
AXIS = st.floats(allow_nan=False, allow_infinity=False)
NUMBERS = st.floats(allow_nan=False)


def record(**parts):
    base = {"exit_code": 0, "signal": "", "reason": "", "launch": "fresh", "seed_used": 1, "started_at": "t"}
    measures = {"wall_seconds": 1.5, "cpu_seconds": 1.0, "peak_memory_bytes": 10}
    return RunRecord(cell=CELL, attempt=1, state=RunState.FINISHED, **base, **measures, **parts)


@given(st.dictionaries(st.text(), NUMBERS), st.lists(st.tuples(AXIS, AXIS, NUMBERS)))
def test_a_record_comes_back_equal(results, rows):
    series = Series(*(tuple(column) for column in zip(*rows, strict=True))) if rows else Series((), (), ())
    before = record(
        results=results,
        series={"val_acc": series},
        per_class={"acc": {"cat": 0.5}},
        predictions=(Predictions("test", 3.0, "class", "u1", (2,), "eA=="),),
        seeded=(Seeded("random.seed", "3", "t.py:1"), Seeded("random.seed", "4", "t.py:2", "99")),
        notes=(Note("code", "text"),),
    )
    text = json.dumps(before.to_json(), allow_nan=False)
    assert RunRecord.from_json(json.loads(text)) == before


def test_a_diverged_training_is_recorded_as_what_it_was():
    text = json.dumps(record(results={"loss": float("nan"), "grad": float("-inf")}).to_json(), allow_nan=False)
    back = RunRecord.from_json(json.loads(text)).results
    assert back["loss"] != back["loss"]
    assert back["grad"] == float("-inf")


def test_a_run_is_named_by_its_cell_and_attempt():
    assert record().run_id == f"{CELL.id}-1"


def test_records_from_before_seeds_were_taken_over_read_and_write_as_they_were():
    data = {**record().to_json(), "seeded": [["torch.manual_seed", "0", "t.py:3"]]}
    back = RunRecord.from_json(data)
    assert back.seeded == (Seeded("torch.manual_seed", "0", "t.py:3"),)
    assert back.to_json()["seeded"] == data["seeded"]


def test_a_seed_says_whether_it_was_seen_and_whom_it_reached():
    seen, built, read = (
        Seeded(call, "0", "t.py:1")
        for call in ("torch.manual_seed", "torch.Generator.manual_seed", "numpy.random.default_rng (in source)")
    )
    assert [item.in_source for item in (seen, built, read)] == [False, False, True]
    assert [item.sets_global for item in (seen, built, read)] == [True, False, False]
