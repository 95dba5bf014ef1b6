"""Mixed models."""

from __future__ import annotations

from collections.abc import Sequence

from isorun.analysis.evidence import voided
from isorun.analysis.mixed.checks import drawn_in
from isorun.analysis.mixed.design import INTERCEPT
from isorun.analysis.mixed.hypotheses import Hypotheses
from isorun.analysis.mixed.result import MixedResult, VarianceShare
from isorun.report import UNKNOWN, Column, Table, View, fixed, p_value, percentage, significant

__all__ = ["mixed_view"]

_MANY = 15
_TOGETHER = "Intervals match it, and hold together at their level."
_EACH = "Intervals match it: each has the level of its own test; together they hold at a lower one."
_INTERVALS = {
    "tukey": _TOGETHER,
    "dunnett": _TOGETHER,
    "bonferroni": _TOGETHER,
    "holm": _EACH,
    "bh": _EACH,
    "benjamini-hochberg": _EACH,
    "none": "Each interval holds at its level, alone.",
}
_SHARE_NOTE = "share: of the variance the fixed effects leave, with its profile interval."
_TEST_NOTE = (
    "LRT: likelihood-ratio test of leaving the effect out; p takes the boundary into account: a variance cannot be "
    "negative."
)


def mixed_view(result: MixedResult, shares: Sequence[VarianceShare] = (), hypotheses: Hypotheses | None = None) -> View:
    """Where the variance comes from, the fixed effects, the means and the differences between them."""
    slopes = any(row.effect != INTERCEPT for row in result.random)
    random = [_slopes(result), _shares(shares), _random_tests(result)] if slopes else [_random(result, shares)]
    tables = [*random, _interactions(result), _fixed(result), _anova(result), _means(result), _differences(result)]
    return View(
        tuple(_verdict(result, shares, hypotheses)),
        tuple(table for table in tables if table.rows),
        result.conditions,
    )


def _verdict(result: MixedResult, shares: Sequence[VarianceShare], hypotheses: Hypotheses | None) -> list[str]:
    sentences = list(hypotheses.sentences) if hypotheses else _variance_sentences(result, shares)
    if (reason := voided(result.conditions)) is not None:
        touched = " and ".join(reason.groups)
        claim = f"No claim about {touched} can be made from the model as given: {reason.message}."
        sentences.insert(len(sentences) if hypotheses else 0, claim)
    else:
        counted = drawn_in(result)
        sentences += [sentence for row in result.anova if (sentence := counted.sentence(row))]
    return sentences


def _variance_sentences(result: MixedResult, shares: Sequence[VarianceShare]) -> list[str]:
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
    """All about random intercepts in one table."""
    of_shares = [_share(item) for item in shares] or [(UNKNOWN, UNKNOWN)] * (len(result.random) + 1)
    rows = [
        (effect.group, significant(effect.sd, 4), *share, significant(test.lrt), p_value(test.p_boundary))
        for effect, share, test in zip(result.random, of_shares, result.ranova, strict=False)
    ]
    rows.append(("residual", significant(result.residual_sd, 4), *of_shares[-1], UNKNOWN, UNKNOWN))
    titles = (Column("sd"), Column("share", "%"), Column("95 % interval"), Column("LRT"), Column("p"))
    return Table(
        name="random",
        title="where the variance comes from",
        columns=(Column("source", key=True), *titles),
        rows=tuple(rows),
        notes=(f"{_SHARE_NOTE} {_TEST_NOTE}",),
    )


def _slopes(result: MixedResult) -> Table:
    rows = [(row.group, row.effect, significant(row.sd, 4)) for row in result.random]
    return Table(
        name="random",
        title="how much the random effects vary",
        columns=(Column("source", key=True), Column("effect", key=True), Column("sd")),
        rows=(*rows, ("residual", UNKNOWN, significant(result.residual_sd, 4))),
        notes=tuple(
            f"{row.group}: correlation of {row.a} and {row.b} {fixed(row.correlation, 3)}."
            for row in result.correlations
        ),
    )


def _shares(shares: Sequence[VarianceShare]) -> Table:
    return Table(
        name="shares",
        title="where the variance comes from",
        columns=(Column("source", key=True), Column("share", "%"), Column("95 % interval")),
        rows=tuple((row.group.replace("Residual", "residual"), *_share(row)) for row in shares),
        notes=(f"{_SHARE_NOTE} The variance of slopes is its mean over the rows.",),
    )


def _random_tests(result: MixedResult) -> Table:
    return Table(
        name="random-tests",
        title="tests of the random effects",
        columns=(Column("effect", key=True), Column("LRT"), Column("df"), Column("p")),
        rows=tuple((row.term, significant(row.lrt), str(row.df), p_value(row.p_boundary)) for row in result.ranova),
        notes=(_TEST_NOTE,),
    )


def _interactions(result: MixedResult) -> Table:
    return Table(
        name="interactions",
        title="random effects the model could have and has not",
        columns=(Column("effect", key=True), Column("LRT"), Column("p")),
        rows=tuple(
            (row.term, UNKNOWN if row.lrt is None else significant(row.lrt), p_value(row.p))
            for row in result.interactions
        ),
        notes=("Each is added alone; LRT and p as for the random effects.",),
    )


def _share(item: VarianceShare) -> tuple[str, str]:
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


def _means(result: MixedResult) -> Table:
    several = len({row.factor for row in result.means}) > 1
    return Table(
        name="means",
        title="estimated means",
        columns=(
            *([Column("factor", key=True)] if several else []),
            Column("level", key=True),
            *(Column(title) for title in ("mean", "se", "df", f"{result.level:.0%} interval")),
        ),
        rows=tuple(
            (
                *([row.factor] if several else []),
                row.label,
                significant(row.estimate, 4),
                significant(row.se),
                fixed(row.df, 1),
                f"{significant(row.lower, 4)} to {significant(row.upper, 4)}",
            )
            for row in result.means
        ),
        notes=("Levels of other factors weigh the same, numbers are held at their mean.",),
        folded=len(result.means) > _MANY,
    )


def _differences(result: MixedResult) -> Table:
    titles = ("a - b", "se", "df", f"{result.level:.0%} interval", "p", "p adjusted")
    against = f", against {result.control}" if result.control else ""
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
                fixed(row.df, 1),
                f"{significant(row.lower)} to {significant(row.upper)}",
                p_value(row.p),
                p_value(row.p_adjusted),
            )
            for row in result.differences
        ),
        notes=(f"p adjusted: by {result.adjust} within each factor{against}. {_INTERVALS[result.adjust]}",),
        folded=len(result.differences) > _MANY,
    )
