"""Rules: a statistic, the looks at which it is taken, and what it must reach at each for a claim."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from isorun.analysis.inputs.samples import FloatArray
from isorun.analysis.sequential.calibration import Calibration, calibrate, null_paths, rejected_by
from isorun.analysis.sequential.e_process import critical_t
from isorun.analysis.sequential.equivalence import EquivalenceRule
from isorun.analysis.sequential.futility import futility_distances
from isorun.analysis.sequential.looks import MOST_RUNS, Look, Schedule, fractions
from isorun.analysis.sequential.null_law import NullLaw, continuous_law
from isorun.analysis.sequential.paths import RunArray, centred_u, centred_u_of_all, moments, pooled_t
from isorun.analysis.sequential.spending import cumulative_error
from isorun.errors import InputError

__all__ = ["Rule", "e_process_rule", "fixed_rule", "naive_rule", "rank_rule"]

Statistic = Callable[[RunArray, RunArray, Schedule], FloatArray]


@dataclass(frozen=True, slots=True)
class Rule:
    """When to claim, and when to give up.

    critical: claim when |statistic| is at least this; inf where nothing can be claimed yet. levels: the same as a
    plain two-sided p. futility: give up when |statistic| is below this; 0 where not yet, or never. error_rate: the
    chance of a claim when both sides are equal, simulated where a simulation is the only way to know it.
    laws: the null law of a single look, where the statistic is a rank statistic. open_ended: whether looks may go on
    past the last one listed.
    """

    method: str
    statistic: Statistic
    schedule: Schedule
    critical: tuple[float, ...]
    levels: tuple[float, ...]
    futility: tuple[float, ...]
    error_rate: float
    laws: tuple[NullLaw, ...] = ()
    open_ended: bool = False
    equivalence: EquivalenceRule | None = None

    def with_equivalence(self, equivalence: EquivalenceRule | None) -> Rule:
        """The same rule, which may also claim equivalence."""
        return replace(self, equivalence=equivalence)


def rank_rule(schedule: Schedule, spending: str, alpha: float, *, futility: bool) -> Rule:
    """The sequential rank test: boundaries of U calibrated by simulation so that the spent error is never exceeded.

    The null law of the successive U statistics is the same for every continuous metric. With ties, U counts each as
    one half, which draws it towards its middle: the same boundaries then err less often (simulated: .045 for
    accuracies on 100 examples, .030 for three values, .014 for coin tosses), at a price in power that only metrics of
    few values pay.
    """
    calibration = _calibrated_ranks(schedule, spending, alpha)
    hopeless = futility_distances(schedule, fractions(schedule), alpha) if futility else _never(schedule)
    laws = tuple(continuous_law(*look) for look in schedule)
    return _ranks(
        "sequential", schedule, laws, calibration.critical, futility=hopeless, error_rate=calibration.spent[-1]
    )


def naive_rule(schedule: Schedule, alpha: float) -> Rule:
    """A plain U test at alpha at every look, as Pham et al. 2020 (ASE, section 8) propose; its error rate is simulated.

    "The replication process can stop when statistical tests (e.g., U-test) confirm the significance (e.g., p-value <
    0.05) of the difference": every further look is one more chance to err.
    """
    laws = tuple(continuous_law(*look) for look in schedule)
    critical = tuple(law.critical(alpha) for law in laws)
    error_rate = _naive_error_rate(schedule, critical)
    return _ranks("naive", schedule, laws, critical, futility=_never(schedule), error_rate=error_rate)


def fixed_rule(look: Look, law: NullLaw, alpha: float) -> Rule:
    """One U test of all runs under the law given their ties: right when the number of runs was fixed beforehand."""
    critical = law.critical(alpha)
    rule = _ranks("fixed", (look,), (law,), (critical,), futility=(0.0,), error_rate=law.p_value(critical))
    return replace(rule, statistic=centred_u_of_all)


def e_process_rule(schedule: Schedule, alpha: float, *, open_ended: bool = True) -> Rule:
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
        open_ended=open_ended,
    )


def _student_t(a: RunArray, b: RunArray, schedule: Schedule) -> FloatArray:
    return pooled_t(moments(a, b, schedule))


def _never(schedule: Schedule) -> tuple[float, ...]:
    return (0.0,) * len(schedule)


def _ranks(
    method: str,
    schedule: Schedule,
    laws: tuple[NullLaw, ...],
    critical: tuple[float, ...],
    *,
    futility: tuple[float, ...],
    error_rate: float,
) -> Rule:
    levels = tuple(law.p_value(value) for law, value in zip(laws, critical, strict=True))
    return Rule(method, centred_u, schedule, critical, levels, futility, error_rate, laws)


@functools.lru_cache(maxsize=64)
def _calibrated_ranks(schedule: Schedule, spending: str, alpha: float) -> Calibration:
    return calibrate(_null_distances(schedule), cumulative_error(spending, fractions(schedule), alpha))


@functools.lru_cache(maxsize=64)
def _naive_error_rate(schedule: Schedule, critical: tuple[float, ...]) -> float:
    return rejected_by(_null_distances(schedule), critical)[-1]


def _null_distances(schedule: Schedule) -> FloatArray:
    """|U - mn/2| at each look when there is nothing to find."""
    if max(schedule[-1]) > MOST_RUNS:
        raise InputError(
            "boundaries cannot be simulated for so many runs",
            found=f"up to {max(schedule[-1])} runs a side",
            allowed=f"at most {MOST_RUNS}",
            hint="use the method 'e-process', or 'fixed' when the number of runs was fixed beforehand",
        )
    distances = null_paths(schedule, _uniform, centred_u)
    return np.abs(distances, out=distances)


def _uniform(rng: np.random.Generator, shape: tuple[int, int]) -> RunArray:
    """Runs that stand for any continuous metric: whole numbers from so many that ties do not happen."""
    return rng.integers(2**32, size=shape, dtype=np.uint32)
