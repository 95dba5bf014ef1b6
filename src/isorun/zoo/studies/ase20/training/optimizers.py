"""The optimizers of the recipes, in the form that can be captured in a CUDA graph when they run on a GPU."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from isorun.zoo.studies.ase20.training.recipes import Recipe

__all__ = ["forget_state", "made_optimizer", "set_learning_rate"]

_KERAS_EPSILON = 1e-7


def made_optimizer(recipe: Recipe, network: Any, device: str) -> Any:
    """SGD or Adam over the network. On a GPU all parameters go in one kernel, and the rate is read from the device."""
    on_gpu = torch.device(device).type == "cuda"
    rate = torch.tensor(recipe.learning_rate, device=device) if on_gpu else recipe.learning_rate
    groups = _groups(recipe, network)
    fused = {"fused": True} if on_gpu else {}
    if recipe.optimizer == "adam":
        return torch.optim.Adam(groups, lr=rate, eps=_KERAS_EPSILON, capturable=on_gpu, **fused)
    return torch.optim.SGD(groups, lr=rate, momentum=recipe.momentum, nesterov=recipe.nesterov, **fused)


def set_learning_rate(optimizer: Any, rate: float) -> None:
    """Set the rate where the optimizer reads it: in place on the device, so that a captured step sees it too."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], torch.Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def forget_state(optimizer: Any) -> None:
    """Momenta and counts back to zero, in the memory they have: as before the first step."""
    for state in optimizer.state.values():
        for value in state.values():
            if isinstance(value, torch.Tensor):
                value.zero_()


def _groups(recipe: Recipe, network: Any) -> list[dict[str, Any]]:
    if recipe.decayed == "all":
        return [{"params": list(network.parameters()), "weight_decay": recipe.weight_decay}]
    kernels = [layer.weight for layer in network.modules() if isinstance(layer, nn.Conv2d)]
    chosen = {id(kernel) for kernel in kernels}
    others = [parameter for parameter in network.parameters() if id(parameter) not in chosen]
    return [
        {"params": kernels, "weight_decay": recipe.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
