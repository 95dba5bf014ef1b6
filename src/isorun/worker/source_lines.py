"""What the source says of a line that draws random numbers: whether it is run again and again, and what it makes.

A place that says nothing by its file, class or name may still say it by its statement. The source is read and parsed,
never run, and only where nothing else told what a draw is for. A line that seeds may say that its seed is new in every
run.
"""

from __future__ import annotations

import ast
import functools
import linecache
import re
from typing import Any, Iterator, NamedTuple

from .entropy import ADDRESS, CLOCK, PROCESS, SYSTEM

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_COMPOUND = (*_FUNCTIONS, *_LOOPS, ast.ClassDef, ast.If, ast.With, ast.AsyncWith, ast.Try)
# What a loop goes through that repeats whole trainings: what it draws is drawn once a training.
_TRAININGS = re.compile(
    r"(^|_)(seeds?|folds?|trials?|runs?|reps?|repeats?|repetitions?|splits?|experiments?|cv)(_|$)", re.I
)
# The last part of a called name, and what its value is made of.
_NEW_IN_EVERY_RUN = {
    **dict.fromkeys(("time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns"), CLOCK),
    **dict.fromkeys(("now", "utcnow", "today"), CLOCK),
    **dict.fromkeys(("getpid", "getppid"), PROCESS),
    **dict.fromkeys(("urandom", "getrandom", "uuid1", "uuid4", "randbits", "randbelow", "token_bytes"), SYSTEM),
    **dict.fromkeys(("token_hex", "SystemRandom"), SYSTEM),
}
_CONDITIONS = (ast.If, ast.IfExp, ast.BoolOp, ast.Try, ast.For, ast.While)
_WEIGHTS = re.compile(r"^_*(init_)?(weights?|bias(es)?|params?|parameters?)_?\d*$", re.I)


class SourceLine(NamedTuple):
    """What a line says.

    repeated: in a loop of its function. makes_parameter: what is drawn there becomes a parameter of a model.
    looks_like_weights: it is asked to have gradients, or gets the name of weights; so do samples in a training's loop.
    """

    repeated: bool = False
    makes_parameter: bool = False
    looks_like_weights: bool = False


_trees: dict[str, ast.Module | None] = {}
_lines: dict[tuple[str, int], SourceLine] = {}


def source_line(file: str, line: int) -> SourceLine:
    """What is known of a line; nothing where there is no source of it."""
    found = _lines.get((file, line))
    if found is None:
        tree = _tree(file)
        found = _lines[file, line] = SourceLine() if tree is None else _said_of(tree, line)
    return found


def _tree(file: str) -> ast.Module | None:
    if file not in _trees:
        try:
            _trees[file] = ast.parse("".join(linecache.getlines(file)))
        except (SyntaxError, ValueError, RecursionError, MemoryError):  # as much as a notebook's cell may be
            _trees[file] = None
    return _trees[file]


def _said_of(tree: ast.Module, line: int) -> SourceLine:
    around: list[Any] = list(_around(tree, line))
    functions = [number for number, node in enumerate(around) if isinstance(node, _FUNCTIONS)]
    scope, inside = (around[functions[-1]], around[functions[-1] + 1 :]) if functions else (tree, around)
    repeated = any(_repeats(loop, inner) for loop, inner in zip(inside, [*inside[1:], None]))
    if not inside or isinstance(inside[-1], _COMPOUND):
        return SourceLine(repeated)
    calls = (part.func for part in ast.walk(inside[-1]) if isinstance(part, ast.Call))
    makes_parameter = "Parameter" in {name for call in calls for name in _last_name(call)}
    return SourceLine(repeated, makes_parameter, _looks_like_weights(inside[-1], scope))


def _around(node: ast.AST, line: int) -> Iterator[ast.AST]:
    """The statements that hold a line, the outermost first."""
    for child in ast.iter_child_nodes(node):
        first, last = getattr(child, "lineno", 0), getattr(child, "end_lineno", 0) or 0
        is_part = isinstance(child, (ast.stmt, ast.excepthandler)) and first <= line <= last
        if is_part or (not hasattr(child, "lineno") and type(child).__name__ == "match_case"):
            inner = list(_around(child, line))
            if is_part or inner:
                yield from ([child, *inner] if is_part else inner)
                return


