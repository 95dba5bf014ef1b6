"""Small networks with a fault that their search spaces hold no way out of: what real searches are repaired on.

Perceptrons on scikit-learn's digits and on a part of Fashion-MNIST (images of 14 by 14), in torch and in Keras. A
search may choose width, depth and dropout; the fault is in what the user built around them.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import nn

import isorun.repair

__all__ = ["DATA", "FAULTS", "TARGETS", "Fault", "build", "built_by_keras", "material", "single_changes", "train"]

EPOCHS: Final = 8
BATCH: Final = 64
TARGETS: Final = {"digits": 0.9, "fashion-mnist": 0.7}
"""What a search is asked for: a network of three layers without a fault reaches it."""
_SCALES: Final = {"digits": 16.0, "fashion-mnist": 255.0}
_ACTIVATIONS: Final = {"relu": nn.ReLU, "sigmoid": nn.Sigmoid, "tanh": nn.Tanh}

DATA: Final = tuple(TARGETS)
Material = tuple[Any, Any, Any, Any]


@dataclass(frozen=True)
class Fault:
    """What is wrong with a network. together: no single change of the user's choices is meant to help."""

    name: str
    activation: str = "relu"
    rate: float = 0.05
    momentum: float = 0.9
    decay: float = 0.0
    spread: float | None = None
    bias: float = 0.0
    is_raw: bool = False
    layers: tuple[int, int] = (2, 4)
    together: bool = False


FAULTS: Final = (
    Fault("deep sigmoid", activation="sigmoid", layers=(5, 8)),
    Fault("learning rate 1", rate=1.0),
    Fault("tiny initialisation", spread=1e-4, layers=(3, 5)),
    Fault("dead ReLU", bias=-10.0),
    Fault("no normalisation", is_raw=True, layers=(3, 5)),
    Fault("two together: dead ReLU, learning rate 30", bias=-10.0, rate=30.0, together=True),
    Fault(
        "three together: dead ReLU, learning rate 30, weight decay 10", bias=-10.0, rate=30.0, decay=10.0, together=True
    ),
)


def material(data: str, *, is_raw: bool) -> Material:
    """Images to train with, their classes, and the same to judge by. is_raw: as the files have them, from 0 to 255."""
    x, y = _images(data)
    x = x * np.float32(255) if is_raw else x
    cut = 1200 if data == "digits" else 1500
    return x[:cut], y[:cut], x[cut:], y[cut:]


@cache
def _images(data: str) -> tuple[Any, Any]:
    """Between 0 and 1, in a random order that is always the same."""
    if data == "digits":
        from sklearn.datasets import load_digits

        x, y = load_digits(return_X_y=True)
    else:
        folder = Path(os.environ.get("ISORUN_DATA", "/usr/share/datasets")) / data
        x, y = _idx(folder / "t10k-images-idx3-ubyte.gz", 16), _idx(folder / "t10k-labels-idx1-ubyte.gz", 8)
        x = x.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)).reshape(len(y), -1)
    order = np.random.default_rng(0).permutation(len(y))[:2100]
    return (x[order] / _SCALES[data]).astype("float32"), y[order].astype("int64")


def _idx(path: Path, skipped: int) -> Any:
    return np.frombuffer(gzip.decompress(path.read_bytes()), dtype=np.uint8, offset=skipped)


def build(fault: Fault, inputs: int, units: int, layers: int, dropout: float) -> nn.Sequential:
    """The network in torch."""
    parts: list[nn.Module] = []
    for place in range(layers):
        linear = nn.Linear(units if place else inputs, units)
        if fault.spread is not None:
            nn.init.normal_(linear.weight, std=fault.spread)
        if fault.spread is not None or fault.bias:
            nn.init.constant_(linear.bias, fault.bias)
        parts += [linear, _ACTIVATIONS[fault.activation](), nn.Dropout(dropout)]
    return nn.Sequential(*parts, nn.Linear(units, 10))


def train(model: nn.Module, optimizer: torch.optim.Optimizer, stuff: Material, epochs: int = EPOCHS) -> Iterator[float]:
    """An ordinary loop; gives the accuracy on what is held out, epoch by epoch."""
    x, y, held_x, held_y = map(torch.as_tensor, stuff)
    for _ in range(epochs):
        model.train()
        for part in torch.randperm(len(x)).split(BATCH):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[part]), y[part]).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            yield float((model(held_x).argmax(1) == held_y).float().mean())


def built_by_keras(fault: Fault, inputs: int, units: int, layers: int, dropout: float) -> Any:
    """The same network in Keras, compiled."""
    import keras

    spread = None if fault.spread is None else keras.initializers.RandomNormal(0.0, fault.spread)
    model = keras.Sequential([keras.Input((inputs,))])
    for _ in range(layers):
        bias = keras.initializers.Constant(fault.bias)
        kernel = spread or "glorot_uniform"
        model.add(keras.layers.Dense(units, fault.activation, kernel_initializer=kernel, bias_initializer=bias))
        model.add(keras.layers.Dropout(dropout))
    model.add(keras.layers.Dense(10, "softmax"))
    optimizer = keras.optimizers.SGD(fault.rate, momentum=fault.momentum, weight_decay=fault.decay or None)
    model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


class _Asked:
    """A trial that answers as it was told, and keeps what it was asked."""

    def __init__(self, answers: Mapping[str, str]) -> None:
        self.answers = answers
        self.params: dict[str, Any] = {}
        self.asked: dict[str, Sequence[str]] = {}

    def suggest_categorical(self, name: str, choices: Sequence[str]) -> str:
        self.asked[name] = choices
        return self.answers.get(name, choices[0])


def single_changes(fault: Fault, data: str) -> dict[tuple[str, str], float]:
    """What each single change that isorun offers brings to a network of 32 units."""
    _, asked = _changed(fault, data, {})
    edits = [(name, choice) for name, choices in asked.items() for choice in choices[1:]]
    return {(name, choice): _changed(fault, data, {name: choice})[0] for name, choice in edits}


def _changed(fault: Fault, data: str, answers: Mapping[str, str]) -> tuple[float, Mapping[str, Sequence[str]]]:
    torch.manual_seed(0)
    stuff, trial = material(data, is_raw=fault.is_raw), _Asked(answers)
    model = build(fault, stuff[0].shape[1], 32, fault.layers[0], 0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=fault.rate, momentum=fault.momentum, weight_decay=fault.decay)
    isorun.repair.expand(trial, model, optimizer, epochs=EPOCHS)
    return max(train(model, optimizer, stuff)), trial.asked
