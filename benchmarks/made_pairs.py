"""Question and answer pairs as long as TrecQA's, of words without meaning."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import numpy as np

from isorun.zoo.data.answers import AnswerData, AnswerPair, AnswerSplit
from isorun.zoo.data.word_vectors import WIDTH, WordVectors

__all__ = ["drawn_pairs", "drawn_vectors"]

_WORDS: Final = 12_000
_CANDIDATES: Final = 16
_EVALUATED_SHARE: Final = 8
# Mean and deviation of the logarithm, least and most: of the training set of TrecQA, and of TRAIN-ALL, a little more.
_QUESTION: Final = (2.2, 0.33, 4, 33)
_ANSWER: Final = (3.2, 0.45, 1, 60)


def drawn_pairs(train: int) -> AnswerData:
    """So many pairs to learn from, and an eighth of them each for development and tests."""
    draws = np.random.default_rng(0)
    sizes = {"train": train, "dev": train // _EVALUATED_SHARE, "test": train // _EVALUATED_SHARE}
    splits = {name: AnswerSplit(name, tuple(_pairs(draws, name, size))) for name, size in sizes.items()}
    return AnswerData("made", splits["train"], splits["dev"], splits["test"])


def drawn_vectors(words: Collection[str]) -> WordVectors:
    """A vector for every word."""
    matrix = np.random.default_rng(1).normal(0, 0.4, (len(words), WIDTH)).astype(np.float32)
    return WordVectors("made", {word: row for row, word in enumerate(sorted(words))}, matrix)


def _pairs(draws: np.random.Generator, split: str, count: int) -> list[AnswerPair]:
    pairs: list[AnswerPair] = []
    for number in range(count):
        question = pairs[-1].question if number % _CANDIDATES else _sentence(draws, *_QUESTION)
        qid, label = f"{split}-{number // _CANDIDATES}", int(draws.random() < 1 / 5)
        pairs.append(AnswerPair(qid, str(number), label, question, _sentence(draws, *_ANSWER)))
    return pairs


def _sentence(draws: np.random.Generator, mean: float, deviation: float, least: int, most: int) -> tuple[str, ...]:
    length = int(np.clip(draws.lognormal(mean, deviation), least, most))
    return tuple(f"word{number}" for number in draws.integers(0, _WORDS, length))
