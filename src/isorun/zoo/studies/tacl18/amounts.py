"""How much of the paper each scale carries out: the one place for these numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from isorun.zoo.paper import Scale
from isorun.zoo.studies.tacl18.environments import AS_INSTALLED, MOST_THREADS

__all__ = ["AMOUNTS", "SCALES", "Amount"]

_SMALL: Final = "TRAIN (93 questions, 4,718 pairs) instead of TRAIN-ALL (1,229 questions, 53,417 pairs) for TrecQA"
_BATCHES: Final = "batches of 32 pairs in shuffled order instead of single pairs in the order of the file"
_AS_PUBLISHED: Final = ("--batch-size", "1", "--order", "file")


@dataclass(frozen=True, slots=True)
class Amount:
    """trecqa_train: the training set of the TrecQA runs. epochs, questions: at most so many, None for all.

    seeds: of the seeds part. data_seeds: of the data part. repeats: identical runs of the parts with one seed.
    threads: most threads. paths: CPU paths by name, None for all that the machine has. data: the columns of the tables.
    options: further words for the training command.
    """

    trecqa_train: str
    epochs: int | None
    questions: int | None
    seeds: int
    data_seeds: int
    repeats: int
    threads: int = MOST_THREADS
    paths: tuple[str, ...] | None = None
    data: tuple[str, ...] = ("TrecQA", "WikiQA")
    options: tuple[str, ...] = ()


AMOUNTS: Final[Mapping[str, Amount]] = {
    "smoke": Amount(
        "train", 1, 20, 3, 1, 1, threads=2, paths=(AS_INSTALLED, "MKL for any processor"), data=("TrecQA",)
    ),
    "cpu": Amount("train", 5, 300, 12, 2, 2),
    "gpu": Amount("train", None, None, 100, 5, 2),
    "paper": Amount("train-all", None, None, 200, 5, 2, options=_AS_PUBLISHED),
}

SCALES: Final[Mapping[str, Scale]] = {
    "smoke": Scale(
        "smoke",
        "half a minute on one core",
        (
            "20 training questions and 1 epoch instead of all questions until the development score stops rising",
            _SMALL,
            _BATCHES,
            "3 seeds instead of 200",
            "Tables 6 to 9 on TrecQA only (WikiQA is trained once), 2 CPU paths besides oneDNN off, at most 2 threads",
            "small data made on the spot where a data set is not at hand",
        ),
    ),
    "cpu": Scale(
        "cpu",
        "about 10 minutes on two cores",
        (
            "5 epochs instead of training until the development score stops rising (at most 25)",
            _SMALL,
            "300 of WikiQA's 873 training questions",
            _BATCHES,
            "12 seeds instead of 200",
        ),
    ),
    "gpu": Scale(
        "gpu",
        "about 10 minutes on one data-centre GPU with 16 CPU cores",
        (
            _SMALL,
            _BATCHES,
            "100 seeds instead of 200",
        ),
    ),
    "paper": Scale("paper", "a day on one GPU with 16 CPU cores, days without a GPU"),
}
