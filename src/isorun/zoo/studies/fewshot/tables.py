"""Tables 1, 2 and 4 in the paper's layout: each of our rows above the paper's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from isorun.report import UNKNOWN, Column, Table, fixed, significant, whole
from isorun.zoo.paper import OURS, THEIRS
from isorun.zoo.studies.fewshot.findings import TESTS, Judgement, published_judgements
from isorun.zoo.studies.fewshot.measured import ControlResult
from isorun.zoo.studies.fewshot.models import FittingModel, NestedModel, PaperModel
from isorun.zoo.studies.fewshot.published import TABLE_1, TABLE_2, TABLE_4, TABLE_5, RandomEffectTest

__all__ = [
    "control_table",
    "fitting_table",
    "fixed_table",
    "hypotheses_table",
    "random_table",
    "random_tests",
    "rerun_table",
    "shares_table",
]

_RERUN_NOTE: Final = (
    "Estimate: mean accuracy (a fraction) of round 1 minus round 2; which way round the paper has it is not said. 95 % "
    "intervals and p with Satterthwaite's degrees of freedom, not corrected for the number of comparisons."
)
_RULES_NOTE: Final = (
    "the model that fits: with configs, and seeds that may act in each experiment in their own way; its p are "
    "corrected, and where identical runs never differ no p is needed. corrected: the p of the comparisons of H3 by "
    "Holm's method, the p of variances halved because they cannot be negative. The paper's rows are computed from the "
    "p it printed; its runs are not published."
)


_CONTROL_NOTE: Final = (
    "ours: ± is the standard deviation over runs (n - 1); the paper does not say what its ± is. different weights: 1 "
    "means that all runs ended with the same weights, bit for bit. Proto nets*: prototypical networks in TADAM's code, "
    "ours with its ResNet-12."
)


def random_tests(model: PaperModel) -> tuple[RandomEffectTest, ...]:
    """Our Table 1: the whole model, then without each random effect; empty where there is no model."""
    result = model.result
    if result is None:
        return ()
    parameters = len(result.fixed) + len(result.random) + 1
    rows = [RandomEffectTest(TABLE_1[0].effect, parameters, result.loglik_reml, result.aic, None, None, None)]
    for test in result.ranova:
        loglik = result.loglik_reml - test.lrt / 2.0
        aic = 2.0 * (parameters - 1) - 2.0 * loglik
        rows.append(RandomEffectTest(test.term, parameters - 1, loglik, aic, test.lrt, test.df, test.p))
    return tuple(rows)


def random_table(model: PaperModel) -> Table:
    """Table 1."""
    ours = {row.effect: row for row in random_tests(model)}
    rows = []
    for published in TABLE_1:
        rows.append((published.effect, OURS, *_random_cells(ours.get(published.effect))))
        rows.append((published.effect, THEIRS, *_random_cells(published)))
    titles = ("npar", "logLik", "AIC", "LRT", "Df", "Pr(>Chisq)")
    return Table(
        name="table-1",
        title="Table 1: random effects, each left out in turn",
        columns=(Column("effect", key=True), Column("whose", key=True), *map(Column, titles)),
        rows=tuple(rows),
        notes=(f"ours: {model.formula}, fitted by REML to {_rows(model)}.", *_absent(model)),
    )


def rerun_table(model: PaperModel, experiments: Sequence[str]) -> Table:
    """Table 2, with the experiments that were not carried out left to the paper's rows."""
    rows = []
    for name, published in TABLE_2.items():
        ours = model.rerun(name) if name in experiments else None
        cells = (ours.estimate, ours.se, ours.lower, ours.upper, ours.p) if ours else (None,) * 5
        rows.append((name, OURS, *(_precise(cell) for cell in cells)))
        theirs = (published.estimate, published.se, published.lower, published.upper, published.p)
        rows.append((name, f"{THEIRS} ({published.label})", *map(_precise, theirs)))
    titles = ("Estimate", "Std. Error", "lower", "upper", "Pr(>|t|)")
    return Table(
        name="table-2",
        title="Table 2: the two rounds of each experiment",
        columns=(Column("experiment", key=True), Column("whose", key=True), *map(Column, titles)),
        rows=tuple(rows),
        notes=(_RERUN_NOTE,),
    )


def fixed_table(model: PaperModel) -> Table:
    """Table 4."""
    test = model.f_test
    ours = (test.sum_sq, test.mean_sq, test.num_df, test.den_df, test.f, test.p) if test else (None,) * 6
    theirs = (TABLE_4.sum_sq, TABLE_4.mean_sq, TABLE_4.num_df, TABLE_4.den_df, TABLE_4.f, TABLE_4.p)
    titles = ("Sum Sq", "Mean Sq", "NumDF", "DenDF", "F value", "Pr(>F)")
    return Table(
        name="table-4",
        title="Table 4: do the experiments differ?",
        columns=(Column("effect", key=True), Column("whose", key=True), *map(Column, titles)),
        rows=(("experiments", OURS, *map(_precise, ours)), ("experiments", THEIRS, *map(_precise, theirs))),
        notes=("ours: type III F test with Kenward and Roger's degrees of freedom.",),
    )


