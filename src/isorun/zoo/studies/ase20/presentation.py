"""The paper with our numbers: verdict, tables, figures, and what was less."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from isorun.errors import DataError
from isorun.report.tables import Table
from isorun.study.records import RunRecord
from isorun.zoo.data.pictures.images import load_images
from isorun.zoo.data.presence import form_of
from isorun.zoo.paper import Presentation, Request
from isorun.zoo.studies.ase20.accuracy_table import accuracy_tables
from isorun.zoo.studies.ase20.differences import not_had, scaled_down, sentences_on_data
from isorun.zoo.studies.ase20.evidence import Evidence, gathered
from isorun.zoo.studies.ase20.example import example_table
from isorun.zoo.studies.ase20.factor_table import factor_table
from isorun.zoo.studies.ase20.figures import accuracy_figures, factor_figures
from isorun.zoo.studies.ase20.findings import findings_table
from isorun.zoo.studies.ase20.level_tables import level_tables
from isorun.zoo.studies.ase20.nested_tables import nested_figures, nested_tables
from isorun.zoo.studies.ase20.numbers import to_json
from isorun.zoo.studies.ase20.presented_warnings import merged_warnings
from isorun.zoo.studies.ase20.published import DATA_SIZES
from isorun.zoo.studies.ase20.settings_table import table_1
from isorun.zoo.studies.ase20.time_table import time_tables
from isorun.zoo.studies.ase20.verdict import verdict

__all__ = ["presented"]


def presented(
    request: Request, records: Mapping[str, Sequence[RunRecord]], is_made: Callable[[str], bool]
) -> Presentation:
    """The presentation. is_made: whether data made on the spot stands in for the data set of this name."""
    evidence = gathered(request, records, is_made)
    planned = evidence.planned
    at_hand = _incomplete({part.data for part in planned})
    less = (*scaled_down(planned), *sentences_on_data(planned, is_made, at_hand))
    return Presentation(
        verdict=tuple(verdict(evidence, request.scale, is_less=bool(less))),
        tables=tuple(_tables(evidence, at_hand)),
        figures=(
            *accuracy_figures(evidence.groups),
            *factor_figures(evidence.parts),
            *(nested_figures(evidence.nested) if evidence.nested else ()),
        ),
        scaled_down=less,
        not_had=tuple(not_had(request.scale, planned)),
        warnings=merged_warnings(evidence.parts, evidence.groups, request.scale),
        numbers=to_json(request, evidence),
    )


def _incomplete(names: set[str]) -> dict[str, tuple[int, int]]:
    """The images for training and for the rest of the data sets that have fewer than the published ones."""
    found: dict[str, tuple[int, int]] = {}
    for name in sorted(names & DATA_SIZES.keys()):
        counts = _images_in_stand_in(name)
        train, *others = DATA_SIZES[name]
        if counts is not None and counts != (train, sum(others)):
            found[name] = counts
    return found


def _images_in_stand_in(name: str) -> tuple[int, int] | None:
    """None where the originals are at hand, or nothing that can be read: tables must not need the data any more."""
    form = form_of(name)
    if form is None or form.kind != "prepared":
        return None
    try:
        images = load_images(name)
    except DataError:
        return None
    return len(images.train_labels), len(images.test_labels)


def _tables(evidence: Evidence, at_hand: Mapping[str, tuple[int, int]]) -> Iterator[Table]:
    """Those with a run in them; parts that were never begun are named in a warning."""
    groups = evidence.begun_groups
    if any(group.finished for group in groups):
        yield findings_table(evidence.findings, groups)
        yield table_1(evidence.begun, at_hand)
        yield from accuracy_tables(groups)
        yield from time_tables(groups)
        yield from level_tables(evidence.parts, groups)
    if evidence.examples:
        yield example_table(evidence.examples)
    shares = [item for item in evidence.shares if any(arm.spread.n for arm in item.arms)]
    if shares:
        yield factor_table(shares)
    if evidence.nested:
        yield from nested_tables(evidence.nested)
