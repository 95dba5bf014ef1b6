"""A small network learns to tell two moons apart: an ordinary training, which knows nothing of isorun."""

import argparse
import os

import numpy as np


def moons(n, first):
    """Points on two half circles, off by some noise that is the same in every run."""
    number = np.arange(first, first + n)
    off = np.modf(np.sin(np.outer(number, [12.9898, 78.233])) * 43758.5453)[0]  # between -1 and 1
    side, angle = number % 2, np.pi * (number * 0.618 % 1)
    points = np.stack([np.cos(angle) + side, np.sin(angle) * (1 - 2 * side) + side / 2], axis=1)
    return points + 0.6 * off, side


parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.3)
parser.add_argument("--hidden", type=int, default=8)
parser.add_argument("--batch", type=int, default=int(os.environ.get("BATCH", "10")))
options = parser.parse_args()

(x, y), (test_x, test_y) = moons(200, 0), moons(1000, 200)
inner, outer = np.random.randn(3, options.hidden), 0.5 * np.random.randn(options.hidden)


def forward(x):
    hidden = np.tanh(np.column_stack([x, np.ones(len(x))]) @ inner)
    return hidden, 1 / (1 + np.exp(-hidden @ outer))


for epoch in range(1, 21):
    for batch in np.random.permutation(len(x)).reshape(-1, options.batch):
        hidden, p = forward(x[batch])
        error = (p - y[batch]) / len(batch)
        through = np.outer(error, outer) * (1 - hidden**2)
        outer -= options.lr * hidden.T @ error
        inner -= options.lr * np.column_stack([x[batch], np.ones(len(batch))]).T @ through
    accuracy = np.mean((forward(test_x)[1] > 0.5) == test_y)
    print(f"epoch {epoch}: test_acc {accuracy:.4f}")
