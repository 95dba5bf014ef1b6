"""The document a study can be declared from again, what is kept of it, and studies with more of the same.

Cells that a study already had stay the same cells.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from isorun.errors import StudyError
from isorun.study.cells import withheld_hashes
from isorun.study.design import Approach, Config, Study, study_from_document
from isorun.study.levels import Level
from isorun.study.parts import Distribution, recordable
from isorun.worker.redaction import redacted_argv

__all__ = ["changed", "document_of", "extended", "kept_study", "with_key", "without_secrets"]


def document_of(study: Study) -> dict[str, Any]:
    """Plain JSON with the keys of a study file; `study_from_document` makes an equal study of it."""
    return {
        "name": study.name,
        "approaches": {name: _approach(item) for name, item in study.approaches.items()},
        "configs": {name: _config(item) for name, item in study.configs.items()},
        "environments": {name: item.to_json() for name, item in study.environments.items()},
        "levels": [str(level) for level in study.levels],
        "seeds": list(study.seeds),
        "repeats": study.repeats,
        **({"take_seeds": True} if study.take_seeds else {}),
        "metrics": {name: _given(direction=m.direction or None, chance=m.chance) for name, m in study.metrics.items()},
        "selections": {name: {"metric": s.metric, "direction": s.direction} for name, s in study.selections.items()},
        "policy": _given(
            time_limit=study.policy.time_limit_seconds,
            on_failure=study.policy.on_failure,
            retries=study.policy.retries,
        ),
    }


def with_key(study: Study, key: bytes) -> Study:
    """The study with the hashes of what its records will not hold, under the key of the store it is carried out with.

    All cells of it then have the ids that the store knows.
    """
    return _with_hashes(study, withheld_hashes(study, key))


def without_secrets(study: Study) -> dict[str, Any]:
    """The same document to be kept, without values that look secret and with variables as a record shows them.

    It has the hashes of what was withheld, if the study was given a key, so that its cells have the same ids.
    """
    document = document_of(study)
    for approach in document["approaches"].values():
        if "command" in approach:
            approach["command"] = redacted_argv(approach["command"], {})
    for environment in document["environments"].values():
        environment["env"] = {name: recordable(name, value) for name, value in environment["env"].items()}
    hashes = {name: dict(items) for name, items in study.withheld.items() if items}
    return {**document, "withheld": hashes} if hashes else document


def kept_study(document: dict[str, Any], folder: Path, name: str) -> Study:
    """The study that `without_secrets` was made of, as far as it was kept."""
    hashes = document.get("withheld", {})
    if not isinstance(hashes, dict) or not all(isinstance(items, dict) for items in hashes.values()):
        raise StudyError("withheld: it is no table of hashes", found=repr(hashes))
    declared = {key: value for key, value in document.items() if key != "withheld"}
    return _with_hashes(study_from_document(declared, folder, name), hashes)


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
    made = study_from_document({**document_of(study), **changes}, Path(study.folder), study.name)
    return made if {"approaches", "environments"} & set(changes) else _with_hashes(made, study.withheld)


def _with_hashes(study: Study, hashes: Mapping[str, Mapping[str, str]]) -> Study:
    made = copy.copy(study)
    object.__setattr__(made, "withheld", hashes)
    return made


def _more_seeds(seeds: tuple[int, ...], count: int) -> list[int]:
    more = list(seeds)
    candidate = max(seeds)
    while len(more) < count:
        candidate += 1
        more.append(candidate)
    return more


def _approach(approach: Approach) -> dict[str, Any]:
    what = {"function": approach.command[1]} if approach.is_function else {"command": list(approach.command)}
    return {**what, "configs": list(approach.configs), "sources": approach.sources.to_json()}


def _config(config: Config) -> dict[str, Any]:
    drawn = {name: _distribution(item) for name, item in config.distributions.items()}
    return {**config.values, **drawn, "draws": config.draws, "draw_seed": config.draw_seed}


def _distribution(item: Distribution) -> dict[str, Any]:
    return {item.kind: list(item.options) if item.kind == "choice" else [item.first, item.second]}


def _given(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
