"""Per-class gaps beside their binomial floor.

A class with 21 test images moves 4.8 points per image, so the best and the worst of 16 runs differ by several images
by chance alone. The floor is what independent runs would show if every run had the same true accuracy on the class:
the range of n binomial counts, whose law is computed exactly. Images differ in difficulty, which makes real counts
vary less than binomial ones; a gap beyond the floor is therefore surely more than chance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr

from isorun.analysis.evidence import some
from isorun.analysis.samples import FloatArray, adjusted, finite_sample
from isorun.errors import InputError

__all__ = ["ClassGap", "class_gaps", "range_tail"]


@dataclass(frozen=True, slots=True)
class ClassGap:
    """One class: its gap between the best and the worst run, and what chance alone would give.

    step: how much one example moves the accuracy. chance_gap: the expected gap under chance alone;
    chance_gap_95: what chance stays within in 95 of 100 cases. p: chance gives a gap at least this large; p_adjusted
    corrects for the number of classes (Holm).
    """

    name: str
    examples: int
    runs: int
    mean: float
    gap: float
    step: float
    chance_gap: float
    chance_gap_95: float
    p: float
    p_adjusted: float

    @property
    def exceeds_chance(self) -> bool:
        """Whether the gap is more than chance gives, at 5 % over all classes together."""
        return self.p_adjusted < 0.05

    @property
    def sentence(self) -> str:
        """The finding in words, in points."""
        return (
            f"class {self.name}: the best and the worst of {self.runs} runs differ by {100 * self.gap:.1f} points; "
            f"chance alone gives {100 * self.chance_gap:.1f} on average with {some(self.examples, 'example')}, up to "
            f"{100 * self.chance_gap_95:.1f} in 95 % of cases: {self._verdict}"
        )

    @property
    def _verdict(self) -> str:
        if self.exceeds_chance:
            return "this is more than chance explains"
        if self.gap > self.chance_gap_95:
            return "with so many classes looked at, chance still explains the largest gap"
        return "chance explains it"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "class": self.name,
            "examples": self.examples,
            "runs": self.runs,
            "mean": self.mean,
            "gap": self.gap,
            "step": self.step,
            "chance_gap": self.chance_gap,
            "chance_gap_95": self.chance_gap_95,
            "p": self.p,
            "p_adjusted": self.p_adjusted,
            "exceeds_chance": self.exceeds_chance,
        }


def class_gaps(accuracies: Mapping[str, npt.ArrayLike], examples: Mapping[str, int]) -> tuple[ClassGap, ...]:
    """The gaps of all classes. accuracies: class to the accuracy of each run, from 0 to 1; examples: class sizes."""
    samples = {name: _shares(values, name) for name, values in accuracies.items()}
    sizes = {name: _size(examples, name) for name in samples}
    tails = [range_tail(sizes[name], float(runs.mean()), runs.size) for name, runs in samples.items()]
    p_values = [_p(tail, runs) for tail, runs in zip(tails, samples.values(), strict=True)]
    corrected = adjusted(p_values).tolist()
    return tuple(
        _gap(name, samples[name], tail, p, p_adjusted)
        for name, tail, p, p_adjusted in zip(samples, tails, p_values, corrected, strict=True)
    )


def _shares(values: npt.ArrayLike, name: str) -> FloatArray:
    runs = finite_sample(values, f"the accuracies of class {name!r}", minimum=2)
    if runs.min() < 0.0 or runs.max() > 1.0:
        raise InputError(
            f"the accuracies of class {name!r} are no shares",
            found=f"{runs.min():g} to {runs.max():g}",
            allowed="0 to 1",
            hint="divide percentages by 100",
        )
    return runs


def _size(examples: Mapping[str, int], name: str) -> int:
    size = examples.get(name, 0)
    if size < 1:
        raise InputError(f"how many test examples class {name!r} has is not known", found=str(examples.get(name)))
    return int(size)


def range_tail(examples: int, accuracy: float, runs: int) -> FloatArray:
    """P(best count - worst count >= g) for g = 0 … examples, when all runs have this accuracy on the class.

    All counts lie within [x, x + g] and the smallest is x: P(within [x, x + g])^n - P(within [x + 1, x + g])^n,
    summed over x.
    """
    counts = np.arange(-1, examples + 1)
    cumulated = np.concatenate([[0.0], bdtr(counts[1:].astype(np.float64), examples, accuracy)])
    tail = np.ones(examples + 1)
    for gap in range(examples):
        upper = cumulated[np.minimum(np.arange(examples + 1) + gap + 1, examples + 1)]
        within = (upper - cumulated[:-1]) ** runs - (upper - cumulated[1:]).clip(0.0) ** runs
        tail[gap + 1] = max(0.0, 1.0 - float(within.sum()))
    return tail


def _p(tail: FloatArray, runs: FloatArray) -> float:
    examples = tail.size - 1
    images = (float(runs.max()) - float(runs.min())) * examples
    return float(tail[min(examples, int(np.ceil(images - 1e-6 * examples)))])


def _gap(name: str, runs: FloatArray, tail: FloatArray, p: float, p_adjusted: float) -> ClassGap:
    examples = tail.size - 1
    beyond: Sequence[bool] = (tail <= 0.05).tolist()
    usual = (beyond.index(True) - 1 if True in beyond else examples) / examples
    return ClassGap(
        name=name,
        examples=examples,
        runs=runs.size,
        mean=float(runs.mean()),
        gap=float(runs.max() - runs.min()),
        step=1.0 / examples,
        chance_gap=float(tail[1:].sum()) / examples,
        chance_gap_95=usual,
        p=p,
        p_adjusted=p_adjusted,
    )
