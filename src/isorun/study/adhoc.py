"""Ad hoc studies: a command typed at the prompt is a study too, so it can be resumed, extended and reported on."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from isorun.errors import StudyError
from isorun.study.design import Study
from isorun.study.levels import Level
from isorun.worker.redaction import redacted_argv

__all__ = ["adhoc_study"]


def adhoc_study(
    command: Sequence[str],
    *,
    name: str | None = None,
    levels: Sequence[str] = (),
    seeds: Sequence[int] = (),
    repeats: int = 1,
    take_seeds: bool = False,
    environment: Mapping[str, Any] | None = None,
    metrics: Mapping[str, str] | None = None,
    sources: Mapping[str, Any] | None = None,
    policy: Mapping[str, Any] | None = None,
    folder: Path,
) -> Study:
    """A study of one command; the same command gets the same name, so that running it again extends it."""
    approach = _approach_name(redacted_argv(command, {}))
    return Study(
        _checked(name) if name else f"{approach}-{_short_hash(command)}",
        approaches={approach: list(command)},
        environments={"default": environment or {}},
        levels=list(levels) or [Level.DEFAULT],
        seeds=list(seeds) or [1],
        repeats=repeats,
        take_seeds=take_seeds,
        metrics=metrics,
        sources=sources,
        policy=policy,
        folder=folder,
    )


def _approach_name(command: Sequence[str]) -> str:
    """What a person would call it: the script's or module's name, else the program's."""
    words = [word for word in command if not word.startswith("-")]
    script = next((word for word in words if word.endswith(".py")), None)
    if script is None and "-m" in command[:-1]:
        script = command[command.index("-m") + 1]
    stem = Path((script or (words[0] if words else "command")).split()[-1]).name.removesuffix(".py")
    return re.sub(r"[^\w.-]", "_", stem) or "command"


def _short_hash(command: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(command).encode(errors="surrogateescape")).hexdigest()[:6]


def _checked(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]{0,79}", name):
        raise StudyError(
            "that is not a usable name for an ad hoc study",
            found=repr(name),
            allowed="letters, digits, '_', '-' and '.', at most 80 of them",
        )
    return name
