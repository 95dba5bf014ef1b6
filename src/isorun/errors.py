"""Every error a user can meet.

    IsorunError
    ├── UsageError          the words on a command line do not fit together (exit code 2)
    ├── StudyError          the study file or Study object says something that cannot be run
    ├── InputError          a table, formula, file or argument given to an analysis cannot be used
    ├── DataError           a data set is missing, damaged, or could not be downloaded
    ├── MissingExtra        an optional part is needed and not installed
    ├── PluginError         a part that another distribution brings is not there or cannot be loaded
    ├── ExecutionError      a run could not be started or watched
    ├── OtherPlatform       this part of isorun needs Linux
    ├── StoreError          the store cannot be read or written
    │   ├── StoreMissing    there is no store yet
    │   ├── StoreConflict   a second, different record for something already finished
    │   ├── StoreDamaged    the store holds something that isorun did not write
    │   ├── StoreTooNew     the store was written by a newer isorun
    │   ├── StoreBusy       another process holds the store for too long
    │   └── PackageError    a package is damaged, or is none
    ├── RegistryError       a registry cannot be reached, or does not take what it is given
    │   ├── RegistryMissing   there is no such thing in it, or none that you may see
    │   ├── RegistryDenied    you may not do that there
    │   └── RegistryConflict  something else is there already
    └── NothingRecorded     there is no run to report on

Each message says what failed, what was found, what is allowed, and what to do next. Only the command line exits;
it prints the message without a traceback and returns exit code 1 (2 for UsageError).

A message may quote anything that a user, a training or a file says: `harmless` is how that is put on a screen or page.
`foreign_errors` is the guard around code that isorun did not write: whatever it raises becomes one of these errors.
In Python the signature of a public function says what may be asked of it; `checked` refuses the rest by name.
"""

from __future__ import annotations

import functools
import re
import shlex
import sys
import types
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, Final, ParamSpec, TypeVar

_Asked = ParamSpec("_Asked")
_Answer = TypeVar("_Answer")

__all__ = [
    "DataError",
    "ExecutionError",
    "InputError",
    "IsorunError",
    "MissingExtra",
    "NothingRecorded",
    "OtherPlatform",
    "PackageError",
    "PluginError",
    "RegistryConflict",
    "RegistryDenied",
    "RegistryError",
    "RegistryMissing",
    "StoreBusy",
    "StoreConflict",
    "StoreDamaged",
    "StoreError",
    "StoreMissing",
    "StoreTooNew",
    "StudyError",
    "UsageError",
    "checked",
    "foreign_errors",
    "harmless",
    "known_names",
    "lacks_posix",
    "needs_linux",
    "said_by",
    "without_passwords",
]


class IsorunError(Exception):
    """The base of all errors isorun raises on purpose.

    what: what failed, naming the file, key, run or column.
    found / allowed: what was there, and what may be there.
    hint: what to do next, ideally a command.
    """

    def __init__(self, what: str, *, found: str = "", allowed: str = "", hint: str = "") -> None:
        self.what = what
        self.found = found
        self.allowed = allowed
        self.hint = hint
        super().__init__(self.message())

    def message(self) -> str:
        """The whole message, a line for each part that is there."""
        parts = [self.what]
        parts += [f"  found:   {self.found}"] if self.found else []
        parts += [f"  allowed: {self.allowed}"] if self.allowed else []
        parts += [f"  next:    {self.hint}"] if self.hint else []
        return "\n".join(parts)


class UsageError(IsorunError):
    """The words on a command line do not fit together."""


class StudyError(IsorunError):
    """The study says something that cannot be run."""


class InputError(IsorunError):
    """A table, formula, file or argument cannot be used."""


class DataError(IsorunError):
    """A data set is missing, damaged, or could not be downloaded."""


class MissingExtra(IsorunError):
    """An optional part is needed and not installed. otherwise: what helps as well."""

    def __init__(self, package: str, extra: str, purpose: str, otherwise: str = "") -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed",
            hint=f"pip install 'isorun[{extra}]'{f', or {otherwise}' if otherwise else ''}",
        )


class PluginError(IsorunError):
    """A part that another distribution brings is not there or cannot be loaded."""


class ExecutionError(IsorunError):
    """A run could not be started or watched."""


class OtherPlatform(IsorunError):
    """A part of isorun needs what only Linux has: it is said at the start, and not by whatever is missing first."""

    def __init__(self, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs Linux",
            found=f"this is {sys.platform}",
            allowed=f"here: {_WORKS_ELSEWHERE.get(sys.platform, _WORKS_ELSEWHERE[''])}",
            hint="a Linux machine, virtual machine or container (the repository has a Containerfile)",
        )


