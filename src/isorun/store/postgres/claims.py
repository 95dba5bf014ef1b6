"""Claims in PostgreSQL: who executes a cell, as which attempt, and until when unless the claim is renewed.

A claim is the row of its cell in `cells`, with a token of the store that took it and the time at which it lapses. A
thread renews what this process holds; of a process that died, or was stopped or cut off for longer than a lease, others
take the claims over, each as a later attempt, so that what it may still record is refused. All times are the server's.
After the server was started again, holders have a lease's time to come back before anything lapses.

A run that goes on without the process that claimed it has a token of nobody's, which never lapses: nobody but who takes
that attempt again is given the cell.

A lapsed claim is taken over by who has seen it lapsed for half a lease, by a clock of its own (`_Watch`): after a cut
network or a step of the server's clock all claims look lapsed at once, while their holders are about to renew them.
"""

from __future__ import annotations

import itertools
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from isorun.errors import StoreError
from isorun.store import Claim, Holder
from isorun.store.postgres.line import ServerLine

__all__ = ["LeasedClaims", "PostgresClaim"]

_FIRST_LOOK: Final = 64
_LONGEST_LOOK: Final = 4096
_BEATS_A_LEASE: Final = 4
_WATCHED_LEASES: Final = 0.5
_LAPSED: Final = "greatest(until, pg_postmaster_start_time() + make_interval(secs => %(lease)s)) < now()"
_TAKEN_OVER: Final = f"""(
    {_LAPSED} AND (cells.cell, cells.attempt, cells.until) IN (
        SELECT * FROM unnest(%(seen)s::text[], %(seen_attempts)s::bigint[], %(seen_untils)s::timestamptz[])
    )
)"""  # noqa: S608 - all of it ours

