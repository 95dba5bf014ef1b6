"""What will be started for a job: the program, its arguments, its variables and its CPUs."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from isorun.errors import ExecutionError
from isorun.execution.base import Job
from isorun.execution.interpreter import Interpreters, find_program
from isorun.study.parts import FUNCTION
from isorun.worker import programs
from isorun.worker.levels import OWN_VARIABLES, hooked_python_path, level_environment, seed_environment

__all__ = ["PROTOCOL", "Plan", "plan", "write_request"]

PROTOCOL: Final = 2
_REPLACED: Final = (FUNCTION, "python", "python3")
_PYTHON_NAME: Final = re.compile(r"(?:.*/)?python3?(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Plan:
    """A job on given CPUs, ready to be started.

    argv: what a fresh process executes. interpreter: its Python, empty when the command does not start with one.
    python_program: what it is asked to run, None when only a fresh interpreter can say. level_variables: what the
    level added to env.
    """

    job: Job
    cpus: tuple[int, ...]
    argv: tuple[str, ...]
    env: Mapping[str, str]
    interpreter: str
    python_program: programs.Program | None
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
            **({"take_seeds": True} if self.job.cell.take_seeds else {}),
        }


def plan(job: Job, cpus: Sequence[int], interpreters: Interpreters) -> Plan:
    """The plan of a job; ExecutionError when its interpreter or program does not exist."""
    base = _base_environment(job)
    interpreter = _interpreter(job, base, interpreters)
    program = _python_program(job) if interpreter else None
    added = _level_variables(job, len(cpus), base)
    hooked = {"PYTHONPATH": hooked_python_path(base), "ISORUN_RUN_DIR": str(job.folder.absolute())}
    return Plan(
        job=job,
        cpus=tuple(cpus),
        argv=_argv(job, interpreter, program, base),
        env={**base, **added, **hooked},
        interpreter=interpreter,
        python_program=program,
        level_variables={name: value for name, value in added.items() if name not in OWN_VARIABLES},
    )


def _base_environment(job: Job) -> dict[str, str]:
    """The caller's variables and the study's; those of an isorun that this one runs inside are not passed on."""
    caller = {name: value for name, value in os.environ.items() if name not in OWN_VARIABLES}
    return {**caller, **job.env}


def _level_variables(job: Job, cpus: int, base: Mapping[str, str]) -> dict[str, str]:
    seed = job.seed if job.cell.level.fixes_seed else None
    seeds = seed_environment(job.seed, take_seeds=job.cell.take_seeds)
    return {**level_environment(str(job.cell.level), seed, cpus, base), **seeds}


def _interpreter(job: Job, base: Mapping[str, str], interpreters: Interpreters) -> str:
    program = job.command[0]
    if program in _REPLACED:
        return interpreters.find(job.python, base, job.working_folder)
    return interpreters.find(program, base, job.working_folder) if _PYTHON_NAME.fullmatch(program) else ""


def _python_program(job: Job) -> programs.Program | None:
    if job.command[0] == FUNCTION:
        return programs.Program(programs.FUNCTION, job.command[1], job.command[2:])
    _refuse_standard_input(job)
    return programs.parse(job.command[1:])


def _refuse_standard_input(job: Job) -> None:
    """A run has no standard input: Python would find an empty program there and end well without training."""
    program = next((word for word in job.command[1:] if word != "-u"), "-")
    if program == "-":
        raise ExecutionError(
            f"approaches.{job.cell.approach}: python would read its program from standard input, which a run lacks",
            found=" ".join(job.command),
            allowed="python SCRIPT, python -m MODULE, python -c CODE",
            hint="save the program to a file, and give that to python",
        )


def _argv(job: Job, interpreter: str, program: programs.Program | None, base: Mapping[str, str]) -> tuple[str, ...]:
    if program is not None and program.kind == programs.FUNCTION:
        return tuple(programs.fresh_command(interpreter, program))
    return (interpreter or find_program(job.command[0], base, job.working_folder), *job.command[1:])


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
        "repeat": job.cell.repeat,
        "threads": len(plan.cpus),
        "launch": launch,
        "code_root": str(job.working_folder.absolute()),
        "take_seeds": job.cell.take_seeds,
        "config": dict(job.cell.config_values),
    }
    try:
        (job.folder / "request.json").write_text(json.dumps(request) + "\n", encoding="utf-8")
    except OSError as error:
        what = f"the run {request['run_id']} cannot be started: {job.folder} cannot be written to ({error.strerror})"
        raise ExecutionError(what, hint="make room or choose another folder with --store, then run again") from None
