"""Two approaches: how large the difference is, how sure it is, and what single runs would have said.

Everything is "A against B": the difference is mean A minus mean B, U counts the pairs in which A has the larger value,
and effect sizes are positive when A has the larger mean. What depends on which direction is better says so.

`compare`: two approaches from arrays, or from any table of results.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from isorun.analysis import Told
from isorun.analysis.evidence import Condition, not_finite, noted
from isorun.analysis.evidence.units import (
    Counting,
    Units,
    counting_conditions,
    counting_of,
    listed_pairs,
    listed_units,
    paired_units,
    pooled_conditions,
    refuse_value_as_unit,
    unit_conditions,
    units_of,
    units_without_value,
)
from isorun.analysis.measurements import Group, Measurements, read_table
from isorun.analysis.pairwise import (
    MeanDifference,
    RankSum,
    Superiority,
    brunner_munzel,
    f_test,
    fligner,
    levene,
    mann_whitney,
    paired_t,
    welch,
    wilcoxon_signed_rank,
)
from isorun.analysis.pairwise.effects import (
    EffectSize,
    Improvement,
    Shift,
    effect_size,
    hodges_lehmann,
    probability_of_improvement,
    single_run_reversal,
)
from isorun.analysis.samples import (
    FloatArray,
    Interval,
    Pairs,
    Significance,
    finite_sample,
    higher_is_better,
    is_constant,
)
from isorun.analysis.sequential import Decision, Verdict, named, withheld
from isorun.analysis.sequential.verdict import decide
from isorun.analysis.spreads import column_names, spread
from isorun.errors import InputError, known_names

if TYPE_CHECKING:
    from isorun.analysis.pairwise.by_name import Named

__all__ = ["REAL_RUNS", "Comparison", "Extras", "PairedTests", "Side", "compare", "compared"]


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two approaches: its name, the units among its finite values, and how many values were left out.

    lost: the labels of units with a run that left no result.
    """

    name: str
    units: Units
    dropped: int = 0
    lost: frozenset[str] = frozenset()

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
    wilcoxon: Significance
    t: MeanDifference


@dataclass(frozen=True, slots=True)
class Comparison(Told):
    """All that two sets of runs say about their approaches; None wherever the data allow no answer (see notes).

    Everything is made from one value a unit, but for single_run_reversal and the extremes, which are about runs.
    conditions: what weakens the evidence; one that voids the error rate has made the decision "undecided".
    also: what was asked for by name; no verdict rests on it. metric: the name of what is compared, where it has one.
    one_sided_p: of "A is better" in the given direction, by the Mann-Whitney test.
    single_run_reversal: the share of pairs of single runs that say the opposite of the means; ties say nothing.
    """

    told_as: ClassVar[str] = "comparison"

    a: Side
    b: Side
    direction: str
    means: MeanDifference
    mean_a: float
    mean_b: float
    sd_a: float | None
    sd_b: float | None
    levene: Significance
    levene_mean: Significance
    fligner: Significance
    f_test: Significance
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
    conditions: tuple[Condition, ...] = ()
    also: Mapping[str, Named] = field(default_factory=dict)
    metric: str = ""

    @property
    def difference(self) -> float:
        """Mean of A minus mean of B."""
        return self.means.difference

    @property
    def known_direction(self) -> str | None:
        """Which direction is better; None where nobody said it and the name does not tell."""
        unknown = any(condition.code == "direction-unknown" for condition in self.conditions)
        return None if unknown else self.direction

    @property
    def all_conditions(self) -> tuple[Condition, ...]:
        """What weakens the evidence, what was noticed in the data, and what the decision adds."""
        return (*self.conditions, *noted(self.notes), *self.decision.conditions)

    @property
    def verdict(self) -> Verdict:
        """The verdict, which is its word."""
        return self.decision.verdict

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
            "warnings": [one.to_json() for one in (*self.conditions, *self.decision.conditions)],
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
    metric: str = "",
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
        conditions=tuple(conditions),
        also=also or {},
        metric=metric,
    )


def _paired_tests(pairs: Pairs) -> PairedTests:
    tests = wilcoxon_signed_rank(pairs.differences), paired_t(pairs.first - pairs.second)
    return PairedTests(pairs.first.size, *tests)


def _notes(a: Side, b: Side, pairs: Pairs | None) -> list[str]:
    notes = [not_finite(side.dropped, side.name) for side in (a, b) if side.dropped]
    notes += [f"{side.name!r} has one run: nothing is known about its spread" for side in (a, b) if side.runs.size == 1]
    constant = [side for side in (a, b) if side.runs.size > 1 and is_constant(side.runs)]
    notes += [f"all {side.runs.size} runs of {side.name!r} have the same value" for side in constant]
    if pairs is not None and pairs.unmatched:
        shown = ", ".join(pairs.unmatched[:5]) + (", …" if len(pairs.unmatched) > 5 else "")
        notes.append(f"{len(pairs.unmatched)} runs have no partner and are not in the paired tests: {shown}")
    return notes


