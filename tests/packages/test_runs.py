"""Records come out of a package as they went in, whatever they hold."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isorun.packages.reading import Package
from isorun.packages.writing import PackageWriter
from isorun.store.content import stored_form
from isorun.study.records import Predictions, RunState, Series, record_digest
from isorun.testing.made_records import make_cell, make_record, make_series

ODD = st.floats(width=64)


def through(records, tmp_path, name="p.isorun"):
    """The records as a package hands them out, in its order."""
    path = tmp_path / name
    with path.open("wb") as file:
        writer = PackageWriter(file)
        writer.add_study({"name": "s"})
        writer.add_records(sorted(records, key=lambda record: (record.cell.id, record.attempt)))
        writer.finish("s")
    with path.open("rb") as file, Package(path, file) as package:
        package.check_all()
        return {record.run_id: record for record in package.records()}


def same(records, found):
    return all(record_digest(found[record.run_id]) == record_digest(record) for record in records) and len(
        found
    ) == len(list(records))


def test_records_with_something_in_every_field(tmp_path):
    records = [
        make_record(make_cell(seed), attempt=2, points=50, watched=({"epoch": 1}, {"epoch": 2})) for seed in (1, 2)
    ]
    records += [make_record(make_cell(3), state=RunState.FAILED), make_record(make_cell(None, repeat=2))]
    assert same(records, through(records, tmp_path))
    kept = [stored_form(record) for record in records]
    assert same(kept, through(kept, tmp_path))


def test_blocks_are_put_together(tmp_path, monkeypatch):
    from isorun.packages import runs

    monkeypatch.setattr(runs, "MOST_RUNS", 3)
    records = [make_record(make_cell(seed), points=seed) for seed in range(1, 11)]
    assert same(records, through(records, tmp_path))


@pytest.mark.parametrize(
    "series",
    [
        {},
        {"a": Series((), (), ())},
        {"a": Series((1.0,), (0.5,), (math.nan,)), "b": Series((2.0,), (0.5,), (-math.inf,))},
        {"a": Series((0.0, -0.0), (-0.0, 0.0), (0.0, -0.0))},
        {"a": Series((3.0, 1.0, 2.0), (3.0, 2.0, 1.0), (1e-320, 1e308, 5e-324))},
        {"a": Series((math.nan, math.inf), (math.nan, math.inf), (1.0, 2.0))},
        {"a": Series((1e308, -1e308), (1e300, 2e300), (1.0, 2.0))},
        {"a": Series((0.0, 1.0, 2.0), (0.1, 0.1, 0.1), (1.0, 1.0, 1.0))},
        {"a": Series(range(5), (-3.0, -2.0, -1.0, 0.0, 1.0), range(5))},
        {"a": make_series(300), "b": make_series(300), "a[\ud800]": make_series(3)},
        {"ä \0 metric": make_series(2)},
    ],
)
def test_series_of_every_kind(series, tmp_path):
    record = make_record(series=series)
    assert same([record], through([record], tmp_path))


@settings(max_examples=60)
@given(st.lists(st.tuples(ODD, ODD, ODD), max_size=12), st.lists(ODD, max_size=12))
def test_any_numbers(tmp_path_factory, points, more):
    folder = tmp_path_factory.mktemp("p")
    columns = [list(column) for column in zip(*points, strict=True)] or [[], [], []]
    times = sorted(value for value in more if math.isfinite(value))
    series = {"a": Series(*columns), "b": Series(range(len(times)), times, times)}
    record = make_record(series=series, wall_seconds=more[0] if more else 1.0)
    assert same([record], through([record], folder))


def test_predictions_longer_than_a_line(tmp_path):
    long = Predictions("test", 3.0, "score", "float32", (9, 9), "A" * (9 * 2**20))
    record = make_record(predictions=(long, Predictions("a", None, "class", "int8", (1,), "")))
    found = through([record], tmp_path)
    assert same([record], found)
    assert found[record.run_id].predictions[0] == long


def test_what_runs_share_lies_in_a_package_once(tmp_path):
    log = "epoch\n" * 5000
    records = [make_record(make_cell(seed), log_tail=log, points=3) for seed in range(1, 200)]
    assert same(records, through(records, tmp_path))
    assert (tmp_path / "p.isorun").stat().st_size < 40_000


def test_the_same_records_give_the_same_bytes(tmp_path):
    records = [make_record(make_cell(seed), points=30) for seed in range(1, 5)]
    through(records, tmp_path, "a.isorun")
    again = list(through(records, tmp_path, "b.isorun").values())
    through(again, tmp_path, "c.isorun")
    assert len({(tmp_path / f"{name}.isorun").read_bytes() for name in "abc"}) == 1


WHOLE = st.builds(
    lambda first, gaps, exponent: [(first + sum(gaps[:count])) * 2.0**exponent for count in range(len(gaps) + 1)],
    st.integers(-(2**20), 2**54),
    st.lists(st.integers(0, 2**17), max_size=12),
    st.integers(-45, 60),
)


@settings(max_examples=300)
@given(st.lists(st.lists(ODD, max_size=6) | WHOLE | st.lists(st.floats(0, 1e6), max_size=9).map(sorted), max_size=8))
def test_times_of_many_runs_are_told_as_those_of_each(columns):
    from isorun.packages import runs

    arrays = [np.array(column, "<f8") for column in columns]
    with np.errstate(invalid="ignore", over="ignore"):
        together = list(runs._many_in_ticks([column.tobytes() for column in arrays]))
        each = [runs._in_ticks(column) for column in arrays]
    assert list(map(told, together)) == list(map(told, each))


def told(ticks):
    return ticks and (*ticks[:2], ticks[2].dtype.str, ticks[2].tobytes())


def test_lines_leave_out_what_is_empty():
    record = make_record(wall_seconds=0.0, notes=(), log_tail="", exit_code=0)
    content = {name: value for name, value in record.to_json().items() if value not in (None, "", {}, [])}
    assert record.told_fields("cell") == {name: content[name] for name in content if name not in {"record", "cell"}}
    assert {"wall_seconds", "exit_code"} <= set(record.told_fields())
    assert "log_tail" not in record.told_fields()
