"""Does the spread of identical runs depend on the core library? The paper's Figure 4, with Keras 3 on three libraries.

Every library has an environment of its own with the same Keras and NumPy. Order and augmentation of a seed are the same
everywhere; initial weights are the library's own. As in the paper, Levene's test asks whether the variances differ: of
fixed-seed runs, where only kernels vary, and beside that of default runs, where seeds do as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from isorun.analysis.pairwise import levene
from isorun.analysis.spreads import Spread, spread
from isorun.analysis.studies.conditions import FEWEST_RUNS
from isorun.analysis.studies.group_result import GroupResult
from isorun.report import UNKNOWN, Column, Table, count, p_value, percentage
from isorun.report.figures.description import Figure
from isorun.report.figures.distributions import BoxRow, RunValue, box_figure
from isorun.study.cells import Level
from isorun.zoo.carried import carry_arrays, carry_script
from isorun.zoo.data.images import Images, evenly_chosen, load_images, split_places
from isorun.zoo.data.made import made_images
from isorun.zoo.paper import Request
from isorun.zoo.studies.ase20.design import METRIC, PlannedPart, carried_images
from isorun.zoo.studies.ase20.measured import PartResult, distinct_weights
from isorun.zoo.studies.ase20.scales import KERAS_SCRIPT, LIBRARIES, Size
from isorun.zoo.studies.ase20.tables import POINTS, spread_cells

__all__ = [
    "LibraryComparison",
    "LibraryRuns",
    "carry",
    "library_comparisons",
    "library_figures",
    "library_sentences",
    "library_table",
]

SELECTION: Final = "best-loss"
_PUBLISHED_P: Final = 0.1
"""Section 5.2: no p of Levene's test between core libraries was below this."""
_ALPHA: Final = 0.05
_CHANCE: Final = 0.1
_BEYOND_CHANCE: Final = 2.0
"""A network whose mean accuracy is not at least so many times that of guessing has hardly begun to learn."""


def carry(request: Request, planned: Sequence[PlannedPart], is_made: Callable[[str], bool]) -> None:
    """Put the script and the images of every part beside the studies."""
    carry_script(request, "ase20", Path(__file__).with_name(KERAS_SCRIPT))
    for part in planned:
        made, size = is_made(part.data), part.size
        images = (
            made_images(part.data, train=size.train_images, test=size.test_images) if made else load_images(part.data)
        )
        carry_arrays(request, "ase20", carried_images(part, made=made), _arrays(images, size))


def _arrays(images: Images, size: Size) -> dict[str, Any]:
    """As many as the size says, validation images first among those that are judged."""
    train = evenly_chosen(images.train_labels, size.train_images)
    asked = evenly_chosen(images.test_labels, size.test_images)
    validation, test = (asked[places] for places in split_places(images.test_labels[asked]))
    judged = np.concatenate([validation, test])
    return {
        "train_images": images.train_images[train],
        "train_labels": images.train_labels[train],
        "judged_images": images.test_images[judged],
        "judged_labels": images.test_labels[judged],
        "validation": np.int64(len(validation)),
    }


@dataclass(frozen=True, slots=True)
class LibraryRuns:
    """The runs of one library. values: accuracies at the best validation loss. weights: different ones, of how many."""

    library: str
    values: tuple[float, ...]
    spread: Spread
    weights: tuple[int, int] | None

    @property
    def is_one_run(self) -> bool:
        """Whether all runs ended with the same bits, so that they are one run made several times."""
        return self.weights is not None and self.weights[0] == 1 and self.weights[1] > 1

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "library": self.library,
            "values": list(self.values),
            "mean": self.spread.mean,
            "sd": self.spread.sd,
            "sd_ci90": None if self.spread.sd_interval is None else list(self.spread.sd_interval),
            "max_diff": self.spread.max_difference,
            "different_final_weights": self.weights and self.weights[0],
            "runs_with_weights": self.weights and self.weights[1],
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> LibraryRuns:
        """What was written; the oldest files do not say how many runs left their weights: all did."""
        values, different = tuple(told["values"]), told["different_final_weights"]
        weights = None if different is None else (different, told.get("runs_with_weights", len(values)))
        return cls(told["library"], values, spread(values), weights)


@dataclass(frozen=True, slots=True)
class LibraryComparison:
    """The libraries under one network and level. p: of Levene's test over all of them; None where it cannot be made."""

    network: str
    data: str
    level: Level
    libraries: tuple[LibraryRuns, ...]
    p: float | None

    @property
    def has_begun(self) -> bool:
        """Whether the networks learned more than to guess, on average over the libraries."""
        means = [runs.spread.mean for runs in self.libraries if runs.spread.mean is not None]
        return bool(means) and sum(means) / len(means) >= _BEYOND_CHANCE * _CHANCE

    @property
    def why_not(self) -> str:
        """Why nothing can be said about variances; empty where a test was made."""
        if len(self.libraries) < len(LIBRARIES):
            return "not every library has runs"
        if min(runs.spread.n for runs in self.libraries) < FEWEST_RUNS:
            return f"fewer than {FEWEST_RUNS} runs a library"
        if self.p is None:
            return "no library's runs differ at all"
        same = [runs.library for runs in self.libraries if runs.is_one_run]
        return f"the runs of {' and '.join(same)} are the same bits: copies, not evidence" if same else ""

    @property
    def seen(self) -> bool | None:
        """Whether variances cannot be told apart, as the paper has it; None where the runs cannot say."""
        return None if self.why_not or self.p is None else self.p >= _ALPHA

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "network": self.network,
            "data": self.data,
            "level": str(self.level),
            "libraries": [runs.to_json() for runs in self.libraries],
            "levene_p": self.p,
            "published_p_above": _PUBLISHED_P,
            "seen": self.seen,
            "why_not": self.why_not or None,
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> LibraryComparison:
        """What was written."""
        libraries = tuple(map(LibraryRuns.from_json, told["libraries"]))
        return cls(told["network"], told["data"], Level(told["level"]), libraries, told["levene_p"])


