"""The figures that the page shows, drawn from the stored results as their own pages draw them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from isorun.report.figures.description import Figure
from isorun.reproducing import kept_reproduction

__all__ = ["drawn_figures"]

_RESULTS: Final = Path(__file__).parents[1]
_SHOWN: Final = {
    "ase20-nested": ("ase20-nested-gpu", "nested"),
    "ase20-fixed-seed-cifar10": ("ase20-gpu", "figure-3-cifar10"),
    "ase20-factors-resnet38": ("ase20-gpu", "factors-resnet38"),
    "tacl18-seeds": ("tacl18-gpu", "seed-distribution"),
    "tacl18-cpu-to-gpu-trecqa": ("tacl18-gpu", "figure-3-slopes-trecqa"),
    "fewshot-shares": ("fewshot-cpu", "fewshot-shares"),
}
"""The name of a file in docs/figures to a result and the name of one of its figures."""


def drawn_figures() -> Iterator[tuple[str, Figure]]:
    """Every figure with the name of its file."""
    for name, (result, wanted) in _SHOWN.items():
        view = kept_reproduction(_RESULTS / f"{result}.json").view(figures=True)
        yield name, next(figure for figure in view.figures if figure.name == wanted)
