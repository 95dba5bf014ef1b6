"""The declared design of a study: what is compared, where, at which levels, how often, and how it is judged.

A study is declared in Python, in a TOML file, or by the command typed at the prompt, which is a study too, so that it
can be resumed, extended and reported on.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from isorun.errors import StudyError, known_names
from isorun.study import parsing
from isorun.study.checks import as_boolean, shown
from isorun.study.levels import Level
from isorun.study.parts import Approach, Config, Environment, Metric, Policy, Selection, Sources
from isorun.worker.redaction import redacted_argv

__all__ = [
    "Approach",
    "Config",
    "Environment",
    "Metric",
    "Policy",
    "Selection",
    "Sources",
    "Study",
    "adhoc_study",
    "load_study",
    "study_from_document",
]

KEYS: Final = (
    "name",
    "approaches",
    "configs",
    "environments",
    "levels",
    "seeds",
    "repeats",
    "take_seeds",
    "metrics",
    "selections",
    "sources",
    "policy",
)


@dataclass(frozen=True, init=False, slots=True)
class Study:
    """A declared design: approaches x configs x environments x levels x seeds x repeats.

    Every argument takes what the study file takes for the table of the same name, or the ready-made parts:

        Study("digits", approaches={"lenet": "python train.py --lr {config.lr}"},
              configs={"slow": {"lr": 0.01}}, levels=["default", "fixed-seed"], repeats=8)

    An approach may also be a module-level Python function. folder: where relative paths start and where the default
    store lies. withheld: by approach and environment, the keyed hashes of what is in no record (`document.with_key`).
    take_seeds: whether constants that the training seeds with follow the run's seed instead.
    """

    name: str
    approaches: Mapping[str, Approach]
    configs: Mapping[str, Config]
    environments: Mapping[str, Environment]
    levels: tuple[Level, ...]
    seeds: tuple[int, ...]
    repeats: int
    take_seeds: bool
    metrics: Mapping[str, Metric]
    selections: Mapping[str, Selection]
    policy: Policy
    folder: str = field(compare=False)
    withheld: Mapping[str, Mapping[str, str]] = field(compare=False, repr=False)

    def __init__(
        self,
        name: str,
        *,
        approaches: Mapping[str, Any],
        configs: Mapping[str, Any] | None = None,
        environments: Mapping[str, Any] | None = None,
        levels: Any = (Level.DEFAULT,),
        seeds: Any = (1,),
        repeats: int = 1,
        take_seeds: bool = False,
        metrics: Mapping[str, Any] | None = None,
        selections: Mapping[str, Any] | None = None,
        sources: Any = None,
        policy: Any = None,
        folder: str | Path = ".",
    ) -> None:
        default_sources = parsing.sources(sources, "sources")
        parsed = {
            "name": parsing.study_name(name),
            "approaches": parsing.approaches(approaches, default_sources, Path(folder)),
            "configs": parsing.configs(configs),
            "environments": parsing.environments(environments),
            "levels": parsing.levels(levels),
            "seeds": parsing.seeds(seeds),
            "repeats": parsing.repeats(repeats),
            "take_seeds": as_boolean(take_seeds, "take_seeds"),
            "metrics": parsing.metrics(metrics),
            "selections": parsing.selections(selections),
            "policy": parsing.policy(policy),
            "folder": str(folder),
            "withheld": {},
        }
        for key, value in parsed.items():
            object.__setattr__(self, key, value)
        parsing.check_together(self.approaches, self.configs)

    @classmethod
    def load(cls, path: str | Path) -> Study:
        """The study declared in a TOML file."""
        return load_study(Path(path))


def load_study(path: Path) -> Study:
    """The study declared in a TOML file; its folder is the file's folder."""
    document = _read(path)
    try:
        return study_from_document(document, path.parent, default_name=path.stem)
    except StudyError as error:
        what = f"{path}: {error.what}"
        raise StudyError(what, found=error.found, allowed=error.allowed, hint=error.hint) from None


def study_from_document(document: dict[str, Any], folder: Path, default_name: str) -> Study:
    """The study that a parsed document declares."""
    for key in document:
        if key not in KEYS:
            raise StudyError(f"there is no key {key!r} in a study", allowed=known_names(key, KEYS))
    if "approaches" not in document:
        hint = 'add [approaches.NAME] with command = "python train.py"'
        raise StudyError("the study has no approaches, so there is nothing to run", hint=hint)
    arguments = {"name": default_name, **document}
    return Study(arguments.pop("name"), folder=folder, **arguments)


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise StudyError(f"there is no study file {path}", hint="isorun run --help shows how to start one") from None
    except IsADirectoryError:
        raise StudyError(
            f"{path} is a folder, not a study file", hint=f"name the file: {path / 'study.toml'}"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(f"the study file {path} cannot be read: {error}") from None
    try:
        return tomllib.loads(text)
    except ValueError as error:  # besides TOMLDecodeError also numbers with more digits than Python reads
        raise StudyError(f"{path} is not valid TOML: {error}") from None
    except RecursionError:
        raise StudyError(f"{path} is not a usable study file: it is nested too deeply") from None


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
    for command in commands:
        if not command or not command[0].strip():
            hint = "isorun run -n 16 -- python train.py"
            raise StudyError("the command is empty, so there is nothing to run", found=shown(list(command)), hint=hint)
    approaches = _approach_names([redacted_argv(command, {}) for command in commands])
    every = [word for command in commands for word in (*command, "")][:-1]
    return Study(
        _checked(name) if name is not None else f"{'-vs-'.join(map(_file_name, approaches))[:60]}-{_short_hash(every)}",
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
