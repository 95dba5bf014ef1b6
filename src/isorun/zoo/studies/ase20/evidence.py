"""Everything our runs say about the paper, gathered once for tables, figures, verdict and JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from isorun.study.records import RunRecord
from isorun.zoo.paper import Request
from isorun.zoo.studies.ase20.design import PlannedPart, planned_parts, study_of
from isorun.zoo.studies.ase20.example import Example, examples
from isorun.zoo.studies.ase20.factors import FactorShares, factor_shares
from isorun.zoo.studies.ase20.findings import Finding, findings
from isorun.zoo.studies.ase20.measured import Measured, PartResult, analysed, measured_groups
from isorun.zoo.studies.ase20.nested import Nested, nested_of
from isorun.zoo.studies.ase20.sharing import gpu_runs_at_once

__all__ = ["Evidence", "gathered"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Parts with their results, identical runs by network and level, and what follows from them."""

    parts: tuple[PartResult, ...]
    groups: tuple[Measured, ...]
    examples: tuple[Example, ...]
    shares: tuple[FactorShares, ...]
    findings: tuple[Finding, ...]
    nested: Nested | None = None

    @property
    def planned(self) -> tuple[PlannedPart, ...]:
        """The parts as they were planned."""
        return tuple(part.planned for part in self.parts)

    @property
    def begun(self) -> tuple[PartResult, ...]:
        """The parts of which anything was recorded; a warning names the others."""
        return tuple(part for part in self.parts if part.result is not None)

    @property
    def begun_groups(self) -> tuple[Measured, ...]:
        """The groups of those parts, also such as have no run yet."""
        return tuple(group for group in self.groups if group.group is not None)

    @property
    def finished(self) -> int:
        """How many runs finished in all."""
        return sum(group.finished for part in self.parts if part.result for group in part.result.groups)


def gathered(request: Request, records: Mapping[str, Sequence[RunRecord]], is_made: Callable[[str], bool]) -> Evidence:
    """The evidence in the records by study name."""
    parts = tuple(
        analysed(part, study_of(part, request, is_made), records.get(part.name, ())) for part in planned_parts(request)
    )
    groups = measured_groups(parts, gpu_runs_at_once(records))
    shown = examples(groups)
    shares = tuple(factor_shares(part) for part in parts if part.planned.factors and part.result is not None)
    nested = nested_of(parts, records)
    found = findings(parts, groups, shown, is_smoke=request.scale == "smoke")
    return Evidence(parts, groups, shown, shares, found, nested)
