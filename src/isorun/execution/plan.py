"""What will be started for a job: the program, its arguments, its variables and its CPUs."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from isorun.execution.base import Job
from isorun.execution.command import PythonTarget, is_python, parse_python
from isorun.execution.interpreter import Interpreters, find_program
from isorun.worker.levels import hooked_python_path, level_environment

__all__ = ["PROTOCOL", "Plan", "plan", "write_request"]

PROTOCOL: Final = 1
_OWN_VARIABLES: Final = "ISORUN_"
_REPLACED: Final = ("python", "python3")


@dataclass(frozen=True, slots=True)
class Plan:
    """A job on given CPUs, ready to be started.

    argv: what a fresh process executes. interpreter: its Python, empty when the command does not start with one.
    target: what Python is asked to run, None when that cannot be said. level_variables: what the level added to env.
    """

    job: Job
    cpus: tuple[int, ...]
    argv: tuple[str, ...]
    env: Mapping[str, str]
    interpreter: str
    target: PythonTarget | None
    level_variables: Mapping[str, str]

    def requested(self) -> dict[str, Any]:
        """What was asked for, as the record keeps it. The study's variables are named, not quoted: some are secret."""
        return {
            "level": str(self.job.cell.level),
            "python": self.interpreter,
            "threads": self.job.threads,
            "cpus": len(self.cpus),
            "level_variables": dict(sorted(self.level_variables.items())),
            "study_variables": sorted(self.job.env),
        }


def plan(job: Job, cpus: Sequence[int], interpreters: Interpreters) -> Plan:
    """The plan of a job; ExecutionError when its interpreter or program does not exist."""
    base = _base_environment(job)
    target = parse_python(job.command)
    interpreter = _interpreter(job, base, interpreters)
    seed = job.seed if job.cell.level.fixes_seed else None
    added = level_environment(str(job.cell.level), seed, len(cpus), base)
    hooked = {"PYTHONPATH": hooked_python_path(base), "ISORUN_RUN_DIR": str(job.folder.absolute())}
    return Plan(
        job=job,
        cpus=tuple(cpus),
        argv=_argv(job, interpreter, base),
        env={**base, **added, **hooked},
        interpreter=interpreter,
        target=target,
        level_variables={name: value for name, value in added.items() if not name.startswith(_OWN_VARIABLES)},
    )


def _base_environment(job: Job) -> dict[str, str]:
    """The caller's variables and the study's; those of an isorun that this one runs inside are not passed on."""
    caller = {name: value for name, value in os.environ.items() if not name.startswith(_OWN_VARIABLES)}
    return {**caller, **job.env}


def _interpreter(job: Job, base: Mapping[str, str], interpreters: Interpreters) -> str:
    program = job.command[0]
    if program == "function" or program in _REPLACED:
        return interpreters.find(job.python, base, job.working_folder)
    return interpreters.find(program, base, job.working_folder) if is_python(program) else ""


def _argv(job: Job, interpreter: str, base: Mapping[str, str]) -> tuple[str, ...]:
    program, *arguments = job.command
    if program == "function":
        return (interpreter, str(FUNCTION_CALLER), *arguments)
    return (interpreter or find_program(program, base, job.working_folder), *arguments)


def write_request(plan: Plan, launch: str) -> None:
    """Tell the worker what it is part of."""
    job = plan.job
    request = {
        "protocol": PROTOCOL,
        "run_id": f"{job.cell.id}-{job.attempt}",
        "cell_id": job.cell.id,
        "attempt": job.attempt,
        "level": str(job.cell.level),
        "seed": job.seed,
        "threads": len(plan.cpus),
        "launch": launch,
        "code_root": str(job.working_folder.absolute()),
        "config": dict(job.cell.config_values),
    }
    (job.folder / "request.json").write_text(json.dumps(request) + "\n", encoding="utf-8")
