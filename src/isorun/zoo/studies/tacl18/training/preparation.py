"""From records to what the loop takes: words, overlap features and tensors; and the idf sum on the same test pairs."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import torch

from isorun.zoo.data.questions.answers import AnswerData
from isorun.zoo.data.questions.word_vectors import WordVectors
from isorun.zoo.studies.tacl18.idf_baseline import idf_sums
from isorun.zoo.studies.tacl18.overlap import inverse_frequencies, overlap_features
from isorun.zoo.studies.tacl18.ranking import Effectiveness, effectiveness
from isorun.zoo.studies.tacl18.training.loop import Material
from isorun.zoo.studies.tacl18.training.randomness import generator
from isorun.zoo.studies.tacl18.training.settings import Settings
from isorun.zoo.studies.tacl18.training.tensors import split_tensors
from isorun.zoo.studies.tacl18.vocabulary import vocabulary

__all__ = ["Prepared", "prepare"]


@dataclass(frozen=True, slots=True)
class Prepared:
    """The material on the device, and what the idf sum reaches on the test set."""

    material: Material
    idf: Effectiveness


def prepare(
    data: AnswerData, load_vectors: Callable[[Collection[str]], WordVectors], settings: Settings, device: Any
) -> Prepared:
    """Everything that is the same in each epoch, computed once."""
    splits = (data.train, data.dev, data.test)
    idf = inverse_frequencies(splits)
    words = vocabulary(data, load_vectors, generator(settings.seed_of("words"), "words"))
    train, dev, test = (split_tensors(split, words, overlap_features(split, idf), device) for split in splits)
    material = Material(train, dev, test, torch.from_numpy(words.vectors).to(device))
    return Prepared(material, effectiveness(test.judged, idf_sums(data.test, idf)))
