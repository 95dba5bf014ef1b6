"""What this run asks for, as the training process's environment says it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Mapping, NamedTuple

from . import levels


class Settings(NamedTuple):
    """The run's folder, level, seed (None at `default`), threads, and whether the process was forked warm.

    threads: the thread count to fix; None unless the level is `deterministic`. run_seed: what `{seed}` stood for, at
    any level; None where nobody said. takes_seeds: whether the training's own seeds follow it.
    """

    folder: Path
    level: str
    seed: int | None
    threads: int | None
    warm: bool
    run_seed: int | None = None
    takes_seeds: bool = False

    @property
    def fixes_kernels(self) -> bool:
        """Whether implementation-level factors are fixed too."""
        return self.level == levels.DETERMINISTIC


def read(environ: Mapping[str, str], warm: bool) -> Settings:
    """The settings of this process. Raises KeyError or ValueError when the executor broke the contract."""
    level = environ.get("ISORUN_LEVEL", levels.DEFAULT)
    if level not in levels.LEVELS:
        raise ValueError(f"ISORUN_LEVEL is {level!r}; allowed are {', '.join(levels.LEVELS)}")
    seed = None if level == levels.DEFAULT else int(environ["ISORUN_SEED"])
    threads = _threads(environ) if level == levels.DETERMINISTIC else None
    run_seed = int(environ["ISORUN_RUN_SEED"]) if environ.get("ISORUN_RUN_SEED") else None
    takes_seeds = run_seed is not None and bool(environ.get(levels.TAKE_SEEDS))
    return Settings(Path(environ["ISORUN_RUN_DIR"]), level, seed, threads, warm, run_seed, takes_seeds)


def _threads(environ: Mapping[str, str]) -> int:
    asked = environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
