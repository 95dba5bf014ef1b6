"""Mixed models."""

from __future__ import annotations

from collections.abc import Sequence

from isorun.analysis.evidence.condition import Condition
from isorun.analysis.mixed.hypotheses import Hypotheses
from isorun.analysis.mixed.result import MixedResult, VarianceShare
from isorun.report.numbers import UNKNOWN, fixed, p_value, percentage, significant
from isorun.report.tables import Column, Table
from isorun.report.view import View

__all__ = ["mixed_view"]

_MANY = 15
_RANDOM_NOTE = (
    "share: of the variance the fixed effects leave, with its profile interval. LRT: likelihood-ratio test of this "
    "variance being zero; p takes the boundary into account (50:50 mixture of 0 and chi-square(1))."
)


def mixed_view(result: MixedResult, shares: Sequence[VarianceShare] = (), hypotheses: Hypotheses | None = None) -> View:
    """Where the variance comes from, the fixed effects, and the differences between their levels."""
    tables = [_random(result, shares), _fixed(result), _anova(result), _differences(result)]
    return View(
        tuple(_verdict(result, shares, hypotheses)),
        tuple(table for table in tables if table.rows),
        tuple(Condition("model", note, "see the model's formula and the data") for note in result.notes),
    )


def _verdict(result: MixedResult, shares: Sequence[VarianceShare], hypotheses: Hypotheses | None) -> list[str]:
    if hypotheses is not None:
        parts = (hypotheses.repeats, hypotheses.seeds, hypotheses.reruns)
        return [hypotheses.verdict, *(part.sentence for part in parts)]
    sentences = []
    if shares:
        largest = max(shares, key=lambda item: item.share)
        sentences.append(f"{largest.group} holds the largest share of the variance: {largest.share:.0%}.")
    significant_terms = [row.term for row in result.ranova if row.p_boundary < 0.05]
    quiet = [row.term for row in result.ranova if row.p_boundary >= 0.05]
    if significant_terms:
        sentences.append(f"Variance that chance does not explain (p < .05): {', '.join(significant_terms)}.")
    if quiet:
        sentences.append(f"No such variance was seen for: {', '.join(quiet)}.")
    return sentences or ["The model was fitted; it has no random effect to test."]


def _random(result: MixedResult, shares: Sequence[VarianceShare]) -> Table:
    by_group = {item.group: item for item in shares}
    rows = [
        (
            effect.group,
            significant(effect.sd, 4),
            *_share(by_group.get(effect.group)),
            significant(test.lrt),
            p_value(test.p_boundary),
        )
        for effect, test in zip(result.random, result.ranova, strict=True)
    ]
    residual = next((item for item in shares if item.group not in {e.group for e in result.random}), None)
    rows.append(("residual", significant(result.residual_sd, 4), *_share(residual), UNKNOWN, UNKNOWN))
    titles = (Column("sd"), Column("share", "%"), Column("95 % interval"), Column("LRT"), Column("p"))
    return Table(
        name="random",
        title="where the variance comes from",
        columns=(Column("source", key=True), *titles),
        rows=tuple(rows),
        notes=(_RANDOM_NOTE,),
    )


def _share(item: VarianceShare | None) -> tuple[str, str]:
    if item is None:
        return UNKNOWN, UNKNOWN
    return percentage(item.share), f"{percentage(item.lower)}–{percentage(item.upper)}"


def _fixed(result: MixedResult) -> Table:
    titles = ("estimate", "se", "t", "df (Satt.)", "p (Satt.)", "df (K-R)", "p (K-R)")
    return Table(
        name="fixed",
        title="fixed effects",
        columns=(Column("term", key=True), *(Column(title) for title in titles)),
        rows=tuple(
            (
                row.name,
                significant(row.estimate, 4),
                significant(row.se),
                fixed(row.t, 2),
                fixed(row.df_satterthwaite, 1),
                p_value(row.p_satterthwaite),
                fixed(row.df_kenward_roger, 1),
                p_value(row.p_kenward_roger),
            )
            for row in result.fixed
        ),
        notes=("Satt.: Satterthwaite; K-R: Kenward-Roger, whose p uses an adjusted standard error.",),
        folded=len(result.fixed) > _MANY,
    )


def _anova(result: MixedResult) -> Table:
    titles = ("sum sq", "mean sq", "num df", "den df", "F", "p")
    return Table(
        name="anova",
        title="type III F tests",
        columns=(Column("term", key=True), *(Column(title) for title in titles)),
        rows=tuple(
            (
                row.term,
                significant(row.sum_sq),
                significant(row.mean_sq),
                str(row.num_df),
                fixed(row.den_df, 1),
                fixed(row.f, 2),
                p_value(row.p),
            )
            for row in result.anova
        ),
    )


def _differences(result: MixedResult) -> Table:
    titles = ("a - b", "se", f"{result.level:.0%} interval", "p", "p adjusted")
    return Table(
        name="differences",
        title="differences between means",
        columns=(Column("a", key=True), Column("b", key=True), *(Column(title) for title in titles)),
        rows=tuple(
            (
                row.a,
                row.b,
                significant(row.estimate),
                significant(row.se),
                f"{significant(row.lower)} to {significant(row.upper)}",
                p_value(row.p),
                p_value(row.p_adjusted),
            )
            for row in result.differences
        ),
        notes=(f"p adjusted: by {result.adjust} within each factor.",),
    )
