"""A package that is opened: its form is checked at once, each member before it is read.

    with open_package("resnet56.isorun") as package:
        package.address, package.manifest, package.signature
        package.study()                  the study, as `isorun.Study`
        for record in package.records(): every run, as `isorun.RunRecord`
            …
        package.read("environment.json")

`PackageError` says what is wrong with one that is damaged or was made to do harm.
"""

from __future__ import annotations

import bz2
import hashlib
import os
import re
import threading
import zlib
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, Self

from isorun.errors import InputError
from isorun.packages import MANIFEST, SIGNATURE, Budget, refused
from isorun.packages.canonical import LONGEST_LINE, memory_of_line, read_canonical, read_in_order
from isorun.packages.columns import Cursor
from isorun.packages.container import Entry, OwnPlace, Readable, directory, pieces
from isorun.packages.manifest import Manifest
from isorun.packages.runs import Block, SharedReader
from isorun.packages.signatures import Signature
from isorun.store import PLANS, SEARCHES
from isorun.study.design import Study, can_be_kept, kept_study
from isorun.study.records import RunRecord

__all__ = ["CODE", "DATA", "DOCUMENTS", "ENVIRONMENT", "SHARED", "STUDY", "Package", "open_package"]

STUDY: Final = "study.json"
ENVIRONMENT: Final = "environment.json"
DATA: Final = "data.json"
CODE: Final = "code.json"
DOCUMENTS: Final = "documents.jsonl.bz2"
SHARED: Final = "shared.jsonl.bz2"
_BLOCK: Final = re.compile(r"runs/(\d{5})\.jsonl\.bz2")
_PIECE: Final = 2**20
_KEPT: Final = frozenset((PLANS, SEARCHES))
"""Kinds of documents that a package has. Another store would keep them under their names, as files."""


def open_package(path: str | Path, most: int | None = None) -> Package:
    """The package in this file, its form checked; InputError where there is no file, PackageError where it is none.

    most: how many bytes may come out of it where they are kept; NoRoom beyond.
    """
    try:
        file = os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InputError(f"the package {str(path)!r} cannot be read", found=why, hint="isorun pack makes one") from None
    try:
        if not Path(f"/proc/self/fd/{file.fileno()}").is_file():
            raise refused(f"{path}: this is no package", "no plain file")
        return Package(path, file, most)
    except BaseException:
        file.close()
        raise


