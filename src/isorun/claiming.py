"""Claiming: a gain beside the noise of single runs, published or of one's own study.

claim(0.8, model="wrn-28-10", data="cifar100")      by the spreads that papers published
claim(0.8, study="study.toml", model="new")         by runs of one's own
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isorun.analysis.evidence import Condition
from isorun.analysis.evidence.units import units_of
from isorun.analysis.planning.claims import JudgedGain, RunNoise, judge_gain, noise_of, scale_of
from isorun.analysis.spreads import GroupSummary, sd_interval
from isorun.errors import InputError
from isorun.questions import Asked, Results, summarize
from isorun.store import AbstractStore

if TYPE_CHECKING:
    from isorun.analysis.studies.study_result import StudySides

__all__ = ["claim"]


def claim(
    gain: float,
    *,
    model: str | None = None,
    data: str | None = None,
    metric: str | None = None,
    unit: str | None = None,
    level: str | None = None,
    runs: int = 1,
    similar: bool = False,
    study: Any = None,
    where: Mapping[str, str] | None = None,
    alpha: float = 0.05,
    power: float = 0.8,
    store: str | Path | AbstractStore | None = None,
    selection: str | None = None,
) -> JudgedGain:
    """Is a claimed gain above the noise of single runs, and how many runs a side would show it?

    model, data: as a paper names them, whose published spread is taken; similar: also that of the nearest one, which is
    said. study: your own runs instead, a study or table, of which model names the approach. unit: of the gain, "points"
    or "share"; that of the noise where it is not said. runs: the gain is one of means of so many runs a side.
    """
    if study is not None:
        asked = Asked(metric, where=where, store=store, selection=selection)
        noise, conditions = _noise_of_study(study, asked, model, data or "", level)
        others: tuple[RunNoise, ...] = ()
    elif model is None:
        raise InputError(
            "whose noise is not said",
            found="neither a model nor a study",
            hint="model=…, data=… (--model, --data) for a published one, study=… (--study) for your own runs",
        )
    else:
        noise, others, conditions = noise_of(model, data, metric=metric, level=level, similar=similar)
    return judge_gain(gain, noise, unit=unit, runs=runs, alpha=alpha, power=power, conditions=conditions, others=others)


def _noise_of_study(
    study: Any, asked: Asked, model: str | None, data: str, level: str | None
) -> tuple[RunNoise, tuple[Condition, ...]]:
    """The noise of the one group of runs that is meant, and what weakens it."""
    found = asked.of(study)
    name = found.value(asked.value, "metric")
    chosen = {"approach" if found.study else "model": model, "level": level}
    labels = {**(asked.where or {}), **{column: label for column, label in chosen.items() if label is not None}}
    groups = list(summarize(found, value=name, where=labels))
    groups = [item for item in groups if item.group.get("level") == "default"] or groups if len(groups) > 1 else groups
    sd = groups[0].sd if len(groups) == 1 else None
    if sd is None:
        listed = "; ".join(", ".join(item.group.values()) or "all runs" for item in groups)
        raise InputError(
            "the noise of one group of runs is needed" if groups else "no run is meant",
            found=f"{len(groups)} groups: {listed}" if len(groups) > 1 else f"{listed}: 1 run, which has no spread",
            hint=_which_group([item.group for item in groups]),
        )
    item, source = groups[0], str(found.table.source)
    sides = found.sides("approach", [item.group["approach"]], labels) if found.study else None
    interval = item.sd_ci90
    if 1 < item.units < item.n:
        sd = _sd_of_draws(found, sides, name, {**labels, **item.group})
        interval = sd_interval(sd, item.units)
    noise = RunNoise(
        model=item.group.get("approach", model or "all runs"),
        data=data,
        metric=name,
        unit=scale_of(name, item.min, item.max),
        level=item.group.get("level", level or ""),
        runs=item.n,
        sd=sd,
        source=f"{source}: {item.n} runs, {item.units} of them independent",
        sd_interval90=interval,
        max_difference=item.max_diff,
    )
    own = [_of_draws(condition, item) for condition in item.conditions]
    if item.units == 1 and level is None:
        message = f"all {item.n} runs are one draw: others would move the result further"
        own.append(Condition("fixed-seed-noise", message, "runs with several seeds: isorun run -n 10 …"))
    return noise, (*found.conditions(None, sides), *own)


def _which_group(groups: Sequence[Mapping[str, str]]) -> str:
    """How one of several groups is named: by the columns in which they differ."""
    if not groups:
        return "isorun report shows the runs that there are"
    first, differing = groups[0], [name for name in groups[0] if len({each.get(name) for each in groups}) > 1]
    options = {"approach": "--model {}", "model": "--model {}", "level": "--level {}"}
    words = [options.get(name, f"--where {name}={{}}").format(shlex.quote(first[name])) for name in differing]
    if not words:
        return "more runs of it: isorun run -n 10 …"
    return f"name one, such as {' '.join(words)} (in Python: model=, level=, where=)"


def _of_draws(condition: Condition, item: GroupSummary) -> Condition:
    """A summary has no interval where runs repeat draws; here the sd is that of draws, and has one."""
    if condition.code != "fewer-units" or item.units < 2:
        return condition
    message = f"{item.n} runs are {item.units} independent draws: the sd is that of runs that are each a new one"
    return replace(condition, message=message)


def _sd_of_draws(found: Results, sides: StudySides | None, metric: str, labels: Mapping[str, str]) -> float:
    """The sd of runs that are each a draw of their own, where some of the known ones repeat a draw.

    That of the runs at hand is less: repeats of a seed lie near each other. The parts between and within draws are
    those of a one-way analysis of variance, with as many repeats a draw as there are on average.
    """
    table = found.table.where({name: label for name, label in labels.items() if name in found.table.columns})
    (group,) = table.groups(metric, ())
    units = units_of(table, group.values, found.counting(None, sides))
    repeats = units.runs.size / units.count
    between = float(units.values.var(ddof=1))
    inside = float(units.runs.var()) * units.runs.size - repeats * between * (units.count - 1)
    within = max(0.0, inside) / (units.runs.size - units.count)
    return math.sqrt(between + within * (1.0 - 1.0 / repeats))
