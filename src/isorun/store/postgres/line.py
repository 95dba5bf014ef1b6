"""The line to a PostgreSQL server: made when it is needed, made again when it breaks, and told about without secrets.

libpq reads the URL, ~/.pgpass, PGPASSWORD, PGSERVICE and the rest of its variables; none of it is looked at here. A
server that restarts is waited for, with bounded patience. So whatever is done on a line may be done twice: when the
reply to a COMMIT is lost, nobody knows whether it happened, and all that is asked of a line can be asked again.
"""

from __future__ import annotations

import logging
import re
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

import psycopg

from isorun.errors import StoreBusy, StoreDamaged, StoreError
from isorun.store import shown_place

__all__ = ["Outages", "ServerLine"]

# Of a line that broke, psycopg also warns in its log, which Python prints where nobody has said where it goes.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

_T = TypeVar("_T")
_OLDEST: Final = 13
_SAID_AFTER_SECONDS: Final = 2.0
_LONGEST_PAUSE_SECONDS: Final = 1.0
_TRIES_OF_A_CONFLICT: Final = 20
# Where the URL and libpq's variables say nothing: a server that fell silent is noticed within a minute or so.
_DEFAULTS: Final = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
    "application_name": "isorun",
}
_AWAY: Final = ("57P01", "57P02", "57P03", "57P05")
"""It is being shut down, it crashed, it cannot take connections yet, the session was idle for too long."""
_COMES_BACK: Final = re.compile(r"starting up|shutting down|in recovery|not yet accepting", re.IGNORECASE)
_REFUSED: Final = re.compile(r"password|authentication|pg_hba|\bpeer\b|role .* does not exist|no pg_hba", re.IGNORECASE)
_NO_ADDRESS: Final = re.compile(r"(?:connection is bad: )?(?:invalid|missing|unexpected|end of string)")
_SSL: Final = re.compile(r"does not support SSL|sslmode value|no encryption")
_NO_DATABASE: Final = re.compile(r'database "(.*)" does not exist')
_FULL: Final = ("53100", "53200")
_CONFLICTS: Final = ("40001", "40P01")
_PREPARED_AFTER: Final = 3
_NOT_PREPARED: Final = ("26000", "42P05")
"""There is no such prepared statement, or there is one already: a pooler put the line through to another session."""


class Outages:
    """When a server gave no answer, as seen by all lines of a process.

    A line sees an outage only when something is asked on it: one that asks for nothing until the server is back finds
    itself cut off and makes another connection at once, while the line beside it may have waited all the time.
    """

    def __init__(self) -> None:
        self._seen: list[list[float]] = []

    def begin(self, asked: float) -> list[float]:
        """One more: from when the answer was asked for that did not come, to when one came, which the line moves on."""
        outage = [asked, asked]
        self._seen.append(outage)
        return outage

    def __len__(self) -> int:
        return len(self._seen)

    @property
    def seconds(self) -> float:
        """How long they were in all, where two lines saw the same one once."""
        total, until = 0.0, float("-inf")
        for begin, end in sorted(map(tuple, self._seen)):
            total += max(end - max(begin, until), 0.0)
            until = max(end, until)
        return total


