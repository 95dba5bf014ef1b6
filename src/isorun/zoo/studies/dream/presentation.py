"""What the replay of the logs and our own searches say, in sentences, tables and figures, and as plain JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from isorun.analysis.evidence import Condition
from isorun.errors import DataError
from isorun.report import Table, fixed, significant
from isorun.study.records import RunRecord
from isorun.zoo.data.search_logs import SearchLogs, load_search_logs
from isorun.zoo.paper import Presentation, Request, drawn, smoke_verdict
from isorun.zoo.studies.dream.comparison import (
    contrast_sentences,
    contrasts,
    contrasts_table,
    second_searches,
    seeds_sentence,
    seeds_table,
)
from isorun.zoo.studies.dream.design import COMPARED, METHODS, PlannedStudy, cases_of, planned_studies, scaled_down
from isorun.zoo.studies.dream.figures import case_figures, case_title, searched_figures
from isorun.zoo.studies.dream.findings import (
    DAY,
    HOUR,
    KNOWN,
    TARGET,
    TRIALS,
    CheckedStatement,
    check_running,
    check_statements,
    made_logs,
)
from isorun.zoo.studies.dream.measured import MeasuredSearch, SearchProgress, measured_searches, replay
from isorun.zoo.studies.dream.published import PUBLISHED, SECTION, STRATEGIES, TABLE_2, TABLE_3, TABLE_4
from isorun.zoo.studies.dream.tables import (
    cost_table,
    expansion_table,
    in_papers_order,
    label,
    overall_tables,
    problem_rows,
    running_table,
    searches_table,
    stated_and_found,
    statements_table,
    time_shares,
)

__all__ = ["case_sentences", "numbers", "presented", "presented_cases", "summary_sentence", "warnings"]


_MADE: Final = "the search logs are not at hand: four small searches made on the spot stand in for the eight real ones"
_NOT_HAD: Final = (
    "The searches of the two cases are replayed from their logs, not made again: that took 298 hours of GPU.",
)
_OTHER_SEARCHES: Final = (
    "AutoKeras 1.0.12, Food-101, Stanford Cars and TinyImageNet: small networks are trained instead, on other data.",
    "Pretrained networks: all are trained from scratch, without the fine-tuning that the best published models use.",
    "Hyperband: random draws stand for it, as it draws its configurations; trials of seconds are not cut short.",
)


def presented(
    request: Request,
    records: Mapping[str, Sequence[RunRecord]],
    logs: Callable[[], Path | None],
    is_made: Callable[[str], bool],
) -> Presentation:
    """The cases and the searches that were asked for. logs: the folder of the published ones, None for made ones."""
    cases, planned = cases_of(request), planned_studies(request)
    replayed = _replayed(request, cases, logs)
    if not planned:
        return replayed
    return _together(replayed, _presented_searches(request, planned, records, is_made))


def _replayed(request: Request, cases: Sequence[str], logs: Callable[[], Path | None]) -> Presentation:
    """The cases; who shows records of another machine need not have the logs."""
    if not cases:
        return Presentation(())
    try:
        return presented_cases(cases, logs())
    except DataError as error:
        if not request.recorded or "not at hand" not in error.what:
            raise
        return Presentation((), not_had=("The two cases: their logs are not at hand.",))


def _together(replayed: Presentation, searched: Presentation) -> Presentation:
    """Our own searches first."""
    return Presentation(
        verdict=(*searched.verdict, *replayed.verdict),
        tables=(*searched.tables, *replayed.tables),
        figures=(*searched.figures, *replayed.figures),
        scaled_down=(*searched.scaled_down, *replayed.scaled_down),
        not_had=(*searched.not_had, *replayed.not_had),
        warnings=(*searched.warnings, *replayed.warnings),
        numbers={**replayed.numbers, **searched.numbers},
    )


def _presented_searches(
    request: Request,
    planned: Sequence[PlannedStudy],
    records: Mapping[str, Sequence[RunRecord]],
    is_made: Callable[[str], bool],
) -> Presentation:
    searches = measured_searches(planned, records)
    made = [data for data in dict.fromkeys(study.data for study in planned) if is_made(data)]
    told = _searches_json(searches)
    return Presentation(
        verdict=tuple(_search_verdict(request, planned, searches)),
        tables=tuple(_search_tables(planned, searches)),
        figures=drawn(searched_figures(told)),
        scaled_down=scaled_down({study.data: study.size for study in planned}),
        not_had=(*(f"{data}: small images made on the spot stand in for it" for data in made), *_OTHER_SEARCHES),
        warnings=tuple(_search_warnings(request, planned, searches)),
        numbers={"compared": told},
    )


def _search_verdict(
    request: Request, planned: Sequence[PlannedStudy], searches: Sequence[MeasuredSearch]
) -> Iterator[str]:
    finished = sum(not trial.failed for search in searches for trial in search.trials)
    complete = [search for search in searches if search.is_complete]
    if request.scale == "smoke" and finished:
        yield from smoke_verdict(finished)
        return
    if not complete:
        yield "No search of ours is complete, so nothing can be said about the paper's comparison."
        return
    total = sum(len(study.searches) for study in planned)
    yield f"{len(complete)} of {total} searches are complete, {finished:,} trainings."
    yield from contrast_sentences(contrasts(searches))
    yield from filter(None, (_target_sentence(complete), seeds_sentence(second_searches(searches))))


def _target_sentence(complete: Sequence[MeasuredSearch]) -> str:
    reached = []
    for method in COMPARED:
        own = [search for search in complete if search.method is method]
        hits = sum(search.progress.reached(search.target) is not None for search in own)
        reached += [f"{method.label} {hits} of {len(own)}"] if own else []
    theirs = (
        f"{strategy} {sum(row.hours[at] is not None for row in TABLE_2)}" for at, strategy in enumerate(STRATEGIES)
    )
    return f"The target is reached by {', '.join(reached)} (published, of {len(TABLE_2)}: {', '.join(theirs)})."


def _search_tables(planned: Sequence[PlannedStudy], searches: Sequence[MeasuredSearch]) -> Iterator[Table]:
    yield contrasts_table(contrasts(searches))
    yield from overall_tables(problem_rows(searches), max(study.size.trials for study in planned))
    yield cost_table(searches)
    yield expansion_table(searches)
    if again := second_searches(searches):
        yield seeds_table(again)


def _search_warnings(
    request: Request, planned: Sequence[PlannedStudy], searches: Sequence[MeasuredSearch]
) -> Iterator[Condition]:
    again = f"isorun reproduce dream --scale {request.scale} again: only what is missing is run"
    complete = {
        (search.data, search.seed, search.family, search.method.name) for search in searches if search.is_complete
    }
    open_ones = [
        f"{study.name}: {search.name}"
        for study in planned
        for search in study.searches
        if (study.data, study.seed, search.family, search.method.name) not in complete
    ]
    if open_ones:
        message = (
            f"of {sum(len(study.searches) for study in planned)} searches these are not complete, and in no comparison"
        )
        yield Condition("searches-open", message, again, tuple(open_ones))
    if request.scale != "smoke" and any(len(one.differences) < 6 for one in contrasts(searches)):
        message = "some methods are compared by fewer than six pairs: their intervals are wide"
        yield Condition("few-pairs", message, f"isorun reproduce dream --scale {request.scale} --runs 6")


def _searches_json(searches: Sequence[MeasuredSearch]) -> dict[str, Any]:
    return {
        "searches": [search.to_json() for search in searches],
        "time_shares": time_shares(searches),
        "contrasts": [one.to_json() for one in contrasts(searches)],
        "second_searches": [asdict(one) for one in second_searches(searches)],
        "methods": {name: asdict(method) for name, method in METHODS.items()},
        "published": {
            "strategies": list(STRATEGIES),
            "table_2": [asdict(row) for row in TABLE_2],
            "table_3": [asdict(row) for row in TABLE_3],
            "table_4": [asdict(row) for row in TABLE_4],
        },
    }


def presented_cases(cases: Sequence[str], folder: Path | None) -> Presentation:
    """The searches of these cases replayed. folder: of the published logs; None for small ones made on the spot."""
    made = folder is None
    logs = made_logs() if folder is None else load_search_logs(folder)
    statements = [item for item in (KNOWN if made else PUBLISHED) if item.case in cases]
    findings = check_statements(logs, statements)
    told = {"made": made, **numbers(findings, logs, cases)}
    return Presentation(
        verdict=_verdict(findings, logs, cases, made),
        tables=tuple(_tables(findings, logs, cases, made)),
        figures=drawn(case_figures(told)),
        scaled_down=(_MADE,) if made else (),
        not_had=_NOT_HAD,
        warnings=() if made else warnings(logs),
        numbers=told,
    )


def _verdict(
    findings: Sequence[CheckedStatement], logs: SearchLogs, cases: Sequence[str], made: bool
) -> tuple[str, ...]:
    if made:
        known = summary_sentence(findings, "that were worked out by hand")
        return ("Nothing of the paper is reproduced: its search logs are not at hand.", f"Made logs replayed: {known}")
    stated = f"the paper states in {SECTION}"
    return (summary_sentence(findings, stated), *(line for case in cases for line in case_sentences(logs, case)))


def _tables(findings: Sequence[CheckedStatement], logs: SearchLogs, cases: Sequence[str], made: bool) -> list[Table]:
    stated = statements_table(findings, "known" if made else "paper")
    sides = [searches_table(case, in_papers_order(logs.of_case(case)), case_title(case, made=made)) for case in cases]
    running = [agreement for case in cases for agreement in check_running(logs, case)]
    return [stated, *sides, *([running_table(running)] if running else [])]


def summary_sentence(findings: Sequence[CheckedStatement], stated: str) -> str:
    """How many of the stated numbers the logs give, and which they do not."""
    checked = [finding for finding in findings if finding.present]
    differing = [finding for finding in checked if not finding.agrees]
    sentence = f"{len(checked) - len(differing)} of {len(checked)} numbers {stated} come out of the search logs"
    if not differing:
        return f"{sentence}."
    return f"{sentence}; these do not: {'; '.join(map(_difference, differing))}."


def _difference(finding: CheckedStatement) -> str:
    statement = finding.statement
    stated, found = stated_and_found(finding)
    unit = f" {statement.quantity.unit}" if statement.quantity.unit else ""
    written = f"{stated} stated, {found}{unit} found"
    return f"{label(statement.tuner)}'s {statement.quantity.name} in case {statement.case} ({written})"


def case_sentences(logs: SearchLogs, case: str) -> tuple[str, ...]:
    """Who was first to the target, and who was best over equal trials and over equal time."""
    searches = logs.of_case(case).items()
    whole = {label(tuner): replay(search, None) for tuner, search in searches}
    start = {label(tuner): replay(search, TRIALS) for tuner, search in searches}
    by_trial = _ranked((name, run.best) for name, run in start.items())
    by_time = _ranked((name, run.best_within(DAY)) for name, run in whole.items())
    took = f"its {TRIALS} trials took {significant(start[by_trial[0][0]].elapsed_s / HOUR)} h" if by_trial else ""
    found = (
        _first_to_target(case, whole),
        f"Case {case}, {TRIALS} trials: {_best_of(by_trial)}; {took}." if by_trial else "",
        f"Case {case}, 24 hours: {_best_of(by_time)}." if by_time else "",
    )
    return tuple(sentence for sentence in found if sentence)


def _first_to_target(case: str, runs: dict[str, SearchProgress]) -> str:
    hits = ((name, run.reached(TARGET)) for name, run in runs.items())
    order = sorted((point.elapsed_s / HOUR, name) for name, point in hits if point is not None)
    reached = ", ".join(f"{name} after {significant(hours)} h" for hours, name in order)
    return f"Case {case}, target {100 * TARGET:g} %: {reached or 'reached by none'}." if runs else ""


def _ranked(scores: Iterable[tuple[str, float | None]]) -> list[tuple[str, float]]:
    known = [(name, score) for name, score in scores if score is not None]
    return sorted(known, key=lambda pair: -pair[1])


def _best_of(ranked: Sequence[tuple[str, float]]) -> str:
    name, best = ranked[0]
    sentence = f"{name} is best with {fixed(100 * best, 2)} %"
    if len(ranked) == 1:
        return sentence
    return f"{sentence}, {significant(100 * (best - ranked[1][1]))} points above {ranked[1][0]}"


def warnings(logs: SearchLogs) -> tuple[Condition, ...]:
    """One search for each strategy is no sample."""
    message = (
        f"Of each strategy there is one search a case, {len(logs.searches)} in all: the logs show what happened once, "
        "not that one strategy is better."
    )
    return (Condition("single-searches", message, "Repeat the searches with other seeds before you rank them."),)


def numbers(findings: Sequence[CheckedStatement], logs: SearchLogs, cases: Sequence[str]) -> dict[str, Any]:
    """The statements and the searches as plain JSON."""
    return {
        "origin": logs.origin,
        "claims": [_statement_json(finding) for finding in findings],
        "searches": [
            {"case": search.case, "tuner": search.tuner, **_run_json(replay(search, TRIALS), replay(search, None))}
            for search in logs.searches
            if search.case in cases
        ],
    }


def _statement_json(finding: CheckedStatement) -> dict[str, Any]:
    statement = finding.statement
    return {
        "case": statement.case,
        "tuner": statement.tuner,
        "quantity": statement.quantity.name,
        "unit": statement.quantity.unit,
        "stated": statement.value,
        "found": finding.measured,
        "has_log": finding.present,
        "same": finding.agrees,
        "remark": "" if finding.agrees else statement.remark,
    }


def _run_json(start: SearchProgress, whole: SearchProgress) -> dict[str, Any]:
    hit = whole.reached(TARGET)
    return {
        "first": start.start,
        f"best_of_{TRIALS}": start.best,
        f"improving_of_{TRIALS}": list(start.improving),
        f"seconds_of_{TRIALS}": start.elapsed_s,
        "best_within_24_hours": whole.best_within(DAY),
        "seconds_to_target": None if hit is None else hit.elapsed_s,
        "best": whole.best,
        "trials": len(whole.curve),
        "seconds": whole.elapsed_s,
        "curve": [[point.trial, point.elapsed_s, point.best] for point in whole.curve],
    }
