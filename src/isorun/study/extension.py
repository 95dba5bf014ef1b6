"""More of the same: a study with more runs a group. Cells it already had stay the same cells."""

from __future__ import annotations

from pathlib import Path

from isorun.study.design import Study, study_from_document
from isorun.study.document import document_of
from isorun.study.levels import Level

__all__ = ["changed", "extended"]


def extended(study: Study, level: Level, units: int, *, of_one_seed: bool = False) -> Study:
    """The study with at least so many independent units a group at this level.

    At level default every run is one, and repeats grow. Where seeds are fixed a new seed is a new unit; only a
    question about one seed alone gets more repeats of it.
    """
    if level is Level.DEFAULT or of_one_seed:
        needed = -(-units // len(study.seeds))
        return changed(study, repeats=max(study.repeats, needed))
    return changed(study, seeds=_more_seeds(study.seeds, units))


def changed(study: Study, **changes: object) -> Study:
    """The study with some keys of its document changed; everything is checked as in a study file."""
    return study_from_document({**document_of(study), **changes}, Path(study.folder), study.name)


def _more_seeds(seeds: tuple[int, ...], count: int) -> list[int]:
    more = list(seeds)
    candidate = max(seeds)
    while len(more) < count:
        candidate += 1
        more.append(candidate)
    return more
