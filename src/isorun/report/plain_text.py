"""Text from users and their trainings, made fit for any report."""

from __future__ import annotations

import html
import unicodedata
from typing import Final

__all__ = ["escaped", "harmless"]

_UNFIT: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def harmless(text: str) -> str:
    """The text on one line, without characters that could rewrite a screen, turn its direction, or not be written.

    Those are control and format characters, lone surrogates and unassigned ones; white space becomes a space.
    """
    return "".join(_fit(char) for char in text)


def escaped(text: str) -> str:
    """Harmless text for HTML and SVG, also within quoted attributes."""
    return html.escape(harmless(text))


def _fit(char: str) -> str:
    if char in "\n\r\t":
        return " "
    return "\N{REPLACEMENT CHARACTER}" if unicodedata.category(char) in _UNFIT else char
