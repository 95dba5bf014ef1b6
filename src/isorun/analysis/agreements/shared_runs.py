"""Agreement out of a table, and how many digits the noise supports.

Rounding: how many digits the noise supports, and which ranks change when results are rounded as published.

Rounding 0.7484 and 0.7486 to three digits makes a difference five times as large as it was; giving a fourth digit that
the next repetition would change is no better (Crane, TACL 2018, section 4.6).

Agreement out of a table: the same seeds on several devices or environments, or several metrics of the same runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Context, Decimal
from itertools import combinations
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from isorun.analysis import Told
from isorun.analysis.agreements.agreement import Agreement, agreement
from isorun.analysis.evidence import Condition, not_finite, noted, some
from isorun.analysis.evidence.units import Counting, Units, units_of
from isorun.analysis.measurements import Measurements
from isorun.analysis.samples import Pairs, finite_sample, higher_is_better, mean_of
from isorun.errors import InputError, known_names

__all__ = [
    "AgreementTable",
    "RankChange",
    "SharedRuns",
    "SupportedDigits",
    "agreement_table",
    "metrics_of",
    "rank_changes",
    "rounded",
    "sides_of",
    "supported_digits",
]

_MOST_DECIMALS: Final = 300
_EXACT: Final = Context(prec=1_000)
"""Room for every digit of a float before the point and those decimals after it; the usual 28 digits are too few."""


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
        mean=mean_of(sample),
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
    return Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP, _EXACT)


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


Runs = Mapping[str, float]
"""What a run belongs to (its seed) and its result."""


@dataclass(frozen=True, slots=True)
class SharedRuns:
    """The runs that two sides share: their labels, their values, and how far they agree in order."""

    labels: tuple[str, ...]
    pairs: Pairs
    agreement: Agreement

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        changed = self.pairs.second - self.pairs.first
        return {
            **self.agreement.to_json(),
            "mean_change": float(changed.mean()),
            "changed": int(np.count_nonzero(changed)),
            "unmatched": list(self.pairs.unmatched),
        }


@dataclass(frozen=True, slots=True)
class AgreementTable(Told):
    """Every pair of sides over the runs they share, and how the sides' means may be written.

    decimals: digits after the point that the means are rounded to; rank_changes: whose order that hides or turns
    round. Both are empty for different metrics, which have no order among each other.
    """

    told_as: ClassVar[str] = "agreement"

    sides: Mapping[str, Units]
    digits: Mapping[str, SupportedDigits]
    pairs: tuple[SharedRuns, ...]
    decimals: int | None = None
    rank_changes: tuple[RankChange, ...] = ()
    notes: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()

    @property
    def all_conditions(self) -> tuple[Condition, ...]:
        """What weakens the evidence, what was noticed in the data, and who had no partner."""
        unmatched = (shared for shared in self.pairs if shared.pairs.unmatched)
        return (*self.conditions, *noted(self.notes), *map(_unmatched, unmatched))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON with the documented keys."""
        return {
            "sides": [
                {"name": name, **digits.to_json(), "n": self.sides[name].runs.size, "units": self.sides[name].count}
                for name, digits in self.digits.items()
            ],
            "unit": next(iter(self.sides.values())).noun,
            "agreements": [shared.to_json() for shared in self.pairs],
            "decimals": self.decimals,
            "rank_changes": [change.to_json() for change in self.rank_changes],
            "notes": list(self.notes),
            "warnings": [condition.to_json() for condition in self.conditions],
        }


def _unmatched(shared: SharedRuns) -> Condition:
    sides = f"{shared.agreement.a} and {shared.agreement.b}"
    left = shared.pairs.unmatched
    message = f"{some(len(left), 'run')} of {sides} without a partner, left out"
    return Condition("unmatched", message, "see the data", left[:5])


def agreement_table(
    sides: Mapping[str, Units],
    *,
    direction: str = "higher",
    decimals: int | None = None,
    comparable: bool = True,
    notes: tuple[str, ...] = (),
    conditions: tuple[Condition, ...] = (),
) -> AgreementTable:
    """The agreement of every two sides.

    decimals: as published; by default as many as the noise of every mean supports. comparable: whether the sides are
    one metric, so that their means have an order.
    """
    if decimals is not None and abs(decimals) > _MOST_DECIMALS:
        allowed = f"-{_MOST_DECIMALS} to {_MOST_DECIMALS}; negative: tens, hundreds"
        raise InputError("no mean is published to so many decimals", found=f"{decimals}", allowed=allowed)
    if len(sides) < 2:
        raise InputError("agreement needs two sides or more", found=", ".join(map(repr, sides)) or "none")
    digits = {name: supported_digits(units.values) for name, units in sides.items()}
    labelled = {name: dict(zip(units.labels, units.values.tolist(), strict=True)) for name, units in sides.items()}
    shared = tuple(_shared(a, first, b, second) for (a, first), (b, second) in combinations(labelled.items(), 2))
    if not comparable:
        return AgreementTable(sides, digits, shared, notes=notes, conditions=conditions)
    supported = [one.decimals for one in digits.values() if one.decimals is not None]
    places = decimals if decimals is not None else min(supported, default=None)
    means = {name: one.mean for name, one in digits.items()}
    changes = () if places is None else rank_changes(means, places, direction=direction)
    return AgreementTable(sides, digits, shared, places, changes, notes, conditions)


def _shared(a: str, first: Runs, b: str, second: Runs) -> SharedRuns:
    labels = tuple(sorted(first.keys() & second.keys()))
    if len(labels) < 3:
        raise InputError(f"{a!r} and {b!r} share too few runs", found=f"{len(labels)}", allowed="3 or more")
    x, y = (np.array([runs[label] for label in labels]) for runs in (first, second))
    pairs = Pairs(x, y, tuple(sorted(first.keys() ^ second.keys())))
    return SharedRuns(labels, pairs, agreement(x, y, a=a, b=b))


def sides_of(
    table: Measurements, value: str, by: str, pair: str, *, only: Sequence[str] = (), drop_missing: bool = False
) -> tuple[dict[str, Units], tuple[str, ...]]:
    """The results of each label in `by`, a unit for each label in `pair`; and notes on what was left out."""
    groups = {group.name: group.values for group in table.groups(value, (by,), drop_missing=drop_missing)}
    for name in only:
        if name not in groups:
            raise InputError(f"no run belongs to {name!r}", allowed=known_names(name, groups))
    chosen = {name: groups[name] for name in only or groups}
    counting = Counting(pair, pair, asked=True)
    sides = {name: units_of(table, values, counting) for name, values in chosen.items()}
    return sides, _dropped(sum(values.dropped for values in chosen.values()))


def metrics_of(
    table: Measurements, columns: Sequence[str], *, counting: Counting, drop_missing: bool = False
) -> tuple[dict[str, Units], tuple[str, ...]]:
    """The results in several columns, a unit for each draw."""
    found = {name: table.groups(name, (), drop_missing=drop_missing)[0].values for name in columns}
    # A metric that ties among its units is still one value a unit: what is a copy is for the other metrics to say.
    plain = replace(counting, asked=True)
    sides = {name: units_of(table, values, plain) for name, values in found.items()}
    return sides, _dropped(sum(values.dropped for values in found.values()))


def _dropped(count: int) -> tuple[str, ...]:
    return (not_finite(count),) if count else ()
