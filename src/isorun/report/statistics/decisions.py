"""Sequential decisions and power."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from isorun.analysis.evidence.condition import Condition, voided
from isorun.analysis.evidence.units import Units
from isorun.analysis.sequential.decision import Decision, PathPoint
from isorun.report.numbers import UNKNOWN, fixed, p_value, significant
from isorun.report.statistics.evidence import evidence_sentences
from isorun.report.tables import Column, Table
from isorun.report.view import View

if TYPE_CHECKING:
    from isorun.analysis.planning.power import PowerResult  # its tests load what a decision does not need

__all__ = ["decision_view", "power_view", "spoken"]


def decision_view(
    decision: Decision,
    a: str,
    b: str,
    *,
    units: Mapping[str, Units] | None = None,
    warnings: Sequence[Condition] = (),
    to_keep: str = "",
) -> View:
    """The verdict, what it rests on, its error rate, and the path that led there."""
    evidence = evidence_sentences(units) if units else []
    # A claim that is not made has no error rate.
    error = [] if voided(warnings) else [decision.error_statement]
    shown = (*warnings, *decision.conditions, *_beyond_the_study(to_keep))
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
        f"{point.level:.4f}",
    )


def _beyond_the_study(to_keep: str) -> list[Condition]:
    if not to_keep:
        return []
    message = "runs were made beyond what the study declares; reports leave them out until the study declares them"
    return [Condition("beyond-the-study", message, f"write {to_keep} into the study")]


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
    evidence = evidence_sentences(result.units) if result.units else []
    return View((result.sentence, *evidence), (table,), result.conditions)
