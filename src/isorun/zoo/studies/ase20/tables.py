"""Tables 1 to 3 in the paper's layout, each row of ours above the published one, and what the levels do.

That is Levene's test between them, different weights of identical runs, and runs that never learned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from isorun.analysis.evidence.run_units import FINAL_WEIGHTS, INITIAL_WEIGHTS
from isorun.analysis.spreads import Spread
from isorun.analysis.studies.group_result import GroupResult
from isorun.analysis.studies.study_result import LevelComparison
from isorun.report import UNKNOWN, Column, Table, p_value, percentage, seconds, significant, style_for
from isorun.report.study_tables import NO_DIGEST
from isorun.study.cells import Level
from isorun.zoo.paper import OURS, THEIRS
from isorun.zoo.studies.ase20.design import METRIC
from isorun.zoo.studies.ase20.measured import (
    Extreme,
    ImageCounts,
    Measured,
    PartResult,
    by_level,
    class_extreme,
    default_against_fixed_seed,
    distinct_weights,
    of_papers_data,
    overall_extreme,
)
from isorun.zoo.studies.ase20.published import (
    DATA_SIZES,
    LEVENE_SIGNIFICANT,
    TABLE_2,
    TABLE_3,
    WEAK_RUNS,
    PublishedSpread,
    PublishedTime,
)
from isorun.zoo.studies.ase20.scales import PUBLISHED_EPOCHS, PUBLISHED_RUNS, TrainedNetwork

__all__ = [
    "POINTS",
    "accuracy_tables",
    "few_runs_notes",
    "level_tables",
    "published_spread",
    "shared_times_notes",
    "spread_cells",
    "table_1",
    "time_tables",
]

POINTS: Final = style_for("fraction")


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


def few_runs_notes(groups: Sequence[Measured]) -> Iterator[str]:
    """A note on every group with too few runs to differ."""
    few = [group for group in groups if group.finished < 2]
    if few:
        named = "; ".join(f"{group.label}: {group.finished} of {group.planned}" for group in few)
        yield f"{UNKNOWN}: fewer than two finished runs ({named})."


def shared_times_notes(groups: Sequence[Measured]) -> Iterator[str]:
    """A note on times that were taken while runs shared a GPU."""
    most = max((group.at_once for group in groups), default=1)
    if most > 1:
        yield f"Up to {most} of our runs shared a GPU: their times include waiting for each other and are not judged."


def table_1(parts: Sequence[PartResult], at_hand: Mapping[str, tuple[int, int]]) -> Table:
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
    trained = [(part, network) for part in parts if not part.planned.is_apart for network in part.planned.networks]
    rows = [row for part, network in trained for row in _settings(part, network, at_hand)]
    all_note = ("all: as many as the data set has.",) if any("all" in row for row in rows) else ()
    notes = (
        *all_note,
        "Validation is 3 of 4 of the images that are not for training.",
        "#parameters: trainable ones; the networks are built here and counted to the same number.",
    )
    return Table("table-1", "Table 1: data, networks and settings", columns, tuple(rows), notes)


def _settings(
    part: PartResult, network: TrainedNetwork, at_hand: Mapping[str, tuple[int, int]]
) -> Iterator[tuple[str, ...]]:
    data, size = part.planned.data, part.planned.size
    first, counted = (data, network.name), f"{network.parameters:,}"
    images = _images(part, at_hand.get(data, (0, 0)))
    yield (*first, OURS, *images, counted, str(size.epochs), str(size.runs), network.optimizer)
    if data in DATA_SIZES:
        epochs = str(PUBLISHED_EPOCHS[network.option])
        images = _image_cells(DATA_SIZES[data])
        yield (*first, THEIRS, *images, counted, epochs, str(PUBLISHED_RUNS), network.optimizer)


def _images(part: PartResult, there: tuple[int, int]) -> tuple[str, str]:
    """As the runs recorded them; where they did not, as many as were asked for or are at hand."""
    if part.images:
        train, others = zip(*map(_image_cells, part.images), strict=True)
        return " or ".join(dict.fromkeys(train)), " or ".join(dict.fromkeys(others))
    size = part.planned.size
    return _number_used(size.train_images, there[0]), _number_used(size.test_images, there[1])


def _image_cells(images: ImageCounts) -> tuple[str, str]:
    train, validation, test = images
    return f"{train:,}", f"{validation:,} + {test:,}"


def _number_used(asked: int, there: int) -> str:
    """How many images were used; all of the published ones where neither says less."""
    limits = [number for number in (asked, there) if number]
    return f"{min(limits):,}" if limits else "all"


_SPREAD_NOTE: Final = (
    "Diff: best minus worst run, in points. SDev: standard deviation over runs (n - 1), (CI): its 90 % chi-square "
    "interval. Of both selections the one with the larger Diff, named in the row, as in the paper; per class the "
    "class with the largest Diff. The two may differ within a row."
)
_DETERMINISTIC_NOTE: Final = "The level deterministic is ours: the paper has no such setting."


def accuracy_tables(groups: Sequence[Measured]) -> Iterator[Table]:
    """Table 2; the same without weak runs where there are some, and for further data where any two runs can differ."""
    own = of_papers_data(groups)
    others = [group for group in groups if not group.is_papers_own]
    if any(group.finished for group in own):
        rows = tuple(row for group in by_level(own) for row in _accuracy_rows(group))
        notes = (_SPREAD_NOTE, _DETERMINISTIC_NOTE, *_chance_notes(own), *few_runs_notes(own))
        yield Table("table-2", "Table 2: differences in accuracy between identical runs", _columns(), rows, notes)
    strong = [group for group in groups if _is_left_without_weak(group)]
    if strong:
        rows = tuple(_our_accuracy(group, without_weak=True) for group in by_level(strong))
        title = "Table 2 without weak runs, where there are some and two others"
        yield Table("table-2-without-weak", title, _columns(), rows)
    if any(group.finished > 1 for group in others):
        rows = tuple(_our_accuracy(group) for group in by_level(others))
        title = "Table 2 on further data, which the paper does not have"
        yield Table("table-2-other-data", title, _columns(), rows, tuple(few_runs_notes(others)))


def _is_left_without_weak(group: Measured) -> bool:
    """Whether there are weak runs, and two or more others."""
    has_weak = group.group is not None and any(judged.weak_runs for judged in group.group.selections)
    return has_weak and overall_extreme(group.group, without_weak=True) is not None


def _columns() -> tuple[Column, ...]:
    titles = ("Diff", "SDev", "(CI)", "selection")
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
        overall, per_class = published_spread(published.overall), published_spread(published.per_class)
        cells = (*overall, UNKNOWN, *per_class, UNKNOWN, UNKNOWN)
        yield (str(group.level), group.network.name, THEIRS, str(PUBLISHED_RUNS), *cells)


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
        overall.selection if overall else UNKNOWN,
        *spread_cells(_spread(per_class)),
        per_class.selection if per_class else UNKNOWN,
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


def time_tables(groups: Sequence[Measured]) -> Iterator[Table]:
    """Table 3, for the paper's own data."""
    own = of_papers_data(groups)
    if any(group.finished for group in own):
        yield _table_3(own)


