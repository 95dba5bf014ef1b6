"""The four overlap features: words shared by question and answer, plain and idf-weighted, with and without stop words.

From Severyn and Moschitti (2015), counted as in the code that the paper used: a word's idf is log(N / (1 + n)) over
the N distinct sentences (questions and answers) of all splits, n of which have the word; a sum over shared words is
divided by the numbers of distinct words of both sentences. Sums go in sorted order, whatever the hash seed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from isorun.zoo.data.questions.answers import AnswerSplit

__all__ = ["FEATURES", "STOP_WORDS", "inverse_frequencies", "overlap_features"]

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
    import numpy as np  # noqa: PLC0415 - only trainings need arrays

    rows = []
    for pair in split.pairs:
        question, answer = set(pair.question), set(pair.answer)
        rows.append((*_overlaps(question, answer, idf), *_overlaps(question - STOP_WORDS, answer - STOP_WORDS, idf)))
    return np.array(rows, dtype=np.float64).reshape(len(rows), FEATURES)


def _overlaps(question: set[str], answer: set[str], idf: Mapping[str, float]) -> tuple[float, float]:
    """Both 0 where nothing but stop words was in the sentences."""
    shared, words = question & answer, len(question) + len(answer)
    return (len(shared) / words, sum(idf[word] for word in sorted(shared)) / words) if words else (0.0, 0.0)
