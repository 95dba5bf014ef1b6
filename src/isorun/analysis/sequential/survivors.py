"""Runs that left no result: those that did may be the better ones, so that a claim has to hold without that luck.

A training that diverges in half of its runs and is very good in the others loses to one that is good in all: a new run
of it is worse more often than not. Whoever leaves such runs out compares survivors. So a claim that a side is better
is made only if it is made as well where every unit of that side that left no result counts as worse than all others,
as it does in a check (`checks`). Runs that are lost by chance cost a claim some power, and never turn it round. Means
say nothing of what has no value: of sides that lost any, "equivalent" is not claimed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from isorun.analysis.evidence import Condition
from isorun.analysis.evidence.survivors import Survivors, of_survivors
from isorun.analysis.samples import FloatArray, Pairs, higher_is_better
from isorun.analysis.sequential import Decision, Verdict

__all__ = ["survivors_only"]


def survivors_only(
    decision: Decision,
    sides: tuple[Survivors, Survivors],
    pairs: Pairs | None,
    again: Callable[[FloatArray, FloatArray], Decision],
) -> tuple[Condition, ...]:
    """That a claim does not hold where runs without a result count as the worst. again: decides without a margin."""
    if decision.verdict is Verdict.EQUIVALENT:
        told = "; ".join(side.words for side in sides if side.lost)
        return (of_survivors(f"{told}, and the means of the others do not show what these would be"),) if told else ()
    if decision.verdict is Verdict.UNDECIDED:
        return ()
    winner = 0 if decision.verdict is Verdict.A_BETTER else 1
    side = sides[winner]
    if not side.lost:
        return ()
    values = [one.whole for one in sides] if pairs is None else [pairs.first, pairs.second]
    if pairs is None:
        values[1 - winner] = sides[1 - winner].units.values
    worse = _worse_than_all(values, len(side.lost), decision.direction)
    ordinary = worse[:0] if pairs is None else np.full(worse.size, values[1 - winner][0])
    made_first = [worse, ordinary] if winner == 0 else [ordinary, worse]
    first, second = (np.concatenate(parts) for parts in zip(made_first, values, strict=True))
    if again(first, second).verdict is decision.verdict:
        return ()
    message = f"{side.words}, and where these count as the worst it is not shown to be better"
    return (of_survivors(f"{message}: runs that left one may be the better ones"),)


def _worse_than_all(values: Sequence[FloatArray], count: int, direction: str) -> FloatArray:
    """So many values that are worse than all others; beside any of these they differ by more than any pair."""
    every = np.concatenate(values)
    low, high = float(every.min()), float(every.max())
    beyond = 2.0 * (high - low) or abs(low) or 1.0
    return np.full(count, low - beyond if higher_is_better(direction) else high + beyond)
