"""The DREAM paper's two motivating cases, replayed from the logs its authors published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, final

from isorun.report.figures.description import Figure
from isorun.report.tables import Table
from isorun.study.design import Study
from isorun.study.records import RunRecord
from isorun.zoo.data.presence import at_hand, require
from isorun.zoo.data.searches.search_logs import Search, SearchLogs
from isorun.zoo.data.searches.search_originals import load_search_logs
from isorun.zoo.paper import SCALES, AbstractPaper, Exhibit, Network, Omission, Presentation, Request, Scale
from isorun.zoo.studies.dream.claims import Finding, check_claims
from isorun.zoo.studies.dream.figures import best_by_time, best_by_trial
from isorun.zoo.studies.dream.made_logs import KNOWN, made_logs
from isorun.zoo.studies.dream.published import PUBLISHED, SECTION, TUNERS
from isorun.zoo.studies.dream.running import check_running
from isorun.zoo.studies.dream.tables import claims_table, running_table, searches_table
from isorun.zoo.studies.dream.verdict import case_sentences, numbers, summary_sentence, warnings

__all__ = ["Dream"]

_DATA: Final = "dream-search-logs"
_CASES: Final = MappingProxyType({"case-1": "I", "case-2": "II"})
_TITLES: Final = {"I": "Case I: searches for a score of 75 %", "II": "Case II: searches of 25 trials"}
_COST: Final = "a second on any machine; nothing is trained"
_MADE: Final = "the search logs are not at hand: four small searches made on the spot stand in for the eight real ones"
_NOT_HAD: Final = (
    "The searches are replayed from their logs, not carried out again: that took AutoKeras and 298 hours of GPU.",
)


@final
class Dream(AbstractPaper):
    """Zhang et al.: searches that are stuck, and searches that are repaired."""

    name = "dream"
    title = "DREAM: Debugging and Repairing AutoML Pipelines"
    reference = "Zhang, Zhai, Ma and Shen, arXiv 2401.00379"
    exhibits = (
        Exhibit("Figure 2", "case I: the best score by time, with a target of 75 %"),
        Exhibit("Figure 3", "case II: the best score over 25 trials"),
        Exhibit("Section 3.1", "the numbers stated about both cases"),
    )
    not_attempted = (
        Omission("Figures 1 and 4", "drawings of a pipeline and of the design; there is nothing to measure."),
        Omission("Table 1", "a list of the actions that DREAM adds; there is nothing to measure."),
        Omission("Tables 2 to 4, Figures 5 to 10", "searches whose logs are not published; 298 hours of GPU and more."),
    )
    networks: tuple[Network, ...] = ()
    data = (_DATA,)
    parts = tuple(_CASES)
    scales = MappingProxyType({name: Scale(name, _COST) for name in SCALES})

    def studies(self, request: Request) -> tuple[Study, ...]:
        """None: the searches were made by others; what is missing is their logs."""
        if request.scale != "smoke":
            require(_DATA)
        return ()

    def present(self, request: Request, records: Mapping[str, Sequence[RunRecord]]) -> Presentation:
        """The searches replayed; there are no records to read."""
        del records
        made = request.scale == "smoke" and not at_hand(_DATA)
        logs = made_logs() if made else load_search_logs(require(_DATA))
        cases = [_CASES[part] for part in request.only or tuple(_CASES)]
        claims = [claim for claim in (KNOWN if made else PUBLISHED) if claim.case in cases]
        findings = check_claims(logs, claims)
        return Presentation(
            verdict=_verdict(findings, logs, cases, made),
            tables=tuple(_tables(findings, logs, cases, made)),
            figures=tuple(_figures(logs, cases, made)),
            scaled_down=(_MADE,) if made else (),
            not_had=_NOT_HAD,
            warnings=() if made else warnings(logs),
            numbers={"made": made, **numbers(findings, logs, cases)},
        )


def _verdict(findings: Sequence[Finding], logs: SearchLogs, cases: Sequence[str], made: bool) -> tuple[str, ...]:
    if made:
        known = summary_sentence(findings, "that were worked out by hand")
        return ("Nothing of the paper is reproduced: its search logs are not at hand.", f"Made logs replayed: {known}")
    stated = f"the paper states in {SECTION}"
    return (summary_sentence(findings, stated), *(line for case in cases for line in case_sentences(logs, case)))


def _ordered(logs: SearchLogs, case: str) -> dict[str, Search]:
    found = logs.of_case(case)
    known = [tuner for tuner in TUNERS if tuner in found]
    return {tuner: found[tuner] for tuner in (*known, *(name for name in found if name not in known))}


def _tables(findings: Sequence[Finding], logs: SearchLogs, cases: Sequence[str], made: bool) -> list[Table]:
    stated = claims_table(findings, "known" if made else "paper")
    sides = [searches_table(case, _ordered(logs, case), _title(case, made)) for case in cases]
    running = [agreement for case in cases for agreement in check_running(logs, case)]
    return [stated, *sides, *([running_table(running)] if running else [])]


def _figures(logs: SearchLogs, cases: Sequence[str], made: bool) -> list[Figure]:
    drawn = {"I": (best_by_time, "Figure 2"), "II": (best_by_trial, "Figure 3")}
    there = [case for case in cases if logs.of_case(case)]
    return [drawn[case][0](_ordered(logs, case), f"{drawn[case][1]}. {_title(case, made)}") for case in there]


def _title(case: str, made: bool) -> str:
    return f"{_TITLES[case]} (made logs)" if made else _TITLES[case]
