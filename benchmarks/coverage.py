"""How often the intervals for few runs hold the truth: the simulation behind "How well the intervals hold".

    python benchmarks/coverage.py [repetitions]

Prints every cell of the grid whose coverage lies outside 93 to 97 %, and a summary. Cells that lie outside are
simulated again with four times the repetitions before they are believed. Takes a quarter of an hour of one core.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Final

import numpy as np

from isorun.analysis.leaderboards.task_scores import LINEAR, TaskScores
from isorun.analysis.pairwise.effects import win_rate, win_rate_interval
from isorun.analysis.samples import FloatArray, Interval

_SIZES: Final = ((5, 5), (10, 10), (30, 30), (5, 10), (5, 30), (30, 5), (10, 30))
_SPREADS: Final = ((1.0, 1.0), (4.0, 1.0), (1.0, 4.0))
_EFFECTS: Final = (0.0, 0.5, 1.5, 3.0)


def standard(law: str, rng: np.random.Generator, shape: tuple[int, ...] | int) -> FloatArray:
    """Values of mean 0 and sd 1."""
    if law == "exponential":
        return rng.exponential(size=shape) - 1.0
    if law == "lognormal":
        mean, sd = np.exp(0.28125), np.exp(0.28125) * np.sqrt(np.expm1(0.5625))
        return np.asarray((np.exp(0.75 * rng.standard_normal(shape)) - mean) / sd)
    if law == "t3":
        return np.asarray(rng.standard_t(3, size=shape) / np.sqrt(3.0))
    return rng.standard_normal(shape)


def runs(law: str, rng: np.random.Generator, shape: tuple[int, ...] | int, mean: float, sd: float) -> FloatArray:
    """Runs of one approach; tied ones are accuracies on 100 examples with an sd of two points."""
    values = mean + sd * standard(law, rng, shape)
    return np.asarray(np.round(2.0 * values)) if law == "tied" else values


@cache
def win_truth(law: str, mean: float, sd_a: float, sd_b: float) -> float:
    """P(A > B) + P(A = B) / 2."""
    rng = np.random.default_rng(99)
    a, b = (np.sort(runs(law, rng, 1_000_000, *side)) for side in ((mean, sd_a), (0.0, sd_b)))
    return float(sum(np.searchsorted(b, a, side=side).mean() for side in ("left", "right")) / 2 / b.size)


@dataclass(frozen=True)
class Improvement:
    """a beats b: the effect in units of the root mean square sd; tasks differ by up to one such unit from it."""

    tasks: int
    law: str
    spreads: tuple[float, float]
    effect: float
    sizes: tuple[int, int]

    @property
    def group(self) -> str:
        """What is summed up together."""
        return f"a beats b, tasks: {self.tasks}"

    @property
    def words(self) -> str:
        """Where it stands in the grid."""
        (sd_a, sd_b), (n, m) = self.spreads, self.sizes
        return f"{self.law}, sd {sd_a:g}:{sd_b:g}, d {self.effect:g}, {n} and {m} runs (truth {self.truth:.3f})"

    @property
    def means(self) -> list[float]:
        """The mean of A on each task; that of B is 0."""
        shifts = np.linspace(-1.0, 1.0, self.tasks) if self.tasks > 1 else np.zeros(1)
        return [float(np.hypot(*self.spreads) / np.sqrt(2.0) * (self.effect + shift)) for shift in shifts]

    @property
    def truth(self) -> float:
        """What the interval should hold."""
        return float(np.mean([win_truth(self.law, mean, *self.spreads) for mean in self.means]))

    def interval(self, rng: np.random.Generator) -> Interval | None:
        """The interval of one simulated study."""
        (sd_a, sd_b), (n, m) = self.spreads, self.sizes
        return win_rate_interval(
            [win_rate(runs(self.law, rng, n, mean, sd_a), runs(self.law, rng, m, 0.0, sd_b)) for mean in self.means]
        )


@dataclass(frozen=True)
class Score:
    """An IQM or a mean: the sd of scores falls from 0.45 to 0.15 over tasks, whose centres rise from 0 to `apart`."""

    statistic: str
    tasks: int
    law: str
    apart: float
    size: int

    @property
    def group(self) -> str:
        """What is summed up together."""
        return f"{self.statistic}, tasks: {self.tasks}"

    @property
    def words(self) -> str:
        """Where it stands in the grid."""
        return f"{self.law}, {self.size} runs" + (f", centres up to {self.apart:g} apart" if self.tasks > 1 else "")

    @property
    def truth(self) -> float:
        """What the interval should hold."""
        return score_truth(self.statistic, self.tasks, self.law, self.apart)

    def drawn(self, rng: np.random.Generator, size: int) -> TaskScores:
        """So many runs of each task."""
        spreads = 0.3 * (np.linspace(1.5, 0.5, self.tasks) if self.tasks > 1 else np.ones(1))
        values = np.linspace(0.0, self.apart, self.tasks) + spreads * standard(self.law, rng, (size, self.tasks))
        values = np.round(20.0 * values) / 20.0 if self.law == "tied" else values
        return TaskScores(tuple(map(str, range(self.tasks))), (size,) * self.tasks, values.T.ravel())

    def interval(self, rng: np.random.Generator) -> Interval | None:
        """The interval of one simulated study."""
        return LINEAR[self.statistic](self.drawn(rng, self.size), 1.0).interval(0.95)


@cache
def score_truth(statistic: str, tasks: int, law: str, apart: float) -> float:
    """The statistic of very many runs."""
    many = 2_000_000 // tasks
    return LINEAR[statistic](
        Score(statistic, tasks, law, apart, many).drawn(np.random.default_rng(7), many), 1.0
    ).estimate


def covered(cell: Improvement | Score, repetitions: int, seed: int) -> float:
    """The share of intervals that hold the truth; one that is missing or of no width does not."""
    rng, truth = np.random.default_rng(seed), cell.truth
    found = (cell.interval(rng) or (1.0, 0.0) for _ in range(repetitions))
    return float(np.mean([lower <= truth <= upper and lower < upper for lower, upper in found]))


def grid() -> Iterator[Improvement | Score]:
    """Every cell."""
    laws = ("normal", "exponential", "lognormal", "t3", "tied")
    for statistic, tasks in product(("iqm", "mean"), (1, 2, 5, 26)):
        for law, apart, size in product(laws, (0.0, 1.0, 3.0) if tasks > 1 else (0.0,), (5, 10, 30)):
            yield Score(statistic, tasks, law, apart, size)
    few = ((5, 5), (10, 10), (5, 30))
    for tasks, some_laws, sizes in ((1, laws, _SIZES), (5, laws, few), (26, laws[:2], few[:2])):
        for law, spreads, effect, size_pair in product(some_laws, _SPREADS, _EFFECTS, sizes):
            yield Improvement(tasks, law, spreads, effect, size_pair)


def main(repetitions: int) -> None:
    """Simulate the grid."""
    seen: dict[str, list[float]] = {}
    for seed, cell in enumerate(grid()):
        held = covered(cell, repetitions, seed)
        if not 0.93 <= held <= 0.97:
            held = covered(cell, 4 * repetitions, seed + 10_000)
        seen.setdefault(cell.group, []).append(held)
        if not 0.93 <= held <= 0.97:
            print(f"{cell.group}: {cell.words}: {held:.3f}", flush=True)
    for group, found in seen.items():
        below, above = (sum(outside) for outside in ([h < 0.93 for h in found], [h > 0.97 for h in found]))
        print(
            f"{group}: {len(found)} cells, {min(found):.3f} to {max(found):.3f}, {below} below .93, {above} above .97"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
