"""Which sources of nondeterminism a training leaves open, and how to close each.

Two looks at one program: its source, which is parsed and never run (`read_program`, `examine_source`), and a few real
steps of it, which the worker watches (`seen.hold_together`). What one finds the other confirms or withdraws.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar

from isorun.analysis import Told
from isorun.diagnose.audit.findings import KINDS, AuditFinding, Sure
from isorun.diagnose.audit.flow import Flow
from isorun.diagnose.audit.generators import generator_findings
from isorun.diagnose.audit.inputs import input_findings
from isorun.diagnose.audit.kernels import kernel_findings
from isorun.diagnose.audit.order import order_findings
from isorun.diagnose.audit.program import AuditedProgram, read_program, without_collection

__all__ = [
    "KINDS",
    "Audit",
    "AuditFinding",
    "Sure",
    "Withdrawn",
    "examine_source",
    "in_order",
    "read_program",
    "without_collection",
]


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """A finding of the source that the run did not bear out."""

    finding: AuditFinding
    because: str

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {**self.finding.to_json(), "because": self.because}


@dataclass(frozen=True, slots=True)
class Audit(Told):
    """What a training leaves open. command: as it was given. ran: how the run went, in words; empty without one.

    effective: how the run really computed; empty without one. patch: what closes findings, for `patch -p1`.
    unread: files of the program's own that were not looked at, each with the reason.
    failed: the run came to no end that tells anything.
    """

    told_as: ClassVar[str] = "audit"

    command: tuple[str, ...]
    script: str
    files: int
    findings: tuple[AuditFinding, ...]
    withdrawn: tuple[Withdrawn, ...] = ()
    effective: Mapping[str, Any] = field(default_factory=dict)
    ran: str = ""
    patch: str = ""
    unread: tuple[str, ...] = ()
    failed: bool = False

    @property
    def sure(self) -> tuple[AuditFinding, ...]:
        """What is open without a doubt."""
        return tuple(finding for finding in self.findings if finding.sure is Sure.HIGH)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "command": list(self.command),
            "script": self.script,
            "files": self.files,
            "unread": list(self.unread),
            "findings": [finding.to_json() for finding in self.findings],
            "withdrawn": [item.to_json() for item in self.withdrawn],
            "run": self.ran,
            "failed": self.failed,
            "effective": dict(self.effective),
        }


@without_collection()
def examine_source(program: AuditedProgram) -> tuple[AuditFinding, ...]:
    """All that the source alone tells, each place once."""
    flow = Flow(program)
    found: list[AuditFinding] = []
    for look in (generator_findings, kernel_findings, order_findings, input_findings):
        with suppress(RecursionError):  # an expression of thousands of parts: what was found before it stays
            found.extend(look(flow))
    return in_order(found)


def in_order(found: Iterable[AuditFinding]) -> tuple[AuditFinding, ...]:
    """The surest first, then by kind and place; each kind and place once."""
    ranks = {sure: place for place, sure in enumerate(Sure)}
    sorted_ones = sorted(found, key=lambda item: (ranks[item.sure], KINDS.index(item.kind), item.file, item.line))
    once = {(item.kind, item.file, item.line): item for item in reversed(sorted_ones)}
    kept = set(map(id, once.values()))
    return tuple(item for item in sorted_ones if id(item) in kept)
