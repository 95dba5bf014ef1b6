"""What the levels do: Levene's test between them, different weights of identical runs, and runs that never learned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from isorun.analysis.evidence.run_units import FINAL_WEIGHTS, INITIAL_WEIGHTS
from isorun.analysis.studies.group_result import GroupResult
from isorun.analysis.studies.study_result import LevelComparison
from isorun.report.numbers import UNKNOWN, p_value, significant
from isorun.report.tables import Column, Table
from isorun.study.levels import Level
from isorun.zoo.studies.ase20.cells import POINTS
from isorun.zoo.studies.ase20.design import METRIC
from isorun.zoo.studies.ase20.measured import Measured, PartResult
from isorun.zoo.studies.ase20.published import LEVENE_SIGNIFICANT, WEAK_RUNS

__all__ = ["default_against_fixed_seed", "distinct_weights", "level_tables"]


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


def default_against_fixed_seed(parts: Sequence[PartResult]) -> Iterator[tuple[PartResult, LevelComparison]]:
    """Levene's test between the two levels of the paper, under every rule."""
    pair = {str(Level.DEFAULT), str(Level.FIXED_SEED)}
    for part in parts:
        for item in part.result.levels if part.result and not part.planned.is_ours else ():
            if {item.level_a, item.level_b} == pair:
                yield part, item


def distinct_weights(group: GroupResult, digest: str = FINAL_WEIGHTS) -> tuple[int, int] | None:
    """How many different weights came out of how many runs; None where no run left the digest."""
    counts = [count for same in group.identical if (count := same.digest(digest)) is not None]
    return (sum(count.distinct for count in counts), sum(count.runs for count in counts)) if counts else None


def _levene_table(compared: Sequence[tuple[PartResult, LevelComparison]]) -> Table:
    columns = (
        Column("network", key=True),
        Column("data", key=True),
        Column("judged at", key=True),
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
    unknown = (f"{UNKNOWN}: no run left such a digest.",) if any(UNKNOWN in row for row in rows) else ()
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
    """The runs that are weak under any rule, with their accuracy under the first such rule."""
    found: dict[str, float] = {}
    for rule in group.selections:
        for run in rule.runs:
            if run.weak:
                found.setdefault(run.run_id, run.selected.values[METRIC])
    return found
