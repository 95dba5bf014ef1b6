"""Regular expressions that can take exponential time.

Python's matcher cannot be interrupted from another thread, so that a pattern which backtracks without end would hang
the run that it watches. Such patterns have an unbounded repetition inside a repeated group.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["has_nested_repeat"]

_UNIT = re.compile(
    r"""(?:(?P<open>\((?P<atomic>\?>)?)|(?P<close>\))|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.)
        (?P<endless>[*+]|\{\d*,\})?(?P<keeps>\+)?""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(slots=True)
class _Group:
    """A group that is open: whether it is atomic, and whether a repetition in it can give back what it took."""

    atomic: bool
    gives_back: bool = False


def has_nested_repeat(pattern: str) -> bool:
    """Whether a group that is repeated without bound contains an unbounded repetition that can give back."""
    groups = [_Group(atomic=False)]
    for unit in _UNIT.finditer(pattern):
        gives_back = unit["endless"] is not None and unit["keeps"] is None
        if unit["open"]:
            groups.append(_Group(atomic=unit["atomic"] is not None))
        elif unit["close"] and len(groups) > 1:
            closed = groups.pop()
            inner = closed.gives_back and not closed.atomic
            if inner and gives_back:
                return True
            groups[-1].gives_back |= inner or gives_back
        else:
            groups[-1].gives_back |= gives_back
    return False
