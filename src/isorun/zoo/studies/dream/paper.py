"""The DREAM paper: its comparison carried out with our own repair, and its two motivating cases replayed from logs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, final

from isorun.errors import DataError
from isorun.report.figures.description import Figure
from isorun.study.design import Study
from isorun.study.records import RunRecord
from isorun.zoo.data.presence import at_hand, require
from isorun.zoo.paper import SCALES, AbstractPaper, Exhibit, Network, Omission, Presentation, Request, Scale, Undrawn
from isorun.zoo.studies.dream.design import DATA, PARTS, cases_of, planned_studies, scaled_down, study_of
from isorun.zoo.studies.dream.scales import COSTS, SIZES

__all__ = ["PAPER", "Dream"]

_LOGS: Final = "dream-search-logs"


@final
class Dream(AbstractPaper):
    """Zhang et al.: searches that are stuck, and searches that are repaired."""

    name = "dream"
    title = "DREAM: Debugging and Repairing AutoML Pipelines"
    reference = "Zhang, Zhai, Ma and Shen, arXiv 2401.00379"
    exhibits = (
        Exhibit("Table 2", "best in 25 trials, improvement, time to a target, by data set, family and method"),
        Exhibit("Table 3", "memory, and what watching takes of the time"),
        Exhibit("Table 4", "engines on the original and on the expanded space"),
        Exhibit("Figure 2", "case I: the best score by time, with a target of 75 %"),
        Exhibit("Figure 3", "case II: the best score over 25 trials"),
        Exhibit("Figures 5 and 6", "the best score by trial and by time"),
        Exhibit("Figure 7", "searches that are repaired after 10 trials by another strategy"),
        Exhibit("Figure 8", "shares of the time"),
        Exhibit("Figure 9", "repair within the original space"),
        Exhibit("Figure 10", "the prior against shuffled ones"),
        Exhibit("Section 3.1", "the numbers stated about both cases"),
        Exhibit("ours", "engines, random search and edits on the expanded space; no prior; the same with another seed"),
    )
    not_attempted = (
        Omission("Figures 1 and 4", "drawings of a pipeline and of the design; there is nothing to measure."),
        Omission("Table 1", "a list of the actions that DREAM adds; there is nothing to measure."),
    )
    networks: tuple[Network, ...] = ()
    data = (_LOGS, *DATA)
    parts = PARTS
    scales: Mapping[str, Scale] = {name: Scale(name, COSTS[name], scaled_down(SIZES[name])) for name in SCALES}

    def studies(self, request: Request) -> tuple[Study, ...]:
        """One study a data set and seed, with the searches of all methods."""
        planned = planned_studies(request)
        if request.scale != "smoke" and not request.recorded:
            _require([*((_LOGS,) if cases_of(request) else ()), *dict.fromkeys(study.data for study in planned)])
        return tuple(study_of(study, request, _is_made(request)) for study in planned)

    def present(self, request: Request, records: Mapping[str, Sequence[RunRecord]]) -> Presentation:
        """The searches in the paper's tables and figures, and the cases replayed."""
        from isorun.zoo.studies.dream.presentation import presented  # noqa: PLC0415 - scipy loads when needed

        def logs() -> Path | None:
            return None if request.scale == "smoke" and not at_hand(_LOGS) else require(_LOGS)

        return presented(request, records, logs, _is_made(request))

    def figures(self, numbers: Mapping[str, Any]) -> Iterator[Figure | Undrawn]:
        """Figures 2, 3 and 5 to 10."""
        from isorun.zoo.studies.dream.figures import figures_of  # noqa: PLC0415 - as above

        return figures_of(numbers)


def _is_made(request: Request) -> Callable[[str], bool]:
    """At scale smoke, data that is not at hand is made on the spot."""
    return lambda data: request.scale == "smoke" and not at_hand(data)


def _require(names: Sequence[str]) -> None:
    """All missing data sets in one message, so that one command gets them."""
    missing = [name for name in names if not at_hand(name)]
    if missing:
        raise DataError(
            f"dream needs data that is not at hand: {', '.join(missing)}",
            hint=f"isorun data get {' '.join(missing)}; or leave parts out with --only",
        )


PAPER: Final = Dream()
