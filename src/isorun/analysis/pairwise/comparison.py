"""Two approaches: how large the difference is, how sure it is, and what single runs would have said.

Everything is "A against B": the difference is mean A minus mean B, U counts the pairs in which A has the larger value,
and effect sizes are positive when A has the larger mean. What depends on which direction is better says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from isorun.analysis.evidence.condition import Condition
from isorun.analysis.evidence.units import Units
from isorun.analysis.inputs.pairing import Pairs
from isorun.analysis.inputs.samples import FloatArray, Interval, Outcome, higher_is_better, is_constant
from isorun.analysis.pairwise.brunner_munzel import Superiority, brunner_munzel
from isorun.analysis.pairwise.by_name import Named
from isorun.analysis.pairwise.effect_size import EffectSize, effect_size
from isorun.analysis.pairwise.improvement import Improvement, probability_of_improvement, single_run_reversal
from isorun.analysis.pairwise.mann_whitney import RankSum, mann_whitney
from isorun.analysis.pairwise.mean_tests import MeanDifference, paired_t, welch
from isorun.analysis.pairwise.shift import Shift, hodges_lehmann
from isorun.analysis.pairwise.signed_rank import wilcoxon_signed_rank
from isorun.analysis.pairwise.variance_tests import f_test, fligner, levene
from isorun.analysis.sequential.decision import Decision
from isorun.analysis.spreads.spread import spread

__all__ = ["Comparison", "PairedTests", "Side", "compared"]


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two approaches: its name, the units among its finite values, and how many values were left out."""

    name: str
    units: Units
    dropped: int = 0

    @property
    def values(self) -> FloatArray:
        """One value a unit, by size: sums in one fixed order, so that the order of rows shows in no digit."""
        return np.sort(self.units.values)

    @property
    def runs(self) -> FloatArray:
        """The values of all runs, by size."""
        return np.sort(self.units.runs)


@dataclass(frozen=True, slots=True)
class PairedTests:
    """The tests that use which runs belong together."""

    pairs: int
    wilcoxon: Outcome
    t: MeanDifference


