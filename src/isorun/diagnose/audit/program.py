"""The program that a command starts, as syntax trees: the script and the modules of its own that it imports.

Nothing is imported or run. Names are resolved through imports and aliases, so that `F.interpolate` is
`torch.nn.functional.interpolate` wherever it is written, and spellings of one thing become one.
"""

from __future__ import annotations

import ast
import functools
import gc
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from isorun.errors import InputError, UsageError

__all__ = ["AuditedProgram", "GivenOptions", "Source", "keyword", "read_program", "script_of", "without_collection"]

_MOST_FILES: Final = 2000
_MOST_BYTES: Final = 2 * 2**20
_MOST_HANDS: Final = 8
_MODULE_OPTIONS: Final = frozenset(("-m", "--module"))
_SPELLINGS: Final = (
    ("tensorflow.compat.v1.set_random_seed", "tensorflow.random.set_seed"),
    ("tensorflow.compat.v2", "tensorflow"),
    ("tensorflow.python.keras", "keras"),
    ("tensorflow.keras", "keras"),
    ("tf_keras", "keras"),
    ("torch.random.manual_seed", "torch.manual_seed"),
    ("torch.utils.data.dataloader", "torch.utils.data"),
    ("torch.utils.data.dataset", "torch.utils.data"),
    ("torch.nn.parameter", "torch.nn"),
    ("torch.nn.modules", "torch.nn"),
    ("numpy.random.mtrand", "numpy.random"),
    ("pytorch_lightning", "lightning"),
    ("lightning.pytorch", "lightning"),
    ("lightning.fabric.utilities.seed", "lightning"),
    ("lightning.utilities.seed", "lightning"),
    ("torchvision.transforms.v2", "torchvision.transforms"),
    ("transformers.trainer_utils", "transformers"),
    ("gym", "gymnasium"),
    ("datetime.datetime", "datetime"),
    ("posixpath", "os.path"),
    ("six.moves", ""),
)


@functools.lru_cache(maxsize=4096)
def canonical(name: str) -> str:
    """One spelling for what libraries offer under several."""
    for spelling, wanted in _SPELLINGS:
        if name == spelling or name.startswith(f"{spelling}."):
            return (wanted + name[len(spelling) :]).lstrip(".")
    return name


