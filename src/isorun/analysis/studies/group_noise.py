"""Test-set noise of a group: how much of the spread between its runs comes from the finite test set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from isorun.analysis.spreads.test_noise import NoiseShares, correctness, noise_shares
from isorun.analysis.studies.class_values import predicted_and_labels
from isorun.study.records import RunRecord

__all__ = ["group_noise"]

_MOST_RUNS: Final = 500
"""Enough to know the shares well; more would only cost memory. The result says how many were used."""


def group_noise(records: Sequence[RunRecord], judged_at: Mapping[str, float | None]) -> NoiseShares | None:
    """The shares, from the predictions that the runs left at the epoch they are judged at, else at their end.

    judged_at: run id to epoch. None when fewer than two runs left predictions with labels, when some left them only at
    their end and others did not, or when the labels are not the same in all of them.
    """
    found = _predictions(records[:_MOST_RUNS], judged_at) or _predictions(records[:_MOST_RUNS], {})
    if len(found) < 2:
        return None
    labels = found[0][1]
    same = all(np.array_equal(other, labels) for _, other in found)
    if not same or labels.ndim != 1 or labels.size < 2:
        return None
    return noise_shares(correctness(np.stack([predicted for predicted, _ in found]), labels))


def _predictions(
    records: Sequence[RunRecord], steps: Mapping[str, float | None]
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Predictions and labels of all runs at these epochs; nothing unless every run has them."""
    found = [predicted_and_labels(record, steps.get(record.run_id)) for record in records]
    complete = [pair for pair in found if pair is not None]
    return complete if len(complete) == len(records) else []
