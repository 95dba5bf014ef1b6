"""Users, whose names are owners, groups of them, and tokens. There are no passwords.

A token is 256 random bits; the index has its SHA-256 and no more. It says what its bearer may do (scopes), for whose
packages (owners), and until when. A token that is made with another has no more scopes and owners than that one, and
does not outlive it; only who administrates the registry may make longer ones. There is no account before somebody sets
the registry up with the token that its first start printed.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from isorun.errors import RegistryConflict, RegistryDenied, RegistryError, RegistryMissing, harmless
from isorun.packages.names import valid_part
from isorun.registry import Scope, Viewer
from isorun.registry.audit import append, now, row_digest
from isorun.registry.database import AbstractDatabase, Rows

__all__ = ["TOKEN_ROW", "MadeToken", "People", "TokenAsked"]

_BEGINNING: Final = "isorun_token_"
_SET_UP_BEGINNING: Final = "isorun_setup_"
"""Beginnings by which tokens are withheld from records and logs, here and by others who scan for secrets."""
_SET_UP_HOURS: Final = 24
_SESSION_HOURS: Final = 12
_SESSION: Final = "browser"
LONGEST_DAYS: Final = 366
TOKEN_ROW: Final = "hash, user_name, scopes, owners, purpose, made_at, expires_at"  # noqa: S105 - names of columns
"""What of a token never changes; the audit log has a digest of it."""
_USUAL: Final = (Scope.READ, Scope.PUSH, Scope.YANK, Scope.ADMIN)
_LONGEST_PURPOSE: Final = 100
_MOST_OWNERS: Final = 50


@dataclass(frozen=True, slots=True)
class TokenAsked:
    """What a token is to allow. owners: none for all of the user's."""

    scopes: tuple[Scope, ...] = _USUAL
    owners: tuple[str, ...] = ()
    days: float = 90.0
    purpose: str = ""


