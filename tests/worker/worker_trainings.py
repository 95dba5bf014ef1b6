"""Trainings in real interpreters: what they are given and what they leave."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from isorun.worker import levels, runfolder

PYENV = Path.home() / ".pyenv" / "versions"
OTHER_PYTHONS = sorted(PYENV.glob("3.[89].*/bin/python")) + sorted(PYENV.glob("3.1[0-9].*/bin/python"))


class RunEvents(NamedTuple):
    """What a run left: the training process's events, those of its other processes by file name, and bad bytes."""

    main: list[dict[str, Any]]
    others: dict[str, list[dict[str, Any]]]
    torn_bytes: int


def read_run(folder: Path) -> RunEvents:
    """All events of a run, as they are."""
    found: dict[str, list[dict[str, Any]]] = {}
    files = runfolder.read_files(folder, lambda name, events: found.setdefault(name, []).extend(map(dict, events)))
    main = runfolder.main_file(files)
    others = {file.name: found.get(file.name, []) for file in files if file.name != main}
    return RunEvents(found.get(main, []), others, sum(file.unread_bytes for file in files))


@dataclass(frozen=True)
class Trained:
    """What a training left."""

    returncode: int
    stdout: str
    stderr: str
    folder: Path

    @property
    def run(self) -> RunEvents:
        return read_run(self.folder)

    @property
    def events(self) -> list[dict[str, Any]]:
        return self.run.main

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["kind"] == kind]

    def digest(self, name: str) -> str:
        return next(event["value"] for event in self.of_kind("digest") if event["name"] == name)


def run_environment(folder: Path, level: str, seed: int | None, extra: Mapping[str, str] = {}) -> dict[str, str]:
    """The environment an executor gives to a run on one thread."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("ISORUN_", "PYTHON"))}
    base = {**clean, "PYTHONDONTWRITEBYTECODE": "1", **extra}
    hooked = {"PYTHONPATH": levels.hooked_python_path(base), "ISORUN_RUN_DIR": str(folder)}
    return {**base, **levels.level_environment(level, seed, 1, base), **hooked}
