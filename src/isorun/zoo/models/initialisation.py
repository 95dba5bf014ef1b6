"""Initial weights, drawn from the generator that is given and never from a global one.

A network is built without values first, so that building it draws nothing; then every tensor gets its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import torch
from torch import nn

__all__ = ["built_empty", "glorot_uniform", "he_normal", "he_truncated_normal", "reset_batch_norm"]

_CUT: Final = 2.0  # standard deviations at which Keras cuts its normal draws
_WIDENING: Final = 0.87962566103423978  # standard deviation of a unit normal cut there


def built_empty(make: Callable[[], Any]) -> Any:
    """The module that `make` builds, with memory on the CPU whose values are not set yet."""
    with torch.device("meta"):
        module = make()
    return module.to_empty(device="cpu")


@torch.no_grad()  # type: ignore[untyped-decorator]  # torch carries no types here
def glorot_uniform(layer: Any, generator: Any) -> None:
    """Keras' default for convolutions and dense layers: uniform within ±sqrt(6 / (fan in + fan out)), biases zero."""
    fan_in, fan_out = _fans(layer.weight)
    limit = math.sqrt(6.0 / (fan_in + fan_out))
    layer.weight.uniform_(-limit, limit, generator=generator)
    _zero_bias(layer)


@torch.no_grad()  # type: ignore[untyped-decorator]  # torch carries no types here
def he_truncated_normal(layer: Any, generator: Any) -> None:
    """Keras' `he_normal`: normal with variance 2 / fan in, cut at two standard deviations; biases zero."""
    fan_in, _ = _fans(layer.weight)
    edge = math.erf(_CUT / math.sqrt(2.0))
    deviation = math.sqrt(2.0 / fan_in) / _WIDENING
    layer.weight.uniform_(-edge, edge, generator=generator).erfinv_().mul_(deviation * math.sqrt(2.0))
    _zero_bias(layer)


@torch.no_grad()  # type: ignore[untyped-decorator]  # torch carries no types here
def he_normal(layer: Any, generator: Any) -> None:
    """Wide ResNet's choice: normal with variance 2 / fan out; biases zero."""
    _, fan_out = _fans(layer.weight)
    layer.weight.normal_(0.0, math.sqrt(2.0 / fan_out), generator=generator)
    _zero_bias(layer)


@torch.no_grad()  # type: ignore[untyped-decorator]  # torch carries no types here
def reset_batch_norm(layer: Any) -> None:
    """Scale one, shift zero, running mean zero and variance one. The count of batches, which nothing reads, goes."""
    nn.init.ones_(layer.weight)
    nn.init.zeros_(layer.bias)
    layer.running_mean.zero_()
    layer.running_var.fill_(1.0)
    layer.num_batches_tracked = None


def _fans(weight: Any) -> tuple[int, int]:
    field = math.prod(weight.shape[2:])
    return weight.shape[1] * field, weight.shape[0] * field


def _zero_bias(layer: Any) -> None:
    if layer.bias is not None:
        layer.bias.zero_()
