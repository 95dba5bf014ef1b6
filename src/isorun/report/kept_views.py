"""Views as plain JSON and back, so that a page can be made again where nothing is left of the runs but a file.

Every part is an object with the names of its fields as keys; what has its default is left out. A file may come from
anybody: what is read is checked against the types of the fields, and an error says where it does not fit.
"""

from __future__ import annotations

import enum
import functools
import math
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Final

from isorun.analysis.evidence import Condition
from isorun.errors import InputError
from isorun.report import Column, Listing, Table, View
from isorun.report.figures.description import Axis, Band, Box, Dot, Figure, Legend, Line, Shape, Tick, Tile

__all__ = ["VERSION", "view_from_json", "view_to_json"]

VERSION: Final = 1
"""Raised when a file of before could no longer be read."""

_PARTS: Final = (View, Table, Column, Listing, Condition, Figure, Axis, Tick, Box, Dot, Line, Band, Tile, Legend, Shape)
_NAMES: Final = {part.__name__: part for part in _PARTS}


def view_to_json(view: View) -> dict[str, Any]:
    """All that any renderer shows of the view."""
    return {"version": VERSION, **_written(view)}


def view_from_json(data: Any) -> View:
    """The view that was written; an error where it was not written by `view_to_json`."""
    if not isinstance(data, Mapping) or data.get("version") != VERSION:
        found = data.get("version") if isinstance(data, Mapping) else type(data).__name__
        raise InputError("the page in this file cannot be read", found=f"version {found}", allowed=str(VERSION))
    view: View = _read(View, {key: value for key, value in data.items() if key != "version"}, "page")
    return view


def _written(part: Any) -> Any:
    if is_dataclass(part):
        told = {field.name: getattr(part, field.name) for field in fields(part) if not _is_default(part, field)}
        return {name: _written(value) for name, value in told.items()}
    if isinstance(part, tuple):
        return [_written(item) for item in part]
    if isinstance(part, enum.StrEnum):
        return str(part)
    return float(part) if isinstance(part, float) else part  # also of arrays


def _is_default(part: Any, field: Any) -> bool:
    return field.default is not MISSING and getattr(part, field.name) == field.default


def _read(part: Any, data: Any, place: str) -> Any:
    """One part from its object. place: where in the file it stands, for errors."""
    if not isinstance(data, Mapping):
        raise _misfit(place, data, "an object")
    hints = _hints(part)
    unknown = sorted(set(data) - hints.keys())
    if unknown:
        raise _misfit(f"{place}.{unknown[0]}", data[unknown[0]], f"one of {', '.join(hints)}")
    missing = [field.name for field in fields(part) if field.default is MISSING and field.name not in data]
    if missing:
        raise InputError(
            f"the page in this file has no {place}.{missing[0]}", hint="isorun reproduce … --json wrote it?"
        )
    try:
        return part(**{name: _value(hints[name], value, f"{place}.{name}") for name, value in data.items()})
    except ValueError as error:
        raise InputError(f"the page in this file cannot be read: {place}", found=str(error)) from None


@functools.cache
def _hints(part: Any) -> Mapping[str, Any]:
    return typing.get_type_hints(part, localns=_NAMES)


def _value(kind: Any, value: Any, place: str) -> Any:
    origin = typing.get_origin(kind)
    if origin in (types.UnionType, typing.Union):
        return None if value is None else _value(typing.get_args(kind)[0], value, place)
    if origin is tuple:
        return _tuple(typing.get_args(kind), value, place)
    if is_dataclass(kind):
        return _read(kind, value, place)
    return _plain(kind, value, place)


def _tuple(kinds: Sequence[Any], value: Any, place: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise _misfit(place, value, "a list")
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        return tuple(_value(kinds[0], item, f"{place}[{number}]") for number, item in enumerate(value))
    if len(value) != len(kinds):
        raise _misfit(place, value, f"a list of {len(kinds)}")
    return tuple(_value(kind, item, place) for kind, item in zip(kinds, value, strict=True))


def _plain(kind: Any, value: Any, place: str) -> Any:
    if kind is float:  # strict JSON has null for what is no number
        fits = value is None or (isinstance(value, int | float) and not isinstance(value, bool))
        number = math.nan if value is None else value
    elif kind is Shape:
        fits, number = value in list(Shape), value
    else:
        fits, number = type(value) is kind, value
    if not fits:
        allowed = ", ".join(Shape) if kind is Shape else kind.__name__
        raise _misfit(place, value, allowed)
    return kind(number)


def _misfit(place: str, value: Any, allowed: str) -> InputError:
    return InputError(f"the page in this file cannot be read: {place}", found=repr(value)[:80], allowed=allowed)
