"""Everything the tables show, for machines; the keys are described in docs/papers/ase20.md."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from isorun.analysis.spreads.spread import Spread
from isorun.analysis.studies.group_result import SelectionResult
from isorun.zoo.paper import Request
from isorun.zoo.studies.ase20.design import METRIC
from isorun.zoo.studies.ase20.evidence import Evidence
from isorun.zoo.studies.ase20.factor_lead import factor_lead
from isorun.zoo.studies.ase20.factors import FactorShares
from isorun.zoo.studies.ase20.level_tables import default_against_fixed_seed, distinct_weights
from isorun.zoo.studies.ase20.measured import Measured, PartResult, class_extreme, overall_extreme
from isorun.zoo.studies.ase20.published import EXAMPLE, TABLE_2, TABLE_3

__all__ = ["to_json"]


def to_json(request: Request, evidence: Evidence) -> dict[str, Any]:
    """Plain JSON: accuracies as fractions, times in seconds, null for what is not known."""
    everything = {
        "paper": "ase20",
        "scale": request.scale,
        "device": request.device,
        "findings": [item.to_json() for item in evidence.findings],
        "groups": [_group(group) for group in evidence.groups],
        "levene": [_levene(part, item) for part, item in default_against_fixed_seed(evidence.parts)],
        "example": [item.to_json() for item in evidence.examples],
        "factors": [_factors(item) for item in evidence.shares],
        "nested": evidence.nested and evidence.nested.to_json(),
        "published": _published(),
    }
    result: dict[str, Any] = _finite(everything)
    return result


def _group(group: Measured) -> dict[str, Any]:
    overall, per_class = overall_extreme(group.group), class_extreme(group.group)
    strong = overall_extreme(group.group, without_weak=True)
    weights = distinct_weights(group.group) if group.group else None
    return {
        "network": group.network.name,
        "parameters": group.network.parameters,
        "data": group.data,
        "level": str(group.level),
        "planned": group.planned,
        "finished": group.finished,
        "failed": len(group.group.failed) if group.group else 0,
        "gpu_runs_at_once": group.at_once,
        "epochs": group.epochs,
        "still_improving": group.is_cut_short,
        "overall": overall and {"rule": overall.rule, **_spread(overall.spread)},
        "overall_without_weak": strong and {"rule": strong.rule, **_spread(strong.spread)},
        "per_class": per_class and {"rule": per_class.rule, "class": per_class.class_name, **_spread(per_class.spread)},
        "rules": _rules(group),
        "different_final_weights": weights and weights[0],
    }


def _factors(shares: FactorShares) -> dict[str, Any]:
    lead = factor_lead(shares)
    return {**shares.to_json(), "lead": lead and lead.to_json()}


def _rules(group: Measured) -> dict[str, Any]:
    return {
        rule.selection.name: {
            "values": list(rule.values(METRIC)),
            "per_class": _class_values(rule),
            "weak_runs": list(rule.weak_runs),
            "seconds": _spread(rule.every.seconds),
            "epochs": _spread(rule.every.epochs),
        }
        for rule in (group.group.selections if group.group else ())
    }


def _class_values(rule: SelectionResult) -> dict[str, list[float | None]]:
    """Class to its accuracy in every run, in the order of the values."""
    runs = [run.selected.per_class.get(METRIC, {}) for run in rule.runs if METRIC in run.selected.values]
    return {
        name: [classes.get(name) for classes in runs] for name in dict.fromkeys(name for one in runs for name in one)
    }


def _spread(spread: Spread) -> dict[str, Any]:
    return {
        "n": spread.n,
        "mean": spread.mean,
        "sd": spread.sd,
        "sd_ci90": None if spread.sd_interval is None else list(spread.sd_interval),
        "min": spread.minimum,
        "max": spread.maximum,
        "max_diff": spread.max_difference,
        "rel_max_diff": spread.relative_difference,
        "rel_sd": spread.relative_sd,
    }


def _levene(part: PartResult, item: Any) -> dict[str, Any]:
    test = item.test.to_json() if item.test else {"statistic": None, "p": None}
    return {
        "network": item.approach,
        "data": part.planned.data,
        "rule": item.selection,
        "sd_default": item.sd_a,
        "sd_fixed_seed": item.sd_b,
        **test,
        "why_not": item.why_not or None,
    }


def _published() -> dict[str, Any]:
    """Tables 2 and 3 and the example as published: points, seconds and percent."""
    return {
        "table_2": {str(level): {name: asdict(row) for name, row in rows.items()} for level, rows in TABLE_2.items()},
        "table_3": {str(level): {name: asdict(row) for name, row in rows.items()} for level, rows in TABLE_3.items()},
        "example": asdict(EXAMPLE),
    }


def _finite(value: Any) -> Any:
    """The same without tuples, and with null for numbers that JSON has not."""
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
