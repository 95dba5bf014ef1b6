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
    commands: Sequence[Sequence[str]],
    *,
    name: str | None = None,
    levels: Sequence[str] = (),
    seeds: Sequence[int] = (),
    repeats: int = 1,
    take_seeds: bool = False,
    environment: Mapping[str, Any] | None = None,
    metrics: Mapping[str, Any] | None = None,
    sources: Mapping[str, Any] | None = None,
    policy: Mapping[str, Any] | None = None,
    folder: Path,
) -> Study:
    """A study of one command, or of several to compare; the same ones get the same name, so that it can be extended."""
    approaches = _approach_names([redacted_argv(command, {}) for command in commands])
    every = [word for command in commands for word in (*command, "")][:-1]
    return Study(
        _checked(name) if name else f"{'-vs-'.join(map(_file_name, approaches))[:60]}-{_short_hash(every)}",
        approaches={approach: list(command) for approach, command in zip(approaches, commands, strict=True)},
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


def _approach_names(commands: Sequence[Sequence[str]]) -> list[str]:
    """A name for each: the scripts' where they differ, else the script's with the words that only this one has."""
    names = [_approach_name(command) for command in commands]
    if len(set(names)) == len(names):
        return names
    told = [f"{name} {_own_words(command, commands)}".strip() for name, command in zip(names, commands, strict=True)]
    if len(set(told)) < len(told):
        raise StudyError(
            "the commands to compare are the same", found=" ".join(commands[0]), hint="change an option of one of them"
        )
    return [name[:100] for name in told]


def _own_words(command: Sequence[str], commands: Sequence[Sequence[str]]) -> str:
    """The words that not all commands have, each value with the option it belongs to."""
    shared = set.intersection(*(set(other) for other in commands))
    own = [place for place, word in enumerate(command) if word not in shared]
    places = {
        before for place in own for before in (place - 1, place) if before == place or _is_option(command, before)
    }
    return " ".join(command[place] for place in sorted(places))


def _is_option(command: Sequence[str], place: int) -> bool:
    return place >= 0 and command[place].startswith("-") and "=" not in command[place]


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.-]+", "_", name)


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
