"""A whole training: epochs of steps, each epoch judged.

A step is the same code whether it runs operation by operation or is captured in a CUDA graph: recorded once, then
started with one call instead of hundreds. The draws of a whole epoch lie on the device; a counter there says which
batch is next. A step therefore needs nothing from the host, and leaves its loss on the device, too.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import nn
from torch.nn import functional

from isorun.zoo.studies.ase20.training.images import Material, Preparation, drawn_moves, made_preparation
from isorun.zoo.studies.ase20.training.networks import Generators
from isorun.zoo.studies.ase20.training.recipes import Recipe, learning_rate
from isorun.zoo.training import set_learning_rate

__all__ = [
    "Batches",
    "Course",
    "JudgedEpoch",
    "Snapshot",
    "Step",
    "Training",
    "captured",
    "evaluated",
    "forget_state",
    "made_batches",
    "made_optimizer",
    "made_runner",
]

_KERAS_EPSILON = 1e-7


def made_optimizer(recipe: Recipe, network: Any, device: str) -> Any:
    """SGD or Adam over the network. On a GPU all parameters go in one kernel, and the rate is read from the device."""
    on_gpu = torch.device(device).type == "cuda"
    rate = torch.tensor(recipe.learning_rate, device=device) if on_gpu else recipe.learning_rate
    groups = _groups(recipe, network)
    fused = {"fused": True} if on_gpu else {}
    if recipe.optimizer == "adam":
        return torch.optim.Adam(groups, lr=rate, eps=_KERAS_EPSILON, capturable=on_gpu, **fused)
    return torch.optim.SGD(groups, lr=rate, momentum=recipe.momentum, nesterov=recipe.nesterov, **fused)


def forget_state(optimizer: Any) -> None:
    """Momenta and counts back to zero, in the memory they have: as before the first step."""
    for state in optimizer.state.values():
        for value in state.values():
            if isinstance(value, torch.Tensor):
                value.zero_()


def _groups(recipe: Recipe, network: Any) -> list[dict[str, Any]]:
    if recipe.decayed == "all":
        return [{"params": list(network.parameters()), "weight_decay": recipe.weight_decay}]
    kernels = [layer.weight for layer in network.modules() if isinstance(layer, nn.Conv2d)]
    chosen = {id(kernel) for kernel in kernels}
    others = [parameter for parameter in network.parameters() if id(parameter) not in chosen]
    return [
        {"params": kernels, "weight_decay": recipe.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]


@dataclass(frozen=True, slots=True, eq=False)
class Batches:
    """Batches of one size: which images (batches, size), how they move (batches, size, 3), and the next one's number.

    The tensors stay where they are; an epoch's draws are copied into them.
    """

    order: Any
    moves: Any
    counter: Any

    @property
    def count(self) -> int:
        """How many batches there are."""
        return int(self.order.shape[0])

    @property
    def size(self) -> int:
        """Images in a batch."""
        return int(self.order.shape[1])

    def fill(self, order: Any, moves: Any) -> None:
        """Take an epoch's draws and begin with the first batch."""
        self.order.copy_(order.view(self.order.shape))
        if self.moves is not None:
            self.moves.copy_(moves.view(self.moves.shape))
        self.counter.zero_()


def made_batches(count: int, size: int, device: str, *, with_moves: bool) -> Batches:
    """Room for so many batches on the device."""
    order = torch.zeros(count, size, dtype=torch.int64, device=device)
    moves = torch.zeros(count, size, 3, device=device) if with_moves else None
    return Batches(order, moves, torch.zeros(1, dtype=torch.int64, device=device))


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """Look up a batch, move and normalise it, forward, loss, backward, update; `loss_sum` gains the batch's loss."""

    network: Any
    optimizer: Any
    material: Material
    preparation: Preparation
    loss_sum: Any

    def __call__(self, batches: Batches) -> None:
        """Train on the next batch."""
        chosen = batches.order.index_select(0, batches.counter).view(-1)
        moves = None if batches.moves is None else batches.moves.index_select(0, batches.counter).view(-1, 3)
        images = self.preparation.training_batch(self.material.train_images, chosen, moves)
        labels = self.material.train_labels.index_select(0, chosen)
        self.optimizer.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(self.network(images), labels)
        loss.backward()
        self.optimizer.step()
        self.loss_sum.add_(loss.detach() * batches.size)
        batches.counter.add_(1)


_WARM_UPS: Final = 3


def made_runner(step: Step, batches: Batches, generator: Any, *, use_graph: bool) -> tuple[Callable[[], None], str]:
    """What runs the next of the batches: a graph on a GPU if one is wanted; and a note if it could not be had."""
    if not use_graph or batches.order.device.type != "cuda":
        return lambda: step(batches), ""
    try:
        return captured(step, batches, generator), ""
    except (RuntimeError, AttributeError) as error:  # AttributeError: torch before 2.4 cannot register generators
        reason = str(error).strip().partition("\n")[0]
        note = f"the step could not be captured as a CUDA graph and runs without one ({reason})"
        return lambda: step(batches), note


def captured(step: Step, batches: Batches, generator: Any) -> Callable[[], None]:
    """The step on these batches as a graph; nothing is trained by making it.

    Libraries choose kernels and make workspaces at their first calls, which a graph must not record: hence some real
    steps first, after which weights, running means, momenta, counters and the dropout generator are put back.
    generator: dropout's; the graph takes its state at each replay, so masks go on as they would without a graph.
    """
    before = Snapshot(step, batches, generator)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    try:
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UPS):
                batches.counter.zero_()
                step(batches)
        torch.cuda.current_stream().wait_stream(stream)
    finally:
        before.restore()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(generator)
    with torch.cuda.graph(graph, stream=stream):
        step(batches)
    replay: Callable[[], None] = graph.replay
    return replay


