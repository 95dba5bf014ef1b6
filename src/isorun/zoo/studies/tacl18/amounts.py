"""How much of the paper each scale carries out: the one place for these numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from isorun.zoo.studies.tacl18.environments import AS_INSTALLED, MOST_THREADS

__all__ = ["AMOUNTS", "COSTS", "PUBLISHED_SEEDS", "Amount"]

PUBLISHED_SEEDS: Final = 200
_AS_PUBLISHED: Final = ("--batch-size", "1", "--order", "file")


@dataclass(frozen=True, slots=True)
class Amount:
    """trecqa_train: the training set of the TrecQA runs. seeds, data_seeds, mask_seeds: of the parts of these names.

    repeats: identical runs of the parts with one seed; path_repeats: of the CPU paths. threads: the most of them.
    questions: the most training questions by data set, all where none are named.
    epochs: the most of every training, None for as many as the development score takes; seed_epochs: of the seeds on a
    data set, where they are fewer.
    paths: CPU paths by name, None for all that the machine has. data: the data sets of the tables.
    options: further words for the training command.
    """

    trecqa_train: str
    seeds: int
    data_seeds: int
    mask_seeds: int
    repeats: int = 2
    path_repeats: int = 2
    questions: Mapping[str, int] = field(default_factory=dict)
    epochs: int | None = None
    seed_epochs: Mapping[str, int] = field(default_factory=dict)
    threads: int = MOST_THREADS
    paths: tuple[str, ...] | None = None
    data: tuple[str, ...] = ("TrecQA", "WikiQA")
    options: tuple[str, ...] = ()

    def most_epochs(self, part: str, workload: str) -> int | None:
        """The most epochs of a training of that part."""
        return self.seed_epochs.get(workload, self.epochs) if part == "seeds" else self.epochs


AMOUNTS: Final[Mapping[str, Amount]] = {
    "smoke": Amount(
        "train",
        seeds=3,
        data_seeds=1,
        mask_seeds=1,
        repeats=1,
        path_repeats=1,
        questions={"trecqa": 20, "wikiqa": 20},
        epochs=1,
        threads=2,
        paths=(AS_INSTALLED, "MKL for any processor"),
        data=("TrecQA",),
    ),
    "cpu": Amount(
        "train",
        seeds=8,
        data_seeds=2,
        mask_seeds=8,
        path_repeats=1,
        questions={"wikiqa": 300},
        seed_epochs={"WikiQA": 5},
    ),
    "gpu": Amount("train", seeds=100, data_seeds=5, mask_seeds=50),
    "paper": Amount(
        "train-all", seeds=PUBLISHED_SEEDS, data_seeds=5, mask_seeds=PUBLISHED_SEEDS, options=_AS_PUBLISHED
    ),
}

COSTS: Final[Mapping[str, str]] = {
    "smoke": "about 15 seconds on one core",
    "cpu": "about 10 minutes on two idle cores (with -j 2)",
    "gpu": "about 10 minutes on one data-centre GPU with 16 CPU cores",
    "paper": "a day on one GPU with 16 CPU cores, days without a GPU",
}
