"""The mixed models: the paper's own, one that fits the design, and one that says where the variance comes from.

The paper's random effects are crossed: seed 12345 of one experiment and seed 12345 of another share an effect, and so
do all third repeats. Runs that have nothing in common but a number cannot show such an effect, however much they vary;
and what the runs of one experiment with one seed do share, the model takes for agreement of independent runs. The model
that fits has effects of configs, of seeds within a config, and of seeds in each round of an experiment. A third one
nests seeds within the configs of their experiment, for shares of the variance; what it leaves is the variance of
repeats.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from isorun.analysis.mixed.hypotheses import variance_shares
from isorun.analysis.mixed.model import mixed_model
from isorun.analysis.mixed.result import AnovaRow, Difference, MixedResult, VarianceShare
from isorun.errors import InputError
from isorun.zoo.studies.fewshot.experiments import approach_name
from isorun.zoo.studies.fewshot.measured import FinishedRun, identical_settings

__all__ = ["FittingModel", "NestedModel", "PaperModel", "fitting_model", "nested_model", "paper_model"]

_CONFIGS, _SEEDS, _REPEATS = "configs", "seeds", "repeats"
_EFFECTS = ("seed", "repeat", "setting", "setting:seed", "experiment:seed", "experiment:setting:seed")
"""Of the model that fits, where an experiment is one round of it and a setting is a config in both rounds."""
_Columns = dict[str, list[Any]]


@dataclass(frozen=True, slots=True)
class PaperModel:
    """accuracy ~ experiment + (1|seed) + (1|repeat), as far as the runs allow it.

    result: with Satterthwaite's degrees of freedom, as Table 2; f_test: with Kenward and Roger's, as Table 4.
    left_out: sentences on effects that cannot be in the model. why_not: why there is no model at all.
    """

    formula: str
    result: MixedResult | None
    f_test: AnovaRow | None
    left_out: tuple[str, ...] = ()
    why_not: str = ""

    def rerun(self, experiment: str) -> Difference | None:
        """Round 1 minus round 2 of an experiment, None where it is not known."""
        return _rerun(self.result, experiment)


@dataclass(frozen=True, slots=True)
class WithoutNoise:
    """Identical runs always agreed: every other difference is an effect.

    configs: those with several seeds; moved: how many of them gave another result with another seed. rounds: the
    experiments that were carried out twice, with the same results.
    """

    configs: int
    moved: int
    rounds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FittingModel:
    """accuracy ~ experiment with every random effect of the design that the runs can tell apart.

    result: with Kenward and Roger's degrees of freedom, None where there is no model, and why_not says why. rows: how
    many different results it was fitted to; copies of a result (identical runs that always agree) are one.
    without_noise: where identical runs agreed in both rounds, what can be seen without a model; else None.
    """

    formula: str
    result: MixedResult | None
    rows: int
    why_not: str = ""
    without_noise: WithoutNoise | None = None

    def rerun(self, experiment: str) -> Difference | None:
        """Round 1 minus round 2 of an experiment, None where it is not known."""
        return _rerun(self.result, experiment)


@dataclass(frozen=True, slots=True)
class NestedModel:
    """Shares of configs, of seeds within a config, and of repeats within a seed; why_not where there are none.

    seed_p: of the variance of seeds being zero, None where the design cannot test it.
    """

    formula: str
    shares: tuple[VarianceShare, ...]
    seed_p: float | None
    why_not: str = ""


def paper_model(runs: Sequence[FinishedRun]) -> PaperModel:
    """Fit the model of the paper's equation 5; an effect of which there is only one cannot be in it."""
    data: _Columns = {
        "accuracy": [run.accuracy for run in runs],
        "experiment": [run.approach for run in runs],
        "seed": [run.seed for run in runs],
        "repeat": [run.repeat for run in runs],
    }
    random = [name for name in ("seed", "repeat") if len(set(data[name])) > 1]
    gone = [name for name in ("seed", "repeat") if name not in random]
    left_out = tuple(f"(1|{name}) is not in the model: there is only one {name}" for name in gone)
    fixed = "experiment" if len(set(data["experiment"])) > 1 else "1"
    formula = " + ".join([f"accuracy ~ {fixed}", *(f"(1|{name})" for name in random)])
    if not random:
        return PaperModel(formula, None, None, left_out, "there are neither two seeds nor two repeats")
    try:
        result = mixed_model(data, formula, adjust="none")
        f_tests = mixed_model(data, formula, ddf="kenward-roger").anova
    except InputError as error:
        return PaperModel(formula, None, None, left_out, _reason(error))
    return PaperModel(formula, result, f_tests[0] if f_tests else None, left_out)


def fitting_model(runs: Sequence[FinishedRun]) -> FittingModel:
    """Fit every random effect that the design has: of seeds, repeats and configs, and of seeds within each of these.

    An effect is in the model when the runs can tell it apart, not when a test has shown it: with few seeds a test
    misses what already makes the paper's model reject too often.
    """
    rows = _without_copies(runs)
    names = sorted({run.approach for run in rows})
    data: _Columns = {
        "accuracy": [run.accuracy for run in rows],
        "experiment": [run.approach for run in rows],
        "seed": [run.seed for run in rows],
        "repeat": [run.repeat for run in rows],
        "setting": [f"{run.experiment} {run.config}" for run in rows],
    }
    groups = _told_apart(
        data, ("seed", "repeat", "setting", "setting:seed", "experiment:seed", "experiment:setting:seed")
    )
    formula = " + ".join([f"accuracy ~ {'experiment' if len(names) > 1 else '1'}", *(f"(1|{name})" for name in groups)])
    certain = _without_noise(runs)
    if not groups:
        return FittingModel(formula, None, len(rows), "configs, seeds and repeats cannot be told apart", certain)
    try:
        result = mixed_model(data, formula, ddf="kenward-roger", adjust="none")
    except InputError as error:
        return FittingModel(formula, None, len(rows), _reason(error), certain)
    return FittingModel(formula, result, len(rows), "", certain)


