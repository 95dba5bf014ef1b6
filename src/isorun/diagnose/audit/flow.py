"""The calls and settings of a program in the order in which they would be carried out, as far as the source tells.

Functions, classes and modules of the program's own are entered where they are called or imported, once each. A branch
is left out only where its condition is known: an option that the command does not give, the name of the main module.
What is called from outside (`forward`, `__getitem__`, callbacks) comes last, marked `later`; what nobody names, never.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from isorun.diagnose.audit.program import AuditedProgram, GivenOptions, Source, keyword

__all__ = ["Flow", "FlowStep", "Frame"]

_DEEPEST: Final = 60
_LONGEST_CHAIN: Final = 20
_COMPARISONS: Final[dict[type[ast.cmpop], Callable[[Any, Any], Any]]] = {
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
}
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_UNKNOWN: Final = (False, None)
_LEAVES: Final = frozenset(
    (
        *(str, int, bool, type(None), ast.Name, ast.Constant, ast.comprehension, ast.Load, ast.Store, ast.Del),
        *(kind for group in (ast.operator, ast.boolop, ast.cmpop) for kind in group.__subclasses__()),
    )
)
"""What holds no call."""


@dataclass(slots=True, eq=False)
class Frame:
    """The names of one call of a function, or of a module. bound: names to expressions, each with its own frame."""

    source: Source
    module: Frame | None = None
    owner: str = ""
    bound: dict[str, tuple[ast.expr, Frame]] = field(default_factory=dict)
    parameters: frozenset[str] = frozenset()

    def find(self, name: str) -> tuple[ast.expr, Frame] | None:
        """What a name was last bound to, here or in the module."""
        return self.bound.get(name) or (self.module.bound.get(name) if self.module is not None else None)


@dataclass(slots=True, eq=False)
class FlowStep:
    """A call, or the setting of an attribute. name: what is called or set, dotted, as far as it is known.

    certain: no unknown condition stands before it. later: when it happens is not known, but after all else that is.
    elsewhere: in another process, as what sets up data-loading workers is. called: the last part of the name, also
    where what it belongs to is not known.
    """

    node: ast.Call | ast.Assign
    name: str
    frame: Frame
    certain: bool
    later: bool
    elsewhere: bool
    called: str = ""

    def __post_init__(self) -> None:
        function = self.node.func if isinstance(self.node, ast.Call) else None
        self.called = function.attr if isinstance(function, ast.Attribute) else self.name.rpartition(".")[2]

    @property
    def is_sure(self) -> bool:
        """Whether it happens, and in its place."""
        return self.certain and not self.later

    @property
    def line(self) -> int:
        """Where it stands."""
        return self.node.lineno

    @property
    def source(self) -> Source:
        """In which file."""
        return self.frame.source


class Flow:
    """Walks a program once; `steps` is what it met."""

    def __init__(self, program: AuditedProgram) -> None:
        self.program = program
        self.steps: list[FlowStep] = []
        self._entered: set[ast.AST] = set()
        self._modules: dict[str, Frame] = {}
        self._certain, self._later, self._elsewhere, self._depth = True, False, False, 0
        self._enter_module(program.script)
        self._enter_the_rest()

    def value(self, node: ast.AST | None, frame: Frame, depth: int = 0) -> tuple[bool, Any]:
        """Whether the value of an expression is known, and the value."""
        if isinstance(node, ast.Constant):
            return True, node.value
        if depth > _LONGEST_CHAIN:
            return _UNKNOWN
        if isinstance(node, ast.Name):
            found = frame.find(node.id)
            trusted = node.id in frame.parameters or "seed" in node.id.lower() or node.id.isupper()
            return self.value(found[0], found[1], depth + 1) if found and trusted else _UNKNOWN
        if isinstance(node, ast.Attribute):
            found = frame.find(_path(node))
            return self.value(found[0], found[1], depth + 1) if found else self._option(node)
        if isinstance(node, ast.Call) and frame.source.dotted(node.func) == "int" and node.args:
            return self.value(node.args[0], frame, depth + 1)
        return _UNKNOWN

    def _option(self, node: ast.Attribute) -> tuple[bool, Any]:
        options: GivenOptions = self.program.options
        return options.value(node.attr) if isinstance(node.value, (ast.Name, ast.Attribute)) else _UNKNOWN

    def origins(self, node: ast.AST, frame: Frame, depth: int = 0) -> Iterator[tuple[str, ast.Call]]:
        """The calls, by their dotted names, that a value is made of, also through names that it was bound to."""
        if depth > _LONGEST_CHAIN:
            return
        if isinstance(node, ast.Call):
            yield frame.source.dotted(node.func), node
        if isinstance(node, (ast.Name, ast.Attribute)):
            found = frame.find(node.id if isinstance(node, ast.Name) else _path(node))
            if found is not None and found[0] is not node:
                yield from self.origins(found[0], found[1], depth + 1)
        for child in ast.iter_child_nodes(node):
            yield from self.origins(child, frame, depth + 1)

    def truth(self, test: ast.expr, frame: Frame) -> bool | None:
        """Whether a condition holds; None where that is not known."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self.truth(test.operand, frame)
            return None if inner is None else not inner
        if isinstance(test, ast.BoolOp):
            found = [self.truth(part, frame) for part in test.values]
            decisive = isinstance(test.op, ast.Or)
            if decisive in found:
                return decisive
            return None if None in found else not decisive
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            return self._compared(test, frame)
        known, value = self.value(test, frame)
        return bool(value) if known else None

    def _compared(self, test: ast.Compare, frame: Frame) -> bool | None:
        left, right = test.left, test.comparators[0]
        if isinstance(left, ast.Name) and left.id == "__name__" and isinstance(right, ast.Constant):
            return right.value == "__main__" if frame.source is self.program.script else False
        (known, first), (also, second) = self.value(left, frame), self.value(right, frame)
        compare = _COMPARISONS.get(type(test.ops[0]))
        if not (known and also and compare):
            return None
        try:
            return bool(compare(first, second))
        except TypeError:
            return None

    def _enter_module(self, source: Source) -> Frame:
        if source.module not in self._modules:
            frame = self._modules[source.module] = Frame(source)
            self._statements(source.tree.body, frame)
        return self._modules[source.module]

    def _enter_the_rest(self) -> None:
        """What is called from outside: by a framework, by another process, or by a name that could not be followed."""
        for source in self.program.sources:
            self._later = True
            self._enter_module(source)
        packages = {name.partition(".")[0] for name in self.program.modules}
        named = {name for source in self.program.sources for name in _names_used(source, packages)}
        workers = {name for source in self.program.sources for name in _worker_functions(source)}
        for source in self.program.sources:
            for name, definition in source.definitions.items():
                own = name.rpartition(".")[2]
                owner = name.rpartition(".")[0].rpartition(".")[2]
                called = own in named or (owner in named and own.startswith("__")) or self._is_hook(source, name)
                if isinstance(definition, _Function) and definition not in self._entered and called:
                    self._elsewhere = own in workers
                    self._enter_function(source, definition, None, name.rpartition(".")[0])
        self._elsewhere = False

    def _is_hook(self, source: Source, name: str) -> bool:
        """Whether a framework may call it: of an object. Methods of a class itself are called by those who know it."""
        owner, own = source.definitions.get(name.rpartition(".")[0]), source.definitions[name]
        of_class = any(getattr(mark, "id", "") == "classmethod" for mark in getattr(own, "decorator_list", ()))
        return isinstance(owner, ast.ClassDef) and bool(owner.bases) and not of_class

    def _statements(self, body: Iterable[ast.stmt], frame: Frame) -> None:
        for statement in body:
            try:
                self._statement(statement, frame)
            except RecursionError:  # a sum of thousands of parts, as programs write them
                continue

    def _statement(self, node: ast.stmt, frame: Frame) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for part in (*node.decorator_list, *node.args.defaults):
                self._expression(part, frame)
        elif isinstance(node, ast.ClassDef):
            self._statements([item for item in node.body if not isinstance(item, _Function)], frame)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for name in frame.source.imports.get(node, ()):
                parts = name.split(".")
                for end in range(len(parts)):
                    if ".".join(parts[: end + 1]) in self.program.modules:
                        self._enter_module(self.program.modules[".".join(parts[: end + 1])])
        elif isinstance(node, ast.If):
            self._branch(node, frame)
        elif isinstance(node, ast.Try):
            self._statements(node.body, frame)
            for handler in node.handlers:
                self._uncertain(handler.body, frame)
            self._statements((*node.orelse, *node.finalbody), frame)
        elif isinstance(node, ast.Assign):
            self._assign(node, frame)
        else:
            self._parts(node, frame)

    def _parts(self, node: ast.AST, frame: Frame) -> None:
        """Expressions and statements of anything else, in the order in which they are written."""
        for name in node._fields:
            value = getattr(node, name, None)
            for item in value if value.__class__ is list else (value,):
                if item.__class__ in _LEAVES:  # most of a program: asked first, and quickly
                    continue
                if isinstance(item, ast.stmt):
                    self._statement(item, frame)
                elif isinstance(item, ast.AST):
                    self._expression(item, frame)

    def _branch(self, node: ast.If, frame: Frame) -> None:
        self._expression(node.test, frame)
        holds = self.truth(node.test, frame)
        for body, wanted in ((node.body, True), (node.orelse, False)):
            if holds is wanted:
                self._statements(body, frame)
            elif holds is None:
                self._uncertain(body, frame)

    def _uncertain(self, body: list[ast.stmt], frame: Frame) -> None:
        before, self._certain = self._certain, False
        self._statements(body, frame)
        self._certain = before

    def _assign(self, node: ast.Assign, frame: Frame) -> None:
        self._expression(node.value, frame)
        for target in node.targets:
            path = _path(target)
            if path:
                frame.bound[path] = (node.value, frame)
            if isinstance(target, (ast.Attribute, ast.Subscript)):
                name = frame.source.dotted(target.value if isinstance(target, ast.Subscript) else target)
                self._step(node, name, frame)

    def _step(self, node: ast.Call | ast.Assign, name: str, frame: Frame) -> None:
        self.steps.append(FlowStep(node, name, frame, self._certain, self._later, self._elsewhere))

    def _expression(self, node: ast.AST, frame: Frame) -> None:
        if isinstance(node, ast.Call):
            self._call(node, frame)
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            for generator in node.generators:
                self._parts(generator, frame)
            self._parts(node, frame)
        elif node.__class__ not in _LEAVES:
            self._parts(node, frame)

    def _call(self, node: ast.Call, frame: Frame) -> None:
        if isinstance(node.func, ast.Attribute):
            self._expression(node.func.value, frame)
        elif not isinstance(node.func, ast.Name):
            self._expression(node.func, frame)
        for part in (*node.args, *(item.value for item in node.keywords)):
            self._expression(part, frame)
        self._step(node, frame.source.dotted(node.func), frame)
        found = self._callee(node.func, frame)
        if found is not None:
            source, definition, owner = found
            if isinstance(definition, ast.ClassDef):
                self._enter_class(source, definition, node, frame)
            else:
                self._enter_function(source, definition, (node, frame), owner)

    def _callee(self, function: ast.expr, frame: Frame) -> tuple[Source, Any, str] | None:
        name = frame.source.dotted(function)
        names = (name, *(frame.source.handed_on(name) if isinstance(function, ast.Name) else ())) if name else ()
        found = next((found for each in names if (found := self.program.definition(each))), None)
        if found is not None:
            return (*found, "")
        if not isinstance(function, ast.Attribute):
            return self._method(function, "forward", frame) or self._method(function, "__call__", frame)
        if isinstance(function.value, ast.Name) and function.value.id == "self" and frame.owner:
            return self._member(frame.source, frame.owner, function.attr)
        return self._method(function.value, function.attr, frame)

    def _method(self, receiver: ast.expr, name: str, frame: Frame) -> tuple[Source, Any, str] | None:
        """A method of what a name was bound to, where that is an object of a class of the program's own."""
        bound = frame.find(_path(receiver)) if _path(receiver) else None
        made: ast.AST | None = bound[0] if bound else receiver
        where = bound[1] if bound else frame
        while isinstance(made, ast.Call):
            found = self.program.definition(where.source.dotted(made.func))
            if found is not None and isinstance(found[1], ast.ClassDef):
                return self._member(found[0], found[1].name, name)
            made = made.func.value if isinstance(made.func, ast.Attribute) else None  # `Net().to(device)`
        return None

    def _member(self, source: Source, owner: str, name: str) -> tuple[Source, Any, str] | None:
        """A method of a class, its own or that of a class of the program that it derives from."""
        definition = source.definitions.get(f"{owner}.{name}")
        if definition is not None:
            return source, definition, owner
        described = source.definitions.get(owner)
        for base in described.bases if isinstance(described, ast.ClassDef) else ():
            found = self.program.definition(source.dotted(base))
            if found is not None and isinstance(found[1], ast.ClassDef) and found[1] is not described:
                return self._member(found[0], found[1].name, name)
        return None

    def _enter_class(self, source: Source, definition: ast.ClassDef, call: ast.Call, frame: Frame) -> None:
        for name in ("__init__", "__post_init__"):
            found = self._member(source, definition.name, name)
            if found is not None:
                self._enter_function(found[0], found[1], (call, frame), definition.name)

    def _enter_function(self, source: Source, definition: Any, call: tuple[ast.Call, Frame] | None, owner: str) -> None:
        if definition in self._entered or self._depth > _DEEPEST or not isinstance(definition, _Function):
            return
        self._entered.add(definition)
        module = self._modules.get(source.module) or Frame(source)
        frame = Frame(source, module, owner, _arguments(definition, call, module, is_method=bool(owner)))
        frame.parameters = frozenset(frame.bound)
        self._depth += 1
        self._statements(definition.body, frame)
        self._depth -= 1


