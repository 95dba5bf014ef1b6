"""How many images the runs trained, validated and tested on, as the runs themselves recorded it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from isorun.study.records import RunRecord, RunState
from isorun.zoo.studies.ase20.training.material import COUNTS

__all__ = ["ImageCounts", "images_used"]

ImageCounts = tuple[int, int, int]
"""Images for training, validation and test."""


def images_used(records: Sequence[RunRecord]) -> tuple[ImageCounts, ...]:
    """The different counts of the finished runs, smallest first; none where no run recorded them."""
    results = [record.results for record in records if record.state is RunState.FINISHED]
    counted = [[found.get(name, math.nan) for name in COUNTS] for found in results]
    known = [tuple(map(int, counts)) for counts in counted if all(map(math.isfinite, counts))]
    return tuple(sorted({(train, validation, test) for train, validation, test in known}))
