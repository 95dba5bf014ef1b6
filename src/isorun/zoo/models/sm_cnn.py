"""SM-CNN: the answer selection network of Severyn and Moschitti (2015), simplified as Crane (2018) trained it.

A convolution of width 5 with 100 maps over the question's word vectors, another over the answer's; each map's maximum
over the sentence; both joined with four overlap features; a hidden layer as wide as its input (tanh, dropout 0.5); two
classes. There is no similarity matrix between the sentences, and word vectors are not trained. 92,430 parameters:
2 x (50 x 5 x 100 + 100) + (204 x 204 + 204) + (204 x 2 + 2).
"""

from __future__ import annotations

import math
from typing import Any, Final

import torch
from torch import nn

from isorun.zoo.models.initialisation import built_empty

__all__ = ["FILTER_WIDTH", "HIDDEN", "SmCnn", "sm_cnn"]

FILTER_WIDTH: Final = 5
MAPS: Final = 100
FEATURES: Final = 4
HIDDEN: Final = 2 * MAPS + FEATURES
_LOWEST: Final = -1e30


class SmCnn(nn.Module):  # type: ignore[misc]  # torch carries no types here
    """Sentences come padded, with their lengths; the padding has no effect on the scores."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.question = nn.Conv1d(width, MAPS, FILTER_WIDTH, padding=FILTER_WIDTH - 1)
        self.answer = nn.Conv1d(width, MAPS, FILTER_WIDTH, padding=FILTER_WIDTH - 1)
        self.joined = nn.Linear(HIDDEN, HIDDEN)
        self.classes = nn.Linear(HIDDEN, 2)

    def forward(self, question: Any, answer: Any, features: Any, kept: Any = None) -> Any:
        """The class scores (before softmax) of a batch.

        question, answer: (word vectors: batch x width x words, lengths: batch). features: batch x 4.
        kept: batch x HIDDEN, what dropout multiplies with (0 or 2); None drops nothing.
        """
        joined = torch.cat((_pooled(self.question, *question), _pooled(self.answer, *answer), features), dim=1)
        hidden = torch.tanh(self.joined(joined))
        return self.classes(hidden if kept is None else hidden * kept)


def sm_cnn(width: int, draws: Any) -> SmCnn:
    """A network with fresh weights: uniform within ±1/sqrt(fan in), biases too, as PyTorch 0.1.12 drew them.

    draws: a numpy Generator. Numbers drawn there are the same on every device, processor and release of torch.
    """
    network: SmCnn = built_empty(lambda: SmCnn(width))
    for layer in (network.question, network.answer, network.joined, network.classes):
        limit = 1.0 / math.sqrt(math.prod(layer.weight.shape[1:]))
        for tensor in (layer.weight, layer.bias):
            values = draws.uniform(-limit, limit, tuple(tensor.shape)).astype("float32")
            tensor.data.copy_(torch.from_numpy(values))
    return network


def _pooled(convolution: Any, vectors: Any, lengths: Any) -> Any:
    """The greatest value of each map over the windows that touch the sentence, then tanh, which keeps their order."""
    maps = convolution(vectors)
    windows = torch.arange(maps.shape[2], device=maps.device)
    beyond = windows[None, :] >= (lengths + FILTER_WIDTH - 1)[:, None]
    penalty = torch.zeros(beyond.shape, dtype=maps.dtype, device=maps.device).masked_fill_(beyond, _LOWEST)
    return torch.tanh((maps + penalty[:, None, :]).max(dim=2).values)
