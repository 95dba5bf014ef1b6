"""Reproducibility and Stability Analysis in Metric-Based Few-Shot Learning, as studies and tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, final

from isorun.report.figures.description import Figure
from isorun.study.design import Study
from isorun.study.records import RunRecord
from isorun.zoo.models.few_shot_sizes import parameters
from isorun.zoo.paper import AbstractPaper, Exhibit, Network, Omission, Presentation, Request, Scale
from isorun.zoo.studies.fewshot.design import studies_of
from isorun.zoo.studies.fewshot.experiments import CONTROL, EXPERIMENTS
from isorun.zoo.studies.fewshot.scales import PLANS, scale_of

__all__ = ["PAPER", "Fewshot"]


def _networks() -> tuple[Network, ...]:
    """As the paper has them, on miniImageNet; smaller images make smaller networks."""
    data = ("miniimagenet", "cifar-fs", "omniglot")
    named = {
        "matching networks (Conv-4, full context)": parameters("matching"),
        "prototypical networks (Conv-4)": parameters("prototypical"),
        "TADAM (ResNet-12, task conditioning)": parameters("tadam"),
        "prototypical networks (ResNet-12)": parameters("prototypical", backbone="resnet12"),
    }
    return tuple(Network(name, number, data) for name, number in named.items())


@final
class Fewshot(AbstractPaper):
    """Matching networks, prototypical networks and TADAM: are their results stable over repeats, seeds and reruns?"""

    name = "fewshot"
    title = "Reproducibility and Stability Analysis in Metric-Based Few-Shot Learning"
    reference = "Workshop at the International Conference on Learning Representations (ICLR), 2019"
    exhibits = (
        Exhibit("Table 1", "likelihood-ratio tests of the random effects"),
        Exhibit("Table 2", "differences between the two rounds of each experiment"),
        Exhibit("Table 3", "the search space the configs are drawn from"),
        Exhibit("Table 4", "F test of the experiments"),
        Exhibit("Table 5", "control: one seed, identical runs"),
        Exhibit("H1, H2, H3", "stability over repeats, seeds and reruns, as verdicts"),
    )
    not_attempted = (
        Omission(
            "Table 6",
            "the three best of the authors' own search over miniImageNet with and without normalisation; the best of "
            "many runs is no result that a rerun could meet, and miniImageNet may not be passed on.",
        ),
    )
    data = ("miniimagenet", "cifar-fs", "omniglot", "omniglot-vinyals")
    parts = (*(item.name for item in EXPERIMENTS), CONTROL)
    scales: Mapping[str, Scale] = MappingProxyType({name: scale_of(plan) for name, plan in PLANS.items()})
    networks = _networks()

    def studies(self, request: Request) -> tuple[Study, ...]:
        """The design of section 4, and the control."""
        from isorun.zoo.data.presence import at_hand, require  # noqa: PLC0415 - listing papers needs no data

        plan = PLANS[request.scale]
        there = next(filter(at_hand, plan.data), None)
        if there is None and not plan.made and not request.recorded:
            require(plan.data[0])
        return studies_of(request, there or plan.data[0], made=there is None and plan.made)

    def present(self, request: Request, records: Mapping[str, Sequence[RunRecord]]) -> Presentation:
        """The paper's tables with our numbers."""
        from isorun.zoo.studies.fewshot.presentation import presented  # noqa: PLC0415 - statistics load when used

        return presented(request, records)

    def figures(self, numbers: Mapping[str, Any]) -> Iterator[Figure]:
        """The shares of the variance, and the two rounds of each experiment."""
        from isorun.zoo.studies.fewshot.presentation import figures_of  # noqa: PLC0415 - as above

        return figures_of(numbers)


PAPER: Final = Fewshot()
