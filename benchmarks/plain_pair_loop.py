"""SM-CNN as an ordinary user trains it: a DataLoader that pads a batch to its longest sentence, five lines a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

from isorun.zoo.generators import hashed_generator
from isorun.zoo.models.sm_cnn import HIDDEN, sm_cnn
from isorun.zoo.studies.tacl18.ranking import effectiveness
from isorun.zoo.studies.tacl18.training.options import Options
from isorun.zoo.studies.tacl18.training.tensors import PairTensors, SplitTensors

__all__ = ["plain_pair_epoch"]

_JUDGED_AT_ONCE: Final = 256


def plain_pair_epoch(material: PairTensors, settings: Options) -> Callable[[], None]:
    """An epoch over the training pairs, then a look at the development and test sets."""
    words = nn.Embedding.from_pretrained(material.table)
    network = sm_cnn(int(material.table.shape[1]), hashed_generator(settings.seed, "weights"))
    optimizer = torch.optim.SGD(
        network.parameters(), lr=settings.rate * settings.batch_size, weight_decay=settings.weight_decay
    )
    loader = DataLoader(
        _pairs(material.train), settings.batch_size, shuffle=settings.order == "shuffled", collate_fn=_padded
    )
    judged = [
        (DataLoader(_pairs(split), _JUDGED_AT_ONCE, collate_fn=_padded), split.judged)
        for split in (material.dev, material.test)
    ]

    def scores(questions: Any, answers: Any, features: Any, kept: Any = None) -> Any:
        sentences = ((words(rows).transpose(1, 2), lengths) for rows, lengths in (questions, answers))
        return network(*sentences, features, kept)

    def epoch() -> None:
        network.train()
        total = 0.0
        for questions, answers, features, labels in loader:
            kept = functional.dropout(torch.ones(len(labels), HIDDEN))
            optimizer.zero_grad()
            loss = functional.cross_entropy(scores(questions, answers, features, kept), labels)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(labels)
        network.eval()
        with torch.no_grad():
            for pairs, judgements in judged:
                found = [scores(*inputs).softmax(dim=1)[:, 1] for *inputs, _ in pairs]
                effectiveness(judgements, torch.cat(found).numpy())

    return epoch


def _pairs(split: SplitTensors) -> list[tuple[Any, Any, Any, int]]:
    """The words of each question and answer without padding, its features and its label."""
    questions, answers = (
        [rows[:length] for rows, length in zip(padded, lengths, strict=True)]
        for padded, lengths in zip((split.question, split.answer), split.lengths, strict=True)
    )
    return list(zip(questions, answers, split.features, split.labels.tolist(), strict=True))


def _padded(samples: Sequence[tuple[Any, Any, Any, int]]) -> tuple[Any, Any, Any, Any]:
    questions, answers, features, labels = zip(*samples, strict=True)
    sentences = [
        (pad_sequence(rows, batch_first=True), torch.tensor([len(words) for words in rows]))
        for rows in (questions, answers)
    ]
    return sentences[0], sentences[1], torch.stack(features), torch.tensor(labels)