Label = str | Sequence[str]


@dataclass(frozen=True, slots=True)
class Extras:
    """Analyses by name (`by_name.NAMES`) that are made beside the verdict.

    rope: a difference that does not matter, for the Bayesian ones. correlation: of folds, 1 / folds.
    """

    names: tuple[str, ...] = ()
    rope: float = 0.0
    correlation: float = 0.0


NO_EXTRAS: Final = Extras()

FACTORS: Final = ("approach", "config", "environment", "level", "device")
"""Columns that say how a run was made; runs that differ in them are not repetitions of one another.

They begin with the GROUP_FACTORS of a study, which a table from elsewhere does not load for them; a test holds that.
"""
REAL_RUNS: Final = "isorun run -n 10 -- COMMAND makes independent runs of any training"


def compare(
    data: Any,
    second: Any = None,
    /,
    *,
    value: str | None = None,
    by: str | Sequence[str] | None = None,
    a: Label | None = None,
    b: Label | None = None,
    pair: str | None = None,
    paired: bool = False,
    direction: str = "higher",
    where: Mapping[str, str] | None = None,
    drop_missing: bool = False,
    margin: float | None = None,
    unit: str | Counting | None = None,
    test: str | None = None,
    conditions: Sequence[Condition] = (),
    real_runs: str = REAL_RUNS,
    extras: Extras = NO_EXTRAS,
    lost: Mapping[str, frozenset[str]] | None = None,
) -> Comparison:
    """Compare two approaches.

    compare(runs_a, runs_b, a="base", b="new"): two lists of results; paired=True when the i-th runs belong together.
    compare(table, value="accuracy", by="setting", a="base", b="new", pair="seed"): from anything `read_table` reads;
    without a and b the column must hold exactly two labels. margin: the difference that does not matter, for the
    verdict "equivalent". unit: the column that says what was drawn independently ("repeat": the runs of one seed);
    a column of seeds where there is one, else every row. conditions: what is known against the evidence beforehand.
    real_runs: the command that makes more of it. extras: what is asked for by name beside the verdict. lost: by the
    name of a side, the labels of units that left no result and are in no row.
    """
    higher_is_better(direction)
    if second is not None:
        _refuse_table_arguments(value=value, by=by, pair=pair, where=where, unit=unit)
        sides = _listed_side("A", data, a), _listed_side("B", second, b)
        pairs = _in_order(data, second) if paired else None
    else:
        chosen = _TablePart(value, by, (a, b), pair, where or {}, drop_missing, unit)
        sides, pairs, pooled = _from_table(data, chosen, lost or {})
        conditions = (*conditions, *pooled)
    found = (*conditions, *unit_conditions({side.name: side.units for side in sides}, next_step=real_runs))
    found = (*found, *_unlike_scales(value or "", sides))
    judged = (pairs.first, pairs.second) if pairs is not None else (sides[0].values, sides[1].values)
    judge = functools.partial(decide, direction=direction, method="fixed", test=test, paired=pairs is not None)
    decision = judge(*judged, margin=margin)
    found = (*found, *_taken_for_granted(decision, *judged))
    if any(side.lost for side in sides):
        found = (*found, *_of_survivors(decision, sides, pairs, judge))
    decision = named(decision, sides[0].name, sides[1].name, sides[0].units.noun, about=sides[0].units.about)
    return compared(
        *sides,
        pairs=pairs,
        direction=direction,
        decision=withheld(decision, found),
        conditions=found,
        metric=value or "",
        also=_by_name(extras, *sides, pairs, direction) if extras.names else {},
    )


def _unlike_scales(metric: str, sides: Sequence[Side]) -> tuple[Condition, ...]:
    """Loaded where the sides may be written unlike; most are not."""
    largest = [float(side.values.max()) for side in sides if side.values.size]
    if not largest or not min(largest) <= 1.0 < max(largest):
        return ()
    from isorun.analysis.evidence.scales import unlike_scales

    return unlike_scales(metric, {side.name: side.values for side in sides})


def _taken_for_granted(decision: Decision, a: FloatArray, b: FloatArray) -> tuple[Condition, ...]:
    """Loaded where there are t tests: ranks take nothing for granted."""
    if decision.margin is None and not decision.paired:
        return ()
    from isorun.analysis.sequential.nearly_normal import taken_for_granted

    return taken_for_granted(decision, a, b)


