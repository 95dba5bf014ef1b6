"""A training loop measured in a process of its own, the zoo's with isorun watching."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmark_jobs import ONE_THREAD
from isorun.worker.levels import hooked_python_path

__all__ = ["best_rate", "found_in_own_process"]


def found_in_own_process(script: str, words: Sequence[str], *, monitored: bool, one_thread: bool) -> dict[str, Any]:
    """What the script, run with those words, prints as its last line. monitored: inside isorun's worker, logging."""
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, **(ONE_THREAD if one_thread else {})}
        if monitored:
            env.update({"ISORUN_RUN_DIR": folder, "PYTHONPATH": hooked_python_path(env)})
        done = subprocess.run([sys.executable, script, *words], env=env, stdout=subprocess.PIPE, check=True, text=True)
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        found["logged"] = sum(file.stat().st_size for file in Path(folder).glob("*.jsonl"))
        if monitored and not found["logged"]:
            raise SystemExit("the zoo's loop ran without monitoring: nothing was logged")
        return found


def best_rate(found: dict[str, Any], what: str) -> float:
    """Images or pairs a second of the fastest epoch."""
    return float(found[what] / min(found["seconds"]))
