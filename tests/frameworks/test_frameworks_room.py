"""What every member of the room promises: light, quiet outside isorun, and there where no isorun is installed."""

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import isorun
from isorun.frameworks import classes_of, is_recording, missing, numbers_of

ROOM = Path(isorun.__file__).parent / "frameworks"
MEMBERS = sorted(path for path in ROOM.glob("*.py") if path.stem != "__init__")


class Tensor:
    """As PyTorch's, of which `size` is a method."""

    def __init__(self, values):
        self._values = values

    def numel(self):
        return len(self._values)

    def size(self):
        return (len(self._values),)

    def item(self):
        [value] = self._values
        return value


@pytest.mark.parametrize("path", [*MEMBERS, ROOM / "__init__.py"], ids=lambda path: path.stem)
def test_members_run_wherever_the_worker_does(path):
    tree = ast.parse(path.read_text(), feature_version=(3, 8))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    own = {name for name in imported if name and name.startswith("isorun.")}
    assert own <= {"isorun.frameworks", "isorun.errors"}  # the latter is asked for, and done without
    docs = ast.get_docstring(ast.parse((ROOM / "__init__.py").read_text()))
    assert path.stem == "__init__" or f"isorun.frameworks.{path.stem} import" in docs


def test_importing_isorun_loads_no_callback():
    code = "import isorun, sys; print([name for name in sys.modules if 'frameworks' in name or 'torch' in name])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize("path", MEMBERS, ids=lambda path: path.stem)
def test_a_framework_that_is_not_installed_is_named_with_what_to_do(path):
    """In an interpreter that has nothing, where the worker stands in for isorun."""
    worker = ROOM.parent / "worker" / "site"
    code = (
        f"import sys; sys.path.insert(0, {str(worker)!r}); import importlib\n"
        "importlib.import_module('isorun_worker.api').install_stand_in(); sys.path.pop(0)\n"
        f"import isorun.frameworks.{path.stem}\n"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ModuleNotFoundError: No module named ")
    assert f"isorun.frameworks.{path.stem} needs it" in last
    assert " -m pip install " in last


def test_the_error_is_one_that_people_catch():
    with pytest.raises(ImportError) as caught:
        raise missing("lightning", "isorun.frameworks.lightning")
    assert caught.value.name == "lightning"


def test_outside_isorun_nothing_is_recorded(monkeypatch):
    monkeypatch.delenv("ISORUN_RUN_DIR", raising=False)
    assert not is_recording()


def test_only_single_numbers_are_metrics():
    given = {"a": 1, "b": 2.5, "c": "text", "d": None, "e": np.float32(3), "f": np.zeros(2), "g": Tensor([4.0])}
    assert list(numbers_of({**given, "h": Tensor([0.0, 0.0]), "i": True, 7: 1.0})) == ["a", "b", "e", "g", "7"]


@pytest.mark.parametrize(
    ("predicted", "labels", "classes", "true"),
    [
        ([[0.1, 0.9], [0.8, 0.2]], [1, 1], [1, 0], [1, 1]),
        ([[0.1, 0.9], [0.8, 0.2]], [[0, 1], [1, 0]], [1, 0], [1, 0]),
        ([[0.1, 0.9], [0.8, 0.2]], None, [1, 0], None),
        ([[0.7], [0.2]], [[1.0], [1.0]], [1, 0], [1, 1]),
        ([[0.7], [-2.0]], [0.25, 1.5], [0.7, -2.0], [0.25, 1.5]),
        ([2, 0], [2, 1], [2, 0], [2, 1]),
    ],
    ids=["scores", "one-hot", "no labels", "one probability", "regression", "classes"],
)
def test_classes_are_found_in_what_models_give(predicted, labels, classes, true):
    found, known = classes_of(np.array(predicted), None if labels is None else np.array(labels))
    assert found.tolist() == classes
    assert (None if known is None else known.tolist()) == true
