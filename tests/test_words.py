"""A word has one meaning: no two public classes share a name, nor two functions that are called from other files."""

import ast
import functools
import inspect
from collections import defaultdict
from pathlib import Path

import pytest

import isorun
from isorun import stats

ROOT = Path(isorun.__file__).parent
PAPERS = ROOT / "zoo" / "studies"  # each paper has findings and options of its own, and means the same by them
FRAMEWORKS = ROOT / "frameworks"  # a callback is called the same whatever framework it is for
MODULES = sorted(path for path in ROOT.rglob("*.py") if not path.is_relative_to(PAPERS))


@functools.cache
def parsed(path):
    return ast.parse(path.read_text())


def test_no_two_public_classes_share_a_name():
    where = defaultdict(list)
    for path in [*MODULES, *PAPERS.rglob("*.py")]:
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where[node.name].append(path.relative_to(ROOT))
    shared = {
        name: paths
        for name, paths in where.items()
        if len(paths) > 1
        and not any(all((ROOT / path).is_relative_to(room) for path in paths) for room in (PAPERS, FRAMEWORKS))
    }
    assert shared == {}


# A question is asked of anything (isorun's) or of ready samples (the statistics'), and is the same question.
ASKED_TWICE = {"compare", "decide", "mixed_model", "power", "summarize"}
# An agenda is carried out, and so is each of its jobs; a training is examined, and so is a search.
SAID_OF_TWO = {"carry_out", "examine"}


def functions_taken_from(path):
    """The functions that a module takes from others by their names alone, each with the module that defines it."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and str(node.module).startswith("isorun."):
            yield from ((alias.name, node.module) for alias in node.names if alias.name in functions_of(node.module))


@functools.cache
def functions_of(module):
    path = ROOT.parent / module.replace(".", "/")
    tree = parsed(path / "__init__.py" if path.is_dir() else path.with_suffix(".py"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_no_two_functions_that_are_taken_into_other_files_share_a_name():
    """Functions that are called by their module's name (`terminal.render`) may: there the module says which."""
    homes = defaultdict(set)
    for path in MODULES:
        for name, module in functions_taken_from(path):
            homes[name].add(module)
    shared = {name: sorted(modules) for name, modules in homes.items() if len(modules) > 1}
    assert set(shared) == ASKED_TWICE | SAID_OF_TWO, shared


def test_no_module_looks_like_a_test():
    assert [path.name for path in ROOT.rglob("*.py") if path.name.startswith("test_")] == []


@pytest.mark.parametrize("name", stats.__all__)
def test_every_function_of_stats_is_found_at_its_home(name):
    assert inspect.unwrap(getattr(stats, name)).__module__.startswith("isorun.analysis.")
