"""A small network in NumPy that tells two spirals apart: few learning rates and activations get it right."""

import argparse

import numpy as np

import isorun

ACTIVATIONS = {
    "relu": (lambda x: np.maximum(x, 0.0), lambda x: (x > 0).astype(float)),
    "tanh": (np.tanh, lambda x: 1.0 - np.tanh(x) ** 2),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), lambda x: np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))) ** 2),
}


def spirals(rng: np.random.Generator, points: int) -> tuple[np.ndarray, np.ndarray]:
    """Points on two arms, and on which arm each lies."""
    turn = rng.uniform(0.5, 3.5, points)
    label = rng.integers(0, 2, points)
    angle = turn + np.pi * label
    place = turn[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return place + rng.normal(0, 0.1, place.shape), label


def main() -> None:
    """Train, and log the accuracy."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float)
    parser.add_argument("--units", type=int)
    parser.add_argument("--activation", choices=sorted(ACTIVATIONS))
    options = parser.parse_args()
    data, rng = np.random.default_rng(0), np.random.default_rng()
    (x, y), (test_x, test_y) = spirals(data, 400), spirals(data, 400)
    function, slope = ACTIVATIONS[options.activation]
    first, bias = rng.normal(0, 1, (2, options.units)), np.zeros(options.units)
    second = rng.normal(0, 1, options.units) / options.units**0.5
    for epoch in range(1, 301):
        inner = x @ first + bias
        wrong = 1 / (1 + np.exp(-np.clip(function(inner) @ second, -50, 50))) - y
        back = wrong[:, None] * second * slope(inner) / len(x)
        second -= options.lr * function(inner).T @ wrong / len(x)
        first -= options.lr * x.T @ back
        bias -= options.lr * back.sum(axis=0)
        if epoch % 50 == 0:
            right = (function(test_x @ first + bias) @ second > 0) == test_y
            isorun.log(epoch=epoch, accuracy=float(right.mean()))


main()
