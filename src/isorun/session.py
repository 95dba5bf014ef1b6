"""What people name, opened once: a study by its file or name, a run by its id, a store and executor by name or URL.

    with open_session("runs", "local", ExecutorOptions(Path("runs/runs"), jobs=4)) as session: …

A store is a folder (`runs`, `folder:///data/runs`), a PostgreSQL database (`postgresql://lab/isorun`), or a URL whose
scheme some distribution brings (entry-point group `isorun.stores`). A package (`resnet56.isorun`,
`registry:lab/cifar10/resnet56@3`) is a study and a store to read from. An executor is `local`, `ray`, `slurm`, or a
name that some distribution brings (`isorun.executors`), alone or as the scheme of a URL that tells it more
(`slurm://gpu?account=x`).
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from isorun.errors import (
    ExecutionError,
    IsorunError,
    MissingExtra,
    NothingRecorded,
    OtherPlatform,
    PluginError,
    StoreError,
    StoreMissing,
    StudyError,
    UsageError,
    foreign_errors,
    known_names,
    lacks_posix,
    needs_linux,
)
from isorun.store import STUDIES, AbstractStore, given_place, shown_place
from isorun.study.design import Study, kept_study, load_study
from isorun.study.records import RunRecord

if TYPE_CHECKING:
    from isorun.execution import AbstractExecutor

__all__ = [
    "PACKAGE_SUFFIX",
    "STORE_NAME",
    "ExecutorOptions",
    "Session",
    "Store",
    "alone",
    "blaming",
    "folder_of",
    "is_package",
    "is_postgres",
    "is_registered",
    "is_there",
    "open_executor",
    "open_existing_store",
    "open_session",
    "open_store",
    "opened",
    "place_of",
    "recalled",
    "recorded",
    "run_named",
    "runs_folder",
    "store_if_there",
    "store_place",
    "study_as_kept",
]

Store = str | Path | AbstractStore | None

_LOOK_AGAIN: Final = 0.01
"""Seconds between two looks at a claim that somebody else holds."""
STORE_NAME: Final = ".isorun"
PACKAGE_SUFFIX: Final = ".isorun"
_CLOSE: Final = 5
_FIRST_SHOWN: Final = 10
_FOLDER: Final = "folder"
_REGISTERED: Final = "registry:"
_POSTGRES: Final = ("postgresql", "postgres")
_LOCAL: Final = "local"
_RAY: Final = "ray"
_SLURM: Final = "slurm"
_OWN_EXECUTORS: Final = (_LOCAL, _RAY, _SLURM)
_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")


@dataclass(frozen=True, slots=True)
class ExecutorOptions:
    """What every executor is opened with; one that has no use for an option leaves it alone.

    run_folders: where those of runs lie. jobs: runs at a time; None where nobody said, which an executor of another
    distribution is told as 1. launch: "auto", "warm" or "fresh". devices: "auto", "none", or those that may be used
    ("0,1"). python: what a leading `python` stands for where the study does not say; without it, what the PATH says. It
    goes with every job, so that an executor need not look at it. url: the executor as it was asked for, where that was
    by a URL. settings: what stands behind the question mark of that URL.
    """

    run_folders: Path
    jobs: int | None = None
    launch: str = "auto"
    devices: str = "auto"
    python: str = ""
    url: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)


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

    @property
    def executor_name(self) -> str:
        """The executor's name, which need not be open for that; empty for one that was handed over."""
        return _executor_name(self._asked) if isinstance(self._asked, str) else ""

    @property
    def run_folders(self) -> Path:
        """Where the folders of runs lie."""
        return self._options.run_folders

    @property
    def python(self) -> str:
        """What a leading `python` stands for in every job of this session; empty for what the PATH says."""
        return self._options.python

    @property
    def owns_executor(self) -> bool:
        """Whether the executor is this session's to close; one that was handed over is used by others, too."""
        return isinstance(self._asked, str)

    def close(self) -> None:
        """End the executor, if this session opened one."""
        if self._opened is not None:
            with blaming("executor", self._opened):
                self._opened.close()


