"""Statistics at every look, for many comparisons at once.

Arrays are (runs, comparisons): row i is the i-th run of a side in every comparison. Results are (looks, comparisons).
Positive values speak for A having the higher values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isorun.analysis.pairwise import normal_score, superiority_score, u_statistic
from isorun.analysis.samples import FloatArray
from isorun.analysis.sequential import Schedule

__all__ = [
    "Moments",
    "RunArray",
    "centred_u",
    "centred_u_of_all",
    "moments",
    "pooled_t",
    "signed_rank_scores",
    "superiority_score_of_all",
    "superiority_scores",
    "welch_t",
]

RunArray = NDArray[Any]
"""Runs by comparisons, of any real type."""

_COLUMNS_AT_ONCE = 8_192  # a block of 60 runs by this many comparisons stays within a processor's cache
_BYTE_HOLDS = 127  # as many signs are summed in bytes, four times faster than in wider numbers


def centred_u(a: RunArray, b: RunArray, schedule: Schedule) -> FloatArray:
    """U - mn/2 at each look, where U counts the pairs in which A's run is higher; ties count one half."""
    result = np.empty((len(schedule), a.shape[1]), dtype=np.float64)
    for start in range(0, a.shape[1], _COLUMNS_AT_ONCE):
        block = slice(start, start + _COLUMNS_AT_ONCE)
        _centred_u_block(a[:, block], b[:, block], schedule, result[:, block])
    return result


def centred_u_of_all(a: RunArray, b: RunArray, schedule: Schedule) -> FloatArray:
    """The same for a single look at all runs: quicker for few comparisons of very many runs."""
    (look,) = schedule
    columns = zip(a[: look.n_a].T, b[: look.n_b].T, strict=True)
    return np.array([[u_statistic(*sides) - look.n_a * look.n_b / 2 for sides in columns]])


def _centred_u_block(a: RunArray, b: RunArray, schedule: Schedule, out: FloatArray) -> None:
    balance = np.zeros(a.shape[1], dtype=np.int32)
    seen_a = seen_b = 0
    for k, look in enumerate(schedule):
        for i in range(seen_a, look.n_a):
            balance += _wins_minus_losses(a[i], b[:seen_b])
        for j in range(seen_b, look.n_b):
            balance -= _wins_minus_losses(b[j], a[: look.n_a])
        seen_a, seen_b = look
        np.multiply(balance, 0.5, out=out[k])


def _wins_minus_losses(run: RunArray, others: RunArray) -> NDArray[np.integer]:
    sign = np.greater(run, others).view(np.int8)
    sign -= np.less(run, others).view(np.int8)
    blocks = range(0, len(others), _BYTE_HOLDS)
    sums = [np.add.reduce(sign[start : start + _BYTE_HOLDS], axis=0, dtype=np.int8) for start in blocks]
    return sums[0] if len(sums) == 1 else np.asarray(sum(sums, start=np.zeros(len(run), dtype=np.int32)))


def superiority_scores(a: RunArray, b: RunArray, schedule: Schedule) -> FloatArray:
    """The Brunner-Munzel normal score at each look."""
    result = np.empty((len(schedule), a.shape[1]), dtype=np.float64)
    for start in range(0, a.shape[1], _COLUMNS_AT_ONCE):
        block = slice(start, start + _COLUMNS_AT_ONCE)
        result[:, block] = _superiority_block(a[:, block], b[:, block], schedule)
    return result


def superiority_score_of_all(a: RunArray, b: RunArray, schedule: Schedule) -> FloatArray:
    """The same for a single look at all runs: quicker for few comparisons of very many runs."""
    (look,) = schedule
    columns = zip(a[: look.n_a].T, b[: look.n_b].T, strict=True)
    return np.array([[superiority_score(*sides)[1] for sides in columns]])


def _superiority_block(a: RunArray, b: RunArray, schedule: Schedule) -> FloatArray:
    """Wins less losses of every run are counted up; their sums and squares at each look are all that it takes."""
    counts = np.int8 if max(schedule[-1]) <= _BYTE_HOLDS else np.int32
    count_a, count_b = (np.zeros((size, a.shape[1]), dtype=counts) for size in schedule[-1])
    result = np.empty((len(schedule), a.shape[1]))
    seen_a = seen_b = 0
    for k, look in enumerate(schedule):
        for i in range(seen_a, look.n_a):
            _count(a[i], b[:seen_b], count_a[i], count_b[:seen_b])
        for j in range(seen_b, look.n_b):
            _count(b[j], a[: look.n_a], count_b[j], count_a[: look.n_a])
        seen_a, seen_b = look
        mean_a, spread_a = _mean_and_spread(count_a[:seen_a], 2 * seen_b)
        _, spread_b = _mean_and_spread(count_b[:seen_b], 2 * seen_a)
        result[k] = normal_score(mean_a, spread_a, spread_b, seen_a, seen_b)
    return result


