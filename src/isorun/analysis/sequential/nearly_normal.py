"""What t tests take for granted, runs that are nearly normal: what is done for skewed ones, and for success or failure.

Skewed runs: of the side with fewer of them, the larger of both spreads counts. Of a skewed law few runs that lie far
from its tail spread by little, too: their t claims most where it knows least. With as many runs on both sides that
cancels from the difference; with few on one side it does not, and the t of 5 new exponential runs against 20 stored
ones claims equivalence at the border of the margin in 12 % where 5 % are meant. So where a test of skewness at `_LEVEL`
says that runs are skewed, few runs are taken to spread by no less than the many do. Skewness is that of both sides
together, each about its own mean and in its own spread: 5 runs alone tell nothing of it.

The test is the normal one of the mean of both sample skewnesses, weighted by n - 2; their variances for normal runs are
Fisher's (1930, Proc. R. Soc. A 130). Bending t for skewness (Johnson 1978, Hall 1992) was tried and left: the skewness
of so few runs is too uncertain to undo what it does (11 % remain), and of skewed runs it costs 20 points of power.

Success or failure: runs that are all 0 or 1 may not vary at all where many more would. So below `_FEWEST_OF_TWO` a side
no claim is made of their means, and of runs that all succeeded only what (1 - margin)^n allows: by so much or more they
all succeed though every so many would fail.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np
from scipy import special

from isorun.analysis.evidence import Condition
from isorun.analysis.evidence.scales import wide_margin
from isorun.analysis.samples import FloatArray, Interval, is_constant, recentred
from isorun.analysis.sequential import Decision, Look, Schedule, Verdict, skewed_pairs
from isorun.analysis.sequential.paths import Moments, RunArray, moments

__all__ = ["are_skewed", "interval_of", "moments_of", "skewed_runs", "success_or_failure", "taken_for_granted"]

_LEVEL: Final = 0.1
_FEWEST: Final = 3
_FEWEST_OF_TWO: Final = 20
_OF_TWO: Final = (frozenset((0.0, 1.0)), frozenset((0.0, 100.0)))
_BEYOND: Final = float(special.ndtri(1.0 - _LEVEL / 2.0))


def moments_of(new: RunArray, stored: RunArray, looks: Schedule) -> Moments:
    """What the tests are made of at each look; arrays are (runs, comparisons), as of `paths.moments`."""
    at = moments(new, stored, looks)
    if all(look.n_a == look.n_b for look in looks):
        return at
    skewed = np.array([are_skewed(new[: look.n_a], stored[: look.n_b]) for look in looks])
    most = np.maximum(at.var_a, at.var_b)
    return replace(
        at,
        var_a=np.where(skewed & (at.n_a < at.n_b), most, at.var_a),
        var_b=np.where(skewed & (at.n_b < at.n_a), most, at.var_b),
    )


def are_skewed(new: RunArray, stored: RunArray) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Of each comparison, whether its runs are told to be skewed."""
    found = [_skewness(new), _skewness(stored)]
    weight = sum(weight for _, weight, _ in found)
    total = sum(weight * size for size, weight, _ in found)
    variance = sum(weight**2 * of_normal for _, weight, of_normal in found)
    return np.asarray((weight > 0) & (np.abs(total) > _BEYOND * np.sqrt(variance)))


def _skewness(runs: RunArray) -> tuple[FloatArray, FloatArray, float]:
    """The sample skewness of each column, what it counts for (nothing where nothing varies), its variance if normal."""
    count = len(runs)
    nothing = np.zeros(runs.shape[1])
    if count < _FEWEST:
        return nothing, nothing, 0.0
    apart = runs - runs.mean(axis=0)
    squares = np.einsum("ij,ij->j", apart, apart)
    varies = np.ptp(runs, axis=0) > 0
    spread = np.sqrt(np.where(varies, squares, 1.0) / (count - 1))
    size = count / ((count - 1) * (count - 2)) * ((apart / spread) ** 3).sum(axis=0)
    of_normal = 6.0 * count * (count - 1) / ((count - 2) * (count + 1) * (count + 3))
    return np.where(varies, size, 0.0), np.where(varies, count - 2.0, 0.0), of_normal