@dataclass(frozen=True, slots=True)
class MadeToken:
    """A token that was just made: the only time that it is seen."""

    token: str
    number: int
    user: str
    scopes: tuple[str, ...]
    owners: tuple[str, ...]
    expires_at: str

    def __repr__(self) -> str:
        return f"MadeToken(number={self.number}, user={self.user!r})"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, with the token."""
        return {
            "token": self.token,
            "number": self.number,
            "user": self.user,
            "scopes": list(self.scopes),
            "owners": list(self.owners),
            "expires_at": self.expires_at,
        }


class People:
    """Who may do what in a registry."""

    def __init__(self, database: AbstractDatabase) -> None:
        self._database = database

    @property
    def has_users(self) -> bool:
        """Whether it was set up: nobody else can have pushed a package."""
        return self._database.read(lambda rows: rows.one("SELECT 1 FROM users")) is not None

    def set_up_token(self) -> str | None:
        """A new one-time token for a registry that has no user; None for one that has. An earlier one is void."""
        token = f"{_SET_UP_BEGINNING}{secrets.token_hex(32)}"

        def work(rows: Rows) -> str | None:
            if rows.one("SELECT 1 FROM users"):
                return None
            if rows.one("SELECT 1 FROM registry") is None:
                rows.all("INSERT INTO registry (id, made_at, set_up_hash, set_up_until) VALUES (1, ?, '', '')", now())
                append(rows, "", "made", "registry")
            until = _after(timedelta(hours=_SET_UP_HOURS))
            rows.all("UPDATE registry SET set_up_hash = ?, set_up_until = ? WHERE id = 1", _hashed(token), until)
            return token

        return self._database.write(work)

    def identify(self, token: str) -> Viewer | None:
        """Who bears this token; None where it is nobody's, is over or was revoked."""
        return self._database.read(lambda rows: _viewer(rows, _hashed(token), now()))

    def set_up(self, viewer: Viewer, user: str) -> MadeToken:
        """Make the first user, who administrates the registry. The set-up token is void from then on."""
        _refuse_name(user, "user")
        asked = TokenAsked(purpose="set-up")

        def work(rows: Rows, token: str) -> MadeToken:
            if Scope.SET_UP not in viewer.scopes or rows.one("SELECT 1 FROM users"):
                raise RegistryDenied("this registry was set up already", hint="isorun login URL")
            rows.all("UPDATE registry SET set_up_hash = '', set_up_until = '' WHERE id = 1")
            _add_user(rows, user, user, admin=True)
            return _add_token(rows, token, user, asked, user=user, until=_after(timedelta(days=90)))

        return self._with_token(work)

    def add_user(self, viewer: Viewer, user: str, *, admin: bool = False, days: float = 90.0) -> MadeToken:
        """Make a user, and a first token for him."""
        _refuse_unless_everything(viewer)
        _refuse_name(user, "user")
        until = _until(days)

        def work(rows: Rows, token: str) -> MadeToken:
            if rows.one("SELECT 1 FROM users WHERE name = ?", user):
                raise RegistryConflict(f"there is a user {user} already", hint=f"isorun registry token {user}")
            if rows.one("SELECT 1 FROM owners WHERE name = ?", user):
                raise RegistryConflict(f"there is an owner {user} already", hint="choose another name")
            _add_user(rows, viewer.user, user, admin=admin)
            return _add_token(rows, token, viewer.user, TokenAsked(purpose="first"), user=user, until=until)

        return self._with_token(work)

    def close_user(self, viewer: Viewer, user: str) -> None:
        """Take all his tokens from a user. What he pushed stays, and his name is never given again."""
        _refuse_unless_everything(viewer)

        def work(rows: Rows) -> None:
            _refuse_unknown_user(rows, user)
            if rows.one("SELECT 1 FROM users WHERE name = ? AND closed_at <> ''", user):
                return
            rows.all("UPDATE users SET closed_at = ? WHERE name = ?", now(), user)
            append(rows, viewer.user, "closed", f"user:{user}")

        self._database.write(work)

    def users(self, viewer: Viewer) -> list[dict[str, Any]]:
        """All users, for who administrates the registry."""
        _refuse_unless_everything(viewer)
        found = self._database.read(
            lambda rows: rows.all("SELECT name, admin, made_at, closed_at FROM users ORDER BY name")
        )
        return [{"user": n, "admin": bool(a), "made_at": m, "closed_at": c or None} for n, a, m, c in found]

    def add_member(self, viewer: Viewer, owner: str, user: str) -> None:
        """Let a user act for a group, which is made where it is not there yet."""
        _refuse_name(owner, "owner")

        def work(rows: Rows) -> None:
            there = rows.one("SELECT 1 FROM owners WHERE name = ?", owner)
            if not (viewer.may(Scope.ADMIN, owner) if there else viewer.everything and Scope.ADMIN in viewer.scopes):
                raise RegistryDenied(f"you may not say who acts for {owner}", hint="who administrates the registry may")
            _refuse_unknown_user(rows, user)
            if rows.one("SELECT 1 FROM users WHERE name = ?", owner):
                raise RegistryConflict(f"{owner} is a user, and acts for himself", hint="choose a name of its own")
            if not there:
                rows.all("INSERT INTO owners (name, made_at) VALUES (?, ?)", owner, now())
                append(rows, viewer.user, "made", f"owner:{owner}")
            if rows.one("SELECT 1 FROM members WHERE owner = ? AND user_name = ?", owner, user) is None:
                rows.all("INSERT INTO members (owner, user_name) VALUES (?, ?)", owner, user)
                append(rows, viewer.user, "joined", f"owner:{owner}", user=user)

        self._database.write(work)

    def remove_member(self, viewer: Viewer, owner: str, user: str) -> None:
        """Let a user act for a group no more."""
        _refuse_name(owner, "owner")
        _refuse_name(user, "user")
        if not viewer.may(Scope.ADMIN, owner):
            raise RegistryDenied(f"you may not say who acts for {owner}")

        def work(rows: Rows) -> None:
            if rows.one("SELECT 1 FROM users WHERE name = ?", owner):
                raise RegistryConflict(f"{owner} is a user, and acts for himself")
            if rows.one("SELECT 1 FROM members WHERE owner = ? AND user_name = ?", owner, user):
                rows.all("DELETE FROM members WHERE owner = ? AND user_name = ?", owner, user)
                append(rows, viewer.user, "left", f"owner:{owner}", user=user)

        self._database.write(work)

    def add_token(self, viewer: Viewer, asked: TokenAsked, *, user: str = "") -> MadeToken:
        """A token for oneself; for another user by who administrates the registry."""
        of = user or viewer.user
        if Scope.ADMIN not in viewer.scopes or not of or (of != viewer.user and not viewer.everything):
            raise RegistryDenied(
                "you may not make this token", hint="it takes a token of your own with the scope admin"
            )
        _refuse_name(of, "user")
        if harmless(asked.purpose).strip() == _SESSION:
            raise RegistryError("no other token has the purpose of sessions", found=_SESSION, allowed="another purpose")
        until = _until(asked.days)
        _refuse_more(viewer, asked)

        def work(rows: Rows, token: str) -> MadeToken:
            _refuse_closed_user(rows, of)
            ends, limits = rows.one("SELECT expires_at, owners FROM tokens WHERE id = ?", viewer.token) or ("", "")
            limited = replace(asked, owners=asked.owners or tuple(limits.split()))
            _refuse_other_owners(viewer, limited, limits.split())
            longest = until if viewer.everything else min(until, ends)
            return _add_token(rows, token, viewer.user, limited, user=of, until=longest)

        return self._with_token(work)

    def still(self, viewer: Viewer) -> Viewer:
        """What the viewer may do now: what he asked for may have taken hours. RegistryDenied once his token is over."""
        question = "SELECT hash FROM tokens WHERE id = ?"

        def work(rows: Rows) -> Viewer | None:
            found = rows.one(question, viewer.token)
            return None if found is None else _viewer(rows, str(found[0]), now())

        found = self._database.read(work)
        if found is None:
            raise RegistryDenied("the token ended while the request was answered", hint="isorun login URL")
        return found

    def renew(self, user: str, days: float = 90.0) -> MadeToken:
        """A token for a user who lost his: for who has the registry's files, and so could write whatever he likes."""

        def work(rows: Rows, token: str) -> MadeToken:
            _refuse_closed_user(rows, user)
            asked = TokenAsked(purpose="renewed on the server")
            return _add_token(rows, token, "", asked, user=user, until=_until(days))

        return self._with_token(work)

    def session(self, token: str) -> MadeToken:
        """A token for a browser, which reads what the given one reads, for hours."""

        def work(rows: Rows, made: str) -> MadeToken:
            viewer = _viewer(rows, _hashed(token), now())
            if viewer is None or Scope.READ not in viewer.scopes:
                raise RegistryDenied("the token is not known here, has expired, or reads nothing")
            (until, owners), *_ = rows.all("SELECT expires_at, owners FROM tokens WHERE id = ?", viewer.token)
            asked = TokenAsked((Scope.READ,), tuple(owners.split()), purpose=_SESSION)
            shorter = min(str(until), _after(timedelta(hours=_SESSION_HOURS)))
            return _add_token(rows, made, viewer.user, asked, user=viewer.user, until=shorter)

        return self._with_token(work)

    def tokens(self, viewer: Viewer) -> list[dict[str, Any]]:
        """The tokens of the asker, without what they are; of all users for who administrates the registry."""
        question = "SELECT id, user_name, scopes, owners, purpose, made_at, expires_at, revoked_at FROM tokens"
        found = self._database.read(
            lambda rows: (
                rows.all(f"{question} ORDER BY id")
                if viewer.everything
                else rows.all(f"{question} WHERE user_name = ? ORDER BY id", viewer.user)
            )
        )
        names = ("number", "user", "scopes", "owners", "purpose", "made_at", "expires_at", "revoked_at")
        return [
            {**dict(zip(names, row, strict=True)), "scopes": row[2].split(), "owners": row[3].split()} for row in found
        ]

    def revoke(self, viewer: Viewer, number: int) -> None:
        """End a token: the one that asks, or with the scope admin another of one's own, or anyone's.

        With one that is no session of a browser end those of its user, too: they may have been made with it.
        """

        def work(rows: Rows) -> None:
            found = rows.one("SELECT user_name, revoked_at, purpose FROM tokens WHERE id = ?", number)
            own = found is not None and found[0] == viewer.user and Scope.ADMIN in viewer.scopes
            if found is None or not (number == viewer.token or own or viewer.everything):
                raise RegistryMissing(f"there is no token {number} of yours", hint="isorun registry tokens")
            if not found[1]:
                for one in (number, *(_sessions(rows, str(found[0])) if found[2] != _SESSION else ())):
                    rows.all("UPDATE tokens SET revoked_at = ? WHERE id = ?", now(), one)
                    append(rows, viewer.user, "revoked", f"token:{one}", of=str(found[0]))

        self._database.write(work)

    def _with_token(self, work: Callable[[Rows, str], MadeToken]) -> MadeToken:
        """Make a token once, also where the answer of the index is lost and it is asked again."""
        token = f"{_BEGINNING}{secrets.token_hex(32)}"
        return self._database.write(lambda rows: _made(rows, token) or work(rows, token))


