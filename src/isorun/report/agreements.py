"""Agreement of devices, environments or metrics over the same runs."""

from __future__ import annotations

from collections.abc import Iterator

from isorun.analysis.agreements.agreement import RankCorrelation
from isorun.analysis.agreements.shared_runs import AgreementTable, RankChange, SharedRuns, SupportedDigits
from isorun.report import UNKNOWN, Column, Table, View, count, fixed, p_value, percentage, significant, whole
from isorun.report.comparisons import evidence_sentences

__all__ = ["agreement_view"]


def agreement_view(result: AgreementTable) -> View:
    """The weakest agreement, every pair of sides, and the digits that each side supports."""
    return View(tuple(_verdict(result)), (_orders(result), _digits(result)), result.all_conditions)


def _verdict(result: AgreementTable) -> Iterator[str]:
    known = [shared for shared in result.pairs if shared.agreement.kendall.estimate is not None]
    if known:
        weakest = min(known, key=lambda shared: shared.agreement.kendall.estimate or 0.0)
        found = weakest.agreement
        lead = "" if len(result.pairs) == 1 else "The weakest agreement: "
        yield (
            f"{lead}{found.a} and {found.b} order {count(found.n, 'run')} with Kendall's tau "
            f"{fixed(found.kendall.estimate, 2)} (1: the same order, 0: none in common)."
        )
    else:
        yield "No two sides can be compared in order: the runs of a side are all the same."
    yield from evidence_sentences(result.sides, result.conditions)
    if result.decimals is not None:
        changed = [_change(change) for change in result.rank_changes]
        said = f": {'; '.join(changed)}" if changed else " changes no order of the sides"
        yield f"Rounding the means to {count(result.decimals, 'decimal')}{said}."


def _change(change: RankChange) -> str:
    return f"{change.worse} {'ties with' if change.kind == 'tied' else 'passes'} {change.better}"


def _orders(result: AgreementTable) -> Table:
    numbers = ("runs", "Kendall's tau", "p", "Spearman's rho", "p of rho", "changed", "mean change")
    return Table(
        name="orders",
        title="do they put the same runs in the same order?",
        columns=(Column("a and b", key=True), *(Column(title) for title in numbers)),
        rows=tuple(_order(shared) for shared in result.pairs),
        notes=("p: no agreement at all? exact for few runs. Change: from a to b.",),
    )


def _order(shared: SharedRuns) -> tuple[str, ...]:
    found, change = shared.agreement, shared.to_json()
    return (
        f"{found.a} and {found.b}",
        whole(found.n),
        *_correlation(found.kendall),
        *_correlation(found.spearman),
        whole(change["changed"]),
        significant(change["mean_change"]),
    )


def _correlation(found: RankCorrelation) -> tuple[str, str]:
    return fixed(found.estimate, 2), p_value(found.p)


def _digits(result: AgreementTable) -> Table:
    titles = ("runs", "mean", "standard error", "decimals", "of one run")
    shares = (Column("same again", "%"), Column("with one more", "%"))
    return Table(
        name="digits",
        title="how many digits does the noise support?",
        columns=(Column("side", key=True), *(Column(title) for title in titles), *shares),
        rows=tuple(_side(name, digits) for name, digits in result.digits.items()),
        notes=(
            "Same again: the chance that repeating all runs gives the same rounded mean; then with one digit more.",
        ),
    )


def _side(name: str, digits: SupportedDigits) -> tuple[str, ...]:
    return (
        name,
        whole(digits.n),
        digits.text,
        significant(digits.standard_error, 2),
        UNKNOWN if digits.decimals is None else str(digits.decimals),
        UNKNOWN if digits.single_run_decimals is None else str(digits.single_run_decimals),
        percentage(digits.repeats),
        percentage(digits.repeats_with_one_more),
    )
