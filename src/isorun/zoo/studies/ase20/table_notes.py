"""Notes that stand below more than one table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from isorun.report.numbers import UNKNOWN
from isorun.zoo.studies.ase20.measured import Measured

__all__ = ["few_runs_notes", "shared_times_notes"]


def few_runs_notes(groups: Sequence[Measured]) -> Iterator[str]:
    """A note on every group with too few runs to differ."""
    few = [group for group in groups if group.finished < 2]
    if few:
        named = "; ".join(f"{group.label}: {group.finished} of {group.planned}" for group in few)
        yield f"{UNKNOWN}: fewer than two finished runs ({named})."


def shared_times_notes(groups: Sequence[Measured]) -> Iterator[str]:
    """A note on times that were taken while runs shared a GPU."""
    most = max((group.at_once for group in groups), default=1)
    if most > 1:
        yield f"Up to {most} of our runs shared a GPU: their times include waiting for each other and are not judged."