@dataclass(slots=True, eq=False)
class Source:
    """A parsed file. module: its dotted name. shown: its path as people see it.

    names: what a name of this file stands for, dotted. definitions: functions, classes and methods by qualified name.
    of_type: all nodes by their type, in no order that matters. parents: a node to what it is part of.
    unread: why it was not parsed, if so.
    """

    path: Path
    shown: str
    module: str
    is_package: bool
    text: str
    tree: ast.Module
    unread: str = ""
    names: dict[str, str] = field(default_factory=dict)
    definitions: dict[str, ast.AST] = field(default_factory=dict)
    of_type: dict[type[ast.AST], list[Any]] = field(default_factory=dict)
    imports: dict[ast.AST, list[str]] = field(default_factory=dict)
    parents: dict[ast.AST, ast.AST] = field(default_factory=dict)
    _homes: dict[ast.AST, str] | None = None
    _dotted: dict[ast.AST, str] = field(default_factory=dict)
    _begins: list[int] = field(default_factory=list)

    def nodes(self, *kinds: type[ast.AST]) -> Iterator[Any]:
        """All nodes of these types, by line."""
        found = [node for kind in kinds for node in self.of_type.get(kind, ())]
        yield from sorted(found, key=lambda node: (node.lineno, node.col_offset))

    def home(self, node: ast.AST) -> str:
        """The qualified name of the innermost function or class around a node; empty for the module."""
        if self._homes is None:
            self._homes = {definition: name for name, definition in self.definitions.items()}
        above: ast.AST | None = self.parents.get(node)
        while above is not None:
            if above in self._homes:
                return self._homes[above]
            above = self.parents.get(above)
        return ""

    def handed_on(self, name: str) -> Iterator[str]:
        """What a name of this file may stand for that it has from elsewhere, also by `from … import *`."""
        first, _, rest = name.partition(".")
        if first in self.names:
            yield f"{self.names[first]}.{rest}".rstrip(".")
            return
        for node in self.of_type.get(ast.ImportFrom, ()):
            if any(alias.name == "*" for alias in node.names):
                yield f"{self.imports[node][0]}.{name}"

    def dotted(self, node: ast.AST) -> str:
        """What an expression names, resolved through imports; empty for what is no name."""
        known = self._dotted.get(node)
        if known is None:
            known = self._dotted[node] = self._resolved(node)
        return known

    def _resolved(self, node: ast.AST) -> str:
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        parts.append(self.names.get(node.id, node.id))
        parts.reverse()
        return canonical(".".join(parts))

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Where a node begins and ends, in bytes of the file; (0, 0) for one without a place."""
        if not self._begins:
            self._begins = [0]
            for line in self.text.encode().splitlines(keepends=True):
                self._begins.append(self._begins[-1] + len(line))
        first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
        if not first or not last:
            return 0, 0
        ends = self._begins[last - 1] + int(getattr(node, "end_col_offset", 0))
        return self._begins[first - 1] + int(getattr(node, "col_offset", 0)), ends

    def segment(self, node: ast.AST) -> str:
        """The text of a node as it is written."""
        begin, end = self.span(node)
        return self.text.encode()[begin:end].decode(errors="replace")

    def imported(self, node: ast.AST) -> str:
        """The same, but only where its first name is imported, so that a variable is not taken for a module."""
        base = node
        while isinstance(base, ast.Attribute):
            base = base.value
        return self.dotted(node) if isinstance(base, ast.Name) and base.id in self.names else ""


@dataclass(frozen=True, slots=True)
class GivenOptions:
    """Options that the program declares, as far as they are constants, with the values that the command gives them."""

    declared: Mapping[str, tuple[Any, Source, ast.Call]]
    given: Mapping[str, str]

    def value(self, name: str) -> tuple[bool, Any]:
        """Whether the value of an option is known, and the value."""
        if name in self.given:
            return True, _number(self.given[name])
        if name not in self.declared or self.declared[name][0] is ...:
            return False, None
        return True, self.declared[name][0]


@dataclass(frozen=True, slots=True)
class AuditedProgram:
    """The script first, then the modules of its own, as they are met. folder: where the command is started.

    unread: files of its own that were not looked at, each with the reason.
    """

    sources: tuple[Source, ...]
    modules: Mapping[str, Source]
    options: GivenOptions
    folder: Path
    words: tuple[str, ...]
    environ: Mapping[str, str]
    packages: frozenset[str] = frozenset()
    unread: tuple[str, ...] = ()

    @property
    def script(self) -> Source:
        """Where it begins."""
        return self.sources[0]

    def definition(self, dotted: str, depth: int = 0) -> tuple[Source, ast.AST] | None:
        """The function, class or method of the program's own that a dotted name stands for.

        A package may hand on what its modules define: `from .data import split` in its `__init__.py`.
        """
        owner, _, rest = dotted.rpartition(".")
        while owner:
            if owner in self.modules:
                source = self.modules[owner]
                if rest in source.definitions:
                    return source, source.definitions[rest]
                for further in source.handed_on(rest) if depth < _MOST_HANDS else ():
                    if further != dotted and (found := self.definition(further, depth + 1)):
                        return found
            owner, _, more = owner.rpartition(".")
            rest = f"{more}.{rest}"
        return None

    def uses(self, *packages: str) -> bool:
        """Whether any file imports one of these top-level packages."""
        return not self.packages.isdisjoint(packages)


def script_of(words: Sequence[str], folder: Path) -> tuple[Path, str, tuple[str, ...]]:
    """The script of a command, its module's name where it was started by `-m`, and the words for the script.

    Launchers (`torchrun`, `accelerate launch`, `uv run`, `python -m torch.distributed.run`) stand before it.
    """
    for place, word in enumerate(words):
        if word in _MODULE_OPTIONS and place + 1 < len(words):
            name = words[place + 1]
            for module in (f"{name}.__main__", name):  # of a package that is run its __main__ is, and not of a module
                found = _module_file(module, (folder,))
                if found is not None:
                    return found, module, tuple(words[place + 2 :])
        if word.endswith(".py") and (folder / word).is_file():
            return folder / word, "", tuple(words[place + 1 :])
        if (folder / word / "__main__.py").is_file():
            return folder / word / "__main__.py", "", tuple(words[place + 1 :])
    named = next((word for word in words if word.endswith(".py")), "")
    if named:
        raise InputError(f"there is no script {named}", found=f"the folder {folder}", hint="name it from this folder")
    raise UsageError(
        "the command names no Python script",
        found=" ".join(words) or "nothing",
        hint="isorun audit -- python train.py",
    )


@contextmanager
def without_collection() -> Iterator[None]:
    """Python's collector of cycles looks at every node of large trees again and again, for half of the time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