def _table_3(groups: Sequence[Measured]) -> Table:
    titles = ("Diff (s)", "RelDiff (%)", "RelSDev (%)")
    columns = (
        Column("setting", key=True),
        Column("network", key=True),
        Column("from", key=True),
        *(Column(title, "", "Time, best loss") for title in titles),
        *(Column(title, "", "Time, best accuracy") for title in titles),
    )
    rows = tuple(row for group in by_level(groups) for row in _time_rows(group))
    notes = (
        "Time until the epoch that the selection picks. Diff: slowest minus fastest run.",
        "RelDiff: Diff over the fastest run. RelSDev: standard deviation over mean.",
        *shared_times_notes(groups),
        *few_runs_notes(groups),
    )
    return Table("table-3", "Table 3: differences in time to convergence", columns, rows, notes)


def _time_rows(group: Measured) -> Iterator[tuple[str, ...]]:
    names = (str(group.level), group.network.name)
    yield (*names, OURS, *_our_times(group.group, "best-loss"), *_our_times(group.group, "best-accuracy"))
    published = TABLE_3.get(group.level, {}).get(group.network.name)
    if published is not None:
        yield (*names, THEIRS, *_published_times(published.best_loss), *_published_times(published.best_accuracy))


def _our_times(group: GroupResult | None, judged: str) -> tuple[str, ...]:
    if group is None:
        return (UNKNOWN,) * 3
    time = group.selection(judged).every.seconds
    return seconds(time.max_difference), percentage(time.relative_difference), percentage(time.relative_sd)


def _published_times(time: PublishedTime) -> tuple[str, ...]:
    return f"{time.difference:,.0f}", f"{time.relative_difference:,.1f}", f"{time.relative_sd:.1f}"


def level_tables(parts: Sequence[PartResult], groups: Sequence[Measured]) -> Iterator[Table]:
    """The three tables; each only with rows: the weak runs where there are some, or where the paper has some."""
    compared = [(part, item) for part, item in default_against_fixed_seed(parts) if item.sd_a is not None]
    if compared:
        yield _levene_table(compared)
    if any(group.finished for group in groups):
        yield _weights_table(groups)
    weak = tuple(_weak_rows(groups))
    if weak:
        yield _weak_table(weak)


