"""Where the model trains: thread counts, CPU paths and devices that this machine can have.

The paper's own environments (PyTorch 0.1.x against other math libraries, other processors) are not in one wheel; the
same factor, which arithmetic the processor is asked to do, can be varied through the variables that the libraries read.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from isorun.study.design import Environment
from isorun.worker.levels import this_cpu_flags
from isorun.zoo.paper import PRELOAD

__all__ = [
    "AS_INSTALLED",
    "CPU_PATHS",
    "MOST_THREADS",
    "ONE_THREAD",
    "CpuPath",
    "cpu_environments",
    "cpu_paths",
    "thread_counts",
    "thread_environments",
]

AS_INSTALLED: Final = "as installed"
MOST_THREADS: Final = 6
"""The cores of the paper's processor, and the last row of its Table 7."""
ONE_THREAD: Final = Environment("one thread", threads=1, preload=PRELOAD)


@dataclass(frozen=True, slots=True)
class CpuPath:
    """A way through the libraries. needs: the CPU flag without which the request would crash or mean nothing."""

    name: str
    env: Mapping[str, str]
    needs: str = ""


CPU_PATHS: Final = (
    CpuPath(AS_INSTALLED, {}),
    CpuPath("MKL for any processor", {"MKL_CBWR": "COMPATIBLE"}),
    CpuPath("MKL up to AVX2", {"MKL_CBWR": "AVX2"}, "avx2"),
    CpuPath("oneDNN up to AVX2", {"ONEDNN_MAX_CPU_ISA": "AVX2"}, "avx2"),
    CpuPath("oneDNN up to SSE4.1", {"ONEDNN_MAX_CPU_ISA": "SSE41"}, "sse4_1"),
    CpuPath("ATen up to AVX2", {"ATEN_CPU_CAPABILITY": "avx2"}, "avx2"),
    CpuPath("ATen without vectors", {"ATEN_CPU_CAPABILITY": "default"}),
)


def thread_counts(most: int = MOST_THREADS) -> tuple[int, ...]:
    """1, 2, … as far as the CPUs that this process may use, and as far as the paper went."""
    return tuple(range(1, min(most, len(os.sched_getaffinity(0))) + 1))


def thread_environments(counts: tuple[int, ...]) -> dict[str, Environment]:
    """An environment for each thread count; runs are pinned to as many CPUs."""
    names = {number: f"{number} thread" if number == 1 else f"{number} threads" for number in counts}
    return {names[number]: Environment(names[number], threads=number, preload=PRELOAD) for number in counts}


def cpu_paths(flags: frozenset[str] | None = None) -> tuple[CpuPath, ...]:
    """The paths that a processor with these flags has; this machine's when none are given."""
    known = this_cpu_flags() if flags is None else flags
    return tuple(path for path in CPU_PATHS if not path.needs or path.needs in known)


def cpu_environments(paths: tuple[CpuPath, ...]) -> dict[str, Environment]:
    """An environment for each path, all with one thread, so that nothing else differs."""
    return {path.name: Environment(path.name, env=dict(path.env), threads=1, preload=PRELOAD) for path in paths}
