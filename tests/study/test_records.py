"""Records travel as JSON and come back equal."""

import dataclasses
import json
import math
from array import array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun.errors import StoreError, StoreTooNew
from isorun.study.cells import Cell, Level
from isorun.study.records import (
    Note,
    Numbers,
    Predictions,
    RunRecord,
    RunState,
    Seeded,
    Series,
    canonical_json,
    open_envelope,
    sealed,
    sealed_and_gzipped,
)
from isorun.testing import made_records

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
    assert [item.sets_global for item in (seen, built, read)] == [True, False, False]
    assert [item.was_seen for item in (seen, built, read)] == [True, True, False]
    assert [item.shown for item in (seen, read)] == ["torch.manual_seed(0)", "numpy.random.default_rng(0)"]


def test_what_an_older_record_did_not_have_is_read_as_its_default():
    data = record().to_json()
    for name in ("startup_seconds", "devices", "where"):
        del data[name]
    back = RunRecord.from_json({**data, "record": 1, "series": {}})
    assert (back.startup_seconds, back.devices, back.where) == (None, (), {})


def test_series_of_the_first_version_were_lists():
    old = {"loss": {"steps": [1, 2], "seconds": [0.5, 1.0], "values": ["NaN", 0.25]}}
    series = RunRecord.from_json({**record().to_json(), "record": 1, "series": old}).series["loss"]
    assert series.steps == (1.0, 2.0)
    assert math.isnan(series.values[0])
    assert series.values[1] == 0.25


@pytest.mark.parametrize("version", [None, "2", 0, -1, [], 3])
def test_a_version_that_is_not_known_is_refused(version):
    with pytest.raises(StoreError):
        RunRecord.from_json({**record().to_json(), "record": version})


@pytest.mark.parametrize(
    "change",
    [
        {"state": "halted"},
        {"cell": {}},
        {"series": {"axes": [], "values": {"a": [0, ""]}}},
        {"series": {"axes": [["?", ""]], "values": {}}},
        {"series": {"axes": [["AAAA", ""]], "values": {}}},
        {"results": {"a": "much"}},
        {"results": {"a": 10**400}},
        {"notes": [["only a code"]]},
        {"predictions": [{"name": "a"}]},
    ],
)
def test_what_makes_no_sense_is_an_error_of_the_store(change):
    with pytest.raises(StoreError, match="a record cannot be read") as raised:
        RunRecord.from_json({**record().to_json(), **change})
    assert raised.value.found


def test_every_field_travels():
    watched = ({"step": 1, "gradient": [0.5, "NaN"]},)
    full = made_records.make_record(startup_seconds=0.0, devices=("cuda:0",), where={"host": "here"}, watched=watched)
    assert made_records.content(RunRecord.from_json(json.loads(json.dumps(full.to_json())))) == made_records.content(
        full
    )
    names = {item.name for item in dataclasses.fields(RunRecord)}
    assert set(full.to_json()) == {"record", "sources", *(names - {"origins"})}


def test_a_run_that_was_not_watched_looks_as_it_did_before_one_could():
    """So that its digest, which stores and envelopes keep, stays what it was."""
    plain = made_records.make_record()
    assert "watched" not in plain.to_json()
    assert RunRecord.from_json(plain.to_json()).watched == ()


@given(st.dictionaries(st.text(), st.lists(st.tuples(AXIS, AXIS, st.floats()), max_size=4), max_size=4))
def test_an_envelope_holds_the_canonical_json_and_gives_the_record_back(rows):
    columns = {name: zip(*items, strict=True) if items else ((), (), ()) for name, items in rows.items()}
    before = record(series={name: Series(*items) for name, items in columns.items()}, log_tail='"series":{"')
    pieces, digest = sealed(before)
    text = canonical_json(before.to_json())
    assert text.encode() in b"".join(pieces)
    for data in (b"".join(pieces), b"".join(sealed_and_gzipped(before))):
        found = open_envelope(data)
        assert found.digest == digest
        assert canonical_json(found.record.to_json()) == text


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"log_tail": '"series":{"axes":["' + "A" * 5000 + '"]}}'},
        {"predictions": (Predictions("test", 3.0, "class", "u1", (2,), "A" * 8000),)},
        {"environment": {"effective": {"series": {"axes": ["B" * 5000]}}}},
    ],
    ids=["series alone", "a text like them", "long predictions", "others of that name"],
)
@pytest.mark.parametrize("metric", ["loss", "a}}b", '"series":{"axes":['])
def test_long_series_come_back_whatever_stands_beside_them(metric, parts):
    steps, seconds = range(3000), np.linspace(0, 9, 3000)
    long = Series(steps, seconds, np.random.default_rng(1).normal(size=3000))
    before = record(
        series={metric: long, "z": Series(steps, seconds, seconds), "short": Series((1,), (1,), (1,))}, **parts
    )
    for data in (b"".join(sealed(before)[0]), b"".join(sealed_and_gzipped(before))):
        found = open_envelope(data)
        assert found.record == before
        assert found.digest == sealed(before)[1]
    column = data_of_a_column(before)
    with pytest.raises(ValueError, match=":"):
        open_envelope(b"".join(sealed(before)[0]).replace(column, b"!" + column[1:]))


def data_of_a_column(full):
    return full.to_json()["series"]["values"]["z"][1].encode()


@pytest.mark.parametrize("length", [4095, 4096, 4097, 4128, 5000])
@pytest.mark.parametrize("shape", ["{}", 'a"{}', '{}"', "{}=", "{}:"])
def test_a_long_name_of_a_metric_is_no_column_of_numbers(length, shape):
    name = shape.format("x" * length)
    points = Numbers(range(1000))
    before = record(series={name: Series(points, points, points)}, results={name: 0.5}, per_class={name: {name: 1.0}})
    for data in (b"".join(sealed(before)[0]), b"".join(sealed_and_gzipped(before))):
        assert open_envelope(data).record == before


def test_an_envelope_that_was_changed_is_refused():
    data = b"".join(sealed(record(results={"acc": 0.8125}))[0])
    for changed in (
        data.replace(b"0.8125", b"0.9125"),
        data[:-1],
        data[:-2] + b" }\n",
        b"",
    ):
        with pytest.raises(ValueError, match=":"):
            open_envelope(changed)
    with pytest.raises(StoreTooNew, match="newer isorun"):
        open_envelope(data.replace(b'"format":1', b'"format":9'))


def test_numbers_equal_what_holds_the_same_numbers():
    numbers = Numbers([1, 2.5, math.nan])
    assert numbers == Numbers(np.array([1.0, 2.5, math.nan]))
    assert Numbers(np.array([1, 2, 3])[:2]) == (1.0, 2.0)
    assert Numbers([1, 2]) == (1.0, 2.0)
    assert Numbers([1, 2]) == [1, 2] != Numbers([1, 3])
    assert Numbers([0.0]) == Numbers([-0.0])
    assert Numbers([1, 2]) != (1.0,)
    assert Numbers(array("f", [0.5])) == Numbers(iter((0.5,))) == (0.5,)
    assert Numbers(np.arange(6.0)[::2]) == (0.0, 2.0, 4.0)
    assert np.shares_memory(np.asarray(numbers), np.frombuffer(numbers))
    assert Numbers.unpacked(numbers.packed()) == numbers
