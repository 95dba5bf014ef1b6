"""Crane (TACL 2018): what nobody reports moves the scores of answer selection as much as published progress does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, final

from isorun.report.figures.description import Figure
from isorun.study.design import Study
from isorun.study.records import RunRecord
from isorun.zoo.paper import AbstractPaper, Exhibit, Network, Omission, Presentation, Request
from isorun.zoo.studies.tacl18.design import ON_REQUEST, PARTS, SCALES, asked_parts, planned_studies

__all__ = ["PAPER", "Tacl18"]


@final
class Tacl18(AbstractPaper):
    """Questionable Answers in Question Answering Research."""

    name = "tacl18"
    title = "Questionable Answers in Question Answering Research: Reproducibility and Variability of Published Results"
    reference = "M. Crane, Transactions of the Association for Computational Linguistics 6, 241-252, 2018"
    exhibits = (
        Exhibit("Table 1", "sizes of the data sets"),
        Exhibit("Tables 2 and 3", "published systems, their gains, and the idf-sum baseline"),
        Exhibit("Table 5", "versions of the framework: of JAX, in place of PyTorch 0.1.9 to 0.2.0"),
        Exhibit("Table 6", "math paths on the CPU"),
        Exhibit("Table 7", "number of threads"),
        Exhibit("Table 8", "CPU and GPU, with and without cuDNN"),
        Exhibit("Figure 2", "AP and RR over the seeds"),
        Exhibit("Table 9", "agreement of the rankings of seeds by Kendall's tau and Spearman's rho"),
        Exhibit("Figure 3", "change of AP and RR when the device changes and the seed stays"),
        Exhibit("Section 4.6", "what rounding does to comparisons"),
        Exhibit("ours", "agreement of CPU and GPU with dropout masks that both share, and with each device's own"),
    )
    not_attempted = (
        Omission("Figure 1", "a drawing of the model; there is nothing to measure."),
        Omission(
            "Table 4", "versions of the authors' code, which needs PyTorch 0.1.x; that cannot be installed any more."
        ),
    )
    networks = (Network("SM-CNN", 92_430, ("trecqa", "wikiqa")),)
    data = ("trecqa", "wikiqa", "glove")
    parts = PARTS
    on_request = ON_REQUEST
    scales = SCALES

    def studies(self, request: Request) -> tuple[Study, ...]:
        """The studies of the parts that were asked for; data that are missing are an error except at scale smoke."""
        return planned_studies(request)

    def prepare(self, request: Request) -> None:
        """The script and the arrays of the trainings with other versions of a framework."""
        if "versions" in asked_parts(request):
            from isorun.zoo.studies.tacl18.versions import carry  # noqa: PLC0415 - needs numpy

            carry(request)

    def present(self, request: Request, records: Mapping[str, Sequence[RunRecord]]) -> Presentation:
        """The tables and figures of those parts."""
        from isorun.zoo.studies.tacl18.presentation import presented  # noqa: PLC0415 - keeps listings fast

        return presented(request, records)

    def figures(self, numbers: Mapping[str, Any]) -> Iterator[Figure]:
        """Figures 2 and 3, and the distributions over the seeds."""
        from isorun.zoo.studies.tacl18.figures import figures_of  # noqa: PLC0415 - as above

        return figures_of(numbers)


PAPER: Final = Tacl18()
