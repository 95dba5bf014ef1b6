"""JAX: `log(epoch=…, loss=…)`, also inside of what `jax.jit` compiles, where `isorun.log` would get no numbers.

    from isorun.frameworks.jax import log, result

    @jax.jit
    def train(params):
        return jax.lax.fori_loop(0, 100, lambda step, state: step_and_log(step, state), params)

Metrics may be nested, as those of a step often are: `log(epoch=3, train={"loss": …})` is `train_loss`. Outside isorun
nothing is compiled into the function.
"""

from __future__ import annotations

import functools
from typing import Any, Mapping

import isorun
from isorun.frameworks import classes_of, is_recording, missing

try:
    import jax
except ModuleNotFoundError as error:
    if error.name != "jax":
        raise
    raise missing("jax", __name__) from None

__all__ = ["log", "result"]


def log(step: Any = None, *, epoch: Any = None, **metrics: Any) -> None:
    """Record one row of metrics, from anywhere; in compiled code the row is told when the code runs."""
    if not is_recording():
        return
    values = dict(_flat("", metrics))
    position = {name: value for name, value in (("step", step), ("epoch", epoch)) if value is not None}
    leaves = [*values.values(), *position.values()]
    if not any(isinstance(value, jax.core.Tracer) for value in leaves):
        _tell(values, position)
        return
    # Rows in the order of the steps; across several devices JAX knows no order, and rows have their steps.
    jax.debug.callback(functools.partial(_tell), values, position, ordered=jax.device_count() == 1)


def result(*, predictions: Any = None, labels: Any = None, **metrics: Any) -> None:
    """Record final values, and predictions with their labels: classes, or scores by class."""
    if not is_recording():
        return
    kept: dict[str, Any] = {}
    if predictions is not None:
        predicted, true = classes_of(predictions, labels)
        kept = {"predictions": {"test": predicted}, "labels": None if true is None else {"test": true}}
    isorun.result(**dict(_flat("", metrics)), **kept)


def _flat(owner: str, metrics: Mapping[str, Any]) -> Any:
    for name, value in metrics.items():
        if isinstance(value, Mapping):
            yield from _flat(f"{owner}{name}_", value)
        else:
            yield f"{owner}{name}", value


def _tell(values: Mapping[str, Any], position: Mapping[str, Any]) -> None:
    isorun.log(position.get("step"), epoch=position.get("epoch"), **values)
