"""Pairs: runs of two approaches that belong together because they share a seed, a task or a split."""

from __future__ import annotations

from dataclasses import dataclass

from isorun.analysis.inputs.ranks import snapped
from isorun.analysis.inputs.samples import FloatArray
from isorun.analysis.inputs.tables import Table, Values
from isorun.errors import InputError

__all__ = ["Pairs", "labelled", "matched"]


@dataclass(frozen=True, slots=True)
class Pairs:
    """The values of both sides in the order of their labels, and the labels that only one side has."""

    first: FloatArray
    second: FloatArray
    unmatched: tuple[str, ...] = ()

    @property
    def differences(self) -> FloatArray:
        """First minus second; equal differences are equal whatever floating point makes of them."""
        return snapped(self.first - self.second, float(max(abs(self.first).max(), abs(self.second).max())))


def matched(table: Table, column: str, first: Values, second: Values) -> Pairs:
    """The runs of both sides that have the same label in `column`; a label that one side has twice is an error."""
    a, b = (labelled(table, column, side) for side in (first, second))
    shared = sorted(a.keys() & b.keys())
    if not shared:
        raise InputError(
            f"no run of one approach shares its {column!r} with a run of the other",
            found=f"for example {next(iter(a))!r} and {next(iter(b))!r}",
        )
    return Pairs(
        first=first.finite[[a[label] for label in shared]],
        second=second.finite[[b[label] for label in shared]],
        unmatched=tuple(sorted(a.keys() ^ b.keys())),
    )


def labelled(table: Table, column: str, side: Values) -> dict[str, int]:
    """Where the run of each label in `column` stands among the side's values; a label that occurs twice is an error."""
    labels, positions = table.labels(column), dict[str, int]()
    for position, row in enumerate(side.rows.tolist()):
        earlier = positions.setdefault(labels[row], position)
        if earlier != position:
            raise InputError(
                f"two runs of one approach have the same {column!r}, so that pairs are not unique",
                found=f"{labels[row]!r} on {table.place(int(side.rows[earlier]))} and on {table.place(row)}",
                hint=f"group or filter the table so that each {column!r} occurs once for each approach",
            )
    return positions
