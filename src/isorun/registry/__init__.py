"""A registry: an index over packages, which outlive it. No HTTP is here (docs/registry.md, docs/design/registry.md).

Here is who asks. Every function that shows or changes something takes a `Viewer`, and none has a default for it: what
nobody may see is not left to whoever calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

__all__ = ["EVERYTHING", "STRANGER", "Scope", "Viewer"]


class Scope(StrEnum):
    """What a token lets its bearer do."""

    READ = "read"
    PUSH = "push"
    YANK = "yank"
    ADMIN = "admin"
    SET_UP = "set-up"
    """Of the one-time token that a registry without users prints, and of no other."""


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who asks, by the token that came with the question; a stranger has none.

    owners: those whose private packages are seen, and which the scopes are for. everything: all owners, and the
    registry itself.
    """

    user: str = ""
    scopes: frozenset[Scope] = frozenset()
    owners: frozenset[str] = frozenset()
    everything: bool = False
    token: int = 0

    def may(self, scope: Scope, owner: str) -> bool:
        """Whether this may be done to what belongs to the owner."""
        return scope in self.scopes and (self.everything or owner in self.owners)

    def sees_private(self, owner: str) -> bool:
        """Whether packages of the owner that are not public exist for this viewer."""
        return self.may(Scope.READ, owner)


STRANGER: Final = Viewer()
EVERYTHING: Final = Viewer(scopes=frozenset({Scope.READ}), everything=True)
"""Somebody at his own machine, who could open the files as well: he reads all of it, and changes nothing."""
