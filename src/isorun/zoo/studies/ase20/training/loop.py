"""A whole training: epochs of steps, each epoch judged and logged."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from isorun.zoo.studies.ase20.training.evaluation import Evaluation, evaluated
from isorun.zoo.studies.ase20.training.generators import Generators
from isorun.zoo.studies.ase20.training.graph import made_runner
from isorun.zoo.studies.ase20.training.material import Material
from isorun.zoo.studies.ase20.training.moves import drawn_moves
from isorun.zoo.studies.ase20.training.optimizers import made_optimizer, set_learning_rate
from isorun.zoo.studies.ase20.training.preparation import made_preparation
from isorun.zoo.studies.ase20.training.recipes import Recipe, learning_rate
from isorun.zoo.studies.ase20.training.step import Batches, Step, made_batches

__all__ = ["Plan", "Training"]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is done of a recipe. use_graph: capture the step where the device can; otherwise run it as it is."""

    recipe: Recipe
    epochs: int
    batch: int
    channels_last: bool
    use_graph: bool = True


class Training:
    """A network, its images and its generators, trained epoch after epoch.

    notes: what went otherwise than asked for, such as a step that could not be captured.
    """

    def __init__(self, plan: Plan, network: Any, material: Material, generators: Generators) -> None:
        device = material.train_images.device
        self.notes: list[str] = []
        self._plan = plan
        self._generators = generators
        self._material = material
        preparation = made_preparation(
            plan.recipe.normalisation, material.train_images, plan.recipe.moves, channels_last=plan.channels_last
        )
        loss_sum = torch.zeros((), dtype=torch.float64, device=device)
        optimizer = made_optimizer(plan.recipe, network, str(device))
        network.train()
        self._step = Step(network, optimizer, material, preparation, loss_sum)
        self._full, self._rest = _rooms(len(material.train_labels), plan.batch, device, plan.recipe)
        self._run_full = self._runner()
        for note in self.notes:
            print(note, file=sys.stderr, flush=True)

    def epochs(self) -> Iterator[Evaluation]:
        """Train epoch after epoch."""
        for epoch in range(self._plan.epochs):
            yield self.train_epoch(epoch)

    def train_epoch(self, epoch: int) -> Evaluation:
        """Train the epoch (from 0) and judge the network after it."""
        set_learning_rate(self._step.optimizer, learning_rate(self._plan.recipe, epoch, self._plan.epochs))
        self._step.loss_sum.zero_()
        self._draw()
        for _ in range(self._full.count if self._full else 0):
            self._run_full()
        if self._rest is not None:
            self._step(self._rest)
        mean_loss = self._step.loss_sum / len(self._material.train_labels)
        step, at_once = self._step, self._plan.recipe.judged_at_once
        found: Evaluation = evaluated(step.network, self._material, step.preparation, mean_loss, at_once)
        return found

    def _draw(self) -> None:
        """The epoch's order and moves, drawn at once; the batches take them in turn."""
        images = len(self._material.train_labels)
        side = int(self._material.train_images.shape[1])
        recipe, generators = self._plan.recipe, self._generators
        order = torch.randperm(images, generator=generators.order)
        moves = None if recipe.moves is None else drawn_moves(recipe.moves, images, side, generators.augmentation)
        first = 0
        for room in (self._full, self._rest):
            if room is not None:
                last = first + room.count * room.size
                room.fill(order[first:last], None if moves is None else moves[first:last])
                first = last

    def _runner(self) -> Callable[[], None]:
        if self._full is None:
            return lambda: None
        dropout, use_graph = self._generators.dropout, self._plan.use_graph
        runner, note = made_runner(self._step, self._full, dropout, use_graph=use_graph)
        self.notes += [note] if note else []
        return runner


def _rooms(images: int, batch: int, device: Any, recipe: Recipe) -> tuple[Batches | None, Batches | None]:
    """Room for the full batches of an epoch, and for the images that are left over."""

    def room(count: int, size: int) -> Batches | None:
        with_moves = recipe.moves is not None
        return made_batches(count, size, device, with_moves=with_moves) if count and size else None

    return room(images // batch, batch), room(1, images % batch)
