"""Files that the training writes, and reads back: runs that meet in a file are not what they seem.

Seen by an audit hook: Python tells of a file before it opens it. What libraries open in code of their own is not told,
unless what they save with is wrapped (`telling`, `follow`). Only what may matter to another run is recorded: a file
that was there before this process wrote to it, and one that it wrote and read again. What is only appended to is a log,
unless it is read. What is only read is data: its name and time are told, so that an edit of it can be noticed later.

Where the run works in a copy of its folder, what is large is a link there. A file that is about to be written to
through such a link becomes a copy first.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
from types import ModuleType
from typing import Any, Callable

from . import frameworks, levels
from .usercode import ISORUN, is_generated, is_library_file

_MOST_FILES = 2_000
_MOST_TOLD = 20
_MOST_INPUTS = 32
_MOST_TIMES = 50
_SYSTEM = ("/dev/", "/proc/", "/sys/")
# Caches, and what tools keep of all runs together, each under a name of its own.
_OF_TOOLS = (
    "/.cache/",
    "/__pycache__/",
    "/.git/",
    "/.hydra/",
    "/.ipynb_checkpoints/",
    "/.ipython/",
    "/.jupyter/",
    "/mlruns/",
    "/wandb/",
)
# Ways to write to a file that Python tells of apart from opening it; they matter where the file may be an original.
_IN_PLACE = frozenset(("os.truncate", "sqlite3.connect"))
_STARTS = frozenset(("subprocess.Popen", "os.exec", "os.posix_spawn"))
_CODE = (".py", ".pyc", ".so", ".pth", ".dist-info", "pyproject.toml", ".cfg")
# Where no data lie, outside the folder that the training works in.
_NO_DATA = (*_SYSTEM, "/etc/", "/usr/", "/lib", "/bin/", "/run/", "/var/", "/tmp/")  # noqa: S108  nothing is made there


class _Touched:
    """One file. found: its time before it was first written to here; None where it was not there, or was ours.

    read: times of reading, each with the time of the file and that of the last own writing before. is_log: whether it
    was written to at its end alone.
    """

    __slots__ = ("found", "is_log", "read", "wrote")

    def __init__(self) -> None:
        self.found: float | None = None
        self.is_log = False
        self.wrote: list[float] = []
        self.read: list[tuple[float, float, float | None]] = []

    def told(self) -> dict[str, Any]:
        return {"found": self.found, "wrote": self.wrote[-_MOST_TIMES:], "read": self.read}

    @property
    def matters(self) -> bool:
        """Whether it was there before, or read again: what only this run made and nobody read says nothing.

        What runs append to they do not take from each other, unless they read it, too.
        """
        return bool(self.wrote) and (bool(self.read) or (self.found is not None and not self.is_log))


class TouchedFiles:
    """What this process writes and reads. It never raises into the training: an audit hook that does, stops it."""

    def __init__(self, run_folder: str, folder: str, origin: str) -> None:
        self._files: dict[str, _Touched] = {}
        self._databases: dict[str, float] = {}  # those that were there, with their times when they were first opened
        self._folder = os.path.join(folder, "")  # noqa: PTH118  what names are compared with
        self._run_folder = os.path.join(run_folder, "")  # noqa: PTH118
        self._workspace = os.path.join(run_folder, levels.WORKSPACE, "")  # noqa: PTH118
        self._origin = os.path.join(origin, "") if origin else ""  # noqa: PTH118
        self._left_alone = tuple(os.path.join(place, "") for place in {sys.prefix, sys.base_prefix})  # noqa: PTH118
        self._only_read = 0  # a data set must leave room for what is written
        self._busy = threading.local()
        self._ended = False

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """What Python is about to do with a file; `saved` is what those who save in code of their own tell."""
        if self._ended or getattr(self._busy, "on", False):
            return
        self._busy.on = True
        try:
            if event == "open":
                self._opens(arguments[0], arguments[2])
            elif event == "sqlite3.connect":  # a database that is only read is opened in the same way
                self._keep_original(arguments[0])
                self._connects(arguments[0])
            elif event == "os.truncate":
                self.writes(arguments[0], truncates=False)
            else:
                self.writes(arguments[1 if event == "os.rename" else 0])
        except Exception:  # noqa: S110  whatever a path may be: the training goes on
            pass
        finally:
            self._busy.on = False

    def _opens(self, path: Any, flags: Any) -> None:
        if not isinstance(path, (str, bytes)) or not isinstance(flags, int):
            return
        if flags & os.O_ACCMODE == os.O_RDONLY:
            self._reads(path)
        elif not self._is_folder(path):
            self.writes(path, truncates=bool(flags & os.O_TRUNC), appends=bool(flags & os.O_APPEND))

    def _is_folder(self, path: str | bytes) -> bool:
        """Whether a folder stands for a file in it that has no name (`tempfile.TemporaryFile`) and no other opens."""
        return path not in self._files and os.path.isdir(path)  # noqa: PTH112

    def _named(self, path: Any) -> str:
        """The whole path of a file that other runs may meet in; empty for any other."""
        name = os.path.abspath(os.fsdecode(path))  # noqa: PTH100  a million times
        if name in self._files:
            return name
        if len(self._files) >= _MOST_FILES:
            return ""
        if name.startswith(self._run_folder) and not name.startswith(self._workspace):
            return ""
        if name.startswith(_SYSTEM) or name.startswith(ISORUN) or any(part in name for part in _OF_TOOLS):
            return ""
        is_own = name.startswith(self._folder)
        if not is_own and (name.startswith(self._left_alone) or is_library_file(name)):
            return ""
        return "" if is_generated(name) else name

    def writes(self, path: Any, *, truncates: bool = True, appends: bool = False) -> None:
        """The training is about to write to a file. appends: only at its end."""
        if not isinstance(path, (str, bytes, os.PathLike)):
            return
        name = self._named(path)
        if not name:
            return
        if self._origin:
            self._unlink_original(name, truncates)
        touched = self._files.setdefault(name, _Touched())
        if not touched.wrote:
            touched.found = _time_of(name)
        touched.is_log = (touched.is_log or not touched.wrote) and appends and not truncates
        touched.wrote.append(time.time())
        if len(touched.wrote) > 2 * _MOST_TIMES:
            del touched.wrote[1:-_MOST_TIMES]

    def _reads(self, path: str | bytes) -> None:
        if os.fsdecode(path).endswith(_CODE):
            return
        name = self._named(path)
        found = _time_of(name) if name else None
        if found is None or (name not in self._files and self._only_read >= _MOST_FILES // 2):
            return
        touched = self._files.setdefault(name, _Touched())
        self._only_read += not (touched.read or touched.wrote)
        own = touched.wrote[-1] if touched.wrote else None
        if len(touched.read) < _MOST_TIMES and (not touched.read or touched.read[-1][2] != own):
            touched.read.append((time.time(), found, own))

    def _connects(self, path: Any) -> None:
        """A database may be read alone: its time at the end says whether it was written to. Hidden ones are tools'."""
        name = self._named(path) if isinstance(path, (str, bytes, os.PathLike)) else ""
        found = _time_of(name) if name and "/." not in name else None
        if found is not None and len(self._databases) < _MOST_TOLD:
            self._databases.setdefault(name, found)

    def _keep_original(self, path: Any) -> None:
        """Something is about to be opened that may be written to."""
        if self._origin and isinstance(path, (str, bytes, os.PathLike)):
            self._unlink_original(os.path.abspath(os.fsdecode(path)), truncates=False)  # noqa: PTH100

    def _unlink_original(self, name: str, truncates: bool) -> None:
        """In place of a link to an original, its copy: the original is every run's."""
        if not name.startswith(self._workspace) or not os.path.islink(name):  # noqa: PTH114
            return
        original = os.readlink(name)  # noqa: PTH115
        if not original.startswith(self._origin) or not os.path.isfile(original):  # noqa: PTH113
            return
        own = f"{name}.{os.getpid()}.copy"
        if truncates:
            os.unlink(name)  # noqa: PTH108
        else:
            import shutil  # every child Python would pay for it

            shutil.copy2(original, own)
            os.replace(own, name)  # noqa: PTH105

    def end(self) -> None:
        """The training has ended: what the worker keeps between runs, wherever that is, is not the training's."""
        self._ended = True

    def told(self) -> dict[str, Any]:
        """By its path, each file that another run may have met."""
        matter = sorted(name for name, touched in self._files.items() if touched.matters)
        # A model that is only read may be what another run trained; what was written comes first.
        loaded = sorted(
            name
            for name, touched in self._files.items()
            if touched.read and not touched.wrote and frameworks.is_model_file(name)
        )
        told = {name: self._files[name].told() for name in (*matter, *loaded)[:_MOST_TOLD]}
        for name, found in self._databases.items():
            now = _time_of(name)
            if now is not None and now > found:
                told.setdefault(name, {"found": found, "wrote": [now], "read": []})
        return told

    def inputs(self) -> dict[str, float]:
        """By its path, each file that was read and not written, with its time then; those near the top first."""
        found = [name for name, touched in self._files.items() if touched.read and not touched.wrote]
        data = sorted((name.count(os.sep), name) for name in found if self._may_be_data(name))
        return {name: self._files[name].read[0][1] for _, name in data[:_MOST_INPUTS]}

    def _may_be_data(self, name: str) -> bool:
        """Whether it is no setting of a user or a system: what is hidden is none of the training's."""
        is_own = name.startswith(self._folder)
        shown = name[len(self._folder) - 1 :] if is_own else name
        return "/." not in shown and (is_own or not name.startswith(_NO_DATA))


