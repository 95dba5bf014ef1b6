"""The splits as tensors that stay on the device, and their batches as the network takes them.

The pairs of a batch are shuffled, yet of similar length, so that little of a batch is padding.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from torch.nn import functional

from isorun.zoo.data.answers import AnswerData, AnswerSplit
from isorun.zoo.data.word_vectors import WordVectors
from isorun.zoo.generators import hashed_generator
from isorun.zoo.studies.tacl18.ranking import Effectiveness, Judgements, effectiveness, judgements
from isorun.zoo.studies.tacl18.training.options import Options
from isorun.zoo.studies.tacl18.training.words import (
    Vocabulary,
    encode,
    idf_sums,
    inverse_frequencies,
    overlap_features,
    vocabulary,
)

__all__ = [
    "Batch",
    "EpochOrder",
    "PairTensors",
    "PreparedPairs",
    "Slice",
    "SplitTensors",
    "batches",
    "plan_epoch",
    "plan_evaluation",
    "prepare",
    "split_tensors",
]

_POOL: Final = 16
_EVALUATION_BATCH: Final = 256


@dataclass(frozen=True, slots=True)
class Slice:
    """A batch: positions start to stop of the plan's order, and the longest question and answer among them."""

    start: int
    stop: int
    question: int
    answer: int


@dataclass(frozen=True, slots=True)
class EpochOrder:
    """order: pair numbers, those of a batch side by side (int64)."""

    order: Any
    slices: tuple[Slice, ...]


def plan_epoch(draws: Any, question: Any, answer: Any, batch_size: int, order: str) -> EpochOrder:
    """An epoch over all pairs. question, answer: their lengths. order: "file", or "shuffled" by the generator.

    Shuffled pairs are taken in pools of 16 batches, each pool sorted by length, and the batches shuffled again.
    """
    count = len(answer)
    if order == "file":
        return _cut(np.arange(count), question, answer, batch_size)
    shuffled = draws.permutation(count)
    pools = [shuffled[start : start + _POOL * batch_size] for start in range(0, count, _POOL * batch_size)]
    pooled = np.concatenate([pool[np.argsort(answer[pool], kind="stable")] for pool in pools])
    batches = [pooled[start : start + batch_size] for start in range(0, count, batch_size)]
    whole, rest = batches[: count // batch_size], batches[count // batch_size :]
    places = draws.permutation(len(whole))
    return _cut(np.concatenate([*(whole[place] for place in places), *rest]), question, answer, batch_size)


def plan_evaluation(question: Any, answer: Any) -> EpochOrder:
    """All pairs once, by length."""
    return _cut(np.argsort(answer, kind="stable"), question, answer, _EVALUATION_BATCH)


def _cut(order: Any, question: Any, answer: Any, batch_size: int) -> EpochOrder:
    slices = []
    for start in range(0, len(order), batch_size):
        chosen = order[start : start + batch_size]
        stop = start + len(chosen)
        slices.append(Slice(start, stop, max(1, int(question[chosen].max())), max(1, int(answer[chosen].max()))))
    return EpochOrder(order, tuple(slices))


@dataclass(frozen=True, slots=True)
class SplitTensors:
    """On the device: rows of words, lengths, features, labels. On the CPU: both lengths (numpy) and the judgements."""

    question: Any
    question_lengths: Any
    answer: Any
    answer_lengths: Any
    features: Any
    labels: Any
    lengths: tuple[Any, Any]
    judged: Judgements

    @property
    def pairs(self) -> int:
        """How many there are."""
        return int(self.labels.shape[0])


@dataclass(frozen=True, slots=True)
class Batch:
    """What the network takes, the labels, and the positions in the plan's order."""

    question: tuple[Any, Any]
    answer: tuple[Any, Any]
    features: Any
    labels: Any
    positions: slice


def split_tensors(split: AnswerSplit, words: Vocabulary, features: Any, device: Any) -> SplitTensors:
    """The split on the device; the only copy of it that is made."""
    question, question_lengths = encode([pair.question for pair in split.pairs], words.rows)
    answer, answer_lengths = encode([pair.answer for pair in split.pairs], words.rows)
    labels = [pair.label for pair in split.pairs]
    return SplitTensors(
        question=torch.from_numpy(question).to(device),
        question_lengths=torch.from_numpy(question_lengths).to(device),
        answer=torch.from_numpy(answer).to(device),
        answer_lengths=torch.from_numpy(answer_lengths).to(device),
        features=torch.from_numpy(features.astype("float32")).to(device),
        labels=torch.tensor(labels, device=device),
        lengths=(question_lengths, answer_lengths),
        judged=judgements([pair.qid for pair in split.pairs], labels),
    )


def batches(split: SplitTensors, plan: EpochOrder, table: Any) -> Iterator[Batch]:
    """The plan's batches. Pairs are put in order once an epoch; a batch is then a few views and two look-ups.

    table: the word vectors on the device.
    """
    order = torch.from_numpy(plan.order).to(table.device)
    question, answer, features = split.question[order], split.answer[order], split.features[order]
    lengths, labels = (split.question_lengths[order], split.answer_lengths[order]), split.labels[order]
    for part in plan.slices:
        here = slice(part.start, part.stop)
        yield Batch(
            (_vectors(question[here, : part.question], table), lengths[0][here]),
            (_vectors(answer[here, : part.answer], table), lengths[1][here]),
            features[here],
            labels[here],
            here,
        )


def _vectors(rows: Any, table: Any) -> Any:
    """Batch x width x words."""
    return functional.embedding(rows, table).transpose(1, 2).contiguous()


@dataclass(frozen=True, slots=True)
class PairTensors:
    """What is trained on: three splits and the table of word vectors, all on one device."""

    train: SplitTensors
    dev: SplitTensors
    test: SplitTensors
    table: Any


@dataclass(frozen=True, slots=True)
class PreparedPairs:
    """The material on the device, and what the idf sum reaches on the test set."""

    material: PairTensors
    idf: Effectiveness


def prepare(
    data: AnswerData, load_vectors: Callable[[Collection[str]], WordVectors], options: Options, device: Any
) -> PreparedPairs:
    """Everything that is the same in each epoch, computed once."""
    splits = (data.train, data.dev, data.test)
    idf = inverse_frequencies(splits)
    words = vocabulary(data, load_vectors, hashed_generator(options.seed_of("words"), "words"))
    train, dev, test = (split_tensors(split, words, overlap_features(split, idf), device) for split in splits)
    material = PairTensors(train, dev, test, torch.from_numpy(words.vectors).to(device))
    return PreparedPairs(material, effectiveness(test.judged, idf_sums(data.test, idf)))
