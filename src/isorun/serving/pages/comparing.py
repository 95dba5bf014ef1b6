"""Two groups of runs, of one study or of two: who is better, how sure that is, and what makes them not comparable."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from isorun.analysis.comparability import unlike_groups
from isorun.analysis.comparison import Comparison
from isorun.analysis.evidence import Condition
from isorun.analysis.evidence.units import Counting, paired_units
from isorun.analysis.measurements import read_table
from isorun.analysis.sequential import Verdict
from isorun.analysis.studies.study_result import UNIT, StudyResult, run_table
from isorun.baselines import KnownRuns
from isorun.comparing import SIDE, HowCompared, TwoSides
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
    stated,
)
from isorun.serving.pages.links import study_address
from isorun.serving.pages.study import beside, study_trail
from isorun.study.cells import GROUP_FACTORS

if TYPE_CHECKING:
    from isorun.analysis.studies.group_result import GroupResult
    from isorun.report.figures.description import Figure
    from isorun.serving.kept import AnalysedStudy

__all__ = ["compare_page"]


@dataclass(frozen=True, slots=True)
class _GroupSide:
    """One side: a group of a study. name: what tells it from the other side of the same study."""

    found: AnalysedStudy
    group: GroupResult
    name: str

    @property
    def result(self) -> StudyResult:
        assert self.found.result is not None
        return self.found.result

    @property
    def labels(self) -> dict[str, str]:
        """Of its group, by factor."""
        return {factor: str(getattr(self.group.key, factor)) for factor in GROUP_FACTORS}

    def known_runs(self) -> KnownRuns:
        """All runs of its study, under the name that the shelf has for it."""
        study, place = self.found.study, f"{self.found.shelf}/{self.found.name}"
        return KnownRuns(place, study.design, study.records, told=study.told)


@dataclass(frozen=True, slots=True)
class _Question:
    """What is asked of the two sides. value: the metric, where the address names one."""

    sides: tuple[_GroupSide, _GroupSide]
    value: str | None
    metric: str
    selection: str | None
    pair: str | None
    margin: float | None
    anyway: bool

    @classmethod
    def of(cls, sides: tuple[_GroupSide, _GroupSide], asked: Mapping[str, str]) -> _Question:
        result = sides[0].result
        metric = asked_for(asked, "metric", [one.name for one in result.metrics], result.metrics[0].name)
        selection = asked_for(asked, "selection", [one.name for one in result.selections]) or None
        pair = asked_for(asked, "pair", ["seed"]) or None
        anyway = bool(asked_for(asked, "anyway", ["yes"]))
        return cls(sides, asked.get("metric"), metric, selection, pair, chosen_number(asked, "margin"), anyway)

    @property
    def is_across(self) -> bool:
        """Whether the sides are of two studies."""
        return self.sides[0].found is not self.sides[1].found

    def across(self) -> TwoSides:
        """The sides as those of two studies."""
        a, b = self.sides
        return TwoSides.of(
            a.known_runs(), b.known_runs(), (a.labels, b.labels), value=self.value, selection=self.selection
        )

    def table(self) -> dict[str, list[Any]]:
        """The runs of both sides of one study, one row a run."""
        columns: dict[str, list[Any]] = {}
        for side in self.sides:
            rows = run_table(replace(side.result, groups=(side.group,)), self.selection)
            rows[SIDE] = [side.name] * len(rows["run"])
            rows[UNIT] = [f"{side.name}/{unit}" for unit in rows[UNIT]]
            for name in (SIDE, "seed", UNIT, self.metric):
                columns.setdefault(name, []).extend(rows[name])
        return columns


def compare_page(found: AnalysedStudy, query: Mapping[str, str], other: AnalysedStudy | None = None) -> Page:
    """Two groups as the address names them; without a word the first two of the study. other: the study of b."""
    second = other or found
    asked = stated("compare", query)
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
    page = replace(page, choices=tuple(_choices(question, asked)))
    return _across(page, question) if question.is_across else _within(page, question)


def _across(page: Page, question: _Question) -> Page:
    """Groups of two studies, as `isorun compare --baseline` has them."""
    asked = HowCompared(question.pair, drop_missing=True, margin=question.margin, anyway=question.anyway)
    try:
        sides = question.across()
    except InputError as error:
        return _refused(page, question, error, (error.what,))
    page = _saying_why(page, sides.unlike)
    if sides.unlike and sides.is_arguable:
        options = (("", "no verdict"), ("yes", "compare anyway"))
        anyway = Choice("anyway", "what is not comparable", "yes" if question.anyway else "", options)
        page = replace(page, choices=(*page.choices, anyway))
    runs = sides.table()
    try:
        return _with_comparison(page, question, _Answer(sides.compared(asked), sides.unlike, runs))
    except InputError as error:
        page = _refused(page, question, error, [one.message for one in sides.unlike] or (error.what,))
        return replace(
            page, sections=(Section("runs", "The runs of both sides", (_strip(runs, question.metric),), ()),)
        )


def _refused(page: Page, question: _Question, error: InputError, why: Sequence[str]) -> Page:
    """No verdict. why: what makes the sides not comparable."""
    study = question.sides[0].found.name
    told = {"study": study, "verdict": None, "why": error.what, "not_comparable": list(why)}
    said = tuple(dict.fromkeys((error.what, *why)))
    return replace(page, first=(_sentence(error, _names(question)),), data=told, reservations=said)


def _strip(runs: Mapping[str, list[Any]], metric: str) -> Figure:
    """The finite values of both sides."""
    groups = read_table(runs).groups(metric, (SIDE,), drop_missing=True)
    values = {group.name: group.values.finite for group in groups if group.values.finite.size}
    return thinned(strip(values, metric, name="sides-strip", title=f"{metric} of every run"))


def _within(page: Page, question: _Question) -> Page:
    """Groups of one study, as `isorun compare` has them."""
    a, b = question.sides
    by = _differing(a.group, b.group)
    unlike = tuple(unlike_groups(a.found.study.records, (a.group, b.group), by))
    page = _saying_why(page, unlike)
    try:
        compared = compare(
            replace(study_results(a.result, question.selection), records=a.found.study.records),
            value=question.metric,
            by=",".join(by),
            a=a.name,
            b=b.name,
            where={factor: label for factor, label in a.labels.items() if factor not in by},
            pair=question.pair,
            margin=question.margin,
            drop_missing=True,
        )
    except InputError as error:
        return _refused(page, question, error, [one.message for one in unlike])
    return _with_comparison(page, question, _Answer(compared, unlike, question.table()))


def _saying_why(page: Page, unlike: Sequence[Condition]) -> Page:
    messages = tuple(one.message for one in unlike)
    return replace(page, listings=(Listing("Why these may not be comparable", messages),) if messages else ())


def _names(question: _Question) -> Iterator[str]:
    """What others gave a name: studies, their places, groups, metrics."""
    for side in question.sides:
        yield from (side.name, side.found.name, side.found.shelf, *side.labels.values())
        yield from (metric.name for metric in side.result.metrics)
    yield question.metric


def _sentence(error: InputError, names: Iterable[str]) -> str:
    """What the error says; a name with which it begins stays as it was written."""
    found = f" ({error.found})" if error.found else ""
    begins = any(re.match(rf"{re.escape(name)}(?!\w)", error.what) for name in names if name)
    first = error.what[:1] if begins else error.what[:1].upper()
    return f"{first}{error.what[1:]}{found}."


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
        return _GroupSide(found, one, one.key.label), _GroupSide(second, two, two.key.label)
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
    yield Choice("margin", _margin_label(a.result, question.metric), asked.get("margin", ""), kind="number")


def _margin_label(result: StudyResult, metric: str) -> str:
    """What is asked for, in the metric's own numbers, as everything on this page is."""
    scale = next((one.scale for one in result.metrics if one.name == metric), "")
    label = "a difference that does not matter"
    return f"{label} (0.01 is a point)" if scale == "fraction" else label


