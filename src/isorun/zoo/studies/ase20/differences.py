"""What is less than published, and by how much; and what cannot be had at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from isorun.study.levels import Level
from isorun.zoo.studies.ase20.design import PlannedPart
from isorun.zoo.studies.ase20.networks import NETWORKS
from isorun.zoo.studies.ase20.published import DATA_SIZES
from isorun.zoo.studies.ase20.sizes import FACTOR_SIZES, PUBLISHED_EPOCHS, PUBLISHED_RUNS

__all__ = ["not_had", "scaled_down", "sentences_on_data"]

_WITHOUT_GPU: Final = ("smoke", "cpu")
_PAPERS_LEVELS: Final = (Level.DEFAULT, Level.FIXED_SEED)
_ALWAYS: Final = (
    "Figures 4 and 5 (three core libraries, 11 sets of versions of others): all is trained with the PyTorch at hand.",
    "The authors' hardware (RTX 2080Ti): times compare within this machine only.",
    "The authors' learning rate and batch size of the LeNets, which the paper leaves open: ours are 0.1 and 128.",
)


def scaled_down(planned: Sequence[PlannedPart]) -> tuple[str, ...]:
    """A sentence for each way in which networks get less than published; networks that get the same share one."""
    shared: dict[str, list[str]] = {}
    for part in planned:
        if part.part in NETWORKS:
            less = ", ".join(_less(part))
            shared.setdefault(less, []).append(part.networks[0].name)
    published = (f"{', '.join(names)}: {less}." for less, names in shared.items() if less)
    return (*published, *(_nested_size(part) for part in planned if part.nested and part.size.train_images))


def _nested_size(part: PlannedPart) -> str:
    size, network = part.size, part.networks[0]
    design = f"{size.seeds} seeds of {size.runs} runs at level {size.levels[0]}"
    return (
        f"{network.name} on {part.data} (ours): {design}, {size.epochs} epochs, {size.train_images:,} training images."
    )


def _less(part: PlannedPart) -> Iterator[str]:
    size, published = part.size, PUBLISHED_EPOCHS[part.part]
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
    if missing:
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
