"""Rounding: how many digits the noise supports, and which ranks change when results are rounded as published.

Rounding 0.7484 and 0.7486 to three digits makes a difference five times as large as it was; giving a fourth digit that
the next repetition would change is no better (Crane, TACL 2018, section 4.6).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from itertools import combinations
from typing import Any

import numpy.typing as npt
from scipy.special import ndtr

from isorun.analysis.inputs.samples import finite_sample, higher_is_better
from isorun.errors import InputError

__all__ = ["RankChange", "SupportedDigits", "rank_changes", "rounded", "supported_digits"]


@dataclass(frozen=True, slots=True)
class SupportedDigits:
    """decimals: digits after the point that the noise of a mean of n runs supports (negative: tens, hundreds).

    The last digit given is the one in which the standard error begins. repeats: the chance that repeating the whole
    experiment would give the same rounded mean; repeats_with_one_more: the same with one digit more.
    single_run_decimals: the same for the result of one run. decimals are None when nothing varies.
    """

    n: int
    mean: float
    standard_error: float
    decimals: int | None
    single_run_decimals: int | None
    repeats: float
    repeats_with_one_more: float

    @property
    def text(self) -> str:
        """The mean, rounded to what is supported."""
        return str(self.mean) if self.decimals is None else f"{rounded(self.mean, self.decimals):f}"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "n": self.n,
            "mean": self.mean,
            "standard_error": self.standard_error,
            "decimals": self.decimals,
            "single_run_decimals": self.single_run_decimals,
            "repeats": self.repeats,
            "repeats_with_one_more": self.repeats_with_one_more,
            "text": self.text,
        }


def supported_digits(values: npt.ArrayLike) -> SupportedDigits:
    """How many digits of the mean of two or more runs to give."""
    sample = finite_sample(values, "the runs", minimum=2)
    sd = float(sample.std(ddof=1)) if sample.min() < sample.max() else 0.0
    error = sd / math.sqrt(sample.size)
    decimals = _decimals(error)
    return SupportedDigits(
        n=sample.size,
        mean=float(sample.mean()),
        standard_error=error,
        decimals=decimals,
        single_run_decimals=_decimals(sd),
        repeats=1.0 if decimals is None else _same_rounded(error, decimals),
        repeats_with_one_more=1.0 if decimals is None else _same_rounded(error, decimals + 1),
    )


def _decimals(error: float) -> int | None:
    return -math.floor(math.log10(error)) if error > 0.0 else None


def _same_rounded(error: float, decimals: int) -> float:
    """The chance that two normal means round to the same number, averaged over where between two numbers they lie.

    With their difference D normal with variance 2 error² and a unit u this is E max(0, 1 - |D| / u).
    """
    s = math.sqrt(2.0) * error * 10.0**decimals
    within = 2.0 * float(ndtr(1.0 / s)) - 1.0
    return within - s * math.sqrt(2.0 / math.pi) * -math.expm1(-1.0 / (2.0 * s * s))


def rounded(value: float, decimals: int) -> Decimal:
    """The value as people round it: halves away from zero, in decimal notation, where 0.7485 is a half."""
    return Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_HALF_UP)


@dataclass(frozen=True, slots=True)
class RankChange:
    """Two results whose order changed: kind is "tied" (told apart no more), or "reversed" (the worse now leads)."""

    better: str
    worse: str
    kind: str

    def to_json(self) -> dict[str, str]:
        """Plain JSON."""
        return {"better": self.better, "worse": self.worse, "kind": self.kind}


def rank_changes(
    results: Mapping[str, float], decimals: int | Mapping[str, int], *, direction: str = "higher"
) -> tuple[RankChange, ...]:
    """The pairs whose order changes when each result is rounded.

    decimals: one number for all, or each publication's own. With one number for all, rounding can only tie results;
    with different ones it can also turn an order round.
    """
    finite_sample(list(results.values()), "the results")
    places = {name: decimals if isinstance(decimals, int) else _places(decimals, name) for name in results}
    published = {name: rounded(value, places[name]) for name, value in results.items()}
    sign = 1 if higher_is_better(direction) else -1
    changes = []
    for one, other in combinations(results, 2):
        if results[one] == results[other]:
            continue
        ahead = sign * (results[one] - results[other]) > 0
        better, worse = (one, other) if ahead else (other, one)
        lead = sign * (published[better] - published[worse])
        if lead <= 0:
            changes.append(RankChange(better, worse, "tied" if lead == 0 else "reversed"))
    return tuple(changes)


def _places(decimals: Mapping[str, int], name: str) -> int:
    if name not in decimals:
        raise InputError(f"how {name!r} was rounded is not given", allowed="a number of decimals for each result")
    return decimals[name]
