"""The seeds of Crane (TACL 2018): what bash 4.3 draws after `RANDOM=1234`, values that came before left out.

The generator is Park and Miller's step on an unsigned 64-bit state, without their correction of negative values, cut to
15 bits; a value equal to the one just before it is drawn again. Bash 5.1 and later draw other numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from isorun.errors import InputError

__all__ = ["COUNT", "bash43_random", "qa_seeds"]

COUNT: Final = 200
_MOST: Final = 10_000
_START: Final = 1234
_STATE: Final = 1 << 64
_SIGN: Final = 1 << 63


def qa_seeds(count: int = COUNT) -> tuple[int, ...]:
    """The first `count` seeds, in the order in which the paper's script used them."""
    if not 1 <= count <= _MOST:
        raise InputError("that many seeds cannot be drawn", found=str(count), allowed=f"1 to {_MOST}")
    distinct: dict[int, None] = {}
    for value in bash43_random(_START):
        distinct[value] = None
        if len(distinct) == count:
            break
    return tuple(distinct)


def bash43_random(seed: int) -> Iterator[int]:
    """Endlessly what $RANDOM gives in bash 4.3 on a 64-bit machine after RANDOM=seed."""
    state, last = seed % _STATE, 0
    while True:
        state = _step(state)
        value = state & 32767
        if value != last:
            last = value
            yield value


def _step(state: int) -> int:
    """C's arithmetic: an unsigned quotient and remainder, then products of signed longs, kept unsigned."""
    state = state or 123459876
    high, low = _signed(state // 127773), _signed(state % 127773)
    return (16807 * low - 2836 * high) % _STATE


def _signed(value: int) -> int:
    return value - _STATE if value >= _SIGN else value
