"""The paper's test inside one condition: a paired Wilcoxon signed rank test over the questions of the test set."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from isorun.analysis.pairwise.rank_tests import wilcoxon_signed_rank
from isorun.errors import IsorunError
from isorun.study.records import Predictions
from isorun.zoo.data.presence import at_hand, require
from isorun.zoo.data.questions.answers import load_answers
from isorun.zoo.studies.tacl18.measured import Condition
from isorun.zoo.studies.tacl18.ranking import Effectiveness, Judgements, effectiveness, judgements

__all__ = ["QuestionTest", "question_note", "question_tests"]

QuestionTest = Mapping[str, float | None]
"""p by metric; None where no question differs."""


def question_tests(found: Sequence[Condition]) -> dict[Condition, QuestionTest]:
    """The p of AP and RR of each condition against the first one of its data set.

    Runs keep the score of every test pair, so this needs the labels only. Left out where the data are not at hand, or
    where a run left no scores.
    """
    tests: dict[Condition, QuestionTest] = {}
    for data in dict.fromkeys(condition.data for condition in found):
        judged = [(item, _effectiveness(item)) for item in found if item.data == data]
        scored = [(item, values) for item, values in judged if values is not None]
        for item, values in scored[1:] if judged and judged[0][1] is not None else ():
            tests[item] = _test(values, scored[0][1])
    return tests


def question_note(tests: Mapping[Condition, QuestionTest]) -> str:
    """One sentence on all of them, empty without any."""
    ps = [p for test in tests.values() for p in test.values() if p is not None]
    if not tests:
        return ""
    if not ps:
        return "No question has another AP or RR than in the first row."
    sure = sum(p < 0.05 for p in ps)
    told = f"{sure} of {len(ps)} tests have p < 0.05" if sure else f"the smallest p of {len(ps)} tests is {min(ps):.2g}"
    return f"Paired Wilcoxon tests over the questions, against the first row, not corrected for their number: {told}."


def _test(values: Effectiveness, first: Effectiveness) -> QuestionTest:
    return {
        "AP": wilcoxon_signed_rank(np.asarray(values.ap - first.ap)).p,
        "RR": wilcoxon_signed_rank(np.asarray(values.rr - first.rr)).p,
    }


def _effectiveness(condition: Condition) -> Effectiveness | None:
    """Of the first of the identical runs."""
    run = condition.runs[0]
    name = run.test_set.partition("-")[0]
    judged = _judgements(run.test_set, require(name)) if name and at_hand(name) else None
    scores = None if run.predictions is None else _unpacked(run.predictions)
    if judged is None or scores is None or scores.shape != judged.label.shape:
        return None
    return effectiveness(judged, scores)


@cache
def _judgements(test_set: str, folder: Path) -> Judgements | None:
    try:
        pairs = load_answers(test_set, "train", folder).test.pairs
    except IsorunError:
        return None
    return judgements([pair.qid for pair in pairs], [pair.label for pair in pairs])


def _unpacked(packed: Predictions) -> Any | None:
    """The scores; None for anything but one float a pair. Never more bytes than the shape tells."""
    if packed.kind != "score" or packed.dtype != "float32" or len(packed.shape) != 1:
        return None
    expected = 4 * packed.shape[0]
    try:
        raw = zlib.decompressobj().decompress(base64.b64decode(packed.data), max(expected, 1))
    except (ValueError, zlib.error):
        return None
    return np.frombuffer(raw, dtype="<f4") if len(raw) == expected else None
