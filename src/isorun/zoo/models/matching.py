"""Matching networks with full context embeddings (Vinyals et al. 2016): every image is read in view of the others."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final

import torch
from torch import nn
from torch.nn import functional

from isorun.zoo.models.few_shot_learner import FewShotLearner

__all__ = ["MatchingNetwork"]

LSTM_GRADIENT_NORM: Final = 0.25
SMALLEST_PROBABILITY: Final = 1e-8


class MatchingNetwork(FewShotLearner):
    """Labels by attention: the softmax of cosine similarities to the labelled images is summed for each class.

    The labelled images pass a bidirectional LSTM. A query is refined in `steps` steps by an LSTM that attends to them.
    Both add to the plain features.
    """

    def __init__(self, backbone: Any, size: int, steps: int = 3) -> None:
        super().__init__(backbone)
        self.steps = steps
        self.support_reader = nn.LSTM(size, size, batch_first=True, bidirectional=True)
        self.query_reader = nn.LSTMCell(2 * size, size)

    def compare(self, support: Any, query: Any) -> Any:
        """Log-probabilities (tasks, ways * queries, ways)."""
        ways, shots = support.shape[1:3]
        read = self._read_support(support.flatten(1, 2))
        refined = self._read_query(query.flatten(1, 2), read)
        similarity = torch.bmm(
            functional.normalize(refined, dim=-1), functional.normalize(read, dim=-1).transpose(1, 2)
        )
        attention = torch.softmax(similarity, dim=-1).unflatten(-1, (ways, shots))
        return attention.sum(-1).clamp_min(SMALLEST_PROBABILITY).log()

    def clipped(self) -> Iterable[tuple[list[Any], float]]:
        """Both LSTMs, each as a whole."""
        return [(list(part.parameters()), LSTM_GRADIENT_NORM) for part in (self.support_reader, self.query_reader)]

    def initialise(self, generator: Any) -> None:
        """Draw the initial weights; the LSTMs as torch does by default, uniform within ±1 / sqrt(size)."""
        with torch.no_grad():
            self.backbone.initialise(generator)
            limit = 1 / math.sqrt(self.query_reader.hidden_size)
            for part in (self.support_reader, self.query_reader):
                for weight in part.parameters():
                    weight.uniform_(-limit, limit, generator=generator)

    def _read_support(self, features: Any) -> Any:
        both_ways, _ = self.support_reader(features)
        forwards, backwards = both_ways.chunk(2, dim=-1)
        return features + forwards + backwards

    def _read_query(self, features: Any, support: Any) -> Any:
        """Attention starts at the mean of the labelled images."""
        plain = features.flatten(0, 1)
        read = support.mean(1, keepdim=True).expand_as(features)
        hidden = memory = torch.zeros_like(plain)
        for _ in range(self.steps):
            output, memory = self.query_reader(torch.cat([plain, read.flatten(0, 1)], dim=-1), (hidden, memory))
            hidden = output + plain
            focus = torch.softmax(torch.bmm(hidden.view_as(features), support.transpose(1, 2)), dim=-1)
            read = torch.bmm(focus, support)
        return hidden.view_as(features)
