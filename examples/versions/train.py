"""A small network in NumPy alone, on points in two rings."""

import numpy as np

generator = np.random.RandomState(np.random.randint(2**31))
angle = generator.uniform(0, 2 * np.pi, 600)
ring = generator.randint(0, 2, 600)
points = np.stack([np.cos(angle), np.sin(angle)], 1) * (1 + ring)[:, None] + generator.normal(0, 0.35, (600, 2))
train, test = slice(0, 400), slice(400, 600)

hidden, out = generator.normal(0, 1, (3, 16)), generator.normal(0, 0.3, 17)
inputs = np.concatenate([points, np.ones((600, 1))], 1)
for _ in range(200):
    active = np.concatenate([np.tanh(inputs[train] @ hidden), np.ones((400, 1))], 1)
    error = 1 / (1 + np.exp(-active @ out)) - ring[train]
    back = np.outer(error, out[:-1]) * (1 - active[:, :-1] ** 2)
    out -= 0.5 * active.T @ error / 400
    hidden -= 0.5 * inputs[train].T @ back / 400
active = np.concatenate([np.tanh(inputs[test] @ hidden), np.ones((200, 1))], 1)
print(f"NumPy {np.__version__}")
print(f"test_acc: {np.mean((active @ out > 0) == ring[test]):.4f}")
