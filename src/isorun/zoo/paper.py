"""What every paper that can be reproduced promises.

A paper declares ordinary studies at four scales, and turns their records into its own tables and figures, with the
published numbers beside ours. It runs nothing by itself: the pipeline does.
"""

from __future__ import annotations

import abc
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from isorun.analysis.evidence import Condition
from isorun.report import Table
from isorun.report.figures.description import Figure
from isorun.study.design import Study
from isorun.study.records import RunRecord, RunState

__all__ = [
    "OURS",
    "PRELOAD",
    "SCALES",
    "THEIRS",
    "AbstractPaper",
    "Exhibit",
    "Network",
    "Omission",
    "Presentation",
    "Request",
    "Scale",
    "Undrawn",
    "drawn",
    "last_attempts",
    "smoke_verdict",
]

OURS: Final = "ours"
THEIRS: Final = "paper"
"""Whose numbers a row of a table has."""

SCALES: Final = ("smoke", "cpu", "gpu", "paper")
# What a warm start imports for the training scripts: they lie in a package, where isorun does not look for imports.
# It is part of what the papers declare, and stays as it is when isorun learns to import more.
PRELOAD: Final = ("numpy", "numpy.random", "torch", "torch.optim", "torch._dynamo", "torch._inductor.config")


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A table or figure of the paper that is reproduced: "Table 2", and what it shows."""

    name: str
    title: str


@dataclass(frozen=True, slots=True)
class Omission:
    """Tables or figures of the paper that are not attempted, and why: "Figures 6 and 7", "answers of a survey"."""

    names: str
    reason: str

    @property
    def sentence(self) -> str:
        """For a list."""
        return f"{self.names}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Network:
    """A network of the paper with its trainable parameters and the data sets it is trained on."""

    name: str
    parameters: int
    data: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scale:
    """How much of the paper is carried out. cost: time and machine. scaled_down: what is less, and by how much."""

    name: str
    cost: str
    scaled_down: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asked for. only: parts of the paper by name (networks, experiments), all when empty.

    runs: identical runs a group, the scale's own when None. device: "auto", "cpu" or "cuda".
    folder: where the studies live and keep their records. recorded: records are shown and nothing is run, so that the
    data need not be at hand.
    """

    scale: str
    folder: Path
    only: tuple[str, ...] = ()
    runs: int | None = None
    device: str = "auto"
    recorded: bool = False


@dataclass(frozen=True, slots=True)
class Presentation:
    """The paper with our numbers: verdict first, then its tables and figures.

    scaled_down: what was less than published, and by how much. not_had: what could not be had on this machine, and why.
    numbers: the same for machines, plain JSON.
    """

    verdict: tuple[str, ...]
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    scaled_down: tuple[str, ...] = ()
    not_had: tuple[str, ...] = ()
    warnings: tuple[Condition, ...] = ()
    numbers: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Undrawn:
    """A figure that numbers stored before all it needs was kept cannot draw. lacks: what they are without."""

    name: str
    lacks: str


class AbstractPaper(abc.ABC):
    """A paper. Subclasses are final, hold no state, and import no framework: only their training scripts do.

    Every table and figure of the paper is among the exhibits or the ones not attempted. data: names of isorun's
    catalogue, or of data that are had in other ways. on_request: the parts that are carried out only when they are
    named (`--only`), because packages are installed for them: all others are the whole.
    """

    name: str
    title: str
    reference: str
    exhibits: tuple[Exhibit, ...]
    not_attempted: tuple[Omission, ...]
    networks: tuple[Network, ...]
    data: tuple[str, ...]
    parts: tuple[str, ...]
    on_request: tuple[str, ...] = ()
    scales: Mapping[str, Scale]

    @abc.abstractmethod
    def studies(self, request: Request) -> tuple[Study, ...]:
        """The paper's design at a scale, as ordinary studies with names of their own.

        At scale "smoke" small data made on the spot stands in for data that is not at hand, and the presentation says
        so among what is scaled down or was not had; at the other scales missing data is an error whose hint says how
        to get it: `isorun data get NAME` for data of isorun's catalogue. Nothing is downloaded here.
        """

    def prepare(self, request: Request) -> None:  # noqa: B027 - most trainings find all they need
        """Put what trainings take along (`carried.py`) into the request's folder; called before anything is run."""

    @abc.abstractmethod
    def present(self, request: Request, records: Mapping[str, Sequence[RunRecord]]) -> Presentation:
        """The paper's tables and figures from the records by study name.

        A group without runs is named, not left out. Failed runs are counted and warned of by the caller.
        """

    def figures(self, numbers: Mapping[str, Any]) -> Iterable[Figure | Undrawn]:  # noqa: ARG002 - see below
        """The figures from the numbers of a presentation alone, so that stored ones are drawn without any record.

        A paper that draws from its records instead has none here: its figures are in the pages that were kept.
        """
        return ()


def drawn(found: Iterable[Figure | Undrawn]) -> tuple[Figure, ...]:
    """Those that could be drawn."""
    return tuple(item for item in found if isinstance(item, Figure))


def smoke_verdict(finished: int) -> tuple[str, ...]:
    """All that a smoke run may say: it trains too little, and perhaps on made data, to claim anything."""
    runs = "1 run" if finished == 1 else f"{finished:,} runs"
    return (f"A smoke run checks that all of it works here: {runs} finished. It claims nothing about the paper.",)


def last_attempts(records: Iterable[RunRecord]) -> tuple[RunRecord, ...]:
    """One record a cell, in the order of the cells: the finished one if there is one, else the latest."""
    last: dict[str, RunRecord] = {}
    for record in records:
        known = last.setdefault(record.cell.id, record)
        if _rank(record) > _rank(known):
            last[record.cell.id] = record
    return tuple(last.values())


def _rank(record: RunRecord) -> tuple[bool, int]:
    return record.state is RunState.FINISHED, record.attempt
