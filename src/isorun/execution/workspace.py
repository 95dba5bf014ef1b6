"""A folder of a run's own: a copy of the working folder beside the record, so that runs do not meet in their files.

Files are cloned where the file system shares blocks between copies, else copied. What is large is linked, file by file:
so whatever removes, renames or replaces one meets the link. The worker makes a copy of a linked file that is about to
be written to; what is written to an original all the same is told. What is no part of the training (a repository, a
virtual environment, a store) is linked as a whole. When the run has ended, only what it made or changed is left.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from isorun.errors import ExecutionError
from isorun.study.records import Note, Seeded
from isorun.worker.levels import WORKSPACE
from isorun.worker.runfolder import make_own_folder

if TYPE_CHECKING:
    from isorun.environments import Prepared
    from isorun.execution.assemble import Ended

__all__ = ["Workspace", "workspace_of"]

_LINKED_FOLDERS: Final = frozenset((".git", ".isorun", ".hg", ".svn", "node_modules"))
_MOST_FILES: Final = 5_000
"""The files of a folder within the working folder that has more are linked, all of them: it holds data."""
_LARGEST_COPY: Final = 64 << 20
_MOST_COPIED: Final = 1 << 30
"""Of files that cannot be cloned: larger ones are linked, and so are the largest beyond so many bytes in all."""
_CLONE: Final = 0x40049409  # FICLONE, which Python 3.11 does not name
_NO_CLONES: Final = frozenset((errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL, errno.ENOTTY, errno.ENOSYS, errno.EACCES))
_TOLD: Final = 3

Stamp = tuple[int, int, int]


@dataclass(slots=True)
class Workspace:
    """The copy of a working folder that one run works in.

    origin: what it is a copy of. linked: what leads to the original, each with how that looked. data: folders of very
    many files, all of which are linked.
    """

    origin: Path
    folder: Path
    linked: dict[str, Stamp | None] = field(default_factory=dict)
    data: list[str] = field(default_factory=list)
    _clones: bool = True

    def prepared(self, prepared: Prepared) -> Prepared:
        """The same for the copy: a program of the working folder is the copy's, unless it lies in what is linked.

        An interpreter stays what it is: in a virtual environment, which is linked, it is one and the same for all runs.
        """
        path, own = Path(prepared.program), self.variables()
        variables = {**{name: own[name] for name in own if name not in prepared.variables}, **prepared.variables}
        if prepared.interpreter or not path.is_relative_to(self.origin):
            return replace(prepared, variables=variables)
        copy = self.folder / path.relative_to(self.origin)
        is_copied = copy.resolve().is_relative_to(self.folder.resolve())
        return replace(prepared, variables=variables, program=str(copy) if is_copied else prepared.program)

    def variables(self) -> dict[str, str]:
        """For the run. uv would install the project of each copy into the one virtual environment that they share."""
        return {"UV_NO_SYNC": "1"} if (self.folder / ".venv").is_symlink() else {}

    def told(self) -> dict[str, Any]:
        """For the record, in which folders of data stand for their files."""
        within = tuple(os.path.join(name, "") for name in self.data)  # noqa: PTH118  what names begin with
        linked = sorted((*self.data, *(name for name in self.linked if not name.startswith(within))))
        return {"isolated": {"linked": linked} if linked else {}}

    def fill(self) -> None:
        """Make the copy."""
        make_own_folder(self.folder)
        left = _MOST_COPIED
        for size, name in sorted((size, name) for size, name in self._folders_made() if not self._cloned(name)):
            left -= size
            if size > _LARGEST_COPY or left < 0:
                self._link(name)
            else:
                self._copy(name)

    def _path(self, name: str) -> Path:
        return self.origin / name

    def _folders_made(self) -> Iterator[tuple[int, str]]:
        """Make the folders and links of the copy; the files that are left to make, with their sizes."""
        waiting = [("", False)]
        while waiting:
            below, is_data = waiting.pop()
            with suppress(FileNotFoundError):  # whatever goes away meanwhile is no part of the copy
                for entry in list(os.scandir(self._path(below))):
                    name = os.path.join(below, entry.name)  # noqa: PTH118  thousands of names
                    if entry.is_symlink():
                        self._same_link(name)
                    elif entry.is_dir() and _is_no_part(entry):
                        self._link(name)
                    elif entry.is_dir():
                        self._make_folder(name)
                        waiting.append((name, is_data or self._is_data(name)))
                    elif entry.is_file() and is_data:
                        self._link(name)
                    elif entry.is_file():
                        with suppress(FileNotFoundError):
                            yield entry.stat().st_size, name

    def _is_data(self, name: str) -> bool:
        if not _has_many_files(self._path(name)):
            return False
        self.data.append(name)
        return True

    def _make_folder(self, name: str) -> None:
        (self.folder / name).mkdir(mode=0o700)
        shutil.copymode(self._path(name), self.folder / name)

    def _same_link(self, name: str) -> None:
        """A link as it is; one that leads out of the folder by a relative path leads to the same place from here."""
        (self.folder / name).symlink_to(self._leads_to(self._path(name)))

    def _leads_to(self, link: Path) -> Path:
        target = link.readlink()
        around = Path(os.path.normpath(link.parent / target))
        leads_out = not target.is_absolute() and not around.is_relative_to(self.origin)
        return around if leads_out else target

    def _link(self, name: str) -> None:
        (self.folder / name).symlink_to(self._path(name))
        self.linked[name] = _stamp(self._path(name))

    def _cloned(self, name: str) -> bool:
        """Whether a clone of the file could be made: it shares the blocks that neither of both has written to since."""
        if not self._clones:
            return False
        try:
            with self._path(name).open("rb") as source, (self.folder / name).open("xb") as copy:
                fcntl.ioctl(copy.fileno(), _CLONE, source.fileno())
            self._as_it_was(name)
        except OSError as error:
            (self.folder / name).unlink(missing_ok=True)
            if isinstance(error, FileNotFoundError):
                return True
            if error.errno not in _NO_CLONES:
                raise
            self._clones = isinstance(error, PermissionError)  # that is about this file alone
            return False
        return True

    def _copy(self, name: str) -> None:
        try:
            shutil.copyfile(self._path(name), self.folder / name)
            self._as_it_was(name)
        except FileNotFoundError:
            (self.folder / name).unlink(missing_ok=True)
        except (PermissionError, shutil.SpecialFileError):
            (self.folder / name).unlink(missing_ok=True)
            self._link(name)

    def _as_it_was(self, name: str) -> None:
        """With its times: compiled modules are known by those of their source."""
        known = self._path(name).stat()
        (self.folder / name).chmod(stat.S_IMODE(known.st_mode))
        os.utime(self.folder / name, ns=(known.st_atime_ns, known.st_mtime_ns))

    def ended(self, ended: Ended) -> Ended:
        """The end of the run: only what it made is left, and its record speaks of the folder that the copy is of."""
        notes = self.close()
        ended = self._as_in_origin(ended)
        return replace(ended, notes=(*ended.notes, *notes), requested={**ended.requested, **self.told()})

    def close(self) -> list[Note]:
        """Leave nothing but what the run made or changed; notes on originals that are not as they were."""
        with suppress(OSError):
            self._tidy(self.folder)
        now = {name: _stamp(self._path(name)) for name in self.linked}
        changed = sorted(name for name, before in self.linked.items() if before is not None and now[name] != before)
        if not changed:
            return []
        more = f" and {len(changed) - _TOLD} more" if len(changed) > _TOLD else ""
        what = f"{', '.join(changed[:_TOLD])}{more} of the working folder changed while the run had a link to it"
        return [Note("isolation-left", f"{what}: it is too large to be copied, and other runs see the change")]

    def _tidy(self, folder: Path) -> None:
        for entry in list(os.scandir(folder)):
            path = Path(entry.path)
            with suppress(OSError):  # what cannot be removed stays
                if entry.is_dir(follow_symlinks=False):
                    if entry.name == "__pycache__":
                        shutil.rmtree(path, ignore_errors=True)
                    else:
                        self._tidy(path)
                elif self._is_as_it_was(path, entry):
                    path.unlink()
        with suppress(OSError):  # not empty: there is something in it
            folder.rmdir()

    def _is_as_it_was(self, path: Path, entry: os.DirEntry[str]) -> bool:
        original = self.origin / path.relative_to(self.folder)
        if entry.is_symlink():
            return path.readlink() == (self._leads_to(original) if original.is_symlink() else original)
        here, there = entry.stat(follow_symlinks=False), original.lstat()
        return (here.st_size, here.st_mtime_ns) == (there.st_size, there.st_mtime_ns)

    def _as_in_origin(self, ended: Ended) -> Ended:
        """With paths of the copy as those of the original: otherwise no two runs would have a file in common."""
        copy, origin = str(self.folder), str(self.origin)
        events = ended.events
        events.effective = _renamed(events.effective, copy, origin)
        events.seeded = [
            Seeded(one.call, one.value, one.where.replace(copy, origin), one.replaced) for one in events.seeded
        ]
        events.notes = [Note(note.code, note.message.replace(copy, origin)) for note in events.notes]
        tail, code = ended.log_tail.replace(copy, origin), _renamed(dict(ended.code), copy, origin)
        return replace(ended, log_tail=tail, code=code)


def _renamed(value: Any, copy: str, origin: str) -> Any:
    if isinstance(value, str):
        return value.replace(copy, origin)
    if isinstance(value, dict):
        return {key: _renamed(item, copy, origin) for key, item in value.items()}
    return [_renamed(item, copy, origin) for item in value] if isinstance(value, list) else value


def workspace_of(origin: Path, run_folder: Path) -> Workspace:
    """A copy of the folder in the run's own; ExecutionError where none can be made, and then nothing of it is left.

    Copies that earlier attempts at the same cell left when they were killed are tidied first.
    """
    cell = run_folder.name.rpartition("-")[0]
    for earlier in run_folder.parent.glob(f"{cell}-*/{WORKSPACE}") if cell else ():
        Workspace(origin, earlier).close()
    made = Workspace(origin.absolute(), run_folder.absolute() / WORKSPACE)
    try:
        made.fill()
    except OSError as error:
        shutil.rmtree(made.folder, ignore_errors=True)
        raise ExecutionError(
            f"the run cannot have a copy of {origin}",
            found=f"{error.strerror or error} ({error.filename or made.folder})",
            hint="make room, or run without --isolate and write to {run_dir}",
        ) from None
    return made


def _is_no_part(folder: os.DirEntry[str]) -> bool:
    """Whether a folder is no part of the training: then the copy leads to the one that is there."""
    if folder.name in _LINKED_FOLDERS:
        return True
    marks = (os.path.join(folder.path, name) for name in ("pyvenv.cfg", "store.sqlite", "conda-meta"))  # noqa: PTH118
    return any(map(os.path.exists, marks))


def _has_many_files(folder: Path) -> bool:
    count, waiting = 0, [str(folder)]
    while waiting and count <= _MOST_FILES:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                count += 1
                if count > _MOST_FILES:
                    break
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
    return count > _MOST_FILES


def _stamp(path: Path) -> Stamp | None:
    """What a file is known by; of folders nothing is, since much may go on in them."""
    try:
        known = path.stat()
    except OSError:
        return None
    return (known.st_ino, known.st_size, known.st_mtime_ns) if stat.S_ISREG(known.st_mode) else None
