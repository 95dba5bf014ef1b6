"""Resampling: fast stratified draws with replacement.

Drawing runs one by one is what a bootstrap spends its time on. Here a random number picks up to four draws at once: all
tuples of a stratum's members stand in a table, packed into one machine word each, and one number picks a row. That is
the same law as independent draws, at a third of the cost. Blocks of repetitions are computed on all available cores,
each from its own child of the generator, so that the result depends neither on their number nor on their speed.

Bootstrap: what the result would have been with other runs of the same kind.

`bca_interval` is Efron's bias-corrected and accelerated interval (1987), `percentile_interval` the plain one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from isorun.analysis.samples import FloatArray, Interval, finite_sample
from isorun.errors import InputError

__all__ = [
    "Counts",
    "Draws",
    "bca_interval",
    "count_replicates",
    "label_type",
    "percentile_interval",
    "positions",
    "replicates",
    "sd_bootstrap_interval",
]

Draws = npt.NDArray[np.unsignedinteger]
"""A row for each repetition; as many members of each stratum as it has, in no particular order."""
Counts = npt.NDArray[np.float32]
"""A row for each repetition; how often each member was drawn, stratum after stratum."""

_BLOCK_CELLS = 250_000
_TABLE_ROWS = 16_384
_WORDS = {2: np.uint16, 4: np.uint32, 8: np.uint64}


def replicates(
    strata: Sequence[Draws], of_draws: Callable[[Draws], FloatArray], repetitions: int, generator: np.random.Generator
) -> FloatArray:
    """of_draws of each repetition; it is called with blocks of draws that it may change, from several threads.

    strata: the members' own labels, all of one unsigned type; draws are made of them.
    """
    if repetitions < 1:
        raise InputError("a bootstrap needs repetitions", found=str(repetitions), allowed="1 or more")
    sampler = _Sampler.of(strata)
    block = max(1, _BLOCK_CELLS // sampler.members)
    rows = [min(block, repetitions - first) for first in range(0, repetitions, block)]
    with ThreadPoolExecutor(max_workers=min(len(rows), _cores())) as threads:
        parts = threads.map(lambda rows, child: of_draws(sampler.draws(rows, child)), rows, generator.spawn(len(rows)))
        return np.concatenate(list(parts))


def count_replicates(
    sizes: Sequence[int], of_counts: Callable[[Counts], FloatArray], repetitions: int, generator: np.random.Generator
) -> FloatArray:
    """Like `replicates`, for statistics of how often each member was drawn."""
    members = int(sum(sizes))

    def of_draws(draws: Draws) -> FloatArray:
        cells = draws + np.arange(len(draws), dtype=np.intp)[:, None] * members
        counts = np.bincount(cells.ravel(), minlength=cells.size).reshape(len(draws), members)
        return of_counts(counts.astype(np.float32))

    return replicates(positions(sizes), of_draws, repetitions, generator)


def positions(sizes: Sequence[int]) -> list[Draws]:
    """Strata whose members are labelled 0, 1, 2, … through all of them."""
    return np.split(np.arange(sum(sizes), dtype=label_type(sum(sizes))), np.cumsum(sizes)[:-1])


def label_type(members: int) -> type[np.unsignedinteger]:
    """The smallest type that can label so many members."""
    return np.uint16 if members <= 2**16 else np.uint32


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class _Lookup:
    """Tuples of `width` members packed into words; column c picks one of bounds[c] rows from offsets[c] on."""

    words: npt.NDArray[Any]
    bounds: tuple[int, ...]
    offsets: tuple[int, ...]

    def picked(self, rows: int, generator: np.random.Generator) -> npt.NDArray[Any]:
        """A word for each row and column."""
        return self.words.take(self._numbers(rows, generator) + np.array(self.offsets, dtype=np.intp))

    def _numbers(self, rows: int, generator: np.random.Generator) -> Draws:
        """Columns with one bound are drawn in one call, which is faster by half."""
        kind = label_type(max(self.bounds))
        if len(set(self.bounds)) == 1:
            return generator.integers(0, self.bounds[0], size=(rows, len(self.bounds)), dtype=kind)
        return np.column_stack([generator.integers(0, bound, size=rows, dtype=kind) for bound in self.bounds])


@dataclass(frozen=True, slots=True)
class _Sampler:
    """One lookup for each width of tuples."""

    members: int
    label: npt.DTypeLike
    lookups: tuple[_Lookup, ...]

    @classmethod
    def of(cls, strata: Sequence[Draws]) -> _Sampler:
        """The sampler of these strata."""
        label = strata[0].dtype
        wide = 8 // label.itemsize
        planned = [_widths(stratum.size, wide) for stratum in strata]
        used = sorted({width for widths in planned for width in widths}, reverse=True)
        lookups = tuple(_lookup(strata, planned, width, label) for width in used)
        return cls(sum(stratum.size for stratum in strata), label, lookups)

    def draws(self, rows: int, generator: np.random.Generator) -> Draws:
        """So many repetitions."""
        parts = [lookup.picked(rows, generator).view(self.label) for lookup in self.lookups]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def _widths(size: int, wide: int) -> list[int]:
    """How a stratum's draws are cut into tuples: as wide as words and tables allow."""
    widths, left = [], size
    for width in (wide, 2, 1):
        if width == 1 or size**width <= _TABLE_ROWS:
            widths += [width] * (left // width)
            left %= width
    return widths


def _lookup(strata: Sequence[Draws], planned: Sequence[Sequence[int]], width: int, label: np.dtype[Any]) -> _Lookup:
    tables, bounds, offsets, filled = [], [], [], 0
    for stratum, widths in zip(strata, planned, strict=True):
        uses = widths.count(width)
        if uses:
            tables.append(_tuples(stratum, width))
            bounds += [len(tables[-1])] * uses
            offsets += [filled] * uses
            filled += len(tables[-1])
    words = np.concatenate(tables).view(_WORDS[width * label.itemsize]).ravel()
    return _Lookup(words, tuple(bounds), tuple(offsets))


def _tuples(members: Draws, width: int) -> Draws:
    """All tuples of members, a row each."""
    return np.stack(np.meshgrid(*[members] * width, indexing="ij"), axis=-1).reshape(-1, width)


Statistic = Callable[[FloatArray], FloatArray]
"""Takes samples along the last axis and gives one number for each."""


def percentile_interval(drawn: FloatArray, confidence: float = 0.95) -> Interval:
    """The middle `confidence` of the replicates."""
    tail = (1.0 - confidence) / 2.0
    lower, upper = np.quantile(drawn, (tail, 1.0 - tail))
    return float(lower), float(upper)


def bca_interval(
    sample: FloatArray,
    statistic: Statistic,
    generator: np.random.Generator,
    *,
    repetitions: int = 10_000,
    confidence: float = 0.95,
) -> Interval | None:
    """The BCa interval of a statistic of one sample; None where the replicates do not vary."""
    drawn = replicates(positions([sample.size]), lambda draws: statistic(sample[draws]), repetitions, generator)
    estimate = float(statistic(sample))
    if drawn.min() == drawn.max():
        return None
    below = (np.count_nonzero(drawn < estimate) + 0.5 * np.count_nonzero(drawn == estimate)) / repetitions
    bias = float(ndtri(min(max(below, 0.5 / repetitions), 1.0 - 0.5 / repetitions)))
    acceleration = _acceleration(sample, statistic)
    tail = float(ndtri((1.0 - confidence) / 2.0))
    levels = [_bca_level(bias, acceleration, z) for z in (tail, -tail)]
    lower, upper = np.quantile(drawn, levels)
    return float(lower), float(upper)


def _bca_level(bias: float, acceleration: float, z: float) -> float:
    shifted = bias + z
    return float(ndtr(bias + shifted / (1.0 - acceleration * shifted)))


def _acceleration(sample: FloatArray, statistic: Statistic) -> float:
    """A sixth of the skewness of the statistic when each value is left out in turn."""
    left_out = np.broadcast_to(sample, (sample.size, sample.size))[~np.eye(sample.size, dtype=bool)]
    jackknife = statistic(left_out.reshape(sample.size, sample.size - 1))
    distances = jackknife.mean() - jackknife
    spread = float((distances**2).sum())
    return float((distances**3).sum()) / (6.0 * spread**1.5) if spread > 0.0 else 0.0


def sd_bootstrap_interval(
    sample: npt.ArrayLike, generator: np.random.Generator, *, repetitions: int = 10_000, confidence: float = 0.90
) -> Interval | None:
    """The BCa interval of a standard deviation, which assumes no normal values.

    It is too short for few runs: asked for 90 % it covers about 60, 76, 80 and 85 % at 5, 10, 16 and 30 normal runs,
    where the chi-square interval of `spreads.sd_interval` covers 90 %. None for fewer than three runs.
    """
    sample = finite_sample(sample, "the sample")
    if sample.size < 3:
        return None
    return bca_interval(sample, _sd, generator, repetitions=repetitions, confidence=confidence)


def _sd(samples: FloatArray) -> FloatArray:
    return np.asarray(samples.std(axis=-1, ddof=1))
