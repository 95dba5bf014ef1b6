"""Tables 1, 2 and 3 in the paper's layout, each row of ours above the published one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from isorun.analysis.spreads.spread import Spread
from isorun.analysis.studies.group_result import GroupResult
from isorun.report.numbers import UNKNOWN, percentage, seconds
from isorun.report.tables import Column, Table
from isorun.study.levels import Level
from isorun.zoo.studies.ase20.cells import OURS, PAPER, published_spread, spread_cells
from isorun.zoo.studies.ase20.design import PlannedPart
from isorun.zoo.studies.ase20.measured import Extreme, Measured, class_extreme, of_papers_data, overall_extreme
from isorun.zoo.studies.ase20.networks import TrainedNetwork
from isorun.zoo.studies.ase20.published import DATA_SIZES, TABLE_2, TABLE_3, PublishedTime
from isorun.zoo.studies.ase20.sizes import PUBLISHED_EPOCHS, PUBLISHED_RUNS

__all__ = ["accuracy_tables", "table_1", "table_3"]

_SPREAD_NOTE: Final = (
    "Diff: best minus worst run, in points. SDev: standard deviation over runs (n - 1), (CI): its 90 % chi-square "
    "interval. Of both selection rules the one with the larger Diff; per class the class with the largest Diff."
)
_DETERMINISTIC_NOTE: Final = "The level deterministic is ours: the paper has no such setting."


def table_1(planned: Sequence[PlannedPart], at_hand: Mapping[str, tuple[int, int]]) -> Table:
    """Data, networks and settings. at_hand: images for training and others, of data sets that are not complete."""
    columns = (
        Column("data", key=True),
        Column("network", key=True),
        Column("from", key=True),
        Column("train", group="#images"),
        Column("val + test", group="#images"),
        Column("#parameters"),
        Column("#epochs"),
        Column("runs"),
        Column("optimizer", key=True),
    )
    trained = [(part, network) for part in planned if not part.factors for network in part.networks]
    rows = [row for part, network in trained for row in _settings(part, network, at_hand.get(part.data, (0, 0)))]
    notes = (
        "all: as many as the data set has. Validation is 3 of 4 of the images that are not for training.",
        "#parameters: trainable ones; the networks are built here and counted to the same number.",
    )
    return Table("table-1", "Table 1: data, networks and settings", columns, tuple(rows), notes)


def _settings(part: PlannedPart, network: TrainedNetwork, there: tuple[int, int]) -> Iterator[tuple[str, ...]]:
    size = part.size
    images = map(_number_used, (size.train_images, size.test_images), there)
    first = (part.data, network.name)
    counted = f"{network.parameters:,}"
    yield (*first, OURS, *images, counted, str(size.epochs), str(size.runs), network.optimizer)
    if part.data in DATA_SIZES:
        train, validation, test = DATA_SIZES[part.data]
        epochs = str(PUBLISHED_EPOCHS[network.option])
        held_out = f"{validation:,} + {test:,}"
        yield (*first, PAPER, f"{train:,}", held_out, counted, epochs, str(PUBLISHED_RUNS), network.optimizer)


def _number_used(asked: int, there: int) -> str:
    """How many images were used; all of the published ones where neither says less."""
    limits = [number for number in (asked, there) if number]
    return f"{min(limits):,}" if limits else "all"


def accuracy_tables(groups: Sequence[Measured]) -> Iterator[Table]:
    """Table 2; the same for further data, and without weak runs where there are some."""
    own = of_papers_data(groups)
    others = [group for group in groups if not group.is_papers_own]
    if own:
        rows = tuple(row for group in _by_level(own) for row in _accuracy_rows(group))
        notes = (_SPREAD_NOTE, _DETERMINISTIC_NOTE, *_chance_notes(own), *_lacking(own))
        yield Table("table-2", "Table 2: differences in accuracy between identical runs", _columns(), rows, notes)
    strong = [group for group in groups if _is_left_without_weak(group)]
    if strong:
        rows = tuple(_our_accuracy(group, without_weak=True) for group in _by_level(strong))
        title = "Table 2 without weak runs, where there are some and two others"
        yield Table("table-2-without-weak", title, _columns(), rows)
    if others:
        rows = tuple(_our_accuracy(group) for group in _by_level(others))
        title = "Table 2 on further data, which the paper does not have"
        yield Table("table-2-other-data", title, _columns(), rows, tuple(_lacking(others)))


def _is_left_without_weak(group: Measured) -> bool:
    """Whether there are weak runs, and two or more others."""
    has_weak = group.group is not None and any(rule.weak_runs for rule in group.group.rules)
    return has_weak and overall_extreme(group.group, without_weak=True) is not None


def _columns() -> tuple[Column, ...]:
    titles = ("Diff", "SDev", "(CI)")
    return (
        Column("setting", key=True),
        Column("network", key=True),
        Column("from", key=True),
        Column("n"),
        *(Column(title, "", "overall (points)") for title in titles),
        *(Column(title, "", "per class (points)") for title in (*titles, "class")),
    )


def _accuracy_rows(group: Measured) -> Iterator[tuple[str, ...]]:
    yield _our_accuracy(group)
    published = TABLE_2.get(group.level, {}).get(group.network.name)
    if published is not None:
        cells = (*published_spread(published.overall), *published_spread(published.per_class), UNKNOWN)
        yield (str(group.level), group.network.name, PAPER, str(PUBLISHED_RUNS), *cells)


def _our_accuracy(group: Measured, *, without_weak: bool = False) -> tuple[str, ...]:
    name = group.network.name if group.is_papers_own else f"{group.network.name} on {group.data}"
    overall = overall_extreme(group.group, without_weak=without_weak)
    per_class = class_extreme(group.group, without_weak=without_weak)
    runs = overall.spread.n if overall else group.finished
    return (
        str(group.level),
        name,
        OURS,
        str(runs),
        *spread_cells(_spread(overall)),
        *spread_cells(_spread(per_class)),
        per_class.class_name if per_class and per_class.difference else UNKNOWN,
    )


def _chance_notes(groups: Sequence[Measured]) -> Iterator[str]:
    """For each level whether its widest gap of a class is more than so few test images give by chance."""
    for level in Level:
        gaps = [(gap, item) for item in groups if item.group and item.level is level for gap in item.group.gaps]
        widest = max(gaps, key=lambda pair: pair[0].gap, default=None)
        if widest is not None and widest[0].gap > 0:
            yield f"{widest[1].label}, {widest[0].sentence}."


def _spread(extreme: Extreme | None) -> Spread | None:
    return extreme.spread if extreme else None


def table_3(groups: Sequence[Measured]) -> Table:
    """Time to convergence."""
    titles = ("Diff (s)", "RelDiff (%)", "RelSDev (%)")
    columns = (
        Column("setting", key=True),
        Column("network", key=True),
        Column("from", key=True),
        *(Column(title, "", "Time, best loss") for title in titles),
        *(Column(title, "", "Time, best accuracy") for title in titles),
    )
    rows = tuple(row for group in _by_level(of_papers_data(groups)) for row in _time_rows(group))
    notes = (
        "Time until the epoch that the rule picks. Diff: slowest minus fastest run.",
        "RelDiff: Diff over the fastest run. RelSDev: standard deviation over mean.",
        *_lacking(of_papers_data(groups)),
    )
    return Table("table-3", "Table 3: differences in time to convergence", columns, rows, notes)


def _time_rows(group: Measured) -> Iterator[tuple[str, ...]]:
    names = (str(group.level), group.network.name)
    yield (*names, OURS, *_our_times(group.group, "best-loss"), *_our_times(group.group, "best-accuracy"))
    published = TABLE_3.get(group.level, {}).get(group.network.name)
    if published is not None:
        yield (*names, PAPER, *_published_times(published.best_loss), *_published_times(published.best_accuracy))


def _our_times(group: GroupResult | None, rule: str) -> tuple[str, ...]:
    if group is None:
        return (UNKNOWN,) * 3
    time = group.rule(rule).every.seconds
    return seconds(time.max_difference), percentage(time.relative_difference), percentage(time.relative_sd)


def _published_times(time: PublishedTime) -> tuple[str, ...]:
    return f"{time.difference:,.0f}", f"{time.relative_difference:,.1f}", f"{time.relative_sd:.1f}"


def _by_level(groups: Sequence[Measured]) -> list[Measured]:
    place: Callable[[Measured], int] = lambda group: list(Level).index(group.level)  # noqa: E731 - a key for sorting
    return sorted(groups, key=place)


def _lacking(groups: Sequence[Measured]) -> Iterator[str]:
    """A note on every group with too few runs to differ."""
    few = [group for group in groups if group.finished < 2]
    if few:
        named = "; ".join(f"{group.label}: {group.finished} of {group.planned}" for group in few)
        yield f"{UNKNOWN}: fewer than two finished runs ({named})."
