"""Who is told how a transfer goes."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from isorun.errors import DataError
from isorun.zoo.data.dataset import Checksum, RemoteFile
from isorun.zoo.data.part_file import PartFile
from isorun.zoo.data.web import Answer, SourceFailed, ensure_allowed, opened_url

__all__ = ["Brought", "DownloadWatcher", "Patience", "check_file", "download", "file_digest", "record_path"]


class DownloadWatcher:
    """Told what happens, for those who wait. This one is silent."""

    def begins(self, path: Path, have: int, total: int | None) -> None:
        """A transfer begins or goes on."""

    def moved(self, size: int) -> None:
        """So many bytes of the file are there."""

    def ends(self) -> None:
        """The transfer ended, well or not."""

    def says(self, text: str) -> None:
        """Something a user may want to know: another try, another address."""


_READ_AT_ONCE: Final = 1 << 20


def check_file(path: Path, file: RemoteFile, *, name: str) -> Checksum:
    """The checksum that the file has, or an error naming file, expected and found.

    path: where the bytes lie now (perhaps still under another name). Without a published checksum the file is held to
    the one written down when it was first downloaded, if there is one.
    """
    size = path.stat().st_size
    if file.size is not None and size != file.size:
        raise _mismatch(name, expected=f"{file.size:,} bytes", found=f"{size:,} bytes")
    expected = file.checksum or _written_down(Path(name))
    algorithm = expected.algorithm if expected else "sha256"
    found = Checksum(algorithm, file_digest(path, algorithm), "computed")
    if expected and found.value != expected.value:
        raise _mismatch(name, expected=f"{expected} ({expected.source})", found=str(found))
    return found


def file_digest(path: Path, algorithm: str) -> str:
    """The digest of a file, read in blocks. git: the id under which git keeps these bytes."""
    digest = hashlib.new("sha1" if algorithm == "git" else algorithm, usedforsecurity=False)
    if algorithm == "git":
        digest.update(b"blob %d\0" % path.stat().st_size)
    with path.open("rb") as file:
        while block := file.read(_READ_AT_ONCE):
            digest.update(block)
    return digest.hexdigest()


def record_path(target: Path) -> Path:
    """Where the checksum of a file is written down that nobody published one for."""
    return target.with_name(f"{target.name}.sha256")


def _written_down(target: Path) -> Checksum | None:
    record = record_path(target)
    words = record.read_text(encoding="utf-8").split() if record.is_file() else []
    return Checksum("sha256", words[0], "written down at the first download") if words else None


def _mismatch(name: str, *, expected: str, found: str) -> DataError:
    return DataError(f"{name} is not the published file", found=found, allowed=expected)


_BLOCK: Final = 1 << 20
_MOST_BYTES: Final = 1 << 33


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait. timeout: seconds without a byte. pauses: before each further try that brought nothing new."""

    timeout: float = 30.0
    pauses: tuple[float, ...] = (1.0, 3.0)
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True, slots=True)
class Brought:
    """A file that is in place. status: "downloaded", "resumed", "copied" or "already there".

    recorded: no published checksum was there to check against, and this one is written down now.
    """

    path: Path
    status: str
    size: int
    checksum: Checksum
    recorded: bool = False


def download(
    file: RemoteFile, target: Path, *, watcher: DownloadWatcher | None = None, patience: Patience | None = None
) -> Brought:
    """The file under its final name, whole and checked; or an error, and nothing under that name that was not there.

    The part of a broken download is kept for the next try, unless its bytes turned out wrong or the disk is full.
    """
    transfer = _Transfer(file, target, watcher or DownloadWatcher(), patience or Patience())
    for url in file.urls:
        ensure_allowed(url, guarded=file.checksum is not None)
    with PartFile(target, waiting=transfer.wait_for_other) as part:
        if transfer.waited and target.is_file():
            found = check_file(target, file, name=str(target))
            return Brought(target, "already there", target.stat().st_size, found)
        return transfer.through(part)


