"""Accuracy on episodes of classes that are not trained on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import torch

from isorun.zoo.studies.fewshot.episodes import EpisodeShape
from isorun.zoo.studies.fewshot.training.pictures import Pictures

__all__ = ["Evaluation", "Score", "query_labels"]

IMAGES_AT_ONCE: Final = {"cpu": 500, "cuda": 8_000}


@dataclass(frozen=True, slots=True)
class Score:
    """accuracy: mean over the episodes. half_width: of the 95 % confidence interval of that mean."""

    accuracy: float
    half_width: float


def query_labels(shape: EpisodeShape, tasks: int, device: Any) -> Any:
    """The class of each query (tasks, ways * queries)."""
    return torch.arange(shape.ways, device=device).repeat_interleave(shape.queries).expand(tasks, -1)


class Evaluation:
    """The same episodes every time: rounds differ by what the learner has learnt, not by what it is asked."""

    def __init__(self, pictures: Pictures, episodes: Any, shape: EpisodeShape) -> None:
        self._pictures = pictures
        self._shape = shape
        self._numbers, inverse = torch.unique(episodes, return_inverse=True)
        self._places = inverse.view(episodes.shape)
        self._episodes = episodes
        self._most = IMAGES_AT_ONCE["cuda" if episodes.is_cuda else "cpu"]

    def score(self, learner: Any) -> Score:
        """How many queries the learner gets right."""
        with torch.inference_mode():
            learner.eval()
            log_probabilities = self._from_features(learner) if learner.embeds_alone else self._from_images(learner)
            learner.train()
            right = log_probabilities.argmax(-1) == query_labels(
                self._shape, len(self._episodes), self._episodes.device
            )
            shares = right.double().mean(1)
            spread = shares.std().item() if len(shares) > 1 else 0.0
            return Score(shares.mean().item(), 1.96 * spread / len(shares) ** 0.5)

    def _from_features(self, learner: Any) -> Any:
        """Each image is embedded once, however many episodes it is in."""
        parts = [learner.backbone(self._pictures.take(part)) for part in self._numbers.split(self._most)]
        features = torch.cat(parts)
        tasks = max(1, self._most // (self._shape.ways * self._shape.images))
        return torch.cat([self._compared(learner, features[places]) for places in self._places.split(tasks)])

    def _compared(self, learner: Any, features: Any) -> Any:
        return learner.compare(features[:, :, : self._shape.shots], features[:, :, self._shape.shots :])

    def _from_images(self, learner: Any) -> Any:
        tasks = max(1, self._most // (self._shape.ways * self._shape.images))
        return torch.cat(
            [learner(self._pictures.take(part), self._shape.shots) for part in self._episodes.split(tasks)]
        )
