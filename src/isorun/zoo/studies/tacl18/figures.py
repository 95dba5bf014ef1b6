"""Figures 2 and 3, from the numbers alone: AP against RR over the seeds, and how both change from side to side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from isorun.report import Column, Table, count, fixed
from isorun.report.figures.axes import value_axis
from isorun.report.figures.description import Axis, Dot, Figure, Legend, Line
from isorun.report.figures.distributions import strip
from isorun.report.figures.effects import paired_change
from isorun.report.figures.marks import GREY, PUBLISHED, RUN
from isorun.zoo.studies.tacl18.measured import SYSTEMS_OF
from isorun.zoo.studies.tacl18.published import REIMPLEMENTED, SYSTEMS, System
from isorun.zoo.studies.tacl18.seeds import Change, SeedRuns, changes
from isorun.zoo.studies.tacl18.tables import DECIMALS

__all__ = ["figures_of"]

_SEEDS, _SYSTEMS, _REIMPLEMENTED = 0, 3, 1
_FEW: Final = 120
"""More dots are drawn small."""


def figures_of(numbers: Mapping[str, Any]) -> Iterator[Figure]:
    """Every figure that has seeds in it."""
    found = [SeedRuns.from_json(item) for item in numbers["seeds"]]
    yield from _seed_figures(found, published=not numbers["made_data"])
    distribution = _distribution_figure(found)
    if distribution is not None:
        yield distribution
    yield from _change_figures([changes(item) for item in found])


def _seed_figures(found: Sequence[SeedRuns], *, published: bool) -> Iterator[Figure]:
    """Figure 2, a figure a panel. published: whether the published systems belong beside these data."""
    for item in found:
        systems = SYSTEMS[SYSTEMS_OF[item.data]] if published and item.data in SYSTEMS_OF else ()
        lowest = min(value for side in item.sides for value in item.values(side, "AP"))
        shown = [system for system in systems if system.score.value("AP") >= lowest or system.name == REIMPLEMENTED]
        axes = (_common_axis(item, "AP", shown), _common_axis(item, "RR", shown))
        yield from (_seed_figure(item, side, shown, axes) for side in item.sides)


def _common_axis(item: SeedRuns, metric: str, systems: Sequence[System]) -> Axis:
    """One axis for all sides of a data set, so that their panels can be laid beside each other."""
    ours = [value for side in item.sides for value in item.values(side, metric)]
    return value_axis(metric, [*ours, *(system.score.value(metric) for system in systems)])


def _seed_figure(item: SeedRuns, side: str, shown: Sequence[System], axes: tuple[Axis, Axis]) -> Figure:
    ap, rr = item.values(side, "AP"), item.values(side, "RR")
    name, title = f"figure-2-{_slug(side)}-{_slug(item.data)}", f"Figure 2: {item.data}, {side}, over the seeds"
    dots = (*_seed_dots(item, side), *(_system_dot(system) for system in shown))
    return Figure(
        name=name,
        title=title,
        sentence=_seed_sentence(ap, [system for system in shown if system.score.value("AP") < max(ap)], shown),
        x=axes[0],
        y=axes[1],
        data=_points(name, title, ("AP", "RR"), item.sides[side], ap, rr),
        dots=dots,
        legend=tuple(_legend(shown)),
    )


def _seed_dots(item: SeedRuns, side: str) -> Iterator[Dot]:
    small = len(item.sides[side]) > _FEW
    for seed, run in item.sides[side].items():
        text = f"seed {seed}: AP {fixed(run.ap, DECIMALS)}, RR {fixed(run.rr, DECIMALS)}"
        yield Dot(run.ap, run.rr, RUN, _SEEDS, text, small)


def _system_dot(system: System) -> Dot:
    is_model = system.name == REIMPLEMENTED
    series = _REIMPLEMENTED if is_model else _SYSTEMS
    text = f"{system.name}: AP {system.score.ap}, RR {system.score.rr}"
    return Dot(system.score.value("AP"), system.score.value("RR"), PUBLISHED, series, text)


def _legend(shown: Sequence[System]) -> Iterator[Legend]:
    yield Legend("a seed's run", RUN, _SEEDS)
    if any(system.name != REIMPLEMENTED for system in shown):
        yield Legend("a published system", PUBLISHED, _SYSTEMS)
    if any(system.name == REIMPLEMENTED for system in shown):
        yield Legend(f"{REIMPLEMENTED}, as published", PUBLISHED, _REIMPLEMENTED)


def _seed_sentence(ap: Sequence[float], passed: Sequence[System], shown: Sequence[System]) -> str:
    low, high = (fixed(end, DECIMALS) for end in (min(ap), max(ap)))
    sentence = f"AP lies between {low} and {high} over {count(len(ap), 'seed')}"
    if not shown:
        return f"{sentence}."
    return f"{sentence}; the best seed passes {len(passed)} of the {count(len(shown), 'published system')} drawn."


def _change_figures(found: Sequence[tuple[Change, ...]]) -> Iterator[Figure]:
    """Figure 3, a figure a data set: the change of both metrics; and every seed's AP on both sides."""
    for pair in found:
        if pair:
            yield _change_figure(*pair)
            yield _slopes(pair[0])


