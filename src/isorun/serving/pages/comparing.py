"""Two groups of runs, of one study or of two: who is better, how sure that is, and what makes them not comparable."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from isorun.analysis.comparability import incomparable, unknown_to_compare
from isorun.analysis.comparison import Comparison
from isorun.analysis.comparison import compare as compare_sides
from isorun.analysis.evidence import Condition, some
from isorun.analysis.evidence.units import Counting, paired_units
from isorun.analysis.measurements import Measurements, read_table
from isorun.analysis.sequential import Verdict
from isorun.analysis.studies.study_result import UNIT, StudyResult, StudySides, run_table
from isorun.errors import InputError
from isorun.questions import compare, study_results
from isorun.report import Listing, Section
from isorun.report.comparisons import comparison_view
from isorun.report.figures.distributions import strip
from isorun.report.figures.effects import forest, paired_change
from isorun.report.figures.thinning import thinned
from isorun.serving.pages import Banner, Page, TypedCommand
from isorun.serving.pages.choices import (
    Choice,
    address_of_group,
    asked_for,
    chosen_number,
    metric_choice,
    selection_choice,
)
from isorun.serving.pages.links import study_address
from isorun.serving.pages.study import beside, study_trail
from isorun.study.cells import GROUP_FACTORS

if TYPE_CHECKING:
    from isorun.analysis.studies.group_result import GroupResult
    from isorun.report.figures.description import Figure
    from isorun.serving.kept import AnalysedStudy
    from isorun.study.records import RunRecord

__all__ = ["compare_page"]

_SIDE: Final = "side"
_STATE: Final = ("a", "b", "with", "metric", "selection", "pair", "margin", "anyway")
_ANYWAY: Final = frozenset(("other-data", "other-split", "other-level", "other-environment", "other-selection"))
"""What is compared all the same by who asks for it, and told; anything else would make no sense at all."""


@dataclass(frozen=True, slots=True)
class _GroupSide:
    """One side: a group of a study. name: what tells it from the other side."""

    found: AnalysedStudy
    group: GroupResult
    name: str

    @property
    def result(self) -> StudyResult:
        assert self.found.result is not None
        return self.found.result

    @property
    def records(self) -> list[RunRecord]:
        """The finished runs of the group."""
        judged = {run.run_id for run in self.group.selections[0].runs}
        return [record for record in self.found.study.records if record.run_id in judged]


@dataclass(frozen=True, slots=True)
class _Question:
    """What is asked of the two sides. unlike: what of them is not alike."""

    sides: tuple[_GroupSide, _GroupSide]
    metric: str
    selection: str | None
    pair: str | None
    margin: float | None
    unlike: tuple[Condition, ...]

    @classmethod
    def of(cls, sides: tuple[_GroupSide, _GroupSide], asked: Mapping[str, str]) -> _Question:
        result = sides[0].result
        metric = asked_for(asked, "metric", [one.name for one in result.metrics], result.metrics[0].name)
        selection = asked_for(asked, "selection", [one.name for one in result.selections]) or None
        pair = asked_for(asked, "pair", ["seed"]) or None
        anyway = bool(asked_for(asked, "anyway", ["yes"]))
        unlike = tuple(
            replace(one, voids=one.voids and not (anyway and one.code in _ANYWAY))
            for one in _incomparable(*sides, metric)
        )
        return cls(sides, metric, selection, pair, chosen_number(asked, "margin"), unlike)

    @property
    def is_across(self) -> bool:
        """Whether the sides are of two studies."""
        return self.sides[0].found is not self.sides[1].found

    def table(self) -> Measurements:
        """The runs of both sides, one row a run."""
        columns: dict[str, list[Any]] = {}
        for side in self.sides:
            rows = run_table(replace(side.result, groups=(side.group,)), self.selection)
            rows[_SIDE] = [side.name] * len(rows["run"])
            rows[UNIT] = [f"{side.name}/{unit}" for unit in rows[UNIT]]
            for name in (_SIDE, "seed", "repeat", UNIT, self.metric):
                columns.setdefault(name, []).extend(rows[name])
        return read_table(columns)


def compare_page(found: AnalysedStudy, query: Mapping[str, str], other: AnalysedStudy | None = None) -> Page:
    """Two groups as the address names them; without a word the first two of the study. other: the study of b."""
    second = other or found
    asked = {name: query[name] for name in _STATE if query.get(name)}
    page = Page(
        title=f"Compare {found.name}" + (f" with {second.name}" if other else ""),
        kicker="compare",
        path=study_address(found.shelf, found.name, "compare"),
        query=asked,
        trail=study_trail(found, here="compare"),
        related=beside(found, "compare"),
    )
    if not _groups(second) or len(_groups(found)) < (1 if other else 2):
        why = "There are no two groups with finished runs to compare."
        return replace(page, first=(why,), data={"study": found.name, "verdict": None})
    question = _Question.of(_chosen_sides(found, second, asked), asked)
    unlike = tuple(one.message for one in question.unlike)
    page = replace(
        page,
        choices=tuple(_choices(question, asked)),
        listings=(Listing("Why these may not be comparable", unlike),) if unlike else (),
    )
    try:
        return _with_comparison(page, question, _compared(question))
    except InputError as error:
        told = {"study": found.name, "verdict": None, "why": error.what, "not_comparable": unlike}
        return replace(page, first=(_sentence(error),), data=told)


def _sentence(error: InputError) -> str:
    found = f" ({error.found})" if error.found else ""
    return f"{error.what[:1].upper()}{error.what[1:]}{found}."


def _groups(found: AnalysedStudy) -> dict[str, GroupResult]:
    """The groups with finished runs, by what an address calls them."""
    groups = found.result.groups if found.result and found.result.metrics else ()
    return {address_of_group(group.key): group for group in groups if group.finished}


def _chosen_sides(
    found: AnalysedStudy, second: AnalysedStudy, asked: Mapping[str, str]
) -> tuple[_GroupSide, _GroupSide]:
    mine, theirs = _groups(found), _groups(second)
    a = asked_for(asked, "a", mine, next(iter(mine)))
    others = [name for name in theirs if second is not found or name != a]
    b = asked_for(asked, "b", theirs, a if second is not found and a in theirs else next(iter(others), a))
    one, two = mine[a], theirs[b]
    if second is not found:
        studies = [found.name, second.name]
        if found.name == second.name:  # on two shelves
            studies = [f"{side.shelf}/{side.name}" for side in (found, second)]
        names = (f"{studies[0]}: {one.key.label}", f"{studies[1]}: {two.key.label}")
        return _GroupSide(found, one, names[0]), _GroupSide(second, two, names[1])
    if a == b:
        raise InputError("a group cannot be compared with itself", found=a, hint="choose another one as b")
    by = _differing(one, two)
    first_name, second_name = (",".join(str(getattr(group.key, factor)) for factor in by) for group in (one, two))
    return _GroupSide(found, one, first_name), _GroupSide(second, two, second_name)


def _differing(one: GroupResult, two: GroupResult) -> list[str]:
    return [factor for factor in GROUP_FACTORS if getattr(one.key, factor) != getattr(two.key, factor)]


def _choices(question: _Question, asked: Mapping[str, str]) -> Iterator[Choice]:
    for name, side in zip(("a", "b"), question.sides, strict=True):
        options = tuple((key, group.key.label) for key, group in _groups(side.found).items())
        yield Choice(name, name.upper(), address_of_group(side.group.key), options)
    a = question.sides[0]
    yield Choice("with", "the study of B, if another (SHELF/NAME)", asked.get("with", ""))
    yield from metric_choice(a.result, question.metric)
    yield from selection_choice(a.result, question.selection or "")
    if _can_pair(question.sides):
        pairs = (("", "no: all runs of either side"), ("seed", "by seed"))
        yield Choice("pair", "pairs", question.pair or "", pairs)
    if any(one.code in _ANYWAY for one in question.unlike) and question.is_across:
        options = (("", "no verdict"), ("yes", "compare anyway"))
        yield Choice("anyway", "what is not comparable", asked.get("anyway", ""), options)
    yield Choice("margin", "a difference that does not matter", asked.get("margin", ""), kind="number")


def _can_pair(sides: tuple[_GroupSide, _GroupSide]) -> bool:
    """Whether both sides ran the same seeds."""
    seeds = [{run.seed for run in side.group.selections[0].runs} - {None} for side in sides]
    return len(seeds[0] & seeds[1]) > 1


def _incomparable(a: _GroupSide, b: _GroupSide, metric: str) -> Iterator[Condition]:
    """What of two sides is not alike, beyond what they are compared in."""
    across = b.result is not a.result
    if across:
        yield from _same_runs(a, b)
        yield from _judged_otherwise(a, b, metric)
    compared = () if across else tuple(f"other-{factor}" for factor in _differing(a.group, b.group))
    found = incomparable(a.records, b.records, (a.group.provenance, b.group.provenance))
    yield from (replace(one, voids=across) for one in found if one.code not in compared)


def _same_runs(a: _GroupSide, b: _GroupSide) -> Iterator[Condition]:
    """Runs that both sides hold, as a package and the store that it was made of do."""
    theirs = {(record.run_id, record.started_at) for record in b.records}
    same = sum((record.run_id, record.started_at) in theirs for record in a.records)
    if same:
        message = f"{some(same, 'run')} of both sides {'is' if same == 1 else 'are'} the same, recorded once"
        yield Condition("same-runs", message, "compare with runs that were made apart", voids=True)


def _judged_otherwise(a: _GroupSide, b: _GroupSide, metric: str) -> Iterator[Condition]:
    mine, theirs = ({one.name: one for one in side.result.metrics} for side in (a, b))
    if metric not in theirs:
        message = f"{b.found.name} does not judge {metric}"
        yield Condition("other-metric", message, "choose a metric that both have", voids=True)
    elif theirs[metric].direction != mine[metric].direction:
        message = f"which direction of {metric} is better is not said alike in both studies"
        yield Condition("other-direction", message, "declare it in both", voids=True)
    first, second = a.result.selections[0].name, b.result.selections[0].name
    if first != second:
        message = f"runs are judged at {first} and at {second}"
        yield Condition("other-selection", message, "choose one that both have", voids=True)


def _compared(question: _Question) -> Comparison:
    a, b = question.sides
    if question.is_across:
        return _across(question)
    by = _differing(a.group, b.group)
    where = {factor: str(getattr(a.group.key, factor)) for factor in GROUP_FACTORS if factor not in by}
    return compare(
        study_results(a.result, question.selection),
        value=question.metric,
        by=",".join(by),
        a=a.name,
        b=b.name,
        where=where,
        pair=question.pair,
        margin=question.margin,
        drop_missing=True,
    )


def _across(question: _Question) -> Comparison:
    """Runs of two studies: each side's own conditions go with the verdict, and what is not alike."""
    a, b = question.sides
    missing = [one.message for one in question.unlike if one.code == "other-metric"]
    if missing:
        raise InputError(missing[0])
    told = [StudySides(side.result, "approach", (side.group,)) for side in (a, b)]
    unknown = unknown_to_compare(a.records, b.records, b.name)
    conditions = dict.fromkeys((*(one for side in told for one in side.conditions()), *unknown))
    judged = next(one for one in a.result.metrics if one.name == question.metric)
    return compare_sides(
        question.table(),
        value=question.metric,
        by=_SIDE,
        a=a.name,
        b=b.name,
        pair=question.pair,
        direction=judged.direction or "higher",
        drop_missing=True,
        margin=question.margin,
        unit=Counting(UNIT, told[0].noun, recorded=True),
        conditions=(*question.unlike, *conditions),
        real_runs=told[0].real_runs,
    )


