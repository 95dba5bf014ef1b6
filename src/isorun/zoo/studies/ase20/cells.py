"""How the paper's numbers and ours are written in the cells of its tables."""

from __future__ import annotations

from typing import Final

from isorun.analysis.spreads.spread import Spread
from isorun.report.numbers import UNKNOWN, style_for
from isorun.zoo.studies.ase20.published import PublishedSpread

__all__ = ["OURS", "PAPER", "POINTS", "published_spread", "spread_cells"]

POINTS: Final = style_for("fraction")
OURS: Final = "ours"
PAPER: Final = "paper"


def spread_cells(spread: Spread | None) -> tuple[str, str, str]:
    """Diff, SDev and its 90 % interval of our runs, in points."""
    if spread is None or spread.n < 2:
        return UNKNOWN, UNKNOWN, UNKNOWN
    interval = UNKNOWN
    if spread.sd_interval is not None and spread.sd:
        low, high = (POINTS.difference(end, spread.sd) for end in spread.sd_interval)
        interval = f"{low}\N{EN DASH}{high}"
    return POINTS.difference(spread.max_difference, spread.sd), POINTS.difference(spread.sd), interval


def published_spread(spread: PublishedSpread) -> tuple[str, str, str]:
    """The same as published."""
    if spread.sd is None or spread.sd_interval is None:
        return f"{spread.difference:.1f}", "< 0.1", "< 0.1"
    low, high = spread.sd_interval
    return f"{spread.difference:.1f}", f"{spread.sd:.1f}", f"{low:.1f}\N{EN DASH}{high:.1f}"
