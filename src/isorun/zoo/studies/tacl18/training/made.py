"""Small answer selection data made on the spot, for trying things out: learnable, and not by overlap alone.

A question asks who, where or when about a topic; its answer names the topic together with a person, a place or a date.
Other candidates name the topic with the wrong kind of word, or another topic with the right one.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import numpy as np

from isorun.zoo.data.questions.answers import AnswerData, AnswerPair, AnswerSplit
from isorun.zoo.data.questions.word_vectors import WIDTH, WordVectors
from isorun.zoo.studies.tacl18.training.randomness import generator

__all__ = ["made_answers", "made_vectors"]

_KINDS: Final = {"who": "person", "where": "place", "when": "date"}
_QUESTIONS: Final = {"train": 150, "dev": 30, "test": 30}
_CANDIDATES: Final = 6
_WRONG_KIND: Final = 0.2
_FILLERS: Final = tuple(f"filler{number}" for number in range(40))


def made_answers(seed: int = 0) -> AnswerData:
    """150 training questions, 30 for development and 30 for tests, each with one answer among six candidates."""
    draws = generator(seed, "made answers")
    splits = {name: AnswerSplit(name, tuple(_pairs(name, count, draws))) for name, count in _QUESTIONS.items()}
    return AnswerData("made", splits["train"], splits["dev"], splits["test"])


def made_vectors(words: Collection[str], seed: int = 0) -> WordVectors:
    """Vectors in which persons, places and dates are alike among themselves; words with an odd topic have none."""
    known = sorted(word for word in words if not (word.startswith("topic") and int(word[5:]) % 2))
    centres = {kind: generator(seed, kind).normal(0, 1, WIDTH) for kind in _KINDS.values()}
    rows = [
        centres.get(word.rstrip("0123456789"), np.zeros(WIDTH)) + generator(seed, word).normal(0, 0.3, WIDTH)
        for word in known
    ]
    matrix = np.array(rows, dtype=np.float32).reshape(len(known), WIDTH)
    return WordVectors("made", {word: row for row, word in enumerate(known)}, matrix)


def _pairs(split: str, count: int, draws: Any) -> list[AnswerPair]:
    pairs = []
    for number in range(count):
        asked = str(draws.choice(list(_KINDS)))
        topic = int(draws.integers(0, 200))
        question = (asked, "is", f"topic{topic}", "?")
        place = int(draws.integers(0, _CANDIDATES))
        for candidate in range(_CANDIDATES):
            answer = _candidate(asked, topic, candidate == place, draws)
            pairs.append(AnswerPair(f"{split}{number}", str(candidate), int(candidate == place), question, answer))
    return pairs


def _candidate(asked: str, topic: int, answers: bool, draws: Any) -> tuple[str, ...]:
    """The answer, or a sentence that has only the topic, or only the kind of word, that was asked for."""
    kind = _KINDS[asked]
    if not answers:
        if draws.random() < _WRONG_KIND:
            kind = str(draws.choice([other for other in _KINDS.values() if other != kind]))
        else:
            topic = (topic + int(draws.integers(1, 200))) % 200
    fillers = [str(word) for word in draws.choice(_FILLERS, int(draws.integers(2, 10)))]
    words = [f"topic{topic}", f"{kind}{draws.integers(0, 30)}", *fillers]
    return tuple(words[row] for row in draws.permutation(len(words)))
