"""How many secrets are withheld, as the benchmark counts them: the figures of benchmarks/RESULTS.md hold."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "withheld_secrets.py"


@pytest.fixture(scope="module")
def counted():
    spec = importlib.util.spec_from_file_location("withheld_secrets", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_enough_names_and_shapes_are_tried(counted):
    assert len(counted.VARIABLES) + len(counted.OPTIONS) >= 600
    assert len(counted.shapes()) >= 200
    assert len(counted.ORDINARY_VARIABLES) + len(counted.ORDINARY_OPTIONS) + len(counted.ORDINARY_TEXTS) >= 400


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_secret_is_missed_by_its_name(counted, seed):
    assert counted.missed_names(seed) == ["OP_SESSION_my"], "the one that is known"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_secret_is_missed_by_its_shape(counted, seed):
    assert counted.missed_shapes(seed) == ["PuTTY key", "signature header"], "the ones that are known"


def test_ordinary_values_stay_readable(counted):
    assert counted.falsely_withheld() == []
