"""The DREAM paper's two motivating cases, replayed from the logs its authors published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, final

from isorun.study.design import Study
from isorun.study.records import RunRecord
from isorun.zoo.data.presence import at_hand, require
from isorun.zoo.paper import SCALES, AbstractPaper, Exhibit, Network, Omission, Presentation, Request, Scale

__all__ = ["PAPER", "Dream"]

_DATA: Final = "dream-search-logs"
_CASES: Final = MappingProxyType({"case-1": "I", "case-2": "II"})
_COST: Final = "a second on any machine; nothing is trained"


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
        from isorun.zoo.studies.dream.presentation import presented  # noqa: PLC0415 - keeps listings fast

        made = request.scale == "smoke" and not at_hand(_DATA)
        cases = [_CASES[part] for part in request.only or tuple(_CASES)]
        return presented(cases, None if made else require(_DATA))


PAPER: Final = Dream()
