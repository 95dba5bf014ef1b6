"""Which version of the code trained: git commit and a hash of what differs from it. Used by executors, once a study."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path
from typing import Any

from .libraries import hash_of_file
from .userfiles import is_generated

_TIMEOUT_SECONDS = 20
# Untracked files that are code or settings; checkpoints and logs of the training itself must not change its version.
_SOURCE_SUFFIXES = frozenset(
    (".py", ".pyi", ".pyx", ".ipynb", ".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".sh", ".toml", ".yaml", ".yml")
)
# Where tools leave settings and copies of the code, anew for each run.
_OUTPUT_FOLDERS = frozenset(
    (
        ".hydra",
        ".ipynb_checkpoints",
        ".isorun",
        "__pycache__",
        "lightning_logs",
        "mlruns",
        "torch_compile_debug",
        "wandb",
        "work_dirs",
    )
)


def code_version(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """commit, dirty and diff_sha256 (empty when clean) of the repository around `folder`; {} where there is none."""
    root = _git(folder, "rev-parse", "--show-toplevel")
    commit = _git(folder, "rev-parse", "--verify", "HEAD")
    if root is None or commit is None:
        return {}
    difference = _difference(root.decode(errors="surrogateescape").rstrip("\n"))
    return {
        "commit": commit.decode().strip(),
        "dirty": bool(difference),
        "diff_sha256": hashlib.sha256(difference).hexdigest() if difference else "",
    }


def _difference(root: str) -> bytes:
    changed = _git(root, "diff", "HEAD", "--binary", "--no-ext-diff", "--no-textconv", "--no-color") or b""
    listed = _git(root, "ls-files", "--others", "--exclude-standard", "-z") or b""
    untracked = sorted(name.decode(errors="surrogateescape") for name in listed.split(b"\0") if name)
    return changed + b"".join(_untracked_line(root, name) for name in untracked if _is_source(name))


def _is_source(name: str) -> bool:
    path = Path(name)
    return path.suffix in _SOURCE_SUFFIXES and _OUTPUT_FOLDERS.isdisjoint(path.parts) and not is_generated(name)


def _untracked_line(root: str, name: str) -> bytes:
    path = Path(root) / name
    content = hash_of_file(path) if path.is_file() else ""
    return f"{name}\0{content}\n".encode(errors="surrogateescape")


def _git(folder: str | os.PathLike[str], *arguments: str) -> bytes | None:
    # A repository may name programs to run in its settings: none of them is needed here.
    command = ["git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", *arguments]
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, timeout=_TIMEOUT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
