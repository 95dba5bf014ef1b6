"""Survivors: the runs of a side that left a result, where others did not, and what is told of a claim that needs them.

What is done about them is up to who makes a claim (`sequential.survivors`, `leaderboards`): a run that left no result
counts as worse than all others, as in a check.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isorun.analysis.evidence import Condition, some
from isorun.analysis.evidence.units import Units
from isorun.analysis.samples import FloatArray

__all__ = ["Survivors", "of_survivors"]


@dataclass(frozen=True, slots=True)
class Survivors:
    """A side of which some units may have left no result. lost: their labels."""

    name: str
    units: Units
    lost: frozenset[str]

    @property
    def whole(self) -> FloatArray:
        """The values of the units of which no run is lost, in their order."""
        labelled = zip(self.units.labels, self.units.values.tolist(), strict=True)
        return np.array([value for label, value in labelled if label not in self.lost], dtype=np.float64)

    @property
    def words(self) -> str:
        """How many of how many are lost."""
        noun = "run" if self.units.noun == "row" else self.units.noun
        return f"{len(self.lost)} of {some(len(self.lost) + self.whole.size, noun)} of {self.name} left no result"


def of_survivors(message: str, groups: tuple[str, ...] = (), *, voids: bool = True) -> Condition:
    """That a claim rests on the runs alone that left a result."""
    step = (
        "find out why; isorun run with the same study makes failed runs again; what has nothing to do with the result "
        "may be left out of a table beforehand"
    )
    return Condition("survivors-only", message, step, groups, voids)
