"""The document a study can be declared from again: what a study file would say."""

from __future__ import annotations

from typing import Any

from isorun.study.design import Approach, Config, Study
from isorun.study.parts import Distribution, recordable
from isorun.worker.redaction import redacted_argv

__all__ = ["document_of", "without_secrets"]


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


def without_secrets(study: Study) -> dict[str, Any]:
    """The same document to be kept, without values that look secret and with variables as a record shows them.

    Its cells have the same ids.
    """
    document = document_of(study)
    for approach in document["approaches"].values():
        if "command" in approach:
            approach["command"] = redacted_argv(approach["command"], {})
    for environment in document["environments"].values():
        environment["env"] = {name: recordable(name, value) for name, value in environment["env"].items()}
    return document


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
