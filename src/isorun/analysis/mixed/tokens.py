"""The words of a formula, each with its place, so that an error can point at it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from isorun.errors import InputError

__all__ = ["Token", "formula_error", "tokenize"]

EXAMPLE: Final = "accuracy ~ experiment + (1|seed)"
_SHOWN: Final = 60
"""Characters shown on either side of the place, where a formula is too long to be shown whole."""
_FOUND_INDENT: Final = " " * len("  found:   ")
_TOKEN: Final = re.compile(
    r"\s*(?:(?P<name>`[^`]+`|[^\W\d][\w.]*|\.[^\W\d][\w.]*)|(?P<number>\d+(?:\.\d+)?)|(?P<sign>\|\||[~+\-*:/()|^]))"
)


@dataclass(frozen=True, slots=True)
class Token:
    """A word of a formula.

    kind: "name", "number", "sign" or "end"; text: the word, backticks removed; place: its position in the formula.
    """

    kind: str
    text: str
    place: int


def formula_error(formula: str, place: int, what: str, *, allowed: str = "", hint: str = "") -> InputError:
    """An error that shows the formula, or what surrounds the place in a long one, with a caret under `place`."""
    start = max(0, place - _SHOWN) if len(formula) > 2 * _SHOWN else 0
    shown = ("…" if start else "") + formula[start : start + 2 * _SHOWN]
    shown += "…" if start + 2 * _SHOWN < len(formula) else ""
    pointed = f"{shown}\n{_FOUND_INDENT}{' ' * (place - start + (start > 0))}^"
    return InputError(f"the formula cannot be used: {what}", found=pointed, allowed=allowed, hint=hint)


def tokenize(formula: str) -> tuple[Token, ...]:
    """The words of `formula`, closed by an "end" token.

    Tabs and line breaks must have been turned into spaces, so that the caret stands where it should.
    """
    tokens: list[Token] = []
    place, end = 0, len(formula.rstrip())
    while place < end:
        match = _TOKEN.match(formula, place)
        if match is None or match.lastgroup is None:
            raise _unknown_character(formula, place)
        tokens.append(Token(match.lastgroup, match.group(match.lastgroup).strip("`"), match.start(match.lastgroup)))
        place = match.end()
    return (*tokens, Token("end", "", end))


def _unknown_character(formula: str, place: int) -> InputError:
    place += len(formula[place:]) - len(formula[place:].lstrip())
    return formula_error(
        formula,
        place,
        f"{formula[place]!r} has no meaning here",
        allowed="column names (`in backticks` when they hold spaces), 0, 1, and the signs ~ + - * : / ( ) | ||",
    )
