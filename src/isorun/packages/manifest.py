"""The manifest: every member with its size and SHA-256. Its own SHA-256 is the address of the package.

All bytes of a package follow from its manifest and members (and its signature, where it has one), so that two packages
with one address hold the same.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from isorun.packages import FORMAT, MANIFEST, SIGNATURE, refused
from isorun.packages.canonical import jcs, read_jcs
from isorun.packages.container import valid_name

__all__ = ["Manifest", "Member"]

_TYPE: Final = "isorun-package"
_KEYS: Final = {"format", "members", "points", "runs", "study", "type"}
_SHA256: Final = re.compile("[0-9a-f]{64}")
_MOST: Final = 2**53 - 1


@dataclass(frozen=True, slots=True)
class Member:
    """A member and what its content is known by."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a package says it holds. points: of all series of all runs."""

    study: str
    runs: int
    points: int
    members: tuple[Member, ...]

    def to_bytes(self) -> bytes:
        """The manifest as it lies in the package, in the form of RFC 8785."""
        members = [{"name": item.name, "sha256": item.sha256, "size": item.size} for item in self.members]
        counts = {"points": self.points, "runs": self.runs}
        return jcs({"type": _TYPE, "format": FORMAT, "study": self.study, **counts, "members": members})

    @property
    def address(self) -> str:
        """What this content is known by, everywhere."""
        return f"sha256:{hashlib.sha256(self.to_bytes()).hexdigest()}"

    @classmethod
    def from_bytes(cls, data: bytes) -> Manifest:
        """The manifest of a package; PackageError where it is none, or one of a later form."""
        read = read_jcs(data, MANIFEST)
        if not isinstance(read, dict) or read.get("type") != _TYPE:
            raise refused(f"{MANIFEST}: this is no manifest of a package")
        if type(read.get("format")) is not int or read["format"] != FORMAT:
            found = f"{read.get('format')!r}"[:60]
            raise refused("the package is of a form that this isorun does not know", found, f"format {FORMAT}")
        if set(read) != _KEYS or not isinstance(read["study"], str) or not isinstance(read["members"], list):
            raise refused(f"{MANIFEST}: it does not say what it should", ", ".join(sorted(read))[:200])
        if not _are_counts(read["runs"], read["points"]):
            raise refused(f"{MANIFEST}: these are no counts", f"{read['runs']!r}, {read['points']!r}"[:60])
        return cls(read["study"], read["runs"], read["points"], _members(read["members"]))


def _are_counts(*values: object) -> bool:
    return all(type(value) is int and 0 <= value <= _MOST for value in values)


def _members(items: Sequence[Any]) -> tuple[Member, ...]:
    members = tuple(map(_member, items))
    if len({member.name for member in members}) != len(members):
        raise refused(f"{MANIFEST}: it names a member twice")
    return members


def _member(item: Any) -> Member:
    if not isinstance(item, Mapping) or set(item) != {"name", "sha256", "size"}:
        raise refused(f"{MANIFEST}: it names a member without saying what it is known by")
    name, sha256, size = item["name"], item["sha256"], item["size"]
    named = isinstance(name, str) and valid_name(name) and name not in {MANIFEST, SIGNATURE}
    if not named or not _are_counts(size) or not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
        raise refused(f"{MANIFEST}: it names something that no member can be", f"{name!r}"[:120])
    return Member(name, size, sha256)
