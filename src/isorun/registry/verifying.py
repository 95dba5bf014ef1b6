"""Is a registry whole? Its audit log, its index against the log, and every file that is named."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from isorun.errors import InputError, RegistryError, StoreError
from isorun.registry import audit
from isorun.registry.opening import Registry

__all__ = ["LookedOver", "parse_head", "verify_registry"]

_VERSIONS = (
    "SELECT names.owner || '/' || names.project || '/' || names.name, version, digest, address, size, pushed_by "
    "FROM versions JOIN names ON names.id = name_id ORDER BY versions.id"
)
_LINES = "SELECT user_name, action, subject, details FROM audit ORDER BY line"
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


@dataclass(frozen=True, slots=True)
class LookedOver:
    """A registry that was looked over. damage: what is wrong with it, a sentence each."""

    versions: int
    files: int
    head: audit.Head
    damage: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "whole": not self.damage,
            "versions": self.versions,
            "files": self.files,
            "audit": {"lines": self.head.line, "head": str(self.head)},
            "damage": list(self.damage),
        }


def parse_head(text: str) -> audit.Head:
    """The head of an audit log as it was written down."""
    line, _, hashed = text.partition(":")
    if not line.isdigit() or len(line) > 15 or not re.fullmatch("[0-9a-f]{64}", hashed):
        allowed = "LINE:HASH, as isorun registry verify prints it"
        raise InputError("this is no head of an audit log", found=repr(text[:100]), allowed=allowed)
    return audit.Head(int(line), hashed)


def verify_registry(registry: Registry, known: audit.Head | None = None) -> LookedOver:
    """Look all of it over; nothing is changed. known: a head of the audit log that was written down earlier."""
    damage: list[str] = []
    head = audit.Head(0, "")
    try:
        head = audit.verify_chain(registry.database, known)
    except RegistryError as error:
        damage.append(f"{error.what}: {error.found}")
    versions = registry.database.read(lambda rows: rows.all(_VERSIONS))
    damage += _disagreements(registry, versions)
    sizes = {row[2]: row[4] for row in versions}
    for digest, size in sizes.items():
        try:
            if registry.blobs.check(digest) != size:
                damage.append(f"the blob {digest} has another size than the index says")
        except StoreError as error:
            damage.append(error.what)
        except (OSError, ValueError, TypeError) as error:
            damage.append(f"the blob {str(digest)[:100]} cannot be read: {type(error).__name__}")
    return LookedOver(len(versions), len(sizes), head, tuple(damage))


def _disagreements(registry: Registry, versions: Sequence[tuple[Any, ...]]) -> Iterator[str]:
    """What the index holds and the log does not tell of as it is, and what the log tells of and is gone."""
    told = _Told()
    for line in _rows(registry, _LINES):
        told.hear(*line)
    for name, version, digest, address, size, user in versions:
        if told.pushed.pop(f"{name}@{version}", None) != (user, digest, address, size):
            yield f"{name}@{version} is not what the audit log says was pushed"
    yield from (f"{subject} was pushed, and is not in the index" for subject in told.pushed)
    for kind, question in _RIGHTS.items():
        there = {str(row[0]): row[1:] for row in _rows(registry, question)}
        said = told.rights[kind]
        for name in dict.fromkeys((*there, *said)):
            if there.get(name) != said.get(name):
                yield f"{kind} {name[:150]} is not as the audit log says"


def _rows(registry: Registry, question: str) -> list[tuple[Any, ...]]:
    return registry.database.read(lambda rows: rows.all(question))


class _Told:
    """What the lines of the log add up to: versions, and who may do and see what."""

    def __init__(self) -> None:
        self.pushed: dict[str, tuple[Any, ...]] = {}
        self.rights: dict[str, dict[str, tuple[Any, ...]]] = {kind: {} for kind in _RIGHTS}

    def hear(self, user: Any, action: Any, subject: Any, details: Any) -> None:
        """One line; one that was altered into something else tells nothing."""
        try:
            said = json.loads(details)
            kind, _, name = subject.partition(":")
            self._hear(user, (action, kind), name or subject, said)
        except (AttributeError, KeyError, TypeError, ValueError):
            return

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
            case ("revoked", "token"):
                rights["token"][name] = (*rights["token"][name][:-1], True)
            case ("joined", "owner"):
                rights["member"][f"{name}/{said['user']}"] = ()
            case ("left", "owner"):
                del rights["member"][f"{name}/{said['user']}"]
            case ("pushed", _):
                self.pushed[name] = (user, said["sha256"], said["address"], said["bytes"])
                rights["package"].setdefault(name.rpartition("@")[0], (int(said["public"]),))
            case ("published" | "hidden", _):
                rights["package"][name] = (int(what[0] == "published"),)
            case ("yanked", _):
                rights["yank"][name] = (user, said["reason"])
            case ("unyanked", _):
                rights["yank"].pop(name, None)
