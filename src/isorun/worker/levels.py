"""What each level asks of the training process's environment, and what a run asks for in it.

Variables are only ever added. What the user's environment sets stays, because it is part of what is studied, and the
run's fingerprint records what was in force.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import FrozenSet, Mapping, NamedTuple

from . import frameworks

DEFAULT = "default"
FIXED_SEED = "fixed-seed"
DETERMINISTIC = "deterministic"
LEVELS = (DEFAULT, FIXED_SEED, DETERMINISTIC)

# What differs between runs that may share a warm fork server: the worker reads these after the fork. Everything else
# in the environment may have been read by Python or a library at start.
PER_RUN_VARIABLES = ("ISORUN_RUN_DIR", "ISORUN_SEED", "ISORUN_RUN_SEED")

# The level, and whether seeds are taken over: a fork server must know both before it imports a framework.
LEVEL = "ISORUN_LEVEL"
TAKE_SEEDS = "ISORUN_TAKE_SEEDS"
# Switches that frameworks are asked for in the training ("onednn=off,tf32=on").
SWITCHES = "ISORUN_SWITCHES"
# Seconds and steps after which a training that is only looked at ends: what an audit's environment says.
AUDIT = "ISORUN_AUDIT"
# Optimizer steps after which a training is ended, whose work is then timed; 0 for one that goes to its own end.
STEPS = "ISORUN_STEPS"
# The folder that the run's own working folder is a copy of, where it has one.
COPY_OF = "ISORUN_COPY_OF"
WORKSPACE = "workspace"
OWN_VARIABLES = (*PER_RUN_VARIABLES, LEVEL, TAKE_SEEDS, SWITCHES, STEPS, AUDIT, COPY_OF)

# One value for all seeds: Python reads it at start, so a value that followed the seed would need a fork server a seed.
_HASH_SEED = "0"

_FIXED_NUMBER_OF_THREADS = {"MKL_DYNAMIC": "FALSE", "OMP_DYNAMIC": "FALSE"}
# The counts of threads of libraries that several frameworks stand on; frameworks say their own (`thread_variables`).
THREAD_COUNTS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class InstructionPath(NamedTuple):
    """The instructions that libraries are held to: by variables at level `deterministic`, and as switches by name.

    The switch `cpu` also holds libraries that the level leaves alone, such as OpenBLAS.
    """

    variables: Mapping[str, str]
    switches: Mapping[str, str]


# AVX2 is the widest path that Intel and AMD machines share, and STRICT keeps MKL's sums independent of the thread
# count. COMPATIBLE would also hold on processors without AVX2, but multiplies matrices 2.5 times slower.
_AVX2_PATH = InstructionPath(
    {"MKL_CBWR": "AVX2,STRICT", "ONEDNN_MAX_CPU_ISA": "AVX2"}, {"cpu": "avx2", "mkl": "avx2-strict"}
)
_PORTABLE_PATH = InstructionPath({"MKL_CBWR": "COMPATIBLE"}, {"cpu": "baseline", "mkl": "compatible"})


def level_environment(
    level: str,
    seed: int | None,
    threads: int | None,
    base_env: Mapping[str, str],
    *,
    cpu_flags: FrozenSet[str] | None = None,
) -> dict[str, str]:
    """The variables to add to `base_env` for a run at `level`; none that it has, save flags that are added to it.

    seed: needed at `fixed-seed` and `deterministic`, not passed on at `default`. threads: the CPUs of the run, fixed
    at `deterministic` only, unless `base_env` asks for another number. cpu_flags: what the CPU can do; read from this
    machine when not given.
    """
    added = {LEVEL: level}
    if level == DEFAULT:
        return added
    if level not in LEVELS or seed is None:
        raise ValueError(
            f"level {level!r} with seed {seed!r}: allowed are {', '.join(LEVELS)}, the last two with a seed"
        )
    added["ISORUN_SEED"] = str(seed)
    wanted = {"PYTHONHASHSEED": _HASH_SEED}
    if level == DETERMINISTIC:
        # A count from outside is one for all of them: libraries of one process that disagree help nobody.
        asked = _asked_threads(base_env) or threads
        wanted.update(_deterministic_variables(asked, this_cpu_flags() if cpu_flags is None else cpu_flags))
        for framework in frameworks.every():
            added.update(framework.flags(base_env))
    added.update({name: value for name, value in wanted.items() if name not in base_env})
    return added


def is_as_strict(name: str, value: str) -> bool:
    """Whether another value of a variable that `deterministic` sets does what the level wants, too."""
    return any(framework.is_as_strict(name, value) for framework in frameworks.every())


def seed_environment(run_seed: int, *, take_seeds: bool) -> dict[str, str]:
    """The variables that tell the worker, at any level, what `{seed}` stood for and whether seeds are taken over."""
    return {"ISORUN_RUN_SEED": str(run_seed), **({TAKE_SEEDS: "1"} if take_seeds else {})}


def _deterministic_variables(threads: int | None, cpu_flags: FrozenSet[str]) -> dict[str, str]:
    variables = dict(_FIXED_NUMBER_OF_THREADS)
    for framework in frameworks.every():
        variables.update(framework.variables(cpu_flags))
    variables.update(cpu_path(cpu_flags).variables)
    if threads is not None:
        variables.update(dict.fromkeys(THREAD_COUNTS, str(threads)))
    return variables


def cpu_path(cpu_flags: FrozenSet[str]) -> InstructionPath:
    """The path that is taken on a CPU with these instruction sets."""
    return _AVX2_PATH if "avx2" in cpu_flags else _PORTABLE_PATH


def this_cpu_flags() -> FrozenSet[str]:
    """The instruction sets of this machine's first CPU, as Linux names them; empty where it does not say."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return frozenset()
    flags = next((line for line in lines if line.startswith("flags")), "")
    return frozenset(flags.partition(":")[2].split())


