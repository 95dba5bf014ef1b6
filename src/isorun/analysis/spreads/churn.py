"""Churn: on how many examples two runs of one training disagree, and which examples flip most.

Two runs of the same accuracy may err on different examples; whoever uses the model sees the difference (Milani Fard et
al. 2016, "Launch and Iterate: Reducing Prediction Churn"). For an example on which n runs voted, c_k of them for class
k, the share of pairs that disagree is

    1 - sum of c_k (c_k - 1) / (n (n - 1)),

and the churn of a group is its mean over examples: the mean over all pairs of runs of the share of examples on which
they disagree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from isorun.errors import InputError

__all__ = ["Churn", "FlippedExample", "churn"]

_MOST_FLIPPED: Final = 10


@dataclass(frozen=True, slots=True)
class FlippedExample:
    """One example. place: its number in the test set, from 0. votes: class to how many runs predicted it, most first.

    label: its true class; None where labels were not kept. disagreement: the share of pairs of runs that disagree.
    """

    place: int
    label: int | None
    votes: tuple[tuple[int, int], ...]
    disagreement: float

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "example": self.place,
            "label": self.label,
            "votes": [{"class": name, "runs": runs} for name, runs in self.votes],
            "disagreement": self.disagreement,
        }


@dataclass(frozen=True, slots=True)
class Churn:
    """What the runs of a group disagree on.

    mean: the mean over pairs of runs of the share of examples on which they disagree. flipping: how many examples any
    two runs disagree on. wrong_in_turn: of those, how many some run had right and another wrong; None without labels.
    most: the examples that flip most.
    """

    runs: int
    examples: int
    mean: float
    flipping: int
    wrong_in_turn: int | None
    most: tuple[FlippedExample, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "runs": self.runs,
            "examples": self.examples,
            "mean": self.mean,
            "flipping": self.flipping,
            "wrong_in_turn": self.wrong_in_turn,
            "most": [example.to_json() for example in self.most],
        }


def churn(predicted: npt.ArrayLike, labels: npt.ArrayLike | None = None) -> Churn:
    """The churn of predicted classes, a row a run and a column an example. labels: the true classes, a column each."""
    votes = np.asarray(predicted)
    if votes.ndim != 2 or votes.shape[0] < 2 or votes.shape[1] < 1:
        raise InputError(
            "churn is between runs", found=f"shape {votes.shape}", allowed="at least 2 runs x 1 example of classes"
        )
    truth = None if labels is None else np.asarray(labels)
    if truth is not None and truth.shape != votes.shape[1:]:
        raise InputError("labels do not fit", found=f"{truth.size}", allowed=f"{votes.shape[1]}, one an example")
    runs, examples = votes.shape
    disagreement = _disagreement(votes)
    right = None if truth is None else (votes == truth).sum(axis=0)
    order = np.argsort(-disagreement, kind="stable")[:_MOST_FLIPPED]
    return Churn(
        runs=runs,
        examples=examples,
        mean=float(disagreement.mean()),
        flipping=int((disagreement > 0).sum()),
        wrong_in_turn=None if right is None else int(((right > 0) & (right < runs)).sum()),
        most=tuple(_flipped(votes, truth, disagreement, int(place)) for place in order if disagreement[place] > 0),
    )


def _disagreement(votes: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """The share of pairs of runs that disagree, an example each. Sorted, equal votes stand beside each other."""
    runs = votes.shape[0]
    ordered = np.sort(votes, axis=0)
    agreeing = np.zeros(votes.shape[1])
    alike = np.ones(votes.shape[1])
    for row in range(1, runs):
        same = ordered[row] == ordered[row - 1]
        agreeing += np.where(same, alike, 0.0)  # the k-th equal vote agrees with k - 1 before it
        alike = np.where(same, alike + 1.0, 1.0)
    agreed: npt.NDArray[np.float64] = agreeing / (0.5 * runs * (runs - 1))
    return 1.0 - agreed


def _flipped(
    votes: npt.NDArray[Any], truth: npt.NDArray[Any] | None, disagreement: npt.NDArray[np.float64], place: int
) -> FlippedExample:
    names, counts = np.unique(votes[:, place], return_counts=True)
    counted = sorted(zip(names.tolist(), counts.tolist(), strict=True), key=lambda vote: (-vote[1], vote[0]))
    return FlippedExample(
        place, None if truth is None else int(truth[place]), tuple(counted), float(disagreement[place])
    )
