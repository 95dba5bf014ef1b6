"""From words to rows of a table of vectors, the paper's way with unknown words included.

Words of the test and development sets that have no vector share one drawn vector; unknown words that only the training
set has get one each. All are uniform within ±0.25.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from isorun.zoo.data.questions.answers import AnswerData, AnswerSplit
from isorun.zoo.data.questions.word_vectors import WordVectors

__all__ = ["LONGEST", "PADDING", "Vocabulary", "encode", "vocabulary", "words_of"]

PADDING: Final = 0
LONGEST: Final = 60
"""Sentences are cut after so many words."""
_LIMIT: Final = 0.25


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """rows: of words in vectors (words x width, float32), whose row 0 is padding. unknown: words without a vector."""

    rows: Mapping[str, int]
    vectors: Any
    unknown: int


def words_of(split: AnswerSplit) -> set[str]:
    """Every word of a split."""
    return {word for pair in split.pairs for sentence in (pair.question, pair.answer) for word in sentence}


def vocabulary(data: AnswerData, load: Callable[[Collection[str]], WordVectors], draws: Any) -> Vocabulary:
    """The table for all three splits. load: the vectors of those words that have one. draws: a numpy Generator."""
    evaluated = words_of(data.test) | words_of(data.dev)
    training = words_of(data.train) - evaluated
    known = load(evaluated | training)
    shared = draws.uniform(-_LIMIT, _LIMIT, known.width)
    own = sorted(word for word in training if word not in known.rows)
    drawn = draws.uniform(-_LIMIT, _LIMIT, (len(own), known.width))
    table = np.vstack((np.zeros((1, known.width)), shared[None, :], drawn, known.matrix)).astype(np.float32)
    rows = {word: 1 for word in evaluated if word not in known.rows}
    unknown = len(rows) + len(own)
    rows |= {word: 2 + number for number, word in enumerate(own)}
    rows |= {word: 2 + len(own) + row for word, row in known.rows.items()}
    return Vocabulary(rows, table, unknown)


def encode(sentences: Sequence[tuple[str, ...]], rows: Mapping[str, int]) -> tuple[Any, Any]:
    """Rows of words (sentences x words of the longest, padded) and lengths, both int64; long sentences are cut."""
    lengths = np.array([min(len(sentence), LONGEST) for sentence in sentences], dtype=np.int64)
    encoded = np.full((len(sentences), int(lengths.max(initial=1))), PADDING, dtype=np.int64)
    for number, sentence in enumerate(sentences):
        encoded[number, : lengths[number]] = [rows[word] for word in sentence[:LONGEST]]
    return encoded, lengths
