"""A whole training: rounds of steps, each followed by validation and test; the best round by validation counts.

Steps are episodes, and for TADAM batches of its auxiliary task between them. L2 penalties are on weights (not on biases
and norms), and a learner's own penalties on what it names.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from torch.nn import functional

from isorun.errors import UsageError
from isorun.zoo.data.class_images import ClassImages, ClassSplits
from isorun.zoo.generators import array_generator, tensor_generator
from isorun.zoo.models.few_shot import Conv4, MatchingNetwork, NamedDropout, PrototypicalNetwork
from isorun.zoo.models.few_shot_sizes import conv4_features
from isorun.zoo.models.initialisation import built_empty
from isorun.zoo.models.tadam import ResNet12, Tadam
from isorun.zoo.studies.fewshot.training.images import EpisodeShape, Pictures, draw_episodes, normalisation
from isorun.zoo.studies.fewshot.training.options import Options
from isorun.zoo.training import set_learning_rate

__all__ = [
    "EpisodeAccuracy",
    "Evaluation",
    "GradientClipping",
    "Round",
    "Steps",
    "TrainedLearner",
    "auxiliary_probability",
    "build_learner",
    "learning_rate",
    "make_optimizer",
    "query_labels",
    "train",
]

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


ROUNDING = 1e-6


def make_optimizer(options: Options, parameters: Iterable[Any], penalties: Iterable[tuple[list[Any], float]]) -> Any:
    """Stochastic gradient descent with momentum, or Adam. penalties: parameters with an L2 weight of their own."""
    groups: list[dict[str, Any]] = [{"params": own, "weight_decay": weight} for own, weight in penalties]
    taken = {id(parameter) for group in groups for parameter in group["params"]}
    rest = [parameter for parameter in parameters if id(parameter) not in taken]
    weights = [parameter for parameter in rest if parameter.dim() > 1]
    others = [parameter for parameter in rest if parameter.dim() <= 1]
    groups.append({"params": weights, "weight_decay": options.weight_decay})
    groups.append({"params": others, "weight_decay": 0.0})
    if options.optimizer == "adam":
        return torch.optim.Adam(groups, lr=options.learning_rate)
    return torch.optim.SGD(groups, lr=options.learning_rate, momentum=options.momentum)


class GradientClipping:
    """Cuts the gradient of each set of parameters to its norm.

    All sets at once: TADAM has two hundred of one parameter each, and a call for each of them costs more than its step.
    """

    def __init__(self, clipped: Iterable[tuple[list[Any], float]]) -> None:
        sets = list(clipped)
        self._parameters = [parameter for parameters, _ in sets for parameter in parameters]
        device = self._parameters[0].device if self._parameters else "cpu"
        owners = [number for number, (parameters, _) in enumerate(sets) for _ in parameters]
        self._owners = torch.tensor(owners, dtype=torch.int64, device=device)
        self._most = torch.tensor([norm for _, norm in sets], device=device)

    def apply(self) -> None:
        """Cut the gradients there are now; every parameter must have one."""
        if not self._parameters:
            return
        gradients = [parameter.grad for parameter in self._parameters]
        squares = torch.stack([gradient.norm() for gradient in gradients]).square()
        norms = torch.zeros_like(self._most).index_add(0, self._owners, squares).sqrt()
        scales = (self._most / (norms + ROUNDING)).clamp_max(1)[self._owners]
        for gradient, scale in zip(gradients, scales.unbind(), strict=True):
            gradient.mul_(scale)


def build_learner(options: Options, *, channels: int, side: int, classes: int, device: Any) -> Any:
    """The learner on a device. Weights are drawn on the CPU: the same ones for every device.

    Channels come last in memory: convolutions on a CPU are 1.7 times as fast that way.
    """
    dropout = NamedDropout(options.dropout, tensor_generator(options.seed, "dropout", device))
    learner = built_empty(lambda: _empty_learner(options, channels, side, classes, dropout))
    learner.initialise(tensor_generator(options.seed, "initial weights"))
    return learner.to(device, memory_format=torch.channels_last)


def _empty_learner(options: Options, channels: int, side: int, classes: int, dropout: NamedDropout) -> Any:
    if options.backbone == "resnet12":
        backbone, size = ResNet12(channels, options.width, dropout), 8 * options.width
    else:
        backbone, size = Conv4(channels, options.width, dropout), conv4_features(side, options.width)
    if size == 0:
        raise UsageError("--image-size", found=str(side), allowed="16 or more: conv4 halves an image four times")
    if options.method == "matching":
        return MatchingNetwork(backbone, size, options.processing_steps)
    return Tadam(backbone, classes) if options.method == "tadam" else PrototypicalNetwork(backbone)


IMAGES_AT_ONCE: Final = {"cpu": 500, "cuda": 8_000}


@dataclass(frozen=True, slots=True)
class EpisodeAccuracy:
    """accuracy: mean over the episodes. half_width: of the 95 % confidence interval of that mean."""

    accuracy: float
    half_width: float


def query_labels(shape: EpisodeShape, tasks: int, device: Any) -> Any:
    """The class of each query (tasks, ways * queries)."""
    return torch.arange(shape.ways, device=device).repeat_interleave(shape.queries).expand(tasks, -1)


class Evaluation:
    """The same episodes every time: rounds differ by what the learner has learnt, not by what it is asked."""

    def __init__(self, pictures: Pictures, episodes: Any, shape: EpisodeShape) -> None:
        self._pictures = pictures
        self._shape = shape
        self._numbers, inverse = torch.unique(episodes, return_inverse=True)
        self._places = inverse.view(episodes.shape)
        self._episodes = episodes
        self._most = IMAGES_AT_ONCE["cuda" if episodes.is_cuda else "cpu"]

    def score(self, learner: Any) -> EpisodeAccuracy:
        """How many queries the learner gets right."""
        with torch.inference_mode():
            learner.eval()
            log_probabilities = self._from_features(learner) if learner.embeds_alone else self._from_images(learner)
            learner.train()
            right = log_probabilities.argmax(-1) == query_labels(
                self._shape, len(self._episodes), self._episodes.device
            )
            shares = right.double().mean(1)
            spread = shares.std().item() if len(shares) > 1 else 0.0
            return EpisodeAccuracy(shares.mean().item(), 1.96 * spread / len(shares) ** 0.5)

    def _from_features(self, learner: Any) -> Any:
        """Each image is embedded once, however many episodes it is in."""
        parts = [learner.backbone(self._pictures.take(part)) for part in self._numbers.split(self._most)]
        features = torch.cat(parts)
        tasks = max(1, self._most // (self._shape.ways * self._shape.images))
        return torch.cat([self._compared(learner, features[places]) for places in self._places.split(tasks)])

    def _compared(self, learner: Any, features: Any) -> Any:
        return learner.compare(features[:, :, : self._shape.shots], features[:, :, self._shape.shots :])

    def _from_images(self, learner: Any) -> Any:
        tasks = max(1, self._most // (self._shape.ways * self._shape.images))
        return torch.cat(
            [learner(self._pictures.take(part), self._shape.shots) for part in self._episodes.split(tasks)]
        )


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


@dataclass(frozen=True, slots=True)
class Round:
    """What an evaluation found. number: from 1. step: training steps done. train_loss: mean since the last round."""

    number: int
    step: int
    train_loss: float
    val: EpisodeAccuracy
    test: EpisodeAccuracy


@dataclass(frozen=True, slots=True)
class TrainedLearner:
    """The best round by validation accuracy (the earliest of equals), all rounds, and the learner as it was then."""

    best: Round
    rounds: tuple[Round, ...]
    learner: Any


def train(options: Options, splits: ClassSplits, device: Any, report: Callable[[Round], None]) -> TrainedLearner:
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
    return TrainedLearner(best, tuple(rounds), learner)


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