def _arguments(
    definition: Any, call: tuple[ast.Call, Frame] | None, module: Frame, *, is_method: bool
) -> dict[str, tuple[ast.expr, Frame]]:
    """Parameters to what they are given: by the call, else by their defaults; nothing where no call is known."""
    if call is None:
        return {}
    names = [item.arg for item in (*definition.args.posonlyargs, *definition.args.args)]
    defaults = definition.args.defaults
    bound = {name: (value, module) for name, value in zip(names[len(names) - len(defaults) :], defaults, strict=True)}
    for item, value in zip(definition.args.kwonlyargs, definition.args.kw_defaults, strict=True):
        if value is not None:
            bound[item.arg] = (value, module)
    node, frame = call
    given = names[1:] if is_method else names
    bound.update({name: (value, frame) for name, value in zip(given, node.args, strict=False)})
    bound.update({item.arg: (item.value, frame) for item in node.keywords if item.arg})
    return bound


def _path(node: ast.AST) -> str:
    """`a.b` of a name or of attributes of one, as it is written; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join(reversed([*parts, node.id])) if isinstance(node, ast.Name) else ""


def _names_used(source: Source, packages: Container[str]) -> Iterator[str]:
    """Names that may stand for something of the program's own: `Model.load` of a library's Model is the library's.

    packages: the first parts of the names of the program's modules.
    """
    yield from {node.id for node in source.of_type.get(ast.Name, ()) if node.ctx.__class__ is ast.Load}
    of_others = {name for name, stands_for in source.names.items() if stands_for.partition(".")[0] not in packages}
    for node in source.of_type.get(ast.Attribute, ()):
        base = node.value
        while base.__class__ is ast.Attribute:
            base = base.value
        if base.__class__ is not ast.Name or base.id not in of_others:
            yield node.attr


def _worker_functions(source: Source) -> Iterator[str]:
    """What is given to a loader to be called in its processes."""
    for call in source.of_type.get(ast.Call, ()):
        given = keyword(call, "worker_init_fn")
        if given is not None:
            yield source.dotted(given).rpartition(".")[2]
