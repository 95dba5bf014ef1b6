"""Runs that were made again, in words: a replay of one run, and a replication of a package."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from isorun.analysis.evidence import first_of
from isorun.analysis.replications import SPREADS, GroupOutcome, ReplicatedGroup, Replication
from isorun.analysis.replications.replays import Replay
from isorun.report import UNKNOWN, Column, Listing, NumberStyle, Table, View, count, style_for
from isorun.study.records import step_text

__all__ = ["replay_view", "replication_view"]

_SHOWN: Final = 12


def replay_view(result: Replay) -> View:
    """Identical or not, and what differs first; then all that differs of the setup and of the numbers."""
    tables = [_setup(result)] if result.setup else []
    tables += [_partings(result)] if result.partings else []
    listings = (Listing("replaced", result.replaced),) if result.replaced else ()
    return View(tuple(_told(result)), tuple(tables), result.conditions, listings=listings)


def _told(result: Replay) -> Iterator[str]:
    compared = [f"{count(result.rows, 'logged value')}"] if result.rows else []
    compared += [count(result.results, "result")] if result.results and not result.rows else []
    compared += [count(result.digests, "digest")] if result.digests else []
    if not compared:
        yield f"Nothing of {result.run} ({result.label}) could be compared: it left no number and no digest."
    elif result.identical:
        how = "bit by bit" if result.has_weights else "in all that was recorded"
        weights = ", the weights among them" if result.has_weights else "; its weights were not seen"
        yield f"Identical {how}: {result.run} ({result.label}) gave the same {' and '.join(compared)}{weights}."
        if result.setup:
            yield f"Although {count(len(result.setup), 'fact')} of the setup differ, {result.setup[0].what} first."
    else:
        yield f"{result.run} ({result.label}) differs. First: {result.first}."
        if result.setup:
            yield f"Its numbers part at {result.partings[0].words}."
        elif not result.fixes_seed:
            yield "Nothing that was recorded of the setup differs: at level default every run draws numbers of its own."
        else:
            yield "Nothing that was recorded of the setup differs: what moved the numbers left no trace there."
    yield f"The new run is {result.replay}, kept in {result.kept}; it is a run of no study."


def _setup(result: Replay) -> Table:
    rows = [(item.what, item.first or UNKNOWN, item.second or UNKNOWN, item.reason) for item in result.setup]
    return Table(
        name="setup",
        title="what differs that can change numbers, the most suspicious first",
        columns=tuple(Column(name, key=True) for name in ("what", "then", "now", "why")),
        rows=tuple(rows[:_SHOWN]),
        notes=(f"and {len(rows) - _SHOWN} more; --json has all",) if len(rows) > _SHOWN else (),
    )


def _partings(result: Replay) -> Table:
    rows = [
        (
            item.what,
            UNKNOWN if item.step is None else step_text(item.step),
            UNKNOWN if item.stored is None else item.stored,
            UNKNOWN if item.now is None else item.now,
        )
        for item in result.partings
    ]
    return Table(
        name="partings",
        title="where the numbers part, in the order of the run",
        columns=(Column("what", key=True), Column("step"), Column("then"), Column("now")),
        rows=tuple(rows[:_SHOWN]),
        notes=(f"and {len(rows) - _SHOWN} more; --json has all",) if len(rows) > _SHOWN else (),
    )


_MEANINGS: Final = {
    "repeated": "the same setup gave the same result",
    "replicated": "the same code and data gave the same result on another machine, or in an environment made again",
    "reproduced": "the result holds although something of the setup was replaced",
    "not": "the result does not hold here",
    "undecided": "it is not shown whether the result holds here",
}


def replication_view(result: Replication) -> View:
    """The word first, then what was replaced, why, and a row a group."""
    listings = [Listing("replaced", tuple(item.words for item in result.replaced))] if result.replaced else []
    return View(tuple(_said(result)), (_groups(result),), result.all_conditions, listings=tuple(listings))


def _said(result: Replication) -> Iterator[str]:
    how = ", in every number that was logged" if result.by_numbers else ", bit by bit" if result.by_bits else ""
    about = f"{result.metric} of {result.study}, {result.package}"
    yield f"{result.verdict.capitalize()}{_as_far_as_judged(result)}: {_MEANINGS[result.verdict]}{how} ({about})."
    yield from _because(result)
    replaced = first_of(dict.fromkeys(f"{item.what} ({item.kind})" for item in result.replaced), 4, ", ")
    if not any(group.new.runs for group in result.groups):
        yield "No new run has finished, so what of the setup was replaced is not known."
    else:
        yield f"Replaced: {replaced}." if result.replaced else "Nothing of what was recorded of the setup was replaced."
    margin = result.rule.margin
    # Without a stated one there is a margin only where stored runs gave it.
    if not result.by_bits and (margin or any(group.margin is not None for group in result.groups)):
        stated = (
            f"{margin.words}, as it was stated" if margin else f"{SPREADS:g} standard deviations of the stored runs"
        )
        yield f"The margin is {stated}. {result.error_statement}."
    made = f"{count(result.runs_made, 'run')} {'was' if result.runs_made == 1 else 'were'} made now"
    yield f"{made}; code is in {result.folder}, runs are in {result.store}."
    if result.verdict not in ("not", "undecided"):
        yield f"A registry counts that once it is told: {_pushing(result)}."


def _pushing(result: Replication) -> str:
    """How the new runs become a package that the replicated one is linked to."""
    made = f"{Path(result.folder).name}.isorun"
    packing = ["isorun", "pack", result.study, "--store", result.store, "-o", made]
    pushing = ["isorun", "push", made, "--replicates", result.address]
    return f"{shlex.join(packing)}, then {shlex.join(pushing)}"


def _as_far_as_judged(result: Replication) -> str:
    """Of a result that holds: in how many groups, where some could not be judged."""
    judged = sum(group.outcome is not GroupOutcome.NOT_JUDGED for group in result.groups)
    if result.verdict in ("not", "undecided") or judged == len(result.groups):
        return ""
    return f" in {judged} of {count(len(result.groups), 'group')}, the others could not be judged"


def _because(result: Replication) -> Iterator[str]:
    """Of the groups that decide: why."""
    for group in result.groups:
        decides = {"not": GroupOutcome.NOT, "undecided": GroupOutcome.UNDECIDED}.get(result.verdict)
        if decides is None or group.outcome in {decides, GroupOutcome.NOT_JUDGED}:
            yield f"{group.name}: {group.why}."


def _groups(result: Replication) -> Table:
    style = style_for(result.scale)
    return Table(
        name="replication",
        title=f"{result.metric}: stored runs and new ones",
        columns=(
            Column("group", key=True),
            Column("mean", style.unit, "stored"),
            Column("units", group="stored"),
            Column("mean", style.unit, "new"),
            Column("units", group="new"),
            Column("difference", style.difference_sign),
            Column("90 % interval", style.difference_sign),
            Column("margin", style.difference_sign),
            Column("same bits"),
            Column("outcome"),
        ),
        rows=tuple(_row(group, style) for group in result.groups),
        notes=("Means are over units, what was drawn independently. Same bits: of stored seeds that were run again.",),
    )


def _row(group: ReplicatedGroup, style: NumberStyle) -> tuple[str, ...]:
    bits = f"{group.bits.same} of {group.bits.compared}" if group.bits.compared else UNKNOWN
    return (
        group.name,
        style.value(group.stored.mean, group.stored.sd),
        str(group.stored.units),
        style.value(group.new.mean, group.new.sd),
        str(group.new.units),
        UNKNOWN if group.difference is None else style.difference(group.difference, group.stored.sd),
        _interval(group, style),
        UNKNOWN if group.margin is None else f"±{style.difference(group.margin)}",
        bits,
        str(group.outcome),
    )


def _interval(group: ReplicatedGroup, style: NumberStyle) -> str:
    if group.interval is None:
        return UNKNOWN
    low, high = (style.difference(end, group.stored.sd) for end in group.interval)
    return f"{low} to {high}"