def library_comparisons(part: PartResult) -> Iterator[LibraryComparison]:
    """One for each level that has runs, the paper's first."""
    network = part.planned.networks[0]
    for level in sorted(part.planned.size.levels, key=lambda level: level is not Level.FIXED_SEED):
        groups = part.result.groups if part.result else ()
        own = {group.key.environment: group for group in groups if group.key.level is level and group.finished}
        found = tuple(_runs(library.name, own[library.name]) for library in LIBRARIES if library.name in own)
        if found:
            yield LibraryComparison(network.name, part.planned.data, level, found, _levene(found))


def _runs(library: str, group: GroupResult) -> LibraryRuns:
    values = tuple(value for value in group.selection(SELECTION).values(METRIC) if math.isfinite(value))
    return LibraryRuns(library, values, spread(values), distinct_weights(group))


def _levene(found: Sequence[LibraryRuns]) -> float | None:
    samples = [np.array(runs.values) for runs in found if len(runs.values) > 1]
    return levene(samples).p if len(samples) > 1 else None


def library_sentences(found: Sequence[LibraryComparison]) -> Iterator[str]:
    """What the paper says of it, and what the evidence here is worth."""
    for item in found:
        spreads = ", ".join(f"{runs.library} {_sd(runs)}" for runs in item.libraries)
        yield f"{item.network}, {item.level} runs with three core libraries: SDev {spreads} points; {_told(item)}."


def _sd(runs: LibraryRuns) -> str:
    return UNKNOWN if runs.spread.sd is None else POINTS.difference(runs.spread.sd)


def _told(item: LibraryComparison) -> str:
    beside = f"the paper's Levene tests all had p > {_PUBLISHED_P:g}"
    test = "" if item.p is None else f" (Levene p {p_value(item.p)}; {beside})"
    begun = "" if item.has_begun else "; the network has hardly begun to learn, so that nothing follows from it"
    if item.why_not:
        return f"whether they differ cannot be said: {item.why_not}{test}{begun}"
    runs = min(len(one.values) for one in item.libraries)
    few = f"{count(runs, 'run')} a library would only tell very different spreads apart"
    is_papers = item.level is Level.FIXED_SEED
    if item.seen:
        told = "as published, they cannot" if is_papers else "at this level, which Figure 4 has not, they cannot"
        return f"{told} be told apart{test}; {few}{begun}"
    return f"{'not as published' if is_papers else 'at this level, which Figure 4 has not'}, they differ{test}{begun}"


def library_table(found: Sequence[LibraryComparison]) -> Table:
    """A row a library, network by network and level by level."""
    columns = (
        *(Column(title, key=True) for title in ("network", "level", "library")),
        Column("runs"),
        Column("mean", "%"),
        *(Column(title, group="accuracy (points)") for title in ("Diff", "SDev", "(CI)")),
        Column("different weights"),
        Column("Levene p"),
    )
    rows = tuple(_row(item, runs) for item in found for runs in item.libraries)
    notes = (
        f"Judged at {SELECTION}. Levene's test is over the libraries of a network and level.",
        f"The paper's tests all had p > {_PUBLISHED_P:g}.",
        "The paper's libraries were TensorFlow, CNTK and Theano below Keras 2.2.2 on a GPU, its level fixed-seed.",
        *(f"{item.network}, {item.level}: {item.why_not}." for item in found if item.why_not),
    )
    return Table("figure-4", "Figure 4: identical runs with three core libraries", columns, rows, notes)


def _row(item: LibraryComparison, runs: LibraryRuns) -> tuple[str, ...]:
    weights = UNKNOWN if runs.weights is None else f"{runs.weights[0]} of {runs.weights[1]}"
    is_first = runs is item.libraries[0]
    p = UNKNOWN if item.p is None or not is_first else p_value(item.p)
    names = (item.network, str(item.level), runs.library)
    return (*names, str(runs.spread.n), percentage(runs.spread.mean), *spread_cells(runs.spread), weights, p)


def library_figures(told: Iterable[Mapping[str, Any]]) -> Iterator[Figure]:
    """Figure 4 from the numbers: boxes of every library's runs, a figure for each network and level."""
    for item in map(LibraryComparison.from_json, told):
        rows = [
            BoxRow(
                runs.library, runs.spread, tuple(RunValue(str(at), one) for at, one in enumerate(runs.values)), place
            )
            for place, runs in enumerate(item.libraries)
        ]
        name = f"figure-4-{item.network.lower()}-{item.level}"
        title = f"Figure 4, {item.network} on {item.data}: test accuracy of every {item.level} run, by core library"
        sentence = f"{item.network}: {_told(item)}."
        drawn = box_figure(name, title, "test accuracy (%)", rows, sentence, factor=100.0, decimals=2)
        if drawn is not None:
            yield drawn
