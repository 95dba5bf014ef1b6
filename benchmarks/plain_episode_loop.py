"""Few-shot learners trained as an ordinary user would: images by class in a dict, an episode drawn before each step."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import clip_grad_norm_

from isorun.zoo.data.class_images import ClassImages, ClassSplits
from isorun.zoo.models.few_shot import NamedDropout
from isorun.zoo.studies.fewshot.training.images import normalisation
from isorun.zoo.studies.fewshot.training.loop import build_learner, learning_rate, make_optimizer
from isorun.zoo.studies.fewshot.training.options import Options

__all__ = ["plain_episode_round"]


def plain_episode_round(options: Options, splits: ClassSplits) -> Callable[[int], None]:
    """A round: `eval_every` steps (with TADAM's auxiliary batches), then the validation and test episodes."""
    learner = _plain_learner(options, splits.train)
    train, val, test = (_images_by_class(split, splits.train) for split in (splits.train, splits.val, splits.test))
    train_step = _episode_step(options, learner, train)
    auxiliary_step = _auxiliary_step(options, learner, train) if options.method == "tadam" else None

    def carry_out(number: int) -> None:
        learner.train()
        total = 0.0
        for step in range(number * options.eval_every, (number + 1) * options.eval_every):
            rate = learning_rate(options, step)
            if auxiliary_step is not None:
                auxiliary_step(rate)
            total += train_step(rate)
        learner.eval()
        _accuracy(options, learner, val, options.val_episodes)
        _accuracy(options, learner, test, options.eval_episodes)

    return carry_out


def _plain_learner(options: Options, source: ClassImages) -> Any:
    """The same network with torch's own dropout and its usual order in memory."""
    side, channels = source.images.shape[2:]
    learner = build_learner(options, channels=channels, side=side, classes=len(source.classes), device="cpu")
    if isinstance(learner.backbone.dropout, NamedDropout):
        learner.backbone.dropout = nn.Dropout(options.dropout)
    return learner.to(memory_format=torch.contiguous_format)


def _images_by_class(split: ClassImages, train: ClassImages) -> dict[str, Any]:
    mean, deviation = (torch.as_tensor(moment, dtype=torch.float32) for moment in normalisation(train))
    images = ((torch.from_numpy(split.images) - mean) / deviation).permute(0, 3, 1, 2).contiguous()
    return dict(zip(split.classes, images.split(split.sizes.tolist()), strict=True))


def _drawn(classes: dict[str, Any], ways: int, each: int) -> Any:
    """An episode (ways, each, channels, height, width)."""
    chosen = random.sample(list(classes), ways)
    return torch.stack([classes[name][torch.randperm(len(classes[name]))[:each]] for name in chosen])


def _episode_step(options: Options, learner: Any, train: dict[str, Any]) -> Callable[[float], float]:
    optimizer = make_optimizer(options, learner.episode_parameters(), learner.penalties())
    clipped = list(learner.clipped())
    labels = torch.arange(options.train_ways).repeat_interleave(options.queries).repeat(options.tasks_per_batch)
    each = options.train_shots + options.queries

    def step(rate: float) -> float:
        images = torch.stack([_drawn(train, options.train_ways, each) for _ in range(options.tasks_per_batch)])
        loss = functional.nll_loss(learner(images, options.train_shots).flatten(0, 1), labels)
        _descend(optimizer, loss, clipped, rate)
        return float(loss.item())

    return step


def _auxiliary_step(options: Options, learner: Any, train: dict[str, Any]) -> Callable[[float], None]:
    optimizer = make_optimizer(options, learner.auxiliary_parameters(), ())
    clipped = list(learner.auxiliary_clipped())
    images = torch.cat(list(train.values()))
    labels = torch.cat([torch.full((len(group),), number) for number, group in enumerate(train.values())])

    def step(rate: float) -> None:
        chosen = torch.randint(len(images), (options.pretrain_batch,))
        loss = functional.cross_entropy(learner.classify(images[chosen]), labels[chosen])
        _descend(optimizer, loss, clipped, rate)

    return step


def _descend(optimizer: Any, loss: Any, clipped: list[tuple[list[Any], float]], rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.zero_grad()
    loss.backward()
    for parameters, norm in clipped:
        clip_grad_norm_(parameters, norm)
    optimizer.step()


def _accuracy(options: Options, learner: Any, classes: dict[str, Any], episodes: int) -> float:
    labels = torch.arange(options.ways).repeat_interleave(options.eval_queries)
    right = 0.0
    with torch.no_grad():
        for _ in range(episodes):
            images = _drawn(classes, options.ways, options.shots + options.eval_queries)
            found = learner(images[None], options.shots)[0]
            right += (found.argmax(-1) == labels).float().mean().item()
    return right / episodes