def blaming(kind: str, part: object, *, but: tuple[type[Exception], ...] = ()) -> AbstractContextManager[None]:
    """Whatever a store or an executor of another distribution raises in here names it. but: what passes as it is.

    isorun's own raise errors of their own; anything else of theirs is a mistake in isorun, and shown as one.
    """
    name = f"{type(part).__module__}.{type(part).__qualname__}"
    if name.startswith("isorun."):
        return nullcontext()
    hint = "tell those who made it; what was recorded before stays recorded"
    return foreign_errors(
        lambda said: PluginError(f"the {kind} {name} failed", found=said, hint=hint), but=(IsorunError, *but)
    )


@contextmanager
def alone(store: AbstractStore, name: str, patience: float) -> Iterator[bool]:
    """Whether nobody else holds the claim of this name, which then stays so. A holder that dies lets go.

    patience: seconds that others are waited for.
    """
    with blaming("store", store):
        until = time.monotonic() + patience
        while (claim := store.claim(name)) is None and time.monotonic() < until:
            time.sleep(_LOOK_AGAIN)
    try:
        yield claim is not None
    finally:
        if claim is not None:
            with blaming("store", store):
                claim.release()


def store_place(store: str | Path | None, folder: str | Path = ".") -> str:
    """Where records are kept: as said, else as ISORUN_STORE says, else `.isorun` in the folder."""
    chosen = (os.environ.get("ISORUN_STORE") or None) if store is None else str(store)
    return str(Path(folder) / STORE_NAME) if chosen is None else shown_place(str(folder_of(chosen) or chosen))


def folder_of(place: str) -> Path | None:
    """The folder that a place names, as it is or as `folder://…`; None where it is the URL of something else."""
    url = _URL.match(place)
    if url is not None and url[1].lower() != _FOLDER:
        return None
    if url is None and place.partition(":")[0].lower() in _POSTGRES and ":" in place:
        raise StoreError(
            "the store is no URL, though it begins as that of a PostgreSQL database does",
            allowed="postgresql://user@host:5432/database",
            hint="./ before the name of a folder that is called so",
        )
    if url is None and is_registered(place):
        raise StoreError(
            f"{place} is no store",
            found="a package of a registry",
            allowed="a folder, postgresql://user@host:5432/database",
            hint=f"isorun pull {place} brings its file, which can be read from; ./ before the name of a folder",
        )
    rest = place if url is None else place[url.end() :]
    if not rest:
        raise StoreError(f"the store {place!r} names no folder", allowed=f"{_FOLDER}:///data/runs, or only the path")
    return Path(rest)


def is_postgres(place: str) -> bool:
    """Whether the place is a PostgreSQL database."""
    return place.partition("://")[0].lower() in _POSTGRES and "://" in place


def is_there(place: str) -> bool:
    """Whether there is a store to read from, so that a mistyped folder does not become one.

    A store behind a URL is asked only when it is opened.
    """
    folder = folder_of(place)
    return folder is None or is_package(folder) or any((folder / name).exists() for name in ("store.sqlite", "inbox"))


def open_store(place: str, *, create: bool = True) -> AbstractStore:
    """The store in a folder, or behind a URL; made there when it is missing and `create` says so."""
    folder = folder_of(place)
    if folder is not None and is_package(folder):
        from isorun.packages.opened import PackageStore

        return PackageStore(folder)
    if folder is not None:
        try:
            from isorun.store.folder import FolderStore
        except ImportError as error:
            if lacks_posix(error):
                raise OtherPlatform("a store in a folder") from None
            raise

        return FolderStore(folder, create=create)
    if is_postgres(place):
        try:
            from isorun.store.postgres import PostgresStore
        except ImportError:  # psycopg is not there, or the library that it needs
            raise MissingExtra("psycopg", "postgres", "a store in PostgreSQL") from None
        return PostgresStore(given_place(place), create=create)
    from isorun import plugins

    scheme, own = place.partition("://")[0].lower(), (_FOLDER, *_POSTGRES)
    store: AbstractStore = plugins.make(
        plugins.STORES, scheme, AbstractStore, given_place(place), own=own, create=create
    )
    return store