def _viewer(rows: Rows, hashed: str, at: str) -> Viewer | None:
    if rows.one("SELECT 1 FROM registry WHERE set_up_hash = ? AND set_up_until > ?", hashed, at):
        return Viewer(scopes=frozenset({Scope.SET_UP}))
    found = rows.one(
        "SELECT tokens.id, tokens.user_name, scopes, owners, admin FROM tokens JOIN users ON users.name = user_name "
        "WHERE hash = ? AND expires_at > ? AND revoked_at = '' AND closed_at = ''",
        hashed,
        at,
    )
    if found is None:
        return None
    number, user, scopes, limited, admin = found
    allowed = frozenset(Scope(word) for word in scopes.split())
    own = {user, *(owner for (owner,) in rows.all("SELECT owner FROM members WHERE user_name = ?", user))}
    owners = frozenset(own & set(limited.split()) if limited else own)
    return Viewer(user, allowed, owners, bool(admin) and not limited and Scope.ADMIN in allowed, int(number))


def _sessions(rows: Rows, user: str) -> list[int]:
    question = "SELECT id FROM tokens WHERE user_name = ? AND purpose = ? AND revoked_at = '' AND expires_at > ?"
    return [int(number) for (number,) in rows.all(question, user, _SESSION, now())]


def _add_user(rows: Rows, by: str, user: str, *, admin: bool) -> None:
    rows.all("INSERT INTO users (name, admin, made_at) VALUES (?, ?, ?)", user, int(admin), now())
    rows.all("INSERT INTO owners (name, made_at) VALUES (?, ?)", user, now())
    append(rows, by, "made", f"user:{user}", admin=admin)


