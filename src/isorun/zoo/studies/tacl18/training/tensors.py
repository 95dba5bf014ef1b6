"""A split as tensors that stay on the device, and its batches as the network takes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

from isorun.zoo.data.questions.answers import AnswerSplit
from isorun.zoo.studies.tacl18.ranking import Judgements, judgements
from isorun.zoo.studies.tacl18.training.batches import EpochPlan
from isorun.zoo.studies.tacl18.vocabulary import Vocabulary, encode

__all__ = ["Batch", "SplitTensors", "batches", "split_tensors"]


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


def batches(split: SplitTensors, plan: EpochPlan, table: Any) -> Iterator[Batch]:
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
