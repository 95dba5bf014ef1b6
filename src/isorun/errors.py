"""Every error a user can meet.

    IsorunError
    ├── UsageError          the words on a command line do not fit together (exit code 2)
    ├── StudyError          the study file or Study object says something that cannot be run
    ├── InputError          a table, formula, file or argument given to an analysis cannot be used
    ├── DataError           a data set is missing, damaged, or could not be downloaded
    ├── MissingExtra        an optional part is needed and not installed
    ├── PluginError         a part that another distribution brings is not there or cannot be loaded
    ├── ExecutionError      a run could not be started or watched
    ├── StoreError          the store cannot be read or written
    │   ├── StoreMissing    there is no store yet
    │   ├── StoreConflict   a second, different record for something already finished
    │   ├── StoreDamaged    the store holds something that isorun did not write
    │   ├── StoreTooNew     the store was written by a newer isorun
    │   └── StoreBusy       another process holds the store for too long
    └── NothingRecorded     there is no run to report on

Each message says what failed, what was found, what is allowed, and what to do next. Only the command line exits;
it prints the message without a traceback and returns exit code 1 (2 for UsageError).
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterable

__all__ = [
    "DataError",
    "ExecutionError",
    "InputError",
    "IsorunError",
    "MissingExtra",
    "NothingRecorded",
    "PluginError",
    "StoreBusy",
    "StoreConflict",
    "StoreDamaged",
    "StoreError",
    "StoreMissing",
    "StoreTooNew",
    "StudyError",
    "UsageError",
    "known_names",
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
    """An optional part is needed and not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed",
            hint=f"pip install 'isorun[{extra}]'",
        )


class PluginError(IsorunError):
    """A part that another distribution brings is not there or cannot be loaded."""


class ExecutionError(IsorunError):
    """A run could not be started or watched."""


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


class NothingRecorded(IsorunError):
    """There is no run to report on."""


def known_names(name: str, known: Iterable[str]) -> str:
    """The names that are allowed, the nearest to `name` first when one is close."""
    names = [str(item) for item in known]
    close = difflib.get_close_matches(name, names, n=1)
    listing = ", ".join(names) if names else "none"
    return f"{listing} (did you mean {close[0]!r}?)" if close else listing
