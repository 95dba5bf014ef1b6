"""Table 1: data, networks and settings, each row of ours above the published one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from isorun.report.tables import Column, Table
from isorun.zoo.studies.ase20.cells import OURS, PAPER
from isorun.zoo.studies.ase20.images_used import ImageCounts
from isorun.zoo.studies.ase20.measured import PartResult
from isorun.zoo.studies.ase20.networks import TrainedNetwork
from isorun.zoo.studies.ase20.published import DATA_SIZES
from isorun.zoo.studies.ase20.sizes import PUBLISHED_EPOCHS, PUBLISHED_RUNS

__all__ = ["table_1"]


def table_1(parts: Sequence[PartResult], at_hand: Mapping[str, tuple[int, int]]) -> Table:
    """Data, networks and settings. at_hand: images for training and others, of data sets that are not complete."""
    columns = (
        Column("data", key=True),
        Column("network", key=True),
        Column("from", key=True),
        Column("train", group="#images"),
        Column("val + test", group="#images"),
        Column("#parameters"),
        Column("#epochs"),
        Column("runs"),
        Column("optimizer", key=True),
    )
    trained = [(part, network) for part in parts if not part.planned.is_ours for network in part.planned.networks]
    rows = [row for part, network in trained for row in _settings(part, network, at_hand)]
    all_note = ("all: as many as the data set has.",) if any("all" in row for row in rows) else ()
    notes = (
        *all_note,
        "Validation is 3 of 4 of the images that are not for training.",
        "#parameters: trainable ones; the networks are built here and counted to the same number.",
    )
    return Table("table-1", "Table 1: data, networks and settings", columns, tuple(rows), notes)


def _settings(
    part: PartResult, network: TrainedNetwork, at_hand: Mapping[str, tuple[int, int]]
) -> Iterator[tuple[str, ...]]:
    data, size = part.planned.data, part.planned.size
    first, counted = (data, network.name), f"{network.parameters:,}"
    images = _images(part, at_hand.get(data, (0, 0)))
    yield (*first, OURS, *images, counted, str(size.epochs), str(size.runs), network.optimizer)
    if data in DATA_SIZES:
        epochs = str(PUBLISHED_EPOCHS[network.option])
        images = _image_cells(DATA_SIZES[data])
        yield (*first, PAPER, *images, counted, epochs, str(PUBLISHED_RUNS), network.optimizer)


def _images(part: PartResult, there: tuple[int, int]) -> tuple[str, str]:
    """As the runs recorded them; where they did not, as many as were asked for or are at hand."""
    if part.images:
        train, others = zip(*map(_image_cells, part.images), strict=True)
        return " or ".join(dict.fromkeys(train)), " or ".join(dict.fromkeys(others))
    size = part.planned.size
    return _number_used(size.train_images, there[0]), _number_used(size.test_images, there[1])


def _image_cells(images: ImageCounts) -> tuple[str, str]:
    train, validation, test = images
    return f"{train:,}", f"{validation:,} + {test:,}"


def _number_used(asked: int, there: int) -> str:
    """How many images were used; all of the published ones where neither says less."""
    limits = [number for number in (asked, there) if number]
    return f"{min(limits):,}" if limits else "all"
