"""Training steps: episodes, and for TADAM batches of its auxiliary task between them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import torch
from torch.nn import functional

from isorun.zoo.data.classes.class_images import ClassImages
from isorun.zoo.studies.fewshot.episodes import EpisodeShape, draw_episodes
from isorun.zoo.studies.fewshot.training.evaluation import query_labels
from isorun.zoo.studies.fewshot.training.generators import array_generator
from isorun.zoo.studies.fewshot.training.learning_rates import learning_rate
from isorun.zoo.studies.fewshot.training.optimizers import GradientClipping, make_optimizer, set_learning_rate
from isorun.zoo.studies.fewshot.training.options import Options
from isorun.zoo.studies.fewshot.training.pictures import Pictures

__all__ = ["Steps", "auxiliary_probability"]

STEPS_AT_ONCE: Final = 64
AUXILIARY_DECAYS: Final = 20


def auxiliary_probability(options: Options, step: int) -> float:
    """How likely an auxiliary batch precedes a step: 0.9 ^ (1 + floor(20 t / T)) when the first is 0.9."""
    return float(options.aux_probability ** (1 + AUXILIARY_DECAYS * step // max(1, options.episodes)))


class Steps:
    """Training steps, in order. Episodes are drawn for many steps at once and sent to the device together."""

    def __init__(self, options: Options, learner: Any, source: ClassImages, pictures: Pictures, device: Any) -> None:
        self._options = options
        self._learner = learner
        self._pictures = pictures
        self._shape = EpisodeShape(options.train_ways, options.train_shots, options.queries)
        self._labels = query_labels(self._shape, options.tasks_per_batch, device)
        self._clipping = GradientClipping(learner.clipped())
        self._optimizer = make_optimizer(options, learner.episode_parameters(), learner.penalties())
        self._episodes = self._drawn_episodes(source, device)
        self._auxiliary = (
            AuxiliarySteps(options, learner, source, pictures, device) if _has_auxiliary(options) else None
        )

    def carry_out(self, steps: range) -> Any:
        """The mean loss of those steps, as a tensor on the device: reading it is what waits for the device."""
        self._learner.train()
        return torch.stack([self._step(step) for step in steps]).mean()

    def _step(self, step: int) -> Any:
        rate = learning_rate(self._options, step)
        if self._auxiliary is not None:
            self._auxiliary.maybe_step(step, rate)
        set_learning_rate(self._optimizer, rate)
        log_probabilities = self._learner(self._pictures.take(next(self._episodes)), self._shape.shots)
        loss = functional.nll_loss(log_probabilities.flatten(0, 1), self._labels.flatten())
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self._clipping.apply()
        self._optimizer.step()
        return loss.detach()

    def _drawn_episodes(self, source: ClassImages, device: Any) -> Iterator[Any]:
        generator = array_generator(self._options.seed, "training episodes")
        tasks = self._options.tasks_per_batch
        for _ in itertools.count():
            drawn = draw_episodes(generator, source, self._shape, STEPS_AT_ONCE * tasks)
            yield from torch.from_numpy(drawn).to(device).split(tasks)


class AuxiliarySteps:
    """TADAM's other task: telling all training classes apart, in random batches, with an optimizer of its own."""

    def __init__(self, options: Options, learner: Any, source: ClassImages, pictures: Pictures, device: Any) -> None:
        self._options = options
        self._learner = learner
        self._pictures = pictures
        self._labels = torch.from_numpy(source.labels).to(device)
        self._choices = array_generator(options.seed, "auxiliary choices")
        self._batches = array_generator(options.seed, "auxiliary batches")
        self._clipping = GradientClipping(learner.auxiliary_clipped())
        self._optimizer = make_optimizer(options, learner.auxiliary_parameters(), ())

    def maybe_step(self, step: int, rate: float) -> None:
        """An auxiliary step, with the probability of that time."""
        if self._choices.random() >= auxiliary_probability(self._options, step):
            return
        numbers = self._batches.integers(len(self._labels), size=self._options.pretrain_batch, dtype=np.int64)
        drawn = torch.from_numpy(numbers).to(self._labels.device)
        loss = functional.cross_entropy(self._learner.classify(self._pictures.take(drawn)), self._labels[drawn])
        set_learning_rate(self._optimizer, rate)
        self._learner.zero_grad(set_to_none=True)
        loss.backward()
        self._clipping.apply()
        self._optimizer.step()


def _has_auxiliary(options: Options) -> bool:
    return options.method == "tadam" and options.aux_probability > 0
