"""Many approaches, of one study or of several: places with intervals, who is not told apart, who cannot be ranked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from isorun.analysis.checks.comparable import same_runs
from isorun.analysis.comparability import ComparedSide, is_arguable, unlike_sides
from isorun.analysis.evidence import Condition
from isorun.analysis.leaderboards.leaderboard import Leaderboard
from isorun.analysis.studies.study_result import UNIT, run_table
from isorun.errors import InputError
from isorun.questions import rank
from isorun.report import UNKNOWN, Column, Listing, Section, Table, significant
from isorun.report.figures.description import Figure
from isorun.report.figures.rank_intervals import rank_figure, tied_letters
from isorun.report.leaderboards import leaderboard_view
from isorun.serving.pages import Page
from isorun.serving.pages.choices import (
    Choice,
    address_of_group,
    asked_for,
    factor_choices,
    metric_choice,
    narrowed,
    selection_choice,
    stated,
)
from isorun.serving.pages.links import LEADERBOARD, study_address
from isorun.serving.pages.replications import plain_replications, replicated_by, replication_addresses
from isorun.serving.pages.study import beside, study_trail

if TYPE_CHECKING:
    from isorun.analysis.studies.group_result import GroupResult
    from isorun.analysis.studies.study_result import StudyResult
    from isorun.report.html_parts import Linked
    from isorun.serving.kept import AnalysedStudy
    from isorun.study import Selection
    from isorun.study.records import RunRecord

__all__ = ["leaderboard_page"]

_BY: Final = "entry"
_REPLICATED_BY: Final = "replicated by"
_MOST_RANKED: Final = 40
"""All pairs are tested: a page does not wait for more."""
_ABOUT_TABLES: Final = frozenset(("few-runs", "runs-missing", "launch-differs", "no-identical-runs"))
"""Conditions of a report's tables, which say nothing about who is better."""


@dataclass(frozen=True, slots=True)
class _Entrant:
    """A line of the board: a group of a study, and who replicated that."""

    name: str
    found: AnalysedStudy
    group: GroupResult

    def units(self, metric: str) -> int:
        """How many independent draws have a value of the metric."""
        return len({run.unit for run in self.group.selections[0].runs if metric in run.selected.values})

    @property
    def records(self) -> list[RunRecord]:
        """The runs of the group, as they are recorded."""
        own = {run.run_id for run in self.group.selections[0].runs}
        return [record for record in self.found.study.records if record.run_id in own]

    def held(self, metric: str) -> ComparedSide:
        """What says whether it can be ranked with entries of other studies."""
        assert self.found.result is not None
        judged = next(one for one in self.found.result.metrics if one.name == metric)
        declared = self.found.study.design.metrics.get(metric)
        return ComparedSide(
            f"{self.found.shelf}/{self.found.name}",
            judged,
            None if declared is None else declared.direction,
            self.group.selections[0].selection,
            self.records,
            self.group.provenance,
        )

    @property
    def replicators(self) -> str:
        """Who replicated it, as a cell of a table."""
        return replicated_by(self.found.study.entry) or "nobody yet"


@dataclass(frozen=True, slots=True)
class _Comparable:
    """Entries that can be ranked together. left_out: the others, and why. told: why some are ranked all the same.

    arguable: whether who asks for it may rank more of them.
    """

    entrants: tuple[_Entrant, ...]
    left_out: tuple[str, ...] = ()
    told: tuple[Condition, ...] = ()
    arguable: bool = False