def _with_comparison(page: Page, question: _Question, compared: Comparison) -> Page:
    view = comparison_view(compared)
    return replace(
        page,
        banner=_banner(compared),
        first=view.verdict[:1],
        rest=view.verdict[1:],
        sections=(
            Section("difference", "How large the difference is", tuple(_figures(question, compared)), ()),
            Section("tests", "What it rests on", (), view.tables),
        ),
        commands=tuple(_commands(question)),
        listings=(*page.listings, *(one for one in view.listings if one.items)),
        conditions=view.warnings,
        data={**compared.to_json(), "not_comparable": [one.message for one in question.unlike]},
    )


def _banner(compared: Comparison) -> Banner:
    more = compared.decision.about_more_runs
    return {
        Verdict.A_BETTER: Banner(f"{compared.a.name} better", "▲", "better"),
        Verdict.B_BETTER: Banner(f"{compared.b.name} better", "▲", "better"),
        Verdict.EQUIVALENT: Banner("equivalent", "=", "same"),
        Verdict.UNDECIDED: Banner(f"undecided{f' (about {more} more runs a side)' if more else ''}", "?", "open"),
    }[compared.verdict]


def _figures(question: _Question, compared: Comparison) -> Iterator[Figure]:
    metric, (a, b) = question.metric, question.sides
    label = f"difference in {metric}: {compared.a.name} minus {compared.b.name}"
    yield forest([compared], label, title="The difference, with its 95\N{NO-BREAK SPACE}% interval")
    runs = {compared.a.name: compared.a.runs, compared.b.name: compared.b.runs}
    yield thinned(strip(runs, metric, name="sides-strip", title=f"{metric} of every run"))
    if _can_pair(question.sides):
        table = question.table()
        groups = {group.name: group.values for group in table.groups(metric, (_SIDE,), drop_missing=True)}
        counting = Counting(UNIT, "seed", recorded=True)
        pairs = paired_units(table, (groups[a.name], groups[b.name]), "seed", counting).pairs
        yield thinned(paired_change(pairs, a.name, b.name, metric))


def _commands(question: _Question) -> Iterator[TypedCommand]:
    a, b = question.sides
    if question.is_across:
        return
    by = _differing(a.group, b.group)
    where = [
        f"--where {shlex.quote(f'{factor}={getattr(a.group.key, factor)}')}"
        for factor in GROUP_FACTORS
        if factor not in by and len({str(getattr(one.key, factor)) for one in a.result.groups}) > 1
    ]
    words = [
        *("isorun", "compare", shlex.quote(a.found.study.source), "--value", shlex.quote(question.metric)),
        *("--by", ",".join(by), "--a", shlex.quote(a.name), "--b", shlex.quote(b.name), *where),
        *(["--pair", "seed"] if question.pair else []),
        *([f"--margin {question.margin:g}"] if question.margin else []),
    ]
    yield TypedCommand("the same in a terminal", f"{' '.join(words)}{a.found.study.store}")
