"""What an audit finds: a source of nondeterminism that is left open, where, why, how to close it, and how sure that is.

A finding may carry edits of the source that close it; `patching` makes a patch of them.
"""

from __future__ import annotations

import ast
import enum
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from isorun.diagnose.audit.program import Source

__all__ = ["KINDS", "AuditFinding", "SourceEdit", "Sure", "edited", "with_keyword"]

KINDS: Final = (
    *("unseeded-generator", "late-seed", "fresh-seed", "hash-order", "loader-workers", "cudnn-autotune"),
    *("nondeterministic-kernels", "atomics", "tf32", "uninitialised-memory", "thread-count", "file-order"),
    *("data-checksum", "unpinned-packages"),
)
"""All kinds of findings, as they are told: what makes two runs here differ first, then what other machines change."""


class Sure(enum.StrEnum):
    """How sure a finding is: the run saw it or the source leaves no doubt; it is likely; it may be."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    @classmethod
    def where(cls, certain: bool) -> Sure:
        """Of what the source shows: without a doubt where no unknown condition stands before it, else likely."""
        return cls.HIGH if certain else cls.MEDIUM


class SourceEdit(NamedTuple):
    """Replaces the bytes from begin to end of a file by a text.

    file: empty where the text names what the head of the script has to hold instead (a generator, "kernels", …).
    """

    file: str
    begin: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """about: which generator, operation or package, for what joins findings. edits: what closes it, where known.

    ranks: of a distributed training, those it was found in where that is not all of them; empty for all.
    """

    kind: str
    file: str
    line: int
    why: str
    fix: str
    sure: Sure
    about: str = ""
    edits: tuple[SourceEdit, ...] = ()
    ranks: tuple[int, ...] = ()

    @property
    def place(self) -> str:
        """Where, as people write it."""
        return f"{self.file}:{self.line}" if self.line else self.file

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        found = {name: getattr(self, name) for name in ("kind", "file", "line", "why", "fix")}
        return {**found, "sure": str(self.sure), **({"ranks": list(self.ranks)} if self.ranks else {})}


def edited(source: Source, node: ast.AST, text: str) -> tuple[SourceEdit, ...]:
    """The edit that puts a text in the place of a node."""
    begin, end = source.span(node)
    return (SourceEdit(source.shown, begin, end, text),) if end else ()


def with_keyword(source: Source, call: ast.Call, text: str) -> tuple[SourceEdit, ...]:
    """The edit that adds a keyword to a call, before its last bracket."""
    edits = edited(source, call, text)
    if not edits:
        return ()
    place = edits[0].end - 1
    before = source.text.encode()[:place].rstrip()
    return (SourceEdit(source.shown, place, place, text if before.endswith((b"(", b",")) else f", {text}"),)
