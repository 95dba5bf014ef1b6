"""A store in memory, with the same promises as the others except that it ends with its process."""

from __future__ import annotations

import json
import os
import secrets
import socket
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from isorun.store import AbstractDocuments, AbstractStore, Claim, Holder, refuse_name
from isorun.store.content import KnownAttempt, is_known, stored_form
from isorun.study.records import Note, RunRecord, RunState, open_envelope, sealed

__all__ = ["MemoryStore"]


@dataclass(frozen=True, slots=True)
class _MemoryClaim(Claim):
    """The right to execute one cell in this process."""

    cell_id: str
    attempt: int
    store: MemoryStore

    def release(self) -> None:
        """Give the right back; giving it back twice is nothing."""
        self.store.release(self.cell_id, self.attempt)

    def leave(self) -> None:
        """Go, while the run goes on."""
        self.store.leave(self.cell_id, self.attempt)


class _MemoryDocuments(AbstractDocuments):
    """Documents as text, so that what is read is not what somebody goes on changing."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._texts: dict[str, str] = {}

    def names(self) -> tuple[str, ...]:
        """The names, the latest first."""
        return tuple(reversed(self._texts))

    def read(self, name: str) -> dict[str, Any] | None:
        """The document; None where there is none."""
        document: dict[str, Any] | None = json.loads(self._texts.get(name, "null"))
        return document

    def write(self, name: str, document: dict[str, Any]) -> None:
        """Keep the document as the latest."""
        refuse_name(name)
        self._texts.pop(name, None)
        self._texts[name] = json.dumps(document)

    def place(self, name: str) -> str:
        """A name for messages."""
        return f"memory: {self._kind}/{name}"


class MemoryStore(AbstractStore):
    """Keeps records in dictionaries."""

    def __init__(self) -> None:
        self.key = secrets.token_bytes(32)
        self._guard = threading.RLock()
        self._records: dict[tuple[str, int], RunRecord] = {}
        self._digests: dict[tuple[str, int], bytes] = {}
        self._attempts: dict[str, int] = {}
        self._held: dict[str, Holder] = {}
        self._documents: dict[str, _MemoryDocuments] = {}

    def claim(self, cell_id: str) -> Claim | None:
        """The right to execute the cell, as a new attempt."""
        with self._guard:
            known = self._known(cell_id)
            held = self._held.get(cell_id)
            is_over = held is not None and held.left and any(item.attempt >= held.attempt for item in known)
            if (held is not None and not is_over) or any(item.finished for item in known):
                return None
            attempt = max([self._attempts.get(cell_id, 0), *(item.attempt for item in known)]) + 1
            return self._hold(cell_id, attempt)

    def claim_again(self, cell_id: str, attempt: int) -> Claim | None:
        """The right to an attempt that was claimed before."""
        with self._guard:
            known = self._known(cell_id)
            later = max([self._attempts.get(cell_id, 0), *(item.attempt + 1 for item in known)])
            held = self._held.get(cell_id)
            is_free = held is None or (held.left and held.attempt == attempt)
            if not is_free or any(item.finished for item in known) or later > attempt:
                return None
            return self._hold(cell_id, attempt)

    def _hold(self, cell_id: str, attempt: int) -> Claim:
        since = datetime.now(UTC).isoformat(timespec="seconds")
        self._attempts[cell_id] = attempt
        self._held[cell_id] = Holder(cell_id, attempt, socket.gethostname(), os.getpid(), since)
        return _MemoryClaim(cell_id, attempt, self)

    def release(self, cell_id: str, attempt: int) -> None:
        """Take a claim back, unless it has passed to a later attempt."""
        with self._guard:
            held = self._held.get(cell_id)
            if held is not None and held.attempt == attempt and not held.left:
                del self._held[cell_id]

    def leave(self, cell_id: str, attempt: int) -> None:
        """Keep the claim for who takes this attempt again, unless it has left a record."""
        with self._guard:
            held = self._held.get(cell_id)
            if (cell_id, attempt) in self._records:
                self.release(cell_id, attempt)
            elif held is not None and held.attempt == attempt:
                self._held[cell_id] = replace(held, left=True)

    def holders(self) -> Sequence[Holder]:
        """Who holds a claim: this process."""
        with self._guard:
            held = [self._held[cell_id] for cell_id in sorted(self._held)]
            return [one for one in held if not one.left or (one.cell_id, one.attempt) not in self._records]

    def finish(self, record: RunRecord) -> None:
        """Keep the record for as long as this store lives."""
        envelope, digest = sealed(stored_form(record))
        place = (record.cell.id, record.attempt)
        with self._guard:
            claimed = self._attempts.get(record.cell.id, 0)
            if is_known(record, digest, self._known(record.cell.id), claimed):
                return
            self._records[place] = open_envelope(b"".join(envelope)).record
            self._digests[place] = digest

    def finished(self, cell_ids: Iterable[str] | None = None) -> set[str]:
        """The cells with a finished record."""
        return {record.cell.id for record in self.records(cell_ids) if record.state is RunState.FINISHED}

    def records(self, cell_ids: Iterable[str] | None = None) -> Sequence[RunRecord]:
        """All records, or those of the given cells."""
        wanted = None if cell_ids is None else set(cell_ids)
        with self._guard:
            return [self._records[place] for place in sorted(self._records) if wanted is None or place[0] in wanted]

    def run_ids(self, cell_ids: Iterable[str] | None = None) -> set[str]:
        """The runs of all records, or of those of the given cells."""
        return {record.run_id for record in self.records(cell_ids)}

    def documents(self, kind: str) -> AbstractDocuments:
        """The documents of one kind."""
        with self._guard:
            return self._documents.setdefault(kind, _MemoryDocuments(kind))

    def notes(self) -> tuple[Note, ...]:
        """None: nothing in memory can be damaged or contradict."""
        return ()

    def close(self) -> None:
        """Give back all claims."""
        with self._guard:
            self._held.clear()

    def _known(self, cell_id: str) -> list[KnownAttempt]:
        return [
            KnownAttempt(attempt, record.state is RunState.FINISHED, self._digests[cell, attempt])
            for (cell, attempt), record in self._records.items()
            if cell == cell_id
        ]