def _time_of(name: str) -> float | None:
    try:
        return os.stat(name).st_mtime  # noqa: PTH116
    except OSError:
        return None


_touched: TouchedFiles | None = None


def begin(run_folder: str) -> TouchedFiles:
    """Look from now on, once a process: an audit hook stays for good."""
    global _touched  # noqa: PLW0603  one a process
    _touched = TouchedFiles(run_folder, os.getcwd(), os.environ.get(levels.COPY_OF, ""))  # noqa: PTH109
    hear = _touched.hear

    def told(event: str, arguments: tuple[Any, ...]) -> None:
        """Python tells of hundreds of other things: a function as plain as this takes a fourth of a method's time."""
        if event == "open" or event == "os.rename" or event in in_place:  # noqa: PLR1714  as above
            hear(event, arguments)
        elif event in _STARTS:
            _begins(arguments)

    in_place = _IN_PLACE if os.environ.get(levels.COPY_OF) else frozenset(("sqlite3.connect",))
    sys.addaudithook(told)
    return _touched


def _begins(arguments: tuple[Any, ...]) -> None:
    try:
        from . import starting  # few trainings start programs

        starting.told(arguments)
    except Exception:  # noqa: S110  whatever it was given: the training goes on
        pass


def telling(save: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which is given an object and where to write it, and tells of the file before it writes it."""

    @functools.wraps(save)
    def told(obj: Any, f: Any, *arguments: Any, **options: Any) -> Any:
        if _touched is not None and isinstance(f, (str, os.PathLike)):
            _touched.hear("saved", (f,))
        return save(obj, f, *arguments, **options)

    told.tells_isorun = True  # type: ignore[attr-defined]
    return told


_FLAGS = {"r": os.O_RDONLY, "r+": os.O_RDWR, "a": os.O_RDWR | os.O_CREAT}
_ANEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC


def follow(module: ModuleType) -> None:
    """From now on the methods of a module tell of files that they open in code of their own."""
    for owner, name, mode in frameworks.FILES_OPENED[module.__name__]:
        kind = getattr(module, owner, None)
        if hasattr(kind, name):
            setattr(kind, name, _telling_method(getattr(kind, name), mode))


def _telling_method(original: Callable[..., Any], always: str) -> Callable[..., Any]:
    @functools.wraps(original)
    def told(self: Any, *args: Any, **kwargs: Any) -> Any:
        path = args[0] if args else next(iter(kwargs.values()), None)
        if _touched is not None and isinstance(path, (str, bytes, os.PathLike)):
            mode = always or (args[1] if len(args) > 1 else kwargs.get("mode", "r"))
            _touched.hear("open", (os.fspath(path), mode, _FLAGS.get(mode, _ANEW)))
        return original(self, *args, **kwargs)

    return told
