"""How good the network is on the validation and test images, with one trip from the device to the host."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

from isorun.zoo.studies.ase20.training.material import Material
from isorun.zoo.studies.ase20.training.preparation import Preparation

__all__ = ["Evaluation", "evaluated"]


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """An epoch's numbers. class_accuracy: by class, those without test images left out. predictions: on the device."""

    train_loss: float
    val_loss: float
    val_accuracy: float
    test_accuracy: float
    class_accuracy: dict[str, float]
    predictions: Any


@torch.no_grad()  # type: ignore[untyped-decorator]  # torch carries no types here
def evaluated(network: Any, material: Material, preparation: Preparation, train_loss: Any, at_once: int) -> Evaluation:
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


def _evaluation(numbers: list[float], material: Material, predictions: Any) -> Evaluation:
    train_loss, val_loss, val_right, *class_right = numbers
    sizes = material.class_sizes
    by_class = enumerate(zip(class_right, sizes, strict=True))
    return Evaluation(
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
