"""The comparison of two approaches."""

from __future__ import annotations

from isorun.analysis.comparison import Comparison
from isorun.analysis.evidence.condition import Condition
from isorun.analysis.samples import Interval, Significance
from isorun.report.numbers import UNKNOWN, decimals_for, fixed, p_value, significant
from isorun.report.statistics.decisions import spoken
from isorun.report.statistics.evidence import evidence_sentences
from isorun.report.tables import Column, Table
from isorun.report.view import Listing, View

__all__ = ["comparison_view"]


def comparison_view(result: Comparison, value: str = "") -> View:
    """The verdict with its reason, both sides, and every test with what it asks."""
    tables = (_sides(result, value), _effects(result), _tests(result))
    also = Listing("also asked for, by name", tuple(found.sentence for found in result.also.values()))
    return View(tuple(_verdict(result)), tables, tuple(_warnings(result)), listings=(also,))


def _verdict(result: Comparison) -> list[str]:
    sentences = [
        spoken(result.decision),
        *evidence_sentences({side.name: side.units for side in (result.a, result.b)}),
    ]
    if result.paired is not None and result.decision.pairing is not None:
        change = result.paired.t
        sentences.append(
            f"{result.a.name} minus {result.b.name}, pair by pair: {significant(change.difference)} on average, 95 % "
            f"interval {_interval(change.ci95)}; {result.decision.pairing.sentence}."
        )
    if result.single_run_reversal is not None:
        share = result.single_run_reversal
        sentences.append(f"A comparison of single runs would have said the opposite in {share:.1%} of pairs.")
    return sentences


def _sides(result: Comparison, value: str) -> Table:
    decimals = decimals_for(max(result.sd_a or 0.0, result.sd_b or 0.0) or abs(result.mean_a) / 1000)
    sides = ((result.a, result.mean_a, result.sd_a), (result.b, result.mean_b, result.sd_b))
    return Table(
        name="sides",
        title=f"{value or 'results'} of both sides ({_direction(result)})",
        columns=(Column("side", key=True), *(Column(title) for title in ("runs", "units", "mean", "sd", "min", "max"))),
        rows=tuple(
            (
                side.name,
                str(side.runs.size),
                str(side.units.count),
                fixed(mean, decimals),
                fixed(sd, decimals),
                fixed(float(side.runs.min()), decimals),
                fixed(float(side.runs.max()), decimals),
            )
            for side, mean, sd in sides
        ),
        notes=("Mean and sd (n - 1): over units, what was drawn independently. Min and max: over runs.",),
    )


def _direction(result: Comparison) -> str:
    return f"{result.known_direction} is better" if result.known_direction else "which direction is better is not known"


def _effects(result: Comparison) -> Table:
    improvement = result.improvement
    rows = (
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
        pairs = f"{result.paired.pairs} pairs"
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


def _warnings(result: Comparison) -> list[Condition]:
    warnings = list(result.conditions)
    warnings += [Condition("note", note, "see the data") for note in result.notes]
    warnings += result.decision.conditions
    return warnings
