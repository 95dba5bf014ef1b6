"""How much evidence a model's rows are for its fixed effects: runs, and the seeds that they share."""

from __future__ import annotations

from dataclasses import dataclass

from isorun.analysis.evidence.condition import some
from isorun.analysis.evidence.units import names_seed
from isorun.analysis.mixed.result import AnovaRow, MixedResult

__all__ = ["Evidence", "evidence_of"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was drawn: n runs (rows) of `units` seeds; unit: their column. None where no random effect is of seeds."""

    n: int
    units: int | None
    unit: str | None

    def sentence(self, test: AnovaRow) -> str:
        """What the runs count as for one fixed term, as its degrees of freedom say; empty without seeds."""
        if self.unit is None or self.units is None:
            return ""
        what = f"{some(self.n, 'run')} of {some(self.units, self.unit)}"
        df = f"{test.den_df:.1f} degrees of freedom"
        # A term that varies within seeds has at most one error degree of freedom a seed and level.
        if test.den_df <= (test.num_df + 1) * self.units:
            return f"{what} count as {self.units} for {test.term}: its test has {df}."
        return f"{what}: for {test.term} this model counts every run ({df}), as seeds act alike in it."


def evidence_of(result: MixedResult) -> Evidence:
    """Count what was drawn; a random effect of seeds alone tells their number more surely than one within levels."""
    for item in sorted(result.fit.problem.random, key=lambda item: len(item.term.columns)):
        for place, column in enumerate(item.term.columns):
            if names_seed(column):
                parts = [level.split(":") for level in item.factor.levels]
                plain = all(len(part) == len(item.term.columns) for part in parts)
                labels = {part[place] for part in parts} if plain else set(item.factor.levels)
                return Evidence(result.rows, len(labels), column)
    return Evidence(result.rows, None, None)
