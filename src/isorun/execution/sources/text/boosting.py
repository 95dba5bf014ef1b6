r"""The lines of CatBoost, whose values have the name of a split and no other.

0:	learn: 0.9028405	test: 0.9478223	best: 0.9478223 (0)	total: 52.7ms	remaining: 264ms

Which metric it is, and so which direction is better, is not said anywhere in the output.
"""

from __future__ import annotations

import re

from isorun.execution.sources.text.numbers import read_number
from isorun.execution.sources.text.rows import Row, Value

__all__ = ["read_catboost"]

_LINE = re.compile(r"\s*(?P<round>\d{1,9}):\t(?P<values>learn: .*?)\s*(?:total: .*)?$")
_VALUE = re.compile(r"(?P<name>learn|test\d*|best): (?P<value>\S+)")


def read_catboost(line: str) -> Row | None:
    """The values of one round; None for any other line."""
    found = _LINE.match(line)
    if found is None:
        return None
    numbers = {part["name"]: read_number(part["value"]) for part in _VALUE.finditer(found["values"])}
    values = [Value(name, value, "name: value") for name, value in numbers.items() if value is not None]
    return Row(values, step=float(found["round"]))