def leaderboard_page(studies: Sequence[AnalysedStudy], query: Mapping[str, str], of: Sequence[str] = ()) -> Page:
    """The groups of these studies by one metric. of: the places of several, after which their entrants are named."""
    first, across = studies[0], bool(of)
    asked = stated("leaderboard", query)
    page = Page(
        title="Leaderboard" if across else f"Leaderboard of {first.name}",
        kicker="leaderboard",
        path=LEADERBOARD if across else study_address(first.shelf, first.name, "leaderboard"),
        query=asked,
        repeated=tuple(("of", one) for one in of),
        trail=(("studies", "/"),) if across else study_trail(first, here="leaderboard"),
        related=() if across else beside(first, "leaderboard"),
    )
    if first.result is None or not first.result.metrics:
        why = "Nothing can be ranked yet: no run has ended, or none logged a metric."
        return replace(page, first=(why,), data={"approaches": []})
    metric = asked_for(asked, "metric", [one.name for one in first.result.metrics], first.result.metrics[0].name)
    everything = _together([study.result for study in studies if study.result is not None])
    narrowed(everything, {name: asked[name] for name in asked if name != "metric"})  # refuses what no study has
    anyway = bool(asked_for(asked, "anyway", ["yes"]))
    found, left_out = _entrants(studies, asked, metric, across)
    comparable = _comparable(found, metric, anyway=anyway)
    entrants = comparable.entrants
    left_out = (*left_out, *comparable.left_out)
    page = replace(
        page,
        choices=tuple(_choices(everything, asked, metric, comparable)),
        listings=(Listing("Left out", left_out),) if left_out else (),
        linked=_linked(entrants),
    )
    if len(entrants) > _MOST_RANKED:
        why = f"{len(entrants)} entries are too many to be ranked on a page: choose at most {_MOST_RANKED} of them."
        return replace(page, first=(why,), data={"approaches": [], "why": why, "left_out": list(left_out)})
    several = [one for one in entrants if one.units(metric) > 1]
    single = [one for one in entrants if one.units(metric) == 1]
    try:
        board = _board(several, asked, metric, first)
    except InputError as error:
        below = _below(single, metric)
        # One entry that could be ranked has nothing beside it: it is named, or it would be gone without a word.
        alone = [f"{one.name} alone has more than one draw, and a place takes two such entries" for one in several]
        why = f"Nothing can be ranked: {alone[0] if len(alone) == 1 else error.what}."
        data = {"approaches": [], "not_rankable": [one.name for one in single], "why": why, "left_out": list(left_out)}
        return replace(page, first=(why,), sections=_places((), below), data=data)
    board = replace(board, conditions=(*comparable.told, *board.conditions))
    page = _with_board(page, board, several, single)
    return replace(page, data={**page.data, "left_out": list(left_out)})


def _together(results: Sequence[StudyResult]) -> StudyResult:
    """The first result with the groups and selections of all: what an address may ask for."""
    groups = tuple(group for result in results for group in result.groups)
    selections: dict[str, Selection] = {}
    for one in (one for result in results for one in result.selections):
        selections.setdefault(one.name, one)  # that which the first study is judged by comes first, as a form shows it
    return replace(results[0], groups=groups, selections=tuple(selections.values()))


def _choices(result: StudyResult, asked: Mapping[str, str], metric: str, found: _Comparable) -> list[Choice]:
    picked = [*metric_choice(result, metric), *selection_choice(result, asked.get("selection", ""))]
    options = (("", "left out"), ("yes", "ranked anyway"))
    anyway = [Choice("anyway", "what is not comparable", asked.get("anyway", ""), options)] if found.arguable else []
    return [*picked, *factor_choices(result, asked), *anyway]


def _comparable(entrants: Sequence[_Entrant], metric: str, *, anyway: bool) -> _Comparable:
    """What of other studies can be ranked with the first one, by the rules of `isorun compare --baseline`.

    Each is held against the group of the first study that is most like it. Groups of one study are ranked as it
    declares them: whoever declares both may be comparing just that.
    """
    kept: list[_Entrant] = []
    left_out, told, arguable = list[str](), list[Condition](), False
    mates = [one for one in entrants if one.found is entrants[0].found]
    for one in entrants:
        like = one if one.found is entrants[0].found else _most_like(one, mates)
        unlike = () if like is one else tuple(unlike_sides(like.held(metric), one.held(metric)))
        arguable = arguable or bool(unlike and is_arguable(unlike))
        if not unlike or (anyway and is_arguable(unlike)):
            kept.append(one)
            told += [replace(condition, groups=(one.name,)) for condition in unlike]
        else:
            left_out.append(f"{one.name}, beside {like.name}: {'; '.join(why.message for why in unlike)}")
    return _Comparable(tuple(kept), tuple(left_out), tuple(told), arguable)