@dataclass(frozen=True, slots=True)
class Comparison:
    """All that two sets of runs say about their approaches; None wherever the data allow no answer (see notes).

    Everything is made from one value a unit, but for single_run_reversal and the extremes, which are about runs.
    warnings: what weakens the evidence; one that voids the error rate has made the decision "undecided".
    also: what was asked for by name; no verdict rests on it.
    one_sided_p: of "A is better" in the given direction, by the Mann-Whitney test.
    single_run_reversal: the share of pairs of single runs that say the opposite of the means; ties say nothing.
    """

    a: Side
    b: Side
    direction: str
    means: MeanDifference
    mean_a: float
    mean_b: float
    sd_a: float | None
    sd_b: float | None
    levene: Outcome
    levene_mean: Outcome
    fligner: Outcome
    f_test: Outcome
    mann_whitney: RankSum
    brunner_munzel: Superiority
    one_sided_p: float
    effect: EffectSize
    improvement: Improvement
    shift: Shift
    single_run_reversal: float | None
    paired: PairedTests | None
    decision: Decision
    notes: tuple[str, ...]
    warnings: tuple[Condition, ...] = ()
    also: Mapping[str, Named] = field(default_factory=dict)

    @property
    def difference(self) -> float:
        """Mean of A minus mean of B."""
        return self.means.difference

    @property
    def known_direction(self) -> str | None:
        """Which direction is better; None where nobody said it and the name does not tell."""
        unknown = any(warning.code == "direction-unknown" for warning in self.warnings)
        return None if unknown else self.direction

    @property
    def verdict(self) -> str:
        """The verdict in words."""
        return str(self.decision.verdict)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON: the documented keys first, further ones after them."""
        return {
            "a": self.a.name,
            "b": self.b.name,
            "n_a": self.a.units.runs.size,
            "n_b": self.b.units.runs.size,
            "mean_a": self.mean_a,
            "mean_b": self.mean_b,
            "difference": self.difference,
            "difference_ci95": _listed(self.means.ci95),
            "levene": self.levene.to_json(),
            "mann_whitney": self.mann_whitney.to_json(),
            "mann_whitney_one_sided_p": self.one_sided_p,
            "welch_p": self.means.p,
            "cohens_d": self.effect.cohens_d,
            "hedges_g": self.effect.hedges_g,
            "probability_of_improvement": self.improvement.to_json(),
            "single_run_reversal": self.single_run_reversal,
            "wilcoxon_p": None if self.paired is None else self.paired.wilcoxon.p,
            "paired_t_p": None if self.paired is None else self.paired.t.p,
            "verdict": self.verdict,
            "why": self.decision.why,
            **self._further(),
        }

    def _further(self) -> dict[str, Any]:
        return {
            "direction": self.known_direction,
            "test": self.decision.test,
            "brunner_munzel": self.brunner_munzel.to_json(),
            "units_a": self.a.units.count,
            "units_b": self.b.units.count,
            "unit": self.a.units.noun,
            "sd_a": self.sd_a,
            "sd_b": self.sd_b,
            "effect_size_ci95": _listed(self.effect.cohens_d_ci95),
            "cohens_d_ci95": _listed(self.effect.cohens_d_ci95),
            "hedges_g_ci95": _listed(self.effect.hedges_g_ci95),
            "hodges_lehmann": self.shift.to_json(),
            "levene_mean": self.levene_mean.to_json(),
            "fligner": self.fligner.to_json(),
            "f_test": self.f_test.to_json(),
            "pairs": None if self.paired is None else self.paired.pairs,
            "paired_difference_ci95": None if self.paired is None else _listed(self.paired.t.ci95),
            "dropped": {"a": self.a.dropped, "b": self.b.dropped},
            "notes": list(self.notes),
            "warnings": [warning.to_json() for warning in (*self.warnings, *self.decision.warnings)],
            "also": {name: found.to_json() for name, found in self.also.items()},
        }


def _listed(interval: Interval | None) -> list[float] | None:
    return None if interval is None else list(interval)


def compared(
    a: Side,
    b: Side,
    *,
    pairs: Pairs | None,
    direction: str,
    decision: Decision,
    conditions: Sequence[Condition] = (),
    also: Mapping[str, Named] | None = None,
) -> Comparison:
    """Every test and interval of two sides, with the decision made on them and the conditions it stands under."""
    first, second = a.values, b.values
    ranks = mann_whitney(first, second)
    spreads = [spread(side) for side in (first, second)]
    assert spreads[0].mean is not None
    assert spreads[1].mean is not None
    return Comparison(
        a=a,
        b=b,
        direction=direction,
        means=welch(first, second),
        mean_a=spreads[0].mean,
        mean_b=spreads[1].mean,
        sd_a=spreads[0].sd,
        sd_b=spreads[1].sd,
        levene=levene([first, second]),
        levene_mean=levene([first, second], centre="mean"),
        fligner=fligner([first, second]),
        f_test=f_test(first, second),
        mann_whitney=ranks,
        brunner_munzel=brunner_munzel(first, second),
        one_sided_p=ranks.p_larger if higher_is_better(direction) else ranks.p_smaller,
        effect=effect_size(first, second),
        improvement=probability_of_improvement(first, second, direction=direction),
        shift=hodges_lehmann(first, second),
        single_run_reversal=single_run_reversal(a.runs, b.runs),
        paired=None if pairs is None else _paired_tests(pairs),
        decision=decision,
        notes=tuple(_notes(a, b, pairs)),
        warnings=tuple(conditions),
        also=also or {},
    )


def _paired_tests(pairs: Pairs) -> PairedTests:
    tests = wilcoxon_signed_rank(pairs.differences), paired_t(pairs.first - pairs.second)
    return PairedTests(pairs.first.size, *tests)


def _notes(a: Side, b: Side, pairs: Pairs | None) -> list[str]:
    notes = [
        f"{side.dropped} values of {side.name!r} are not finite and were left out" for side in (a, b) if side.dropped
    ]
    notes += [f"{side.name!r} has one run: nothing is known about its spread" for side in (a, b) if side.runs.size == 1]
    constant = [side for side in (a, b) if side.runs.size > 1 and is_constant(side.runs)]
    notes += [f"all {side.runs.size} runs of {side.name!r} have the same value" for side in constant]
    if pairs is not None and pairs.unmatched:
        shown = ", ".join(pairs.unmatched[:5]) + (", …" if len(pairs.unmatched) > 5 else "")
        notes.append(f"{len(pairs.unmatched)} runs have no partner and are not in the paired tests: {shown}")
    return notes
