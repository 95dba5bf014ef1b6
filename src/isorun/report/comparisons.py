"""Two approaches: what the runs were counted as, the comparison, the sequential decision, and power."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from isorun.analysis.comparison import Comparison, PairedTests
from isorun.analysis.evidence import SEED_FROM_PARAMETER, UNITS_UNKNOWN, Condition, of_draws, voided
from isorun.analysis.evidence.units import Units, counted
from isorun.analysis.samples import Interval, Significance
from isorun.analysis.sequential import Decision, PathPoint
from isorun.report import UNKNOWN, Column, Listing, Table, View, count, decimals_for, fixed, p_value, significant

if TYPE_CHECKING:
    from isorun.analysis.planning.power import PowerResult  # its tests load what a decision does not need

__all__ = [
    "ROWS_COUNT",
    "comparison_view",
    "decision_view",
    "draw_sentences",
    "evidence_sentences",
    "power_view",
    "spoken",
]

ROWS_COUNT: Final = "Every row counts as an independent run; --unit COLUMN names what was drawn, if that is not so."


_OF_DRAWS: Final = {
    UNITS_UNKNOWN: "Units are unknown: the runs come from a tracker that tells no seed, and each counts as one draw.",
    SEED_FROM_PARAMETER: "Seeds are what a parameter of the imported runs says; whether they were used is not known.",
}


def draw_sentences(conditions: Iterable[Condition]) -> list[str]:
    """What is not known of how imported runs were drawn: a verdict says it itself."""
    return list(dict.fromkeys(_OF_DRAWS[one.code] for one in of_draws(conditions)))


def evidence_sentences(sides: Mapping[str, Units], conditions: Iterable[Condition] = ()) -> list[str]:
    """How runs became units, what is not known of that, and what it leaves the answer to be about."""
    said = {name: counted(units) for name, units in sides.items()}
    first = next(iter(sides.values()))
    sentences = [_counts(sides, said)]
    if first.noun == "row":
        sentences.append(ROWS_COUNT)
    sentences += draw_sentences(conditions)
    if first.noun == "repeat":
        sentences.append(f"This is {first.about}: other seeds may say otherwise.")
    return sentences


def _counts(sides: Mapping[str, Units], said: Mapping[str, str]) -> str:
    if len(set(said.values())) == 1 and len(sides) > 1:
        text = next(iter(said.values()))
        if " count as " in text:
            return f"Evidence: {text}, on each side."
        return f"Evidence: {text} a side."
    if all(units.count == units.runs.size for units in sides.values()) and len(sides) > 4:
        total = sum(units.count for units in sides.values())
        return f"Evidence: {count(total, 'run')} of {len(sides)} sides."
    return f"Evidence: {'; '.join(f'{name}: {text}' if name else text for name, text in said.items())}."


def decision_view(
    decision: Decision,
    a: str,
    b: str,
    *,
    units: Mapping[str, Units] | None = None,
    warnings: Sequence[Condition] = (),
) -> View:
    """The verdict, what it rests on, its error rate, and the path that led there."""
    evidence = evidence_sentences(units, warnings) if units else []
    # A claim that is not made has no error rate.
    error = [] if voided(warnings) else [decision.error_statement]
    shown = (*warnings, *decision.conditions)
    looked = any(not point.planned for point in decision.path)
    tables = (_path(decision, a, b),) if looked and not voided(warnings) else ()
    pairing = [decision.pairing.sentence] if decision.pairing is not None else []
    return View((spoken(decision), *evidence, *_interval_sentence(decision), *pairing, *error), tables, shown)


def _interval_sentence(decision: Decision) -> list[str]:
    if decision.ci95 is None:
        return []
    low, high = (significant(end) for end in decision.ci95)
    what = decision.estimate_of[:1].upper() + decision.estimate_of[1:]
    return [f"{what}: {significant(decision.estimate)}, 95 % interval {low} to {high}."]


def spoken(decision: Decision) -> str:
    """Why, as a sentence; names of sides stay as they are written."""
    unnamed = str(decision.verdict) if decision.why.startswith(str(decision.verdict)) else ""
    return decision.why[:1].upper() + decision.why[1:] if unnamed else decision.why


def _path(decision: Decision, a: str, b: str) -> Table:
    seen = [point for point in decision.path if not point.planned]
    ahead = [] if decision.stop else [point for point in decision.path if point.planned][:1]
    return Table(
        name="path",
        title=f"every look, A = {a}, B = {b} ({decision.method})",
        columns=(
            *(Column(title, key=True) for title in ("runs of A", "runs of B")),
            *(Column(title) for title in ("statistic", "A better at", "B better at", "p", "claim at p")),
        ),
        rows=tuple(_look(point) for point in (*seen, *ahead)),
        notes=("A positive statistic speaks for A. The last row is the next planned look.",) if ahead else (),
    )


def _look(point: PathPoint) -> tuple[str, ...]:
    return (
        str(point.n_a),
        str(point.n_b),
        UNKNOWN if point.statistic is None else fixed(point.statistic, 1),
        significant(point.upper),
        significant(point.lower),
        p_value(point.p_value),
        significant(point.level, 2),
    )


def power_view(result: PowerResult) -> View:
    """The answer in one sentence and its numbers."""
    rows = (
        ("runs a side", str(result.runs)),
        ("runs a side on average", fixed(result.mean_runs, 1)),
        ("difference", significant(result.difference, 4)),
        ("effect size (sd)", significant(result.effect_size)),
        ("power", f"{result.power:.3f}"),
        ("standard error of power", f"{result.standard_error:.4f}"),
        ("error rate", f"{result.alpha:g}"),
    )
    table = Table("power", f"power of the {result.test} test", (Column("quantity", key=True), Column("value")), rows)
    evidence = evidence_sentences(result.units, result.conditions) if result.units else []
    return View((result.sentence, *evidence), (table,), result.conditions)


def comparison_view(result: Comparison) -> View:
    """The verdict with its reason, both sides, and every test with what it asks."""
    tables = (_sides(result), _effects(result), _tests(result))
    also = Listing("also asked for, by name", tuple(found.sentence for found in result.also.values()))
    return View(tuple(_verdict(result)), tables, result.all_conditions, listings=(also,))


def _verdict(result: Comparison) -> list[str]:
    sentences = [
        spoken(result.decision),
        *evidence_sentences({side.name: side.units for side in (result.a, result.b)}, result.all_conditions),
    ]
    if result.paired is not None and result.decision.pairing is not None:
        change = result.paired.t
        sentences.append(
            f"{result.a.name} minus {result.b.name}, pair by pair: {significant(change.difference)} on average, 95 % "
            f"interval {_interval(change.ci95)}; {result.decision.pairing.sentence}."
        )
    if result.single_run_reversal is not None:
        share = result.single_run_reversal
        sentences.append(f"A comparison of single runs would have said the opposite in {100 * share:.3g} % of pairs.")
    return sentences


def _sides(result: Comparison) -> Table:
    beside = max(result.sd_a or 0.0, result.sd_b or 0.0) or abs(result.mean_a) / 1000
    decimals = decimals_for(beside)
    sides = ((result.a, result.mean_a, result.sd_a), (result.b, result.mean_b, result.sd_b))
    return Table(
        name="sides",
        title=f"{result.metric or 'results'} of both sides ({_direction(result)})",
        columns=(Column("side", key=True), *(Column(title) for title in ("runs", "units", "mean", "sd", "min", "max"))),
        rows=tuple(
            (
                side.name,
                str(side.runs.size),
                str(side.units.count),
                fixed(mean, decimals, beside),
                fixed(sd, decimals, beside),
                fixed(float(side.runs.min()), decimals, beside),
                fixed(float(side.runs.max()), decimals, beside),
            )
            for side, mean, sd in sides
        ),
        notes=("Mean and sd (n - 1): over units, what was drawn independently. Min and max: over runs.",),
    )


def _direction(result: Comparison) -> str:
    return f"{result.known_direction} is better" if result.known_direction else "which direction is better is not known"


def _effects(result: Comparison) -> Table:
    improvement = result.improvement
    pairs = () if result.paired is None else (_of_pairs(result.paired),)
    rows = (
        *pairs,
        ("difference of means (A - B)", significant(result.difference), _interval(result.means.ci95)),
        ("Hodges-Lehmann shift", significant(result.shift.estimate), _interval(result.shift.ci95)),
        ("Cohen's d", significant(result.effect.cohens_d), _interval(result.effect.cohens_d_ci95)),
        ("Hedges' g", significant(result.effect.hedges_g), _interval(result.effect.hedges_g_ci95)),
        ("probability that a run of A beats one of B", significant(improvement.estimate), _interval(improvement.ci95)),
    )
    return Table(
        name="effects",
        title=f"how large: A = {result.a.name}, B = {result.b.name}",
        columns=(Column("effect", key=True), Column("estimate"), Column("95 % interval")),
        rows=rows,
        notes=("all but the first row leave aside which runs are pairs",) if pairs else (),
    )


def _of_pairs(tests: PairedTests) -> tuple[str, str, str]:
    return (
        f"mean of {count(tests.pairs, 'difference')} of pairs",
        significant(tests.t.difference),
        _interval(tests.t.ci95),
    )


def _tests(result: Comparison) -> Table:
    rows = [
        ("Brunner-Munzel", "wins as often?", significant(result.brunner_munzel.z), p_value(result.brunner_munzel.p)),
        ("Mann-Whitney U", "same distribution?", significant(result.mann_whitney.u), p_value(result.mann_whitney.p)),
        ("Mann-Whitney U, one-sided", "A not better?", "", p_value(result.one_sided_p)),
        ("Welch t", "same mean?", "", p_value(result.means.p)),
        *_spread_test("Levene (median)", result.levene),
        *_spread_test("Fligner", result.fligner),
        *_spread_test("F", result.f_test),
    ]
    if result.paired is not None:
        pairs = count(result.paired.pairs, "pair")
        rows += [
            ("Wilcoxon signed rank", f"no change? ({pairs})", "", p_value(result.paired.wilcoxon.p)),
            ("paired t", f"no change? ({pairs})", "", p_value(result.paired.t.p)),
        ]
    return Table(
        name="tests",
        title="tests",
        columns=(Column("test", key=True), Column("asks", key=True), Column("statistic"), Column("p")),
        rows=tuple(rows),
    )


def _spread_test(name: str, outcome: Significance) -> list[tuple[str, str, str, str]]:
    return [(name, "same spread?", significant(outcome.statistic), p_value(outcome.p))]


def _interval(interval: Interval | None) -> str:
    return UNKNOWN if interval is None else " to ".join(significant(end) for end in interval)