def _add_token(rows: Rows, token: str, by: str, asked: TokenAsked, *, user: str, until: str) -> MadeToken:
    scopes = tuple(dict.fromkeys(str(scope) for scope in asked.scopes))
    rows.all(
        "INSERT INTO tokens (hash, user_name, scopes, owners, purpose, made_at, expires_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        *(_hashed(token), user, " ".join(scopes), " ".join(asked.owners)),
        *(harmless(asked.purpose)[:_LONGEST_PURPOSE], now(), until),
    )
    made = _made(rows, token)
    assert made is not None
    stored = rows.one(f"SELECT {TOKEN_ROW} FROM tokens WHERE id = ?", made.number)  # noqa: S608 - ours
    assert stored is not None
    said = {"user": user, "scopes": list(scopes), "owners": list(asked.owners), "expires_at": until}
    append(rows, by, "made", f"token:{made.number}", **said, row=row_digest(*stored))
    return made


def _made(rows: Rows, token: str) -> MadeToken | None:
    question = "SELECT id, user_name, scopes, owners, expires_at FROM tokens WHERE hash = ?"
    found = rows.one(question, _hashed(token))
    if found is None:
        return None
    number, user, scopes, owners, until = found
    return MadeToken(token, int(number), user, tuple(scopes.split()), tuple(owners.split()), until)


def _refuse_more(viewer: Viewer, asked: TokenAsked) -> None:
    """No token allows more than the one that it is made with."""
    if not asked.scopes or Scope.SET_UP in asked.scopes:
        raise RegistryError("a token needs scopes", allowed=", ".join(_USUAL))
    if not all(map(valid_part, asked.owners)) or len(asked.owners) > _MOST_OWNERS:
        raise RegistryError("these are no owners", allowed=f"names of owners, at most {_MOST_OWNERS}")
    if not set(asked.scopes) <= viewer.scopes:
        raise RegistryDenied("a token has no scope that the one it is made with has not")


def _refuse_other_owners(viewer: Viewer, asked: TokenAsked, limits: Sequence[str]) -> None:
    wanted = set(asked.owners)
    if (limits and not wanted <= set(limits)) or (not viewer.everything and not wanted <= viewer.owners):
        raise RegistryDenied("a token is for no owner that the one it is made with is not for")


def _refuse_unless_everything(viewer: Viewer) -> None:
    if not (viewer.everything and Scope.ADMIN in viewer.scopes):
        raise RegistryDenied("only who administrates the registry may do this")


def _refuse_name(text: str, kind: str) -> None:
    if not valid_part(text):
        allowed = "small letters and digits, single . _ - between them, at most 64 characters"
        raise RegistryError(f"no {kind} can be called so", found=repr(text[:80]), allowed=allowed)


def _refuse_unknown_user(rows: Rows, user: str) -> None:
    if rows.one("SELECT 1 FROM users WHERE name = ?", user) is None:
        raise RegistryMissing("there is no such user", found=repr(user[:80]), hint="isorun registry users")


def _refuse_closed_user(rows: Rows, user: str) -> None:
    """Whoever was closed has no token that is worth anything, and gets none."""
    _refuse_unknown_user(rows, user)
    if rows.one("SELECT 1 FROM users WHERE name = ? AND closed_at <> ''", user):
        raise RegistryConflict(f"the user {user} was closed", hint="isorun registry user NAME makes another one")


def _until(days: float) -> str:
    if not 0 < days <= LONGEST_DAYS:
        raise RegistryError("a token ends", found=f"{days:g} days", allowed=f"more than 0, at most {LONGEST_DAYS} days")
    return _after(timedelta(days=days))


def _after(time: timedelta) -> str:
    return (datetime.now(UTC) + time).strftime("%Y-%m-%dT%H:%M:%SZ")


def _hashed(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
