"""Imports go downwards only: a stage knows those below it, never those beside or above it."""

import ast
import functools
import re
from importlib.util import resolve_name
from pathlib import Path

import pytest

import isorun

ROOT = Path(isorun.__file__).parent
LAYERS = [
    {"__main__", "testing", "notebooks", "pytest_plugin"},
    {"cli"},
    {"serving"},
    {"registry"},
    {"deciding", "bisecting", "checking", "claiming", "comparing", "pricing", "reproducing", "share", "taking"},
    {"questions", "in_progress", "stopping", "describing", "stats", "baselines", "offers"},
    {"workflow"},
    {"repair"},
    {"reuse", "scheduling"},
    {"session"},
    {"showing"},
    {"zoo"},
    {"report"},
    {"diagnose", "registries"},
    {"packages"},
    {"execution", "store", "analysis"},
    {"environments", "sources"},
    {"study"},
    {"plugins", "own_machine", "replaceable"},
    {"frameworks"},
    {"errors", "worker"},
]
RANK = {part: rank for rank, layer in enumerate(LAYERS) for part in layer}
ANALYSIS = ROOT / "analysis"
ANALYSIS_LAYERS = [
    {"replications", "comparability"},
    {"factors", "descriptions", "checks"},
    {"studies", "planning", "comparison", "environments", "prices"},
    {"sequential", "leaderboards", "agreements"},
    {"pairwise", "spreads", "mixed"},
    {"evidence"},
    {"measurements"},
    {"samples"},
]
ANALYSIS_RANK = {room: rank for rank, layer in enumerate(ANALYSIS_LAYERS) for room in layer}
ANALYSIS_MODULES = sorted(path for path in ANALYSIS.rglob("*.py") if path != ANALYSIS / "__init__.py")
MODULES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")
UNPICKLING = {"pickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}
EXECUTING = {"eval", "exec", "compile", "__import__"}


@functools.cache
def parsed(path):
    """The tree of a module: each is asked for many times."""
    return ast.parse(path.read_text())


def part_of(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def package_of(path):
    """The package that relative imports of a module start from."""
    return ".".join(path.relative_to(ROOT.parent).parent.parts)


def imported_names(tree, package):
    """The dotted names of all that a module imports, also inside functions, by relative imports and by name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = resolve_name("." * node.level + (node.module or ""), package)
            yield origin
            yield from (f"{origin}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and called_name(node).rpartition(".")[2] in {"import_module", "__import__"}:
            yield from (text for text in map(leading_text, node.args[:1]) if text and not text.startswith("."))


def called_name(node):
    """`a.b` of a call `a.b(…)`; "" for what is called without a name."""
    function = node.func
    if isinstance(function, ast.Attribute):
        return f"{function.value.id if isinstance(function.value, ast.Name) else ''}.{function.attr}"
    return function.id if isinstance(function, ast.Name) else ""


def leading_text(node):
    """A text, or that before the first gap of one with gaps."""
    if isinstance(node, ast.JoinedStr):
        node = node.values[0] if node.values else node
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def imported_own(tree, package):
    """Names of isorun as lists of parts; a name that `isorun` itself offers counts as the module it comes from."""
    for name in imported_names(tree, package):
        own, _, rest = name.partition(".")
        if own == "isorun" and rest:
            yield isorun._LAZY.get(rest, name).split(".")


def imported_parts(tree, package):
    return {parts[1] for parts in imported_own(tree, package) if parts[1] in RANK}


def not_below(tree, package, here):
    """Which parts a module of `here` imports that are not below it."""
    return {there for there in imported_parts(tree, package) if there != here and RANK[there] <= RANK[here]}


def rooms_not_below(tree, package, here):
    """Which rooms of analysis a module of the room `here` imports that are not below it."""
    rooms = {parts[2] for parts in imported_own(tree, package) if parts[1] == "analysis" and len(parts) > 2}
    known = rooms & set(ANALYSIS_RANK)
    return {there for there in known if there != here and ANALYSIS_RANK[there] <= ANALYSIS_RANK[here]}


def outside_the_worker(tree, package):
    """What a module of the worker imports of isorun beyond the worker itself."""
    names = imported_names(tree, package)
    return {name for name in names if f"{name}.".startswith("isorun.") and not f"{name}.".startswith("isorun.worker.")}


def unpickled_by(tree, package):
    """What in a module could build objects out of bytes."""
    imported = {name for name in imported_names(tree, package) if name.partition(".")[0] in UNPICKLING}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    read = {called_name(call) for call in calls if called_name(call).endswith((".read_pickle", "torch.load"))}
    allowed = {
        called_name(call)
        for call in calls
        for keyword in call.keywords
        if keyword.arg == "allow_pickle" and not (isinstance(keyword.value, ast.Constant) and not keyword.value.value)
    }
    return imported | read | allowed


def executed_by(tree, package):
    """What in a module could run a text: the four built-in functions by any way to them."""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    ways = {name for name in imported_names(tree, package) if name.partition(".")[0] in {"builtins", "runpy", "code"}}
    return (names & {*EXECUTING, "builtins", "__builtins__"}) | ways


def conditions_made_by(tree):
    """Calls that make a condition: which evidence is weak is found by statistics, and only shown by reports."""
    return [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Call) and called_name(node) == "Condition"]


def names_papers(text):
    """Whether a module's text names the zoo; comments and documentation count, as they say what the code knows."""
    return re.search(r"\bzoo\b", text) is not None


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_downwards_only(path):
    assert not_below(parsed(path), package_of(path), part_of(path)) == set()


@pytest.mark.parametrize("path", ANALYSIS_MODULES, ids=lambda path: str(path.relative_to(ANALYSIS)))
def test_rooms_of_analysis_know_only_those_below_them(path):
    here = path.relative_to(ANALYSIS).parts[0].removesuffix(".py")
    assert rooms_not_below(parsed(path), package_of(path), here) == set()


def test_no_module_of_analysis_imports_itself_through_others():
    """Also not through imports inside functions, which Python would let pass."""
    names = {
        path.relative_to(ROOT.parent).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__"): path
        for path in ANALYSIS_MODULES
    }
    known = {name: {*imported_names(parsed(path), package_of(path))} & set(names) for name, path in names.items()}
    while known:
        ready = [name for name, needed in known.items() if not needed & set(known)]
        assert ready, f"these import each other in a circle: {', '.join(sorted(known))}"
        for name in ready:
            del known[name]


@pytest.mark.parametrize("path", sorted((ROOT / "worker").rglob("*.py")), ids=lambda path: path.name)
def test_the_worker_imports_nothing_of_isorun(path):
    assert outside_the_worker(parsed(path), package_of(path)) == set()


def test_every_module_belongs_to_a_layer():
    assert {part_of(path) for path in MODULES} <= set(RANK)


def test_no_module_is_called_utils_helpers_or_common():
    assert not [path for path in MODULES if path.stem in {"utils", "helpers", "common"}]


def test_nothing_is_ever_unpickled():
    assert {path: found for path in MODULES if (found := unpickled_by(parsed(path), package_of(path)))} == {}


def test_data_is_never_executed():
    """Only the worker runs a program, the user's own, as `python` would."""
    looked_at = [path for path in MODULES if part_of(path) != "worker"]
    assert {path: found for path in looked_at if (found := executed_by(parsed(path), package_of(path)))} == {}


def test_reports_show_conditions_and_make_none():
    looked_at = [path for path in MODULES if part_of(path) == "report"]
    assert {path: found for path in looked_at if (found := conditions_made_by(parsed(path)))} == {}
    assert conditions_made_by(ast.parse('shown = Condition("note", "a", "b")')) == [1]


@pytest.mark.parametrize("room", sorted(part for part in RANK if RANK[part] > RANK["zoo"]))
def test_what_lies_below_the_papers_does_not_name_them(room):
    paths = [path for path in MODULES if part_of(path) == room]
    assert paths
    assert [path for path in paths if names_papers(path.read_text())] == []


@pytest.mark.parametrize(
    ("guard", "code", "seen"),
    [
        (not_below, "from ..execution import Job", {"execution"}),
        (not_below, "def late():\n    from isorun import compare", {"questions"}),
        (not_below, "import isorun.report.html as page", {"report"}),
        (not_below, "importlib.import_module(f'isorun.cli.{name}')", {"cli"}),
        (not_below, "from . import files\nfrom isorun.study import cells\nimport json", set()),
        (unpickled_by, "from pickle import loads", {"pickle", "pickle.loads"}),
        (unpickled_by, "import marshal", {"marshal"}),
        (unpickled_by, "importlib.import_module('pickle')", {"pickle"}),
        (unpickled_by, "np.load(path, allow_pickle=True)", {"np.load"}),
        (unpickled_by, "pandas.read_pickle(path)\ntorch.load(path)", {"pandas.read_pickle", "torch.load"}),
        (unpickled_by, "import pickletools\nnp.load(path, allow_pickle=False)", set()),
        (executed_by, "import builtins\nbuiltins.eval(x)", {"builtins"}),
        (executed_by, "from builtins import exec as run", {"builtins", "builtins.exec"}),
        (executed_by, "run = eval", {"eval"}),
        (executed_by, "__builtins__['exec'](x)", {"__builtins__"}),
        (executed_by, "exec(x)\nrunpy.run_path(x)", {"exec"}),
        (executed_by, "re.compile(x)\nmodel.eval()", set()),
        (outside_the_worker, "import isorun", {"isorun"}),
        (outside_the_worker, "from ..errors import InputError", {"isorun.errors", "isorun.errors.InputError"}),
        (outside_the_worker, "import os\nfrom isorun.worker import api", set()),
    ],
)
def test_each_guard_sees_what_it_guards_against(guard, code, seen):
    where = ("store",) if guard is not_below else ()
    assert guard(ast.parse(code), "isorun.store", *where) == seen


def test_the_guard_of_rooms_sees_one_beside_and_one_above():
    code = (
        "from ..mixed.fitting import fit\nfrom isorun.analysis.sequential import Decision\nfrom ..samples import sample"
    )
    assert rooms_not_below(ast.parse(code), "isorun.analysis.pairwise", "pairwise") == {"mixed", "sequential"}


def test_the_guard_of_the_papers_sees_an_import_a_text_and_a_comment():
    assert all(map(names_papers, ["from ..zoo import paper", "WHERE = 'isorun.zoo.studies'", "# as in the zoo"]))
    assert not names_papers("zoom = 'zookeeper'")
