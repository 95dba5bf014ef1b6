"""What an outside program is: where it is had, what it needs, how it is typed, and what is true of its metrics."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from isorun.errors import InputError

HERE: Final = Path(__file__).parent
ENVIRONMENTS: Final = tuple(sorted(path.stem for path in (HERE / "requirements").glob("*.txt")))
DIRECTIONS: Final = ("higher", "lower", "")


@dataclass(frozen=True, slots=True)
class Truth:
    """A metric that the program has, and how its true last value is known without isorun.

    name: the names under which isorun may tell it, as a pattern for the whole name. line: a pattern whose last match in
    the output is the value (group `value`, or `hits` and `of`). file: else a file that the program leaves (the newest
    that fits), with line (text), column (CSV) or key (JSON, or the tag of TensorBoard events) in it. percent: it may be
    told as a fraction, too. direction: which is better; empty: neither.
    """

    name: str
    direction: str
    line: str = ""
    file: str = ""
    column: str = ""
    key: str = ""
    percent: bool = False


@dataclass(frozen=True, slots=True)
class Program:
    """One program as people have it.

    git, commit: the repository; empty for a program that its environment's packages bring. paths: what is taken of it.
    folder: where the command is typed. prepare: what is made before, words for `made_data.py`. variables: of the shell.
    metrics: what it tells; `silent` says why a program tells none. why: what it is here for, in a few words.
    """

    name: str
    environment: str
    command: str
    why: str
    git: str = ""
    commit: str = ""
    paths: tuple[str, ...] = ()
    folder: str = "."
    prepare: tuple[tuple[str, ...], ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    metrics: tuple[Truth, ...] = ()
    silent: str = ""

    @property
    def words(self) -> list[str]:
        """The command as a shell would split it; no shell is used."""
        return shlex.split(self.command)


def read_programs(folder: Path = HERE / "programs") -> dict[str, Program]:
    """All declared programs by name, in the order of the files."""
    programs: dict[str, Program] = {}
    for path in sorted(folder.glob("*.toml")):
        with path.open("rb") as file:
            declared = tomllib.load(file)
        shared = declared.get("repositories", {})
        for number, entry in enumerate(declared.get("program", []), start=1):
            place = f"{path.name}, program {entry.get('name', number)}"
            program = parse_program(entry, shared, place)
            if program.name in programs:
                raise InputError(f"{place}: the name is taken", found=program.name, allowed="a name of its own")
            programs[program.name] = program
    return programs


def parse_program(entry: Mapping[str, Any], repositories: Mapping[str, Any], place: str) -> Program:
    """One entry of a file; `repository` stands for the git address and commit of that name in the same file."""
    given = dict(entry)
    if "repository" in given:
        name = given.pop("repository")
        if name not in repositories:
            raise InputError(f"{place}: no such repository", found=str(name), allowed=", ".join(repositories))
        given |= repositories[name]
    given["metrics"] = tuple(_parse_truth(truth, place) for truth in given.get("metrics", ()))
    given["paths"] = tuple(given.get("paths", ()))
    given["prepare"] = tuple(tuple(words) for words in given.get("prepare", ()))
    _only_keys(given, Program, place)
    program = Program(**given)
    if program.environment not in ENVIRONMENTS:
        raise InputError(f"{place}: environment", found=program.environment, allowed=", ".join(ENVIRONMENTS))
    if bool(program.git) != bool(program.commit):
        raise InputError(f"{place}: a repository is taken at a fixed commit", found=program.git or program.commit)
    if bool(program.metrics) == bool(program.silent):
        raise InputError(f"{place}: metrics, or why there are none", allowed="[[program.metrics]] or silent = …")
    return program


def _parse_truth(given: Mapping[str, Any], place: str) -> Truth:
    _only_keys(given, Truth, place)
    truth = Truth(**given)
    if [bool(truth.line), bool(truth.column), bool(truth.key)].count(True) != 1 or (not truth.line and not truth.file):
        allowed = "line = …, or file = … with line, column or key"
        raise InputError(f"{place}: metric {truth.name}: where its value is known from", allowed=allowed)
    if truth.direction not in DIRECTIONS:
        raise InputError(f"{place}: direction", found=truth.direction, allowed=", ".join(map(repr, DIRECTIONS)))
    for pattern in (truth.name, truth.line):
        try:
            re.compile(pattern)
        except re.error as error:
            raise InputError(f"{place}: not a pattern", found=f"{pattern} ({error})") from error
    return truth


def _only_keys(given: Mapping[str, Any], kind: type, place: str) -> None:
    declared = fields(kind)
    names = [each.name for each in declared]
    unknown = [key for key in given if key not in names]
    if unknown:
        raise InputError(f"{place}: unknown key", found=", ".join(unknown), allowed=", ".join(names))
    required = {"Program": ("name", "environment", "command", "why"), "Truth": ("name", "direction")}[kind.__name__]
    missing = [key for key in required if key not in given]
    if missing:
        raise InputError(f"{place}: missing", found=", ".join(missing), allowed=", ".join(names))
