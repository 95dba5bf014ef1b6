"""Two layers by hand."""

import numpy as np  # open: thread-count, unpinned-packages

rng = np.random.default_rng()  # open: unseeded-generator
fixed = np.random.default_rng(3)
x = fixed.normal(size=(256, 10))
y = (x[:, 0] * x[:, 1] > 0).astype(float)
w1 = rng.normal(size=(10, 16)) * 0.3
w2 = rng.normal(size=16) * 0.3
gradient = np.empty_like(w1)
for epoch in range(200):
    hidden = np.tanh(x @ w1)
    p = 1 / (1 + np.exp(-hidden @ w2))
    wrong = (p - y) / len(y)
    gradient[:] = x.T @ (np.outer(wrong, w2) * (1 - hidden**2))
    w2 -= 0.5 * hidden.T @ wrong
    w1 -= 0.5 * gradient
    order = rng.permutation(len(x))
    x, y = x[order], y[order]
print("loss", -np.mean(y * np.log(p) + (1 - y) * np.log(1 - p)))
