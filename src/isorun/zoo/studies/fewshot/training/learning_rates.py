"""The learning rate at every step of the training."""

from __future__ import annotations

from typing import Final

from isorun.zoo.studies.fewshot.training.options import Options

__all__ = ["learning_rate"]

MOST_DIVISIONS: Final = 3


def learning_rate(options: Options, step: int) -> float:
    """The rate at a step, counted from 0.

    multiply: times the decay rate after every period. divide: divided by it half-way through the training and then
    after every period, three times in all. inverse-time: divided by 1 + decay rate x periods gone by.
    """
    periods = int(step / options.lr_decay_period) if options.lr_decay_period else 0
    if options.lr_decay == "multiply":
        return options.learning_rate * float(options.lr_decay_rate**periods)
    if options.lr_decay == "inverse-time":
        return options.learning_rate / (1 + options.lr_decay_rate * periods)
    half = options.episodes // 2
    if step < half or not options.lr_decay_period or not options.lr_decay_rate:
        return options.learning_rate
    divisions = min(MOST_DIVISIONS, 1 + int((step - half) / options.lr_decay_period))
    return options.learning_rate / float(options.lr_decay_rate**divisions)