def _most_like(entrant: _Entrant, others: Sequence[_Entrant]) -> _Entrant:
    """The group of the same name, or at the same level, or the first."""
    own = entrant.group.key
    same = [one for one in others if one.group.key == own]
    return next(iter([*same, *(one for one in others if one.group.key.level == own.level), *others]))


def _entrants(
    studies: Sequence[AnalysedStudy], asked: Mapping[str, str], metric: str, across: bool
) -> tuple[list[_Entrant], tuple[str, ...]]:
    """The groups that are asked for, and what is left out, with the reason."""
    found: list[_Entrant] = []
    left_out = []
    for study in studies:
        if study.result is None or metric not in [one.name for one in study.result.metrics]:
            left_out.append(f"{study.name}: no finished run has a value of {metric}")
            continue
        wanted = {name: asked[name] for name in asked if name not in {"metric", "anyway"}}
        try:
            result = narrowed(study.result, wanted)
        except InputError as error:  # some study has it, and this one has not
            left_out.append(f"{study.name}: {error.what} ({error.found})")
            continue
        groups = [group for group in result.groups if group.selections[0].values(metric)]
        if not groups:
            said = ", ".join(f"{name} {label}" for name, label in wanted.items())
            left_out.append(f"{study.name}: no group has a value of {metric}{f' with {said}' if said else ''}")
        for group, label in zip(groups, _labels(groups), strict=True):
            name = f"{study.name}: {label}" if across and len(groups) > 1 else study.name if across else label
            entrant = _Entrant(name, study, group)
            others = [one for one in found if one.found is not study]
            twin = next((one for one in others if same_runs(entrant.records, one.records)), None)
            if twin is None:
                found.append(entrant)
            else:
                left_out.append(f"{name}: runs of it are those of {twin.name}, recorded once")
    return found, tuple(left_out)


def _labels(groups: Sequence[GroupResult]) -> list[str]:
    """Of each group the factors in which the groups differ; all of its name where it is the only one."""
    parts = [address_of_group(one.key).split(",") for one in groups]
    if any(len(part) != 4 for part in parts):
        return [group.key.label for group in groups]
    varying = [place for place in range(4) if len({part[place] for part in parts}) > 1]
    named = [" ".join(part[place] for place in varying) for part in parts]
    return [name or group.key.label for name, group in zip(named, groups, strict=True)]


def _board(entrants: Sequence[_Entrant], asked: Mapping[str, str], metric: str, first: AnalysedStudy) -> Leaderboard:
    assert first.result is not None
    columns: dict[str, list[Any]] = {_BY: [], UNIT: [], metric: []}
    for entrant in entrants:
        assert entrant.found.result is not None
        rows = run_table(replace(entrant.found.result, groups=(entrant.group,)), asked.get("selection"))
        columns[_BY] += [entrant.name] * len(rows["run"])
        columns[UNIT] += [f"{entrant.name}/{unit}" for unit in rows[UNIT]]
        columns[metric] += rows[metric]
    judged = next(one for one in first.result.metrics if one.name == metric)
    board = rank(
        columns,
        value=metric,
        by=_BY,
        unit=UNIT,
        direction=judged.direction or "higher",
        drop_missing=True,
    )
    told = dict.fromkeys(one for entrant in entrants for one in _conditions(entrant))
    return replace(board, conditions=(*told, *board.conditions))


def _conditions(entrant: _Entrant) -> list[Condition]:
    assert entrant.found.result is not None
    label = entrant.group.key.label
    known = [one for one in entrant.found.result.conditions if not one.groups or label in one.groups]
    return [one for one in known if one.code not in _ABOUT_TABLES]


