"""More of the same: a study with more runs a group. Cells it already had stay the same cells."""

from __future__ import annotations

from pathlib import Path

from isorun.study.design import Study
from isorun.study.document import document_of
from isorun.study.levels import Level
from isorun.study.toml import study_from_document

__all__ = ["changed", "extended"]


def extended(study: Study, level: Level, units: int) -> Study:
    """The study with at least so many independent units a group at this level.

    At level default every run is one, and repeats grow. Where seeds are fixed a new seed is a new unit; only a study
    of one seed that is repeated asks about the runs of that seed, and gets more repeats.
    """
    if level is Level.DEFAULT or _asks_about_one_seed(study):
        needed = -(-units // len(study.seeds))
        return changed(study, repeats=max(study.repeats, needed))
    return changed(study, seeds=_more_seeds(study.seeds, units))


def changed(study: Study, **changes: object) -> Study:
    """The study with some keys of its document changed; everything is checked as in a study file."""
    return study_from_document({**document_of(study), **changes}, Path(study.folder), study.name)


def _asks_about_one_seed(study: Study) -> bool:
    return len(study.seeds) == 1 and study.repeats > 1


def _more_seeds(seeds: tuple[int, ...], count: int) -> list[int]:
    more = list(seeds)
    candidate = max(seeds)
    while len(more) < count:
        candidate += 1
        more.append(candidate)
    return more
