"""Several trainings in one run: jobs of a hydra sweep (`-m`), one after the other or in processes of a launcher.

What each logs is told with the job it belongs to: two trainings that log the same metric are not one.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any, Callable

from .recorder import active

MODULE = "hydra.core.utils"
_MOST_JOB_LETTERS = 120


def follow(module: ModuleType) -> None:
    """Know from now on which job runs. Launchers take `run_job` from the module, so this comes before them."""
    run_job: Callable[..., Any] = module.run_job

    @functools.wraps(run_job)
    def followed(*arguments: Any, **options: Any) -> Any:
        config = options["config"] if "config" in options else arguments[1] if len(arguments) > 1 else None
        recorder = active()
        if recorder is None:
            return run_job(*arguments, **options)
        before = recorder.job
        recorder.enter_job(_name(config))
        try:
            return run_job(*arguments, **options)
        finally:
            recorder.enter_job(before)

    setattr(module, "run_job", followed)  # noqa: B010  of any module, for all that mypy knows


def _name(config: Any) -> str:
    """What a job of a sweep is called by what it overrides; empty for a single run, whose job has no number."""
    try:
        job = config.hydra.job
        number = int(job.num)
        return (str(job.override_dirname) or f"#{number}")[:_MOST_JOB_LETTERS]
    except Exception:  # a missing value raises what only hydra knows
        return ""