def _change_figure(ap: Change, rr: Change) -> Figure:
    name = f"figure-3-{_slug(ap.data)}"
    title = f"Figure 3: {ap.data}, change from {ap.sides[0]} to {ap.sides[1]} with the seed fixed"
    small = len(ap.values) > _FEW
    both = list(zip(ap.seeds, ap.values, rr.values, strict=True))
    dots = [Dot(x, y, RUN, _SEEDS, f"seed {seed}: AP {x:+.4f}, RR {y:+.4f}", small) for seed, x, y in both]
    x, y = value_axis("change of AP", [*ap.values, 0.0]), value_axis("change of RR", [*rr.values, 0.0])
    zero = (
        Line(((x.low, 0.0), (x.high, 0.0)), GREY, dashed=True),
        Line(((0.0, y.low), (0.0, y.high)), GREY, dashed=True),
    )
    return Figure(
        name=name,
        title=title,
        sentence=_change_sentence(ap),
        x=x,
        y=y,
        data=_points(name, title, ("change of AP", "change of RR"), ap.seeds, ap.values, rr.values),
        dots=tuple(dots),
        lines=zero,
        legend=(Legend("a seed's run", RUN, _SEEDS), Legend("no change", None, GREY, dashed=True)),
    )


def _change_sentence(ap: Change) -> str:
    higher, lower = (sum(sign * value > 0 for value in ap.values) for sign in (1, -1))
    same = len(ap.values) - higher - lower
    counts = f"higher for {higher}{',' if same else ' and'} lower for {lower}"
    counts += f" and the same for {same}" if same else ""
    ends = " to ".join(f"{value:+.4f}" for value in (min(ap.values), max(ap.values)))
    return f"Of {count(len(ap.values), 'seed')}, on {ap.sides[1]} AP is {counts}; it changes by {ends}."


def _slopes(change: Change) -> Figure:
    labels = [f"seed {seed}" for seed in change.seeds]
    name = f"figure-3-slopes-{_slug(change.data)}"
    title = f"{change.data}: AP of the same seeds on {change.sides[0]} and {change.sides[1]}"
    return paired_change(change.pairs, *change.sides, change.metric, labels=labels, name=name, title=title)


def _distribution_figure(found: Sequence[SeedRuns]) -> Figure | None:
    """How AP is distributed over the seeds, a box a data set and side; None without runs."""
    groups = {f"{item.data}, {side}": item.values(side, "AP") for item in found for side in item.sides}
    if not groups:
        return None
    ranges = [f"{fixed(max(values) - min(values), DECIMALS)} ({name})" for name, values in groups.items()]
    drawn = strip(groups, "AP", name="seed-distribution", title="AP over the seeds")
    return replace(drawn, sentence=f"With nothing but the seed changed, AP ranges over {', '.join(ranges)}.")


def _points(name: str, title: str, heads: tuple[str, str], seeds: Iterable[int], *values: Sequence[float]) -> Table:
    columns = (Column("seed", key=True), *map(Column, heads))
    rows = tuple((str(seed), fixed(x, DECIMALS), fixed(y, DECIMALS)) for seed, x, y in zip(seeds, *values, strict=True))
    return Table(f"data-{name}", f"Data: {title}", columns, rows, folded=True)


def _slug(text: str) -> str:
    return text.lower().replace(",", "").replace(" ", "-")