class ServerLine:
    """One connection to the server of a URL, used by one thread at a time.

    patience_seconds: how long a server that answered before may be away. outages: where those are told that this line
    meets; given by another line to the same server, which has answered there. connections: how many were made so far.
    """

    def __init__(self, url: str, *, patience_seconds: float, outages: Outages | None = None) -> None:
        self.place = shown_place(url)
        self.outages = Outages() if outages is None else outages
        self.connections = 0
        self._outage: list[float] | None = None
        self._url = url
        self._patience = patience_seconds
        self._secrets = _secrets_of(url)
        self._connection: psycopg.Connection[Any] | None = None
        self._answered = outages is not None
        self._prepared_after: int | None = _PREPARED_AFTER

    def do(self, doing: str, work: Callable[[Any], _T]) -> _T:
        """What `work` gives, which is called with the connection, more than once where the line breaks."""
        away_since, conflicts, said = 0.0, 0, False
        while True:
            asked = time.monotonic()
            try:
                done = work(self._connected())
            except psycopg.Error as error:
                if error.sqlstate in _CONFLICTS and conflicts < _TRIES_OF_A_CONFLICT:
                    conflicts += 1
                    continue
                if error.sqlstate in _NOT_PREPARED and self._prepared_after is not None:
                    self._prepared_after = None
                    self.hang_up()
                    continue
                if not self._may_come_back(error):
                    raise self._told(error, doing) from None
                self.hang_up()
                now = time.monotonic()
                self._was_cut_off(asked, now)
                away_since = away_since or now
                if now - away_since >= self._patience:
                    raise self._gone(error, doing) from None
                said = said or self._say(now - away_since)
                time.sleep(min(_LONGEST_PAUSE_SECONDS, 0.02 + (now - away_since) / 5))
            else:
                if self._outage is not None:
                    self._outage[1], self._outage = time.monotonic(), None
                return done

    def _was_cut_off(self, asked: float, now: float) -> None:
        """Nobody answered what was asked; it goes on until somebody does, also where one gives up and asks later."""
        if self._outage is None:
            self._outage = self.outages.begin(asked)
        self._outage[1] = now

    def hang_up(self) -> None:
        """Close the connection; the next thing to do opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error, OSError):
                connection.close()

    def masked(self, text: str) -> str:
        """A text of libpq or the server as it may be shown."""
        text = shown_place(text.strip()).replace(self._url, self.place)
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return " ".join(text.split())

    def _connected(self) -> Any:
        if self._connection is None or self._connection.closed:
            asked = psycopg.conninfo.conninfo_to_dict(self._url)
            options = {name: value for name, value in _DEFAULTS.items() if name not in asked}
            threshold = self._prepared_after
            connection = psycopg.connect(self._url, autocommit=True, prepare_threshold=threshold, **options)
            if connection.info.server_version < _OLDEST * 10_000:
                version = connection.info.parameter_status("server_version") or "an unknown version"
                connection.close()
                raise StoreError(
                    f"the server of {self.place} is too old",
                    found=f"PostgreSQL {version}",
                    allowed=f"PostgreSQL {_OLDEST} or newer",
                    hint="name another server with --store, or upgrade this one",
                )
            self._connection, self._answered = connection, True
            self.connections += 1
        return self._connection

    def _may_come_back(self, error: psycopg.Error) -> bool:
        """Whether it is the line or the server that is away, and not the question that is wrong."""
        if not isinstance(error, psycopg.OperationalError):
            return False
        code = error.sqlstate or ""
        if code:
            return code in _AWAY or code.startswith("08")
        text = str(error)
        if self._connection is None and not self._answered:
            return bool(_COMES_BACK.search(text))
        return not (self._connection is None and (_REFUSED.search(text) or _NO_DATABASE.search(text)))

    def _say(self, seconds: float) -> bool:
        """Say once that one waits; whether it was said. Nobody looks at notes while nothing happens."""
        if seconds < _SAID_AFTER_SECONDS:
            return False
        with suppress(OSError, ValueError):  # the terminal has gone, or the file was closed: nobody is there to hear it
            sys.stderr.write(f"isorun: {self.place} does not answer; waiting for up to {self._patience:.0f} seconds\n")
        return True

    def _gone(self, error: psycopg.Error, doing: str) -> StoreError:
        return StoreBusy(
            f"{doing} failed: {self.place} has not answered for {self._patience:.0f} seconds",
            found=self.masked(str(error)),
            hint=f"{self._is_ready()} tells whether it is there; then the same command goes on where this one stopped",
        )

    def _told(self, error: psycopg.Error, doing: str) -> StoreError:
        """The store error for what psycopg, libpq or the server said."""
        found = self.masked(error.diag.message_primary or str(error))
        what = f"{doing} failed at {self.place}"
        if self._connection is None:
            return self._not_opened(found)
        if error.sqlstate == "42501":
            return StoreError(what, found=found, hint=_allowed(self._connection.info, found))
        if error.sqlstate in _FULL:
            hint = "free some space there and run the same command again; everything acknowledged before is intact"
            return StoreError(what, found=found, hint=hint)
        if error.sqlstate == "25006":
            hint = "name the server that takes changes with --store, or add ?target_session_attrs=read-write to it"
            return StoreError(what, found=found, hint=hint)
        if error.sqlstate in {"XX001", "XX002"}:
            return StoreDamaged(what, found=found, hint="have the server looked over, and restore it from a backup")
        return StoreError(what, found=found, hint="see the log of the server, then run the same command again")

    def _not_opened(self, found: str) -> StoreError:
        what = f"{self.place} cannot be opened"
        if self._ends_early():
            hint = "a password in an address has @ as %40, : as %3A and / as %2F; better in ~/.pgpass or PGPASSWORD"
            return StoreError(what, found="a password with an @ in it, which ends it there", hint=hint)
        if missing := _NO_DATABASE.search(found):
            return StoreError(what, found=found, hint=f"createdb {self._where(with_user=True)}{missing[1]} makes it")
        if _REFUSED.search(found):
            hint = "put the password into ~/.pgpass (host:port:database:user:password, mode 600) or PGPASSWORD"
            if self._secrets and "no password" not in found:
                hint = f"user and password of the address do not fit; leave the password out of it, and {hint}"
            return StoreError(what, found=found, hint=hint)
        if _SSL.search(found):
            hint = "?sslmode=… at the end of the address says what this server takes: disable, prefer, require"
            return StoreError(what, found=found, hint=hint)
        if _NO_ADDRESS.match(found):
            return StoreError(what, found=found, allowed="postgresql://user@host:5432/database")
        return StoreError(what, found=found, hint=f"{self._is_ready()} tells whether the server is there")

    def _ends_early(self) -> bool:
        """Whether libpq took the end of a password for a part of the host, which must not be shown then."""
        with suppress(psycopg.Error):
            return "@" in str(psycopg.conninfo.conninfo_to_dict(self._url).get("host", ""))
        return False

    def _is_ready(self) -> str:
        return f"pg_isready {self._where()}".strip()

    def _where(self, *, with_user: bool = False) -> str:
        with suppress(psycopg.Error):
            asked = psycopg.conninfo.conninfo_to_dict(self._url)
            port = asked.get("port")
            user = asked.get("user") if with_user else None
            named = (("-h", asked.get("host")), ("-p", port if str(port).isdecimal() else None), ("-U", user))
            return "".join(f"{option} {value} " for option, value in named if value)
        return ""


def _allowed(info: Any, found: str) -> str:
    """What whoever owns the database, or the schema that is there already, says to let this role in."""
    if "for database" in found:
        return f"whoever owns the database says: GRANT CREATE ON DATABASE {info.dbname} TO {info.user}"
    inner = f"IN SCHEMA isorun TO {info.user}"
    return (
        f"whoever made the store says: GRANT USAGE ON SCHEMA isorun TO {info.user}; GRANT SELECT, INSERT, UPDATE, "
        f"DELETE ON ALL TABLES {inner}; GRANT USAGE ON ALL SEQUENCES {inner}"
    )


def _secrets_of(url: str) -> tuple[str, ...]:
    """The passwords in a URL, as they stand there and as they are meant, the longest first.

    Also parts of one that was written with what ends a password in a URL: libpq then takes them for something else.
    """
    found: set[str] = set()
    with suppress(ValueError):
        found |= set(filter(None, (urlsplit(url).password,)))
        options = parse_qs(urlsplit(url).query)
        found |= {value for name in ("password", "sslpassword") for value in options.get(name, ())}
    written = re.match(r"(?s)[^:]+://[^:@/?#]*:(.*)@", url)
    if written and written[1]:
        found |= {written[1], *(part for part in re.split(r"[/?#@:%\s]", written[1]) if len(part) > 2)}
    return tuple(sorted({*found, *map(unquote, found)}, key=len, reverse=True))
