"""Simulated runs: two sides without a difference, to which a known difference is added when power is measured.

Arrays are (runs, comparisons).
"""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from isorun.analysis.inputs.samples import FloatArray, finite_sample, is_constant
from isorun.analysis.sequential.projection import smoothed_resample
from isorun.errors import InputError

__all__ = ["AbstractSource", "NormalRuns", "OwnPairs", "OwnRuns", "source_of"]


class AbstractSource(abc.ABC):
    """Where simulated runs come from.

    `sd` is what an effect size is measured in: the standard deviation of a run, or of a pair's difference for paired
    tests. Both sides of a draw have the same mean; paired tests see the second side only through the difference.
    """

    sd: float
    description: str

    @abc.abstractmethod
    def sides(self, runs: int, comparisons: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Both sides of many comparisons."""


@dataclass(frozen=True, slots=True)
class NormalRuns(AbstractSource):
    """Normal runs, or for paired tests normal differences of pairs, of standard deviation `sd`."""

    sd: float = 1.0
    paired: bool = False
    description: str = "normal runs"

    def sides(self, runs: int, comparisons: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Independent normal sides; for pairs all of the noise is in the first."""
        first = self.sd * rng.standard_normal((runs, comparisons))
        second = np.zeros_like(first) if self.paired else self.sd * rng.standard_normal((runs, comparisons))
        return first, second


@dataclass(frozen=True, slots=True)
class OwnRuns(AbstractSource):
    """Runs like the user's: each side resampled with a little noise, and centred."""

    a: FloatArray
    b: FloatArray
    sd: float
    description: str

    def sides(self, runs: int, comparisons: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Both sides, resampled independently of each other."""
        shape = (runs, comparisons)
        return smoothed_resample(self.a, shape, rng), smoothed_resample(self.b, shape, rng)


@dataclass(frozen=True, slots=True)
class OwnPairs(AbstractSource):
    """Pairs like the user's: the differences resampled with a little noise, and centred."""

    differences: FloatArray
    sd: float
    description: str

    def sides(self, runs: int, comparisons: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """The differences, against zero."""
        first = smoothed_resample(self.differences, (runs, comparisons), rng)
        return first, np.zeros_like(first)


def source_of(a: ArrayLike | None, b: ArrayLike | None, *, sd: float | None, paired: bool) -> AbstractSource:
    """The user's own runs when there are any, normal runs of the given spread (1 by default) otherwise."""
    if a is None:
        if b is not None:
            raise InputError("runs of B without runs of A", hint="give the runs of A, or of both")
        return NormalRuns(_checked_sd(1.0 if sd is None else sd), paired)
    if sd is not None:
        raise InputError("both runs and their sd are given", hint="give one: the runs tell their sd")
    first = finite_sample(a, "A", minimum=2)
    second = first if b is None else finite_sample(b, "B", minimum=2)
    return _own_pairs(first, second, both=b is not None) if paired else _own_runs(first, second)


def _own_runs(a: FloatArray, b: FloatArray) -> OwnRuns:
    sd = math.sqrt((float(a.var(ddof=1)) + float(b.var(ddof=1))) / 2)
    if is_constant(a) and is_constant(b):
        raise InputError("power cannot be simulated from runs that do not vary", found=f"every run gave {a[0]:g}")
    given = f"{a.size} given" if a is b else f"{a.size} of A and {b.size} of B"
    return OwnRuns(_in_order(a), _in_order(b), sd, f"runs like the {given}")


def _own_pairs(a: FloatArray, b: FloatArray, *, both: bool) -> OwnPairs:
    if not both or a.size != b.size:
        raise InputError(
            "a paired design needs pairs of runs",
            found=f"{a.size} runs of A and {b.size if both else 0} of B",
            allowed="as many runs of A as of B, in the same order",
        )
    differences = a - b
    if is_constant(differences):
        raise InputError(
            "power cannot be simulated from differences that do not vary", found=f"{differences[0]:g} always"
        )
    sd = float(differences.std(ddof=1))
    return OwnPairs(_in_order(differences), sd, f"pairs like the {a.size} given")


def _in_order(values: FloatArray) -> FloatArray:
    """Centred, and sorted, so that the order of the rows of a table does not change what is drawn."""
    ordered = np.sort(values)
    return np.asarray(ordered - ordered.mean())


def _checked_sd(sd: float) -> float:
    if not (sd > 0 and math.isfinite(sd)):
        raise InputError("the sd cannot be used", found=f"{sd}", allowed="a finite number above 0")
    return sd
