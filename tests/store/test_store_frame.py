"""Frames become pandas and Polars frames."""

from __future__ import annotations

import sys

import pytest
from store_records import make_cell, make_record

from isorun.errors import MissingExtra
from isorun.store.frame import RUN_COLUMNS, Frame
from isorun.store.memory import MemoryStore
from isorun.study.levels import Level


@pytest.fixture
def frame() -> Frame:
    with MemoryStore() as store:
        store.finish(make_record(make_cell(3, approach="a")))
        store.finish(make_record(make_cell(None, approach="b", level=Level.DEFAULT)))
        return store.frame()


@pytest.mark.parametrize("method", ["to_pandas", "to_polars"])
def test_a_frame_has_one_row_a_point(frame: Frame, method: str):
    table = getattr(frame, method)()
    assert list(table.columns) == [*RUN_COLUMNS, "metric", "step", "seconds", "value"]
    assert len(table) == len(frame) == 26
    assert list(table["value"]) == frame.value.tolist()
    assert list(table["approach"]) == [frame.runs[run].approach for run in frame.run]
    assert list(table["seed"]) == [frame.runs[run].seed for run in frame.run]
    assert list(table["metric"]) == [frame.metrics[code] for code in frame.metric]


@pytest.mark.parametrize(("method", "package"), [("to_pandas", "pandas"), ("to_polars", "polars")])
def test_a_missing_package_names_the_extra(frame: Frame, monkeypatch, method: str, package: str):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=r"isorun\[tables\]"):
        getattr(frame, method)()
