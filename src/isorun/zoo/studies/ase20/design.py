"""The paper's design as ordinary studies, one for each part.

Ours are one for each network whose factors are varied, and two with repeats within seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from isorun.study.design import Study
from isorun.study.levels import Level
from isorun.zoo.paper import PRELOAD, Request
from isorun.zoo.studies.ase20.networks import CLASSES, LENETS, NESTED_NETWORK, NETWORKS, TrainedNetwork
from isorun.zoo.studies.ase20.sizes import FACTOR_SIZES, NESTED_SIZES, OTHER_DATA, SIZES, Size

__all__ = ["ALL_FACTORS", "FACTOR_LEVEL", "METRIC", "NO_FACTOR", "PARTS", "PlannedPart", "planned_parts", "study_of"]

METRIC: Final = "test_accuracy"
SELECTIONS: Final = {
    "best-loss": {"metric": "val_loss", "direction": "lower"},
    "best-accuracy": {"metric": "val_accuracy", "direction": "higher"},
}
ALL_FACTORS: Final = "all"
NO_FACTOR: Final = "none"
FACTOR_LEVEL: Final = Level.DETERMINISTIC
"""With deterministic kernels nothing but the varied factor is left to vary."""

PARTS: Final = (*NETWORKS, *OTHER_DATA, "factors", "nested")
_TRAIN: Final = ("python", "-m", "isorun.zoo.studies.ase20.train")


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """One study of the paper before it is one. networks: several on further data.

    factors: it varies them. nested: it has repeats within seeds. Neither is in the paper.
    """

    name: str
    part: str
    networks: tuple[TrainedNetwork, ...]
    data: str
    size: Size
    factors: bool = False
    nested: bool = False

    @property
    def is_ours(self) -> bool:
        """Whether the paper has no such design."""
        return self.factors or self.nested

    @property
    def arms(self) -> tuple[str, ...]:
        """What is varied, one study arm each: every factor of the network alone, all together, none."""
        return (*self.networks[0].factors, ALL_FACTORS, NO_FACTOR) if self.factors else ()


def planned_parts(request: Request) -> tuple[PlannedPart, ...]:
    """The parts asked for at the scale asked for, whether or not their data is at hand."""
    wanted = request.only or PARTS
    return tuple(_with_runs(part, request.runs) for part in _all_parts(request.scale) if part.part in wanted)


def study_of(planned: PlannedPart, request: Request, is_made: Callable[[str], bool]) -> Study:
    """The study. is_made: whether data made on the spot stands in for the data set of this name."""
    made = ("--made-data",) if is_made(planned.data) else ()
    commands = dict(_commands(planned, request.device, made))
    levels, seeds, repeats = (planned.size.levels, planned.size.seeds, planned.size.runs)
    if planned.factors:
        levels, seeds, repeats = (FACTOR_LEVEL,), planned.size.runs, 1
    return Study(
        planned.name,
        approaches={name: {"command": command} for name, command in commands.items()},
        environments={"default": {"preload": list(PRELOAD)}},
        levels=levels,
        seeds=seeds,
        repeats=repeats,
        metrics={METRIC: {"direction": "higher", "chance": 1.0 / CLASSES[planned.data]}},
        selections=SELECTIONS,
        sources={"stdout": False},
        folder=request.folder,
    )


def _all_parts(scale: str) -> Iterator[PlannedPart]:
    for part, size in SIZES[scale].items():
        if part in NETWORKS:
            network = NETWORKS[part]
            yield PlannedPart(f"ase20-{scale}-{part}", part, (network,), network.data, size)
        else:
            lenets = tuple(NETWORKS[name] for name in LENETS)
            yield PlannedPart(f"ase20-{scale}-{part}", part, lenets, part, size)
    for name, size in FACTOR_SIZES[scale].items():
        network = NETWORKS[name]
        yield PlannedPart(f"ase20-{scale}-factors-{name}", "factors", (network,), network.data, size, factors=True)
    for size in NESTED_SIZES[scale]:
        name = "-".join(("ase20", scale, "nested", *(("deterministic",) if _is_deterministic(size) else ())))
        yield PlannedPart(name, "nested", (NESTED_NETWORK,), NESTED_NETWORK.data, size, nested=True)


def _is_deterministic(size: Size) -> bool:
    return size.levels == (Level.DETERMINISTIC,)


def _with_runs(planned: PlannedPart, runs: int | None) -> PlannedPart:
    """With the number of runs asked for; two identical deterministic ones are enough to see that they are identical."""
    if runs is None or (planned.nested and _is_deterministic(planned.size)):
        return planned
    return replace(planned, size=replace(planned.size, runs=runs))


def _commands(planned: PlannedPart, device: str, made: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The name of every approach with its command."""
    for network in planned.networks:
        command = (*_TRAIN, *_options(network, planned, device), *made, "--seed", "{seed}")
        if planned.factors:
            yield from ((arm, (*command, "--vary", arm)) for arm in planned.arms)
        else:
            yield network.name, command


def _options(network: TrainedNetwork, planned: PlannedPart, device: str) -> Iterable[str]:
    size = planned.size
    limits = {"--train-images": size.train_images, "--test-images": size.test_images, "--batch": size.batch}
    yield from ("--network", network.option, "--data", planned.data, "--epochs", str(size.epochs))
    for option, number in limits.items():
        if number:
            yield from (option, str(number))
    yield from ("--device", device)
