"""Several trainings in one run: jobs of a hydra sweep (`-m`), one after the other or in processes of a launcher.

What each logs is told with the job it belongs to: two trainings that log the same metric are not one.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any, Callable, Dict

from .recorder import active

MODULE = "hydra.core.utils"
_MOST_JOB_LETTERS = 120


def follow(module: ModuleType) -> None:
    """Know from now on which job runs. Launchers take `run_job` from the module, so this comes before them."""
    run_job: Callable[..., Any] = module.run_job
    held: Dict[str, int] = {}

    @functools.wraps(run_job)
    def followed(*arguments: Any, **options: Any) -> Any:
        config = options["config"] if "config" in options else arguments[1] if len(arguments) > 1 else None
        recorder = active()
        if recorder is None:
            return run_job(*arguments, **options)
        before = recorder.job
        recorder.enter_job(_name(config, held))
        try:
            return run_job(*arguments, **options)
        finally:
            recorder.enter_job(before)

    setattr(module, "run_job", followed)  # noqa: B010  of any module, for all that mypy knows


def job_name(overrides: str, number: int, held: Dict[str, int], *, is_part: bool = False) -> str:
    """What a job of a sweep is called by: what it overrides, and its number where that would not tell it apart.

    held: the number of the first job of each name; two jobs of one name would be read as one training. is_part: whether
    `overrides` are only some of what the job overrides.
    """
    name = overrides[:_MOST_JOB_LETTERS]
    if is_part or name != overrides or held.setdefault(name, number) != number:
        return f"{name}#{number}"
    return name or f"#{number}"


def _name(config: Any, held: Dict[str, int]) -> str:
    """The name of the job that this configuration is of; empty for a single run, whose job has no number."""
    try:
        job = config.hydra.job
        return job_name(str(job.override_dirname or ""), int(job.num), held, is_part=_leaves_out(job))
    except Exception:  # a missing value raises what only hydra knows
        return ""


def _leaves_out(job: Any) -> bool:
    """Whether some keys are no part of the name (hydra's own example is the seed)."""
    try:
        return bool(job.config.override_dirname.exclude_keys)
    except Exception:  # as above
        return False
