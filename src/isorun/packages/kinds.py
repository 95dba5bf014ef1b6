"""What the fields of a record are: a package that says otherwise is refused, before anything is made of its runs.

A store checks what isorun wrote; here somebody else did. A text where a number belongs would surprise whoever computes
with it much later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any, Final

from isorun.study.cells import Cell
from isorun.study.records import ITEM_BYTES, RunRecord

__all__ = ["check_cell", "check_kinds", "check_told"]

_Check = Callable[[Any], bool]


def _is_whole(value: object) -> bool:
    return type(value) is int


def _is_number(value: object) -> bool:
    return type(value) in (int, float)


def _is_text(value: object) -> bool:
    return type(value) is str


def _is_document(value: object) -> bool:
    return isinstance(value, Mapping)


def _is_texts_by_name(value: object) -> bool:
    return isinstance(value, Mapping) and all(type(item) is str for item in value.values())


def _or_none(check: _Check) -> _Check:
    return lambda value: value is None or check(value)


def _all(check: _Check) -> _Check:
    return lambda values: all(map(check, values))


def _has(**checks: _Check) -> _Check:
    return lambda item: all(check(getattr(item, name)) for name, check in checks.items())


_RECORD: Final[dict[str, type | _Check]] = {
    "attempt": lambda value: _is_whole(value) and 0 < value < 2**63,
    "exit_code": _or_none(_is_whole),
    "signal": str,
    "reason": str,
    "launch": str,
    "seed_used": _or_none(_is_whole),
    "started_at": str,
    "wall_seconds": _is_number,
    "cpu_seconds": _is_number,
    "peak_memory_bytes": int,
    "digests": _is_texts_by_name,
    "environment": _is_document,
    "code": _is_document,
    "sources": _is_texts_by_name,
    "log_tail": str,
    "startup_seconds": _or_none(_is_number),
    "devices": _all(_is_text),
    "where": _is_texts_by_name,
    "watched": _all(_is_document),
    "notes": _all(_has(code=_is_text, message=_is_text)),
    "seeded": _all(_has(call=_is_text, value=_is_text, where=_is_text, replaced=_is_text)),
    "predictions": _all(
        _has(
            name=_is_text,
            step=_or_none(_is_number),
            kind=_is_text,
            dtype=lambda value: type(value) is str and value in ITEM_BYTES,
            shape=_all(lambda size: _is_whole(size) and size >= 0),
            data=_is_text,
        )
    ),
}
"""By the keys of a run's line. A type stands for values of just this type, which takes no call."""
_CELL: Final[dict[str, _Check]] = {
    "approach": _is_text,
    "command": _all(_is_text),
    "config": _is_text,
    "config_values": lambda value: all(type(item) in (str, int, float, bool) for item in value.values()),
    "environment": _is_text,
    "environment_content": _is_document,
    "take_seeds": lambda value: type(value) is bool,
    "withheld": _is_text,
    "known_as": _is_text,
}


_TOLD: Final[dict[str, type]] = {
    **dict.fromkeys(("results", "per_class", "digests", "where"), dict),
    **dict.fromkeys(("devices", "notes", "seeded", "predictions", "watched"), list),
}
_LISTED: Final = {"notes", "seeded"}
_KNOWN: Final = {"record", "cell", "sources"} | {item.name for item in fields(RunRecord)} - {"origins", "series"}


def check_told(told: Mapping[str, Any]) -> None:
    """ValueError for keys that no record has, and for values that are not even of the form of a field."""
    if not told.keys() <= _KNOWN:
        raise ValueError(f"a run with {min(told.keys() - _KNOWN)!r:.60}, which this isorun does not know")
    for name in told.keys() & _TOLD.keys():
        if not isinstance(told[name], _TOLD[name]):
            raise ValueError(f"{name} of a run is not what it should be")
    for name in told.keys() & _LISTED:
        if not all(isinstance(item, list) for item in told[name]):
            raise ValueError("a note or a seed of a run is not what it should be")


def check_kinds(record: RunRecord, told: Iterable[str]) -> None:
    """ValueError for a field that is not what it should be. told: the keys that were there; others have defaults."""
    for name in told:
        check = _RECORD.get(name)
        if check is None:
            continue
        value = getattr(record, "origins" if name == "sources" else name)
        if not (type(value) is check if isinstance(check, type) else check(value)):
            raise ValueError(f"{name} of run {record.run_id} is not what it should be")


def check_cell(cell: Cell) -> None:
    """ValueError for a field of a cell that is not what it should be."""
    for name, check in _CELL.items():
        if not check(getattr(cell, name)):
            raise ValueError(f"{name} of a cell is not what it should be")
