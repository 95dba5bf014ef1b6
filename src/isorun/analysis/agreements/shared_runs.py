"""Agreement out of a table: the same seeds on several devices or environments, or several metrics of the same runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from isorun.analysis.agreements.agreement import Agreement, agreement
from isorun.analysis.agreements.rounding import RankChange, SupportedDigits, rank_changes, supported_digits
from isorun.analysis.evidence.condition import Condition
from isorun.analysis.evidence.units import Counting, Units, units_of
from isorun.analysis.inputs.pairing import Pairs
from isorun.analysis.inputs.tables import Table
from isorun.errors import InputError, known_names

__all__ = ["AgreementTable", "SharedRuns", "agreement_table", "metrics_of", "sides_of"]

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
class AgreementTable:
    """Every pair of sides over the runs they share, and how the sides' means may be written.

    decimals: digits after the point that the means are rounded to; rank_changes: whose order that hides or turns
    round. Both are empty for different metrics, which have no order among each other.
    """

    sides: Mapping[str, Units]
    digits: Mapping[str, SupportedDigits]
    pairs: tuple[SharedRuns, ...]
    decimals: int | None = None
    rank_changes: tuple[RankChange, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[Condition, ...] = ()

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
            "warnings": [warning.to_json() for warning in self.warnings],
        }


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
    if len(sides) < 2:
        raise InputError("agreement needs two sides or more", found=", ".join(map(repr, sides)) or "none")
    digits = {name: supported_digits(units.values) for name, units in sides.items()}
    labelled = {name: dict(zip(units.labels, units.values.tolist(), strict=True)) for name, units in sides.items()}
    shared = tuple(_shared(a, first, b, second) for (a, first), (b, second) in combinations(labelled.items(), 2))
    if not comparable:
        return AgreementTable(sides, digits, shared, notes=notes, warnings=conditions)
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
    table: Table, value: str, by: str, pair: str, *, only: Sequence[str] = (), drop_missing: bool = False
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
    table: Table, columns: Sequence[str], *, counting: Counting, drop_missing: bool = False
) -> tuple[dict[str, Units], tuple[str, ...]]:
    """The results in several columns, a unit for each draw."""
    found = {name: table.groups(name, (), drop_missing=drop_missing)[0].values for name in columns}
    # A metric that ties among its units is still one value a unit: what is a copy is for the other metrics to say.
    plain = replace(counting, asked=True)
    sides = {name: units_of(table, values, plain) for name, values in found.items()}
    return sides, _dropped(sum(values.dropped for values in found.values()))


def _dropped(count: int) -> tuple[str, ...]:
    return (f"{count} values are not finite and were left out",) if count else ()