@without_collection()
def read_program(words: Sequence[str], folder: Path, environ: Mapping[str, str]) -> AuditedProgram:
    """Parse the script and, from import to import, the modules of its own."""
    path, module, rest = script_of(words, folder)
    depth = len(module.split(".")) if module else 1
    roots = tuple(dict.fromkeys((path.resolve().parents[depth - 1], folder.resolve())))
    script = _source(path, folder, module or "__main__", _parsed(path, must=True))
    sources, modules, waiting = [script], {script.module: script}, [script]
    of_others: set[str] = set()
    unread = {path: f"{script.shown}: {script.unread}"} if script.unread else {}
    while waiting and len(sources) < _MOST_FILES:
        source = waiting.pop(0)
        for name in (*_packages_around(source.module), *_names_imported(source)):
            found = None if name in modules or name in of_others else _module_file(name, roots)
            if found is None:
                of_others.add(name)
                continue
            read = _source(found, folder, name, _parsed(found))
            modules[name] = read
            if read.unread:
                unread[found] = f"{read.shown}: {read.unread}"
                continue
            sources.append(read)
            waiting.append(read)
    if waiting:
        unread[folder] = f"what {len(waiting)} more files import: only {_MOST_FILES:,} files are looked at"
    packages = frozenset(canonical(name).partition(".")[0] for source in sources for name in source.names.values())
    options = _options(sources, rest)
    return AuditedProgram(
        tuple(sources), modules, options, folder, tuple(words), environ, packages, tuple(unread.values())
    )


def _packages_around(module: str) -> Iterator[str]:
    """Those that are imported before a module is: what stands in their __init__ runs."""
    parts = module.split(".")[:-1]
    yield from (".".join(parts[: end + 1]) for end in range(len(parts)))


def _parsed(path: Path, *, must: bool = False) -> tuple[str, ast.Module, str]:
    """The text, its tree, and why there is none, if so. must: a script that cannot be read is an error."""
    why = ""
    try:
        data = path.read_bytes()
        if len(data) > _MOST_BYTES:
            return (
                "",
                ast.Module([], []),
                f"{len(data) / 2**20:.1f} MiB, and more than {_MOST_BYTES >> 20} are not parsed",
            )
        with warnings.catch_warnings():  # of the training's own, which it shows when it runs
            warnings.simplefilter("ignore")
            return data.decode("utf-8", "replace"), ast.parse(data), ""
    except OSError as error:
        why = f"cannot be read: {error.strerror}"
        if must:
            raise InputError(f"{path} {why}") from None
    except (SyntaxError, ValueError, RecursionError) as error:
        why = f"no Python that this interpreter can parse ({error})"
        if must:
            raise InputError(f"{path} is no Python that this interpreter can parse", found=str(error)) from None
    return "", ast.Module([], []), why


def _source(path: Path, folder: Path, module: str, parsed: tuple[str, ast.Module, str]) -> Source:
    text, tree, why = parsed
    resolved = path.resolve()
    below = resolved.is_relative_to(folder.resolve())
    shown = str(resolved.relative_to(folder.resolve())) if below else str(path)
    made = Source(path, shown, module, path.name == "__init__.py", text, tree, unread=why)
    _collect(made)
    for name, definition in made.definitions.items():
        if "." not in name and not isinstance(definition, ast.Module):
            made.names.setdefault(name, f"{module}.{name}")
    return made


def _collect(source: Source) -> None:
    """One walk: nodes by type, definitions with their qualified names, and what names stand for."""
    stack: list[tuple[ast.AST, str]] = [(source.tree, "")]
    of_type: dict[Any, list[Any]] = {kind: [] for kind in _KEPT}
    source.of_type, parents = of_type, source.parents
    while stack:
        node, home = stack.pop()
        kind = node.__class__
        if kind in of_type:
            of_type[kind].append(node)
            if kind is ast.Import or kind is ast.ImportFrom:
                _bind(source, node)  # type: ignore[arg-type]
                continue
        if kind in _DEFINITIONS:
            home = f"{home}.{node.name}" if home else node.name  # type: ignore[attr-defined]
            source.definitions.setdefault(home, node)
        for name in node._fields:
            value: Any = getattr(node, name, None)
            for item in value if value.__class__ is list else (value,):
                part = item.__class__
                if part is ast.Name or part is ast.Constant:  # half of all nodes, and nothing is in them
                    of_type[part].append(item)
                    parents[item] = node
                elif part not in _PLAIN and isinstance(item, ast.AST):
                    parents[item] = node
                    stack.append((item, home))
    for assign in of_type.get(ast.Assign, ()):  # `rng = np.random` names a module once more
        value, target = assign.value, assign.targets[0]
        if isinstance(value, ast.Attribute) and isinstance(target, ast.Name) and source.imported(value):
            source.names.setdefault(target.id, source.dotted(value))