def _repeats(loop: Any, inner: Any) -> bool:
    """Whether a line is run in each round of a loop, and the rounds are none of whole trainings."""
    if not isinstance(loop, _LOOPS):
        return False
    is_in_body = inner in loop.body if inner is not None else isinstance(loop, ast.While)
    target = [] if isinstance(loop, ast.While) else [loop.target, loop.iter]
    names = {name for node in target for name in _names(node)}
    return is_in_body and not any(_TRAININGS.search(name) for name in names)


def _names(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        name = getattr(part, "id", None) or getattr(part, "attr", None)
        if isinstance(name, str):
            yield name


def _looks_like_weights(statement: Any, scope: ast.AST) -> bool:
    """By what is asked to have gradients there, or later in its function, and by the name it gets."""
    for part in ast.walk(statement):
        if isinstance(part, ast.Attribute) and part.attr == "requires_grad_":
            return True
        if isinstance(part, ast.keyword) and part.arg == "requires_grad" and getattr(part.value, "value", None) is True:
            return True
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    names = {name for target in targets for name in _last_name(target)}
    return any(_WEIGHTS.match(name) for name in names) or bool(names & _given_gradients(scope))


def _last_name(node: Any) -> tuple[str, ...]:
    name = getattr(node, "id", None) or getattr(node, "attr", None)
    return (name,) if isinstance(name, str) else ()


def _given_gradients(scope: ast.AST) -> set[str]:
    """Names that a function, or a script, asks to have gradients: `w.requires_grad_()`, `w.requires_grad = True`."""
    found: set[str] = set()
    for part in ast.walk(scope):
        if isinstance(part, ast.Attribute) and part.attr in ("requires_grad_", "requires_grad"):
            is_asked = part.attr == "requires_grad_" or isinstance(part.ctx, ast.Store)
            found.update(_last_name(part.value) if is_asked else ())
    return found


@functools.lru_cache(maxsize=1024)
def seed_made_of(file: str, line: int, name: str) -> str:
    """What is new in every run in the seed of a call at a line, by its source; empty where that does not say.

    name: the function that seeds, as its last part. Where the line calls others, too, all of them must say so.
    """
    tree = _tree(file) if _may_tell(file) else None
    if tree is None:
        return ""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_at(node, line) and _seeds(node)]
    named = [call for call in calls if _name_of(call.func) == name]
    found = [_made_of(call, tree) for call in named or calls]
    return found[0] if found and all(found) else ""


def _made_of(call: ast.Call, tree: ast.Module) -> str:
    given = [*call.args, *(word.value for word in call.keywords)]
    return next((source for part in given for source in _sources(part, tree)), "")


def _may_tell(file: str) -> bool:
    """Most sources have no such word, and need not be parsed."""
    return any(word in line for line in linecache.getlines(file) for word in (*_NEW_IN_EVERY_RUN, "id("))


def _is_at(node: ast.Call, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _seeds(call: ast.Call) -> bool:
    """Whether a called name is one that seeds."""
    name = _name_of(call.func)
    return "seed" in name.lower() or name in _seeding_names() or name in ("key", "Random", "Generator")


@functools.lru_cache(maxsize=None)
def _seeding_names() -> frozenset[str]:
    from . import frameworks

    return frozenset(name for framework in frameworks.every() for name in framework.seeding_names)


def _sources(given: ast.expr, tree: ast.Module) -> Iterator[str]:
    """What an argument is made of: by itself, or as the only value that its name ever gets, whatever happens."""
    if _is_conditional(given):
        return
    yield from _called(given)
    names = {node.id for node in ast.walk(given) if isinstance(node, ast.Name)}
    for name in sorted(names):
        value = _only_value(tree, name)
        if value is not None and not _is_conditional(value):
            yield from _called(value)


def _called(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            name = _name_of(part.func)
            if name == "id" and isinstance(part.func, ast.Name):
                yield ADDRESS
            elif name in _NEW_IN_EVERY_RUN:
                yield _NEW_IN_EVERY_RUN[name]


def _only_value(tree: ast.Module, name: str) -> ast.expr | None:
    """The value that a name gets, where it gets one at one line alone, and whatever happens."""
    stored = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == name and _is_stored(node)]
    if len(stored) != 1 or any(isinstance(node, ast.arg) and node.arg == name for node in ast.walk(tree)):
        return None
    conditional = {id(inner) for node in ast.walk(tree) if isinstance(node, _CONDITIONS) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and stored[0] in node.targets and id(node) not in conditional:
            return node.value
    return None


def _is_stored(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def _is_conditional(node: ast.AST) -> bool:
    return any(isinstance(part, _CONDITIONS) for part in ast.walk(node))


def _name_of(node: ast.expr) -> str:
    return "".join(_last_name(node))