class Snapshot:
    """What a step changes, copied, to be put back into the same memory."""

    def __init__(self, step: Step, batches: Batches, generator: Any) -> None:
        self._step = step
        self._batches = batches
        self._generator = generator
        self._state = generator.get_state()
        self._tensors = [(tensor, tensor.detach().clone()) for tensor in _tensors(step.network)]

    @torch.no_grad()  # type: ignore[untyped-decorator]  # torch carries no types here
    def restore(self) -> None:
        """As if no step had been made."""
        for tensor, value in self._tensors:
            tensor.copy_(value)
        self._step.optimizer.zero_grad(set_to_none=True)
        forget_state(self._step.optimizer)
        self._step.loss_sum.zero_()
        self._batches.counter.zero_()
        self._generator.set_state(self._state)


def _tensors(network: Any) -> list[Any]:
    return [*network.parameters(), *network.buffers()]


@dataclass(frozen=True, slots=True, eq=False)
class JudgedEpoch:
    """An epoch's numbers. class_accuracy: by class, those without test images left out. predictions: on the device."""

    train_loss: float
    val_loss: float
    val_accuracy: float
    test_accuracy: float
    class_accuracy: dict[str, float]
    predictions: Any


@torch.no_grad()  # type: ignore[untyped-decorator]  # torch carries no types here
def evaluated(network: Any, material: Material, preparation: Preparation, train_loss: Any, at_once: int) -> JudgedEpoch:
    """The epoch's numbers. train_loss: a tensor on the device, fetched together with the others."""
    network.eval()
    scores = torch.cat([network(preparation.as_they_are(part)) for part in _parts(material.judged_images, at_once)])
    network.train()
    split, labels = material.validation, material.judged_labels
    predictions = scores.argmax(1)
    is_right = predictions == labels
    val_loss = functional.cross_entropy(scores[:split].double(), labels[:split])
    rights = [val_loss, is_right[:split].sum(), *_right_by_class(is_right[split:], material)]
    numbers = torch.stack([train_loss.double().view(()), *(right.double() for right in rights)]).tolist()
    return _evaluation(numbers, material, predictions[split:])


def _right_by_class(is_right: Any, material: Material) -> Any:
    """Right answers of each class; a comparison with all classes, since counting by index is not deterministic."""
    classes = torch.arange(material.classes, device=is_right.device)
    return ((material.test_labels[:, None] == classes) & is_right[:, None]).sum(0).unbind()


def _evaluation(numbers: list[float], material: Material, predictions: Any) -> JudgedEpoch:
    train_loss, val_loss, val_right, *class_right = numbers
    sizes = material.class_sizes
    by_class = enumerate(zip(class_right, sizes, strict=True))
    return JudgedEpoch(
        train_loss=train_loss,
        val_loss=val_loss,
        val_accuracy=val_right / material.validation,
        test_accuracy=sum(class_right) / sum(sizes),
        class_accuracy={str(number): right / size for number, (right, size) in by_class if size},
        predictions=predictions,
    )


def _parts(images: Any, at_once: int) -> Any:
    """Parts of nearly equal size, so that kernels are chosen for few sizes."""
    return images.tensor_split(math.ceil(len(images) / at_once))


@dataclass(frozen=True, slots=True)
class Course:
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

    def __init__(self, course: Course, network: Any, material: Material, generators: Generators) -> None:
        device = material.train_images.device
        self.notes: list[str] = []
        self._course = course
        self._generators = generators
        self._material = material
        preparation = made_preparation(
            course.recipe.normalisation, material.train_images, course.recipe.moves, channels_last=course.channels_last
        )
        loss_sum = torch.zeros((), dtype=torch.float64, device=device)
        optimizer = made_optimizer(course.recipe, network, str(device))
        network.train()
        self._step = Step(network, optimizer, material, preparation, loss_sum)
        self._full, self._rest = _rooms(len(material.train_labels), course.batch, device, course.recipe)
        self._run_full = self._runner()
        for note in self.notes:
            print(note, file=sys.stderr, flush=True)

    def epochs(self) -> Iterator[JudgedEpoch]:
        """Train epoch after epoch."""
        for epoch in range(self._course.epochs):
            yield self.train_epoch(epoch)

    def train_epoch(self, epoch: int) -> JudgedEpoch:
        """Train the epoch (from 0) and judge the network after it."""
        set_learning_rate(self._step.optimizer, learning_rate(self._course.recipe, epoch, self._course.epochs))
        self._step.loss_sum.zero_()
        self._draw()
        for _ in range(self._full.count if self._full else 0):
            self._run_full()
        if self._rest is not None:
            self._step(self._rest)
        mean_loss = self._step.loss_sum / len(self._material.train_labels)
        step, at_once = self._step, self._course.recipe.judged_at_once
        found: JudgedEpoch = evaluated(step.network, self._material, step.preparation, mean_loss, at_once)
        return found

    def _draw(self) -> None:
        """The epoch's order and moves, drawn at once; the batches take them in turn."""
        images = len(self._material.train_labels)
        side = int(self._material.train_images.shape[1])
        recipe, generators = self._course.recipe, self._generators
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
        dropout, use_graph = self._generators.dropout, self._course.use_graph
        runner, note = made_runner(self._step, self._full, dropout, use_graph=use_graph)
        self.notes += [note] if note else []
        return runner


def _rooms(images: int, batch: int, device: Any, recipe: Recipe) -> tuple[Batches | None, Batches | None]:
    """Room for the full batches of an epoch, and for the images that are left over."""

    def room(count: int, size: int) -> Batches | None:
        with_moves = recipe.moves is not None
        return made_batches(count, size, device, with_moves=with_moves) if count and size else None

    return room(images // batch, batch), room(1, images % batch)
