"""Writing a package: members as they come, then the manifest, then the signature. One content gives the same bytes."""

from __future__ import annotations

import bz2
import hashlib
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from isorun.errors import InputError
from isorun.packages import MANIFEST, SIGNATURE, Budget
from isorun.packages.canonical import (
    bytes_in_order,
    canonical_bytes,
    memory_of_line,
    read_canonical,
    read_in_order,
)
from isorun.packages.container import Writer
from isorun.packages.manifest import Manifest, Member
from isorun.packages.reading import DOCUMENTS, SHARED, STUDY
from isorun.packages.runs import BlockWriter, SharedWriter
from isorun.packages.signatures import Signature
from isorun.study.records import RunRecord

__all__ = ["PackageWriter", "written_whole"]

_AT_ONCE: Final = 2**20
_THREADS: Final = 2


class PackageWriter:
    """Takes what a package is to hold, in the order in which it will lie there."""

    def __init__(self, file: BinaryIO) -> None:
        self._zip = Writer(file)
        self._members: list[Member] = []
        self._runs = 0
        self._points = 0
        self._documents = 0
        self._shared = 0
        self._numbers = 0
        self._told = 0

    @property
    def members(self) -> tuple[Member, ...]:
        """What was added so far."""
        return tuple(self._members)

    def add(self, name: str, content: Iterable[bytes]) -> None:
        """A member of these pieces."""
        hashed, size = hashlib.sha256(), 0

        def passed() -> Iterator[bytes]:
            nonlocal size
            for piece in content:
                hashed.update(piece)
                size += len(piece)
                yield piece

        self._zip.add(name, passed())
        self._members.append(Member(name, size, hashed.hexdigest()))

    def add_json(self, name: str, value: Any) -> None:
        """A member of JSON."""
        data = canonical_bytes(value)
        read_canonical(data, name)
        self.add(name, [data])

    def add_study(self, document: dict[str, Any]) -> None:
        """The design: the order of its approaches, configs and environments is part of it."""
        data = bytes_in_order(document)
        read_in_order(data, STUDY)
        self.add(STUDY, [data])

    def add_documents(self, documents: Iterable[tuple[str, str, dict[str, Any]]]) -> None:
        """What a store keeps of the study besides, by kind and name; nothing where there is none."""
        lines = [bytes_in_order({"kind": kind, "name": name, "document": item}) for kind, name, item in documents]
        for line in lines:
            read_in_order(line, "a document of the study")
        self._documents = sum(map(memory_of_line, lines))
        if lines:
            self.add(DOCUMENTS, _compressed(line + b"\n" for line in lines))

    def add_records(self, records: Iterable[RunRecord], tell: Callable[[int], None] = lambda _: None) -> None:
        """All runs, by cell and attempt. tell: is told how many are done.

        Blocks are compressed by threads, about half of all the work, while the next ones are made.
        """
        shared = SharedWriter()
        with ThreadPoolExecutor(_THREADS) as threads:
            waiting: deque[Future[_Packed]] = deque()
            for number, block in enumerate(_blocks(records, shared)):
                waiting.append(threads.submit(_packed_block, number, block))
                if len(waiting) > _THREADS:
                    self._add_block(waiting.popleft().result())
                    tell(self._runs)
            for packing in waiting:
                self._add_block(packing.result())
        self.add(SHARED, _compressed(self._weighed(shared.lines())))

    def _weighed(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        for line in lines:
            self._shared += memory_of_line(line)
            yield line

    def _add_block(self, packed: _Packed) -> None:
        self._runs += packed.block.runs
        self._points += packed.block.points
        self._numbers += packed.memory[0]
        self._told += packed.memory[1]
        for name, pieces in packed.members.items():
            self.add(name, pieces)

    def finish(self, study: str, sign: Callable[[str], Signature] | None = None) -> Manifest:
        """The manifest, and the signature that is made of its address."""
        manifest = Manifest(study, self._runs, self._points, self.members)
        self._zip.add(MANIFEST, [manifest.to_bytes()])
        if sign is not None:
            self._zip.add(SIGNATURE, [sign(manifest.address).to_bytes()])
        self._refuse_unreadable(self._zip.finish())
        return manifest

    def _refuse_unreadable(self, size: int) -> None:
        """What no reader takes is told to whoever packs it, and not to those who get it."""
        budget = Budget(size)
        budget.take_numbers(self._numbers, "the runs of the study")
        budget.take_told(self._told, "the runs of the study")
        Budget(size).take_told(self._shared, "what the runs of the study share")
        Budget(size).take_told(self._documents, "searches and plans of the study")


class _Packed(NamedTuple):
    """A block, its members as they will lie in the file, and what they take when they are read."""

    block: BlockWriter
    members: dict[str, list[bytes]]
    memory: tuple[int, int]


def _packed_block(number: int, block: BlockWriter) -> _Packed:
    name = f"runs/{number:05}"
    members = {f"{name}.jsonl.bz2": list(_compressed(block.lines())), f"{name}.numbers": list(block.numbers())}
    return _Packed(block, members, block.memory())


def _blocks(records: Iterable[RunRecord], shared: SharedWriter) -> Iterator[BlockWriter]:
    """The records in blocks, the last of which need not be full."""
    block = BlockWriter(shared)
    for record in records:
        if block.is_full:
            block.finish_lines()
            yield block
            block = BlockWriter(shared)
        block.add(record)
    if block.runs:
        block.finish_lines()
        yield block


def _compressed(lines: Iterable[bytes]) -> Iterator[bytes]:
    """One stream of the lines. Few calls: a thread waits for its turn after each."""
    stream, waiting, size = bz2.BZ2Compressor(), list[bytes](), 0
    for line in lines:
        waiting.append(line)
        size += len(line)
        if size >= _AT_ONCE:
            yield stream.compress(b"".join(waiting))
            waiting, size = [], 0
    yield stream.compress(b"".join(waiting)) + stream.flush()


@contextmanager
def written_whole(path: Path) -> Iterator[BinaryIO]:
    """A file that takes its name when it is whole and on the disk; whatever happens before, nothing has that name."""
    unfinished = path.parent / f".{path.name[:100]}.{os.getpid()}.part"
    try:
        with unfinished.open("xb") as file:
            try:
                yield file
                file.flush()
                os.fsync(file.fileno())
                unfinished.replace(path)
            except BaseException:
                unfinished.unlink(missing_ok=True)
                raise
        _sync_folder(path.parent)
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be written", found=error.strerror or str(error)) from None


def _sync_folder(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