def _levene_table(compared: Sequence[tuple[PartResult, LevelComparison]]) -> Table:
    columns = (
        Column("network", key=True),
        Column("data", key=True),
        Column("selection", key=True),
        Column("default", group="SDev (points)"),
        Column("fixed-seed", group="SDev (points)"),
        Column("W"),
        Column("p"),
        Column("p, paper"),
    )
    rows = tuple(_levene_row(part, item) for part, item in compared)
    reasons = dict.fromkeys(f"{UNKNOWN}: {item.why_not}." for _, item in compared if item.why_not)
    notes = (
        "Levene's test, centred at medians: a small p says that the spread is not the same at both levels.",
        *_chance_note(compared),
        *reasons,
    )
    return Table("levene", "Levene's test: default against fixed-seed (section 5.2)", columns, rows, notes)


def _chance_note(compared: Sequence[tuple[PartResult, LevelComparison]]) -> Iterator[str]:
    """As in the paper every network is tested by itself; with several, one of them is easily significant by chance."""
    tested = len({(item.approach, part.planned.data) for part, item in compared if item.test is not None})
    if tested > 1:
        chance = f"{100 * (1 - 0.95**tested):.0f} %"
        yield f"Each row is one test: in {tested} networks chance alone gives a p below 0.05 in {chance} of cases."


def _levene_row(part: PartResult, item: LevelComparison) -> tuple[str, ...]:
    own = any(network.data == part.planned.data for network in part.planned.networks)
    published = ("< 0.05" if item.approach in LEVENE_SIGNIFICANT else "> 0.05") if own else UNKNOWN
    statistic, p = (item.test.statistic, item.test.p) if item.test else (None, None)
    spreads = (POINTS.difference(item.sd_a), POINTS.difference(item.sd_b))
    return (item.approach, part.planned.data, item.selection, *spreads, significant(statistic), p_value(p), published)


def _weights_table(groups: Sequence[Measured]) -> Table:
    columns = (
        Column("network", key=True),
        Column("data", key=True),
        Column("level", key=True),
        Column("runs"),
        Column("initial", group="different weights"),
        Column("final", group="different weights"),
    )
    rows = tuple(
        (group.network.name, group.data, str(group.level), str(group.finished), *_weight_cells(group.group))
        for group in groups
    )
    note = "At fixed-seed and deterministic all runs of a row have one seed. 1: bit for bit the same weights."
    unknown = (NO_DIGEST,) if any(UNKNOWN in row for row in rows) else ()
    title = "Different weights among identical runs (ours; the paper has none)"
    return Table("weights", title, columns, rows, (note, *unknown))


def _weight_cells(group: GroupResult | None) -> tuple[str, str]:
    counts = [distinct_weights(group, name) if group else None for name in (INITIAL_WEIGHTS, FINAL_WEIGHTS)]
    initial, final = (UNKNOWN if count is None else f"{count[0]}" for count in counts)
    return initial, final


def _weak_table(rows: tuple[tuple[str, ...], ...]) -> Table:
    columns: tuple[Column, ...] = (
        Column("network", key=True),
        Column("data", key=True),
        Column("level", key=True),
        Column("ours"),
        Column("paper"),
        Column("our runs (%)", key=True),
    )
    if all(row[-1] == UNKNOWN for row in rows):
        columns, rows = columns[:-1], tuple(row[:-1] for row in rows)
    note = "Weak: below 20 % accuracy with 10 classes, twice what guessing gives; with 100 classes below 2 %."
    return Table("weak-runs", "Weak runs: trainings that learned next to nothing", columns, rows, (note,))


def _weak_rows(groups: Sequence[Measured]) -> Iterator[tuple[str, ...]]:
    for group in groups:
        weak = _weak_runs(group.group) if group.group else {}
        published = WEAK_RUNS.get((group.level, group.network.name)) if group.is_papers_own else None
        if weak or published:
            ours = f"{len(weak)} of {group.finished}"
            paper = f"{published[0]} of {published[1]}" if published else UNKNOWN
            named = ", ".join(f"{run} ({100 * value:.1f})" for run, value in weak.items()) or UNKNOWN
            yield (group.network.name, group.data, str(group.level), ours, paper, named)


def _weak_runs(group: GroupResult) -> dict[str, float]:
    """The runs that are weak under any judged, with their accuracy under the first such judged."""
    found: dict[str, float] = {}
    for judged in group.selections:
        for run in judged.runs:
            if run.weak:
                found.setdefault(run.run_id, run.selected.values[METRIC])
    return found
