"""All runs of a package, read and counted. Where they are many, a second process reads the last of them meanwhile.

That a run can be read is known when its record was made, which takes Python a tenth of a millisecond, on one CPU. The
second process (`python -m isorun.packages.counting FILE FIRST END`, FILE a number of an open file) is believed only
where it counted: whatever it ends with else, its blocks are read here, and what is wrong with them is told from here.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, Self

from isorun.errors import IsorunError
from isorun.packages import Budget, refused
from isorun.packages.reading import Package, open_package
from isorun.store.rows import no_garbage_collected
from isorun.study.records import RunRecord

__all__ = ["Counted", "counted_runs"]

_MANY_BLOCKS: Final = 4
_OWN_SHARE: Final = 0.6
"""The second process has to start first."""
_MARKS: Final = 64


@dataclass(frozen=True, slots=True)
class Counted:
    """What runs are. first, last: the places (cell and attempt) of the first and the last of them.

    numbers, told: the memory that reading them took, as a `Budget` counts it. marks: of some of the runs, always the
    same ones of the same runs: packages that share runs mostly share marks.
    """

    runs: int
    points: int
    states: dict[str, int]
    groups: frozenset[tuple[str, ...]]
    metrics: frozenset[str]
    first: tuple[str, int]
    last: tuple[str, int]
    numbers: int
    told: int
    marks: tuple[str, ...]

    def followed_by(self, other: Counted) -> Counted:
        """Both; PackageError where the second do not come behind the first."""
        if other.first <= self.last:
            raise refused("a run stands twice, or not in its place", f"{other.first[0]}-{other.first[1]}")
        return Counted(
            runs=self.runs + other.runs,
            points=self.points + other.points,
            states=dict(Counter(self.states) + Counter(other.states)),
            groups=self.groups | other.groups,
            metrics=self.metrics | other.metrics,
            first=self.first,
            last=other.last,
            numbers=self.numbers + other.numbers,
            told=self.told + other.told,
            marks=_some({*self.marks, *other.marks}),
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        counts = {"runs": self.runs, "points": self.points, "states": self.states}
        counts |= {"numbers": self.numbers, "told": self.told, "marks": self.marks}
        return {**counts, "groups": [*self.groups], "metrics": [*self.metrics], "first": self.first, "last": self.last}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """What `to_json` wrote."""
        sets = {"groups": frozenset(map(tuple, data["groups"])), "metrics": frozenset(data["metrics"])}
        rows = {name: tuple(data[name]) for name in ("first", "last", "marks")}
        return cls(**{**data, **sets, **rows})


def counted_runs(package: Package, *, apart: bool = False) -> Counted:
    """Read all runs; PackageError where they cannot be read, or are others than the manifest says.

    apart: a second process may be started for a large package, where there is a second CPU.
    """
    blocks = package.blocks()
    own = len(blocks)
    if apart and own >= _MANY_BLOCKS and len(os.sched_getaffinity(0)) > 1:
        own = round(own * _OWN_SHARE)
    with _second(package, own, len(blocks)) as second:
        found = _count(package, blocks[:own])
        if blocks[own:]:
            found = found.followed_by(second() or _count(package, blocks[own:]))
    both = Budget(package.size)  # each of two processes saw to its own part
    both.take_numbers(found.numbers, "runs")
    both.take_told(found.told, "runs")
    package.check_counts(found.runs, found.points)
    return found


def _count(package: Package, blocks: Sequence[str]) -> Counted:
    states, groups, metrics, marks = Counter[str](), set[tuple[str, ...]](), set[str](), set[str]()
    places, points, budget = [("", 0)], 0, Budget(package.size)
    with no_garbage_collected():
        for record in package.records_of(blocks, budget):
            states[str(record.state)] += 1
            groups.add(record.cell.group)
            metrics.update(record.results or (name for name in record.series if not name.endswith("]")))  # of no class
            marks.add(_mark(record))
            points += sum(len(item.values) for item in record.series.values())
            places[1:] = [*places[1:2], (record.cell.id, record.attempt)]
    return Counted(
        runs=states.total(),
        points=points,
        states=dict(states),
        groups=frozenset(groups),
        metrics=frozenset(metrics),
        first=places[min(1, len(places) - 1)],
        last=places[-1],
        numbers=budget.numbers,
        told=budget.told,
        marks=_some(marks),
    )


def _mark(record: RunRecord) -> str:
    """What two recordings of one run have in common, and two runs have not; rows of tables have no time."""
    told = (record.run_id, record.started_at, "" if record.started_at else sorted(record.results.items()))
    return hashlib.blake2b(repr(told).encode(errors="surrogatepass"), digest_size=8).hexdigest()


def _some(marks: set[str]) -> tuple[str, ...]:
    return tuple(heapq.nsmallest(_MARKS, marks))


@contextmanager
def _second(package: Package, first: int, end: int) -> Iterator[Callable[[], Counted | None]]:
    """Start a process that counts these blocks of the file that is open here; whom to ask for what it found.

    The answer is None where there is none to ask, or it found something wrong.
    """
    words = [sys.executable, "-P", "-m", __spec__.name, str(package.descriptor), str(first), str(end)]
    out, none = subprocess.PIPE, subprocess.DEVNULL
    if first == end:
        yield lambda: None
        return
    with subprocess.Popen(words, stdin=none, stdout=out, stderr=none, pass_fds=[package.descriptor]) as process:
        try:
            yield lambda: _told(process)
        finally:
            process.kill()


def _told(second: subprocess.Popen[bytes]) -> Counted | None:
    told, _ = second.communicate()
    with suppress(ValueError, LookupError, TypeError):
        return Counted.from_json(json.loads(told)) if second.returncode == 0 else None
    return None


def _main(file: str, first: str, end: str) -> int:
    try:
        with open_package(f"/proc/self/fd/{int(file)}") as package:
            found = _count(package, package.blocks()[int(first) : int(end)])
    except IsorunError:
        return 1
    print(json.dumps(found.to_json()))
    return 0


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
