"""The command line of a few-shot training: every hyper-parameter of the paper's search space is a flag.

A flag that is left out takes the method's own value: `DEFAULTS` holds the middle of what the paper searched.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from isorun.errors import UsageError
from isorun.zoo.training import DEVICES, fraction, not_negative, positive, share

__all__ = ["BACKBONES", "DATA", "DECAYS", "DEFAULTS", "METHODS", "OPTIMIZERS", "Options", "read_options"]

METHODS: Final = ("matching", "prototypical", "tadam")
DATA: Final = ("omniglot", "cifar-fs", "fc100", "miniimagenet")
OPTIMIZERS: Final = ("sgd", "adam")
BACKBONES: Final = ("conv4", "resnet12")
DECAYS: Final = ("multiply", "divide", "inverse-time")

DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "matching": {
        "backbone": "conv4",
        "learning_rate": {"sgd": 0.01, "adam": 0.001},
        "lr_decay": "inverse-time",
        "lr_decay_rate": 1e-4,
        "lr_decay_period": 1.0,
        "weight_decay": 0.0,
        "dropout": 0.1,
        "tasks_per_batch": 1,
    },
    "prototypical": {
        "backbone": "conv4",
        "learning_rate": {"sgd": 0.01, "adam": 0.001},
        "lr_decay": "multiply",
        "lr_decay_rate": 0.5,
        "lr_decay_period": 2000.0,
        "weight_decay": 0.0,
        "dropout": 0.0,
        "tasks_per_batch": 1,
    },
    "tadam": {
        "backbone": "resnet12",
        "learning_rate": {"sgd": 0.1, "adam": 0.001},
        "lr_decay": "divide",
        "lr_decay_rate": 10.0,
        "lr_decay_period": 2500.0,
        "weight_decay": 5e-4,
        "dropout": 0.0,
        "tasks_per_batch": 2,
    },
}


@dataclass(frozen=True, slots=True)
class Options:
    """A training, fully stated; the help of each flag says what it means."""

    method: str
    data: str
    ways: int
    shots: int
    queries: int
    train_ways: int
    train_shots: int
    eval_queries: int
    tasks_per_batch: int
    episodes: int
    eval_every: int
    eval_episodes: int
    val_episodes: int
    early_stop: int
    optimizer: str
    learning_rate: float
    lr_decay: str
    lr_decay_rate: float
    lr_decay_period: float
    momentum: float
    weight_decay: float
    pretrain_batch: int
    aux_probability: float
    processing_steps: int
    dropout: float
    backbone: str
    width: int
    image_size: int
    classes_limit: int
    made_data: bool
    seed: int
    device: str


def read_options(words: Sequence[str] | None = None) -> Options:
    """The options of a command line, the process's own when none is given."""
    given = vars(_parser().parse_args(words))
    defaults = DEFAULTS[given["method"]]
    for name, value in defaults.items():
        if given[name] is None:
            given[name] = value[given["optimizer"]] if isinstance(value, Mapping) else value
    given["train_ways"] = given["train_ways"] or given["ways"]
    given["train_shots"] = given["train_shots"] or given["shots"]
    given["val_episodes"] = given["val_episodes"] or given["eval_episodes"]
    given["eval_every"] = given["eval_every"] or max(1, given["episodes"] // 10)
    if given["method"] == "tadam" and given["backbone"] != "resnet12":
        raise UsageError("--backbone", found=given["backbone"], allowed="resnet12 with --method tadam")
    return Options(**{field.name: given[field.name] for field in fields(Options)})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m isorun.zoo.studies.fewshot.train",
        description="Train a few-shot learner on episodes, and test it on classes it has never seen.",
    )
    parser.add_argument("--method", choices=METHODS, default="prototypical")
    _add_task_flags(parser)
    _add_length_flags(parser)
    _add_optimizer_flags(parser)
    _add_network_flags(parser)
    _add_run_flags(parser)
    return parser


def _add_task_flags(parser: argparse.ArgumentParser) -> None:
    task = parser.add_argument_group("episodes")
    task.add_argument("--data", choices=DATA, default="omniglot")
    task.add_argument("--ways", type=positive, default=5, help="classes an episode, at validation and test (5)")
    task.add_argument("--shots", type=positive, default=5, help="labelled images a class, at validation and test (5)")
    task.add_argument("--queries", type=positive, default=15, help="query images a class in training (15)")
    task.add_argument("--train-ways", type=positive, help="classes a training episode (as --ways)")
    task.add_argument("--train-shots", type=positive, help="labelled images a class in training (as --shots)")
    task.add_argument("--eval-queries", type=positive, default=15, help="query images a class at test (15)")
    task.add_argument("--tasks-per-batch", type=positive, help="episodes a training step (1; tadam 2)")
    task.add_argument("--image-size", type=not_negative, default=0, help="side in pixels (the data's own: 28, 32, 84)")
    task.add_argument("--classes-limit", type=not_negative, default=0, help="use only so many classes a split (0: all)")
    task.add_argument(
        "--made-data", action="store_true", help="small images made on the spot, in place of the data set"
    )


def _add_length_flags(parser: argparse.ArgumentParser) -> None:
    length = parser.add_argument_group("length")
    length.add_argument("--episodes", type=not_negative, default=2000, help="training steps (2000)")
    length.add_argument("--eval-every", type=positive, help="steps between evaluations (a tenth of the training)")
    length.add_argument("--eval-episodes", type=positive, default=600, help="test episodes (600)")
    length.add_argument("--val-episodes", type=positive, help="validation episodes (as --eval-episodes)")
    length.add_argument(
        "--early-stop", type=not_negative, default=0, help="stop after so many rounds without a gain (0: never)"
    )


def _add_optimizer_flags(parser: argparse.ArgumentParser) -> None:
    steps = parser.add_argument_group("optimizer")
    steps.add_argument("--optimizer", choices=OPTIMIZERS, default="adam")
    steps.add_argument("--learning-rate", type=fraction)
    steps.add_argument("--lr-decay", choices=DECAYS, help="what the decay rate does (depends on the method)")
    steps.add_argument("--lr-decay-rate", type=fraction)
    steps.add_argument("--lr-decay-period", type=fraction, help="training steps between two decays")
    steps.add_argument("--momentum", type=fraction, default=0.9, help="of sgd (0.9)")
    steps.add_argument("--weight-decay", type=fraction, help="L2 penalty (0; tadam 0.0005)")


def _add_network_flags(parser: argparse.ArgumentParser) -> None:
    network = parser.add_argument_group("network")
    network.add_argument("--backbone", choices=BACKBONES, help="conv4; tadam: resnet12")
    network.add_argument("--width", type=positive, default=64, help="filters of the first layer (64)")
    network.add_argument("--dropout", type=share, help="of features, in training (0; matching 0.1)")
    network.add_argument("--processing-steps", type=positive, default=3, help="matching: reads of the query's LSTM (3)")
    network.add_argument("--pretrain-batch", type=positive, default=64, help="tadam: images an auxiliary batch (64)")
    network.add_argument("--aux-probability", type=share, default=0.9, help="tadam: auxiliary step, at the start (0.9)")


def _add_run_flags(parser: argparse.ArgumentParser) -> None:
    run = parser.add_argument_group("run")
    run.add_argument("--seed", type=not_negative, default=1)
    run.add_argument("--device", choices=DEVICES, default="auto")
