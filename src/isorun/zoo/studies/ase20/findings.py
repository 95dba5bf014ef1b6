"""The paper's findings held against our runs, and all that these say, gathered once for whatever shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from isorun.analysis.studies.conditions import FEWEST_RUNS
from isorun.analysis.studies.group_result import GroupResult
from isorun.report import UNKNOWN, Column, Table, count, p_value, percentage
from isorun.study.cells import Level
from isorun.study.records import RunRecord
from isorun.zoo.paper import Request
from isorun.zoo.studies.ase20.design import PlannedPart, planned_parts, study_of
from isorun.zoo.studies.ase20.example import Example, examples
from isorun.zoo.studies.ase20.factors import FactorShares, factor_shares
from isorun.zoo.studies.ase20.libraries import LibraryComparison, library_comparisons
from isorun.zoo.studies.ase20.measured import (
    Extreme,
    Measured,
    PartResult,
    analysed,
    class_extreme,
    default_against_fixed_seed,
    distinct_weights,
    gpu_runs_at_once,
    measured_groups,
    of_papers_data,
    overall_extreme,
    time_extreme,
)
from isorun.zoo.studies.ase20.nested import Nested, nested_of
from isorun.zoo.studies.ase20.published import FINDINGS, LEVENE_SIGNIFICANT
from isorun.zoo.studies.ase20.tables import POINTS, shared_times_notes

__all__ = ["Finding", "Findings", "find", "findings", "findings_table"]

_NOT_JUDGED: Final = "not judged"
_EXPECTED_TIME_DIFFERENCE: Final = 0.10
"""Most people the authors asked expect less than this (Finding 8)."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding of the paper. seen: whether our runs show it, too; None where they cannot say."""

    name: str
    claim: str
    published: str
    ours: str
    seen: bool | None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)


def findings(
    parts: Sequence[PartResult], groups: Sequence[Measured], shown: Sequence[Example], *, is_smoke: bool = False
) -> tuple[Finding, ...]:
    """All findings on accuracy and time, in the paper's order, and what deterministic kernels do.

    Groups of too few runs are not asked. is_smoke: nothing is judged, whatever the numbers are.
    """
    own = [group for group in of_papers_data(groups) if group.is_judged]
    found = _all(parts, own, shown)
    return tuple(replace(item, seen=None) for item in found) if is_smoke else found


def _all(parts: Sequence[PartResult], own: Sequence[Measured], shown: Sequence[Example]) -> tuple[Finding, ...]:
    return (
        _accuracy("1", Level.DEFAULT, own),
        _accuracy("2", Level.FIXED_SEED, own),
        _classes("3a", Level.DEFAULT, own),
        _classes("3b", Level.FIXED_SEED, own),
        _time("4a", Level.DEFAULT, own),
        _time("4b", Level.FIXED_SEED, own),
        _weak(own),
        _levene(parts),
        _example(shown),
        _deterministic(own),
    )


def findings_table(found: Sequence[Finding], groups: Sequence[Measured]) -> Table:
    """The findings, ours beside the published ones. groups: what they were found in."""
    columns = (
        Column("finding", key=True),
        Column("seen", key=True),
        Column("what it says", key=True),
        Column("paper", key=True),
        Column("ours", key=True),
    )
    words = {True: "yes", False: "no", None: _NOT_JUDGED}
    rows = tuple((item.name, words[item.seen], item.claim, item.published, item.ours) for item in found)
    notes = (
        "Seen: accuracies differ at all; classes by more than the whole; times by more than 10 %; p below 0.05.",
        "10 % is what most people that the authors asked stay below (Finding 8).",
        f"{_NOT_JUDGED}: a smoke run, fewer than {FEWEST_RUNS} runs a group, or runs that cannot say.",
        *shared_times_notes(of_papers_data(groups)),
    )
    return Table("findings", "The findings, held against these runs", columns, rows, notes)


def _largest(
    groups: Sequence[Measured],
    level: Level,
    extreme: Callable[[GroupResult | None], Extreme | None],
    size: Callable[[Extreme], float],
) -> tuple[Measured, Extreme] | None:
    found = [(group, item) for group in groups if group.level is level and (item := extreme(group.group))]
    return max(found, key=lambda pair: size(pair[1]), default=None)


