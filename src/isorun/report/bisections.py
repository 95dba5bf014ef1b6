"""Bisections: the commit that changed a result, in words, and the commits that were looked at as a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from isorun.analysis.samples import Interval
from isorun.analysis.studies.bisection import EQUIVALENT, NO_DIFFERENCE, PLANNED, RANGE, STOPPED, Bisection, Probed
from isorun.report import UNKNOWN, Column, Listing, Table, View, count, decimals_for, fixed
from isorun.study.history import Commit

__all__ = ["bisection_view"]

_BITS: Final = "bits"
_MOST_LISTED: Final = 20
_SUBJECT: Final = 32


def bisection_view(result: Bisection) -> View:
    """The commit first, then how sure that is, then what else changed; the commits that were looked at below."""
    listings = [Listing("one of these", tuple(_listed(result)))] if result.verdict == RANGE else []
    listings += [Listing("next", result.next_steps)] if result.next_steps else []
    tables = (_probes(result),) if result.probes else ()
    return View((*_verdict(result), *_others(result)), tables, result.conditions, listings=tuple(listings))


def _named(commit: Commit) -> str:
    return commit.ref or commit.short


def _verdict(result: Bisection) -> Iterator[str]:
    if result.verdict == PLANNED:
        yield from _planned(result)
        return
    if result.verdict in {NO_DIFFERENCE, EQUIVALENT}:
        yield _no_difference(result)
    elif result.first_bad is not None:
        commit = result.first_bad
        yield f"{commit.short} changed {_moved(result)}: {commit.subject} ({commit.author}, {commit.date[:10]})."
    elif result.verdict == RANGE:
        yield f"One of {count(len(result.candidates), 'commit')} changed {_moved(result)}."
        yield from _why_not_one(result)
    else:
        yield f"Nothing can be said yet: {result.ended or result.stopped or 'it was stopped'}."
    if result.runs:
        yield _how_sure(result)
    if result.found and (result.before or result.after) and not result.others:
        yield _rest(result)


def _planned(result: Bisection) -> Iterator[str]:
    yield (
        f"{count(result.commits, 'commit')} between {_named(result.good)} and {_named(result.bad)}: "
        f"{count(result.planned, 'probe')} beside the ends, {result.fewest} to {result.most} runs."
    )
    if result.alike:
        yield f"{count(result.alike, 'commit')} with the same files as the one before cannot be meant."


def _moved(result: Bisection) -> str:
    """What changed, and by how much where that is a number."""
    if result.what == _BITS:
        return f"the {_judged(result)} that the same seed ends with"
    if result.difference is None:
        return result.metric
    decimals = _decimals(result)
    return f"{result.metric} by {result.difference:+.{decimals}f}{_between(result.interval95, decimals)}"


def _judged(result: Bisection) -> str:
    return result.judged_by if result.judged_by == "numbers" else "bits"


def _decimals(result: Bisection) -> int:
    low, high = result.total_interval95 or result.interval95 or (0.0, result.total or 1.0)
    return decimals_for(abs(high - low) / 4 or abs(high) or 1.0)


def _between(interval: Interval | None, decimals: int) -> str:
    if interval is None:
        return ""
    low, high = interval
    return f" (95 % interval {low:+.{decimals}f} to {high:+.{decimals}f})"


def _no_difference(result: Bisection) -> str:
    ends = f"{_named(result.good)} and {_named(result.bad)}"
    if result.ended == "same files":
        return f"{ends} hold the same files: there is nothing to look for."
    if result.what == _BITS:
        return f"{ends} end with the same {_judged(result)}."
    decimals = _decimals(result)
    shown = "" if result.total is None else f": {result.total:+.{decimals}f}"
    differing = f"{shown}{_between(result.total_interval95, decimals)}"
    if result.verdict == EQUIVALENT:
        return f"{ends} differ in {result.metric} by less than {result.margin:g}{differing}."
    why = "it was given up as hopeless" if result.ended == "hopeless" else f"{result.max_runs} runs each are the budget"
    return f"No difference in {result.metric} between {ends} was found{differing}; {why}."


def _why_not_one(result: Bisection) -> Iterator[str]:
    skipped = sum(probe.verdict == "does not run" for probe in result.probes)
    undecided = sum(probe.verdict == "undecided" for probe in result.probes)
    if skipped:
        yield f"{count(skipped, 'commit')} did not run, and could not be told from its neighbours."
    if undecided:
        yield (
            f"{count(undecided, 'commit')} could not be told from either side in {result.max_runs} runs; a new search "
            "with a larger --max-runs, in a --store of its own, may."
        )
    if not skipped and not undecided:
        why = f"it was ended early ({result.stopped})" if result.stopped else "a merge, or what it brought in"
        yield f"Not narrowed down further: {why}."


def _how_sure(result: Bisection) -> str:
    if result.verdict == STOPPED:
        commits = count(sum(probe.runs > 0 for probe in result.probes), "commit")
        return f"{count(result.runs, 'run')} of {commits} so far; the same command goes on with them."
    ends = {result.good.tree, result.bad.tree}
    probed = len({probe.commit.tree for probe in result.probes if probe.runs and probe.verdict != "fork"} - ends)
    between = f" and {probed} of the {count(result.commits - 1, 'commit')} between them" if result.commits > 1 else ""
    of_all = f"{count(result.runs, 'run')} of the two ends{between}"
    if result.what == _BITS:
        if not result.found:
            return f"{of_all}."
        return (
            f"{of_all}; right where bits that changed once did not change back. Both sides of the change ran again and "
            f"ended as before: bits that differ by chance alone do that in at most {100 * result.error_rate:.1g} % of "
            "searches."
        )
    return f"{of_all}; wrong in at most {100 * result.error_rate:g} % of such searches, all comparisons together."


def _rest(result: Bisection) -> str:
    """What may still hide on either side of the change."""
    decimals = _decimals(result)
    sides = (("before", result.before), ("after", result.after))
    known = [(side, *found) for side, found in sides if found is not None]
    rest = [f"{moved:+.{decimals}f}{_between(interval, decimals)} {side} it" for side, moved, interval in known]
    return f"No other change was seen: {', '.join(rest)}."


def _others(result: Bisection) -> Iterator[str]:
    for after, until in result.others:
        yield (
            f"That is not all: something else changed after {after.short}, by {until.short} "
            f"(isorun bisect {after.short}..{until.short} …)."
        )


def _listed(result: Bisection) -> Iterator[str]:
    for commit in result.candidates[:_MOST_LISTED]:
        yield f"{commit.short} {commit.date[:10]} {commit.subject}"
    if len(result.candidates) > _MOST_LISTED:
        yield f"and {len(result.candidates) - _MOST_LISTED} more (--json has all)"


def _probes(result: Bisection) -> Table:
    scores = result.what != _BITS
    numbers = (Column("from good"), Column("95 % interval")) if scores else ()
    decimals = _decimals(result)
    return Table(
        name="probes",
        title="the commits that were looked at",
        columns=(
            Column("commit", key=True),
            Column("verdict", key=True),
            Column("runs"),
            *numbers,
            Column("", key=True),
        ),
        rows=tuple(_row(probe, decimals, scores=scores) for probe in result.probes),
        notes=("from good: in a branch that was merged, from where it began.",) if scores else (),
    )


def _row(probe: Probed, decimals: int, *, scores: bool) -> tuple[str, ...]:
    interval = probe.interval95
    between = UNKNOWN if interval is None else f"{interval[0]:+.{decimals}f} to {interval[1]:+.{decimals}f}"
    difference = UNKNOWN if probe.difference is None else f"{fixed(probe.difference, decimals)}"
    about = probe.reason if probe.verdict == "does not run" and probe.reason else probe.commit.subject
    numbers = (difference, between) if scores else ()
    runs = str(probe.runs) if probe.same_as is None else f"as {probe.same_as.short}"
    return (probe.commit.short, probe.verdict, runs, *numbers, about[:_SUBJECT])
