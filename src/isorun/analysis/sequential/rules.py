"""Rules: a statistic, the looks at which it is taken, and what it must reach at each for a claim."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace

from isorun.analysis.inputs.samples import FloatArray
from isorun.analysis.pairwise.brunner_munzel import SuperiorityLaw, superiority_law
from isorun.analysis.pairwise.signed_rank import SignedRankLaw
from isorun.analysis.sequential.boundaries import boundaries, null_distances, refuse_too_long
from isorun.analysis.sequential.calibration import rejected_by
from isorun.analysis.sequential.e_process import critical_t
from isorun.analysis.sequential.equivalence import EquivalenceRule
from isorun.analysis.sequential.futility import futility_scores, null_sd_of_u
from isorun.analysis.sequential.looks import Look, Schedule, fractions
from isorun.analysis.sequential.null_law import NullLaw, continuous_law
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
from isorun.analysis.sequential.spending import cumulative_error

__all__ = ["Rule", "e_process_rule", "fixed_rule", "naive_rule", "sequential_rule", "signed_rank_fixed_rule"]

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
    refuse_too_long(schedule)
    return rejected_by(null_distances(test, schedule), critical)[-1]
