"""What the replay says, in sentences and as plain JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from isorun.analysis.evidence.condition import Condition
from isorun.report.numbers import fixed, significant
from isorun.zoo.data.searches.search_logs import SearchLogs
from isorun.zoo.studies.dream.claims import DAY, HOUR, TARGET, TRIALS, Finding
from isorun.zoo.studies.dream.searches import SearchProgress, replay
from isorun.zoo.studies.dream.tables import label, stated_and_found

__all__ = ["case_sentences", "numbers", "summary_sentence", "warnings"]


def summary_sentence(findings: Sequence[Finding], stated: str) -> str:
    """How many of the stated numbers the logs give, and which they do not."""
    checked = [finding for finding in findings if finding.present]
    differing = [finding for finding in checked if not finding.agrees]
    sentence = f"{len(checked) - len(differing)} of {len(checked)} numbers {stated} come out of the search logs"
    if not differing:
        return f"{sentence}."
    return f"{sentence}; these do not: {'; '.join(map(_difference, differing))}."


def _difference(finding: Finding) -> str:
    claim = finding.claim
    stated, found = stated_and_found(finding)
    unit = f" {claim.quantity.unit}" if claim.quantity.unit else ""
    written = f"{stated} stated, {found}{unit} found"
    return f"{label(claim.tuner)}'s {claim.quantity.name} in case {claim.case} ({written})"


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


def numbers(findings: Sequence[Finding], logs: SearchLogs, cases: Sequence[str]) -> dict[str, Any]:
    """The claims and the searches as plain JSON."""
    return {
        "origin": logs.origin,
        "claims": [_claim_json(finding) for finding in findings],
        "searches": [
            {"case": search.case, "tuner": search.tuner, **_run_json(replay(search, TRIALS), replay(search, None))}
            for search in logs.searches
            if search.case in cases
        ],
    }


def _claim_json(finding: Finding) -> dict[str, Any]:
    claim = finding.claim
    return {
        "case": claim.case,
        "tuner": claim.tuner,
        "quantity": claim.quantity.name,
        "unit": claim.quantity.unit,
        "stated": claim.value,
        "found": finding.measured,
        "has_log": finding.present,
        "same": finding.agrees,
        "remark": "" if finding.agrees else claim.remark,
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
    }
