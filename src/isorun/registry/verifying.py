"""Is a registry whole? Its audit log, its index against the log, and every file that is named."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from isorun.errors import InputError, RegistryError, StoreError
from isorun.registry import audit
from isorun.registry.database import Rows
from isorun.registry.index import VERSION_ROW
from isorun.registry.opening import Registry
from isorun.registry.people import TOKEN_ROW

__all__ = ["LookedOver", "parse_head", "verify_registry"]

_VERSIONS = (
    "SELECT names.owner || '/' || names.project || '/' || names.name, version, digest, address, size, pushed_by "
    "FROM versions JOIN names ON names.id = name_id ORDER BY versions.id"
)
_LAST_LINE = "SELECT coalesce(max(line), 0) FROM audit"
_RIGHTS = {
    "user": "SELECT name, admin, closed_at <> '' FROM users",
    "token": "SELECT id, user_name, scopes, owners, expires_at, revoked_at <> '' FROM tokens",
    "member": "SELECT owner || '/' || user_name FROM members",
    "package": "SELECT owner || '/' || project || '/' || name, public FROM names",
    "yank": (
        "SELECT owner || '/' || project || '/' || name || '@' || version, yanked_by, yank_reason "
        "FROM versions JOIN names ON names.id = name_id WHERE yanked_at <> ''"
    ),
}
"""Who may do and see what, by what it is called; the log tells of all of it."""
_ROWS = {
    "token ": f"SELECT id, {TOKEN_ROW} FROM tokens ORDER BY id",  # noqa: S608 - ours
    "": (
        f"SELECT owner || '/' || project || '/' || name || '@' || version, {VERSION_ROW} "  # noqa: S608
        "FROM versions JOIN names ON names.id = name_id ORDER BY versions.id"
    ),
}
"""Rows of which the log has digests, by what is said before their names."""


@dataclass(frozen=True, slots=True)
class LookedOver:
    """A registry that was looked over. damage: what is wrong with it, a sentence each.

    uncovered: tokens and versions whose contents the log does not cover: they were made before it did.
    """

    versions: int
    files: int
    head: audit.Head
    damage: tuple[str, ...]
    uncovered: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "whole": not self.damage,
            "versions": self.versions,
            "files": self.files,
            "audit": {"lines": self.head.line, "head": str(self.head)},
            "damage": list(self.damage),
            "uncovered": list(self.uncovered),
        }


def parse_head(text: str) -> audit.Head:
    """The head of an audit log as it was written down."""
    line, _, hashed = text.partition(":")
    if not line.isdigit() or len(line) > 15 or not re.fullmatch("[0-9a-f]{64}", hashed):
        allowed = "LINE:HASH, as isorun registry verify prints it"
        raise InputError("this is no head of an audit log", found=repr(text[:100]), allowed=allowed)
    return audit.Head(int(line), hashed)


def verify_registry(registry: Registry, known: audit.Head | None = None) -> LookedOver:
    """Look all of it over; nothing is changed. known: a head of the audit log that was written down earlier.

    It may be in use meanwhile: the index is seen at one moment, and of the log what was there then.
    """
    damage: list[str] = []
    head, told = audit.Head(0, ""), _Told()
    seen = registry.database.read(_Seen.of)
    log = told.heard(audit.lines_until(registry.database, seen.last_line))
    try:
        head = audit.verify_chain(log, known)
    except RegistryError as error:
        damage.append(f"{error.what}: {error.found}")
        for _ in log:  # what it tells behind that is still held against the index
            pass
    damage += _disagreements(seen, told)
    damage += [
        f"{name} is not as the audit log says: another row was put in its place"
        for name, digest in seen.digests.items()
        if told.rows.get(name, digest) != digest
    ]
    sizes = {row[2]: row[4] for row in seen.versions}
    damage += _damaged_files(registry, sizes)
    uncovered = tuple(name for name in seen.digests if name not in told.rows)
    return LookedOver(len(seen.versions), len(sizes), head, tuple(damage), uncovered)


def _damaged_files(registry: Registry, sizes: Mapping[Any, Any]) -> Iterator[str]:
    """Files that are not what they are called. sizes: what the index says of each, by its digest."""
    for digest, size in sizes.items():
        try:
            if registry.blobs.check(digest) != size:
                yield f"the blob {digest} has another size than the index says"
        except StoreError as error:
            yield error.what
        except (OSError, ValueError, TypeError) as error:
            yield f"the blob {str(digest)[:100]} cannot be read: {type(error).__name__}"


@dataclass(frozen=True, slots=True)
class _Seen:
    """The index at one moment. rights: who may do and see what; digests: of each token and version that of its row."""

    last_line: int
    versions: Sequence[tuple[Any, ...]]
    rights: Mapping[str, Sequence[tuple[Any, ...]]]
    digests: Mapping[str, str]

    @classmethod
    def of(cls, rows: Rows) -> _Seen:
        last = rows.one(_LAST_LINE)
        assert last is not None
        digests = {
            f"{kind}{name}": audit.row_digest(*row) for kind, asked in _ROWS.items() for name, *row in rows.all(asked)
        }
        rights = {kind: rows.all(asked) for kind, asked in _RIGHTS.items()}
        return cls(int(last[0]), rows.all(_VERSIONS), rights, digests)


def _disagreements(seen: _Seen, told: _Told) -> Iterator[str]:
    """What the index holds and the log does not tell of as it is, and what the log tells of and is gone."""
    for name, version, digest, address, size, user in seen.versions:
        if told.pushed.pop(f"{name}@{version}", None) != (user, digest, address, size):
            yield f"{name}@{version} is not what the audit log says was pushed"
    yield from (f"{subject} was pushed, and is not in the index" for subject in told.pushed)
    for kind, found in seen.rights.items():
        there = {str(row[0]): row[1:] for row in found}
        said = told.rights[kind]
        for name in dict.fromkeys((*there, *said)):
            if there.get(name) != said.get(name):
                yield f"{kind} {name[:150]} is not as the audit log says"


class _Told:
    """What the lines of the log add up to: versions, who may do and see what, digests of rows where they have some."""

    def __init__(self) -> None:
        self.pushed: dict[str, tuple[Any, ...]] = {}
        self.rows: dict[str, str] = {}
        self.rights: dict[str, dict[str, tuple[Any, ...]]] = {kind: {} for kind in _RIGHTS}

    def heard(self, log: Iterable[audit.AuditLine]) -> Iterator[audit.AuditLine]:
        """The lines, each listened to as it comes; one that was altered into something else tells nothing."""
        for line in log:
            with suppress(AttributeError, KeyError, TypeError, ValueError):
                kind, _, name = line.subject.partition(":")
                self._hear(line.user, (line.action, kind), name or line.subject, json.loads(line.details))
            yield line

    def _hear(self, user: str, what: tuple[str, str], name: str, said: dict[str, Any]) -> None:
        rights = self.rights
        match what:
            case ("made", "user"):
                rights["user"][name] = (int(said["admin"]), False)
            case ("closed", "user"):
                rights["user"][name] = (rights["user"][name][0], True)
            case ("made", "token"):
                words = (" ".join(said["scopes"]), " ".join(said["owners"]))
                rights["token"][name] = (said["user"], *words, said["expires_at"], False)
                self._cover(f"token {name}", said)
            case ("revoked", "token"):
                rights["token"][name] = (*rights["token"][name][:-1], True)
            case ("joined", "owner"):
                rights["member"][f"{name}/{said['user']}"] = ()
            case ("left", "owner"):
                del rights["member"][f"{name}/{said['user']}"]
            case ("pushed", _):
                self.pushed[name] = (user, said["sha256"], said["address"], said["bytes"])
                rights["package"].setdefault(name.rpartition("@")[0], (int(said["public"]),))
                self._cover(name, said)
            case ("published" | "hidden", _):
                rights["package"][name] = (int(what[0] == "published"),)
            case ("yanked", _):
                rights["yank"][name] = (user, said["reason"])
            case ("unyanked", _):
                rights["yank"].pop(name, None)

    def _cover(self, name: str, said: dict[str, Any]) -> None:
        if "row" in said:
            self.rows[name] = said["row"]
