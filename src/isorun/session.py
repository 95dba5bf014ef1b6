"""A session: a store and an executor, each opened once, by name or URL.

    with open_session("runs", "local", jobs=4) as session: …

A store is a folder, or a URL whose scheme some distribution brings (entry-point group `isorun.stores`); an executor is
`local`, or a name that some distribution brings (`isorun.executors`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from isorun.errors import IsorunError, PluginError

if TYPE_CHECKING:
    from isorun.execution import AbstractExecutor
    from isorun.store import AbstractStore

__all__ = [
    "STORE_NAME",
    "ExecutorOptions",
    "Session",
    "is_there",
    "open_executor",
    "open_session",
    "open_store",
    "runs_folder",
    "store_place",
]

STORE_NAME: Final = ".isorun"
_FOLDER: Final = "folder"
_LOCAL: Final = "local"
_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")


@dataclass(frozen=True, slots=True)
class ExecutorOptions:
    """What every executor is opened with; one that has no use for an option leaves it alone.

    runs: where the folders of runs lie. jobs: runs at a time. launch: "auto", "warm" or "fresh". devices: "auto",
    "none", or those that may be used ("0,1"). python: what a leading `python` stands for where the study does not say;
    without it, what the PATH says.
    """

    runs: Path
    jobs: int = 1
    launch: str = "auto"
    devices: str = "auto"
    python: str = ""


class Session:
    """A store and an executor. The executor is opened when it is first used: often nothing is left to run."""

    def __init__(self, store: AbstractStore, executor: str | AbstractExecutor, options: ExecutorOptions) -> None:
        self.store = store
        self._asked = executor
        self._options = options
        self._opened: AbstractExecutor | None = None

    @property
    def executor(self) -> AbstractExecutor:
        """What carries out jobs."""
        if not isinstance(self._asked, str):
            return self._asked
        if self._opened is None:
            self._opened = open_executor(self._asked, self._options)
        return self._opened

    def close(self) -> None:
        """End the executor, if this session opened one."""
        if self._opened is not None:
            self._opened.close()


def store_place(store: str | Path | None, folder: str | Path = ".") -> str:
    """Where records are kept: as said, else as ISORUN_STORE says, else `.isorun` in the folder."""
    chosen = store or os.environ.get("ISORUN_STORE")
    return str(chosen) if chosen else str(Path(folder) / STORE_NAME)


def is_there(place: str) -> bool:
    """Whether there is a store to read from, so that a mistyped folder does not become one.

    A store behind a URL is asked only when it is opened.
    """
    return _URL.match(place) is not None or any((Path(place) / name).exists() for name in ("store.sqlite", "inbox"))


def open_store(place: str, *, create: bool = True) -> AbstractStore:
    """The store in a folder, or behind a URL; made there when it is missing and `create` says so."""
    url = _URL.match(place)
    if url is None:
        from isorun.store.folder import FolderStore

        return FolderStore(Path(place), create=create)
    from isorun import plugins
    from isorun.store import AbstractStore

    scheme = url[1].lower()
    factory = plugins.load(plugins.STORES, scheme, own=(_FOLDER,))
    store = _made_by(f"store {scheme!r}", factory, place, create=create)
    if not isinstance(store, AbstractStore):
        raise _wrong_kind(f"store {scheme!r}", store, "AbstractStore")
    return store


def open_executor(name: str, options: ExecutorOptions) -> AbstractExecutor:
    """The executor of this name."""
    if name == _LOCAL:
        from isorun.execution.local import LocalExecutor

        return LocalExecutor(
            options.runs, options.jobs, launch=options.launch, devices=options.devices, python=options.python
        )
    from isorun import plugins
    from isorun.execution import AbstractExecutor

    factory = plugins.load(plugins.EXECUTORS, name, own=(_LOCAL,))
    executor = _made_by(f"executor {name!r}", factory, options)
    if not isinstance(executor, AbstractExecutor):
        raise _wrong_kind(f"executor {name!r}", executor, "AbstractExecutor")
    return executor


@contextmanager
def open_session(
    store: str | AbstractStore, executor: str | AbstractExecutor = _LOCAL, options: ExecutorOptions | None = None
) -> Iterator[Session]:
    """A store and an executor, opened by name or URL and closed at the end; what others opened stays open."""
    if isinstance(executor, str) and executor != _LOCAL:
        from isorun import plugins

        plugins.load(plugins.EXECUTORS, executor, own=(_LOCAL,))  # a wrong name is refused before a store is made
    with ExitStack() as stack:
        opened = stack.enter_context(open_store(store)) if isinstance(store, str) else store
        session = Session(opened, executor, options or ExecutorOptions(runs_folder(store)))
        stack.callback(session.close)  # before the store: whatever ends now is still told to those who wait
        yield session


def runs_folder(store: str | AbstractStore, folder: str | Path = ".") -> Path:
    """Where the folders of runs lie: in a store that is a folder, else in `.isorun` of the study's folder."""
    place = getattr(store, "folder", None) if not isinstance(store, str) else None if _URL.match(store) else store
    return Path(place or Path(folder) / STORE_NAME) / "runs"


def _made_by(what: str, factory: Any, *arguments: Any, **options: Any) -> Any:
    """What a distribution's factory makes; whatever it raises names it."""
    try:
        return factory(*arguments, **options)
    except IsorunError:
        raise
    except Exception as error:  # whatever another distribution may raise
        raise PluginError(f"the {what} cannot be opened", found=f"{type(error).__name__}: {error}") from error


def _wrong_kind(what: str, made: object, base: str) -> PluginError:
    return PluginError(f"the {what} cannot be used", found=type(made).__name__, allowed=f"a subclass of {base}")
