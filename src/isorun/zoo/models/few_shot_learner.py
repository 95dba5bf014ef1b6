"""What the three few-shot learners have in common: images in, log-probabilities of the episode's classes out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

__all__ = ["FewShotLearner", "NamedDropout", "squared_distances"]


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