def is_package(place: str | Path) -> bool:
    """Whether a file is named that is a package by its name, whether it is there or not."""
    path = Path(place)
    return path.suffix == PACKAGE_SUFFIX and not path.is_dir()


def is_registered(place: str | Path) -> bool:
    """Whether a package of a registry is named, such as registry:lab/cifar10/resnet56@3."""
    return str(place).startswith(_REGISTERED)


def open_existing_store(place: str) -> AbstractStore:
    """The store that is there: reading makes none. StoreMissing where there is none."""
    if not is_there(place):
        raise StoreMissing(
            f"there is no store {shown_place(place)}",
            hint="name one that is there; isorun run study.toml --store STORE makes one",
        )
    # A folder with nothing but an inbox is a store whose database is made again.
    return open_store(place, create=folder_of(place) is not None)


def open_executor(asked: str, options: ExecutorOptions) -> AbstractExecutor:
    """The executor of this name, or of the scheme of this URL."""
    name, jobs = _executor_name(asked), 1 if options.jobs is None else options.jobs
    if name == _LOCAL:
        needs_linux("carrying out runs")
        from isorun.execution.local import LocalExecutor

        return LocalExecutor(options.run_folders, jobs, launch=options.launch, devices=options.devices)
    if jobs < 1:
        raise ExecutionError("--jobs is too small", found=str(jobs), allowed="1 or more")
    from isorun import plugins
    from isorun.execution import AbstractExecutor

    told = options if name == asked else replace(options, url=asked, settings=_settings_of(asked))
    if name == _RAY:
        from isorun.execution.ray import RayExecutor

        return RayExecutor(
            told.run_folders, told.jobs, launch=told.launch, devices=told.devices, url=told.url, settings=told.settings
        )
    if name == _SLURM:
        from isorun.execution.slurm import SlurmExecutor

        return SlurmExecutor(told.run_folders, told.settings, url=told.url, jobs=told.jobs)
    told = replace(told, jobs=jobs)
    executor: AbstractExecutor = plugins.make(plugins.EXECUTORS, name, AbstractExecutor, told, own=_OWN_EXECUTORS)
    return executor


def _settings_of(url: str) -> dict[str, str]:
    """What stands behind the question mark of an executor's URL; each setting has one value."""
    from urllib.parse import parse_qsl, urlsplit

    settings: dict[str, str] = {}
    for name, value in parse_qsl(urlsplit(url).query, keep_blank_values=True):
        if settings.setdefault(name, value) != value:
            raise PluginError(f"the executor's setting {name!r} has two values", found=f"{settings[name]}, {value}")
    return settings


def _executor_name(asked: str) -> str:
    url = _URL.match(asked)
    if url is None:
        scheme = asked.partition(":")[0]
        return scheme if scheme == _RAY else asked  # `ray:HOST:PORT`: behind `//` stands what Ray's Client connects to
    if url[1].lower() == _LOCAL:
        raise PluginError(f"the executor {_LOCAL!r} takes no URL", found=asked, allowed=_LOCAL)
    return url[1].lower()


def _refuse_unknown(name: str) -> None:
    """A wrong name, or what is not installed, is refused before a store is made."""
    if name == _RAY and find_spec("ray") is None:
        raise MissingExtra("ray", "ray", "running on Ray")
    if name not in _OWN_EXECUTORS:
        from isorun import plugins

        plugins.load(plugins.EXECUTORS, name, own=_OWN_EXECUTORS)


