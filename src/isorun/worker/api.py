"""The calls a training makes. Outside isorun they do nothing."""

from __future__ import annotations

from typing import Any, Mapping

from . import recorder

__all__ = ["digest", "log", "result"]


def log(
    step: Any = None,
    *,
    epoch: Any = None,
    per_class: Mapping[Any, Any] | None = None,
    predictions: Any = None,
    **metrics: Any,
) -> None:
    """Record metrics at a step or an epoch: `log(epoch=3, val_loss=0.1)`."""
    current = recorder.active()
    if current is not None:
        current.log(step, epoch=epoch, per_class=per_class, predictions=predictions, **metrics)


def result(
    *,
    per_class: Mapping[Any, Any] | None = None,
    predictions: Any = None,
    labels: Any = None,
    weights: Any = None,
    **values: Any,
) -> None:
    """Record final values: `result(accuracy=0.98, per_class={...}, predictions=..., labels=..., weights=model)`."""
    current = recorder.active()
    if current is not None:
        current.result(per_class=per_class, predictions=predictions, labels=labels, weights=weights, **values)


def digest(name: str, obj: Any, step: Any = None) -> str | None:
    """Record a digest of weights or other arrays under a name; None outside isorun."""
    current = recorder.active()
    return None if current is None else current.digest(name, obj, step)
