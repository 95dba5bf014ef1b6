"""How numbers are written, in one place.

- Accuracies are shown in percent, differences between them in points (percentage points).
- A spread is written with two significant digits, and the mean with as many decimals as its spread.
- What is not known is an em dash, never a zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

__all__ = [
    "UNKNOWN",
    "NumberStyle",
    "count",
    "decimals_for",
    "fixed",
    "memory",
    "p_value",
    "percentage",
    "seconds",
    "significant",
    "style_for",
    "whole",
]

UNKNOWN: Final = "—"
_MOST_DECIMALS: Final = 8


@dataclass(frozen=True, slots=True)
class NumberStyle:
    """How one metric is written: multiplied by `factor`, with a unit for values and one for differences.

    difference_sign: the short form of the unit of differences, for headings of columns.
    """

    factor: float = 1.0
    unit: str = ""
    difference_unit: str = ""
    difference_sign: str = ""

    def value(self, value: float | None, sd: float | None) -> str:
        """A value with as many decimals as its standard deviation supports, without the unit."""
        return UNKNOWN if value is None else fixed(value * self.factor, self._decimals(sd, value))

    def difference(self, difference: float | None, sd: float | None = None) -> str:
        """A spread or difference, without the unit; `sd` sets the decimals, the difference itself without it.

        No difference at all is a plain 0, so that it cannot be taken for a small one that was rounded.
        """
        if not difference:
            return UNKNOWN if difference is None else "0"
        return fixed(difference * self.factor, self._decimals(difference if sd is None else sd, difference))

    def with_unit(self, text: str) -> str:
        """A written value with its unit."""
        return f"{text} {self.unit}" if self.unit else text

    def difference_with_unit(self, text: str) -> str:
        """A written difference with its unit."""
        return f"{text} {self.difference_unit}" if self.difference_unit else text

    def _decimals(self, sd: float | None, value: float) -> int:
        if sd:
            return decimals_for(sd * self.factor)
        return 2 if self.unit else _decimals_alone(value * self.factor)


def style_for(scale: str) -> NumberStyle:
    """The style of a metric's scale: "fraction", "percent" or "" (see `isorun.analysis.studies.judged`)."""
    if scale in {"fraction", "percent"}:
        return NumberStyle(100.0 if scale == "fraction" else 1.0, "%", "points", "pts")
    return NumberStyle()


def decimals_for(sd: float, digits: int = 2) -> int:
    """Decimals that show `digits` significant digits of a standard deviation."""
    if sd == 0 or not math.isfinite(sd):
        return 2
    if abs(sd) >= 1e9:
        return 0
    leading = math.floor(math.log10(abs(float(f"{sd:.{digits - 1}e}"))))
    return min(max(digits - 1 - leading, 0), _MOST_DECIMALS)


def _decimals_alone(value: float) -> int:
    """Four significant digits for a number that has no spread to go by."""
    return 2 if value == 0 else decimals_for(value, digits=4)


def fixed(value: float | None, decimals: int) -> str:
    """A number with fixed decimals; never a negative zero; powers of ten where it would not fit."""
    if value is None:
        return UNKNOWN
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("∞" if value > 0 else "-∞")
    # As many decimals as there are at most would show less than two digits of it.
    too_small = 10.0 ** (1 - decimals) if decimals >= _MOST_DECIMALS else 0.5 * 10.0**-decimals
    if value and (abs(value) >= 1e9 or abs(value) < too_small):
        return f"{value:.1e}"
    text = f"{value:,.{decimals}f}"
    return text.lstrip("-") if not float(text.replace(",", "")) else text


def significant(value: float | None, digits: int = 3) -> str:
    """A number with so many significant digits, and no decimals beyond them."""
    return UNKNOWN if value is None else fixed(value, decimals_for(value, digits) if value else 0)


def whole(value: float | None) -> str:
    """A count as such; a mean of counts with one decimal."""
    return UNKNOWN if value is None else fixed(value, 0 if value == int(value) else 1)


def percentage(ratio: float | None) -> str:
    """A ratio as percent with one decimal, unit left to the column."""
    return UNKNOWN if ratio is None else f"{100.0 * ratio:,.1f}"


def seconds(value: float | None) -> str:
    """Seconds with three significant digits, unit left to the column."""
    return significant(value, 3)


def memory(size: float | None) -> str:
    """Bytes as MiB, unit left to the column."""
    return UNKNOWN if size is None else fixed(size / 2**20, 0)


def p_value(p: float | None) -> str:
    """A p-value with three decimals, or the bound below them."""
    if p is None:
        return UNKNOWN
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def count(number: int, noun: str) -> str:
    """A count with its noun: 1 run, 2 runs."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