class Package:
    """What is in a package. Whatever it hands out was checked against the manifest."""

    def __init__(self, path: str | Path, file: BinaryIO, most: int | None = None) -> None:
        self.path = Path(path)
        self._most = most
        self._file = file
        self.size = os.fstat(file.fileno()).st_size
        self._entries = directory(file, self.size)
        self._checked: set[str] = set()
        if MANIFEST not in self._entries:
            raise refused(f"{path}: this is no package", "a zip without a manifest")
        data = self._whole(MANIFEST)
        self.manifest = Manifest.from_bytes(data)
        self.address = f"sha256:{hashlib.sha256(data).hexdigest()}"
        self._refuse_lies()
        self._said = {member.name: member for member in self.manifest.members}
        self._names = tuple(self._said)
        self.signature = Signature.from_bytes(self._whole(SIGNATURE)) if SIGNATURE in self._entries else None
        self._shared: SharedReader | None = None

    @property
    def descriptor(self) -> int:
        """The number of the open file."""
        return self._file.fileno()

    def names(self) -> tuple[str, ...]:
        """The members, without manifest and signature."""
        return self._names

    def study_document(self) -> dict[str, Any]:
        """The design, with the keys of a study file."""
        document = read_in_order(self.content(STUDY), STUDY)
        if not isinstance(document, dict) or document.get("name") != self.manifest.study:
            raise refused(f"{STUDY}: this is not the study that the manifest names")
        return document

    def study(self) -> Study:
        """The study. What its commands read lies elsewhere, or nowhere."""
        return kept_study(self.study_document(), self.path.resolve().parent, self.manifest.study)

    def documents(self) -> dict[tuple[str, str], dict[str, Any]]:
        """What a store kept of the study besides, by kind and name: plans of decisions, searches."""
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for line in self._lines(DOCUMENTS, self._budget()) if DOCUMENTS in self._entries else ():
            match read_in_order(line, DOCUMENTS):
                case {"kind": str(kind), "name": str(name), "document": dict(document), **rest} if (
                    (kind, name) not in found and kind in _KEPT and can_be_kept(name) and not rest
                ):
                    found[kind, name] = document
                case _:
                    raise refused(f"{DOCUMENTS}: a line that is no plan and no search, or the second of its name")
        return found

    def records(self, cell_ids: Container[str] | None = None) -> Iterator[RunRecord]:
        """All runs, or those of these cells, by cell and attempt. What was read before is not kept."""
        runs, points = 0, 0
        for record in self.records_of(self.blocks()):
            runs, points = runs + 1, points + sum(len(item.values) for item in record.series.values())
            if cell_ids is None or record.cell.id in cell_ids:
                yield record
        self.check_counts(runs, points)

    def records_of(self, blocks: Sequence[str], budget: Budget | None = None) -> Iterator[RunRecord]:
        """The runs of blocks that follow each other. budget: what they may take, without what all runs share."""
        spent = budget or self._budget()
        if self._shared is None:
            self._shared = SharedReader(self._lines(SHARED, self._budget()), SHARED)
        last = ("", 0)
        for name, block in zip(blocks, _one_ahead(lambda name: self._block(name, spent), blocks), strict=True):
            for record in block.records(self._shared):
                place = (record.cell.id, record.attempt)
                if place <= last:
                    raise refused(f"{name}: a run stands twice, or not in its place", record.run_id)
                last = place
                yield record

    def _budget(self) -> Budget:
        return Budget(self.size, self._most)

    def check_counts(self, runs: int, points: int) -> None:
        """PackageError unless there are as many runs and points as the manifest says."""
        if (runs, points) != (self.manifest.runs, self.manifest.points):
            said = f"{self.manifest.runs:,} and {self.manifest.points:,}"
            raise refused("the manifest counts other runs and points", f"{runs:,} and {points:,}", said)

    def read(self, name: str) -> Any:
        """What a member of JSON says."""
        return read_canonical(self.content(name), name)

    def content(self, name: str) -> bytes:
        """A small member as it is."""
        if name not in self._said:
            raise refused(f"there is no {name} in this package")
        self.check(name)
        return self._whole(name)

    def check(self, name: str) -> None:
        """PackageError unless the member is what the manifest says; it is hashed once."""
        if name in self._checked:
            return
        if name not in self._said:
            raise refused(f"there is no {name} in this package")
        said = self._said[name]
        hashed, crc = hashlib.sha256(), 0
        for piece in pieces(OwnPlace(self._file), self._entries[name]):
            hashed.update(piece)
            crc = zlib.crc32(piece, crc)
        if hashed.hexdigest() != said.sha256 or crc != self._entries[name].crc:
            raise refused(f"{name}: it is not what the manifest says", f"sha256 {hashed.hexdigest()}", said.sha256)
        self._checked.add(name)

    def check_all(self) -> None:
        """Every member."""
        for name in self.names():
            self.check(name)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _refuse_lies(self) -> None:
        """The members are those of the manifest, in its order, and nothing else but a signature."""
        found = [(entry.name, entry.size) for entry in self._entries.values()]
        said = [(member.name, member.size) for member in self.manifest.members]
        own = [(name, self._entries[name].size) for name in (MANIFEST, SIGNATURE) if name in self._entries]
        if found != [*said, *own]:
            odd = sorted({name for name, _ in found} ^ {name for name, _ in [*said, *own]})
            raise refused(
                "the package does not hold what its manifest says", ", ".join(odd)[:200] or "other sizes or order"
            )

    def blocks(self) -> Sequence[str]:
        """The members with the lines of runs, in their order."""
        blocks = [name for name in self.names() if _BLOCK.fullmatch(name)]
        if blocks != [f"runs/{number:05}.jsonl.bz2" for number in range(len(blocks))]:
            raise refused("the blocks of runs are not numbered one after another")
        return blocks

    def _block(self, name: str, budget: Budget) -> Block:
        """A block of runs, unpacked."""
        numbers = name.replace(".jsonl.bz2", ".numbers")
        self.check(numbers)
        return Block(self._lines(name, budget), Cursor(OwnPlace(self._file), self._entries[numbers]), budget)

    def _whole(self, name: str) -> bytes:
        entry = self._entries[name]
        if entry.size > LONGEST_LINE:
            raise refused(f"{name}: too long", f"{entry.size:,} bytes", f"{LONGEST_LINE:,}")
        data = b"".join(pieces(OwnPlace(self._file), entry))
        if zlib.crc32(data) != entry.crc:
            raise refused(f"{name}: its content is damaged", "another CRC-32 than its header says")
        return data

    def _lines(self, name: str, budget: Budget) -> Iterator[bytes]:
        """The lines of a compressed member, without holding more than one and a piece."""
        if name not in self._said:
            raise refused(f"there is no {name} in this package")
        self.check(name)
        rest = b""
        for piece in _decompressed(OwnPlace(self._file), self._entries[name]):
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                budget.take_told(memory_of_line(line), name)
                yield line
            if len(rest) > LONGEST_LINE:
                raise refused(f"{name}: a line is too long", allowed=f"{LONGEST_LINE:,} bytes")
        if rest:
            raise refused(f"{name}: its last line has no end")


def _one_ahead(made: Callable[[str], Block], names: Sequence[str]) -> Iterator[Block]:
    """What is made of each name, in their order; the next is made by a thread while the one before is used."""
    if len(names) == 1:
        yield made(names[0])
        return
    waiting: list[_Making] = []
    try:
        for name in names:
            waiting.append(_Making(made, name))
            if len(waiting) > 1:
                yield waiting.pop(0).result()
        for making in waiting:
            yield making.result()
    finally:
        for making in waiting:
            making.join()


class _Making(threading.Thread):
    """A thread that makes something of a name, and is asked for it, or for why there is none."""

    def __init__(self, made: Callable[[str], Block], name: str) -> None:
        super().__init__()
        self._call = made, name
        self._made: Block | None = None
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        """Make it."""
        made, name = self._call
        try:
            self._made = made(name)
        except BaseException as error:  # whoever asks for it is told
            self._error = error

    def result(self) -> Block:
        """What was made; the error where that failed."""
        self.join()
        if self._error is not None:
            raise self._error
        assert self._made is not None
        return self._made


def _decompressed(file: Readable, entry: Entry) -> Iterator[bytes]:
    """What comes out of a compressed member, in pieces of bounded size."""
    stream, place = bz2.BZ2Decompressor(), 0
    with suppress(OSError, EOFError, ValueError):
        while not stream.eof:
            data = b""
            if stream.needs_input:
                data = b"".join(pieces(file, entry, place, min(_PIECE, entry.size - place)))
                place += len(data)
                if not data:
                    break
            piece = stream.decompress(data, _PIECE)
            yield piece
        if stream.eof and place == entry.size and not stream.unused_data:
            return
    raise refused(f"{entry.name}: a compressed member is damaged")
