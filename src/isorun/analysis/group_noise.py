"""Test-set noise of a group: how much of the spread between its runs comes from the finite test set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from isorun.analysis.class_values import predicted_and_labels
from isorun.analysis.test_noise import NoiseShares, correctness, noise_shares
from isorun.study.records import RunRecord

__all__ = ["group_noise"]

_MOST_RUNS: Final = 500
"""Enough to know the shares well; more would only cost memory. The result says how many were used."""


def group_noise(records: Sequence[RunRecord]) -> NoiseShares | None:
    """The shares, from the predictions that the runs left at their end.

    None when fewer than two runs left predictions with labels, or when the labels are not the same in all of them.
    """
    found = [pair for record in records[:_MOST_RUNS] if (pair := predicted_and_labels(record, None)) is not None]
    if len(found) < 2:
        return None
    labels = found[0][1]
    same = all(np.array_equal(other, labels) for _, other in found)
    if not same or labels.ndim != 1 or labels.size < 2:
        return None
    return noise_shares(correctness(np.stack([predicted for predicted, _ in found]), labels))
