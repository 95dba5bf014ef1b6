"""Performance profiles: the share of runs above every threshold, a line an approach with its band."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from isorun.analysis.leaderboards.across_tasks import PerformanceProfile
from isorun.errors import InputError
from isorun.report.figures.axes import value_axis
from isorun.report.figures.description import Axis, Band, Figure, Legend, Line
from isorun.report.figures.ecdf import SHARE_TICKS
from isorun.report.figures.groups import first_lines, left_out
from isorun.report.numbers import UNKNOWN, percentage, significant
from isorun.report.tables import Column, Table

__all__ = ["performance_profiles"]

_MOST_BANDS: Final = 4
"""More bands than these hide the lines; the table has the limits of all."""


def performance_profiles(
    profiles: Mapping[str, PerformanceProfile],
    score: str = "score",
    *,
    name: str = "performance-profiles",
    title: str = "Share of runs above every score",
) -> Figure:
    """The profiles of named approaches, as `isorun.analysis.leaderboards.across_tasks` gives them."""
    if not any(profile.thresholds for profile in profiles.values()):
        raise InputError("there is nothing to draw", found="no profile", allowed="at least one approach")
    ordered = {approach: _in_order(profile) for approach, profile in profiles.items()}
    shown = first_lines(ordered)
    banded = shown if len(ordered) <= _MOST_BANDS else []
    bands = [band for _, profile, series, _ in banded for band in _bands(profile, series)]
    return Figure(
        name=name,
        title=title,
        sentence=_sentence(bool(bands)) + left_out(len(profiles), "approach"),
        x=value_axis(score, [threshold for profile in profiles.values() for threshold in profile.thresholds]),
        y=Axis("share of runs above", -0.03, 1.03, SHARE_TICKS),
        data=_data_table(name, title, ordered),
        lines=tuple(Line(_line(profile), series, dashed=dashed) for _, profile, series, dashed in shown),
        bands=tuple(bands),
        legend=tuple(Legend(approach, None, series, dashed) for approach, _, series, dashed in shown),
    )


def _in_order(profile: PerformanceProfile) -> PerformanceProfile:
    """The profile with its thresholds from low to high."""
    places = sorted(range(len(profile.thresholds)), key=lambda place: profile.thresholds[place])

    def taken(values: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(values[place] for place in places)

    return PerformanceProfile(
        taken(profile.thresholds),
        taken(profile.shares),
        None if profile.lower is None else taken(profile.lower),
        None if profile.upper is None else taken(profile.upper),
    )


def _line(profile: PerformanceProfile) -> tuple[tuple[float, float], ...]:
    return tuple(zip(profile.thresholds, profile.shares, strict=True))


def _bands(profile: PerformanceProfile, series: int) -> Iterator[Band]:
    if profile.lower is not None and profile.upper is not None:
        yield Band(tuple(zip(profile.thresholds, profile.lower, profile.upper, strict=True)), series)


def _sentence(banded: bool) -> str:
    sentence = (
        "A line that is higher everywhere belongs to the better approach; lines that cross rank differently by score"
    )
    return f"{sentence}; bands hold 95 % at each score." if banded else f"{sentence}."


def _data_table(name: str, title: str, profiles: Mapping[str, PerformanceProfile]) -> Table:
    columns = (
        Column("approach", key=True),
        Column("score"),
        Column("runs above", "%"),
        Column("lower", "%"),
        Column("upper", "%"),
    )
    rows = tuple(
        (approach, significant(threshold, 4), percentage(share), _limit(profile.lower, at), _limit(profile.upper, at))
        for approach, profile in profiles.items()
        for at, (threshold, share) in enumerate(zip(profile.thresholds, profile.shares, strict=True))
    )
    return Table(f"data-{name}", f"Data: {title}", columns, rows, folded=True)


def _limit(limits: tuple[float, ...] | None, at: int) -> str:
    return UNKNOWN if limits is None else percentage(limits[at])
