"""Few-shot learners: images in, log-probabilities of the episode's classes out.

Conv-4 is four blocks of 3x3 convolution, batch normalisation, ReLU and 2x2 max pooling (Vinyals et al. 2016). For
prototypical networks (Snell et al. 2017) a query belongs to the class whose mean feature is nearest. In matching
networks with full context embeddings (Vinyals et al. 2016) every image is read in view of the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final

import torch
from torch import nn
from torch.nn import functional

from isorun.zoo.models.initialisation import reset_batch_norm

__all__ = ["Conv4", "FewShotLearner", "MatchingNetwork", "NamedDropout", "PrototypicalNetwork", "squared_distances"]


class NamedDropout(nn.Module):  # type: ignore[misc]  # torch carries no types here
    """Dropout that draws from the generator it is given, where torch's own draws from the global one."""

    def __init__(self, share: float, generator: Any = None) -> None:
        super().__init__()
        self.share = share
        self.generator = generator

    def forward(self, features: Any) -> Any:
        """Some features set to zero and the others enlarged, in training."""
        if not self.training or self.share == 0:
            return features
        kept = torch.empty_like(features).bernoulli_(1 - self.share, generator=self.generator)
        return features * kept / (1 - self.share)


class FewShotLearner(nn.Module):  # type: ignore[misc]  # torch carries no types here
    """A backbone that turns images into features, and a rule that compares queries with the labelled images.

    Subclasses give `compare`. embeds_alone: an image's features do not depend on its episode, so that an evaluation
    may compute them once for all episodes.
    """

    embeds_alone = True

    def __init__(self, backbone: Any) -> None:
        super().__init__()
        self.backbone = backbone

    def compare(self, support: Any, query: Any) -> Any:
        """Log-probabilities (tasks, ways * queries, ways) from features (tasks, ways, shots or queries, size)."""
        raise NotImplementedError

    def forward(self, images: Any, shots: int) -> Any:
        """Log-probabilities for images (tasks, ways, shots + queries, channels, height, width), labelled ones first.

        Labelled images and queries go through the network as one batch, as batch normalisation expects.
        """
        features = self.backbone(images.flatten(0, 2)).unflatten(0, images.shape[:3])
        return self.compare(features[:, :, :shots], features[:, :, shots:])

    def episode_parameters(self) -> list[Any]:
        """What episodes train."""
        return list(self.parameters())

    def clipped(self) -> Iterable[tuple[list[Any], float]]:
        """Sets of parameters whose gradient is cut to a norm before each step, and the norm."""
        return ()

    def penalties(self) -> Iterable[tuple[list[Any], float]]:
        """Parameters with an L2 penalty of their own, and its weight."""
        return ()


def squared_distances(query: Any, prototypes: Any) -> Any:
    """Squared Euclidean distances (tasks, n, ways) of queries (tasks, n, size) from prototypes (tasks, ways, size)."""
    cross = torch.bmm(query, prototypes.transpose(1, 2))
    return query.square().sum(-1, keepdim=True) - 2 * cross + prototypes.square().sum(-1).unsqueeze(1)


BLOCKS = 4


class Conv4(nn.Module):  # type: ignore[misc]  # torch carries no types here
    """Features of size width * (side // 16)²: 64 for Omniglot, 1,600 for miniImageNet."""

    def __init__(self, channels: int, width: int = 64, dropout: NamedDropout | None = None) -> None:
        super().__init__()
        self.dropout = dropout or NamedDropout(0.0)
        inputs = (channels, *[width] * (BLOCKS - 1))
        self.convolutions = nn.ModuleList(nn.Conv2d(before, width, 3, padding=1) for before in inputs)
        self.norms = nn.ModuleList(nn.BatchNorm2d(width) for _ in inputs)

    def forward(self, images: Any) -> Any:
        """Features (n, size) of images (n, channels, side, side)."""
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            # max pooling before ReLU gives the same values and has a quarter of them to cut off
            images = self.dropout(torch.relu(nn.functional.max_pool2d(norm(convolution(images)), 2)))
        return images.flatten(1)

    def initialise(self, generator: Any) -> None:
        """As torch does by default: uniform within ±1 / sqrt(fan in), for weights and biases."""
        with torch.no_grad():
            for convolution, norm in zip(self.convolutions, self.norms, strict=True):
                limit = 1 / math.sqrt(convolution.weight[0].numel())
                convolution.weight.uniform_(-limit, limit, generator=generator)
                convolution.bias.uniform_(-limit, limit, generator=generator)
                reset_batch_norm(norm)


class PrototypicalNetwork(FewShotLearner):
    """Softmax over negative squared Euclidean distances from the class means."""

    def compare(self, support: Any, query: Any) -> Any:
        """Log-probabilities (tasks, ways * queries, ways)."""
        distances = squared_distances(query.flatten(1, 2), support.mean(2))
        return torch.log_softmax(-distances, dim=-1)

    def initialise(self, generator: Any) -> None:
        """Draw the initial weights."""
        self.backbone.initialise(generator)


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
