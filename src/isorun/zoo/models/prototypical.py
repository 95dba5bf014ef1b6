"""Prototypical networks (Snell et al. 2017): a query belongs to the class whose mean feature is nearest."""

from __future__ import annotations

from typing import Any

import torch

from isorun.zoo.models.few_shot_learner import FewShotLearner, squared_distances

__all__ = ["PrototypicalNetwork"]


class PrototypicalNetwork(FewShotLearner):
    """Softmax over negative squared Euclidean distances from the class means."""

    def compare(self, support: Any, query: Any) -> Any:
        """Log-probabilities (tasks, ways * queries, ways)."""
        distances = squared_distances(query.flatten(1, 2), support.mean(2))
        return torch.log_softmax(-distances, dim=-1)

    def initialise(self, generator: Any) -> None:
        """Draw the initial weights."""
        self.backbone.initialise(generator)