@contextmanager
def open_session(
    store: str | AbstractStore, executor: str | AbstractExecutor = _LOCAL, options: ExecutorOptions | None = None
) -> Iterator[Session]:
    """A store and an executor, opened by name or URL and closed at the end; what others opened stays open."""
    if isinstance(executor, str):
        _refuse_unknown(_executor_name(executor))
    with ExitStack() as stack:
        opened = stack.enter_context(open_store(store)) if isinstance(store, str) else store
        session = Session(opened, executor, options or ExecutorOptions(runs_folder(store)))
        stack.callback(session.close)  # before the store: whatever ends now is still told to those who wait
        yield session


def runs_folder(store: str | AbstractStore, folder: str | Path = ".") -> Path:
    """Where the folders of runs lie: in a store that is a folder, else in `.isorun` of the study's folder."""
    place: Path | None
    if isinstance(store, str):
        place = folder_of(store)
    else:
        from isorun.store.folder import FolderStore

        place = store.folder if isinstance(store, FolderStore) else None
    return (place or Path(folder) / STORE_NAME) / "runs"


def place_of(study: Study | None, store: Store) -> str | AbstractStore:
    """Where records are kept: as said, else beside the study, else in this folder."""
    return store if isinstance(store, AbstractStore) else store_place(store, study.folder if study else ".")


@contextmanager
def opened(source: str | Path | Study | None, store: Store = None) -> Iterator[tuple[Study, Store]]:
    """The study, and the store of its records: of one that is named, the store that keeps it, which is open already.

    source: None for the latest study that is kept. So whoever asks for a study by its name opens one store, once.
    """
    if isinstance(source, Study):
        yield source, store
        return
    if source is not None and not isinstance(source, (str, Path)):
        raise StudyError(
            "that is no study",
            found=f"{source!r:.60}",
            allowed="a study file, the name of an earlier study, or an isorun.Study",
        )
    if isinstance(source, str) and is_registered(source):
        from isorun.registries import fetched

        source = fetched(source)
    path = Path(source or "")
    if path.suffix == ".toml" and path.is_file():
        yield load_study(path), store
        return
    if is_package(path):
        _refuse_second_store(path, store)
        with open_store(str(path)) as package:
            yield recalled(package.documents(STUDIES).names()[0], package), package
        return
    with store_if_there(place_of(None, store)) as kept:
        names = () if kept is None else kept.documents(STUDIES).names()
        if kept is not None and (str(source) in names or (source is None and names)):
            yield recalled(names[0] if source is None else str(source), kept), kept
            return
        found = "" if names or not isinstance(store, (str, Path)) else _looked_in(str(store), is_store=kept is not None)
    yield _not_kept(source, path, names, found), store


def _looked_in(place: str, *, is_store: bool) -> str:
    """Why no study was found in a place that somebody named."""
    return f"{shown_place(place)} keeps no study" if is_store else f"there is no store {shown_place(place)}"


def _refuse_second_store(path: Path, store: Store) -> None:
    if store is not None and str(store) != str(path):
        raise UsageError(f"the package {path} holds its runs itself", hint="leave --store out")


def _not_kept(source: str | Path | None, path: Path, names: Sequence[str], found: str) -> Study:
    """The study of a file after all; an error where there is none. found: what is known of the store that was named."""
    if source is None:
        raise NothingRecorded(
            "no study is named, and none is kept by its name in this folder" if not found else "no study is named",
            found=found,
            hint="isorun report study.toml, or isorun run -n 16 -- python train.py first; what isorun price or bisect "
            "measured is told again, without new runs, when the same is typed again",
        )
    if path.suffix == ".toml" or (path.exists() and str(source)):
        return load_study(path)
    what = f"there is neither a study file nor an earlier study {str(source)!r}"
    is_command = " " in str(source).strip()
    hint = f"isorun run -- {source}" if is_command else "isorun run study.toml, or isorun run -- COMMAND"
    raise StudyError(what, found=found, allowed=known_names(str(source), names), hint=hint)


