"""Showing: a result as text, as HTML and as JSON, for people who work in Python.

`print(isorun.compare(…))` says what `isorun compare` prints; a notebook shows the same as HTML. Both are made from the
view of the result, as everything else that is shown. What a kind of result looks like loads when one is shown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from isorun.analysis import Told, tell_with

if TYPE_CHECKING:
    from isorun.analysis.agreements.shared_runs import AgreementTable
    from isorun.analysis.comparison import Comparison
    from isorun.analysis.descriptions import EnvironmentDescription
    from isorun.analysis.environments import EnvironmentDiff
    from isorun.analysis.factors import FactorEffects
    from isorun.analysis.leaderboards.leaderboard import Leaderboard
    from isorun.analysis.mixed.result import MixedResult
    from isorun.analysis.planning.claims import JudgedGain
    from isorun.analysis.planning.power import PowerResult
    from isorun.analysis.sequential import Decision
    from isorun.analysis.spreads import Summaries
    from isorun.analysis.studies.bisection import Bisection
    from isorun.analysis.studies.record_table import Records
    from isorun.analysis.studies.study_result import StudyResult
    from isorun.diagnose import Diagnosis
    from isorun.diagnose.audit import Audit
    from isorun.diagnose.pricing import Price, PricedSet
    from isorun.report import Table, View

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
    from isorun.report import Column, Listing, Table, View

    found = [(item.trace, problem) for item in result.examinations for problem in item.problems]
    place = "step" if found and all(trace.clock == "step" for trace, _ in found) else "epoch"
    problems = Table(
        name="problems",
        title="Problems",
        columns=tuple(
            Column(title, key=title in {"run", "problem"}) for title in ("run", "problem", place, "evidence")
        ),
        rows=tuple(
            (
                trace.name,
                problem.kind,
                _place(problem.epoch, trace.clock if trace.clock != place else ""),
                problem.evidence,
            )
            for trace, problem in found
        ),
    )
    symptoms = Table(
        name="symptoms",
        title="Symptoms",
        columns=(
            Column("run", key=True),
            *(Column(title) for title in ("architecture", "convergence", "gradient", "weight")),
        ),
        rows=tuple((item.trace.name, *item.symptoms) for item in result.examinations),
        notes=("unknown: nothing was watched or told that shows it.",),
    )
    remedies = {problem.kind: f"{problem.kind}: {'; '.join(problem.remedies)}" for _, problem in found}
    missing: dict[str, list[str]] = {}
    for kind, why in result.unexamined.items():
        missing.setdefault(why, []).append(kind)
    listings = [Listing("what to try, the likeliest first", tuple(remedies.values()))] if found else []
    if missing:
        told = tuple(f"{', '.join(kinds)}: {why}" for why, kinds in missing.items())
        listings.append(Listing("what could not be looked for, and what is missing", told))
    return View((_found(result),), (problems, symptoms) if found else (symptoms,), listings=tuple(listings))


def _place(epoch: float | None, clock: str) -> str:
    """The epoch or step of a problem. clock: which of the two it is, where that has to be said."""
    return "–" if epoch is None else f"{clock} {epoch:g}".lstrip()


def _found(result: Diagnosis) -> str:
    runs = len(result.examinations)
    if not result.problems:
        looked = "no problem found" if result.looked else "nothing could be looked at"
        return f"{result.subject}: {looked}{f' in {runs} runs' if runs > 1 else ''}."
    if runs == 1:
        told = ", ".join(
            problem.kind if problem.epoch is None else f"{problem.kind} ({_place(problem.epoch, item.trace.clock)})"
            for item in result.examinations
            for problem in item.problems
        )
        return f"{result.subject}: {told}."
    told = ", ".join(f"{kind} in {number} of {runs} runs" for kind, number in result.common.items())
    return f"{result.subject}: {told}."


def _audit(found: Audit) -> View:
    """What is left open first, then where, how to close it, and what to do next."""
    from isorun.report import Column, Listing, Table, View

    table = Table(
        name="findings",
        title="What is left open",
        columns=tuple(Column(title, key=True) for title in ("kind", "where", "sure", "why")),
        rows=tuple((item.kind, item.place, str(item.sure), item.why) for item in found.findings),
    )
    fixes = dict.fromkeys(f"{item.kind}: {item.fix}" for item in found.findings)
    withdrawn = tuple(f"{item.finding.kind} at {item.finding.place}: {item.because}" for item in found.withdrawn)
    listings = [
        Listing("how to close it", tuple(fixes)),
        Listing("what the source lets expect and the run did not bear out", withdrawn),
        Listing("next", tuple(f"{number}. {step}" for number, step in enumerate(_after_audit(found), start=1))),
    ]
    tables = (table,) if found.findings else ()
    return View((_left_open(found), _looked(found)), tables, listings=tuple(item for item in listings if item.items))


def _left_open(found: Audit) -> str:
    from isorun.report import count

    if not found.findings and found.failed:
        return f"What {found.script} leaves open is not known: its run failed, and its source alone shows nothing."
    if not found.findings and found.unread:
        return f"Whether {found.script} leaves anything open is not known: not all of its source was looked at."
    if not found.findings:
        return f"{found.script} leaves nothing open that could be seen."
    kinds: dict[str, int] = {}
    for item in found.findings:
        kinds[item.kind] = kinds.get(item.kind, 0) + 1
    told = ", ".join(f"{kind} ({number})" if number > 1 else kind for kind, number in kinds.items())
    sure = f", {len(found.sure)} of them for sure" if found.sure else ", none of them for sure"
    return f"{found.script} leaves {count(len(found.findings), 'source')} of nondeterminism open{sure}: {told}."


def _looked(found: Audit) -> str:
    from isorun.report import count

    ran = found.ran or "nothing was run (--static)"
    read = found.files - any(item.startswith(f"{found.script}: ") for item in found.unread)
    unread = f" Not looked at: {'; '.join(found.unread[:5])}." if found.unread else ""
    more = f" And {len(found.unread) - 5} more." if len(found.unread) > 5 else ""
    return f"Looked at: the source of {count(read, 'file')}; {ran}.{unread}{more}"


def _after_audit(found: Audit) -> list[str]:
    import shlex

    command = shlex.join(found.command)
    steps = [f"mend what ends it: {command}"] if found.failed else []
    if found.patch:
        steps.append(f"isorun audit --fix -- {command} | patch -p1")
    if not found.effective:
        steps.append(f"isorun audit -- {command}")
    if found.failed:
        return steps
    return [*steps, f"isorun run -n 4 --level fixed-seed --level deterministic -- {command}", "isorun report"]


def _price(found: Price) -> View:
    """The cheapest set first and how sure that is, then what each step costs and buys, and how to get it."""
    from isorun.report import Listing, View

    ladder = [("as it is", found.as_it_is, None), *((f"+ {step.name}", step.set, step) for step in found.steps)]
    rows = [(name, _times(step.added_ratio, step.added_interval95) if step else "1") for name, _, step in ladder]
    tables = [_price_table("steps", "What each step costs and buys, taken one after the other", ladder, dict(rows))]
    if found.tried:
        tried = [(_joined(item.names), item, None) for item in found.tried]
        tables.append(_price_table("tried", "Sets with fewer steps", tried, {}))
    outside = " ".join(f"{name}={value}" for name, value in found.variables.items())
    how = [
        *found.study_lines,
        *([f"outside of isorun, beside seeds and settings in the code: {outside}"] if outside else []),
    ]
    listings = [
        Listing("not measured here", tuple(f"{item.name}: {item.why}" for item in found.not_applicable)),
        Listing("the recommended set in a study file", tuple(how)),
        Listing("next", found.next_steps),
    ]
    sentences = (*_broken_off(found), _cheapest(found), *_how_sure(found), *_timed(found))
    shown = tuple(item for item in listings if item.items)
    return View(sentences, tuple(tables) if found.as_it_is.runs else (), found.conditions, listings=shown)


def _broken_off(found: Price) -> tuple[str, ...]:
    from isorun.report import count

    if not found.stopped:
        return ()
    runs = sum(item.runs for item in (found.as_it_is, *(step.set for step in found.steps), *found.tried))
    measured = f"{count(runs, 'run')} {'was' if runs == 1 else 'were'} measured"
    return (f"Not finished ({found.stopped}): {measured}, and the same command goes on from there.",)


def _joined(names: tuple[str, ...]) -> str:
    return " + ".join(names) or "nothing"


def _times(ratio: float | None, interval: tuple[float, float] | None) -> str:
    from isorun.report import UNKNOWN

    if ratio is None:
        return UNKNOWN
    return f"{ratio:.3g}" if interval is None else f"{ratio:.3g} ({interval[0]:.3g}–{interval[1]:.3g})"


def _price_table(name: str, title: str, rows: list[tuple[str, PricedSet, Any]], added: dict[str, str]) -> Table:
    from isorun.report import UNKNOWN, Column, Table, significant

    def ends(item: PricedSet) -> str:
        return (
            UNKNOWN
            if item.distinct is None
            else f"{item.distinct} of {item.runs if not item.seeds else item.runs // item.seeds}"
        )

    def spread(item: PricedSet) -> str:
        around = item.sd_interval95
        inside = "" if around is None else f" ({significant(around[0], 2)}–{significant(around[1], 2)})"
        return UNKNOWN if item.sd is None else f"{significant(item.sd, 2)}{inside}"

    def removed(item: PricedSet) -> str:
        if item.variance_removed is None or item.variance_removed_interval95 is None:
            return UNKNOWN
        low, high = item.variance_removed_interval95
        if low <= 0 <= high:
            return "not told"
        return f"{100 * item.variance_removed:.0f} ({100 * low:.0f}–{100 * high:.0f}) %"

    titles = ("time", *(("by itself",) if added else ()), "CPU time", "sd", "variance removed", "different ends")
    return Table(
        name=name,
        title=title,
        columns=(Column("step" if added else "set", key=True), *(Column(text) for text in titles)),
        rows=tuple(
            (
                label,
                "1" if not item.names else _times(item.time_ratio, item.interval95),
                *((added[label],) if added else ()),
                "1" if not item.names else _times(item.cpu_ratio, None),
                spread(item),
                removed(item),
                ends(item),
            )
            for label, item, _ in rows
        ),
        notes=(
            "times: ratios to the training as it is, geometric mean of pairs (95 % interval)",
            "sd: of the metric, between runs that should be the same (95 % interval)",
        ),
    )


def _cheapest(found: Price) -> str:
    chosen = found.recommended_set
    if chosen is None:
        if found.undecided is not None:
            apart, of = found.undecided, f"{_joined(found.undecided.names)}"
            alone = f"{_joined(apart.alike)} alone" if apart.alike else "the training as it is"
            return (
                f"No set is recommended: the runs of {of} were the same, but it is not told apart from {alone}: "
                f"{apart.pairs:g} pairs."
            )
        if all(item.identical is None for item in (found.as_it_is, *(step.set for step in found.steps))):
            why = "too few runs were made" if found.stopped else "there is nothing to compare runs by"
            return f"Whether any set of steps gives bit-identical runs is not known: {why}."
        return "No set of steps that was measured gives bit-identical runs."
    what = "bit-identical runs" if found.by_weights else f"runs with the same {found.judged_by}"
    if not chosen.names:
        return f"The training as it is gives {what} here: no step has to be taken."
    costs = f"at {_times(chosen.time_ratio, chosen.interval95)} times the time"
    return f"Cheapest set that gives {what} here: {_joined(chosen.names)}, {costs}."


def _how_sure(found: Price) -> tuple[str, ...]:
    chosen = found.recommended_set
    if chosen is None or found.differing_at_most is None:
        return ()
    if chosen.seeds:
        alike = f"All {chosen.runs} runs of it came to one end for each seed ({chosen.pairs:g} pairs of equal seeds)"
    else:
        alike = (
            f"All {chosen.runs} runs of it came to one end, and no seed was fixed from outside ({chosen.pairs:g} pairs)"
        )
    among = (
        f"at most {100 * found.differing_at_most:.0f} % of pairs differ (95 %, chosen among {found.chosen_among} sets)"
    )
    needed = [
        f"{need.name} is needed: without it {need.odd} of {need.runs_without} runs ended unlike the others, "
        f"with it none of {need.runs_with} (p = {need.p:.1g})."
        for need in found.needs
        if need.shown
    ]
    return (f"{alike}, so {among}.", *needed)


def _timed(found: Price) -> tuple[str, ...]:
    base = found.as_it_is
    if base.seconds is None:
        return ()
    what = f"steps 2 to {found.steps_cut} of the training" if found.steps_cut else "the training"
    return (
        f"As it is, {what} took {base.seconds:.3g} s of its own (median of {base.runs} runs, start-up not counted).",
    )


VIEWS: Final[dict[str, Callable[[Any], View]]] = {
    "agreement": _agreement,
    "audit": _audit,
    "bisection": _bisection,
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
    "study": _study,
    "summaries": _summaries,
}
"""A kind of result, as `told_as` names it, to its view; what lies above adds its own."""


def install() -> None:
    """Results tell themselves from now on."""
    tell_with(text, html, as_json)
