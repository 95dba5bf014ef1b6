"""Table 5: the same training with the same seed, many times; by how much do the results differ?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from isorun.analysis.spreads.spread import spread
from isorun.report.numbers import UNKNOWN, fixed
from isorun.report.tables import Column, Table
from isorun.zoo.studies.fewshot.published import TABLE_5
from isorun.zoo.studies.fewshot.runs import ControlRun

__all__ = ["ControlResult", "control_results", "control_table"]

_NOTE: Final = (
    "ours: ± is the standard deviation over runs (n - 1); the paper does not say what its ± is. different weights: 1 "
    "means that all runs ended with the same weights, bit for bit. Proto nets*: prototypical networks in TADAM's code, "
    "ours with its ResNet-12."
)


@dataclass(frozen=True, slots=True)
class ControlResult:
    """n finished runs of one control; mean and sd (n - 1) as fractions, None where there are too few.

    weights: how many different trained weights they left, None where runs left no digest.
    """

    control: str
    n: int
    mean: float | None
    sd: float | None
    weights: int | None

    @property
    def text(self) -> str:
        """As Table 5 writes it, in percent."""
        if self.mean is None:
            return UNKNOWN
        return f"{fixed(100.0 * self.mean, 2)} (± {fixed(None if self.sd is None else 100.0 * self.sd, 2)})"


def control_results(runs: Sequence[ControlRun]) -> tuple[ControlResult, ...]:
    """One for each column of Table 5, with or without runs."""
    return tuple(_result(name, [run for run in runs if run.control == name]) for name in TABLE_5)


def control_table(results: Sequence[ControlResult]) -> Table:
    """Table 5, the paper's row below ours."""
    theirs = [f"{fixed(row.mean, 2)} (± {row.plus_minus:.2f})" for row in TABLE_5.values()]
    rows = (
        ("Accuracy", "ours", *(row.text for row in results)),
        ("Accuracy", "paper", *theirs),
        ("runs", "ours", *(str(row.n) for row in results)),
        ("different weights", "ours", *(UNKNOWN if row.weights is None else str(row.weights) for row in results)),
    )
    return Table(
        name="table-5",
        title="Table 5: one seed, identical runs, accuracy in percent",
        columns=(Column("-", key=True), Column("whose", key=True), *(Column(row.label) for row in TABLE_5.values())),
        rows=rows,
        notes=(_NOTE,),
    )


def _result(name: str, runs: Sequence[ControlRun]) -> ControlResult:
    found = spread(run.accuracy for run in runs)
    digests = {run.weights for run in runs}
    return ControlResult(name, found.n, found.mean, found.sd, len(digests) if digests and "" not in digests else None)