_MAKE: Final = "INSERT INTO isorun.cells (cell) SELECT unnest(%s::text[]) ON CONFLICT DO NOTHING"
# The row of a cell that nobody claimed before is made as the claim's.
_TAKE_NEW: Final = """
    INSERT INTO isorun.cells (cell, attempt, token, host, pid, since, until)
    VALUES (%(cell)s, 1, %(token)s, %(host)s, %(pid)s, now(), now() + make_interval(secs => %(lease)s))
    ON CONFLICT DO NOTHING RETURNING 0, cell, attempt
"""
# A row that another locks right now is being claimed or recorded, so it is passed over. One with this store's own token
# that this store does not know of is a claim whose reply was lost.
_TAKE: Final = f"""
    WITH free AS (
        SELECT cells.cell, asked.place
        FROM unnest(%(cells)s::text[]) WITH ORDINALITY AS asked (cell, place) JOIN isorun.cells USING (cell)
        WHERE NOT finished AND (token IS NULL OR token = %(token)s OR {_TAKEN_OVER})
        ORDER BY asked.place LIMIT %(limit)s
        FOR UPDATE OF cells SKIP LOCKED
    )
    UPDATE isorun.cells
    SET attempt = attempt + 1, token = %(token)s, host = %(host)s, pid = %(pid)s,
        since = now(), until = now() + make_interval(secs => %(lease)s)
    FROM free WHERE cells.cell = free.cell
    RETURNING free.place, cells.cell, cells.attempt
"""  # noqa: S608 - all of it ours
# Who has the claim now is asked in the same step that takes it. A record of this attempt or a later one ends it.
_TAKE_AGAIN: Final = f"""
    UPDATE isorun.cells
    SET attempt = %(attempt)s, token = %(token)s, host = %(host)s, pid = %(pid)s,
        since = now(), until = now() + make_interval(secs => %(lease)s)
    WHERE cell = %(cell)s AND NOT finished AND attempt <= %(attempt)s
        AND (token IS NULL OR token = %(token)s OR (token = '' AND attempt = %(attempt)s) OR {_TAKEN_OVER})
        AND NOT EXISTS (SELECT FROM isorun.runs WHERE runs.cell = cells.cell AND runs.attempt >= %(attempt)s)
    RETURNING attempt
"""  # noqa: S608
_LOOK: Final = f"""
    SELECT cell, attempt, until FROM isorun.cells
    WHERE cell = ANY(%(cells)s) AND NOT finished AND token <> %(token)s AND {_LAPSED}
"""  # noqa: S608
_RENEW: Final = """
    UPDATE isorun.cells SET until = now() + make_interval(secs => %(lease)s)
    WHERE cell = ANY(%(cells)s) AND token = %(token)s RETURNING cell, attempt
"""
_GIVE_BACK: Final = """
    UPDATE isorun.cells SET token = NULL, until = NULL
    FROM unnest(%(cells)s::text[], %(attempts)s::bigint[]) AS mine (cell, attempt)
    WHERE cells.cell = mine.cell AND cells.attempt = mine.attempt AND token = %(token)s
"""
_LEAVE: Final = """
    UPDATE isorun.cells SET token = '', until = 'infinity'
    WHERE cell = %(cell)s AND attempt = %(attempt)s AND token = %(token)s
        AND NOT EXISTS (SELECT FROM isorun.runs WHERE runs.cell = cells.cell AND runs.attempt = %(attempt)s)
"""
_HELD: Final = f"""
    SELECT cell, attempt, host, pid, since, token = '' FROM isorun.cells
    WHERE token IS NOT NULL AND NOT {_LAPSED} ORDER BY cell
"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class PostgresClaim(Claim):
    """The right to execute one cell, until it is given back or lapses."""

    cell_id: str
    attempt: int
    claims: LeasedClaims

    def release(self) -> None:
        """Give the right back; giving it back twice is nothing, also when a later attempt has it by then."""
        self.claims.give_back([self])

    def leave(self) -> None:
        """Go, while the run goes on; the row of the cell says so."""
        self.claims.leave(self)


class LeasedClaims:
    """Hands out claims of one store, and renews them. do: does something on the store's own line.

    lost: the runs whose claims lapsed and were taken over by others. troubles: what went wrong when renewing, beside a
    server that is away; it is tried again.
    """

    def __init__(
        self, do: Callable[[str, Callable[[Any], Any]], Any], own_line: Callable[[], ServerLine], lease_seconds: float
    ) -> None:
        self.lost: list[str] = []
        self.troubles: dict[str, None] = {}
        self._do = do
        self._own_line = own_line
        self._lease = lease_seconds
        self._token = secrets.token_bytes(16)
        self._guard = threading.Lock()
        self._held: dict[str, int] = {}
        self._made: set[str] = set()
        self._watch = _Watch()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def take(self, cell_ids: Iterable[str], limit: int) -> list[Claim]:
        """Claims of the first cells that are free, up to so many; one thread at a time."""
        left = (cell_id for cell_id in cell_ids if cell_id not in self._held)
        taken: list[Claim] = []
        size = _FIRST_LOOK
        while len(taken) < limit and (some := list(itertools.islice(left, size))):
            taken += self._taken_of(some, limit - len(taken))
            size = min(2 * size, _LONGEST_LOOK)
        return taken

    def take_again(self, cell_id: str, attempt: int) -> Claim | None:
        """The claim of an attempt that was claimed before; None where it is not to be had."""
        with self._guard:
            if cell_id in self._held:
                return None
        asked = {**self._who(), **self._seen([cell_id]), "cell": cell_id, "attempt": attempt}

        def taking(connection: Any) -> bool:
            with connection.pipeline():
                connection.execute(_MAKE, ([cell_id],))
                answer = connection.execute(_TAKE_AGAIN, asked)
            return bool(answer.fetchall())

        if not self._do("claiming a cell again", taking):
            self._look_at([cell_id])
            return None
        self._hold({cell_id: attempt})
        return PostgresClaim(cell_id, attempt, self)

    def give_back(self, claims: Iterable[PostgresClaim]) -> None:
        """Free the cells, unless later attempts have them. What cannot be given back now lapses by itself."""
        with self._guard:
            mine = [claim for claim in claims if self._held.get(claim.cell_id) == claim.attempt]
            for claim in mine:
                del self._held[claim.cell_id]
        if not mine:
            return
        asked = {
            "cells": [claim.cell_id for claim in mine],
            "attempts": [claim.attempt for claim in mine],
            "token": self._token,
        }
        try:
            self._do("giving claims back", lambda connection: connection.execute(_GIVE_BACK, asked))
        except StoreError:
            return

    def leave(self, claim: PostgresClaim) -> None:
        """Leave the cell to who takes this attempt again. What cannot be left now lapses by itself."""
        with self._guard:
            if self._held.get(claim.cell_id) != claim.attempt:
                return
            # Renewed no more, so that nothing speaks of it as lost when it is another's.
            del self._held[claim.cell_id]
        asked = {"cell": claim.cell_id, "attempt": claim.attempt, "token": self._token}

        def leaving(connection: Any) -> bool:
            return bool(connection.execute(_LEAVE, asked).rowcount)

        try:
            if self._do("leaving a run", leaving):
                return
        except StoreError:
            return
        with self._guard:  # it has left a record meanwhile
            self._held[claim.cell_id] = claim.attempt
        self.give_back([claim])

    def given_back(self, cell_id: str, attempt: int) -> None:
        """The claim of that attempt ended with its record, in the same transaction."""
        with self._guard:
            if self._held.get(cell_id) == attempt:
                del self._held[cell_id]

    def holders(self) -> list[Holder]:
        """Who holds a claim now."""
        rows = self._do(
            "looking at the claims", lambda connection: connection.execute(_HELD, {"lease": self._lease}).fetchall()
        )
        return [
            Holder(cell, attempt, host, pid, since.astimezone(UTC).isoformat(timespec="seconds"), left)
            for cell, attempt, host, pid, since, left in rows
        ]

    def close(self) -> None:
        """Give back all claims, and end the thread that renews them."""
        self._ended.set()
        with self._guard:
            held = [PostgresClaim(cell_id, attempt, self) for cell_id, attempt in self._held.items()]
        self.give_back(held)
        if self._thread is not None:
            self._thread.join()

    def forget_rows(self) -> None:
        """What is known of the server's rows may be wrong now: it was another line, and maybe another server."""
        self._made.clear()

    def _taken_of(self, cell_ids: Sequence[str], limit: int) -> list[Claim]:
        new = sorted({cell_id for cell_id in cell_ids if cell_id not in self._made})
        asked = {**self._who(), **self._seen(cell_ids), "cells": list(cell_ids), "limit": limit}
        rows = sorted(self._do("claiming a cell", lambda connection: _taken(connection, asked, new)))
        self._made.update(new)
        if len(rows) < min(limit, len(cell_ids)):
            self._look_at(cell_ids)
        self._hold({cell_id: attempt for _, cell_id, attempt in rows})
        return [PostgresClaim(cell_id, attempt, self) for _, cell_id, attempt in rows]

    def _seen(self, cell_ids: Sequence[str]) -> dict[str, Any]:
        """The claims of these cells that may be taken over, if they are still as they were seen."""
        seen = self._watch.lasting(cell_ids, _WATCHED_LEASES * self._lease)
        cells, attempts, untils = ([row[column] for row in seen] for column in range(3))
        return {"seen": cells, "seen_attempts": attempts, "seen_untils": untils}

    def _look_at(self, cell_ids: Sequence[str]) -> None:
        asked = {"cells": list(cell_ids), "token": self._token, "lease": self._lease}
        lapsed = self._do("looking at claims", lambda connection: connection.execute(_LOOK, asked).fetchall())
        self._watch.saw(cell_ids, lapsed)

    def _who(self) -> dict[str, Any]:
        return {"lease": self._lease, "token": self._token, "host": socket.gethostname(), "pid": os.getpid()}

    def _hold(self, taken: dict[str, int]) -> None:
        with self._guard:
            self._held.update(taken)
        if taken and self._thread is None:
            self._thread = threading.Thread(target=self._renew_now_and_then, name="isorun-claims", daemon=True)
            self._thread.start()

    def _renew_now_and_then(self) -> None:
        line = self._own_line()
        try:
            while not self._ended.wait(self._lease / _BEATS_A_LEASE):
                try:
                    self._renew(line)
                except Exception as error:  # without this thread all claims lapse, so it goes on whatever happens
                    self.troubles[f"{type(error).__name__}: {line.masked(str(error))}"] = None
                    line.hang_up()
        finally:
            line.hang_up()

    def _renew(self, line: ServerLine) -> None:
        with self._guard:
            held = dict(self._held)
        if not held:
            return
        asked = {"cells": list(held), "token": self._token, "lease": self._lease}
        try:
            rows = line.do("renewing claims", lambda connection: connection.execute(_RENEW, asked).fetchall())
        except StoreError:  # it is tried again; whoever records meanwhile is told what is wrong with the server
            return
        gone = {item for item in held.items() if item not in set(rows)}
        with self._guard:
            for cell_id, attempt in gone & set(self._held.items()):
                del self._held[cell_id]
                self.lost.append(f"{cell_id}-{attempt}")


