"""A multilayer perceptron in flax, shuffled by NumPy."""

import flax.linen as nn  # open: unpinned-packages
import jax  # open: nondeterministic-kernels
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(10)(nn.relu(nn.Dense(64)(x)))


images, labels = load_digits(return_X_y=True)
images = images.astype("float32") / 16
net = Net()
params = net.init(jax.random.PRNGKey(0), jnp.ones((1, 64)))
optimizer = optax.adam(1e-3)
state = optimizer.init(params)


@jax.jit
def step(params, state, x, y):
    def loss(p):
        return optax.softmax_cross_entropy_with_integer_labels(net.apply(p, x), y).mean()

    value, gradient = jax.value_and_grad(loss)(params)
    updates, state = optimizer.update(gradient, state)
    return optax.apply_updates(params, updates), state, value


for epoch in range(5):
    order = np.random.permutation(len(images))  # open: unseeded-generator
    for part in np.array_split(order, 32):
        params, state, value = step(params, state, images[part], labels[part])
    print(epoch, float(value))