def _can_pair(sides: tuple[_GroupSide, _GroupSide]) -> bool:
    """Whether both sides ran the same seeds."""
    seeds = [{run.seed for run in side.group.selections[0].runs} - {None} for side in sides]
    return len(seeds[0] & seeds[1]) > 1


@dataclass(frozen=True, slots=True)
class _Answer:
    """What was found. unlike: what of the sides is not alike. runs: those of both, one row a run."""

    compared: Comparison
    unlike: tuple[Condition, ...]
    runs: Mapping[str, list[Any]]


def _with_comparison(page: Page, question: _Question, answer: _Answer) -> Page:
    compared = answer.compared
    view = comparison_view(compared)
    return replace(
        page,
        banner=_banner(compared),
        first=view.verdict[:1],
        rest=view.verdict[1:],
        sections=(
            Section("difference", "How large the difference is", tuple(_figures(question, answer)), ()),
            Section("tests", "What it rests on", (), view.tables),
        ),
        commands=(TypedCommand("the same in a terminal", _command(question, compared)),),
        listings=(*page.listings, *(one for one in view.listings if one.items)),
        conditions=view.warnings,
        reservations=tuple(dict.fromkeys(one.message for one in (*answer.unlike, *view.warnings))),
        data={**compared.to_json(), "not_comparable": [one.message for one in answer.unlike]},
    )