_WORKS_ELSEWHERE: Final = {
    "darwin": "reports and questions on stores that were made on Linux, and on tables of results from anywhere",
    "": "questions on tables of results from anywhere (isorun compare runs.csv …)",
}
"""What works on another platform; without its name, on all others."""
_OF_POSIX: Final = frozenset(("fcntl", "grp", "pwd", "resource", "termios"))


def needs_linux(purpose: str) -> None:
    """Refuse what only Linux can do, such as carrying out runs under a keeper."""
    if sys.platform != "linux":
        raise OtherPlatform(purpose)


def lacks_posix(error: ImportError) -> bool:
    """Whether a module is missing because this platform has none of its kind."""
    return sys.platform != "linux" and error.name in _OF_POSIX


class StoreError(IsorunError):
    """The store cannot be read or written."""


class StoreMissing(StoreError):
    """There is no store yet: nothing was recorded there. One that cannot be reached is another StoreError."""


class StoreConflict(StoreError):
    """A second, different record for something already finished."""


class StoreDamaged(StoreError):
    """The store holds something that isorun did not write.

    What can be saved, and how, is the same for all damage, so it need not be said where it is found: the store that
    hands the error on knows its own place (`at`).
    """

    def __init__(self, what: str, *, found: str = "", allowed: str = "", hint: str = "") -> None:
        super().__init__(
            what if what.startswith("the store is damaged") else f"the store is damaged: {what}",
            found=found,
            allowed=allowed or "what isorun wrote; nothing was changed, and all that is sound can be saved",
            hint=hint,
        )

    def at(self, place: str) -> StoreDamaged:
        """The same error, with what to do for the store in this folder, unless it says so itself."""
        command = f"--store {shlex.quote(place)}"
        told = f"isorun store verify {command} tells what is damaged, isorun store repair {command} saves the rest"
        return StoreDamaged(self.what, found=self.found, allowed=self.allowed, hint=self.hint or told)


class StoreTooNew(StoreError):
    """The store was written by a newer isorun."""


class StoreBusy(StoreError):
    """Another process holds the store for too long."""


class PackageError(StoreError):
    """A package is damaged, or is none."""


class RegistryError(IsorunError):
    """A registry cannot be reached, or does not take what it is given."""


class RegistryMissing(RegistryError):
    """There is no such thing in the registry, or none that the asker may see: which of the two is not told."""


class RegistryDenied(RegistryError):
    """The asker may not do that."""


class RegistryConflict(RegistryError):
    """Something else is there already."""


class NothingRecorded(IsorunError):
    """There is no run to report on."""


@contextmanager
def foreign_errors(
    refusal: Callable[[str], IsorunError], *, but: tuple[type[Exception], ...] = (IsorunError,)
) -> Iterator[None]:
    """Around code that isorun did not write: whatever it raises becomes a refusal, made from what the error says.

    but: what passes as it is; as a rule isorun's own errors, which say what is wrong already.
    """
    try:
        yield
    except but:
        raise
    except Exception as error:  # others may raise anything
        raise refusal(said_by(error)) from error


def said_by(error: BaseException) -> str:
    """An error as a message quotes it: its kind and its words."""
    return f"{type(error).__name__}: {error}"


_UNFIT: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def harmless(text: str) -> str:
    """The text on one line, without characters that could rewrite a screen, turn its direction, or not be written.

    Those are control and format characters, lone surrogates and unassigned ones; white space becomes a space.
    """
    if text.isascii() and text.isprintable():  # as nearly all are
        return text
    return "".join(_fit(char) for char in text)


def _fit(char: str) -> str:
    if char in "\n\r\t":
        return " "
    return "\N{REPLACEMENT CHARACTER}" if unicodedata.category(char) in _UNFIT else char


_PASSWORD_OF_URL: Final = re.compile(r"([A-Za-z][\w+.-]*://[^\s:@/?#]*):\S*@")
# What stands where a port would and is none may be a password whose host was forgotten.
_NO_PORT: Final = re.compile(r"""([A-Za-z][\w+.-]*://[^\s:@/?#\[]+):(?!\d*(?:[/?#\s'",;)]|$)|\*\*\*)[^\s/?#'",;)]+""")
_PASSWORD_OPTION: Final = re.compile(r"(?i)((?:^|[?&\s])(?:ssl)?password=)[^&\s]*")


