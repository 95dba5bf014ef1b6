"""The baseline that learns nothing (the paper's Table 2): the idf of the words that question and answer share, summed.

With the idf of all splits together (TRAIN-ALL), no stop words removed, and ranked as trec_eval does, it gives 0.7014 AP
for TrecQA raw; the paper prints 0.701. Its text speaks of stop words being removed, which gives 0.6719.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from isorun.zoo.data.questions.answers import AnswerSplit

__all__ = ["answer_frequencies", "idf_sums"]


def idf_sums(split: AnswerSplit, idf: Mapping[str, float], without: Collection[str] = ()) -> Any:
    """A score for each pair: the idf of the shared words that are not among `without`, summed."""
    left_out = set(without)
    return np.array([_score(set(pair.question) & set(pair.answer) - left_out, idf) for pair in split.pairs])


def answer_frequencies(split: AnswerSplit) -> dict[str, float]:
    """Another idf that is in use: log(N / n) over the split's own answers, repeated ones counted again."""
    counts = Counter(word for pair in split.pairs for word in set(pair.answer))
    return {word: math.log(len(split.pairs) / count) for word, count in counts.items()}


def _score(shared: set[str], idf: Mapping[str, float]) -> float:
    return sum(idf[word] for word in sorted(shared))