def _banner(compared: Comparison) -> Banner:
    more = compared.decision.about_more_runs
    return {
        Verdict.A_BETTER: Banner(f"{compared.a.name} better", "▲", "better"),
        Verdict.B_BETTER: Banner(f"{compared.b.name} better", "▲", "better"),
        Verdict.EQUIVALENT: Banner("equivalent", "=", "same"),
        Verdict.UNDECIDED: Banner(f"undecided{f' (about {more} more runs a side)' if more else ''}", "?", "open"),
    }[compared.verdict]


def _figures(question: _Question, answer: _Answer) -> Iterator[Figure]:
    metric, compared = question.metric, answer.compared
    label = f"difference in {metric}: {compared.a.name} minus {compared.b.name}"
    by_pairs = "" if compared.paired is None else ", pair by pair"
    yield forest([compared], label, title=f"The difference{by_pairs}, with its 95\N{NO-BREAK SPACE}% interval")
    runs = {compared.a.name: compared.a.runs, compared.b.name: compared.b.runs}
    yield thinned(strip(runs, metric, name="sides-strip", title=f"{metric} of every run"))
    if _can_pair(question.sides):
        table, a, b = read_table(answer.runs), compared.a.name, compared.b.name
        groups = {group.name: group.values for group in table.groups(metric, (SIDE,), drop_missing=True)}
        counting = Counting(UNIT, "seed", recorded=True)
        pairs = paired_units(table, (groups[a], groups[b]), "seed", counting).pairs
        yield thinned(paired_change(pairs, a, b, metric))


def _command(question: _Question, compared: Comparison) -> str:
    """What answers the same question in a terminal."""
    a, b = question.sides
    value = question.value if question.is_across else question.metric
    words = ["isorun", "compare", a.found.study.source, *(["--value", value] if value else [])]
    by = [] if question.is_across else _differing(a.group, b.group)
    if by:
        words += ["--by", ",".join(by), "--a", a.name, "--b", b.name]
    words += _chosen_labels("--where", a, by)
    if question.is_across:
        theirs = b.found.study
        words += ["--baseline", theirs.place or theirs.source]
        words += ["--baseline-study", theirs.source] if theirs.place else []
        words += [*_chosen_labels("--baseline-where", b), *(["--anyway"] if question.anyway else [])]
    words += ["--selection", question.selection] if question.selection else []
    words += ["--pair", question.pair] if question.pair else []
    words += ["--margin", repr(question.margin)] if question.margin else []
    words += ["--drop-missing"] if compared.a.dropped or compared.b.dropped else []
    return f"{shlex.join(words)}{a.found.study.store}"


def _chosen_labels(option: str, side: _GroupSide, left_out: Sequence[str] = ()) -> list[str]:
    """The labels that tell the group from others of its study."""
    groups = side.result.groups
    several = [name for name in GROUP_FACTORS if len({str(getattr(one.key, name)) for one in groups}) > 1]
    chosen = [f"{name}={side.labels[name]}" for name in several if name not in left_out]
    return [word for label in chosen for word in (option, label)]
