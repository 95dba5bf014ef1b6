"""How wide text is drawn, without a font at hand: enough to leave room for it."""

from __future__ import annotations

import unicodedata
from typing import Final

__all__ = ["text_width"]

_EM: Final = 13.0
"""The size of labels in pixels. Shares of it are those of DejaVu Sans, the widest of the fonts a browser may take."""
_NARROW: Final = frozenset("iljtfrI.,:;'|!()[]/\\ -\"\N{NO-BREAK SPACE}")
_WIDE: Final = frozenset("mwMW@%−+<>=~—")


def text_width(text: str) -> float:
    """The width of a line of label text in pixels, rather too large than too small."""
    return _EM * sum(_share(char) for char in text)


def _share(char: str) -> float:
    if char in _NARROW:
        return 0.42
    if char in _WIDE or unicodedata.east_asian_width(char) in "WF":
        return 1.0
    return 0.72 if char.isupper() else 0.64
