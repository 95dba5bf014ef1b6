"""CPU slots: which CPUs each of the parallel runs may use.

Libraries size their thread pools by the CPUs they may use, and another number of threads gives other bits. So the
CPUs are divided once, into slots that never overlap and never change size while the executor lives: a run sees the
same number of CPUs whether it runs alone or beside others.
"""

from __future__ import annotations

import os
import queue
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from isorun.errors import ExecutionError

__all__ = ["Slots", "divide", "usable_cpus"]

_TOPOLOGY: Final = Path("/sys/devices/system/cpu")


class Slots:
    """A fixed number of disjoint sets of CPUs, each lent to one run at a time."""

    def __init__(self, jobs: int, cpus: Iterable[int] | None = None) -> None:
        self._cpus = tuple(usable_cpus() if cpus is None else cpus)
        self.slots = divide(self._cpus, jobs)
        self._free: queue.LifoQueue[tuple[int, ...]] = queue.LifoQueue()
        for slot in reversed(self.slots):
            self._free.put(slot)

    def check(self, threads: int | None) -> None:
        """Raise ExecutionError if a run with that many threads fits no slot."""
        size = len(self.slots[0])
        if threads is None or 1 <= threads <= size:
            return
        fitting = len(self._cpus) // threads if threads > 0 else 0
        raise ExecutionError(
            f"an environment asks for {threads} threads, which no run here can have",
            found=f"{_count(len(self._cpus), 'CPU')} for {_count(len(self.slots), 'parallel run')}: {size} each",
            allowed=f"threads from 1 to {size}",
            hint=f"--jobs {fitting}" if fitting else "lower `threads` of the environment, or use a larger machine",
        )

    @contextmanager
    def lend(self, threads: int | None = None) -> Iterator[tuple[int, ...]]:
        """The CPUs of a free slot, the first `threads` of them if given; waits until a slot is free."""
        self.check(threads)
        slot = self._free.get()
        try:
            yield slot[:threads]
        finally:
            self._free.put(slot)


def divide(cpus: Sequence[int], jobs: int) -> tuple[tuple[int, ...], ...]:
    """`jobs` disjoint slots of equal size; CPUs that do not divide evenly stay unused."""
    if not 1 <= jobs <= len(cpus):
        raise ExecutionError(
            f"{jobs} runs at once do not fit on this machine: runs that share a CPU would disturb each other",
            found=f"{_count(len(cpus), 'CPU')} that this process may use",
            allowed=f"--jobs from 1 to {len(cpus)}",
            hint=f"--jobs {len(cpus)}",
        )
    size = len(cpus) // jobs
    return tuple(tuple(cpus[start * size : (start + 1) * size]) for start in range(jobs))


def usable_cpus() -> tuple[int, ...]:
    """The CPUs this process may use, those of one physical core side by side, so that slots rarely share a core."""
    return tuple(sorted(os.sched_getaffinity(0), key=lambda cpu: (*_core(cpu), cpu)))


def _core(cpu: int) -> tuple[int, int]:
    topology = _TOPOLOGY / f"cpu{cpu}" / "topology"
    try:
        package, core = (int((topology / name).read_text()) for name in ("physical_package_id", "core_id"))
    except (OSError, ValueError):
        return (0, cpu)
    return (package, core)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