def _accuracy(name: str, level: Level, groups: Sequence[Measured]) -> Finding:
    published = f"up to {FINDINGS[f'accuracy-{level}']:g} points"
    claim = f"Accuracy differs between {level} runs{', weak ones left out' if level is Level.DEFAULT else ''}"
    largest = _largest(groups, level, lambda group: overall_extreme(group, without_weak=True), lambda e: e.difference)
    if largest is None:
        return Finding(name, claim, published, UNKNOWN, None)
    group, extreme = largest
    ours = f"{_points(group, extreme)}{_with_weak(level, groups, extreme)}"
    return Finding(name, claim, published, ours, extreme.difference > 0.0)


def _with_weak(level: Level, groups: Sequence[Measured], strong: Extreme) -> str:
    """What the largest difference is when weak runs count, where that is more: nothing is left out in silence."""
    every = _largest(groups, level, overall_extreme, lambda extreme: extreme.difference)
    if every is None or every[1].difference <= strong.difference:
        return ""
    return f"; with weak runs {_points(*every)}"


def _classes(name: str, level: Level, groups: Sequence[Measured]) -> Finding:
    published = f"up to {FINDINGS[f'class-{level}']:g} points"
    claim = f"Between {level} runs single classes differ more than the overall accuracy"
    largest = _largest(groups, level, class_extreme, lambda extreme: extreme.difference)
    if largest is None:
        return Finding(name, claim, published, UNKNOWN, None)
    group, extreme = largest
    overall = overall_extreme(group.group)
    seen = extreme.difference > (overall.difference if overall else 0.0)
    return Finding(name, claim, published, _points(group, extreme), seen)


def _points(group: Measured, extreme: Extreme) -> str:
    if not extreme.difference:
        return "no difference in any network"
    in_class = f", class {extreme.class_name}" if extreme.class_name else ""
    amount = POINTS.difference_with_unit(POINTS.difference(extreme.difference))
    return f"up to {amount} ({group.network.name}{in_class}{_caveat(group)})"


def _caveat(group: Measured) -> str:
    """Differences between trainings that were cut short are those of unfinished trainings."""
    if not group.is_cut_short or group.mean is None:
        return ""
    return f"; still improving after {count(group.epochs, 'epoch')}, mean accuracy {100 * group.mean:.0f} %"


def _time(name: str, level: Level, groups: Sequence[Measured]) -> Finding:
    published = f"up to {FINDINGS[f'time-{level}']:,.1f} %"
    claim = f"Time to convergence differs between {level} runs"
    undisturbed = [group for group in groups if group.level is level and group.at_once == 1]
    largest = _largest_time(undisturbed, level)
    is_shared = largest is None
    largest = largest or _largest_time(groups, level)
    if largest is None:
        return Finding(name, claim, published, UNKNOWN, None)
    group, extreme = largest
    ratio = extreme.spread.relative_difference or 0.0
    waiting = f"; {group.at_once} runs shared a GPU" if is_shared else ""
    ours = f"up to {percentage(ratio)} % ({group.network.name}, {extreme.selection}{waiting})"
    return Finding(name, claim, published, ours, None if is_shared else ratio > _EXPECTED_TIME_DIFFERENCE)


def _largest_time(groups: Sequence[Measured], level: Level) -> tuple[Measured, Extreme] | None:
    return _largest(groups, level, time_extreme, lambda extreme: extreme.spread.relative_difference or 0.0)


def _weak(groups: Sequence[Measured]) -> Finding:
    runs = [(len(judged.weak_runs), len(judged.runs)) for judged in _default_selections(groups)]
    weak, total = sum(pair[0] for pair in runs), sum(pair[1] for pair in runs)
    ours = f"{weak} of {count(total, 'default run')} of all networks" if total else UNKNOWN
    seen = weak > 0 if total else None
    return Finding("5.1 weak", "Some default runs never learn (weak models)", "4 of 16 (LeNet5)", ours, seen)


def _default_selections(groups: Sequence[Measured]) -> Iterator[Any]:
    for group in groups:
        if group.level is Level.DEFAULT and group.group and group.group.finished:
            yield max(group.group.selections, key=lambda judged: len(judged.weak_runs))