def _with_board(page: Page, board: Leaderboard, ranked: Sequence[_Entrant], single: Sequence[_Entrant]) -> Page:
    view = leaderboard_view(board)
    figure = rank_figure(board, [one.name for one in single])
    drawn: tuple[Figure, ...] = () if figure is None else (figure,)
    by_name = {entrant.name: entrant for entrant in (*ranked, *single)}
    tables = (_table(board, by_name), *_below(single, board.metric))
    pairs = tuple(replace(table, folded=True) for table in view.tables if table.name == "pairs")
    entries = {one.name: one.found.study.entry for one in by_name.values()}
    replicated = {
        "replicated_by": {name: list(entry.replicated_by) for name, entry in entries.items()},
        "replications": {one.name: plain_replications(one.found.shelf, entries[one.name]) for one in by_name.values()},
    }
    return replace(
        page,
        facts=(f"{len(by_name)} entries", f"{board.metric}: {board.direction} is better"),
        first=view.verdict[:1],
        rest=view.verdict[1:],
        sections=(*_places(drawn, tables), Section("pairs", "Every pair", (), pairs)),
        conditions=view.warnings,
        data={**board.to_json(), "not_rankable": [one.name for one in single], **replicated},
    )


def _places(figures: tuple[Figure, ...], tables: tuple[Table, ...]) -> tuple[Section, ...]:
    return (Section("places", "Places", figures, tables),) if figures or tables else ()


def _below(single: Sequence[_Entrant], metric: str) -> tuple[Table, ...]:
    """Those of a single draw, however often it was run: what they reached, and no place."""
    if not single:
        return ()
    columns = (Column("approach", key=True), Column(metric), Column("runs"), Column(_REPLICATED_BY, key=True))
    rows = tuple(
        (one.name, significant(one.group.selections[0].values(metric)[0], 4), str(one.group.finished), one.replicators)
        for one in single
    )
    notes = ("One draw says nothing about spread, so that nothing can be said about a place.",)
    drawn = "run" if all(one.group.finished == 1 for one in single) else "draw"
    return (Table("not-rankable", f"Not rankable: a single {drawn}", columns, rows, notes),)


def _linked(entrants: Sequence[_Entrant]) -> Linked:
    """An entry leads to its study, a replication to the page of its package."""
    leads = {
        "approach": {one.name: study_address(one.found.shelf, one.found.name) for one in entrants},
        _REPLICATED_BY: replication_addresses((one.found.shelf, one.found.study.entry) for one in entrants),
    }
    return lambda column, text, _: leads.get(column.title, {}).get(text, "")


def _table(board: Leaderboard, entrants: Mapping[str, _Entrant]) -> Table:
    letters = tied_letters(board)
    keys = ("approach", "band", _REPLICATED_BY)
    titles = ("approach", "rank", "95 % of rank", "band", board.options.statistic, "95 % interval", "runs", "units")
    columns = tuple(Column(title, key=title in keys) for title in (*titles, _REPLICATED_BY))
    rows = tuple(
        (
            one.approach,
            UNKNOWN if one.ranked.rank is None else str(one.ranked.rank),
            UNKNOWN if one.ranked.interval is None else _range(one.ranked.interval),
            letters.get(one.approach, ""),
            significant(one.score.estimate, 4),
            UNKNOWN if one.score.ci95 is None else " to ".join(significant(end, 4) for end in one.score.ci95),
            str(one.n),
            str(one.units),
            entrants[one.approach].replicators,
        )
        for one in board.standings
    )
    notes = ("Entries that share a letter of their band are not told apart by the tests of all pairs (alpha 0.05).",)
    return Table("ranked", "Places", columns, rows, notes)


def _range(ends: tuple[int, int]) -> str:
    return str(ends[0]) if ends[0] == ends[1] else f"{ends[0]}–{ends[1]}"
