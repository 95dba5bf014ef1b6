"""Train one network of the space, epoch after epoch.

All images lie on the device and batches are cut out of them there: a search trains hundreds of small networks, and most
of the time of such a training would otherwise be spent on handing images over.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from isorun.zoo.generators import tensor_generator
from isorun.zoo.models.searched import Architecture, made_searched
from isorun.zoo.studies.dream.space import Value, checked
from isorun.zoo.training import set_learning_rate

if TYPE_CHECKING:
    from isorun.zoo.data.images import Images

__all__ = ["JudgedEpoch", "Material", "SearchedTraining", "made_material"]


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """Images as bytes (images, channels, height, width) and labels, on the device. judged: those a search looks at."""

    images: Any
    labels: Any
    judged_images: Any
    judged_labels: Any
    classes: int
    origin: str


def made_material(images: Images, device: Any, train: int = 0, judged: int = 0, shrink: int = 1) -> Material:
    """Put images on the device. A search judges by the last training images; the published test images stay unseen.

    train, judged: how many; 0 takes four fifths, and one fifth. At most a third is judged by. shrink: so many pixels
    each way are averaged into one.
    """
    count = len(images.train_labels)
    judged = min(judged or count // 5, count // 3)
    train = min(train or count - judged, count - judged)
    pixels = torch.from_numpy(images.train_images).permute(0, 3, 1, 2).contiguous().to(device)
    if shrink > 1:
        pixels = functional.avg_pool2d(pixels.float(), shrink).round().to(torch.uint8)
    labels = torch.from_numpy(images.train_labels).to(device)
    order = torch.randperm(count, generator=torch.Generator().manual_seed(0)).to(device)
    chosen, held = order[:train], order[count - judged :]
    return Material(pixels[chosen], labels[chosen], pixels[held], labels[held], len(images.classes), images.origin)


@dataclass(frozen=True, slots=True)
class JudgedEpoch:
    """What an epoch came to. loss and accuracy: over the training images, as they were trained."""

    epoch: int
    loss: float
    accuracy: float
    val_loss: float
    val_accuracy: float


class SearchedTraining:
    """A network of the space, its images and its generators. network: to be watched before the first epoch."""

    def __init__(self, config: Mapping[str, Value], material: Material, *, seed: int, epochs: int) -> None:
        self._config: dict[str, Any] = checked(config)
        self._material = material
        self._epochs = epochs
        device = material.images.device
        self._order = tensor_generator(seed, "order")
        self._moves = tensor_generator(seed, "moves")
        torch.manual_seed(seed)  # dropout has no generator of its own
        weights = tensor_generator(seed, "weights")
        channels, side = int(material.images.shape[1]), int(material.images.shape[2])
        self.network = made_searched(_architecture(self._config), channels, side, material.classes, weights).to(device)
        self.optimizer = _optimizer(self._config, self.network)

    def epochs(self) -> Iterator[JudgedEpoch]:
        """Train epoch after epoch; a training whose loss is no number any more ends there."""
        for epoch in range(1, self._epochs + 1):
            found = self._epoch(epoch)
            yield found
            if not math.isfinite(found.loss):
                return

    def _epoch(self, epoch: int) -> JudgedEpoch:
        self._set_rate(epoch)
        self.network.train()
        material, batch = self._material, int(self._config["batch_size"])
        count = len(material.labels)
        order = torch.randperm(count, generator=self._order).to(material.labels.device)
        loss_sum, right = torch.zeros((), device=order.device), torch.zeros((), device=order.device)
        for chosen in order.split(batch):
            images, labels = self._inputs(material.images[chosen], moved=True), material.labels[chosen]
            self.optimizer.zero_grad(set_to_none=True)
            scores = self.network(images)
            loss = functional.cross_entropy(scores, labels)
            loss.backward()
            self.optimizer.step()
            loss_sum += loss.detach() * len(labels)
            right += (scores.detach().argmax(1) == labels).sum()
        val_loss, val_right = self._judged()
        return JudgedEpoch(epoch, float(loss_sum) / count, float(right) / count, val_loss, val_right)

    @torch.no_grad()  # type: ignore[untyped-decorator]  # torch carries no types here
    def _judged(self) -> tuple[float, float]:
        self.network.eval()
        images, labels = self._material.judged_images, self._material.judged_labels
        scores = torch.cat([self.network(self._inputs(part)) for part in images.split(2048)])
        right = (scores.argmax(1) == labels).double().mean()
        return float(functional.cross_entropy(scores.double(), labels)), float(right)

    def _inputs(self, images: Any, *, moved: bool = False) -> Any:
        """Numbers between -2 and 2, or the bytes as they are; moved by up to a tenth and mirrored where that is on."""
        inputs = images.float()
        if self._config["standardize"]:
            inputs = (inputs - 127.5) / 63.75
        if not moved or not self._config["augment"]:
            return inputs
        side = int(inputs.shape[-1])
        reach = max(1, side // 10)
        down, across = (int(torch.randint(-reach, reach + 1, (), generator=self._moves)) for _ in range(2))
        inputs = inputs.roll((down, across), (2, 3))
        return inputs.flip(3) if torch.rand((), generator=self._moves) < 0.5 else inputs

    def _set_rate(self, epoch: int) -> None:
        """From the learning rate to its end by half a cosine."""
        first, end = float(self._config["learning_rate"]), float(self._config["end_learning_rate"])
        done = (epoch - 1) / max(1, self._epochs - 1)
        set_learning_rate(self.optimizer, first * (end + (1 - end) * 0.5 * (1 + math.cos(math.pi * done))))


def _architecture(config: Mapping[str, Any]) -> Architecture:
    return Architecture(
        family=config["block_type"],
        stages=int(config["stages"]),
        depth=int(config["depth"]),
        width=int(config["filters"]),
        kernel=int(config["kernel_size"]),
        normalise=bool(config["normalize"]),
        activation=config["activation"],
        initialiser=config["initializer"],
        reduction=config["reduction"],
        dropout=float(config["dropout"]),
    )


def _optimizer(config: Mapping[str, Any], network: Any) -> Any:
    rate, decay, momentum = (float(config[name]) for name in ("learning_rate", "weight_decay", "momentum"))
    parameters = list(network.parameters())
    if config["optimizer"] == "sgd":
        return torch.optim.SGD(parameters, lr=rate, momentum=momentum, weight_decay=decay)
    kinds = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "nadam": torch.optim.NAdam}
    return kinds[config["optimizer"]](parameters, lr=rate, weight_decay=decay)
