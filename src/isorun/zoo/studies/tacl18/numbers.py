"""The findings as plain JSON; docs/papers/tacl18.md tells what each key means."""

from __future__ import annotations

from typing import Any

from isorun.zoo.studies.tacl18.findings import Findings
from isorun.zoo.studies.tacl18.measured import Condition
from isorun.zoo.studies.tacl18.question_tests import QuestionTest
from isorun.zoo.studies.tacl18.seeds_study import SeedRuns

__all__ = ["findings_to_json"]


def findings_to_json(found: Findings) -> dict[str, Any]:
    """Everything, whether or not its part was asked for; empty lists where there are no runs."""
    return {
        "made_data": found.made_data,
        "runs": found.finished,
        "lost_runs": len(found.lost),
        "baseline": [item.to_json() for item in found.baselines],
        "data": [item.to_json() for item in found.versions],
        **{
            part: [_condition(item, found.tests[part].get(item)) for item in items]
            for part, items in found.conditions.items()
        },
        "effects": [item.to_json() for item in found.effects],
        "seeds": [_seeds(item) for item in found.seeds],
        "agreements": {data: [item.to_json() for item in items] for data, items in found.agreements.items()},
        "masks": [item.to_json() for item in found.masks],
        "changes": [change.to_json() for pair in found.changes for change in pair],
        "rounding": [item.to_json() for item in found.roundings],
        "digits": [
            {"data": data, "side": side, "metric": metric, **digits.to_json()}
            for (data, side, metric), digits in found.digits.items()
        ],
    }


def _condition(item: Condition, test: QuestionTest | None) -> dict[str, Any]:
    return {
        "data": item.data,
        "side": item.side,
        "environment": item.environment,
        "runs": len(item.runs),
        "ap": list(item.values("AP")),
        "rr": list(item.values("RR")),
        "threads_used": sorted({run.threads for run in item.runs if run.threads is not None}),
        "hardware": item.runs[0].hardware,
        "weights": len(item.weights),
        "initial_weights": len({run.initial for run in item.runs if run.initial}),
        "wilcoxon_p_ap": None if test is None else test["AP"],
        "wilcoxon_p_rr": None if test is None else test["RR"],
    }


def _seeds(item: SeedRuns) -> dict[str, Any]:
    sides = {
        side: [{"seed": seed, "ap": run.ap, "rr": run.rr} for seed, run in runs.items()]
        for side, runs in item.sides.items()
    }
    return {"data": item.data, "sides": sides}
