"""Rules: a statistic, the looks at which it is taken, and what it must reach at each for a claim."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from isorun.analysis.sequential.calibration import (
    CALIBRATION_SEED,
    Calibration,
    calibrate,
    rejected_by,
    simulated_paths,
)
from isorun.analysis.sequential.e_process import critical_t
from isorun.analysis.sequential.equivalence import EquivalenceRule
from isorun.analysis.sequential.exact_ranks import continuous_law, law_given_ties
from isorun.analysis.sequential.futility import futility_distances
from isorun.analysis.sequential.looks import Look, Schedule, fractions
from isorun.analysis.sequential.paths import AnyFloats, centred_u, moments, pooled_t
from isorun.analysis.sequential.spending import cumulative_error

__all__ = ["Rule", "e_process_rule", "fixed_rule", "naive_rule", "rank_rule"]

Floats = NDArray[np.float64]
Statistic = Callable[[AnyFloats, AnyFloats, Schedule], Floats]


@dataclass(frozen=True, slots=True)
class Rule:
    """When to claim, and when to give up.

    critical: claim when |statistic| is at least this; inf where nothing can be claimed yet. levels: the same as a
    plain two-sided p. futility: give up when |statistic| is below this; 0 where not yet, or never. error_rate: the
    chance of a claim when both sides are equal, simulated where a simulation is the only way to know it.
    open_ended: whether looks may go on past the last one listed.
    """

    method: str
    statistic: Statistic
    schedule: Schedule
    critical: tuple[float, ...]
    levels: tuple[float, ...]
    futility: tuple[float, ...]
    error_rate: float
    open_ended: bool = False
    equivalence: EquivalenceRule | None = None

    def with_equivalence(self, equivalence: EquivalenceRule | None) -> Rule:
        """The same rule, which may also claim equivalence."""
        return replace(self, equivalence=equivalence)


def rank_rule(schedule: Schedule, spending: str, alpha: float, *, futility: bool) -> Rule:
    """The sequential rank test: boundaries of U calibrated by simulation so that the spent error is never exceeded.

    The null law of the successive U statistics is the same for every continuous metric. With ties, U counts each as
    one half, which draws it towards its middle: the same boundaries then err less often, not more.
    """
    calibration = _calibrated_ranks(schedule, spending, alpha)
    hopeless = futility_distances(schedule, fractions(schedule), alpha) if futility else _never(schedule)
    return Rule(
        method="sequential",
        statistic=centred_u,
        schedule=schedule,
        critical=calibration.critical,
        levels=_levels(schedule, calibration.critical),
        futility=hopeless,
        error_rate=calibration.spent[-1],
    )


def naive_rule(schedule: Schedule, alpha: float) -> Rule:
    """A plain U test at alpha at every look, as Pham et al. 2020 (ASE, section 8) propose; its error rate is simulated.

    "The replication process can stop when statistical tests (e.g., U-test) confirm the significance (e.g., p-value <
    0.05) of the difference": every further look is one more chance to err.
    """
    critical = tuple(continuous_law(*look).critical(alpha) for look in schedule)
    return Rule(
        method="naive",
        statistic=centred_u,
        schedule=schedule,
        critical=critical,
        levels=_levels(schedule, critical),
        futility=_never(schedule),
        error_rate=_naive_error_rate(schedule, critical),
    )


def fixed_rule(a: Floats, b: Floats, alpha: float) -> Rule:
    """One exact U test of all runs, given their ties: right when the number of runs was fixed beforehand."""
    law = law_given_ties(a, b)
    critical = law.critical(alpha)
    schedule = (Look(len(a), len(b)),)
    level = law.p_value(critical)
    return Rule("fixed", centred_u, schedule, (critical,), (level,), _never(schedule), error_rate=level)


def e_process_rule(schedule: Schedule, alpha: float) -> Rule:
    """The t e-process: claim when the evidence reaches 1/alpha, expressed as the t at which it does."""
    critical = tuple(critical_t(look, alpha) for look in schedule)
    return Rule(
        method="e-process",
        statistic=_student_t,
        schedule=schedule,
        critical=critical,
        levels=tuple(alpha for _ in schedule),
        futility=_never(schedule),
        error_rate=alpha,
        open_ended=True,
    )


def _student_t(a: AnyFloats, b: AnyFloats, schedule: Schedule) -> Floats:
    return pooled_t(moments(a, b, schedule))


def _never(schedule: Schedule) -> tuple[float, ...]:
    return (0.0,) * len(schedule)


def _levels(schedule: Schedule, critical: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(continuous_law(*look).p_value(value) for look, value in zip(schedule, critical, strict=True))


@functools.lru_cache(maxsize=64)
def _calibrated_ranks(schedule: Schedule, spending: str, alpha: float) -> Calibration:
    return calibrate(_null_distances(schedule), cumulative_error(spending, fractions(schedule), alpha))


@functools.lru_cache(maxsize=64)
def _naive_error_rate(schedule: Schedule, critical: tuple[float, ...]) -> float:
    return rejected_by(_null_distances(schedule), critical)[-1]


def _null_distances(schedule: Schedule) -> Floats:
    """|U - mn/2| at each look when there is nothing to find; uniform runs stand for any continuous metric."""
    rng = np.random.default_rng(CALIBRATION_SEED)
    last = schedule[-1]
    count = simulated_paths(sum(last))
    a = rng.random((last.n_a, count), dtype=np.float32)
    b = rng.random((last.n_b, count), dtype=np.float32)
    return np.abs(centred_u(a, b, schedule))
