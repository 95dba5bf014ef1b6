"""Test-set noise against training noise: what would remain of the run-to-run variance on an unlimited test set.

Runs r and test examples e are draws of their own: correct[r, e] = mu + run effect + example effect + rest. The accuracy
of a run on E examples then varies between runs with variance

    V_test = V_run + V_rest / E,

where V_run is the variance of the runs' true accuracies, the one an unlimited test set would show, and V_rest / E comes
from the finite test set (Jordan 2023, "Calibrated chaos", calls the two distribution-wise and test-set variance).

The mean covariance, over pairs of runs, of two *different* examples is an unbiased estimate of V_run, because only the
run effect is common to them. Averaged over all pairs of examples it has a closed form that needs no pairs:

    V_run = (E² s² - sum of the examples' variances between runs) / (E (E - 1)),

with s² the sample variance of the accuracies: the estimate of a two-way analysis of variance. It may be negative, when
the accuracies vary even less than the finite test set makes expect; `remaining_sd` is 0 then.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import chdtri, fdtrc

from isorun.analysis.samples import FloatArray, Interval
from isorun.errors import InputError

__all__ = ["NoiseShares", "correctness", "noise_shares"]


@dataclass(frozen=True, slots=True)
class NoiseShares:
    """Where the run-to-run variance of accuracy comes from.

    variance: between runs, on this test set. test_set_variance: the part due to its finite size. run_variance: the
    rest, which an unlimited test set would still show; unbiased, so that it may be negative. run_variance_ci95: with
    the accuracies taken as normal; its lower end is 0 when no remaining variance is shown. p: of "nothing remains".
    test_set_error: the standard error that the finite test set gives to the mean accuracy itself.
    """

    runs: int
    examples: int
    mean: float
    variance: float
    test_set_variance: float
    run_variance: float
    run_variance_ci95: Interval
    p: float | None
    test_set_error: float

    @property
    def remaining_sd(self) -> float:
        """The standard deviation between runs that an unlimited test set would show."""
        return math.sqrt(max(0.0, self.run_variance))

    @property
    def remaining_share(self) -> float | None:
        """The share of the variance that would remain, between 0 and 1; None when nothing varies."""
        return min(1.0, max(0.0, self.run_variance / self.variance)) if self.variance > 0.0 else None

    @property
    def sentence(self) -> str:
        """The finding in one sentence, in points of accuracy."""
        if self.remaining_share is None:
            return f"All {self.runs} runs have the same accuracy on these {self.examples} examples."
        upper = 100 * math.sqrt(self.run_variance_ci95[1])
        return (
            f"Of the {100 * math.sqrt(self.variance):.2f} points of standard deviation between runs, "
            f"{100 * self.remaining_sd:.2f} (95 % interval: up to {upper:.2f}) would remain on an unlimited test "
            f"set: {1 - self.remaining_share:.0%} of the variance comes from testing on {self.examples} examples only."
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "runs": self.runs,
            "examples": self.examples,
            "mean": self.mean,
            "variance": self.variance,
            "test_set_variance": self.test_set_variance,
            "run_variance": self.run_variance,
            "run_variance_ci95": list(self.run_variance_ci95),
            "remaining_sd": self.remaining_sd,
            "remaining_share": self.remaining_share,
            "p": self.p,
            "test_set_error": self.test_set_error,
            "sentence": self.sentence,
        }


def correctness(predictions: npt.ArrayLike, labels: npt.ArrayLike) -> FloatArray:
    """1 where a prediction equals the label. predictions: runs x examples; labels: one for each example."""
    predicted, true = np.asarray(predictions), np.asarray(labels)
    if predicted.ndim != 2 or true.ndim != 1 or predicted.shape[1] != true.size:
        raise InputError(
            "predictions and labels do not fit together",
            found=f"predictions of shape {predicted.shape}, labels of shape {true.shape}",
            allowed="a row of predictions for each run, a label for each column",
        )
    return np.asarray(predicted == true[None, :], dtype=np.float64)


def noise_shares(correct: npt.ArrayLike, confidence: float = 0.95) -> NoiseShares:
    """The shares, from a matrix of 0 and 1 (or scores per example) with a row for each run."""
    matrix = _checked(np.asarray(correct, dtype=np.float64))
    runs, examples = matrix.shape
    accuracies = matrix.mean(axis=1)
    variance = float(_variances(accuracies))
    of_examples = float(_variances(matrix).sum())
    run_variance = (examples**2 * variance - of_examples) / (examples * (examples - 1.0))
    test_set_variance = variance - run_variance
    return NoiseShares(
        runs=runs,
        examples=examples,
        mean=float(accuracies.mean()),
        variance=variance,
        test_set_variance=test_set_variance,
        run_variance=run_variance,
        run_variance_ci95=_interval(variance, test_set_variance, runs - 1, confidence),
        p=_p(variance, test_set_variance, runs, examples),
        test_set_error=float(matrix.mean(axis=0).std(ddof=1)) / math.sqrt(examples),
    )


def _variances(runs: FloatArray) -> FloatArray:
    """Over runs; of values that are all the same exactly 0, which a mean that was rounded does not give."""
    return np.where(np.ptp(runs, axis=0) == 0, 0.0, runs.var(axis=0, ddof=1))


def _checked(matrix: FloatArray) -> FloatArray:
    if matrix.ndim != 2 or min(matrix.shape) < 2:
        raise InputError(
            "test-set noise needs several runs on several examples",
            found=f"an array of shape {matrix.shape}",
            allowed="a row for each run (2 or more), a column for each example (2 or more)",
        )
    missing = int((~np.isfinite(matrix)).sum())
    if missing:
        raise InputError("predictions are missing", found=f"{missing} of {matrix.size} cells are not finite")
    return matrix


def _interval(variance: float, test_set_variance: float, freedom: int, confidence: float) -> Interval:
    """The chi-square interval of the variance between runs, less the test set's part, which is known well."""
    tail = (1.0 - confidence) / 2.0
    ends = [freedom * variance / float(chdtri(freedom, level)) - test_set_variance for level in (tail, 1.0 - tail)]
    return max(0.0, ends[0]), max(0.0, ends[1])


def _p(variance: float, test_set_variance: float, runs: int, examples: int) -> float | None:
    if test_set_variance <= 0.0:
        return None
    return float(fdtrc(runs - 1, (runs - 1) * (examples - 1), variance / test_set_variance))