def _levene(parts: Sequence[PartResult]) -> Finding:
    claim = "Fixing the seed changes the spread of one network significantly, of LeNet5"
    own = [
        (item.approach, item.test.p)
        for part, item in default_against_fixed_seed(parts)
        if item.test is not None and item.test.p is not None and part.planned.networks[0].data == part.planned.data
        if _has_enough(part)
    ]
    found: dict[str, float] = {}
    for name, p in own:
        found[name] = min(p, found.get(name, 1.0))
    significant = {name: p for name, p in found.items() if p < 0.05}
    named = ", ".join(f"{name} (p {p_value(p)})" for name, p in significant.items()) or "none"
    ours = f"{named} of {count(len(found), 'network')} tested" if found else UNKNOWN
    return Finding("5.2 Levene", claim, "LeNet5 of 6 networks", ours, _is_papers_levene(set(found), set(significant)))


def _has_enough(part: PartResult) -> bool:
    finished = [group.finished for group in part.result.groups] if part.result else []
    return min(finished, default=0) >= FEWEST_RUNS


def _is_papers_levene(tested: set[str], significant: set[str]) -> bool | None:
    """Whether the same networks are significant; None where those were not tested, and no other is significant."""
    if not significant and not tested & LEVENE_SIGNIFICANT:
        return None
    return significant == LEVENE_SIGNIFICANT


def _example(shown: Sequence[Example]) -> Finding:
    claim = "ResNet56 is better than ResNet38 over all runs, and single runs can say the opposite"
    published = "ResNet56 +0.9 points, p < 0.01; single runs can say the opposite"
    item = next((item for item in shown if item.level is Level.FIXED_SEED), None)
    if item is None:
        return Finding("5.2 example", claim, published, UNKNOWN, None)
    comparison = item.comparison
    p, larger = comparison.mann_whitney.p, comparison.difference
    opposite = f"single runs {'can' if item.wrong_claim > 0 else 'cannot'} say the opposite"
    ours = f"ResNet56 {100 * larger:+.1f} points, p {p:.2g}; {opposite}"
    is_few = min(comparison.a.values.size, comparison.b.values.size) < FEWEST_RUNS
    seen = None if is_few else item.is_papers_result and item.wrong_claim > 0
    return Finding("5.2 example", claim, published, ours, seen)


def _deterministic(groups: Sequence[Measured]) -> Finding:
    claim = "With deterministic kernels identical runs end with the same weights"
    counts = [
        distinct
        for group in groups
        if group.level is Level.DETERMINISTIC and group.group and group.finished > 1
        if (distinct := distinct_weights(group.group)) is not None
    ]
    same = sum(distinct == 1 for distinct, _ in counts)
    ours = f"in {same} of {count(len(counts), 'network')}" if counts else UNKNOWN
    return Finding("ours", claim, "not tried", ours, same == len(counts) if counts else None)


@dataclass(frozen=True, slots=True)
class Findings:
    """Parts with their results, identical runs by network and level, and what follows from them."""

    parts: tuple[PartResult, ...]
    groups: tuple[Measured, ...]
    examples: tuple[Example, ...]
    shares: tuple[FactorShares, ...]
    findings: tuple[Finding, ...]
    nested: Nested | None = None
    libraries: tuple[LibraryComparison, ...] = ()

    @property
    def planned(self) -> tuple[PlannedPart, ...]:
        """The parts as they were planned."""
        return tuple(part.planned for part in self.parts)

    @property
    def begun(self) -> tuple[PartResult, ...]:
        """The parts of which anything was recorded; a warning names the others."""
        return tuple(part for part in self.parts if part.result is not None)

    @property
    def begun_groups(self) -> tuple[Measured, ...]:
        """The groups of those parts, also such as have no run yet."""
        return tuple(group for group in self.groups if group.group is not None)

    @property
    def finished(self) -> int:
        """How many runs finished in all."""
        return sum(group.finished for part in self.parts if part.result for group in part.result.groups)


def find(request: Request, records: Mapping[str, Sequence[RunRecord]], is_made: Callable[[str], bool]) -> Findings:
    """What the records say, by study name."""
    parts = tuple(
        analysed(part, study_of(part, request, is_made), records.get(part.name, ())) for part in planned_parts(request)
    )
    groups = measured_groups(parts, gpu_runs_at_once(records))
    shown = examples(groups)
    shares = tuple(factor_shares(part) for part in parts if part.planned.factors and part.result is not None)
    nested = nested_of(parts, records)
    found = findings(parts, groups, shown, is_smoke=request.scale == "smoke")
    libraries = tuple(item for part in parts if part.planned.libraries for item in library_comparisons(part))
    return Findings(parts, groups, shown, shares, found, nested, libraries)