def without_passwords(text: str) -> str:
    """The text without the passwords of URLs (`postgresql://user:password@host`); rather too much of one is hidden."""
    return _PASSWORD_OPTION.sub(r"\1***", _NO_PORT.sub(r"\1:***", _PASSWORD_OF_URL.sub(r"\1:***@", text)))


def known_names(name: object, known: Iterable[str]) -> str:
    """The names that are allowed, the nearest to `name` first when one is close; it may be anything a user gave."""
    names = [str(item) for item in known]
    import difflib  # noqa: PLC0415  for mistakes alone

    close = difflib.get_close_matches(str(name), names, n=1)
    listing = ", ".join(names) if names else "none"
    return f"{listing} (did you mean {close[0]!r}?)" if close else listing


_SHOWN: Final = 60
_WORDS: Final[dict[str, tuple[str, Callable[[Any], bool]]]] = {
    "None": ("None", lambda value: value is None),
    "str": ("a text", lambda value: isinstance(value, str)),
    "bool": ("True or False", lambda value: isinstance(value, bool) or type(value).__name__ == "bool_"),
    "int": ("a whole number", lambda value: isinstance(value, Integral) and not isinstance(value, bool)),
    "float": ("a number", lambda value: isinstance(value, Real) and not isinstance(value, bool)),
    "Mapping": ("a mapping", lambda value: isinstance(value, Mapping)),
    "Sequence": ("a list", lambda value: isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping))),
    "Iterable": ("a list", lambda value: isinstance(value, Iterable) and not isinstance(value, (str, bytes))),
    "Callable": ("a function", callable),
}
"""The words of an annotation that can be checked: what each is called, and whether a value is one."""
_CLASSES: Final = frozenset(
    ("AbstractExecutor", "AbstractStore", "Cell", "Decision", "Generator", "MixedResult", "Observer", "Path", "Study")
)
"""Classes that public functions take. Other names (arrays, aliases) are checked by whoever computes with the value."""


def checked(function: Callable[_Asked, _Answer], module: str) -> Callable[_Asked, _Answer]:
    """The function as others find it, in this module: InputError for an argument that its signature does not allow.

    Annotations are read as texts: most name classes that are imported only where they are used.
    """
    import inspect  # noqa: PLC0415 - only for those who work in Python

    signature = inspect.signature(function)
    allowed = {name: tuple(_words(item.annotation, function)) for name, item in signature.parameters.items()}

    @functools.wraps(function)
    def asked(*positional: _Asked.args, **named: _Asked.kwargs) -> _Answer:
        try:
            given = signature.bind(*positional, **named).arguments
        except TypeError:  # too many arguments, or too few: the call itself says it best
            given = {}
        for name, value in given.items():
            _check(f"{function.__name__}({name}=…)", value, allowed[name])
        return function(*positional, **named)

    asked.__module__ = module
    return asked


def _words(annotation: object, function: Callable[..., Any]) -> Iterator[tuple[str, str]]:
    """The alternatives of an annotation, each with what stands in its brackets. Names for several are taken apart."""
    depth, text = 0, ""
    for char in f"{annotation} |":
        depth += (char == "[") - (char == "]")
        text += char
        if depth == 0 and char == "|":
            word, _, inner = text.rstrip(" |").strip().partition("[")
            named = _named(word, function)
            yield from _words(named, function) if isinstance(named, types.UnionType) else ((word, inner[:-1]),)
            text = ""


def _named(word: str, function: Callable[..., Any]) -> object:
    """What a name stands for where the function is; None where it is imported for annotations alone."""
    first, *rest = word.split(".")
    found = getattr(function, "__globals__", {}).get(first)
    return functools.reduce(lambda item, name: getattr(item, name, None), rest, found)


def _check(where: str, value: object, allowed: Iterable[tuple[str, str]]) -> None:
    words = [(word.rpartition(".")[2], inner) for word, inner in allowed]
    fitting = [inner for word, inner in words if _fits(value, word)]
    if not fitting:
        found = f"{type(value).__name__} {value!r}"
        raise InputError(
            f"{where}: that cannot be used",
            found=found if len(found) <= _SHOWN else f"{found[: _SHOWN - 1]}…",
            allowed=" or ".join(dict.fromkeys(_WORDS[word][0] if word in _WORDS else word for word, _ in words)),
        )
    if isinstance(value, (list, tuple)) and (fitting[0] in _WORDS or fitting[0] in _CLASSES):
        for item in value:
            _check(where, item, ((fitting[0], ""),))


def _fits(value: object, word: str) -> bool:
    if word in _WORDS:
        return _WORDS[word][1](value)
    return word not in _CLASSES or any(kind.__name__ == word for kind in type(value).__mro__)
