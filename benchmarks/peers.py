"""Peers in environments of their own, so that nothing of them touches isorun's."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["peer_environment"]


def peer_environment(name: str, requirements: Sequence[str], python: str = sys.executable) -> Path:
    """The interpreter of a virtual environment with these requirements; made once and kept in a cache folder.

    The folder is $ISORUN_BENCH_CACHE or ~/.cache/isorun-bench. Changed requirements make a new environment; a file
    written last marks a complete one, so that an interrupted installation is made anew.
    """
    content = hashlib.sha256("\n".join([python, *requirements]).encode()).hexdigest()[:12]
    cache = Path(os.environ.get("ISORUN_BENCH_CACHE") or Path.home() / ".cache" / "isorun-bench")
    folder = cache / f"{name}-{content}"
    interpreter, complete = folder / "bin" / "python", folder / "complete"
    if not complete.exists():
        subprocess.run([python, "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run([str(interpreter), "-m", "pip", "install", "--quiet", *requirements], check=True)
        complete.touch()
    return interpreter
