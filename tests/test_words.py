"""A word has one meaning: no two public classes share a name, and no module of the product looks like a test."""

import ast
import inspect
from collections import defaultdict
from pathlib import Path

import pytest

import isorun
from isorun import stats

ROOT = Path(isorun.__file__).parent
PAPERS = ROOT / "zoo" / "studies"  # each paper has findings and options of its own, and means the same by them
MODULES = sorted(path for path in ROOT.rglob("*.py") if not path.is_relative_to(PAPERS))


def test_no_two_public_classes_share_a_name():
    where = defaultdict(list)
    for path in [*MODULES, *PAPERS.rglob("*.py")]:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where[node.name].append(path.relative_to(ROOT))
    shared = {
        name: paths
        for name, paths in where.items()
        if len(paths) > 1 and not all((ROOT / path).is_relative_to(PAPERS) for path in paths)
    }
    assert shared == {}


def test_no_module_looks_like_a_test():
    assert [path.name for path in ROOT.rglob("*.py") if path.name.startswith("test_")] == []


@pytest.mark.parametrize("name", stats.__all__)
def test_every_function_of_stats_is_found_at_its_home(name):
    assert inspect.unwrap(getattr(stats, name)).__module__.startswith("isorun.analysis.")
