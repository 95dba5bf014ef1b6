"""What of a package would be run, for people who see it before it is: its commands, variables and environments.

A package may come from anybody. Whatever decides which programs run is in here, and nothing of it was started yet. Runs
of one name may have different contents: shown are those that were recorded, and those that a study of them all has,
which takes one command for a name and one config, whether or not any run had both.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from isorun.share.declared_again import as_declared, environment_of
from isorun.study.cells import Cell, fill_placeholders

__all__ = ["SeenFirst", "seen_of"]


@dataclass(frozen=True, slots=True)
class SeenFirst:
    """Commands as they are run, variables that are set, and what else of environments decides which programs run."""

    commands: tuple[str, ...]
    variables: tuple[str, ...]
    environments: tuple[str, ...]

    def lines(self) -> list[tuple[str, str]]:
        """For people, a name and a text each."""
        named = (("command", self.commands), ("variable", self.variables), ("environment", self.environments))
        return [(name, text) for name, texts in named for text in texts]


def seen_of(cells: Iterable[Cell], document: Mapping[str, Any]) -> SeenFirst:
    """What these cells would run. document: the study that they are declared by, which says what to import first."""
    cells = list(cells)
    contents = {
        json.dumps([cell.environment, content], sort_keys=True, default=str): (cell.environment, content)
        for cell in cells
        for content in [environment_of(cell, document)]
    }
    variables = (
        f"{name}={_unbroken(value)}"
        for _, content in contents.values()
        for name, value in content.get("env", {}).items()
    )
    environments = (f"{name}: {said}" for name, content in contents.values() if (said := _said_of(content)))
    return SeenFirst(
        tuple(dict.fromkeys(map(_shown_command, [*cells, *as_declared(cells)]))),
        tuple(dict.fromkeys(variables)),
        tuple(dict.fromkeys(environments)),
    )


def _said_of(environment: Mapping[str, Any]) -> str:
    """What of an environment decides which programs run, beside its variables."""
    made = f"{environment['kind']} {environment.get('settings')}" if environment.get("kind") else ""
    python = f"python {_unbroken(environment['python'])}" if environment.get("python") else ""
    imports = f"imports {', '.join(map(str, environment['preload']))}" if environment.get("preload") else ""
    return "; ".join(filter(None, (made, python, _code_of(environment.get("code")), imports)))


def _code_of(version: Any) -> str:
    """The version of the code that is checked out for it, and what of the folder is linked in."""
    if not isinstance(version, Mapping):
        return f"code {version}" if version else ""
    linked = f" with {', '.join(map(str, version['links']))}" if version.get("links") else ""
    return f"code {version.get('commit') or version.get('ref')}{linked}"


def _shown_command(cell: Cell) -> str:
    """The command as it is run, with its settings; seeds and folders are filled in for each run."""
    words = fill_placeholders(cell.command, {}, cell.config_values, f"approaches.{cell.approach}")
    return " ".join(shlex.quote(word) if word.isprintable() else _unbroken(word) for word in words)


def _unbroken(text: Any) -> str:
    """A text on one line that cannot be taken for another one.

    Where a line ends decides what a shell makes of it: behind a `#` the next line would look like more of a comment.
    """
    shown = str(text)
    if shown.isprintable():
        return shown
    return f"$'{''.join(_escaped(char) for char in shown)}'"


def _escaped(char: str) -> str:
    """As a shell would read it between $' and '."""
    if char.isprintable():
        return f"\\{char}" if char in "\\'" else char
    return char.encode("unicode_escape").decode("ascii")
