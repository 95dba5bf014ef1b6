"""optax: `optimizer = logged(optax.adam(1e-3), every=100)` tells the loss and the size of gradients and updates.

A training with optax calls `optimizer.update(gradients, state, params)`, most often inside of compiled code. What is
logged there: `grad_norm` and `update_norm`, and `loss` where it is passed along as optax has it
(`optimizer.update(…, value=loss)`). Steps count from 1. The state of the optimizer stays as it is, so that checkpoints
fit with isorun and without; outside isorun the optimizer itself is given back.
"""

from __future__ import annotations

from typing import Any

import isorun
from isorun.frameworks import is_recording, missing

try:
    import jax
    import optax
except ModuleNotFoundError as error:
    if error.name not in {"jax", "optax"}:
        raise
    raise missing(str(error.name), __name__) from None

__all__ = ["logged"]


def logged(optimizer: Any, *, every: int = 1) -> Any:
    """The same optimizer, whose steps tell isorun. every: only each so-many-th."""
    if every < 1:
        raise ValueError(f"every: found {every}; a whole number from 1 on is allowed")
    if not is_recording():
        return optimizer
    inner, steps = optax.with_extra_args_support(optimizer), _Steps(every)

    def update(updates: Any, state: Any, params: Any = None, **extra: Any) -> Any:
        new, after = inner.update(updates, state, params, **extra)
        told = {"grad_norm": optax.global_norm(updates), "update_norm": optax.global_norm(new)}
        told.update({"loss": extra["value"]} if extra.get("value") is not None else {})
        if any(isinstance(value, jax.core.Tracer) for value in told.values()):
            jax.debug.callback(steps.tell, told, ordered=jax.device_count() == 1)
        else:
            steps.tell(told)
        return new, after

    return optax.GradientTransformationExtraArgs(inner.init, update)


class _Steps:
    """Counts the steps of one optimizer, where they are told: its state is the training's own."""

    def __init__(self, every: int) -> None:
        self._every = every
        self._made = 0

    def tell(self, told: Any) -> None:
        self._made += 1
        if self._made % self._every == 0:
            isorun.log(self._made, **told)
