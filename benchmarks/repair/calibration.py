"""Are stated chances of improving right? On searches that no count was made from, by tenths of the chance.

A search by TPE on a table stops after some trials; every change of its best trial is told with a chance, and is then
tried once: did the new score beat the best one by more than noise? The prior of a table is made from the others. The
chances of isorun's own proposals in repaired searches are held against what came of them in the same way.

What is told is counted chances by weights (`chances.json`), which `fitted` finds on other seeds of these tables; what
they do to a table that had no part in them is kept with them, and what to one of another family is told beside.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from unittest import mock

import numpy as np
import numpy.typing as npt
import optuna
from scipy.optimize import minimize

import isorun.repair
from isorun.repair import priorities
from isorun.repair.bugs import records_above
from isorun.repair.engines.optuna import search_of
from isorun.repair.priorities import Prior, ranked
from isorun.repair.searches import Search
from repair.build_priors import calibration, prior_from_tables
from repair.searching import suggested
from repair.tables import TrainingTable, hpobench, nasbench201

__all__ = ["fitted", "measure"]

_SEEDS: Final = range(4)
_FITTED_ON: Final = range(200, 204)
_STOPS: Final = (5, 10, 20, 40)
_SHOWN: Final = 8
_OFF_BY: Final = 0.1
_ENOUGH: Final = 100
_LEAST_TENTHS: Final = 3
"""Tenths that must hold enough changes, for else nothing is said of most chances."""
Foretold = tuple[float, bool]
Array = npt.NDArray[np.float64]


def measure() -> list[dict[str, Any]]:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    rows = []
    for name, tables in (("NAS-Bench-201", nasbench201()), ("HPOBench", hpobench())):
        every: list[Foretold] = []
        shown: list[Foretold] = []
        proposed: list[Foretold] = []
        for table in tables.values():
            prior = prior_from_tables([other for other in tables.values() if other is not table])
            for seed in _SEEDS:
                for told in _examined(table, prior, seed):
                    every += told
                    shown += told[:_SHOWN]
                proposed += _proposed(table, prior, seed)
        rows += [
            _row(f"{name}: all changes of the best trial", every),
            _row(f"{name}: the {_SHOWN} that are shown", shown),
            _row(f"{name}: isorun's own proposals", proposed),
        ]
    return rows


def _examined(table: TrainingTable, prior: Prior | None, seed: int) -> Iterator[list[Foretold]]:
    return (told for _, told in _looked_at(table, prior, seed))


def _looked_at(table: TrainingTable, prior: Prior | None, seed: int) -> Iterator[tuple[Search, list[Foretold]]]:
    """For each stop of a search: the chances of all changes, the largest first, and whether each one improved."""
    rng = np.random.default_rng([seed, 7])
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    for stop in _STOPS:
        study.optimize(lambda trial: table.drawn(suggested(trial, table), rng), n_trials=stop - len(study.trials))
        search = replace(search_of(study), noise=table.noise)
        best = search.best
        assert best is not None
        told = [
            (one.probability, table.drawn(one.action.parameters, rng) > (best.score or 0.0) + search.margin)
            for one in ranked(search, prior, rng)
        ]
        yield search, told


def _proposed(table: TrainingTable, prior: Prior | None, seed: int) -> list[Foretold]:
    return [told for _, told in _own(table, prior, seed)]


def _own(table: TrainingTable, prior: Prior | None, seed: int) -> Iterator[tuple[Search, Foretold]]:
    """Proposals, each with the search as it was then; scores are shares of one, so that its noise is known to it."""
    rng = np.random.default_rng([seed, 8])
    known = None if prior is None else replace(prior, noise=table.noise / 100)
    sampler = isorun.repair.optuna(optuna.samplers.TPESampler(seed=seed), begin=5, prior=known, seed=seed)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(lambda trial: table.drawn(suggested(trial, table), rng) / 100, n_trials=_STOPS[-1])
    search = replace(search_of(study), noise=table.noise / 100)
    by_number = {trial.number: trial for trial in search.trials}
    for one in search.trials:
        if one.chance is not None and one.origin is not None:
            improved = search.gain(one) > search.gain(by_number[one.origin]) + search.margin
            yield replace(search, trials=search.trials[: one.number]), (one.chance, improved)


@dataclass(frozen=True, slots=True)
class _Counted:
    """Changes before they are told. family, table, kind: where from. features: a column a weight. improved: came."""

    family: Array
    table: Array
    kind: Array
    features: Array
    improved: Array

    def weights(self, chosen: Array) -> Array:
        """By logistic regression; tables of a family and kinds of changes weigh the same, however many changes."""
        groups = 3 * self.family[chosen] + self.kind[chosen]
        sizes = {group: float(np.sum(groups == group)) for group in set(groups)}
        share = np.array([1 / sizes[group] for group in groups]) / len(sizes)
        features, signs = self.features[chosen], 2 * self.improved[chosen] - 1

        def loss(weights: Array) -> float:
            return float(share @ np.logaddexp(0, -signs * (features @ weights)) + 1e-4 * weights @ weights)

        return np.asarray(minimize(loss, np.zeros(features.shape[1])).x)

    def foretold(self, apart: Array) -> list[Foretold]:
        """What is told of each part by weights that were fitted without it."""
        found: list[Foretold] = []
        for part in sorted(set(apart)):
            weights = self.weights(apart != part)
            chances = 1 / (1 + np.exp(-self.features[apart == part] @ weights))
            found += [(float(one), bool(came)) for one, came in zip(chances, self.improved[apart == part], strict=True)]
        return found


def fitted() -> dict[str, Any]:
    """The weights of told chances as their file holds them."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with mock.patch.object(priorities, "told_chances", return_value=_Plain(0.0, 1.0, 0.0, 0.0)):
        counted = _counted()
    constant, of_counts, trials, above = counted.weights(np.ones(len(counted.improved), dtype=bool))
    weights = {"constant": constant, "counted": of_counts, "trials": trials, "above": above}
    return {
        "format": 1,
        "source": "changes of the best trial, told with a prior and without, and isorun's own proposals, in searches "
        f"by TPE on NAS-Bench-201 and HPOBench, seeds {_FITTED_ON[0]} to {_FITTED_ON[-1]}",
        "changes": len(counted.improved),
        "improved": int(counted.improved.sum()),
        "weights": {name: round(float(weight), 4) for name, weight in weights.items()},
        "calibration": calibration(counted.foretold(counted.table)),
        "another_family": calibration(counted.foretold(counted.family)),
    }


