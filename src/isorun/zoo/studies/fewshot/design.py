"""The design of the paper's section 4 and of its control as ordinary studies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from isorun.study.cells import Level
from isorun.study.design import Study
from isorun.zoo.paper import PRELOAD, Request
from isorun.zoo.studies.fewshot.experiments import (
    CONTROL,
    CONTROLS,
    EXPERIMENTS,
    ROUNDS,
    SPACES,
    Control,
    Experiment,
    approach_name,
    drawn,
    fixed,
)
from isorun.zoo.studies.fewshot.scales import PLANS, SEEDS, ScalePlan

__all__ = [
    "CONTROL_SEED",
    "METRIC",
    "TrainingSetting",
    "asked_plan",
    "control_name",
    "control_study",
    "controls_of",
    "experiments_of",
    "main_name",
    "main_study",
    "studies_of",
]

METRIC: Final = "accuracy"
CONTROL_SEED: Final = 7654
_WAYS: Final = 5
_SHOTS: Final = 5
_MODULE: Final = "isorun.zoo.studies.fewshot.train"
_METRICS: Final = {METRIC: {"direction": "higher", "chance": 1 / _WAYS}}


@dataclass(frozen=True, slots=True)
class TrainingSetting:
    """Where trainings happen: the scale's numbers, the data set, whether it is made in its place, and the device."""

    plan: ScalePlan
    data: str
    made: bool
    device: str


def main_name(scale: str) -> str:
    """The name of the study of section 4."""
    return f"fewshot-{scale}"


def control_name(scale: str) -> str:
    """The name of the study of Table 5."""
    return f"fewshot-{scale}-control"


def asked_plan(request: Request) -> ScalePlan:
    """The scale's numbers with what the user asked for: only some parts, another number of identical runs."""
    plan = PLANS[request.scale]
    if request.only:
        chosen = tuple(item.name for item in EXPERIMENTS if item.name in request.only)
        plan = replace(plan, experiments=chosen, controls=plan.controls if CONTROL in request.only else ())
    return plan if request.runs is None else replace(plan, repeats=request.runs, control_repeats=request.runs)


def experiments_of(request: Request) -> tuple[Experiment, ...]:
    """The experiments asked for; those of the scale when nothing is named."""
    return tuple(item for item in EXPERIMENTS if item.name in asked_plan(request).experiments)


def controls_of(request: Request) -> tuple[Control, ...]:
    """The controls asked for: all of the scale, unless other parts are named."""
    return tuple(item for item in CONTROLS if item.name in asked_plan(request).controls)


def studies_of(request: Request, data: str, *, made: bool) -> tuple[Study, ...]:
    """The studies on this data set, or on made data in its place."""
    place = TrainingSetting(asked_plan(request), data, made, request.device)
    main = (main_study(request, place),) if experiments_of(request) else ()
    return (*main, *((control_study(request, place),) if controls_of(request) else ()))


def main_study(request: Request, place: TrainingSetting) -> Study:
    """Every experiment in two rounds: drawn configs x seeds x repeats."""
    plan, chosen = place.plan, experiments_of(request)
    approaches = {
        approach_name(item.name, number): {
            "command": _command(place, item.method, item.optimizer, _searched(item.method, plan)),
            "configs": [item.method],
        }
        for item in chosen
        for number in ROUNDS
    }
    return Study(
        main_name(request.scale),
        approaches=approaches,
        configs={
            method: {"draws": plan.configs, **drawn(method, plan.steps[method], plan.most_queries, plan.most_images)}
            for method in dict.fromkeys(item.method for item in chosen)
        },
        environments=_environments(place.plan),
        levels=[Level.FIXED_SEED],
        seeds=list(SEEDS[: plan.seeds]),
        repeats=plan.repeats,
        metrics=_METRICS,
        folder=request.folder,
    )


def control_study(request: Request, place: TrainingSetting) -> Study:
    """One seed and default hyper-parameters, many identical runs."""
    return Study(
        control_name(request.scale),
        approaches={
            item.name: _command(place, item.method, item.optimizer, _defaults(item, place.plan))
            for item in controls_of(request)
        },
        environments=_environments(place.plan),
        levels=[Level.FIXED_SEED],
        seeds=[CONTROL_SEED],
        repeats=place.plan.control_repeats,
        metrics=_METRICS,
        folder=request.folder,
    )


def _environments(plan: ScalePlan) -> dict[str, Any]:
    return {"default": {"preload": list(PRELOAD), **({"threads": plan.threads} if plan.threads else {})}}


def _searched(method: str, plan: ScalePlan) -> dict[str, Any]:
    """Table 3's flags: fixed ones with their values, drawn ones as placeholders."""
    steps = plan.steps[method]
    names = drawn(method, steps, plan.most_queries, plan.most_images)
    return {**fixed(method, steps, plan.most_queries), **{name: f"{{config.{name}}}" for name in names}}


def _defaults(control: Control, plan: ScalePlan) -> dict[str, Any]:
    """Only what the scale or the paper's text sets; the training command's own defaults are the method's."""
    flags: dict[str, Any] = {"backbone": control.backbone, "train_ways": min(control.ways, plan.most_ways)}
    period = {"prototypical": 2000.0, "tadam": 2500.0}.get(control.method)
    if period is not None:
        flags["lr_decay_period"] = period * plan.steps[control.method] / SPACES[control.method].steps
    flags["queries"] = min(15, plan.most_queries or 15)
    return flags


def _command(place: TrainingSetting, method: str, optimizer: str, flags: Mapping[str, Any]) -> list[str]:
    plan = place.plan
    space = SPACES[method]
    every = {
        "method": method,
        "optimizer": optimizer,
        "data": place.data,
        "ways": _WAYS,
        "shots": _SHOTS,
        **flags,
        "episodes": plan.steps[method],
        "eval_every": plan.rounds or space.rounds,
        "eval_episodes": plan.test_episodes or space.test_episodes,
        "val_episodes": plan.val_episodes,
        "eval_queries": plan.test_queries,
        "early_stop": space.patience,
        "width": plan.width,
        "image_size": plan.image_size,
        "classes_limit": plan.classes_limit,
        "device": place.device,
    }
    words = ["python", "-m", _MODULE, *_words(every.items())]
    return [*words, *(["--made-data"] if place.made else []), "--seed", "{seed}"]


def _words(flags: Iterable[tuple[str, Any]]) -> Iterable[str]:
    for name, value in flags:
        yield f"--{name.replace('_', '-')}"
        yield f"{value:g}" if isinstance(value, float) else str(value)