def _of_survivors(
    decision: Decision, sides: tuple[Side, Side], pairs: Pairs | None, again: Callable[..., Decision]
) -> tuple[Condition, ...]:
    """Loaded where runs are lost."""
    from isorun.analysis.evidence.survivors import Survivors
    from isorun.analysis.sequential.survivors import survivors_only

    first, second = (Survivors(side.name, side.units, side.lost) for side in sides)
    return survivors_only(decision, (first, second), pairs, again)


def _by_name(asked: Extras, a: Side, b: Side, pairs: Pairs | None, direction: str) -> Mapping[str, Named]:
    """What was asked for beside the verdict; loaded only then."""
    from isorun.analysis.pairwise.by_name import NamedQuestion, asked_by_name

    question = NamedQuestion(a.name, b.name, a.values, b.values, pairs, direction, asked.rope, asked.correlation)
    return asked_by_name(asked.names, question)


def _listed_side(name: str, runs: Any, label: Label | None) -> Side:
    return Side(_joined(label) or name, listed_units(finite_sample(runs, f"the runs of {name}")))


def _refuse_table_arguments(**given: object) -> None:
    wrong = [name for name, argument in given.items() if argument]
    if wrong:
        raise InputError(
            "two lists of results have no columns", found=", ".join(wrong), hint="give a table, or leave these out"
        )


def _in_order(first: Any, second: Any) -> Pairs:
    a, b = finite_sample(first, "the runs of A"), finite_sample(second, "the runs of B")
    return listed_pairs(a, b)


@dataclass(frozen=True, slots=True)
class _TablePart:
    """Which part of a table is compared."""

    value: str | None
    by: str | Sequence[str] | None
    labels: tuple[Label | None, Label | None]
    pair: str | None
    where: Mapping[str, str]
    drop_missing: bool
    unit: str | Counting | None


def _from_table(
    data: Any, chosen: _TablePart, lost: Mapping[str, frozenset[str]]
) -> tuple[tuple[Side, Side], Pairs | None, tuple[Condition, ...]]:
    """Both sides, their pairs where asked, and what is pooled within them."""
    value, by = chosen.value, chosen.by
    if value is None or by is None:
        raise InputError(
            "a comparison from a table needs to know its columns",
            found=f"value = {value!r}, by = {by!r}",
            allowed="value: the column with the results; by: the column that tells the approaches apart",
        )
    table = read_table(data).where(chosen.where)
    counting = chosen.unit if isinstance(chosen.unit, Counting) else counting_of(table, chosen.unit)
    refuse_value_as_unit(counting, value)
    columns = column_names(by, tuple(table.columns))
    first, second = _two_of(table.groups(value, columns, drop_missing=chosen.drop_missing), chosen.labels)
    known = [lost.get(group.name, frozenset()) for group in (first, second)]
    sides = _side(table, first, value, counting, known[0]), _side(table, second, value, counting, known[1])
    fixed = [name for name in FACTORS if name not in {*columns, counting.column}]
    rows = {side.name: side.values for side in (first, second)}
    pooled = (*counting_conditions(table, rows, counting), *pooled_conditions(table, rows, fixed))
    if chosen.pair is None:
        return sides, None, pooled
    return sides, paired_units(table, (first.values, second.values), chosen.pair, counting).pairs, pooled


def _side(table: Measurements, group: Group, value: str, counting: Counting, lost: frozenset[str]) -> Side:
    if not group.values.finite.size:
        raise InputError(
            f"{group.name!r} has no finite value in column {value!r}",
            found=f"{group.values.dropped} values, all missing, NaN or infinite",
        )
    lost |= units_without_value(table, group.values, counting)
    return Side(group.name, units_of(table, group.values, counting), group.values.dropped, lost)


def _two_of(groups: Sequence[Group], labels: tuple[Label | None, Label | None]) -> tuple[Group, Group]:
    named = {group.name: group for group in groups}
    wanted = [_joined(label) for label in labels]
    if wanted == [None, None] and len(named) == 2:
        first, second = named.values()
        return first, second
    for name in wanted:
        if name is None:
            raise InputError("say which two approaches to compare (a and b)", allowed=", ".join(named))
        if name not in named:
            raise InputError(f"no run belongs to {name!r}", allowed=known_names(name, named))
    if wanted[0] == wanted[1]:
        raise InputError("an approach cannot be compared with itself", found=repr(wanted[0]))
    return named[str(wanted[0])], named[str(wanted[1])]


def _joined(label: Label | None) -> str | None:
    return label if label is None or isinstance(label, str) else ",".join(label)
