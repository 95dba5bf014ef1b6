"""All data sets by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from isorun.errors import DataError, known_names
from isorun.zoo.data.dataset import Dataset
from isorun.zoo.data.sources.few_shot_sets import FEW_SHOT_SETS
from isorun.zoo.data.sources.image_sets import IMAGE_SETS
from isorun.zoo.data.sources.question_sets import QUESTION_SETS
from isorun.zoo.data.sources.search_logs import SEARCH_LOGS

__all__ = ["DATASETS", "dataset"]

DATASETS: Final[Mapping[str, Dataset]] = MappingProxyType(
    {entry.name: entry for entry in (*IMAGE_SETS, *FEW_SHOT_SETS, *QUESTION_SETS, *SEARCH_LOGS)}
)


def dataset(name: str) -> Dataset:
    """The data set of that name."""
    if name not in DATASETS:
        raise DataError(f"there is no data set {name!r}", allowed=known_names(name, DATASETS), hint="isorun data list")
    return DATASETS[name]
