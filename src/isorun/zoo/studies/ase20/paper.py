"""Pham et al., "Problems and Opportunities in Training Deep Learning Software Systems" (ASE 2020)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, final

from isorun.errors import DataError
from isorun.report.figures.description import Figure
from isorun.study.design import Study
from isorun.study.records import RunRecord
from isorun.zoo.data.presence import at_hand
from isorun.zoo.paper import SCALES, AbstractPaper, Exhibit, Network, Omission, Presentation, Request, Scale, Undrawn
from isorun.zoo.studies.ase20.design import ON_REQUEST, PARTS, planned_parts, scaled_down, study_of
from isorun.zoo.studies.ase20.scales import COSTS, LENETS, NETWORKS, OTHER_DATA

__all__ = ["PAPER", "Ase20"]


def _scale(name: str) -> Scale:
    return Scale(name, COSTS[name], scaled_down(planned_parts(Request(name, folder=Path()))))


@final
class Ase20(AbstractPaper):
    """Six networks at two levels of nondeterminism; a third level, further data and single factors are ours."""

    name = "ase20"
    title = "Problems and Opportunities in Training Deep Learning Software Systems: An Analysis of Variance"
    reference = "Pham et al., ASE 2020, doi 10.1145/3324884.3416545"
    exhibits = (
        Exhibit("Table 1", "data, networks and settings"),
        Exhibit("Table 2", "differences in accuracy between identical runs, overall and per class"),
        Exhibit("Table 3", "differences in time to convergence"),
        Exhibit("Figure 2", "boxplots of default runs"),
        Exhibit("Figure 3", "boxplots of fixed-seed runs"),
        Exhibit("Figure 4", "fixed-seed runs with three core libraries: TensorFlow, JAX and PyTorch below Keras"),
        Exhibit("Section 5.2", "Levene's test of default against fixed-seed; ResNet38 against ResNet56"),
        Exhibit("ours", "deterministic runs; share of the variance from each algorithmic factor; seed against kernels"),
    )
    not_attempted = (
        Omission("Figure 1", "a drawing of the method; there is nothing to measure."),
        Omission("Figure 5", "11 sets of versions of low-level libraries, of TensorFlow 1, which is gone."),
        Omission("Figures 6 and 7, Findings 5 to 8", "answers of 901 people to a survey; no training can repeat it."),
    )
    networks = tuple(
        Network(item.name, item.parameters, (item.data, *(OTHER_DATA if item.option in LENETS else ())))
        for item in NETWORKS.values()
    )
    data = ("mnist", "cifar10", "cifar100", *OTHER_DATA)
    parts = PARTS
    on_request = ON_REQUEST
    scales: Mapping[str, Scale] = {name: _scale(name) for name in SCALES}

    def studies(self, request: Request) -> tuple[Study, ...]:
        """One study a part, and one for each network whose factors are varied."""
        planned = planned_parts(request)
        if request.scale != "smoke" and not request.recorded:
            _require(dict.fromkeys(part.data for part in planned))
        return tuple(study_of(part, request, _is_made(request)) for part in planned)

    def prepare(self, request: Request) -> None:
        """The script and the images of the trainings with other core libraries."""
        planned = [part for part in planned_parts(request) if part.libraries]
        if planned:
            from isorun.zoo.studies.ase20.libraries import carry  # noqa: PLC0415 - needs numpy

            carry(request, planned, _is_made(request))

    def present(self, request: Request, records: Mapping[str, Sequence[RunRecord]]) -> Presentation:
        """Tables 1 to 3, Figures 2 and 3, the example and the factors, ours beside the published numbers."""
        from isorun.zoo.studies.ase20.presentation import presented  # noqa: PLC0415 - scipy loads when needed

        return presented(request, records, _is_made(request))

    def figures(self, numbers: Mapping[str, Any]) -> Iterator[Figure | Undrawn]:
        """Figures 2 to 4, the factors, and repeats within seeds."""
        from isorun.zoo.studies.ase20.figures import figures_of  # noqa: PLC0415 - as above

        return figures_of(numbers)


def _is_made(request: Request) -> Callable[[str], bool]:
    """At scale smoke, data that is not at hand is made on the spot."""
    return lambda data: request.scale == "smoke" and not at_hand(data)


def _require(names: Iterable[str]) -> None:
    """All missing data sets in one message, so that one command gets them."""
    missing = [name for name in names if not at_hand(name)]
    if missing:
        raise DataError(
            f"ase20 needs data that is not at hand: {', '.join(missing)}",
            hint=f"isorun data get {' '.join(missing)}; or leave parts out with --only",
        )


PAPER: Final = Ase20()
