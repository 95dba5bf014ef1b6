"""Per-class gaps of a group beside what chance alone gives, where the runs kept their labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from isorun.analysis.spreads.class_gaps import ClassGap, class_gaps
from isorun.analysis.studies.class_values import predicted_and_labels
from isorun.study.records import RunRecord

__all__ = ["group_gaps"]

_MOST_EXAMPLES: Final = 3000
"""Beyond this many examples a class hardly moves by chance, while the exact law takes long to compute."""


def group_gaps(
    per_class: Sequence[Mapping[str, float]], records: Sequence[RunRecord], perfect: float | None
) -> tuple[ClassGap, ...]:
    """The gaps of all classes. per_class: the accuracies of every run; perfect: 1 or 100, the scale they are on.

    Nothing where class sizes are not known (no labels, or labels under other names than the classes), where a class
    is larger than 3,000 examples, or where a run lacks a class.
    """
    sizes = _class_sizes(records)
    names = sorted({name for values in per_class for name in values})
    if perfect is None or len(per_class) < 2 or not names or not set(names) <= set(sizes):
        return ()
    accuracies = {name: [values.get(name, math.nan) / perfect for values in per_class] for name in names}
    complete = all(0.0 <= value <= 1.0 for values in accuracies.values() for value in values)
    if not complete or max(sizes[name] for name in names) > _MOST_EXAMPLES:
        return ()
    return class_gaps(accuracies, sizes)


def _class_sizes(records: Sequence[RunRecord]) -> dict[str, int]:
    """How many test examples each class has, by the first run that says so."""
    found = (predicted_and_labels(record, None) for record in records)
    labels = next((pair[1] for pair in found if pair is not None), None)
    if labels is None:
        return {}
    names, counts = np.unique(labels, return_counts=True)
    return {str(name): int(number) for name, number in zip(names, counts, strict=True)}