def interval_of(new: FloatArray, stored: FloatArray, confidence: float) -> Interval | None:
    """Welch's interval of the difference of means, by the spreads that the tests take; None where nothing varies."""
    if min(new.size, stored.size) < 2 or (is_constant(new) and is_constant(stored)):
        return None
    first, second = recentred(new, stored)
    at = moments_of(first[:, None], second[:, None], (Look(new.size, stored.size),))
    parts = float(at.var_a[0, 0]) / new.size, float(at.var_b[0, 0]) / stored.size
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / (new.size - 1) + parts[1] ** 2 / (stored.size - 1))
    reach = float(special.stdtrit(freedom, 0.5 + confidence / 2.0)) * float(np.sqrt(sum(parts)))
    difference = float(first.mean() - second.mean())
    return difference - reach, difference + reach


def taken_for_granted(decision: Decision, a: FloatArray, b: FloatArray) -> tuple[Condition, ...]:
    """What the values show of that which the tests of a decision take for granted. a, b: as they were judged."""
    wide = _wide(decision.margin, a, b)
    if decision.paired:
        return (*wide, *skewed_pairs(decision, a, b))
    if decision.margin is None or decision.verdict not in {Verdict.EQUIVALENT, Verdict.UNDECIDED}:
        return wide
    skewed = skewed_runs(a, b) if a.size != b.size else ()
    claimed = decision.verdict is Verdict.EQUIVALENT
    return (*wide, *skewed, *(success_or_failure(a, b, decision.margin, decision.alpha) if claimed else ()))


def _wide(margin: float | None, a: FloatArray, b: FloatArray) -> tuple[Condition, ...]:
    if margin is None or not (a.size and b.size):
        return ()
    return wide_margin(margin, f"{margin:g}", max(abs(float(a.mean())), abs(float(b.mean()))))


def skewed_runs(new: FloatArray, stored: FloatArray, groups: tuple[str, ...] = ()) -> tuple[Condition, ...]:
    """That runs are skewed, and what was made of it."""
    if not are_skewed(new[:, None], stored[:, None])[0]:
        return ()
    taken = "" if new.size == stored.size else "; of the side with fewer the larger of both spreads was taken"
    message = (
        f"runs are skewed, and t tests are made for nearly normal ones{taken}: their error rates hold if both sides "
        "spread alike"
    )
    return (Condition("skewed-runs", message, "look at the runs; more of them on both sides help", groups),)


def success_or_failure(
    new: FloatArray, stored: FloatArray, margin: float, alpha: float, groups: tuple[str, ...] = ()
) -> tuple[Condition, ...]:
    """That runs are 0 or 1, and too few for a claim about their means."""
    seen = frozenset(np.unique(np.concatenate([new, stored])).tolist())
    whole = next((max(two) for two in _OF_TWO if seen <= two), None)
    fewest = min(new.size, stored.size)
    if whole is None or not seen:
        return ()
    if len(seen) == 1:
        share = min(margin / whole, 1.0)
        enough = 1 if share == 1.0 else math.ceil(math.log(alpha) / math.log1p(-share))
    else:
        enough = 0 if is_constant(new) and is_constant(stored) else _FEWEST_OF_TWO
    if fewest >= enough:
        return ()
    message = (
        f"every run gave {' or '.join(f'{one:g}' for one in sorted(seen))}, and so few runs of success or failure do "
        "not show by how much their shares may differ: t tests are not made for those"
    )
    step = f"{enough} runs a side or more, or a metric that is a share of many trials"
    return (Condition("success-or-failure", message, step, groups, voids=True),)
