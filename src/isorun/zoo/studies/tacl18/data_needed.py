"""Which data a workload needs, and when data made on the spot may stand in for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from isorun.zoo.data.presence import at_hand, require
from isorun.zoo.data.questions.answers import train_all_folder

__all__ = ["NEEDED", "has_train_all", "stand_in_for"]

NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "trecqa-raw": ("trecqa", "glove"),
    "trecqa-clean": ("trecqa", "glove"),
    "wikiqa": ("wikiqa", "glove"),
}
"""The data sets, as `isorun data list` names them, that each choice of the training command reads."""


def stand_in_for(data: str, scale: str) -> bool:
    """Whether made data stands in: at scale "smoke" only; at the others missing data is an error with a next step."""
    needed = NEEDED[data]
    if scale == "smoke":
        return not all(at_hand(name) for name in needed)
    for name in needed:
        require(name)
    return False


def has_train_all() -> bool:
    """Whether TRAIN-ALL of TrecQA is there; prepared copies may come without it."""
    return at_hand("trecqa") and train_all_folder(require("trecqa")) is not None