def _taken(connection: Any, asked: dict[str, Any], new: list[str]) -> list[tuple[int, str, int]]:
    """Place, cell and attempt of what was taken. new: cells whose rows may have to be made, in one order for all."""
    rows: list[tuple[int, str, int]] = []
    if len(asked["cells"]) == len(new) == 1:  # mostly nobody has claimed it, and one short statement does
        rows = connection.execute(_TAKE_NEW, {**asked, "cell": new[0]}).fetchall()
    if rows:
        return rows
    with connection.pipeline() if new else nullcontext():  # one round trip and one commit
        if new:
            connection.execute(_MAKE, (new,))
        answer = connection.execute(_TAKE, asked)
    rows += answer.fetchall()
    return rows


_Seen = tuple[str, int, datetime]


class _Watch:
    """Claims of others that were seen lapsed: each as it stood, since when by the clock of this process."""

    def __init__(self) -> None:
        self._since: dict[str, tuple[_Seen, float]] = {}

    def saw(self, cell_ids: Iterable[str], lapsed: Iterable[_Seen]) -> None:
        """Of these cells, the claims that are lapsed now; one that was renewed, or is another's, begins anew."""
        now, standing = time.monotonic(), {row[0]: row for row in lapsed}
        for cell_id in cell_ids:
            row, known = standing.get(cell_id), self._since.get(cell_id)
            if row is None:
                self._since.pop(cell_id, None)
            elif known is None or known[0] != row:
                self._since[cell_id] = (row, now)

    def lasting(self, cell_ids: Iterable[str], seconds: float) -> list[_Seen]:
        """Those that were seen so long ago, and not seen otherwise since."""
        if not self._since:
            return []
        until = time.monotonic() - seconds
        found = (self._since[cell_id] for cell_id in cell_ids if cell_id in self._since)
        return [row for row, since in found if since <= until]
