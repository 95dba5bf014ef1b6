"""The paper's design as ordinary studies, one for each part; what is less than published, and what cannot be had.

Ours are one for each network whose factors are varied, and two with repeats within seeds. On request there is one for
each network that is trained with three core libraries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from isorun.study.cells import Level
from isorun.study.design import Study
from isorun.zoo.carried import carried
from isorun.zoo.paper import PRELOAD, Request
from isorun.zoo.studies.ase20.published import DATA_SIZES
from isorun.zoo.studies.ase20.scales import (
    CLASSES,
    FACTOR_SIZES,
    KERAS_SCRIPT,
    LENETS,
    LIBRARIES,
    LIBRARY_SIZES,
    NESTED_NETWORK,
    NESTED_SIZES,
    NETWORKS,
    OTHER_DATA,
    PUBLISHED_EPOCHS,
    PUBLISHED_RUNS,
    SIZES,
    Size,
    TrainedNetwork,
)

__all__ = [
    "ALL_FACTORS",
    "FACTOR_LEVEL",
    "METRIC",
    "NO_FACTOR",
    "ON_REQUEST",
    "PARTS",
    "PlannedPart",
    "carried_images",
    "not_had",
    "planned_parts",
    "scaled_down",
    "sentences_on_data",
    "study_of",
]

METRIC: Final = "test_accuracy"
SELECTIONS: Final = {
    "best-loss": {"metric": "val_loss", "direction": "lower"},
    "best-accuracy": {"metric": "val_accuracy", "direction": "higher"},
}
ALL_FACTORS: Final = "all"
NO_FACTOR: Final = "none"
FACTOR_LEVEL: Final = Level.DETERMINISTIC
"""With deterministic kernels nothing but the varied factor is left to vary."""

WHOLE: Final = (*NETWORKS, *OTHER_DATA, "factors", "nested")
ON_REQUEST: Final = ("libraries",)
"""Parts that are carried out only when they are named: packages are installed for them."""
PARTS: Final = (*WHOLE, *ON_REQUEST)
_TRAIN: Final = ("python", "-m", "isorun.zoo.studies.ase20.train")


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """One study of the paper before it is one. networks: several on further data.

    factors: it varies them. nested: it has repeats within seeds. Neither is in the paper. libraries: it is trained with
    each core library, as in Figure 4.
    """

    name: str
    part: str
    networks: tuple[TrainedNetwork, ...]
    data: str
    size: Size
    factors: bool = False
    nested: bool = False
    libraries: bool = False

    @property
    def is_apart(self) -> bool:
        """Whether it has no place in Tables 1 to 3, which are of one core library and have no such designs of ours."""
        return self.factors or self.nested or self.libraries

    @property
    def arms(self) -> tuple[str, ...]:
        """What is varied, one study arm each: every factor of the network alone, all together, none."""
        return (*self.networks[0].factors, ALL_FACTORS, NO_FACTOR) if self.factors else ()


def planned_parts(request: Request) -> tuple[PlannedPart, ...]:
    """The parts asked for at the scale asked for, whether or not their data is at hand."""
    wanted = request.only or WHOLE
    return tuple(_with_runs(part, request.runs) for part in _all_parts(request.scale) if part.part in wanted)


def study_of(planned: PlannedPart, request: Request, is_made: Callable[[str], bool]) -> Study:
    """The study. is_made: whether data made on the spot stands in for the data set of this name."""
    made = ("--made-data",) if is_made(planned.data) else ()
    commands = dict(_commands(planned, request.device, made))
    environments: dict[str, Any] = {"default": {"preload": list(PRELOAD)}}
    if planned.libraries:
        commands = {planned.networks[0].name: _keras_command(planned, is_made)}
        environments = {library.name: library.environment(request.device) for library in LIBRARIES}
    levels, seeds, repeats = (planned.size.levels, planned.size.seeds, planned.size.runs)
    if planned.factors:
        levels, seeds, repeats = (FACTOR_LEVEL,), planned.size.runs, 1
    return Study(
        planned.name,
        approaches={name: {"command": command} for name, command in commands.items()},
        environments=environments,
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

    for option, size in LIBRARY_SIZES[scale].items():
        network = NETWORKS[option]
        name = f"ase20-{scale}-libraries-{option}"
        yield PlannedPart(name, "libraries", (network,), network.data, size, libraries=True)


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


def _keras_command(planned: PlannedPart, is_made: Callable[[str], bool]) -> tuple[str, ...]:
    """The script runs where there is nothing of isorun: it and its images are carried there."""
    size = planned.size
    images = carried("ase20", carried_images(planned, made=is_made(planned.data)))
    words = ["python", carried("ase20", KERAS_SCRIPT), "--network", planned.networks[0].option, "--data", images]
    words += ["--epochs", str(size.epochs), *(["--batch", str(size.batch)] if size.batch else [])]
    return (*words, "--seed", "{seed}")


def carried_images(planned: PlannedPart, *, made: bool) -> str:
    """The name of the file with the images of a part."""
    size = planned.size
    numbers = (str(number) for number in (size.train_images, size.test_images) if number)
    return "-".join((planned.data, *numbers, *(("made",) if made else ()))) + ".npz"


def _options(network: TrainedNetwork, planned: PlannedPart, device: str) -> Iterable[str]:
    size = planned.size
    limits = {"--train-images": size.train_images, "--test-images": size.test_images, "--batch": size.batch}
    yield from ("--network", network.option, "--data", planned.data, "--epochs", str(size.epochs))
    for option, number in limits.items():
        if number:
            yield from (option, str(number))
    yield from ("--device", device)


_WITHOUT_GPU: Final = ("smoke", "cpu")
_PAPERS_LEVELS: Final = (Level.DEFAULT, Level.FIXED_SEED)
_ALWAYS: Final = (
    "Figure 5 (11 sets of versions of low-level libraries): of TensorFlow 1, which cannot be installed any more.",
    "The authors' hardware (RTX 2080Ti): times compare within this machine only.",
    "The authors' learning rate and batch size of the LeNets, which the paper leaves open: ours are 0.1 and 128.",
)


def scaled_down(planned: Sequence[PlannedPart]) -> tuple[str, ...]:
    """A sentence for each way in which networks get less than published; networks that get the same share one."""
    shared: dict[str, list[str]] = {}
    for part in planned:
        if part.part in NETWORKS or part.libraries:
            less = ", ".join(_less(part))
            name = part.networks[0].name
            shared.setdefault(less, []).append(f"{name} with each library" if part.libraries else name)
    published = (f"{', '.join(names)}: {less}." for less, names in shared.items() if less)
    return (*published, *(_nested_size(part) for part in planned if part.nested and part.size.train_images))


def _nested_size(part: PlannedPart) -> str:
    size, network = part.size, part.networks[0]
    design = f"{size.seeds} seeds of {size.runs} runs at level {size.levels[0]}"
    return (
        f"{network.name} on {part.data} (ours): {design}, {size.epochs} epochs, {size.train_images:,} training images."
    )


def _less(part: PlannedPart) -> Iterator[str]:
    size, published = part.size, PUBLISHED_EPOCHS[part.networks[0].option]
    train, validation, test = DATA_SIZES[part.data]
    if size.runs < PUBLISHED_RUNS:
        yield f"{size.runs} of {PUBLISHED_RUNS} runs a level"
    if size.epochs < published:
        yield f"{size.epochs} of {published} epochs"
    if size.train_images:
        yield f"{size.train_images:,} of {train:,} training images"
    if size.test_images:
        yield f"{size.test_images:,} of {validation + test:,} validation and test images"
    if size.batch:
        yield f"batches of {size.batch} instead of the network's own"
    missing = [str(level) for level in _PAPERS_LEVELS if level not in size.levels]
    if missing and not part.libraries:
        yield f"no runs at level {' and '.join(missing)}"


def not_had(scale: str, planned: Sequence[PlannedPart]) -> Iterator[str]:
    """What the scale cannot give, with the reason."""
    wide = next((part for part in planned if part.part == "wrn-28-10"), None)
    if wide is not None and scale in _WITHOUT_GPU:
        yield (
            "WRN-28-10 beyond a token: an image takes about 31 billion operations a step, 0.3 s on 2 cores; one run "
            "of the published 200 epochs of 50,000 images would take about a month."
        )
    if any(part.factors for part in planned) and "wrn-28-10" not in FACTOR_SIZES[scale]:
        yield "Dropout varied alone: only WRN-28-10 has dropout, and it is too large for this scale."
    if any(part.libraries for part in planned):
        yield "CNTK and Theano, which are no more: JAX and PyTorch stand in for them, and Keras 3 for Keras 2.2.2."
    elif planned:
        yield "Figure 4 (three core libraries): asked for by --only libraries, for which packages are installed."
    if planned:
        yield from _ALWAYS


def sentences_on_data(
    planned: Sequence[PlannedPart], is_made: Callable[[str], bool], at_hand: Mapping[str, tuple[int, int]]
) -> Iterator[str]:
    """A sentence for each data set that is not the published one. at_hand: images of those that are not complete."""
    for data in dict.fromkeys(part.data for part in planned):
        if is_made(data):
            yield f"{data}: small images made on the spot, because the data set is not at hand."
        elif data in at_hand:
            train, others = at_hand[data]
            published = DATA_SIZES[data]
            whole = f"{published[0]:,} + {sum(published[1:]):,}"
            yield f"{data}: the stand-in that is at hand has {train:,} + {others:,} images instead of {whole}."
