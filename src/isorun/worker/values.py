"""What a training may hand over as a metric, brought to plain Python numbers."""

from __future__ import annotations

import numbers
from typing import Any, Mapping

DEFAULT_PER_CLASS_METRIC = "accuracy"


def number(value: Any) -> int | float:
    """A plain number from a Python, NumPy, torch, TensorFlow or JAX scalar. Raises TypeError for anything else."""
    kind = type(value)
    if kind is float or kind is int:
        return value  # type: ignore[no-any-return]
    if isinstance(value, numbers.Real):
        return int(value) if isinstance(value, numbers.Integral) else float(value)
    return _scalar_of_array(value)


def _scalar_of_array(value: Any) -> int | float:
    if not hasattr(value, "item") and callable(getattr(value, "numpy", None)):
        value = value.numpy()
    if not callable(getattr(value, "item", None)):
        raise TypeError(f"found {shortened(value)} of type {type(value).__name__}; a number is allowed")
    try:
        plain = value.item()
    except (ValueError, RuntimeError):
        plain = None
    if not isinstance(plain, (int, float)):
        shape = tuple(getattr(value, "shape", ()))
        raise TypeError(f"found {type(value).__name__} of shape {shape}; one number is allowed")
    return int(plain) if isinstance(plain, int) else plain


def shortened(value: Any) -> str:
    """How a value looks, in at most 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def nested_per_class(per_class: Mapping[Any, Any]) -> dict[str, Mapping[Any, Any]]:
    """Per-class values by metric: a flat mapping of classes is about the accuracy."""
    flat = {name: value for name, value in per_class.items() if not isinstance(value, Mapping)}
    nested = {str(name): value for name, value in per_class.items() if isinstance(value, Mapping)}
    if flat:
        nested[DEFAULT_PER_CLASS_METRIC] = {**flat, **nested.get(DEFAULT_PER_CLASS_METRIC, {})}
    return nested