def _count(run: RunArray, others: RunArray, own: NDArray[np.integer], theirs: NDArray[np.integer]) -> None:
    """Add the wins less losses of a new run against the others to its own count, and theirs to theirs."""
    sign = np.greater(run, others).view(np.int8)
    sign -= np.less(run, others).view(np.int8)
    np.subtract(theirs, sign, out=theirs)
    own += np.add.reduce(sign, axis=0, dtype=own.dtype)


def _mean_and_spread(counts: NDArray[np.integer], whole: int) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of placements less one half, from wins less losses; `whole` is twice the other side's runs."""
    exact = np.float32 if counts.dtype == np.int8 else np.float64  # both hold these whole numbers exactly
    runs: int = len(counts)
    numbers: NDArray[Any] = counts.astype(exact)
    sums = np.add.reduce(numbers, axis=0).astype(np.float64)
    squares = np.einsum("ij,ij->j", numbers, numbers).astype(np.float64)
    return sums / (whole * runs), (squares - sums**2 / runs) / ((runs - 1) * float(whole) ** 2)


def signed_rank_scores(differences: RunArray, schedule: Schedule) -> FloatArray:
    """Wilcoxon's signed rank sum at each look, less its middle, over its standard deviation without ties.

    The sum less its middle is half the signs of all sums of two differences, each with itself, too (Tukey 1949), so
    that a new pair only adds its own. Pairs without a difference keep their rank and take no side (Pratt 1959).
    """
    balance = np.zeros(differences.shape[1], dtype=np.float64)
    result = np.empty((len(schedule), differences.shape[1]))
    seen = 0
    for k, (pairs, _) in enumerate(schedule):
        for i in range(seen, pairs):
            balance += _signs_against(differences[i], differences[: i + 1])
        seen = pairs
        result[k] = balance / 2 / math.sqrt(pairs * (pairs + 1) * (2 * pairs + 1) / 24)
    return result


def _signs_against(new: RunArray, earlier: RunArray) -> NDArray[np.integer]:
    """How many of the earlier differences it outweighs as a positive one, less as a negative one."""
    sign = np.greater(new, -earlier).view(np.int8)
    sign -= np.less(new, -earlier).view(np.int8)
    return np.asarray(np.add.reduce(sign, axis=0, dtype=np.int32))


@dataclass(frozen=True, slots=True)
class Moments:
    """Sizes (looks, 1), means and variances with n - 1 (looks, comparisons) of both sides at each look."""

    n_a: FloatArray
    n_b: FloatArray
    mean_a: FloatArray
    mean_b: FloatArray
    var_a: FloatArray
    var_b: FloatArray


def moments(a: RunArray, b: RunArray, schedule: Schedule) -> Moments:
    """The moments of both sides at each look."""
    n_a = np.array([[look.n_a] for look in schedule], dtype=np.float64)
    n_b = np.array([[look.n_b] for look in schedule], dtype=np.float64)
    mean_a, var_a = _running(a, n_a)
    mean_b, var_b = _running(b, n_b)
    return Moments(n_a, n_b, mean_a, mean_b, var_a, var_b)


def _running(values: RunArray, sizes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Running means and variances, taken about the first run so that large offsets cost no digits."""
    shifted = np.asarray(values, dtype=np.float64) - values[0]
    sums, squares = np.zeros((2, len(sizes), values.shape[1]))
    seen = 0
    for k, size in enumerate(sizes[:, 0].astype(int)):
        new = shifted[seen:size]
        sums[k] = sums[k - 1] + new.sum(axis=0)  # row -1 is still zero at the first look
        squares[k] = squares[k - 1] + np.einsum("ij,ij->j", new, new)
        seen = size
    variance = np.maximum(squares - sums**2 / sizes, 0.0) / (sizes - 1)
    return values[0] + sums / sizes, variance


def welch_t(at: Moments, shift: float = 0.0) -> FloatArray:
    """Welch's t of mean A - mean B against `shift`."""
    return _ratio(at.mean_a - at.mean_b - shift, at.var_a / at.n_a + at.var_b / at.n_b)


def pooled_t(at: Moments, shift: float = 0.0) -> FloatArray:
    """Student's two-sample t of mean A - mean B against `shift`."""
    pooled = ((at.n_a - 1) * at.var_a + (at.n_b - 1) * at.var_b) / (at.n_a + at.n_b - 2)
    return _ratio(at.mean_a - at.mean_b - shift, pooled * (1 / at.n_a + 1 / at.n_b))


def _ratio(difference: FloatArray, squared_error: FloatArray) -> FloatArray:
    """The difference over its error, with ±inf (or 0 for no difference) where nothing varies."""
    constant = squared_error == 0
    ratio = difference / np.sqrt(np.where(constant, 1.0, squared_error))
    return np.where(constant & (difference != 0), np.copysign(np.inf, difference), ratio)
