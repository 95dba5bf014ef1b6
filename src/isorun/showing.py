"""Showing: a result as text, as HTML and as JSON, for people who work in Python.

`print(isorun.compare(…))` says what `isorun compare` prints; a notebook shows the same as HTML. Both are made from the
view of the result, as everything else that is shown. What a kind of result looks like loads when one is shown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from isorun.analysis import Told, tell_with
from isorun.study.design import show_studies_with

if TYPE_CHECKING:
    from isorun.analysis.agreements.shared_runs import AgreementTable
    from isorun.analysis.checks import Check
    from isorun.analysis.comparison import Comparison
    from isorun.analysis.descriptions import EnvironmentDescription
    from isorun.analysis.environments import EnvironmentDiff
    from isorun.analysis.factors import FactorEffects
    from isorun.analysis.leaderboards.leaderboard import Leaderboard
    from isorun.analysis.mixed.result import MixedResult
    from isorun.analysis.planning.claims import JudgedGain
    from isorun.analysis.planning.power import PowerResult
    from isorun.analysis.prices.price import Price
    from isorun.analysis.replications import Replication
    from isorun.analysis.replications.replays import Replay
    from isorun.analysis.sequential import Decision
    from isorun.analysis.spreads import Summaries
    from isorun.analysis.studies.bisection import Bisection
    from isorun.analysis.studies.record_table import Records
    from isorun.analysis.studies.study_result import StudyResult
    from isorun.diagnose import Diagnosis
    from isorun.diagnose.audit import Audit
    from isorun.report import View
    from isorun.study.design import Study

__all__ = ["VIEWS", "as_json", "html", "install", "text", "view_of"]

_WIDTH: Final = 100
_RECORDS_SHOWN: Final = 20


def text(result: Told) -> str:
    """The verdict, the tables that are short, and what weakens the evidence; plain text without colour."""
    return view_of(result).text(width=_WIDTH).rstrip("\n")


def html(result: Told) -> str:
    """The same for a notebook: a fragment of HTML, every text escaped, no script."""
    return view_of(result).html_fragment()


def as_json(result: StudyResult) -> dict[str, Any]:
    """The report for machines, whose verdict is in words; other results make their JSON themselves."""
    from isorun.report import json_report

    return json_report.to_json(result)


def view_of(result: Told) -> View:
    """What a result has to say, as data."""
    return VIEWS[result.told_as](result)


def _comparison(result: Comparison) -> View:
    from isorun.report.comparisons import comparison_view

    return comparison_view(result)


def _decision(result: Decision) -> View:
    from isorun.report.comparisons import decision_view

    return decision_view(result, "A", "B")


def _power(result: PowerResult) -> View:
    from isorun.report.comparisons import power_view

    return power_view(result)


def _bisection(result: Bisection) -> View:
    from isorun.report.bisections import bisection_view

    return bisection_view(result)


def _check(result: Check) -> View:
    from isorun.report.checks import check_view

    return check_view(result)


def _claim(result: JudgedGain) -> View:
    from isorun.report.claims import claim_view

    return claim_view(result)


def _environment(result: EnvironmentDescription) -> View:
    from isorun.report.environments import description_view

    return description_view(result)


def _environment_diff(result: EnvironmentDiff) -> View:
    from isorun.report.environments import diff_view

    return diff_view(result)


def _leaderboard(result: Leaderboard) -> View:
    from isorun.report.leaderboards import leaderboard_view

    return leaderboard_view(result)


def _agreement(result: AgreementTable) -> View:
    from isorun.report.agreements import agreement_view

    return agreement_view(result)


def _factors(result: FactorEffects) -> View:
    from isorun.report.factors import factors_view

    return factors_view(result)


def _mixed(result: MixedResult) -> View:
    from isorun.analysis.mixed.hypotheses import variance_shares
    from isorun.report.mixed_models import mixed_view

    return mixed_view(result, variance_shares(result) if result.random else ())


def _summaries(result: Summaries) -> View:
    from isorun.report.summaries import summaries_view

    return summaries_view(result)


def _study(result: StudyResult) -> View:
    from isorun.report.study_view import study_view

    return study_view(result)


def _records(result: Records) -> View:
    from isorun.report import Column, Table, View

    columns = result[:_RECORDS_SHOWN].to_columns()
    rows = zip(*(map(_in_a_table, values) for values in columns.values()), strict=True)
    more = len(result) - _RECORDS_SHOWN
    notes = (f"and {more:,} more: to_pandas(), to_polars() and to_columns() have all",) if more > 0 else ()
    heads = tuple(Column(name) for name in columns)
    table = Table(name="records", title="a row a run", columns=heads, rows=tuple(rows), notes=notes)
    return View((result.counted,), (table,) if result else ())


def _in_a_table(value: object) -> str:
    from isorun.report import UNKNOWN

    return UNKNOWN if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _diagnosis(result: Diagnosis) -> View:
    from isorun.report.diagnoses import diagnosis_view

    return diagnosis_view(result)


def _audit(result: Audit) -> View:
    from isorun.report.audits import audit_view

    return audit_view(result)


def _price(result: Price) -> View:
    from isorun.report.prices import price_view

    return price_view(result)


def _replay(result: Replay) -> View:
    from isorun.report.replications import replay_view

    return replay_view(result)


def _replication(result: Replication) -> View:
    from isorun.report.replications import replication_view

    return replication_view(result)


VIEWS: Final[dict[str, Callable[[Any], View]]] = {
    "agreement": _agreement,
    "audit": _audit,
    "bisection": _bisection,
    "check": _check,
    "claim": _claim,
    "comparison": _comparison,
    "decision": _decision,
    "diagnosis": _diagnosis,
    "environment": _environment,
    "environment-diff": _environment_diff,
    "factors": _factors,
    "leaderboard": _leaderboard,
    "mixed": _mixed,
    "power": _power,
    "price": _price,
    "records": _records,
    "replay": _replay,
    "replication": _replication,
    "study": _study,
    "summaries": _summaries,
}
"""A kind of result, as `told_as` names it, to its view; what lies above adds its own."""


def _design(study: Study) -> View:
    from isorun.report.designs import study_design_view

    return study_design_view(study)


def install() -> None:
    """Results tell themselves from now on, and so do studies."""
    tell_with(text, html, as_json)
    show_studies_with(
        lambda study: _design(study).text(width=_WIDTH).rstrip("\n"), lambda study: _design(study).html_fragment()
    )
