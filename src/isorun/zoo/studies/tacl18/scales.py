"""How much of the paper each scale carries out, where the model trains, and with which seeds.

The seeds of Crane (TACL 2018) are what bash 4.3 draws after `RANDOM=1234`, values that came before left out. The
generator is Park and Miller's step on an unsigned 64-bit state, without their correction of negative values, cut to 15
bits; a value equal to the one just before it is drawn again. Bash 5.1 and later draw other numbers.

The paper's own environments (PyTorch 0.1.x against other math libraries, other processors) are not in one wheel; the
same factor, which arithmetic the processor is asked to do, can be varied through the variables that the libraries read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from isorun.errors import InputError
from isorun.study.design import Environment
from isorun.worker.levels import this_cpu_flags
from isorun.zoo.paper import PRELOAD

__all__ = [
    "AMOUNTS",
    "AS_INSTALLED",
    "COSTS",
    "COUNT",
    "CPU_PATHS",
    "JAX_BASELINE",
    "JAX_BESIDE",
    "JAX_SCRIPT",
    "JAX_VERSIONS",
    "MOST_THREADS",
    "ONE_THREAD",
    "PUBLISHED_SEEDS",
    "Amount",
    "CpuPath",
    "bash43_random",
    "cpu_environments",
    "cpu_paths",
    "qa_seeds",
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


JAX_VERSIONS: Final = ("0.4.20", "0.4.30", "0.5.3", "0.6.2")
"""Of November 2023, June 2024, March and June 2025: all that go with one NumPy and one SciPy, so that these stay."""
JAX_BASELINE: Final = "0.5.3"
"""As in the paper, which held all others against the release before the newest."""
JAX_BESIDE: Final = ("numpy==1.26.4", "scipy==1.13.1")
JAX_SCRIPT: Final = "jax_train.py"

PUBLISHED_SEEDS: Final = 200
_AS_PUBLISHED: Final = ("--batch-size", "1", "--order", "file")


@dataclass(frozen=True, slots=True)
class Amount:
    """trecqa_train: the training set of the TrecQA runs.

    seeds, data_seeds, mask_seeds, version_seeds: of the parts of these names.

    repeats: identical runs of the parts with one seed; path_repeats: of the CPU paths. threads: the most of them.
    questions: the most training questions by data set, all where none are named.
    epochs: the most of every training, None for as many as the development score takes; seed_epochs: of the seeds on a
    data set, where they are fewer.
    paths: CPU paths by name, None for all that the machine has. data: the data sets of the tables;
    version_data, version_epochs: of Table 5.
    options: further words for the training command.
    """

    trecqa_train: str
    seeds: int
    data_seeds: int
    mask_seeds: int
    version_seeds: int
    repeats: int = 2
    path_repeats: int = 2
    questions: Mapping[str, int] = field(default_factory=dict)
    epochs: int | None = None
    seed_epochs: Mapping[str, int] = field(default_factory=dict)
    threads: int = MOST_THREADS
    paths: tuple[str, ...] | None = None
    data: tuple[str, ...] = ("TrecQA", "WikiQA")
    version_data: tuple[str, ...] = ("TrecQA", "WikiQA")
    version_epochs: int | None = None
    options: tuple[str, ...] = ()

    def most_epochs(self, part: str, workload: str) -> int | None:
        """The most epochs of a training of that part."""
        if part == "versions" and self.version_epochs:
            return self.version_epochs
        return self.seed_epochs.get(workload, self.epochs) if part == "seeds" else self.epochs


AMOUNTS: Final[Mapping[str, Amount]] = {
    "smoke": Amount(
        "train",
        seeds=3,
        data_seeds=1,
        mask_seeds=1,
        version_seeds=2,
        repeats=1,
        path_repeats=1,
        questions={"trecqa": 20, "wikiqa": 20},
        epochs=1,
        threads=2,
        paths=(AS_INSTALLED, "MKL for any processor"),
        data=("TrecQA",),
        version_data=("TrecQA",),
    ),
    "cpu": Amount(
        "train",
        seeds=8,
        data_seeds=2,
        mask_seeds=8,
        version_seeds=5,
        path_repeats=1,
        questions={"wikiqa": 300},
        seed_epochs={"WikiQA": 5},
        version_data=("TrecQA",),
        version_epochs=10,
    ),
    "gpu": Amount("train", seeds=100, data_seeds=5, mask_seeds=50, version_seeds=20),
    "paper": Amount(
        "train-all",
        seeds=PUBLISHED_SEEDS,
        data_seeds=5,
        mask_seeds=PUBLISHED_SEEDS,
        version_seeds=PUBLISHED_SEEDS,
        options=_AS_PUBLISHED,
    ),
}

COSTS: Final[Mapping[str, str]] = {
    "smoke": "about 15 seconds on one core",
    "cpu": "about 10 minutes on two idle cores (with -j 2)",
    "gpu": "about 10 minutes on one data-centre GPU with 16 CPU cores",
    "paper": "a day on one GPU with 16 CPU cores, days without a GPU",
}


COUNT: Final = 200
_MOST: Final = 10_000
_START: Final = 1234
_STATE: Final = 1 << 64
_SIGN: Final = 1 << 63


def qa_seeds(count: int = COUNT) -> tuple[int, ...]:
    """The first `count` seeds, in the order in which the paper's script used them."""
    if not 1 <= count <= _MOST:
        raise InputError("that many seeds cannot be drawn", found=str(count), allowed=f"1 to {_MOST}")
    distinct: dict[int, None] = {}
    for value in bash43_random(_START):
        distinct[value] = None
        if len(distinct) == count:
            break
    return tuple(distinct)


def bash43_random(seed: int) -> Iterator[int]:
    """Endlessly what $RANDOM gives in bash 4.3 on a 64-bit machine after RANDOM=seed."""
    state, last = seed % _STATE, 0
    while True:
        state = _step(state)
        value = state & 32767
        if value != last:
            last = value
            yield value


def _step(state: int) -> int:
    """C's arithmetic: an unsigned quotient and remainder, then products of signed longs, kept unsigned."""
    state = state or 123459876
    high, low = _signed(state // 127773), _signed(state % 127773)
    return (16807 * low - 2836 * high) % _STATE


def _signed(value: int) -> int:
    return value - _STATE if value >= _SIGN else value
