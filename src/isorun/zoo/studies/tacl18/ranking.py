"""Average precision and reciprocal rank, exactly as trec_eval counts them.

trec_eval keeps scores in single precision and sorts each question's answers by score, highest first; equal scores go by
document number, compared as strings, highest first. The paper's scripts number the pairs of a split 0, 1, 2, … through
the whole file, so that is the default here. Every question of the judgements counts, one without a positive as 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from isorun.errors import InputError, known_names

__all__ = ["TIES", "Effectiveness", "Judgements", "effectiveness", "judgements"]

TIES: Final = ("trec_eval", "file")


@dataclass(frozen=True, slots=True)
class Judgements:
    """Pairs in the order of the file. question: index into qids. tie_rank: lowest for the first among equals."""

    qids: tuple[str, ...]
    question: Any
    label: Any
    tie_rank: Any


@dataclass(frozen=True, slots=True)
class Effectiveness:
    """The means over all questions, and the values of each question in the order of `Judgements.qids`."""

    mean_ap: float
    mean_rr: float
    ap: Any
    rr: Any


def judgements(
    qids: Sequence[str], labels: Sequence[int], docnos: Sequence[str] | None = None, ties: str = "trec_eval"
) -> Judgements:
    """What scores are judged by. docnos: document numbers, counted through the file when None.

    ties: "trec_eval", or "file" for equal scores in the order of the file. That order is kind to systems with many
    ties where a data set lists its positives first, and is here to reproduce numbers that were counted so.
    """
    if ties not in TIES:
        raise InputError(f"there is no order of ties {ties!r}", allowed=known_names(ties, TIES))
    names = tuple(dict.fromkeys(qids))
    index = {qid: row for row, qid in enumerate(names)}
    numbers = [str(row) for row in range(len(qids))] if docnos is None else list(docnos)
    if not len(qids) == len(labels) == len(numbers):
        lengths = f"{len(qids)} questions, {len(labels)} labels, {len(numbers)} document numbers"
        raise InputError("judgements do not belong together", found=lengths, allowed="equally many")
    rank = np.arange(len(qids))
    if ties == "trec_eval":
        rank[sorted(range(len(qids)), key=lambda row: numbers[row].encode(), reverse=True)] = np.arange(len(qids))
    return Judgements(names, np.array([index[qid] for qid in qids]), np.asarray(labels, dtype=np.int64), rank)


def effectiveness(judged: Judgements, scores: Any) -> Effectiveness:
    """AP and RR of the ranking that the scores make. A score that is not a number ranks last."""
    values = np.asarray(scores, dtype=np.float32)
    if values.shape != judged.label.shape:
        raise InputError("scores do not fit the judgements", found=str(values.shape), allowed=str(judged.label.shape))
    values = np.where(np.isnan(values), np.float32(-np.inf), values)
    order = np.lexsort((judged.tie_rank, -values, judged.question))
    question, relevant = judged.question[order], judged.label[order]
    count = len(judged.qids)
    starts = np.searchsorted(question, np.arange(count))
    rank = np.arange(1, len(order) + 1) - starts[question]
    hits = np.cumsum(relevant)
    hits -= (hits[starts] - relevant[starts])[question]
    positives = np.bincount(question, relevant, count)
    precision = np.bincount(question, relevant * hits / rank, count)
    ap = np.divide(precision, positives, out=np.zeros(count), where=positives > 0)
    rr = np.zeros(count)
    first = (relevant == 1) & (hits == 1)
    rr[question[first]] = 1.0 / rank[first]
    return Effectiveness(float(ap.mean()), float(rr.mean()), ap, rr)
