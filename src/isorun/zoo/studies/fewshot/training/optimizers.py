"""Optimizers: L2 penalties on weights (not on biases and norms), and a learner's own penalties on what it names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from isorun.zoo.studies.fewshot.training.options import Options

__all__ = ["GradientClipping", "make_optimizer", "set_learning_rate"]

ROUNDING = 1e-6


def make_optimizer(options: Options, parameters: Iterable[Any], penalties: Iterable[tuple[list[Any], float]]) -> Any:
    """Stochastic gradient descent with momentum, or Adam. penalties: parameters with an L2 weight of their own."""
    groups: list[dict[str, Any]] = [{"params": own, "weight_decay": weight} for own, weight in penalties]
    taken = {id(parameter) for group in groups for parameter in group["params"]}
    rest = [parameter for parameter in parameters if id(parameter) not in taken]
    weights = [parameter for parameter in rest if parameter.dim() > 1]
    others = [parameter for parameter in rest if parameter.dim() <= 1]
    groups.append({"params": weights, "weight_decay": options.weight_decay})
    groups.append({"params": others, "weight_decay": 0.0})
    if options.optimizer == "adam":
        return torch.optim.Adam(groups, lr=options.learning_rate)
    return torch.optim.SGD(groups, lr=options.learning_rate, momentum=options.momentum)


def set_learning_rate(optimizer: Any, rate: float) -> None:
    """The same rate for all groups."""
    for group in optimizer.param_groups:
        group["lr"] = rate


class GradientClipping:
    """Cuts the gradient of each set of parameters to its norm.

    All sets at once: TADAM has two hundred of one parameter each, and a call for each of them costs more than its step.
    """

    def __init__(self, clipped: Iterable[tuple[list[Any], float]]) -> None:
        sets = list(clipped)
        self._parameters = [parameter for parameters, _ in sets for parameter in parameters]
        device = self._parameters[0].device if self._parameters else "cpu"
        owners = [number for number, (parameters, _) in enumerate(sets) for _ in parameters]
        self._owners = torch.tensor(owners, dtype=torch.int64, device=device)
        self._most = torch.tensor([norm for _, norm in sets], device=device)

    def apply(self) -> None:
        """Cut the gradients there are now; every parameter must have one."""
        if not self._parameters:
            return
        gradients = [parameter.grad for parameter in self._parameters]
        squares = torch.stack([gradient.norm() for gradient in gradients]).square()
        norms = torch.zeros_like(self._most).index_add(0, self._owners, squares).sqrt()
        scales = (self._most / (norms + ROUNDING)).clamp_max(1)[self._owners]
        for gradient, scale in zip(gradients, scales.unbind(), strict=True):
            gradient.mul_(scale)
