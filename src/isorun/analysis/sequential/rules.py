"""Rules: a statistic, the looks at which it is taken, and what it must reach at each for a claim.

`planned_rule` makes the rule that a plan declares. A fixed number of runs needs neither simulated boundaries nor an
equivalence test, so those load when a plan asks for them.

Futility: a comparison is hopeless when, past 55 % of its information, the standardised rank statistic lies inside a
wedge that opens linearly from 0 there to 0.95 times the two-sided normal quantile at the end. The wedge was chosen
among linear and power wedges by simulation: with the default plan it stops a comparison of equals after about 21.6 of
30 runs a side and costs about 0.1 points of power (`benchmarks/sequential.py` measures both). It is not binding:
boundaries are calibrated as if it were not there, so that a user who goes on past it keeps the error rate, and one who
stops only lowers it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from isorun.analysis.pairwise import (
    NullLaw,
    SignedRankLaw,
    SuperiorityLaw,
    continuous_law,
    law_given_ties,
    superiority_law,
)
from isorun.analysis.samples import FloatArray
from isorun.analysis.sequential import (
    FEWEST_RUNS,
    Look,
    Plan,
    Schedule,
    cumulative_error,
    declared_looks,
    fractions,
)
from isorun.analysis.sequential.paths import (
    RunArray,
    centred_u,
    centred_u_of_all,
    moments,
    pooled_t,
    signed_rank_scores,
    superiority_score_of_all,
    superiority_scores,
    welch_t,
)

if TYPE_CHECKING:
    from isorun.analysis.sequential.equivalence import EquivalenceRule

__all__ = [
    "Rule",
    "e_process_rule",
    "fixed_rule",
    "futility_scores",
    "naive_rule",
    "null_sd_of_u",
    "planned_rule",
    "sequential_rule",
    "signed_rank_fixed_rule",
]

_HORIZON = 100  # how far ahead an open-ended comparison is projected, in runs a side
_OPENS_AT = 0.55
_END_SHARE = 0.95


def futility_scores(fractions: Sequence[float], alpha: float) -> tuple[float, ...]:
    """At each look, the |score| below which a comparison is hopeless; 0 where it may not be given up yet."""
    end = -_END_SHARE * float(special.ndtri(alpha / 2))
    return tuple(end * max(0.0, (fraction - _OPENS_AT) / (1 - _OPENS_AT)) for fraction in fractions)


def null_sd_of_u(look: Look) -> float:
    """The standard deviation of U without ties when there is nothing to find."""
    return math.sqrt(look.n_a * look.n_b * (look.n_a + look.n_b + 1) / 12)


Statistic = Callable[[RunArray, RunArray, Schedule], FloatArray]


@dataclass(frozen=True, slots=True)
class Rule:
    """When to claim, and when to give up.

    critical: claim when |statistic| is at least this; inf where nothing can be claimed yet. levels: the same as a
    plain two-sided p. futility: give up when |statistic| is below this; 0 where not yet, or never. error_rate: the
    chance of a claim when there is nothing to find, simulated where a simulation is the only way to know it.
    laws: the null law of a single look, where the statistic is a rank statistic. open_ended: whether looks may go on
    past the last one listed. stages: how many runs a side later stages of the plan allow, which are not listed.
    """

    method: str
    test: str
    statistic: Statistic
    schedule: Schedule
    critical: tuple[float, ...]
    levels: tuple[float, ...]
    futility: tuple[float, ...]
    error_rate: float
    laws: tuple[NullLaw, ...] = ()
    open_ended: bool = False
    paired: bool = False
    equivalence: EquivalenceRule | None = None
    stages: tuple[int, ...] = ()

    @property
    def scores(self) -> tuple[float, ...]:
        """The critical values in standard deviations of the statistic when there is nothing to find."""
        if self.test != "mann-whitney":
            return self.critical
        return tuple(value / null_sd_of_u(look) for value, look in zip(self.critical, self.schedule, strict=True))

    def with_equivalence(self, equivalence: EquivalenceRule | None) -> Rule:
        """The same rule, which may also claim equivalence."""
        return replace(self, equivalence=equivalence)


def planned_rule(plan: Plan, a: FloatArray, b: FloatArray) -> Rule:
    """The rule that the plan declares for these two sides; only the fixed rule depends on the runs themselves.

    Of pairs, a holds the differences and b zeros.
    """
    method = plan.effective_method
    if method == "fixed":
        return _fixed(plan, a, b).with_equivalence(_plain(plan))
    schedule = _schedule(plan, len(a), len(b))
    rule = _declared(plan, method, schedule)
    return rule.with_equivalence(_equivalence(plan, method, schedule, len(rule.schedule)))


def _fixed(plan: Plan, a: FloatArray, b: FloatArray) -> Rule:
    """The rule for all runs at hand, or for the fewest that allow a verdict."""
    enough = Look(max(FEWEST_RUNS, len(a)), max(FEWEST_RUNS, len(b)))
    too_few = enough != (len(a), len(b))
    if plan.paired:
        return signed_rank_fixed_rule(np.arange(1.0, enough.n_a + 1) if too_few else a, plan.alpha)
    if plan.effective_test == "brunner-munzel":
        return fixed_rule(enough, plan.alpha)
    return fixed_rule(enough, plan.alpha, continuous_law(*enough) if too_few else law_given_ties(a, b))


def _declared(plan: Plan, method: str, schedule: Schedule) -> Rule:
    if method == "naive":
        return naive_rule(schedule, plan.alpha, plan.effective_test)
    if method == "e-process":
        open_ended = plan.max_runs is None and isinstance(plan.looks, int)
        return e_process_rule(schedule, plan.alpha, open_ended=open_ended, paired=plan.paired)
    return sequential_rule(
        schedule,
        plan.spending,
        plan.alpha,
        futility=plan.futility,
        test=plan.effective_test,
        stages=plan.stages,
        max_runs=plan.max_runs if plan.stages else None,
    )


def _schedule(plan: Plan, n_a: int, n_b: int) -> Schedule:
    """All looks that were declared, those of later stages, too."""
    horizon = max(n_a, n_b, plan.min_runs) + _HORIZON
    most = horizon if plan.max_runs is None else max((plan.max_runs, *plan.stages))
    if not plan.stages:
        return declared_looks(plan.looks, min_runs=plan.min_runs, max_runs=most)
    sizes = {look.n_a for look in declared_looks(plan.looks, min_runs=plan.min_runs, max_runs=most)}
    return tuple(Look(size, size) for size in sorted(sizes.union(plan.stages)))


def _equivalence(plan: Plan, method: str, schedule: Schedule, looks: int) -> EquivalenceRule | None:
    if plan.margin is None:
        return None
    from isorun.analysis.sequential.equivalence import e_process_equivalence, spending_equivalence

    if method == "sequential":
        return spending_equivalence(
            plan.margin, schedule, plan.spending, plan.alpha, paired=plan.paired, stages=plan.stages
        ).up_to(looks)
    if method == "e-process":
        return e_process_equivalence(plan.margin, schedule, plan.alpha, paired=plan.paired)
    return _plain(plan)


def _plain(plan: Plan) -> EquivalenceRule | None:
    if plan.margin is None:
        return None
    from isorun.analysis.sequential.equivalence import plain_equivalence

    return plain_equivalence(plan.margin, plan.alpha)


def sequential_rule(
    schedule: Schedule,
    spending: str,
    alpha: float,
    *,
    futility: bool,
    test: str = "brunner-munzel",
    stages: tuple[int, ...] = (),
    max_runs: int | None = None,
    quick: bool = False,
) -> Rule:
    """A rank test with boundaries calibrated by simulation, so that the error spent by each look is never exceeded.

    stages: runs a side by which a plan may end, declared beforehand; each has its share of the error, and the rule
    goes up to `max_runs`. quick: from fewer simulations, for plans that are only weighed.

    With the Mann-Whitney test the null law is the same for every continuous metric, and ties only make it err less
    often (simulated: .045 for accuracies on 100 examples, .030 for three values, .014 for coin tosses); likewise with
    the signed rank test for all differences that are symmetric about 0.
    """
    from isorun.analysis.sequential.boundaries import boundaries

    cumulative = cumulative_error(spending, fractions(schedule), alpha, _stage_ends(schedule, stages))
    found = boundaries(test, schedule, cumulative, quick=quick)
    upto = schedule if max_runs is None else tuple(look for look in schedule if max(look) <= max_runs)
    rule = _rank_rule("sequential", test, upto, found.critical[: len(upto)], error_rate=found.spent[len(upto) - 1])
    hopeless = _futility(test, upto, alpha) if futility else rule.futility
    return replace(rule, futility=hopeless, stages=tuple(stage for stage in stages if stage > max(upto[-1])))


def naive_rule(schedule: Schedule, alpha: float, test: str = "mann-whitney") -> Rule:
    """A plain test at alpha at every look, as Pham et al. 2020 (ASE, section 8) propose; its error rate is simulated.

    "The replication process can stop when statistical tests (e.g., U-test) confirm the significance (e.g., p-value <
    0.05) of the difference": every further look is one more chance to err.
    """
    critical = tuple(law.critical(alpha) for law in _laws(test, schedule))
    return _rank_rule("naive", test, schedule, critical, error_rate=_naive_error_rate(test, schedule, critical))


def fixed_rule(look: Look, alpha: float, law: NullLaw | None = None) -> Rule:
    """One test of all runs: right when the number of runs was fixed beforehand.

    law: that of the Mann-Whitney test given the ties; without it the Brunner-Munzel test.
    """
    test, statistic = "mann-whitney", centred_u_of_all
    if law is None:
        test, statistic, law = "brunner-munzel", superiority_score_of_all, superiority_law(*look)
    critical = law.critical(alpha)
    levels = (law.p_value(critical),)
    return Rule("fixed", test, statistic, (look,), (critical,), levels, (0.0,), levels[0], (law,))


def signed_rank_fixed_rule(differences: FloatArray, alpha: float) -> Rule:
    """One signed rank test of all pairs, under its law given their ties and without those that do not differ."""
    law = SignedRankLaw.of(differences)
    critical = law.critical(alpha)
    look = Look(differences.size, differences.size)
    levels = (law.p_value(critical),)

    def statistic(a: RunArray, b: RunArray, _: Schedule) -> FloatArray:
        return law.scores((a - b)[: look.n_a])

    return Rule("fixed", "signed-rank", statistic, (look,), (critical,), levels, (0.0,), levels[0], (law,), paired=True)


def e_process_rule(schedule: Schedule, alpha: float, *, open_ended: bool = True, paired: bool = False) -> Rule:
    """The t e-process: claim when the evidence reaches 1/alpha, expressed as the t at which it does."""
    from isorun.analysis.sequential.equivalence import critical_t

    return Rule(
        method="e-process",
        test="student-t",
        statistic=_paired_t if paired else _student_t,
        schedule=schedule,
        critical=tuple(critical_t(look, alpha, paired=paired) for look in schedule),
        levels=tuple(alpha for _ in schedule),
        futility=_never(schedule),
        error_rate=alpha,
        open_ended=open_ended,
        paired=paired,
    )


def _student_t(a: RunArray, b: RunArray, schedule: Schedule) -> FloatArray:
    return pooled_t(moments(a, b, schedule))


def _paired_t(a: RunArray, b: RunArray, schedule: Schedule) -> FloatArray:
    """Student's t of the differences: Welch's against a side that is always 0."""
    differences = a - b
    return welch_t(moments(differences, differences * 0.0, schedule))


def _signed_ranks(a: RunArray, b: RunArray, schedule: Schedule) -> FloatArray:
    return signed_rank_scores(a - b, schedule)


_STATISTICS: dict[str, Statistic] = {
    "brunner-munzel": superiority_scores,
    "mann-whitney": centred_u,
    "signed-rank": _signed_ranks,
}
_NORMAL_SCORES = SuperiorityLaw.normal()


def _rank_rule(method: str, test: str, schedule: Schedule, critical: tuple[float, ...], *, error_rate: float) -> Rule:
    laws = _laws(test, schedule)
    levels = tuple(law.p_value(value) for law, value in zip(laws, critical, strict=True))
    return Rule(
        method=method,
        test=test,
        statistic=_STATISTICS[test],
        schedule=schedule,
        critical=critical,
        levels=levels,
        futility=_never(schedule),
        error_rate=error_rate,
        laws=laws,
        paired=test == "signed-rank",
    )


def _laws(test: str, schedule: Schedule) -> tuple[NullLaw, ...]:
    """The law of each look by itself; scores are read as normal ones."""
    if test == "mann-whitney":
        return tuple(continuous_law(*look) for look in schedule)
    return (_NORMAL_SCORES,) * len(schedule)


def _futility(test: str, schedule: Schedule, alpha: float) -> tuple[float, ...]:
    scores = futility_scores(fractions(schedule), alpha)
    if test != "mann-whitney":
        return scores
    return tuple(score * null_sd_of_u(look) for score, look in zip(scores, schedule, strict=True))


def _never(schedule: Schedule) -> tuple[float, ...]:
    return (0.0,) * len(schedule)


def _stage_ends(schedule: Schedule, stages: tuple[int, ...]) -> tuple[float, ...]:
    """The information fractions at which the stages end."""
    most = max(schedule[-1])
    return tuple(stage / most for stage in stages)


@functools.lru_cache(maxsize=64)
def _naive_error_rate(test: str, schedule: Schedule, critical: tuple[float, ...]) -> float:
    from isorun.analysis.sequential.boundaries import null_distances, refuse_too_long, rejected_by

    refuse_too_long(schedule)
    return rejected_by(null_distances(test, schedule), critical)[-1]
