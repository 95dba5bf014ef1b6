"""One warning of a study."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["StudyWarning", "some"]


@dataclass(frozen=True, slots=True)
class StudyWarning:
    """A stable code, one sentence, what to do next, and the groups it is about (none: the whole study)."""

    code: str
    message: str
    next_step: str
    groups: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"code": self.code, "message": self.message, "next": self.next_step, "groups": list(self.groups)}


def some(count: int, noun: str) -> str:
    """A count with its noun: 1 run, 2 runs."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
