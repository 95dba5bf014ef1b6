"""Describing: the environment of a run, or of this machine, and what differs between those of two runs.

env_describe("3f0c9a1b")        one sentence for a paper, and what is recorded of it and what is not
env_describe()                  this machine, and the python of the PATH; nothing is trained
env_diff("3f0c9a1b", "77aa")    what differs, the most suspicious first
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from isorun.analysis.descriptions import EnvironmentDescription, description_of_machine, description_of_run
from isorun.analysis.environments import EnvironmentDiff, difference_of
from isorun.environments import callers_variables
from isorun.environments.interpreter import Interpreters
from isorun.errors import ExecutionError
from isorun.session import Store, run_named
from isorun.study.records import RunRecord
from isorun.worker.levels import site_folder
from isorun.worker.usercode import code_version

__all__ = ["env_describe", "env_diff"]

_ASK_SECONDS: Final = 120.0
_DEVICE_SECONDS: Final = 10.0


def env_describe(
    run: str | RunRecord | None = None, *, store: Store = None, python: str | None = None
) -> EnvironmentDescription:
    """The environment in one sentence for a paper, with a checklist of what is recorded and what is not.

    run: a run's id or the start of one, or its record; without it this machine, and the interpreter `python`, by
    default that of the PATH, which imports the frameworks it has and computes nothing.
    """
    if run is not None:
        return description_of_run(run_named(run, store))
    answer = _asked(python or "python")
    inside = {**answer["effective"]}
    devices = _devices()
    if devices:
        inside["gpu"] = {**inside.get("gpu", {}), **devices}
    return description_of_machine(inside, answer["installed"], code_version(Path.cwd()))


def env_diff(
    first: str | RunRecord, second: str | RunRecord, *, store: Store = None, second_store: Store = None
) -> EnvironmentDiff:
    """What differs between the environments of two runs, the most suspicious first.

    first, second: ids or the starts of them, or records. second_store: where the second run is kept, if elsewhere.
    """
    return difference_of(run_named(first, store), run_named(second, store if second_store is None else second_store))


def _asked(python: str) -> Mapping[str, Any]:
    """What a process of the interpreter says of itself, once it has imported the frameworks that it has."""
    variables = callers_variables()
    program = Interpreters().find(python, variables, Path.cwd())
    command = [program, str(site_folder() / "enter.py"), "tell", "frameworks"]
    try:
        done = subprocess.run(
            command, env=variables, capture_output=True, text=True, timeout=_ASK_SECONDS, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        answer: Mapping[str, Any] = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise ExecutionError(
            f"the interpreter {program} cannot tell its environment",
            found=str(error)[:200],
            hint="--python PATH names another one; isorun env describe RUN describes a run",
        ) from None
    return answer


def _devices() -> dict[str, Any]:
    """The GPUs of this machine and their driver, as NVIDIA's own tool lists them."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return {}
    question = [program, "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(
            question, capture_output=True, text=True, timeout=_DEVICE_SECONDS, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    rows = [line.rpartition(",") for line in done.stdout.splitlines() if "," in line] if done.returncode == 0 else []
    return {"devices": [row[0].strip() for row in rows], "driver": rows[0][2].strip()} if rows else {}
