"""Placeholders in commands: `{seed}`, `{config.lr}` and a few more.

Only braces around a name are placeholders, so JSON and other braces in a command need no escaping; `{{name}}` stands
for a literal `{name}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from isorun.errors import StudyError, known_names
from isorun.study.cells import ConfigValue

__all__ = ["FIXED", "config_names", "fill", "names"]

FIXED: Final = ("seed", "repeat", "level", "run_dir")
_CONFIG = "config."
_PATTERN = re.compile(r"\{\{([A-Za-z_][\w.-]*)\}\}|\{([A-Za-z_][\w.-]*)\}")


def names(command: tuple[str, ...]) -> set[str]:
    """All placeholders a command has."""
    found = (match.group(2) for part in command for match in _PATTERN.finditer(part))
    return {name for name in found if name}


def config_names(command: tuple[str, ...]) -> set[str]:
    """The config values a command asks for."""
    return {name.removeprefix(_CONFIG) for name in names(command) if name.startswith(_CONFIG)}


def check(command: tuple[str, ...], where: str) -> None:
    """Refuse a placeholder that can never be filled."""
    for name in sorted(names(command)):
        if name not in FIXED and not name.startswith(_CONFIG):
            allowed = ", ".join(f"{{{item}}}" for item in (*FIXED, "config.NAME"))
            hint = f"write {{{{{name}}}}} for a literal {{{name}}}"
            raise StudyError(f"{where}: there is no placeholder {{{name}}}", allowed=allowed, hint=hint)


def fill(
    command: tuple[str, ...], fixed: Mapping[str, str], config: Mapping[str, ConfigValue], where: str
) -> tuple[str, ...]:
    """The command with every placeholder replaced; numbers are written so that they read back exactly."""
    return tuple(_PATTERN.sub(_replacement(fixed, config, where), part) for part in command)


def _replacement(
    fixed: Mapping[str, str], config: Mapping[str, ConfigValue], where: str
) -> Callable[[re.Match[str]], str]:
    def replace(match: re.Match[str]) -> str:
        literal, name = match.groups()
        if literal:
            return f"{{{literal}}}"
        if not name.startswith(_CONFIG):
            return fixed[name]
        key = name.removeprefix(_CONFIG)
        if key not in config:
            raise StudyError(
                f"{where}: the command asks for {{{name}}}, which the config does not have",
                allowed=known_names(key, sorted(config)),
                hint=f"add {key} to the config, or take the placeholder out",
            )
        return _as_text(config[key])

    return replace


def _as_text(value: ConfigValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
