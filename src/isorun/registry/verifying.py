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
    return LookedOver(len(versions), len(sizes), head, tuple(damage))


def _disagreements(registry: Registry, versions: Sequence[tuple[Any, ...]]) -> Iterator[str]:
    """Versions that the log does not tell of as they are, and pushes that it tells of and that are gone."""
    pushed = {}
    question = "SELECT subject, user_name, details FROM audit WHERE action = 'pushed'"
    for subject, user, details in registry.database.read(lambda rows: rows.all(question)):
        said = json.loads(details)
        pushed[subject] = (user, said["sha256"], said["address"], said["bytes"])
    for name, version, digest, address, size, user in versions:
        if pushed.pop(f"{name}@{version}", None) != (user, digest, address, size):
            yield f"{name}@{version} is not what the audit log says was pushed"
    yield from (f"{subject} was pushed, and is not in the index" for subject in pushed)