@functools.lru_cache(maxsize=None)
def site_folder() -> Path:
    """The folder that leads PYTHONPATH in a training process; it also holds the launcher."""
    return Path(__file__).resolve().parent / "site"


def hooked_python_path(base_env: Mapping[str, str]) -> str:
    """PYTHONPATH with the worker's folder in front of what `base_env` has there."""
    before = base_env.get("PYTHONPATH", "")
    return f"{site_folder()}:{before}" if before else str(site_folder())


class Settings(NamedTuple):
    """The run's folder, level, seed (None at `default`), threads, and whether the process was forked warm.

    threads: the thread count to fix; None unless the level is `deterministic`. run_seed: what `{seed}` stood for, at
    any level; None where nobody said. takes_seeds: whether the training's own seeds follow it. thread_variables: the
    counts of threads that the process began with, ours or the user's. switches: what frameworks are asked for here.
    steps: the work is timed, and ended after so many steps of an optimizer (0: at its own end); None where nobody asks.
    """

    folder: Path
    level: str
    seed: int | None
    threads: int | None
    warm: bool
    run_seed: int | None = None
    takes_seeds: bool = False
    thread_variables: Mapping[str, str] = {}
    switches: Mapping[str, str] = {}
    steps: int | None = None

    @property
    def fixes_kernels(self) -> bool:
        """Whether implementation-level factors are fixed too."""
        return self.level == DETERMINISTIC


def reaches_generators(environ: Mapping[str, str]) -> bool:
    """Whether generators that the training makes are reached: their constants are taken over, or a level seeds them."""
    asked = environ.get(TAKE_SEEDS) or environ.get(AUDIT) or "streams=" in environ.get(SWITCHES, "")
    return bool(asked) or environ.get(LEVEL, DEFAULT) != DEFAULT


def read_settings(environ: Mapping[str, str], warm: bool) -> Settings:
    """The settings of this process. Raises KeyError or ValueError when the executor broke the contract."""
    level = environ.get(LEVEL, DEFAULT)
    if level not in LEVELS:
        raise ValueError(f"ISORUN_LEVEL is {level!r}; allowed are {', '.join(LEVELS)}")
    seed = None if level == DEFAULT else int(environ["ISORUN_SEED"])
    threads = _threads(environ) if level == DETERMINISTIC else None
    run_seed = int(environ["ISORUN_RUN_SEED"]) if environ.get("ISORUN_RUN_SEED") else None
    takes_seeds = run_seed is not None and bool(environ.get(TAKE_SEEDS))
    counts = {name: environ[name] for name in THREAD_COUNTS if name in environ}
    asked = dict(item.split("=", 1) for item in environ.get(SWITCHES, "").split(",") if "=" in item)
    takes_seeds = takes_seeds or "streams" in asked  # a seed of the training's own starts streams that are parted
    folder = Path(environ["ISORUN_RUN_DIR"])
    steps = int(environ[STEPS]) if environ.get(STEPS) else None
    return Settings(folder, level, seed, threads, warm, run_seed, takes_seeds, counts, asked, steps)


def _threads(environ: Mapping[str, str]) -> int:
    asked = _asked_threads(environ)
    if asked is not None:
        return asked
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def _asked_threads(environ: Mapping[str, str]) -> int | None:
    """The first count of threads that the variables name; None where none does."""
    for name in THREAD_COUNTS:
        asked = environ.get(name, "").split(",")[0].strip()
        if asked.isascii() and asked.isdigit() and int(asked) > 0:
            return int(asked)
    return None
