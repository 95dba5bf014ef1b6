"""What each level asks of the training process's environment: pure functions, used by executors.

Variables are only ever added. What the user's environment sets stays, because it is part of what is studied, and the
run's fingerprint records what was in force.
"""

from __future__ import annotations

from pathlib import Path
from typing import FrozenSet, Mapping

DEFAULT = "default"
FIXED_SEED = "fixed-seed"
DETERMINISTIC = "deterministic"
LEVELS = (DEFAULT, FIXED_SEED, DETERMINISTIC)

# What differs between runs that may share a warm fork server: the worker reads these after the fork. Everything else
# in the environment may have been read by Python or a library at start.
PER_RUN_VARIABLES = ("ISORUN_RUN_DIR", "ISORUN_LEVEL", "ISORUN_SEED", "ISORUN_RUN_SEED")

# Set where seeds are taken over. A fork server must know it before it imports a framework, so it is none of the above.
TAKE_SEEDS = "ISORUN_TAKE_SEEDS"
OWN_VARIABLES = (*PER_RUN_VARIABLES, TAKE_SEEDS)

# One value for all seeds: Python reads it at start, so a value that followed the seed would need a fork server a seed.
_HASH_SEED = "0"

_DETERMINISTIC_KERNELS = {
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
    "TF_DETERMINISTIC_OPS": "1",
    "TF_CUDNN_DETERMINISTIC": "1",
    "MKL_DYNAMIC": "FALSE",
    "OMP_DYNAMIC": "FALSE",
}

_THREAD_COUNTS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")

# AVX2 is the widest path that Intel and AMD machines share, and STRICT keeps MKL's sums independent of the thread
# count. COMPATIBLE would also hold on processors without AVX2, but multiplies matrices 2.5 times slower.
_AVX2_PATH = {
    "MKL_CBWR": "AVX2,STRICT",
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
}
_PORTABLE_PATH = {"MKL_CBWR": "COMPATIBLE"}

_XLA_FLAG = "--xla_gpu_deterministic_ops=true"


def level_environment(
    level: str,
    seed: int | None,
    threads: int | None,
    base_env: Mapping[str, str],
    *,
    cpu_flags: FrozenSet[str] | None = None,
) -> dict[str, str]:
    """The variables to add to `base_env` for a run at `level`; none that `base_env` already has, save XLA_FLAGS.

    seed: needed at `fixed-seed` and `deterministic`, not passed on at `default`. threads: the CPUs of the run, fixed
    at `deterministic` only. cpu_flags: what the CPU can do; read from this machine when not given.
    """
    added = {"ISORUN_LEVEL": level}
    if level == DEFAULT:
        return added
    if level not in LEVELS or seed is None:
        raise ValueError(
            f"level {level!r} with seed {seed!r}: allowed are {', '.join(LEVELS)}, the last two with a seed"
        )
    added["ISORUN_SEED"] = str(seed)
    wanted = {"PYTHONHASHSEED": _HASH_SEED}
    if level == DETERMINISTIC:
        wanted.update(_deterministic_variables(threads, this_cpu_flags() if cpu_flags is None else cpu_flags))
        added.update(_xla_flags(base_env))
    added.update({name: value for name, value in wanted.items() if name not in base_env})
    return added


def seed_environment(run_seed: int, *, take_seeds: bool) -> dict[str, str]:
    """The variables that tell the worker, at any level, what `{seed}` stood for and whether seeds are taken over."""
    return {"ISORUN_RUN_SEED": str(run_seed), **({TAKE_SEEDS: "1"} if take_seeds else {})}


def _deterministic_variables(threads: int | None, cpu_flags: FrozenSet[str]) -> dict[str, str]:
    variables = dict(_DETERMINISTIC_KERNELS)
    variables.update(_AVX2_PATH if "avx2" in cpu_flags else _PORTABLE_PATH)
    if threads is not None:
        variables.update(dict.fromkeys(_THREAD_COUNTS, str(threads)))
    return variables


def _xla_flags(base_env: Mapping[str, str]) -> dict[str, str]:
    flags = base_env.get("XLA_FLAGS", "")
    if "xla_gpu_deterministic_ops" in flags:
        return {}
    return {"XLA_FLAGS": f"{flags} {_XLA_FLAG}".strip()}


def this_cpu_flags() -> FrozenSet[str]:
    """The instruction sets of this machine's first CPU, as Linux names them; empty where it does not say."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return frozenset()
    flags = next((line for line in lines if line.startswith("flags")), "")
    return frozenset(flags.partition(":")[2].split())


def site_folder() -> Path:
    """The folder that leads PYTHONPATH in a training process; it also holds the launcher."""
    return Path(__file__).resolve().parent / "site"


def hooked_python_path(base_env: Mapping[str, str]) -> str:
    """PYTHONPATH with the worker's folder in front of what `base_env` has there."""
    before = base_env.get("PYTHONPATH", "")
    return f"{site_folder()}:{before}" if before else str(site_folder())
