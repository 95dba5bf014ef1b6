"""Lines that are a whole JSON object or a printed Python dictionary.

Names are kept exactly as written; nested objects are joined by "/". Nothing is evaluated: a printed dictionary is
read by a pattern that knows quoted keys and numbers, and nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from isorun.sources.names import is_metric, is_never
from isorun.sources.numbers import read_number
from isorun.sources.rows import Row, Value

__all__ = ["EPOCH_KEYS", "STEP_KEYS", "flattened", "number_in", "read_structured"]

EPOCH_KEYS = frozenset(["epoch", "ep"])
STEP_KEYS = frozenset(["step", "global_step", "iteration", "iter", "steps", "_step"])

_DICT_PART = re.compile(
    r"""(?P<close>\})|(?P<quote>['"])(?P<key>[^'"]{1,200})(?P=quote)\s*:\s*(?:(?P<open>\{)|
        (?:np\.\w+\(|tensor\(|array\()?
        (?:(?P<mark>['"])(?P<text>[^'"]{1,40})(?P=mark)|(?P<number>[-+]?(?:\d[\d.]*(?:[eE][-+]?\d+)?|nan|inf)))
        (?=\s*[,})]))""",
    re.VERBOSE,
)
_DEEPEST = 8


def read_structured(line: str) -> Row | None:
    """The values of a line that ends in a JSON object or a printed dictionary; None for any other line."""
    start = line.find("{")
    if start < 0 or not line.rstrip().endswith("}"):
        return None
    text = line[start:].rstrip()
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return _row(_dict_pairs(text), "dictionary line")
    return _row(flattened(parsed), "JSON line")


def flattened(data: Mapping[str, Any], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """The leaves of nested objects, their keys joined by "/"."""
    for key, value in data.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and depth < _DEEPEST:
            yield from flattened(value, f"{name}/", depth + 1)
        else:
            yield name, value


def number_in(value: Any) -> float | None:
    """A JSON number, or a string that holds one; booleans are none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return _as_float(value)
    return read_number(value) if isinstance(value, str) and len(value) <= 40 else None


def _as_float(value: int | float) -> float | None:
    try:
        return float(value)
    except OverflowError:
        return None


def _dict_pairs(text: str) -> Iterator[tuple[str, Any]]:
    """The pairs of a printed dictionary, inner ones under both keys: `{'learn': {'MAE': 1}}` is `learn/MAE`."""
    outer: list[str] = []
    for match in _DICT_PART.finditer(text):
        if match["open"]:
            outer.append(match["key"])
        elif match["close"]:
            outer = outer[:-1]
        else:
            yield "/".join([*outer, match["key"]]), match["text"] or match["number"]


def _row(pairs: Iterator[tuple[str, Any]], form: str) -> Row:
    row = Row()
    for key, raw in pairs:
        number = number_in(raw)
        if number is None:
            continue
        last_part = key.rsplit("/", 1)[-1].lower()
        if last_part in EPOCH_KEYS:
            row.epoch = number
        elif last_part in STEP_KEYS:
            row.step = number
        elif is_metric(key):
            row.values.append(Value(key, number, form))
        elif not is_never(key):
            row.doubtful.append(Value(key, number, form))
    row.final = any("test" in value.name.lower() or "final" in value.name.lower() for value in row.values)
    row.settle()
    return row
