"""A whole training: rounds of steps, each followed by validation and test; the best round by validation counts."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from isorun.zoo.data.classes.class_images import ClassImages, ClassSplits
from isorun.zoo.studies.fewshot.episodes import EpisodeShape, draw_episodes
from isorun.zoo.studies.fewshot.training.evaluation import Evaluation, Score
from isorun.zoo.studies.fewshot.training.generators import array_generator
from isorun.zoo.studies.fewshot.training.learners import build_learner
from isorun.zoo.studies.fewshot.training.options import Options
from isorun.zoo.studies.fewshot.training.pictures import Pictures, normalisation
from isorun.zoo.studies.fewshot.training.steps import Steps

__all__ = ["Outcome", "Round", "train"]


@dataclass(frozen=True, slots=True)
class Round:
    """What an evaluation found. number: from 1. step: training steps done. train_loss: mean since the last round."""

    number: int
    step: int
    train_loss: float
    val: Score
    test: Score


@dataclass(frozen=True, slots=True)
class Outcome:
    """The best round by validation accuracy (the earliest of equals), all rounds, and the learner as it was then."""

    best: Round
    rounds: tuple[Round, ...]
    learner: Any


def train(options: Options, splits: ClassSplits, device: Any, report: Callable[[Round], None]) -> Outcome:
    """Train as the options say; each round is reported as soon as it is over."""
    side, channels = splits.train.images.shape[2:]
    learner = build_learner(options, channels=channels, side=side, classes=len(splits.train.classes), device=device)
    best, weights, rounds = None, None, []
    for done in _rounds(options, splits, learner, device):
        rounds.append(done)
        report(done)
        if best is None or done.val.accuracy > best.val.accuracy:
            best, weights = done, copy.deepcopy(learner.state_dict())
        if options.early_stop and done.number - best.number >= options.early_stop:
            break
    assert best is not None
    learner.load_state_dict(weights)
    return Outcome(best, tuple(rounds), learner)


def _rounds(options: Options, splits: ClassSplits, learner: Any, device: Any) -> Iterator[Round]:
    moments = normalisation(splits.train)
    train_pictures, val_pictures, test_pictures = (
        Pictures(part, moments, device) for part in (splits.train, splits.val, splits.test)
    )
    steps = Steps(options, learner, splits.train, train_pictures, device)
    shape = EpisodeShape(options.ways, options.shots, options.eval_queries)
    val_numbers = _fixed_episodes(options.seed, "validation episodes", splits.val, shape, options.val_episodes)
    test_numbers = _fixed_episodes(options.seed, "test episodes", splits.test, shape, options.eval_episodes)
    val = Evaluation(val_pictures, val_numbers.to(device), shape)
    test = Evaluation(test_pictures, test_numbers.to(device), shape)
    for number, part in enumerate(_parts(options), 1):
        loss = steps.carry_out(part).item() if len(part) else math.nan
        yield Round(number, part.stop, loss, val.score(learner), test.score(learner))


def _parts(options: Options) -> Iterator[range]:
    """The steps of each round; one round without steps when nothing is to be trained."""
    starts = range(0, max(1, options.episodes), options.eval_every)
    return (range(start, min(start + options.eval_every, options.episodes)) for start in starts)


def _fixed_episodes(seed: int, name: str, source: ClassImages, shape: EpisodeShape, count: int) -> Any:
    return torch.from_numpy(draw_episodes(array_generator(seed, name), source, shape, count))
