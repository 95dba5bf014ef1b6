"""Real JAX and optax: rows from compiled code."""

import pytest

from isorun.analysis.studies.class_values import class_values

pytestmark = pytest.mark.slow

TRAINING = """
    import jax, jax.numpy as jnp, optax
    from isorun.frameworks.jax import log, result
    from isorun.frameworks.optax import logged

    x = jax.random.normal(jax.random.key(1), (90, 3))
    y = (x[:, 0] > 0).astype(int) + (x[:, 1] > 0)
    plain = optax.sgd(0.5)
    optimizer = logged(plain, every=5)
    params = jnp.zeros((3, 3))
    assert jax.tree.structure(optimizer.init(params)) == jax.tree.structure(plain.init(params))

    def loss_of(params):
        return optax.softmax_cross_entropy_with_integer_labels(x @ params, y).mean()

    @jax.jit
    def train(params):
        def step(number, state):
            params, kept = state
            loss, gradient = jax.value_and_grad(loss_of)(params)
            updates, kept = optimizer.update(gradient, kept, params, value=loss)
            log(epoch=number, train={{"loss": loss}})
            return optax.apply_updates(params, updates), kept
        return jax.lax.fori_loop(0, 10, step, (params, optimizer.init(params)))[0]

    params = train(params)
    log(epoch=10, train={{"loss": loss_of(params)}})
    scores = x @ params
    result(test_acc=(scores.argmax(1) == y).mean(), predictions=scores, labels=y)
    print("train_loss", loss_of(params))
"""


def test_rows_from_compiled_code_come_in_their_order_and_once(trained):
    record = trained(TRAINING.replace("{{", "{").replace("}}", "}"), "jax", "optax")
    assert {record.origins[name] for name in ("train_loss", "grad_norm", "test_acc")} == {"log"}
    assert list(record.series["train_loss"].steps) == list(range(11))
    losses = list(record.series["train_loss"].values)
    assert losses == sorted(losses, reverse=True)
    assert list(record.series["grad_norm"].steps) == [5.0, 10.0]
    assert list(record.series["loss"].values) == pytest.approx([losses[4], losses[9]])
    assert set(class_values(record, "test_acc", None)) == {"0", "1", "2"}
