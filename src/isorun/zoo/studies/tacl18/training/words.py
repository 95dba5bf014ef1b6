"""What is made of the words of a pair: overlap features, rows of vectors, and the sum that learns nothing.

Four overlap features: words shared by question and answer, plain and idf-weighted, with and without stop words.
From Severyn and Moschitti (2015), counted as in the code that the paper used: a word's idf is log(N / (1 + n)) over
the N distinct sentences (questions and answers) of all splits, n of which have the word; a sum over shared words is
divided by the numbers of distinct words of both sentences. Sums go in sorted order, whatever the hash seed.

Words of the test and development sets that have no vector share one drawn vector; unknown words that only the training
set has get one each. All are uniform within ±0.25.

The baseline that learns nothing (the paper's Table 2) is the idf of the words that question and answer share, summed.
With the idf of all splits together (TRAIN-ALL), no stop words removed, and ranked as trec_eval does, it gives 0.7014 AP
for TrecQA raw; the paper prints 0.701. Its text speaks of stop words being removed, which gives 0.6719.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from isorun.zoo.data.answers import AnswerData, AnswerSplit
from isorun.zoo.data.word_vectors import WordVectors

__all__ = [
    "FEATURES",
    "LONGEST",
    "PADDING",
    "STOP_WORDS",
    "Vocabulary",
    "encode",
    "idf_sums",
    "inverse_frequencies",
    "overlap_features",
    "vocabulary",
    "words_of",
]

FEATURES: Final = 4
_STOP_WORDS_TEXT: Final = """
    i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers
    herself it its itself they them their theirs themselves what which who whom this that these those am is are
    was were be been being have has had having do does did doing a an the and but if or because as until while
    of at by for with about against between into through during before after above below to from up down in out
    on off over under again further then once here there when where why how all any both each few more most
    other some such no nor not only own same so than too very s t can will just don should now
"""
STOP_WORDS: Final = frozenset(_STOP_WORDS_TEXT.split())
"""The 127 English stop words of NLTK at the time of the paper."""


def inverse_frequencies(splits: Iterable[AnswerSplit]) -> dict[str, float]:
    """The idf of every word over the distinct sentences of the splits."""
    sentences = {sentence for split in splits for pair in split.pairs for sentence in (pair.question, pair.answer)}
    counts = Counter(word for sentence in sentences for word in set(sentence))
    return {word: math.log(len(sentences) / (1 + count)) for word, count in counts.items()}


def overlap_features(split: AnswerSplit, idf: Mapping[str, float]) -> Any:
    """Pairs x 4: overlap, idf overlap, and both again without stop words (float64)."""
    rows = []
    for pair in split.pairs:
        question, answer = set(pair.question), set(pair.answer)
        rows.append((*_overlaps(question, answer, idf), *_overlaps(question - STOP_WORDS, answer - STOP_WORDS, idf)))
    return np.array(rows, dtype=np.float64).reshape(len(rows), FEATURES)


def _overlaps(question: set[str], answer: set[str], idf: Mapping[str, float]) -> tuple[float, float]:
    """Both 0 where nothing but stop words was in the sentences."""
    shared, words = question & answer, len(question) + len(answer)
    return (len(shared) / words, sum(idf[word] for word in sorted(shared)) / words) if words else (0.0, 0.0)


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


def idf_sums(split: AnswerSplit, idf: Mapping[str, float], without: Collection[str] = ()) -> Any:
    """A score for each pair: the idf of the shared words that are not among `without`, summed."""
    left_out = set(without)
    return np.array([_score(set(pair.question) & set(pair.answer) - left_out, idf) for pair in split.pairs])


def _score(shared: set[str], idf: Mapping[str, float]) -> float:
    return sum(idf[word] for word in sorted(shared))