def hypotheses_table(judged: Sequence[Judgement]) -> Table:
    """The three hypotheses: by the model that fits, by the paper's rule and with corrected p, ours and the paper's."""
    rows = []
    for ours, theirs in zip(judged, published_judgements(), strict=True):
        rows.append((ours.name, TESTS[ours.name], OURS, *_decisions(ours)))
        rows.append((ours.name, TESTS[ours.name], THEIRS, UNKNOWN, UNKNOWN, *_decisions(theirs)[2:]))
    keys = (Column("hypothesis", key=True), Column("test", key=True), Column("whose", key=True))
    rules = ("the model that fits", "the paper's rule", "corrected")
    columns = (Column(title, group=rule) for rule in rules for title in ("p", "decision"))
    return Table(
        name="hypotheses",
        title="The paper's hypotheses",
        columns=(*keys, *columns),
        rows=tuple(rows),
        notes=(_RULES_NOTE,),
    )


def fitting_table(model: FittingModel) -> Table:
    """The random effects of the model that fits, each left out in turn; not in the paper."""
    tests = model.result.ranova if model.result else ()
    note = (
        f"ours: {model.formula}, by REML from {model.rows:,} different results; setting: a config of an experiment, in "
        "both rounds; experiment: in one round. p takes the boundary into account."
    )
    return Table(
        name="fitting",
        title="Random effects of the model that fits (not in the paper)",
        columns=(Column("effect", key=True), Column("LRT"), Column("p")),
        rows=tuple((row.term, _precise(row.lrt), _precise(row.p_boundary)) for row in tests),
        notes=(note,),
    )


def shares_table(model: NestedModel) -> Table:
    """Where the variance comes from when seeds are nested in configs and repeats in seeds; not in the paper."""
    rows = tuple((row.group, *map(_percent, (row.share, row.lower, row.upper))) for row in model.shares)
    note = f"ours: {model.formula}; setting: a config of an experiment. Shares of what the experiments' means leave."
    return Table(
        name="variance-shares",
        title="Where the variance comes from (not in the paper)",
        columns=(Column("source", key=True), Column("share", "%"), Column("lower", "%"), Column("upper", "%")),
        rows=rows,
        notes=(note,),
    )


def control_table(results: Sequence[ControlResult]) -> Table:
    """Table 5, the paper's row below ours."""
    theirs = [f"{fixed(row.mean, 2)} (± {row.plus_minus:.2f})" for row in TABLE_5.values()]
    rows = (
        ("Accuracy", OURS, *(row.text for row in results)),
        ("Accuracy", THEIRS, *theirs),
        ("runs", OURS, *(str(row.n) for row in results)),
        ("different weights", OURS, *(UNKNOWN if row.weights is None else str(row.weights) for row in results)),
    )
    return Table(
        name="table-5",
        title="Table 5: one seed, identical runs, accuracy in percent",
        columns=(Column("-", key=True), Column("whose", key=True), *(Column(row.label) for row in TABLE_5.values())),
        rows=rows,
        notes=(_CONTROL_NOTE,),
    )


def _random_cells(row: RandomEffectTest | None) -> tuple[str, ...]:
    if row is None:
        return (UNKNOWN,) * 6
    numbers = (fixed(row.loglik, 3), fixed(row.aic, 3), _precise(row.lrt))
    return (str(row.parameters), *numbers, whole(row.df), _precise(row.p))


def _decisions(row: Judgement) -> tuple[str, ...]:
    words: Mapping[bool | None, str] = {None: "not tested", True: "rejected", False: "not rejected"}
    decided = (
        (row.p_fitting, row.rejected_fitting),
        (row.p, row.rejected),
        (row.p_corrected, row.rejected_corrected),
    )
    return tuple(cell for p, rejected in decided for cell in (_precise(p), words[rejected]))


def _absent(model: PaperModel) -> tuple[str, ...]:
    return (*model.left_out, *((f"no model: {model.why_not}.",) if model.why_not else ()))


def _rows(model: PaperModel) -> str:
    return f"{model.result.rows:,} runs" if model.result else "no runs"


def _percent(share: float) -> str:
    return fixed(100.0 * share, 1) if share else "0"


def _precise(value: float | None) -> str:
    if value is None:
        return UNKNOWN
    return str(value) if isinstance(value, int) else significant(value, 4)
