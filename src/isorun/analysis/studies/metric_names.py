"""What a metric's name says: which split it was measured on, what kind of number it is, which direction is better."""

from __future__ import annotations

import enum
import functools
import re
from typing import Final

__all__ = ["Kind", "Split", "direction_of", "is_bookkeeping", "kind_of", "split_of"]


class Split(enum.IntEnum):
    """The part of the data a metric was measured on, the one to judge by first."""

    TEST = 0
    EVALUATION = 1
    VALIDATION = 2
    UNNAMED = 3
    TRAINING = 4


class Kind(enum.IntEnum):
    """What kind of number a metric is, the one to judge by first."""

    ACCURACY = 0
    SCORE = 1
    LOSS = 2
    OTHER = 3


_SPLITS: Final = {
    "test": Split.TEST,
    "eval": Split.EVALUATION,
    "evaluation": Split.EVALUATION,
    "val": Split.VALIDATION,
    "valid": Split.VALIDATION,
    "validation": Split.VALIDATION,
    "dev": Split.VALIDATION,
    "v": Split.VALIDATION,
    "train": Split.TRAINING,
    "training": Split.TRAINING,
}
_ACCURACIES: Final = frozenset({"acc", "accuracy", "acc1", "acc5", "top1", "top5"})
_SCORES: Final = frozenset(
    (
        "f1",
        "auc",
        "auroc",
        "auprc",
        "ap",
        "map",
        "miou",
        "iou",
        "dice",
        "precision",
        "recall",
        "score",
        "bleu",
        "rouge",
        "r2",
        "psnr",
        "ssim",
        "mcc",
        "kappa",
        "reward",
        "return",
    )
)
_LOSSES: Final = frozenset(
    (
        "loss",
        "error",
        "err",
        "perplexity",
        "ppl",
        "mse",
        "rmse",
        "mae",
        "mape",
        "nll",
        "wer",
        "cer",
        "ter",
        "fid",
        "brier",
        "ece",
        "bpc",
        "bpb",
        "entropy",
        "crossentropy",
        "kl",
        "regret",
        "distance",
        "deviance",
    )
)
_BOOKKEEPING: Final = frozenset(
    (
        "epoch",
        "epochs",
        "step",
        "steps",
        "iter",
        "iteration",
        "iterations",
        "lr",
        "time",
        "seconds",
        "sec",
        "duration",
        "eta",
        "runtime",
        "memory",
        "grad",
        "norm",
        "batch",
        "num",
        "samples",
    )
)


@functools.cache
def split_of(name: str) -> Split:
    """The split that a part of the name stands for."""
    return next((_SPLITS[word] for word in _words(name) if word in _SPLITS), Split.UNNAMED)


@functools.cache
def kind_of(name: str) -> Kind:
    """The kind of number; a loss word wins, so that `accuracy_error` is one."""
    words = set(_words(name))
    if words & _LOSSES:
        return Kind.LOSS
    if words & _ACCURACIES:
        return Kind.ACCURACY
    return Kind.SCORE if words & _SCORES else Kind.OTHER


def direction_of(name: str) -> str:
    """The direction that is better: "lower" for losses and errors, else "higher"."""
    return "lower" if kind_of(name) is Kind.LOSS else "higher"


def is_bookkeeping(name: str) -> bool:
    """Whether the name is that of a counter, a clock or a setting rather than of a result."""
    words = _words(name)
    return kind_of(name) is Kind.OTHER and any(word in _BOOKKEEPING for word in words)


def _words(name: str) -> list[str]:
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return [word for word in re.split(r"[^a-z0-9]+", spaced.lower()) if word]
