"""The audit log: one line for each change, written with it, each with the hash of the one before.

Whoever alters, removes or inserts a line breaks the chain from there on, unless he makes all later lines again. So the
last hash is worth writing down elsewhere: `verify` with that head finds a log that was made anew or cut at its end.
No line holds a token, or what a package says; those that make one or the other hold a digest of the stored row, which
`verifying.py` holds against it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from isorun.errors import RegistryError
from isorun.packages.canonical import jcs
from isorun.registry.database import AbstractDatabase, Rows

__all__ = ["AuditLine", "Head", "append", "lines", "lines_until", "now", "row_digest", "verify_chain"]

_FIRST: Final = "0" * 64
_COLUMNS: Final = "line, at, user_name, action, subject, details, previous, hash"
_AT_ONCE: Final = 1000


def now() -> str:
    """What time it is, as the index writes times."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True)
class Head:
    """The end of the log: how many lines there are, and the hash of the last one."""

    line: int
    hash: str

    def __str__(self) -> str:
        return f"{self.line}:{self.hash}"


@dataclass(frozen=True, slots=True)
class AuditLine:
    """Who did what to what, and when. details: canonical JSON."""

    line: int
    at: str
    user: str
    action: str
    subject: str
    details: str
    previous: str
    hash: str

    def expected_hash(self) -> str:
        """What the hash has to be, of everything else in the line."""
        content = [self.line, self.at, self.user, self.action, self.subject, self.details, self.previous]
        return hashlib.sha256(jcs(content)).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        names = ("line", "at", "user", "action", "subject", "details", "previous", "hash")
        return {name: getattr(self, name) for name in names}


def row_digest(*values: object) -> str:
    """What a line says of a stored row, so that the row cannot be replaced unseen; empty of what no row of ours holds.

    Of a token the row has a hash of 256 random bits: its digest tells nothing that helps to guess one.
    """
    try:
        return hashlib.sha256(jcs(list(values))).hexdigest()
    except (TypeError, ValueError):
        return ""


def append(rows: Rows, by: str, action: str, subject: str, /, **details: object) -> None:
    """One more line, in the transaction of the change that it tells of."""
    last = rows.one("SELECT line, hash FROM audit ORDER BY line DESC LIMIT 1") or (0, _FIRST)
    said = jcs(details).decode()
    line = AuditLine(int(last[0]) + 1, now(), by, action, subject, said, str(last[1]), "")
    rows.all(
        f"INSERT INTO audit ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - ours
        *(line.line, line.at, line.user, line.action, line.subject, line.details, line.previous, line.expected_hash()),
    )


def lines(database: AbstractDatabase, after: int = 0, most: int = _AT_ONCE) -> list[AuditLine]:
    """The lines behind this one, in order."""
    question = f"SELECT {_COLUMNS} FROM audit WHERE line > ? ORDER BY line LIMIT ?"  # noqa: S608
    return [AuditLine(*row) for row in database.read(lambda rows: rows.all(question, after, most))]


def verify_chain(log: Iterable[AuditLine], known: Head | None = None) -> Head:
    """The head of a log that is whole; RegistryError says what is not. known: an earlier one, which has to be in it."""
    previous, count = _FIRST, 0
    for line in log:
        count += 1
        if line.line != count:
            raise _broken(count, f"line {line.line}", "lines are missing, or stand in another order")
        if line.previous != previous or not _holds(line):
            raise _broken(count, f"hash {str(line.hash)[:16]}…", "it was changed, or the one before it was")
        previous = line.hash
        if known is not None and known.line == count and known.hash != line.hash:
            raise _broken(
                count, f"hash {line.hash[:16]}…", f"{known.hash[:16]}… was written down: the log was made anew"
            )
    if known is not None and known.line > count:
        raise _broken(count, f"{count} lines", f"there were {known.line}: the log was cut")
    return Head(count, previous)


def _holds(line: AuditLine) -> bool:
    """Whether its hash is that of its content; what no line of ours can hold (bytes, say) has none."""
    try:
        return line.hash == line.expected_hash()
    except (TypeError, ValueError):
        return False


def lines_until(database: AbstractDatabase, last: int) -> Iterator[AuditLine]:
    """All lines up to this one. They never change, so that they need not be read at once."""
    seen = 0
    while found := [line for line in lines(database, seen) if line.line <= last]:
        yield from found
        seen = found[-1].line


def _broken(line: int, found: str, why: str) -> RegistryError:
    return RegistryError(
        f"the audit log does not hold together at line {line}",
        found=f"{found}; {why}",
        allowed="lines that were only added to",
        hint="compare with a backup, and ask who could write to the index",
    )
