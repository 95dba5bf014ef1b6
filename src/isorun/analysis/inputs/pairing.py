"""Pairs: runs of two approaches that belong together because they share a seed, a task or a split."""

from __future__ import annotations

from dataclasses import dataclass

from isorun.analysis.inputs.ranks import snapped
from isorun.analysis.inputs.samples import FloatArray

__all__ = ["Pairs"]


@dataclass(frozen=True, slots=True)
class Pairs:
    """The values of both sides in the order of their labels, and the labels that only one side has."""

    first: FloatArray
    second: FloatArray
    unmatched: tuple[str, ...] = ()

    @property
    def differences(self) -> FloatArray:
        """First minus second; equal differences are equal whatever floating point makes of them."""
        return snapped(self.first - self.second, float(max(abs(self.first).max(), abs(self.second).max())))