def _without_noise(runs: Sequence[FinishedRun]) -> WithoutNoise | None:
    if not identical_settings(runs).no_noise:
        return None
    results: dict[tuple[str, str], dict[str, float]] = {}
    rounds: dict[str, set[int]] = {}
    for run in runs:
        results.setdefault((run.experiment, run.config), {})[run.seed] = run.accuracy
        rounds.setdefault(run.experiment, set()).add(run.round)
    several = [seeds for seeds in results.values() if len(seeds) > 1]
    moved = sum(len(set(seeds.values())) > 1 for seeds in several)
    return WithoutNoise(len(several), moved, tuple(name for name, seen in rounds.items() if len(seen) > 1))


def _without_copies(runs: Sequence[FinishedRun]) -> list[FinishedRun]:
    """One of each result where identical runs always agree: of both rounds, or of the repeats within a round."""
    if identical_settings(runs).no_noise:
        return list({run.setting: replace(run, approach=run.experiment, repeat="") for run in reversed(runs)}.values())
    cells: dict[tuple[str, str, str], set[float]] = {}
    for run in runs:
        cells.setdefault((run.approach, run.config, run.seed), set()).add(run.accuracy)
    if len(cells) < len(runs) and all(len(values) == 1 for values in cells.values()):
        return list({(run.approach, run.config, run.seed): replace(run, repeat="") for run in reversed(runs)}.values())
    return list(runs)


def _told_apart(data: _Columns, groups: Sequence[str]) -> list[str]:
    """The groups that are neither rows nor the experiments themselves, nor another name for a group before them."""
    rows, seen = len(data["accuracy"]), {tuple(_codes(data, "experiment"))}
    kept = []
    for group in groups:
        codes = tuple(_codes(data, group))
        levels = len(set(codes))
        within = len(set(zip(codes, data["experiment"], strict=True))) > len(set(data["experiment"]))
        if 2 <= levels < rows and within and codes not in seen:
            kept.append(group)
        seen.add(codes)
    return kept


def _codes(data: _Columns, group: str) -> list[int]:
    """Rows of the same group have the same number, in the order in which they appear."""
    labels = list(zip(*(data[column] for column in group.split(":")), strict=True))
    numbers = {label: place for place, label in enumerate(dict.fromkeys(labels))}
    return [numbers[label] for label in labels]


def nested_model(runs: Sequence[FinishedRun]) -> NestedModel:
    """Where the variance comes from when only runs that share something are compared.

    Where identical runs gave identical results everywhere, one of each stands for all: repeats then have no share, and
    seeds are what is left.
    """
    no_noise = identical_settings(runs).no_noise
    rows = list({run.setting: run for run in reversed(runs)}.values()) if no_noise else list(runs)
    columns = _nested_columns(rows, by_round=not no_noise)
    terms, residual = _nested_terms(rows)
    if not terms:
        return NestedModel("", (), None, "configs, seeds and repeats cannot be told apart with so few of them")
    fixed = "experiment" if len(set(columns["experiment"])) > 1 else "1"
    formula = " + ".join([f"accuracy ~ {fixed}", *(f"(1|{term})" for term in terms.values())])
    try:
        result = mixed_model(columns, formula)
        shares = variance_shares(result)
    except InputError as error:
        return NestedModel(formula, (), None, _reason(error))
    named = [replace(row, group=name) for row, name in zip(shares, [*terms, residual], strict=True)]
    named += [VarianceShare(_REPEATS, 0.0, 0.0, 0.0)] * no_noise
    tested = {name: row.p_boundary for name, row in zip(terms, result.ranova, strict=True)}
    return NestedModel(formula, tuple(named), tested.get(_SEEDS))


def _nested_terms(runs: Sequence[FinishedRun]) -> tuple[dict[str, str], str]:
    """The random effects that these runs can tell apart, from the outside in, and what the residual then is."""
    experiments = len({run.experiment for run in runs})
    settings = len({(run.experiment, run.config) for run in runs})
    seeded = len({run.setting for run in runs})
    terms = {_CONFIGS: "setting"} if experiments < settings < len(runs) else {}
    terms |= {_SEEDS: "setting:seed"} if settings < seeded < len(runs) else {}
    innermost = _REPEATS if seeded < len(runs) else _SEEDS if settings < seeded else _CONFIGS
    return terms, innermost


def _nested_columns(runs: Sequence[FinishedRun], *, by_round: bool) -> _Columns:
    return {
        "accuracy": [run.accuracy for run in runs],
        "experiment": [run.approach if by_round else run.experiment for run in runs],
        "setting": [f"{run.experiment} {run.config}" for run in runs],
        "seed": [run.seed for run in runs],
    }


def _rerun(result: MixedResult | None, experiment: str) -> Difference | None:
    first, second = approach_name(experiment, 1), approach_name(experiment, 2)
    rows = result.differences if result else ()
    found = next((row for row in rows if (row.a, row.b) == (first, second) and not math.isnan(row.estimate)), None)
    return None if found is None else _without_rounding(found)


def _without_rounding(row: Difference) -> Difference:
    """Rounds with the same results differ by exactly nothing, not by what is left of sums of floats."""
    return replace(row, estimate=0.0, p=1.0) if abs(row.estimate) < 1e-9 * row.se else row


def _reason(error: InputError) -> str:
    return f"{error.what} ({error.found.splitlines()[0]})" if error.found else error.what
