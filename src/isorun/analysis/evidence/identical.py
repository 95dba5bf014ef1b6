"""Identical runs: how many different weights came out of runs that had everything in common.

At the levels that fix a seed, runs of one group with the same seed are identical; at level `default` all runs of a
group are, and their weights are expected to differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from isorun.study.records import RunRecord

__all__ = ["FINAL_WEIGHTS", "INITIAL_WEIGHTS", "DigestCount", "IdenticalRuns", "identical_runs"]

INITIAL_WEIGHTS: Final = "weights.initial"
FINAL_WEIGHTS: Final = "weights.final"


@dataclass(frozen=True, slots=True)
class DigestCount:
    """How many different digests of one name came out. runs: how many of them left this digest."""

    name: str
    runs: int
    distinct: int
    largest_set: int


@dataclass(frozen=True, slots=True)
class IdenticalRuns:
    """The finished runs of one group and one seed (None at level `default`)."""

    seed: int | None
    runs: int
    digests: tuple[DigestCount, ...]

    def digest(self, name: str) -> DigestCount | None:
        """The count for one digest name; None when no run left it."""
        return next((count for count in self.digests if count.name == name), None)


def identical_runs(records: Sequence[RunRecord]) -> tuple[IdenticalRuns, ...]:
    """One entry a seed, in the order of seeds, for the finished runs of one group."""
    seeds = sorted({record.cell.seed for record in records}, key=lambda seed: (seed is not None, seed or 0))
    return tuple(_of_seed(seed, [record for record in records if record.cell.seed == seed]) for seed in seeds)


def _of_seed(seed: int | None, records: Sequence[RunRecord]) -> IdenticalRuns:
    names = sorted({name for record in records for name in record.digests}, key=_digest_order)
    counts = tuple(_count(name, (record.digests.get(name) for record in records)) for name in names)
    return IdenticalRuns(seed, len(records), counts)


def _digest_order(name: str) -> tuple[bool, bool, str]:
    return (name != INITIAL_WEIGHTS, name != FINAL_WEIGHTS, name)


def _count(name: str, digests: Iterable[str | None]) -> DigestCount:
    sets = Counter(digest for digest in digests if digest)
    return DigestCount(name, sum(sets.values()), len(sets), max(sets.values(), default=0))