def recalled(name: str, store: AbstractStore) -> Study:
    """The study that is kept under this name; one of a study file is that of the file, as long as it is there."""
    kept = store.documents(STUDIES)
    try:
        document = kept.read(name) or {}
        folder, file = Path(document.pop("folder")), Path(document.pop("file", ""))
        if file.name and file.is_file() and (declared := load_study(file)).name == name:
            return declared  # as the file says it now
    except (IsorunError, KeyError, TypeError) as error:
        what = f"the kept study {kept.place(name)} cannot be read: {error}"
        raise StudyError(what, hint="type the command again: its finished runs are kept") from None
    return kept_study(document, folder, name)


def study_as_kept(name: str, store: AbstractStore) -> Study:
    """The study as it was declared when it was last kept under this name, whatever its file says by now."""
    document = dict(store.documents(STUDIES).read(name) or {})
    folder = Path(document.pop("folder"))
    return kept_study(document, folder, name)


@contextmanager
def _existing(place: str | AbstractStore) -> Iterator[AbstractStore]:
    """The store there, for reading: none is made. Whatever a store of others raises names it."""
    opening = nullcontext(place) if isinstance(place, AbstractStore) else open_existing_store(place)
    with opening as opened, blaming("store", opened):
        yield opened


@contextmanager
def store_if_there(place: str | AbstractStore) -> Iterator[AbstractStore | None]:
    """The store there; None where there is none."""
    with ExitStack() as stack:
        try:
            found = stack.enter_context(_existing(place))
        except StoreMissing:
            found = None
        yield found


@contextmanager
def recorded(store: Store, study: Study | None) -> Iterator[AbstractStore]:
    """The store to read runs from."""
    place = place_of(study, store)
    with store_if_there(place) as found:
        if found is None:
            raise NothingRecorded(
                f"nothing has been recorded for {f'the study {study.name!r}' if study else 'any study'}",
                found=f"there is no store {place if isinstance(place, AbstractStore) else shown_place(place)}",
                hint="isorun run makes the runs; --store names a store that lies elsewhere",
            )
        yield found


def run_named(run: str | RunRecord, store: Store = None) -> RunRecord:
    """The run of this id, or of the only cell whose id begins so; of several attempts the newest."""
    if isinstance(run, RunRecord):
        return run
    if is_package(run):
        raise NothingRecorded(
            f"{run} is a package, not a run",
            allowed="the id of one of its runs, or the start of it",
            hint=f"isorun report {run} --full lists its runs; then the same command with RUN --store {run}",
        )
    with recorded(place_of(None, store), None) as kept:
        known = sorted(kept.run_ids())
        fitting = [name for name in known if name == run] or [name for name in known if run and name.startswith(run)]
        cells = {name.partition("-")[0] for name in fitting}
        if len(cells) != 1:
            raise _not_one(run, fitting, known, kept)
        newest = max(int(name.partition("-")[2]) for name in fitting)
        return next(record for record in kept.records(cells) if record.attempt == newest)


def _not_one(run: str, fitting: list[str], known: list[str], kept: AbstractStore) -> NothingRecorded:
    if fitting:
        shown = ", ".join(fitting[:_FIRST_SHOWN]) + (
            f" and {len(fitting) - _FIRST_SHOWN} more" if len(fitting) > _FIRST_SHOWN else ""
        )
        return NothingRecorded(f"several runs begin with {run!r}", found=shown, hint="write more of the id")
    import difflib

    close = difflib.get_close_matches(run, known, n=_CLOSE, cutoff=0.3)
    place = str(getattr(kept, "folder", "") or "this store")
    return NothingRecorded(
        f"there is no run {run!r} in {place}",
        allowed=f"close ones: {', '.join(close)}"
        if close
        else f"{', '.join(known[:_FIRST_SHOWN])}" or "none: it is empty",
        hint="isorun run --json lists the runs of a study; --store names a store that lies elsewhere",
    )
