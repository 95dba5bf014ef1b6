"""Sequential decisions and power."""

from __future__ import annotations

from isorun.analysis.evidence.condition import Condition
from isorun.analysis.planning.power_question import PowerResult
from isorun.analysis.sequential.decision import Decision, PathPoint
from isorun.report.numbers import UNKNOWN, fixed, p_value, significant
from isorun.report.tables import Column, Table
from isorun.report.view import View

__all__ = ["decision_view", "power_view", "spoken"]


def decision_view(decision: Decision, a: str, b: str, to_keep: str = "") -> View:
    """The verdict, its error rate, and the path that led there."""
    more = f" About {decision.about_more_runs} more runs a side are needed." if decision.about_more_runs else ""
    sentences = (f"{spoken(decision, a, b)}{more}", decision.error_statement)
    warnings = (*decision.warnings, *_beyond_the_study(to_keep))
    return View(sentences, (_path(decision, a, b),) if decision.path else (), warnings)


def spoken(decision: Decision, a: str, b: str) -> str:
    """Why, with the names of the sides in the verdict that it begins with."""
    verdict = str(decision.verdict)
    names = {"A better": f"{a} is better", "B better": f"{b} is better"}
    said = names.get(verdict, verdict.capitalize())
    reason = decision.why.removeprefix(verdict)
    return said + reason if reason != decision.why else f"{said}: {reason}"


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
    return View((result.sentence,), (table,))
