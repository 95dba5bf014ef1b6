"""Everything the records say about the paper, computed once; tables, sentences and JSON are made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from isorun.study.records import RunRecord
from isorun.zoo.paper import Request
from isorun.zoo.studies.fewshot.control import ControlResult, control_results
from isorun.zoo.studies.fewshot.design import control_name, controls_of, experiments_of, main_name
from isorun.zoo.studies.fewshot.experiments import ROUNDS, approach_name
from isorun.zoo.studies.fewshot.hypotheses import Judgement, judge
from isorun.zoo.studies.fewshot.models import (
    FittingModel,
    NestedModel,
    PaperModel,
    fitting_model,
    nested_model,
    paper_model,
)
from isorun.zoo.studies.fewshot.once import EachOnce, each_once
from isorun.zoo.studies.fewshot.runs import Collected, Identical, collect, control_runs, data_of, identical_settings

__all__ = ["Findings", "find"]


@dataclass(frozen=True, slots=True)
class Findings:
    """experiments, control_asked: the parts asked for. without_runs: approaches and controls that have no usable run.

    identical: how often identical runs gave identical results. once: H2 from different results alone, None where
    identical runs differ. data: what was trained on.
    """

    scale: str
    experiments: tuple[str, ...]
    control_asked: bool
    collected: Collected
    model: PaperModel
    fitting: FittingModel
    nested: NestedModel
    judged: tuple[Judgement, ...]
    controls: tuple[ControlResult, ...]
    without_runs: tuple[str, ...]
    identical: Identical
    once: EachOnce | None
    data: tuple[str, ...]


def find(request: Request, records: Mapping[str, Sequence[RunRecord]]) -> Findings:
    """Fit, test and count."""
    main, control = (records.get(name(request.scale), ()) for name in (main_name, control_name))
    experiments = tuple(item.name for item in experiments_of(request))
    collected = collect(main)
    model, fitting = paper_model(collected.runs), fitting_model(collected.runs)
    controls = control_results(control_runs(control))
    return Findings(
        scale=request.scale,
        experiments=experiments,
        control_asked=bool(controls_of(request)),
        collected=collected,
        model=model,
        fitting=fitting,
        nested=nested_model(collected.runs),
        judged=judge(model, experiments, fitting),
        controls=controls,
        without_runs=_without_runs(request, collected, controls),
        identical=identical_settings(collected.runs),
        once=each_once(collected.runs),
        data=data_of([*main, *control]),
    )


def _without_runs(request: Request, collected: Collected, controls: Sequence[ControlResult]) -> tuple[str, ...]:
    seen = {run.approach for run in collected.runs}
    approaches = [approach_name(item.name, number) for item in experiments_of(request) for number in ROUNDS]
    empty = {row.control for row in controls if not row.n}
    named = [f"control {item.name}" for item in controls_of(request) if item.name in empty]
    return (*(name for name in approaches if name not in seen), *named)
