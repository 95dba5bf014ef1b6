"""Parts of an environment that few have, from what a user writes: switches, and packages of its own.

Each has a short form beside the other keys of an environment (`onednn = "off"`, `packages = ["NAME==VERSION"]`), which
is written out here, and checked.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from isorun.errors import StudyError
from isorun.study.parsing import PACKAGES, as_mapping, as_table, as_text, as_texts, shown
from isorun.worker.frameworks.switches import STREAM_NAMES, SWITCHES

__all__ = ["package_settings", "switch_value", "with_parts_apart"]

_PACKAGE_KEYS: Final = {"packages": "requirements", "lock": "lock"}
"""The short form of an environment with packages of its own: what the settings of that kind are called beside it."""


def with_parts_apart(table: Mapping[str, Any], where: str, keys: tuple[str, ...]) -> Mapping[str, Any]:
    """The table with its short forms written out; a key that is neither one of these nor anything else is refused.

    keys: those of every environment.
    """
    known = (*keys, *_PACKAGE_KEYS)
    as_table(table, where, (*known, "switches", *SWITCHES))
    apart = as_table(table.get("switches", {}), f"{where}.switches", tuple(SWITCHES))
    asked = {**apart, **{name: table[name] for name in SWITCHES if name in table}}
    checked = {name: switch_value(name, asked[name], f"{where}.{name}") for name in sorted(asked)}
    rest = {key: item for key, item in table.items() if key in known}
    return _with_packages({**rest, "switches": checked}, where)


def switch_value(name: str, value: Any, where: str) -> str:
    """A value that a switch takes."""
    row = SWITCHES[name]
    if name == "streams" and isinstance(value, (list, tuple)):
        value = "+".join(as_texts(value, where)) or "none"
    text = {True: "on", False: "off"}[value] if isinstance(value, bool) else as_text(value, where)
    if text in row.values or (row.other[0] and re.fullmatch(row.other[0], text)):
        return _in_order(text) if name == "streams" else text
    raise StudyError(f"{where}: {text!r} is not a value of this switch", allowed=row.allowed)


def _in_order(text: str) -> str:
    """Random streams in one order, each once, so that one request is one environment."""
    words, at, seed = text.partition("@")
    named = words.split("+")
    ordered = [name for name in STREAM_NAMES if name in named]
    return f"{'+'.join(ordered) or words}{at}{seed}"


def _with_packages(table: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """The table with its short form written out."""
    short = {setting: table[key] for key, setting in _PACKAGE_KEYS.items() if key in table}
    if not short:
        return table
    if table.get("kind", PACKAGES) != PACKAGES or set(short) & set(as_mapping(table.get("settings", {}), where)):
        found = f"kind = {table['kind']!r}" if "kind" in table else "settings with the same"
        raise StudyError(f"{where}: packages are said twice, or for another kind", found=found, hint="keep one of them")
    rest = {key: item for key, item in table.items() if key not in _PACKAGE_KEYS}
    return {**rest, "kind": PACKAGES, "settings": {**table.get("settings", {}), **short}}


def package_settings(value: Any, where: str, folder: Path | None) -> dict[str, Any]:
    """The settings of an environment with packages: requirements, and a lock with the hash of its content.

    folder: where the lock is looked for; None for settings that were read before.
    """
    table = as_table(value, where, ("requirements", "lock", "sha256"))
    wanted = sorted(set(as_texts(table.get("requirements", []), f"{where}.requirements")))
    for text in wanted:
        if not text.strip() or text.startswith("-") or not text.isprintable():
            allowed = 'such as "NAME==VERSION"; options of an installer come from its own variables and files'
            raise StudyError(f"{where}.requirements: that is no requirement", found=shown(text), allowed=allowed)
    lock = as_text(table.get("lock", ""), f"{where}.lock")
    if not wanted and not lock:
        raise StudyError(f"{where}: there are no packages", allowed='packages = ["NAME==VERSION"], or lock = "FILE"')
    digest = as_text(table.get("sha256", ""), f"{where}.sha256") or (_hash_of(lock, where, folder) if lock else "")
    return {**({"requirements": wanted} if wanted else {}), **({"lock": lock, "sha256": digest} if lock else {})}


def _hash_of(lock: str, where: str, folder: Path | None) -> str:
    path = (folder or Path()) / lock
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        found = f"{path}: {error.strerror or error}"
        raise StudyError(
            f"{where}.lock: it cannot be read", found=found, allowed="a file such as requirements.txt"
        ) from None
