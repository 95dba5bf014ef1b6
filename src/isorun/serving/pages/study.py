"""The page of a study: what it found and how sure that is, what is still to be run, and what it comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from isorun.analysis.mixed.hypotheses import variance_shares
from isorun.errors import InputError
from isorun.questions import mixed_model, power, study_results
from isorun.registry.index import REPLICATED
from isorun.report import UNKNOWN, Column, Section, Table, count, significant, style_for
from isorun.report.figures.effects import shares_figure
from isorun.report.figures.thinning import thinned
from isorun.report.json_report import to_json
from isorun.report.study_tables import GROUP_COLUMNS, group_cells, named_rows
from isorun.report.study_view import headline, listings, study_sections, verdict, warnings
from isorun.serving.pages import Page
from isorun.serving.pages.choices import (
    Choice,
    chosen_number,
    factor_choices,
    metric_choice,
    narrowed,
    selection_choice,
    stated,
)
from isorun.serving.pages.exact import every_run
from isorun.serving.pages.links import run_address, study_address
from isorun.serving.pages.replications import (
    PACKAGE,
    original_links,
    plain_original,
    plain_replications,
    replication_sections,
)
from isorun.study.cells import Level
from isorun.study.records import RunState

if TYPE_CHECKING:
    from isorun.analysis.studies.group_result import GroupResult
    from isorun.analysis.studies.study_result import StudyResult
    from isorun.in_progress import Status
    from isorun.serving.kept import AnalysedStudy

__all__ = ["beside", "study_page", "study_trail"]

_POWER: Final = 0.8
_FEWEST_SEEDS: Final = 3
_MOST_FIGURES: Final = 2
_SHARES: Final = (
    "seed: between the seeds of a group. Residual: between repeats of the same seed. Intervals: 95 %, by profile."
)
_SHOWN_ELSEWHERE: Final = frozenset({"every-run"})
"""The table of all runs has a page of its own."""


def study_page(found: AnalysedStudy, query: Mapping[str, str], standing: Status | None = None) -> Page:
    """What the study found, as its report says it, for the metric, selection and groups that are asked for."""
    asked = stated("study", query)
    path = study_address(found.shelf, found.name)
    entry = found.study.entry
    page = Page(
        title=found.name,
        kicker="study",
        path=path,
        query=asked,
        trail=study_trail(found, here="study"),
        facts=tuple(_facts(found)),
        related=(*original_links(found.shelf, entry), *beside(found, "study")),
        standing="" if standing is None or not standing.is_at_work else str(standing),
        follows=study_address(found.shelf, found.name, "events"),
        linked=lambda column, text, _: _address_of(found, column, text),
        sections=replication_sections(entry),
    )
    if found.result is None:
        nothing = "No run has ended yet. This page follows the study; without scripts, load it again."
        return replace(page, first=(nothing,), data={"study": found.name, "runs": entry.runs, "verdict": []})
    result = narrowed(found.result, asked)
    shown = result if result.searches else replace(result, metrics=result.metrics[:1])
    said = verdict(result)
    first = headline(result) or said[:1]
    return replace(
        page,
        first=first,
        rest=tuple(one for one in said if one not in first),
        choices=tuple(_choices(found.result, asked)),
        sections=(*_sections(shown, asked), *page.sections),
        listings=listings(result),
        conditions=warnings(result),
        data={
            **to_json(result),
            "address": entry.address or None,
            "tier": entry.tier or None,
            "replicated_by": list(entry.replicated_by),
            "replications": plain_replications(found.shelf, entry),
            "replicates": plain_original(found.shelf, entry),
        },
        further=(every_run(result),),
    )


def _address_of(found: AnalysedStudy, column: Column, text: str) -> str:
    if column.title == PACKAGE:
        return study_address(found.shelf, text)
    return run_address(found.shelf, found.name, text) if column.title == "run" else ""


def study_trail(found: AnalysedStudy, *, here: str) -> tuple[tuple[str, str], ...]:
    """The pages above one of a study."""
    above = (("studies", "/"),)
    return above if here == "study" else (*above, (found.name, study_address(found.shelf, found.name)))


def beside(found: AnalysedStudy, here: str) -> tuple[tuple[str, str], ...]:
    """The other pages of the study, as far as there is something on them."""
    result = found.result
    pages = [("study", "study"), ("every run", "runs")]
    if result is not None and result.primary is not None:
        finished = [group for group in result.groups if group.finished]
        pages += [("compare", "compare"), ("leaderboard", "leaderboard")] if len(finished) > 1 else []
    if result is not None and result.searches:
        pages.append(("search", "searches"))
    if sum(record.state is RunState.FINISHED for record in found.study.records) > 1:
        pages.append(("environments", "environments"))
    return tuple((text, study_address(found.shelf, found.name, page)) for text, page in pages if page != here)


def _facts(found: AnalysedStudy) -> Iterator[str]:
    result, entry = found.result, found.study.entry
    if result is not None:
        yield f"{count(result.states[RunState.FINISHED], 'run')} finished"
        yield from (f"{number} {state}" for state, number in result.states.items() if number and state != "finished")
        yield count(len(result.groups), "group")
    if entry.tier and not (entry.tier == REPLICATED and entry.replicated_by):
        yield entry.tier
    if entry.replicated_by:
        yield f"{REPLICATED} by {', '.join(entry.replicated_by)}"
    if entry.replicates and not entry.original:
        yield f"replicates {entry.replicates[:19]}"
    if entry.address:
        yield entry.address[:19]


def _choices(result: StudyResult, asked: Mapping[str, str]) -> Iterator[Choice]:
    yield from metric_choice(result, asked.get("metric", ""))
    yield from selection_choice(result, asked.get("selection", ""))
    yield from factor_choices(result, asked)
    if result.primary is not None and not result.searches:
        unit = style_for(result.metrics[0].scale).difference_unit
        label = f"a difference that matters{f' ({unit})' if unit else ''}"
        yield Choice("difference", label, asked.get("difference", ""), kind="number")


def _sections(result: StudyResult, asked: Mapping[str, str]) -> Iterator[Section]:
    """The parts of the report, thinned; after the spread, where it comes from and what is still to be run."""
    for part in study_sections(result):
        tables = tuple(table for table in part.tables if table.name not in _SHOWN_ELSEWHERE)
        drawn = tuple(map(thinned, part.figures[:_MOST_FIGURES]))
        left = len(part.figures) - len(drawn)
        notes = (f"{left} more {'figure is' if left == 1 else 'figures are'} drawn when groups are chosen above.",)
        yield replace(part, figures=drawn, tables=tables, notes=notes if left else ())
        if part.name == "spread":
            yield from _variance(result)
            yield _needed(result, asked)


def _variance(result: StudyResult) -> Iterator[Section]:
    """What seeds and repeats hold of the variance, where runs of the same seeds were repeated.

    A seed is another draw in every group: whether it shifts all of them alike is asked of `isorun mixed`, and what it
    shifts them apart is no spread of repeats.
    """
    groups = [group for group in result.groups if _has_repeated_seeds(group)]
    metric = result.primary
    title = "Where the variance comes from"
    if not groups or metric is None:
        why = f"Shares of the variance need {_FEWEST_SEEDS} seeds, each run twice or more, at level fixed-seed."
        yield Section("variance", title, (), (), (why,))
        return
    if all(group.selections[0].within_seed_sd(metric.name) == 0.0 for group in groups):
        same = f"Runs of the same seed all gave the same {metric.name}: none of the variance comes from repeats."
        yield Section("variance", title, (), (), (same,))
        return
    narrow = replace(result, groups=tuple(groups))
    varying = [name for name in ("approach", "config", "environment") if _varies(groups, name)]
    fixed, seeds = " * ".join(varying) or "1", ":".join([*varying, "seed"])
    try:
        model = mixed_model(study_results(narrow), f"`{metric.name}` ~ {fixed} + (1|{seeds})")
        shares = [replace(share, group=share.group.replace(seeds, "seed")) for share in variance_shares(model)]
    except InputError as error:
        yield Section("variance", title, (), (), (f"No model could be fitted: {error.what}.",))
        return
    figure = shares_figure(shares, title=f"{metric.name}: shares of seeds and repeats")
    yield Section("variance", title, (figure,), (), (_SHARES,))


def _has_repeated_seeds(group: GroupResult) -> bool:
    if group.key.level is not Level.FIXED_SEED or not group.selections:
        return False
    seeds = [run.seed for run in group.selections[0].runs]
    return sum(seeds.count(seed) > 1 for seed in set(seeds)) >= _FEWEST_SEEDS


def _varies(groups: list[GroupResult], name: str) -> bool:
    return len({getattr(group.key, name) for group in groups}) > 1


def _needed(result: StudyResult, asked: Mapping[str, str]) -> Section:
    """What the plan still lacks, what these runs would show, and how many it takes to see a difference that matters."""
    metric = result.primary
    style = style_for(metric.scale) if metric else style_for("")
    wanted = chosen_number(asked, "difference")
    sign = style.difference_sign
    columns = (
        *GROUP_COLUMNS,
        Column("planned"),
        Column("finished"),
        Column("missing"),
        Column("units"),
        Column("smallest seen", sign),
        Column(f"runs for {significant(wanted)}" if wanted else "runs for half"),
    )
    rows = tuple((*group_cells(group.key), *_needed_cells(group, result, wanted)) for group in result.groups)
    notes = (
        f"Smallest seen: the difference that Welch's test shows in {100 * _POWER:.0f} % of cases (alpha 0.05).",
        "It is that of two sides which have as many units, and spread, as this group.",
        "Runs for: with about so many a side the test shows that, or half of the smallest one.",
        "isorun decide makes runs until a verdict is in, and no longer; isorun power answers other questions.",
    )
    table = named_rows(Table("needed", "Runs still needed", columns, rows, notes), [one.key for one in result.groups])
    return Section("needed", "What is still to be run", (), (table,))


def _needed_cells(group: GroupResult, result: StudyResult, wanted: float | None) -> tuple[str, ...]:
    counted = (
        str(group.planned),
        str(group.finished),
        str(max(group.planned - group.finished, 0)),
        str(group.units.count),
    )
    metric = result.primary
    if metric is None:
        return (*counted, UNKNOWN, UNKNOWN)
    style = style_for(metric.scale)
    spread = group.selections[0].every.metrics[metric.name].overall
    if spread.sd is None or not spread.sd or group.units.count < 2:
        return (*counted, UNKNOWN, UNKNOWN)
    seen = power(runs=group.units.count, sd=spread.sd, test="welch", power=_POWER).difference
    target = seen / 2 if wanted is None else wanted / style.factor
    return (*counted, style.difference(seen), _runs_for(target, spread.sd))


def _runs_for(difference: float, sd: float) -> str:
    try:
        return f"{power(difference=difference, sd=sd, test='welch', power=_POWER).runs:,}"
    except InputError:  # more than anybody plans
        return "over 5,000"
