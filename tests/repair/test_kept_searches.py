"""The lines that long searches are kept in, as the benchmarks of real searches write and read them."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "repair" / "kept_searches.py"


@pytest.fixture(scope="module")
def kept():
    spec = importlib.util.spec_from_file_location("kept_searches", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["kept_searches"] = module  # a dataclass looks its module up there
    spec.loader.exec_module(module)
    yield module
    del sys.modules["kept_searches"]


def test_the_last_line_of_a_search_counts_and_half_a_line_is_none(kept, tmp_path):
    first, second = kept.Keeper(tmp_path / "a.jsonl", 0.0), kept.Keeper(tmp_path / "b.jsonl", 0.0)
    first.keep({"engine": "optuna", "seed": 1, "arm": "repair", "reached": None})
    first.keep({"engine": "optuna", "seed": 2, "arm": "repair", "reached": 7})
    second.keep({"engine": "optuna", "seed": 1, "arm": "repair", "reached": 3})
    with second.path.open("a") as file:
        file.write('{"engine": "optuna", "seed": 2, "ar')
    found = kept.lines_of([first.path, second.path, tmp_path / "none.jsonl"])
    assert [(line["seed"], line["reached"]) for line in found] == [(1, 3), (2, 7)]


def test_a_search_is_given_up_when_time_is_over(kept, tmp_path):
    kept.Keeper(tmp_path / "a", float("inf")).check()
    with pytest.raises(kept.OutOfTime):
        kept.Keeper(tmp_path / "a", 1.0).check()


def test_a_share_has_the_interval_that_wilson_gave_it(kept):
    assert kept.wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert kept.wilson(10, 10) == pytest.approx((0.7225, 1.0), abs=1e-4)
    assert kept.wilson(0, 0) == (0.0, 1.0)


def test_the_interval_of_paired_differences_is_around_their_mean(kept):
    assert kept.interval(np.full(5, 2.0)) == (2.0, 2.0, 2.0)
    mean, low, high = kept.interval(np.array([-1.0, 0.0, 1.0, 2.0]))
    assert mean == 0.5
    assert -1.0 <= low < mean < high <= 2.0
