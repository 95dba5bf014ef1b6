"""Which pairs make a batch: shuffled, yet of similar length, so that little of a batch is padding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

__all__ = ["EpochPlan", "Slice", "plan_epoch", "plan_evaluation"]

_POOL: Final = 16
_EVALUATION_BATCH: Final = 256


@dataclass(frozen=True, slots=True)
class Slice:
    """A batch: positions start to stop of the plan's order, and the longest question and answer among them."""

    start: int
    stop: int
    question: int
    answer: int


@dataclass(frozen=True, slots=True)
class EpochPlan:
    """order: pair numbers, those of a batch side by side (int64)."""

    order: Any
    slices: tuple[Slice, ...]


def plan_epoch(draws: Any, question: Any, answer: Any, batch_size: int, order: str) -> EpochPlan:
    """An epoch over all pairs. question, answer: their lengths. order: "file", or "shuffled" by the generator.

    Shuffled pairs are taken in pools of 16 batches, each pool sorted by length, and the batches shuffled again.
    """
    count = len(answer)
    if order == "file":
        return _cut(np.arange(count), question, answer, batch_size)
    shuffled = draws.permutation(count)
    pools = [shuffled[start : start + _POOL * batch_size] for start in range(0, count, _POOL * batch_size)]
    pooled = np.concatenate([pool[np.argsort(answer[pool], kind="stable")] for pool in pools])
    batches = [pooled[start : start + batch_size] for start in range(0, count, batch_size)]
    whole, rest = batches[: count // batch_size], batches[count // batch_size :]
    places = draws.permutation(len(whole))
    return _cut(np.concatenate([*(whole[place] for place in places), *rest]), question, answer, batch_size)


def plan_evaluation(question: Any, answer: Any) -> EpochPlan:
    """All pairs once, by length."""
    return _cut(np.argsort(answer, kind="stable"), question, answer, _EVALUATION_BATCH)


def _cut(order: Any, question: Any, answer: Any, batch_size: int) -> EpochPlan:
    slices = []
    for start in range(0, len(order), batch_size):
        chosen = order[start : start + batch_size]
        stop = start + len(chosen)
        slices.append(Slice(start, stop, max(1, int(question[chosen].max())), max(1, int(answer[chosen].max()))))
    return EpochPlan(order, tuple(slices))