class _Plain(priorities.ToldChances):
    """Counted chances as they are, whatever was promised before."""

    def told(self, chance: float, search: Search, kept: float = 1.0) -> float:  # noqa: ARG002
        """The chance itself."""
        return chance


def _counted() -> _Counted:
    rows: list[tuple[float, ...]] = []
    for family, tables in enumerate((nasbench201(), hpobench())):
        for place, table in enumerate(tables.values()):
            prior = prior_from_tables([other for other in tables.values() if other is not table])
            for seed in _FITTED_ON:
                for kind, given in enumerate((prior, None)):
                    for search, told in _looked_at(table, given, seed):
                        known = _features(search)
                        rows += [(family, 20 * family + place, kind, chance, *known, came) for chance, came in told]
                for search, (chance, came) in _own(table, prior, seed):
                    rows.append((family, 20 * family + place, 2, chance, *_features(search), came))
    of_family, of_table, of_kind, chance, trials, above, came = np.array(rows, dtype=float).T
    chance = np.clip(chance, 1e-4, 1 - 1e-4)
    features = np.column_stack([np.ones(len(chance)), np.log(chance / (1 - chance)), trials, above])
    return _Counted(of_family, of_table, of_kind, features, came)


def _features(search: Search) -> tuple[float, float]:
    return math.log(max(len(search.scored), 1)), math.log(max(records_above(search, search.margin), 1e-3))


def _row(name: str, told: Sequence[Foretold]) -> dict[str, Any]:
    """The largest distance between what was foretold and what happened, over tenths with enough changes."""
    tenths = calibration(told)
    many = [one for one in tenths if one["tries"] >= _ENOUGH]
    off = max((abs(one["foretold"] - one["improved"]) for one in many), default=0.0)
    chances, improved = (np.array(column, dtype=float) for column in zip(*told, strict=True))
    brier, base = np.mean((chances - improved) ** 2), improved.mean()
    tables = "; ".join(
        f"{100 * one['foretold']:.0f} → {100 * one['improved']:.0f} ({one['tries']:.0f})" for one in tenths
    )
    return {
        "name": f"{name}: farthest tenth off",
        "measured": round(100 * off, 1),
        "unit": f"points; tenths that count: {len(many)}",
        "target": f"≤ {100 * _OFF_BY:.0f}; ≥ {_LEAST_TENTHS}",
        "ok": off <= _OFF_BY and len(many) >= _LEAST_TENTHS,
        "detail": f"a tenth counts from {_ENOUGH} changes on; foretold → improved in % (changes), by tenths: "
        f"{tables}; mean {100 * chances.mean():.1f} → {100 * base:.1f}; Brier {brier:.4f}, by the mean alone "
        f"{base * (1 - base):.4f}; seeds 0 to {_SEEDS[-1]}",
    }