_DEFINITIONS: Final = frozenset((ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
_PLAIN: Final = frozenset(
    (
        *(str, int, type(None), ast.Load, ast.Store, ast.Del),
        *(kind for group in (ast.operator, ast.boolop, ast.unaryop, ast.cmpop) for kind in group.__subclasses__()),
    )
)
_KEPT: Final = frozenset(
    (
        ast.Call,
        ast.Assign,
        ast.AnnAssign,
        ast.For,
        ast.Constant,
        ast.Set,
        ast.SetComp,
        ast.comprehension,
        ast.Starred,
        ast.Name,
        ast.Attribute,
        ast.Import,
        ast.ImportFrom,
        ast.ClassDef,
        ast.BinOp,
        ast.AugAssign,
    )
)


def _bind(source: Source, node: ast.Import | ast.ImportFrom) -> None:
    found = source.imports.setdefault(node, [])
    if isinstance(node, ast.Import):
        for alias in node.names:
            source.names[alias.asname or alias.name.partition(".")[0]] = (
                alias.name if alias.asname else alias.name.partition(".")[0]
            )
            found.append(alias.name)
        return
    origin = _origin(source, node)
    found.append(origin)
    for alias in node.names:
        if alias.name != "*":
            source.names[alias.asname or alias.name] = f"{origin}.{alias.name}" if origin else alias.name
            found.append(f"{origin}.{alias.name}" if origin else alias.name)


def _origin(source: Source, node: ast.ImportFrom) -> str:
    """The module that `from … import` names, with relative ones seen from this file."""
    if not node.level:
        return node.module or ""
    parts = source.module.split(".") if source.module != "__main__" else [""]
    kept = parts if source.is_package and node.level == 1 else parts[: len(parts) - node.level + source.is_package]
    return ".".join([part for part in (*kept, node.module or "") if part])


def _names_imported(source: Source) -> Iterator[str]:
    for node in source.of_type.get(ast.Import, []) + source.of_type.get(ast.ImportFrom, []):
        for name in source.imports.get(node, ()):
            parts = name.split(".")
            yield from (".".join(parts[: end + 1]) for end in range(len(parts)))


def _module_file(name: str, roots: Sequence[Path]) -> Path | None:
    if not name or not all(part.isidentifier() for part in name.split(".")):
        return None
    for root in roots:
        base = root.joinpath(*name.split("."))
        for path in (base.with_suffix(".py"), base / "__init__.py"):
            if path.is_file():
                return path
    return None


def _options(sources: Sequence[Source], words: Sequence[str]) -> GivenOptions:
    declared: dict[str, tuple[Any, Source, ast.Call]] = {}
    flags: dict[str, str] = {}
    for source in sources:
        for call in source.of_type.get(ast.Call, ()):
            if isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument":
                names = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
                _declare(source, call, names, declared, flags)
    return GivenOptions(declared, _given(words, flags))


def _declare(source: Source, call: ast.Call, names: list[str], declared: dict[str, Any], flags: dict[str, str]) -> None:
    long = next((name for name in names if name.startswith("--")), names[0] if names else "")
    asked = keyword(call, "dest")
    name = str(asked.value) if isinstance(asked, ast.Constant) else long.lstrip("-").replace("-", "_")
    action, default = keyword(call, "action"), keyword(call, "default")
    known: Any = None
    if default is not None:
        known = default.value if isinstance(default, ast.Constant) else ...
    elif isinstance(action, ast.Constant) and action.value in {"store_true", "store_false"}:
        known = action.value == "store_false"
    elif not long.startswith("-") or keyword(call, "required") is not None:
        known = ...
    if name:
        declared[name] = (known, source, call)
        flags.update(dict.fromkeys([flag for flag in names if flag.startswith("-")], name))


def _given(words: Sequence[str], flags: Mapping[str, str]) -> dict[str, str]:
    given = {}
    for place, word in enumerate(words):
        flag, sign, value = word.partition("=")
        if flag in flags:
            follows = words[place + 1] if place + 1 < len(words) else ""
            given[flags[flag]] = value if sign else ("True" if not follows or follows.startswith("--") else follows)
    return given


def _number(text: str) -> Any:
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    return {"True": True, "False": False, "None": None}.get(text, text)


def keyword(call: ast.Call, *names: str) -> ast.expr | None:
    """The value of a keyword of a call, whichever of these names it has; None where there is none."""
    return next((item.value for item in call.keywords if item.arg in names), None)
