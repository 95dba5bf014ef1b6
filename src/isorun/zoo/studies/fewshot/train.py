"""Train a few-shot learner once: `python -m isorun.zoo.studies.fewshot.train --method prototypical --seed 1`.

Each evaluation round logs train_loss, val_accuracy and test_accuracy; the result is the test accuracy of the round that
was best in validation. The flags are in `training/options.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import isorun
from isorun.zoo.studies.fewshot.training.options import read_options
from isorun.zoo.training import exit_code, training_device

if TYPE_CHECKING:
    from isorun.zoo.studies.fewshot.training.loop import Round

__all__ = ["main"]


def main(words: Sequence[str] | None = None) -> int:
    """Train, and return the exit code: 0, 1 for what cannot be trained, 2 for words that do not fit together."""
    return exit_code(lambda: _train(words))


def _train(words: Sequence[str] | None) -> None:
    options = read_options(words)
    device = training_device(options.device, "training a few-shot learner")
    from isorun.zoo.studies.fewshot.training.images import load_splits  # noqa: PLC0415 - --help should be fast
    from isorun.zoo.studies.fewshot.training.loop import train  # noqa: PLC0415 - needs torch, which may be missing

    splits = load_splits(options)
    print(f"data: {splits.train.origin}; device: {device}", flush=True)
    outcome = train(options, splits, device, _report)
    best = outcome.best
    isorun.result(
        accuracy=best.test.accuracy,
        accuracy_half_width=best.test.half_width,
        val_accuracy=best.val.accuracy,
        best_round=best.number,
        weights=outcome.learner,
    )
    print(f"test accuracy {best.test.accuracy:.4f} ± {best.test.half_width:.4f} (95 % interval), round {best.number}")


def _report(done: Round) -> None:
    isorun.log(
        epoch=done.number, train_loss=done.train_loss, val_accuracy=done.val.accuracy, test_accuracy=done.test.accuracy
    )
    print(
        f"round {done.number}, step {done.step}: train loss {done.train_loss:.4f}, "
        f"validation {done.val.accuracy:.4f}, test {done.test.accuracy:.4f}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
