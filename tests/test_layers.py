"""Imports go downwards only: a stage knows those below it, never those beside or above it."""

import ast
import functools
import re
from pathlib import Path

import pytest

import isorun

ROOT = Path(isorun.__file__).parent
LAYERS = [
    {"__main__", "testing"},
    {"cli"},
    {"deciding", "reproducing", "repair", "share"},
    {"questions", "in_progress", "stats"},
    {"workflow"},
    {"reuse", "scheduling"},
    {"session"},
    {"showing"},
    {"zoo"},
    {"report", "diagnose"},
    {"execution", "store", "analysis"},
    {"environments", "sources"},
    {"study"},
    {"plugins"},
    {"errors", "worker"},
]
RANK = {part: rank for rank, layer in enumerate(LAYERS) for part in layer}
ANALYSIS = ROOT / "analysis"
ANALYSIS_LAYERS = [
    {"studies", "planning", "comparison"},
    {"sequential", "leaderboards", "agreements"},
    {"pairwise", "spreads", "mixed"},
    {"evidence"},
    {"measurements"},
    {"samples"},
]
ANALYSIS_RANK = {room: rank for rank, layer in enumerate(ANALYSIS_LAYERS) for room in layer}
ANALYSIS_MODULES = sorted(path for path in ANALYSIS.rglob("*.py") if path != ANALYSIS / "__init__.py")
MODULES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


@functools.cache
def parsed(path):
    """The tree of a module: each is asked for many times."""
    return ast.parse(path.read_text())


def part_of(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_names(path):
    """The dotted names of everything of isorun that a module imports, also inside functions."""
    for node in ast.walk(parsed(path)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        yield from (name.split(".") for name in names if name.startswith("isorun."))


def imported_parts(path):
    return {parts[1] for parts in imported_names(path) if parts[1] in RANK}


def imported_rooms(path):
    """Which rooms of analysis a module imports."""
    return {
        parts[2]
        for parts in imported_names(path)
        if len(parts) > 2 and parts[1] == "analysis" and parts[2] in ANALYSIS_RANK
    }


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_downwards_only(path):
    here = part_of(path)
    for there in imported_parts(path):
        assert there == here or RANK[there] > RANK[here], f"{path} imports {there}, which is not below {here}"


@pytest.mark.parametrize("path", ANALYSIS_MODULES, ids=lambda path: str(path.relative_to(ANALYSIS)))
def test_rooms_of_analysis_know_only_those_below_them(path):
    here = path.relative_to(ANALYSIS).parts[0].removesuffix(".py")
    for there in imported_rooms(path):
        below = ANALYSIS_RANK[there] > ANALYSIS_RANK[here]
        assert there == here or below, f"{path} imports {there}, which is not below {here}"


def test_no_module_of_analysis_imports_itself_through_others():
    """Also not through imports inside functions, which Python would let pass."""
    names = {
        path.relative_to(ROOT.parent).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__"): path
        for path in ANALYSIS_MODULES
    }
    known = {name: {".".join(parts) for parts in imported_names(path)} & set(names) for name, path in names.items()}
    while known:
        ready = [name for name, needed in known.items() if not needed & set(known)]
        assert ready, f"these import each other in a circle: {', '.join(sorted(known))}"
        for name in ready:
            del known[name]


@pytest.mark.parametrize("path", sorted((ROOT / "worker").rglob("*.py")), ids=lambda path: path.name)
def test_the_worker_imports_nothing_of_isorun(path):
    assert not list(imported_parts(path))


@pytest.mark.parametrize(
    ("room", "below"), [("repair", "workflow"), ("share", "workflow"), ("diagnose", "analysis"), ("cli", "repair")]
)
def test_rooms_to_come_may_use_what_they_will_need(room, below):
    assert RANK[room] < RANK[below]


def test_every_module_belongs_to_a_layer():
    assert {part_of(path) for path in MODULES} <= set(RANK)


def test_no_module_is_called_utils_helpers_or_common():
    assert not [path for path in MODULES if path.stem in {"utils", "helpers", "common"}]


@pytest.mark.parametrize("word", ["pickle", "marshal", "shelve", "dill", "cloudpickle"])
def test_nothing_is_ever_unpickled(word):
    for path in MODULES:
        imports = [node for node in ast.walk(parsed(path)) if isinstance(node, ast.Import)]
        assert word not in {alias.name for node in imports for alias in node.names}, path


def test_data_is_never_executed():
    allowed = {"worker"}
    for path in MODULES:
        calls = {
            node.func.id
            for node in ast.walk(parsed(path))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        if part_of(path) not in allowed:
            assert not calls & {"eval", "exec", "compile", "__import__"}, path


@pytest.mark.parametrize("room", ["execution", "store", "study", "analysis", "report"])
def test_what_lies_below_the_papers_does_not_name_them(room):
    named = [path for path in (ROOT / room).rglob("*.py") if re.search(r"\bzoo\b", path.read_text())]
    assert not named
