"""What the trainings of all papers share: the device, the words of the command, the exit code, the learning rate.

Nothing here needs a framework before it is called: a training's --help and its planning have none.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any, Final

from isorun.errors import IsorunError, MissingExtra, UsageError

__all__ = [
    "DEVICES",
    "exit_code",
    "fraction",
    "not_negative",
    "positive",
    "set_learning_rate",
    "share",
    "training_device",
]

DEVICES: Final = ("auto", "cpu", "cuda")


def exit_code(work: Callable[[], object]) -> int:
    """Of a training: 0, 1 for what cannot be trained, 2 for words that do not fit together; the reason to stderr."""
    try:
        work()
    except IsorunError as error:
        print(error, file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    return 0


def training_device(asked: str, purpose: str) -> Any:
    """The torch device for "auto", "cpu" or "cuda"; an error where torch or the GPU is missing. purpose: of torch."""
    try:
        import torch  # noqa: PLC0415 - a training's --help and its planning need no framework
    except ImportError as error:
        raise MissingExtra("torch", "zoo", purpose) from error
    on_gpu = asked != "cpu" and torch.cuda.is_available()
    if asked == "cuda" and not on_gpu:
        raise UsageError("--device cuda: torch sees no GPU", found="no CUDA device", allowed="auto, cpu")
    return torch.device("cuda" if on_gpu else "cpu")


def set_learning_rate(optimizer: Any, rate: float) -> None:
    """Set the rate where the optimizer reads it; a tensor in place on its device, so that a captured step sees it."""
    for group in optimizer.param_groups:
        if hasattr(group["lr"], "fill_"):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def positive(text: str) -> int:
    """A count that is not 0, from a word of the command."""
    return int(_number(text, int, 1, "a whole number from 1"))


def not_negative(text: str) -> int:
    """A count, from a word of the command."""
    return int(_number(text, int, 0, "a whole number from 0"))


def fraction(text: str) -> float:
    """A number from 0 on, from a word of the command."""
    return _number(text, float, 0, "a number from 0")


def share(text: str) -> float:
    """A number from 0 to under 1, from a word of the command."""
    return _number(text, float, 0, "a number from 0 to under 1", below=1.0)


def _number(
    text: str, kind: type[int] | type[float], least: float, allowed: str, *, below: float = float("inf")
) -> float:
    try:
        value = kind(text)
    except ValueError:
        value = -1
    if not least <= value < below:
        raise argparse.ArgumentTypeError(f"found {text!r}, allowed is {allowed}")
    return value