class _Transfer:
    """One file's way through its addresses."""

    def __init__(self, file: RemoteFile, target: Path, watcher: DownloadWatcher, patience: Patience) -> None:
        self.file = file
        self.target = target
        self.watcher = watcher
        self.patience = patience
        self.failures: list[str] = []
        self.wrong: DataError | None = None
        self.waited = False
        self.reached = False

    def wait_for_other(self, part: Path) -> None:
        self.waited = True
        self.watcher.says(f"another process is downloading {part}; waiting for it")

    def through(self, part: PartFile) -> Brought:
        """Every address in turn, until one has given the whole, right file."""
        for url in self.file.urls:
            try:
                return self._right_file_from(url, part)
            except SourceFailed as error:
                self.failures.append(f"{url}: {error}")
                self.reached |= error.reached
                if url != self.file.urls[-1]:
                    self.watcher.says(f"{url}: {error}; trying the next address")
        raise self._failed(part)

    def _right_file_from(self, url: str, part: PartFile) -> Brought:
        """What an address gives; when an old part turns out wrong, the address gets a second chance from byte 0."""
        while True:
            resumed = part.size > 0
            self._from_address(url, part)
            try:
                return self._accept(part, resumed)
            except _WrongBytes as error:
                self.wrong = error.error
                part.restart()
                if not resumed:
                    raise SourceFailed("it sends other bytes than were published", again=False) from None
                self.watcher.says(f"{url}: the part from an earlier download was wrong; starting over")

    def _from_address(self, url: str, part: PartFile) -> None:
        """Try an address until it has given all, as long as tries bring new bytes or pauses are left."""
        pauses = list(self.patience.pauses)
        while True:
            before = part.size
            try:
                self._one_try(url, part)
                return
            except SourceFailed as error:
                progress = part.size > before
                if not error.again or not (progress or pauses):
                    raise
                pauses = list(self.patience.pauses) if progress else pauses
                self.watcher.says(f"{url}: {error}; trying again")
                self.patience.sleep(pauses.pop(0) if pauses else 0.0)

    def _one_try(self, url: str, part: PartFile) -> None:
        if self.file.size is not None and part.size > self.file.size:
            part.restart()
        if part.size == self.file.size:
            return
        part.ensure_room(self.file.size)
        try:
            with opened_url(url, start=part.size, timeout=self.patience.timeout) as answer:
                self._receive(answer, part)
        except SourceFailed as error:
            if str(error).startswith("HTTP 416") and part.size:
                part.restart()
                raise SourceFailed("the server cannot go on from there; starting over", again=True) from None
            raise

    def _receive(self, answer: Answer, part: PartFile) -> None:
        total = self._announced(answer)
        if answer.start != part.size:
            if answer.start:
                raise SourceFailed(f"the server sends from byte {answer.start:,}, not {part.size:,}", again=False)
            part.restart()
        part.ensure_room(total)
        self.watcher.begins(self.target, part.size, total)
        try:
            while block := answer.read(_BLOCK):
                if part.size + len(block) > (total or _MOST_BYTES):
                    part.restart()
                    raise SourceFailed("the server sends more than the file has", again=False)
                part.write(block, total)
                self.watcher.moved(part.size)
        finally:
            self.watcher.ends()
        if total is not None and part.size < total:
            raise SourceFailed(f"the connection broke off at {part.size:,} of {total:,} bytes", again=True)

    def _announced(self, answer: Answer) -> int | None:
        """The size of the whole file; a server that announces another one is not asked further."""
        expected = self.file.size
        if expected is not None and answer.total not in (None, expected):
            raise SourceFailed(f"it offers {answer.total:,} bytes, but the file has {expected:,}", again=False)
        return expected if expected is not None else answer.total

    def _accept(self, part: PartFile, resumed: bool) -> Brought:
        try:
            found = check_file(part.path, self.file, name=str(self.target))
        except DataError as error:
            raise _WrongBytes(error) from None
        size = part.size
        part.publish()
        recorded = self.file.checksum is None and not record_path(self.target).exists()
        if recorded:
            record_path(self.target).write_text(f"{found.value}  {self.target.name}\n", encoding="utf-8")
        return Brought(self.target, "resumed" if resumed else "downloaded", size, found, recorded)

    def _failed(self, part: PartFile) -> DataError:
        if self.wrong is not None:
            part.discard()
            hint = "the download was removed; try again later, or bring the file from elsewhere with --from FOLDER"
            return DataError(self.wrong.what, found=self.wrong.found, allowed=self.wrong.allowed, hint=hint)
        kept = f"{part.size:,} bytes are kept, and the same command goes on from there" if part.size else ""
        offline = "without a network, bring the files from another machine with --from FOLDER"
        return DataError(
            f"{self.target} could not be downloaded" + ("" if self.reached else ": is this machine offline?"),
            found="; ".join(self.failures),
            hint=f"{kept}; {offline}" if kept else offline,
        )


class _WrongBytes(Exception):
    """All bytes came, but not the right ones."""

    def __init__(self, error: DataError) -> None:
        super().__init__(str(error))
        self.error = error
