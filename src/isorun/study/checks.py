"""Checks of single values: the value in its type, or an error that says what was found and what is allowed."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any, Final

from isorun.errors import StudyError, known_names

__all__ = [
    "as_boolean",
    "as_duration",
    "as_list",
    "as_mapping",
    "as_name",
    "as_number",
    "as_one_of",
    "as_size",
    "as_table",
    "as_text",
    "as_texts",
    "as_whole",
    "each_once",
    "shown",
]

_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([kMGT]i?B)", re.IGNORECASE)
_SIZE_UNITS: Final = {
    **{f"{letter}B": 1000**power for power, letter in enumerate("KMGT", 1)},
    **{f"{letter}IB": 1024**power for power, letter in enumerate("KMGT", 1)},
}
_LONGEST_SECONDS: Final = 3650 * 86400
"""Ten years: no clock of an operating system waits for longer."""


def as_mapping(value: Any, where: str) -> Mapping[str, Any]:
    """A table with text keys."""
    if not isinstance(value, Mapping):
        raise StudyError(f"{where}: it must be a table", found=shown(value), allowed=f"[{where}]")
    for key in value:
        if not isinstance(key, str):
            raise StudyError(f"{where}: a key must be a text", found=shown(key))
    return value


def as_table(value: Any, where: str, keys: tuple[str, ...]) -> Mapping[str, Any]:
    """A table with no other keys than these."""
    table = as_mapping(value, where)
    for key in table:
        if key not in keys:
            raise StudyError(f"{where}: there is no key {key!r}", allowed=known_names(key, keys))
    return table


def as_name(value: Any, where: str) -> str:
    """A name people can read."""
    text = as_text(value, where)
    if not text.strip() or len(text) > 100 or not text.isprintable():
        raise StudyError(f"{where}: that is not a usable name", found=repr(text[:40]), allowed="1 to 100 characters")
    return text


def as_list(value: Any, where: str, allowed: str) -> list[Any]:
    """A list."""
    if isinstance(value, (list, tuple, range)):
        return list(value)
    raise StudyError(f"{where}: it must be a list", found=shown(value), allowed=allowed)


def as_texts(value: Any, where: str) -> tuple[str, ...]:
    """A list of texts."""
    return tuple(as_text(item, where) for item in as_list(value, where, "a list of texts"))


def as_text(value: Any, where: str) -> str:
    """A text."""
    if isinstance(value, str):
        return value
    raise StudyError(f"{where}: it must be a text", found=shown(value))


def as_boolean(value: Any, where: str) -> bool:
    """True or false."""
    if isinstance(value, bool):
        return value
    raise StudyError(f"{where}: it must be true or false", found=shown(value))


def as_number(value: Any, where: str) -> float:
    """A finite number."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max:
        return float(value)
    raise StudyError(f"{where}: it must be a finite number", found=shown(value))


def as_whole(value: Any, where: str, low: int, high: int) -> int:
    """A whole number within bounds."""
    if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
        return value
    raise StudyError(f"{where}: it must be a whole number", found=shown(value), allowed=f"{low} to {high}")


def as_size(value: Any, where: str) -> int:
    """A number of bytes: a whole number, or text such as "8 GB" or "512 MiB"."""
    match = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    size = int(float(match[1]) * _SIZE_UNITS[match[2].upper()]) if match else value
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= 2**62:
        raise StudyError(f"{where}: it must be a size", found=shown(value), allowed='bytes, or text such as "8 GB"')
    return size


def as_one_of(value: Any, where: str, allowed: tuple[str, ...]) -> str:
    """One of a few words."""
    text = as_text(value, where)
    if text not in allowed:
        raise StudyError(f"{where}: {text!r} is not known", allowed=known_names(text, allowed))
    return text


def as_duration(value: Any, where: str) -> float | None:
    """A duration in seconds: "90s", "10m", "2h", "1d", or a number."""
    if value is None:
        return None
    if isinstance(value, str):
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|m|h|d)", value.strip())
        if match:
            value = float(match.group(1)) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[match.group(2)]
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= _LONGEST_SECONDS:
        return float(value)
    allowed = '"90s", "10m", "2h", or seconds; at most 3650d'
    raise StudyError(f"{where}: it is not a duration", found=shown(value), allowed=allowed)


def each_once(items: list[Any], where: str) -> tuple[Any, ...]:
    """The items, refused when one is there twice."""
    seen = set()
    for item in items:
        if item in seen:
            raise StudyError(f"{where}: {item} is there more than once", hint="to run it more often, raise repeats")
        seen.add(item)
    return tuple(items)


def shown(value: Any) -> str:
    """A value as it is shown in a message: its type and a short form."""
    try:
        shown = repr(value)
    except ValueError:  # Python writes no number of more than some thousand digits
        shown = "with thousands of digits"
    return f"{type(value).__name__} {shown if len(shown) <= 60 else shown[:57] + '…'}"
