"""What a study found, as every report shows it: the verdict first, then its sections with figures and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from isorun.analysis.evidence import Condition, first_of
from isorun.analysis.evidence.judged import JudgedMetric
from isorun.analysis.evidence.run_units import FINAL_WEIGHTS
from isorun.analysis.spreads import Spread
from isorun.analysis.studies.group_result import GroupResult, SelectionResult
from isorun.analysis.studies.study_result import StudyResult
from isorun.report import Listing, NumberStyle, Section, Table, View, count, style_for
from isorun.report.churn_tables import churn_tables
from isorun.report.class_tables import class_tables
from isorun.report.figures.curves import curve_figures
from isorun.report.figures.study_figures import class_figures, overall_figures, time_figures
from isorun.report.run_tables import provenance_tables, run_tables
from isorun.report.study_tables import group_cells, identical_tables, named_rows, spread_tables, time_tables
from isorun.study.cells import GROUP_FACTORS, Level

__all__ = [
    "first_look",
    "group_sentence",
    "headline",
    "listings",
    "study_sections",
    "study_tables",
    "study_view",
    "verdict",
    "warnings",
]

_MOST_GROUPS: Final = 6
_OTHERS_TOLD: Final = 3
_LEVEL_WORDS: Final = {
    Level.DEFAULT: "by default",
    Level.FIXED_SEED: "with the seed fixed",
    Level.DETERMINISTIC: "with deterministic kernels",
}

_MIXED: Final = {
    "code-differs": "different code",
    "input-differs": "different input",
    "packages-differ": "different packages",
    "machine-differs": "different machines",
}
"""Conditions of a group whose runs are not of one kind, so that their spread is not that of identical runs."""

_TITLES: Final = {
    "spread": "How much the results vary",
    "classes": "How much single classes vary",
    "churn": "Which examples change",
    "identical": "What is left when everything is the same",
    "time": "How long it takes",
    "curves": "How it gets there",
    "runs": "What was run",
    "provenance": "What it comes from",
}
_OF_GROUPS: Final = frozenset({"default-not-independent", "few-runs", "no-identical-runs", "runs-failed", "weak-runs"})
"""What is known against the spread of a group. Trials of a search are not repeated for it; bad ones are part of it,
and those that failed are counted and judged by the search."""
_NAMED_TRIALS: Final = 3


def verdict(result: StudyResult) -> tuple[str, ...]:
    """The headline of every approach, then one sentence a group, by the primary metric and the primary selection.

    With many groups the sentences would bury the headlines, and are left to the tables. Of searches what is said of
    them, the first sentence of each before the others: a trial has one run, and its spread is not what was asked for.
    """
    if result.searches:
        rest = (sentence for view in _search_views(result).values() for sentence in view.verdict[1:])
        return (*headline(result), *rest)
    metric = result.primary
    if metric is None:
        return (_nothing_to_judge(result), *_weights_alone(result))
    first = headline(result)
    if first and len(result.groups) > _MOST_GROUPS:
        return first
    mixed = _mixed(result)
    return (*first, *(group_sentence(group, metric, mixed.get(group.key.label, "")) for group in result.groups))


def headline(result: StudyResult) -> tuple[str, ...]:
    """For each approach that ran at several levels: how far apart two runs can be at each; of each search its best."""
    if result.searches:
        return tuple(sentence for view in _search_views(result).values() for sentence in view.verdict[:1])
    metric = result.primary
    if metric is None:
        return ()
    families: dict[tuple[str, ...], list[GroupResult]] = {}
    for group in result.groups:
        if _largest_difference(group, metric) is not None:
            families.setdefault((group.key.approach, group.key.config, group.key.environment), []).append(group)
    mixed = _mixed(result)
    return tuple(_family_sentence(mixed, groups, metric) for groups in families.values() if len(groups) > 1)


def _mixed(result: StudyResult) -> Mapping[str, str]:
    """In what the runs of a group are not alike, where they should be, by groups; those of which nothing is known not.

    Of all groups at once: a condition may name thousands of them.
    """
    codes: dict[str, dict[str, None]] = {}
    for item in result.conditions:
        for label in item.groups if item.code in _MIXED else ():
            codes.setdefault(label, {})[item.code] = None
    return {label: " and ".join(_MIXED[code] for code in told) for label, told in codes.items()}


def group_sentence(group: GroupResult, metric: JudgedMetric, mixed: str = "") -> str:
    """Mean and spread of one group, what its digests say, and its weak runs. mixed: in what its runs are not alike."""
    judged = group.selections[0]
    overall = judged.every.metrics[metric.name].overall
    if overall.n == 0:
        return f"{group.key.label}: {_no_value(group, metric)}."
    style = style_for(metric.scale)
    clauses = [
        _mean_clause(overall, metric, style, group.finished),
        *_seed_clauses(judged, metric, style),
        *_weak_clauses(judged, metric, style),
        *_tie_clauses(group, metric),
        *([f"the runs are of {mixed}, so this is no spread of identical runs"] if mixed else _weights_clauses(group)),
        *_unseen_clauses(group, metric),
        *_units_clauses(group),
    ]
    return f"{group.key.label}: {'; '.join(clauses)}."


def _units_clauses(group: GroupResult) -> Iterator[str]:
    """What the runs count as, where that is not what they seem to be."""
    runs, units = len(group.units.unit), group.units.count
    if group.units.merges:
        yield f"{count(runs, 'run')} count as {count(units, 'independent draw')}"
    elif group.key.level.fixes_seed and 1 < units < runs:
        yield f"{count(runs, 'run')} of {count(units, 'seed')} count as {units}"


def _nothing_to_judge(result: StudyResult) -> str:
    finished = sum(group.finished for group in result.groups)
    if not finished:
        return f"No run of the study {result.study} finished, so there is nothing to say about its spread."
    return f"{count(finished, 'run')} finished, but none logged a metric, so there is nothing to judge them by."


def _no_value(group: GroupResult, metric: JudgedMetric) -> str:
    if not group.finished:
        return "no run finished"
    first = group.selections[0]
    if len(first.unjudged) == group.finished:
        why = next(iter(first.unjudged.values()))
        return f"{count(group.finished, 'run')} finished, none with an epoch that {first.selection.name} picks ({why})"
    return f"{count(group.finished, 'run')} finished, none with a usable value of {metric.name}"


def _mean_clause(overall: Spread, metric: JudgedMetric, style: NumberStyle, finished: int) -> str:
    """finished: how many runs there are; those that have no value are no part of any spread, and yet are runs."""
    mean = style.with_unit(style.value(overall.mean, overall.sd))
    others = f" of {finished} that could be judged" if finished > overall.n else ""
    if overall.sd is None:
        return f"{metric.name} {mean} in {'the' if others else 'its'} only run{others}, which says nothing about spread"
    if overall.max_difference == 0:
        number = "the" if others else "all"
        return f"{metric.name} {mean} in {number} {overall.n} runs{others} (sd 0)"
    sd = style.difference(overall.sd)
    difference = style.difference_with_unit(style.difference(overall.max_difference, overall.sd))
    return f"{metric.name} {mean} ± {sd} (sd of {overall.n} runs), max difference {difference}"


def _seed_clauses(judged: SelectionResult, metric: JudgedMetric, style: NumberStyle) -> Iterator[str]:
    """With several seeds the spread above is that of seeds and repeats together; this is the part of the repeats."""
    within = judged.within_seed_sd(metric.name)
    seeds = len({run.seed for run in judged.runs})
    if seeds > 1 and within is not None:
        yield f"among runs of the same seed sd {style.difference(within)} (pooled over {seeds} seeds)"


def _weak_clauses(judged: SelectionResult, metric: JudgedMetric, style: NumberStyle) -> Iterator[str]:
    if judged.without_weak is None:
        return
    weak = f"{len(judged.weak_runs)} of {count(len(judged.runs), 'run')} weak (near chance)"
    strong = judged.without_weak.metrics[metric.name].overall
    if strong.sd is None:
        yield weak
        return
    mean = style.with_unit(style.value(strong.mean, strong.sd))
    yield f"{weak}, without them {mean} ± {style.difference(strong.sd)} (sd of {strong.n})"


def _ties(group: GroupResult, metric: JudgedMetric) -> bool:
    """Whether runs that may be identical all have the same value of the metric."""
    spreads = [item for item in group.selections[0].by_seed(metric.name).values() if item.n > 1]
    return bool(spreads) and all(item.max_difference == 0 for item in spreads)


def _tie_clauses(group: GroupResult, metric: JudgedMetric) -> Iterator[str]:
    """Runs with the same accuracy need not be the same: what else they told may differ."""
    others = dict.fromkeys(name for same in group.identical for name in same.differing if name != metric.name)
    if others and _ties(group, metric):
        yield f"yet they differ in {first_of(list(others), _OTHERS_TOLD, ', ')}"


def _unseen_clauses(group: GroupResult, metric: JudgedMetric) -> Iterator[str]:
    """Equal values alone do not prove that runs are identical."""
    seen = any((found := same.digest(FINAL_WEIGHTS)) and found.runs > 1 for same in group.identical)
    if not seen and _ties(group, metric) and not any(same.differing for same in group.identical):
        why = f" ({first_of(group.undigested, 1)})" if group.undigested else ""
        yield f"same values; weights were not seen{why}, so that they are identical is not proven"


def _weights_clauses(group: GroupResult) -> Iterator[str]:
    """What the digests of the final weights say about runs of the same seed."""
    counts = [count for same in group.identical if (count := same.digest(FINAL_WEIGHTS)) and count.runs > 1]
    if not counts:
        return
    runs, distinct = sum(count.runs for count in counts), sum(count.distinct for count in counts)
    of_seeds = f" of {len(counts)} seeds" if len(counts) > 1 else ""
    if distinct == len(counts):
        same = "the same weights for the same seed" if of_seeds else "the same weights, bit for bit"
        unseen = sum(same.runs for same in group.identical if same.runs > 1) - runs
        yield f"all {runs} runs{of_seeds} {'whose weights were seen ' if unseen > 0 else ''}ended with {same}"
    elif group.key.level is Level.DEFAULT:
        yield f"{runs} runs gave {distinct} different weights"
    elif group.key.level is Level.FIXED_SEED:
        yield f"seed fixed, yet {runs} runs{of_seeds} gave {distinct} different weights"
    else:
        yield f"every factor that isorun can see is fixed, yet {runs} runs{of_seeds} gave {distinct} different weights"


def _weights_alone(result: StudyResult) -> Iterator[str]:
    """What is known of each group without a metric; nothing of very many, for which the tables stand."""
    if len(result.groups) > _MOST_GROUPS:
        return
    mixed = _mixed(result)
    for group in result.groups:
        if group.key.label not in mixed:
            yield from (f"{group.key.label}: {clause}." for clause in _weights_clauses(group))


def _family_sentence(mixed: Mapping[str, str], groups: Sequence[GroupResult], metric: JudgedMetric) -> str:
    style = style_for(metric.scale)
    name = groups[0].key.label.removesuffix(f" at level {groups[0].key.level}")
    parts = [_reach(group, metric, style, mixed.get(group.key.label, "")) for group in groups]
    return f"{name}: the largest difference in {metric.name} between two runs is {_joined(parts)}."


def _largest_difference(group: GroupResult, metric: JudgedMetric) -> float | None:
    """That between two runs; of the same seed where the level fixes one, and None where no seed ran twice."""
    spreads = group.selections[0].by_seed(metric.name).values()
    return max((item.max_difference for item in spreads if item.max_difference is not None), default=None)


def _reach(group: GroupResult, metric: JudgedMetric, style: NumberStyle, mixed: str) -> str:
    largest = _largest_difference(group, metric)
    amount = "none" if largest == 0 else style.difference_with_unit(style.difference(largest))
    return f"{amount} {_LEVEL_WORDS[group.key.level]}{f' (runs of {mixed})' if mixed else ''}"


def _joined(parts: Sequence[str]) -> str:
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def study_view(result: StudyResult, *, figures: bool = False) -> View:
    """The whole report of a study in one view."""
    drawn = tuple(figure for section in study_sections(result) for figure in section.figures) if figures else ()
    return View(verdict(result), study_tables(result), warnings(result), drawn, listings(result))


def first_look(result: StudyResult) -> View:
    """What fits a screen: verdict, spread by the primary metric and selection, identical runs, failures, warnings.

    The other tables are folded, so that they are named.
    """
    whole = study_view(result)
    if result.searches:
        return whole
    tables = tuple(_at_first(result, one) for one in whole.tables)
    return replace(whole, verdict=_first_sentences(result, whole.verdict), tables=tables)


def _first_sentences(result: StudyResult, said: Sequence[str]) -> tuple[str, ...]:
    """As many groups as are read one after the other; where there are more, the table says the same of all."""
    left = len(said) - _MOST_GROUPS
    if left < 2 or result.primary is None or headline(result):
        return tuple(said)
    return (*said[:_MOST_GROUPS], f"{left} more groups are in the table; --full has a sentence on each.")


def _at_first(result: StudyResult, table: Table) -> Table:
    """The table as a first look shows it: by the first selection and without notes, or folded."""
    spread = f"overall-{result.primary.name}" if result.primary else ""
    if table.name not in (spread, "identical", "failures"):
        return replace(table, folded=True)
    place = next((place for place, column in enumerate(table.columns) if column.title == "selection"), None)
    if place is None:
        return replace(table, notes=())
    chosen = result.selections[0].name
    rows = tuple(row for row in table.rows if row[place] == chosen)
    return named_rows(replace(table, rows=rows, notes=()), [group.key for group in result.groups])


def warnings(result: StudyResult) -> tuple[Condition, ...]:
    """What to know and what to do about it; of a study with searches those of the searches first."""
    if not result.searches:
        return result.conditions
    own: dict[Condition, tuple[str, ...]] = {}
    for view in _search_views(result).values():
        for warning in view.warnings:  # what is the same of several searches is said once
            alike = replace(warning, groups=())
            own[alike] = (*own.get(alike, ()), *warning.groups)
    others = {one: one.groups for one in result.conditions if one.code not in _OF_GROUPS}
    return tuple(replace(one, groups=_some_of(groups)) for one, groups in (*own.items(), *others.items()))


def _some_of(groups: tuple[str, ...]) -> tuple[str, ...]:
    """The first of many trials or searches: a warning that names all is not read."""
    more = len(groups) - _NAMED_TRIALS
    return (*groups[:_NAMED_TRIALS], f"and {more} more") if more > 1 else groups


def listings(result: StudyResult) -> tuple[Listing, ...]:
    """What ends the report of searches; of several approaches or configs, what says which of them is better."""
    if result.searches:
        return tuple(listing for view in _search_views(result).values() for listing in view.listings)
    said = _who_is_better(result)
    return (Listing("Not said here", (said,)),) if said else ()


def _who_is_better(result: StudyResult) -> str:
    """What compares groups that differ in one thing alone; empty where there are none."""
    cells = [group_cells(group.key) for group in result.groups if group.finished and result.primary is not None]
    varying = [name for place, name in enumerate(GROUP_FACTORS) if len({cell[place] for cell in cells}) > 1]
    for place, factor in enumerate(GROUP_FACTORS[:3]):
        alike = Counter((*cell[:place], *cell[place + 1 :]) for cell in cells)
        most = max(alike.values(), default=0)
        if most > 1:
            command = "compare" if most == 2 else "rank"
            where = "".join(f" --where {name}={name.upper()}" for name in varying if name != factor)
            return f"Which {factor} is better: isorun {command} STUDY --by {factor}{where}."
    return ""


def _search_views(result: StudyResult, *, figures: bool = False) -> dict[str, View]:
    """What is said of each search by its name; the parts of several are named after theirs."""
    views = {name: told.view(figures=figures) for name, told in result.searches.items()}
    return views if len(views) < 2 else {name: _named_after(name, view) for name, view in views.items()}


def _named_after(search: str, view: View) -> View:
    return View(
        (*view.verdict[:1], *(f"{search}: {sentence}" for sentence in view.verdict[1:])),
        tuple(_table_after(search, table) for table in view.tables),
        tuple(replace(warning, groups=(search, *warning.groups)) for warning in view.warnings),
        tuple(
            replace(
                figure,
                name=f"{search}-{figure.name}",
                title=f"{search}: {figure.title}",
                data=_table_after(search, figure.data),
            )
            for figure in view.figures
        ),
        tuple(replace(listing, title=f"{search}: {listing.title}") for listing in view.listings),
    )


def _table_after(search: str, table: Table) -> Table:
    return replace(table, name=f"{search}-{table.name}", title=f"{search}: {table.title}")


def _search_sections(result: StudyResult) -> tuple[Section, ...]:
    """A part a search, then what was run."""
    views = _search_views(result, figures=True)
    parts = [
        Section(f"search-{place}", f"The search {name}".strip(), view.figures, view.tables)
        for place, (name, view) in enumerate(views.items(), start=1)
    ]
    return (
        *parts,
        Section("runs", _TITLES["runs"], (), _named(result, _trials_run(result))),
        Section("provenance", _TITLES["provenance"], (), tuple(provenance_tables(result))),
    )


def _trials_run(result: StudyResult) -> Iterator[Table]:
    """What trials cost, a row each, is for those who look for it; what failed is for everybody."""
    for table in run_tables(result):
        yield replace(table, folded=table.folded or table.name == "runs")


def study_sections(result: StudyResult) -> tuple[Section, ...]:
    """The parts that have something to show."""
    if result.searches:
        return _search_sections(result)
    tables = {name: _named(result, made) for name, made in _tables_by_section(result).items()}
    figures = {
        "spread": overall_figures(result),
        "classes": class_figures(result),
        "time": time_figures(result),
        "curves": curve_figures(result),
    }
    sections = (
        Section(name, title, tuple(figures.get(name, ())), tables.get(name, ())) for name, title in _TITLES.items()
    )
    return tuple(section for section in sections if section.figures or section.tables)


def study_tables(result: StudyResult) -> tuple[Table, ...]:
    """All tables in reading order, for reports without figures."""
    if result.searches:
        said = (table for view in _search_views(result).values() for table in view.tables)
        return (*said, *_named(result, _trials_run(result)), *provenance_tables(result))
    return tuple(table for made in _tables_by_section(result).values() for table in _named(result, made))


def _tables_by_section(result: StudyResult) -> dict[str, Iterable[Table]]:
    return {
        "spread": (table for metric in result.metrics for table in spread_tables(result, metric)),
        "classes": (table for metric in result.metrics for table in class_tables(result, metric)),
        "churn": churn_tables(result),
        "identical": identical_tables(result),
        "time": time_tables(result),
        "runs": run_tables(result),
        "provenance": provenance_tables(result),
    }


def _named(result: StudyResult, tables: Iterable[Table]) -> tuple[Table, ...]:
    keys = [group.key for group in result.groups]
    return tuple(named_rows(table, keys) for table in tables if table.rows or table.instead)
