"""The figures of docs/statistics-explained.md, drawn by isorun: `python docs/building/figures.py docs/figures`.

They show the runs of examples/moons, a fixed calculation, or a probability; nothing is drawn at random, so that
the same files come out again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

import isorun
from isorun.report import Column, Table, fixed
from isorun.report.figures.axes import value_axis
from isorun.report.figures.decision_paths import sequential_path
from isorun.report.figures.description import Dot, Figure, Legend, Line
from isorun.report.figures.distributions import strip
from isorun.report.figures.effects import ForestRow, forest, paired_change, shares_figure
from isorun.report.figures.files import save_figure
from isorun.report.figures.marks import ESTIMATE
from isorun.report.figures.power_curves import power_figure
from isorun.stats import Pairs, sd_interval, variance_shares

__all__ = ["drawn"]

SLOW: Final = [86.1, 84.7, 85.4, 84.4, 84.2, 85.0, 84.9, 85.9, 83.7, 84.1, 84.6, 84.3]
FAST: Final = [86.7, 85.1, 87.1, 85.3, 84.1, 86.6, 87.3, 86.8, 82.2, 84.7, 87.3, 84.6]
"""Accuracies of the study in examples/moons in percent, by seed: what `isorun run study.toml` gives there."""

BEST_OF_NORMAL: Final = (0.0, 0.5642, 0.8463, 1.0294, 1.1630, 1.2672, 1.3522, 1.4236, 1.4850, 1.5388)
"""The mean of the largest of 1, 2, … 10 standard normal values (Harter 1961)."""


def drawn() -> Iterator[Figure]:
    """Every figure, each named as its file."""
    yield strip({"slow": SLOW, "fast": FAST}, "test accuracy (%)", name="explained-runs", title="Twelve runs of each")
    yield _spread_of_few()
    yield paired_change(
        Pairs(np.array(SLOW), np.array(FAST)),
        "slow",
        "fast",
        "test accuracy (%)",
        name="explained-pairs",
        title="The same seeds",
    )
    yield power_figure(isorun.power(effect_size=1.0), name="explained-power")
    yield _looks()
    yield _best_of()
    yield shares_figure(variance_shares(_model()), name="explained-shares")


def _looks() -> Figure:
    decision = isorun.decide(FAST, SLOW, direction="higher")
    assert isinstance(decision, isorun.Decision)
    return sequential_path(decision, "fast", "slow", name="explained-looks", title="Looking again")


def _spread_of_few() -> Figure:
    rows = [ForestRow(f"{runs} runs", 1.0, sd_interval(1.0, runs, confidence=0.9)) for runs in (3, 5, 8, 12, 20, 50)]
    label = "true standard deviation, where the runs show 1"
    return forest(
        rows,
        label,
        reference=1.0,
        level=0.9,
        name="explained-spread",
        title="What few runs leave open of the spread",
    )


def _best_of() -> Figure:
    points = tuple((float(k), value) for k, value in enumerate(BEST_OF_NORMAL, start=1))
    columns = (Column("runs"), Column("above the mean, in sd"))
    return Figure(
        name="explained-best-of",
        title="The best of several runs of the same training",
        sentence="How far the best of k runs lies above the mean of all there could be, with no improvement at all.",
        x=value_axis("runs, of which the best is reported", [0.0, 10.0], whole=True),
        y=value_axis("above the mean, in standard deviations", [0.0, 1.6]),
        data=Table(
            "data-explained-best-of",
            "Data",
            columns,
            tuple((str(k), fixed(value, 2)) for k, value in enumerate(BEST_OF_NORMAL, start=1)),
        ),
        lines=(Line(points, 0),),
        dots=tuple(Dot(k, value, ESTIMATE, 0, f"best of {k:g}: {value:.2f} sd above") for k, value in points),
        legend=(Legend("mean of the best of so many", ESTIMATE, 0),),
    )


def _model() -> isorun.MixedResult:
    table = {
        "accuracy": [*SLOW, *FAST],
        "config": ["slow"] * len(SLOW) + ["fast"] * len(FAST),
        "seed": [*range(len(SLOW)), *range(len(FAST))],
    }
    return isorun.mixed_model(table, "accuracy ~ config + (1|seed)")


def main(folder: Path) -> None:
    """Write all of them there."""
    for figure in drawn():
        print(save_figure(figure, folder / f"{figure.name}.svg"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
