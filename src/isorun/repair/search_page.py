"""A search as people see it: the verdict first, then its figures, tables, and warnings with what to do next."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from isorun.repair.actions import unknown_parameters
from isorun.repair.bugs import elapsed, failed_silently, guilty_end, is_complete, is_silent, silence_of
from isorun.repair.diagnosis import TRUSTED, SearchDiagnosis, Taken, why
from isorun.repair.priorities import UNTESTED, told_chances
from isorun.repair.searches import SYMPTOMS, Trial, Value
from isorun.report import UNKNOWN, Column, Listing, Table, View, count, significant
from isorun.report.figures.description import Figure
from isorun.report.figures.searches import (
    SearchStory,
    TakenAction,
    TrialMark,
    action_gains,
    progress_by_time,
    progress_by_trial,
    symptom_strip,
)

__all__ = ["search_view"]

_SHOWN: Final = 8
_FOLDED_FROM: Final = 25
_LIKELY: Final = 0.1
_SOUND: Final = ("normal", "plain", "residual", "depthwise", "inverted-bottleneck", "attention")


def search_view(told: SearchDiagnosis, *, figures: bool = True) -> View:
    """The page of a search: the verdict, its figures, the tables, and what to do next."""
    tables = [_action_table(told)] if told.actions else []
    tables += [_taken_table(told)] if told.taken else []
    tables += [_symptom_table(told)] if told.latest else []
    drawn = tuple(_figures(told)) if figures else ()
    return View(tuple(_verdict(told)), tuple(tables), told.warnings, drawn, tuple(_listings(told)))


def _listings(told: SearchDiagnosis) -> Iterator[Listing]:
    unknown = unknown_parameters(told.search)
    if unknown:
        yield Listing("Parameters whose meaning is not known: they are acted on by this search alone", unknown)
    if told.search.left_out:
        lines = tuple(f"{name}: {why}" for name, why in told.search.left_out)
        yield Listing("What isorun would offer beside the space, and cannot in this training", lines)


def _verdict(told: SearchDiagnosis) -> Iterator[str]:
    search = told.search
    best, name = search.best, f"{search.engine} study {search.name}"
    states = ", ".join(f"{number} {state}" for state, number in told.states.items())
    counted = f"{count(len(search.trials), 'trial')} ({states})" if states else "no trial"
    if best is None:
        yield f"{name}: {counted}; no trial has finished with a score yet, so nothing can be said of it."
    else:
        since = len([trial for trial in search.trials if trial.is_over and trial.number > best.number])
        later = f", {count(since, 'trial')} ago" if since else ""
        yield f"{name}: {counted}; the best score is {significant(best.score, 5)} (trial {best.number}){later}."
        yield from _raced(told)
    yield from (f"{bug.kind}, since trial {bug.since_trial}: {bug.evidence}." for bug in told.bugs)
    if not told.bugs and best is not None:
        yield f"No bug is found.{_nevertheless(told)}"
    yield from _silently(told)
    yield from _brought(told)


def _silently(told: SearchDiagnosis) -> Iterator[str]:
    silent = failed_silently(told.search)
    if silent:
        found = guilty_end(told.search, silent)
        clue = f" They may depend on a number: {found}." if found and not _is_blamed(told) else ""
        yield f"{len(silent)} of {count(len(told.search.trials), 'trial')} failed; no reason is kept.{clue}"


def _is_blamed(told: SearchDiagnosis) -> bool:
    return any(bug.kind == "repeated-failure" for bug in told.bugs)


def _nevertheless(told: SearchDiagnosis) -> str:
    """What may look like a bug and is none."""
    silence = silence_of(told.search)
    if is_complete(told.search):
        return f" All {len(told.search.trials)} configurations of its space were tried, each once: it is finished."
    if silence is None or not is_silent(told.search, told.limits):
        return ""
    said = f" Nothing has improved in {silence.trials} trials since trial {silence.last.number}: of 100 random searches"
    return f"{said} {100 * silence.as_often:.0f} are silent for so long, so it is no sign that this one is stuck."


def _raced(told: SearchDiagnosis) -> Iterator[str]:
    """How sure it is that the best trial is the best, and which single scores may have been luck."""
    racing, best = told.racing, told.search.best
    if racing is None or best is None:
        return
    won = ", ".join(f"trial {one} is called better than {other}" for one, other in racing.called)
    said = f"Racing: {count(len(racing.races), 'trial')} looked better than the best one until then; "
    said += won or "none is called better"
    said += f" (an error of at most {100 * racing.error_rate:.3g} % over all trials)"
    yield f"{said}; {count(racing.extra, 'extra training')}."
    yield from (f"{one.message[:1].upper()}{one.message[1:]}; next: {one.next_step}." for one in racing.copies)
    higher = [trial.number for trial in told.search.scored if told.search.gain(trial) > told.search.gain(best)]
    if higher:
        named = ", ".join(map(str, higher[:_SHOWN])) + (", …" if len(higher) > _SHOWN else "")
        yield f"Trial {named} scored better than the best one and did not hold it in repeats, or was not repeated yet."


def _brought(told: SearchDiagnosis) -> Iterator[str]:
    """What isorun's own proposals came to, against what was foretold of them."""
    over = [one for one in told.taken if one.trial.is_over]
    if not over:
        return
    improved = sum(one.outcome == "improved" for one in over)
    foretold = [one.trial.chance for one in over if one.trial.chance is not None]
    said = (
        f"Of {count(len(over), 'trial')} that isorun proposed since trial {over[0].trial.number}, {improved} improved "
    )
    said += "the trial they changed above noise"
    yield said + (f" ({significant(math.fsum(foretold), 2)} were foretold)." if len(foretold) == len(over) else ".")


def _action_table(told: SearchDiagnosis) -> Table:
    best = told.search.best
    assert best is not None
    rows = []
    for one in told.actions[:_SHOWN]:
        edit = one.action.edits[0]
        values = (_written(best.parameters[edit.parameter]), _written(edit.value))
        rows.append((edit.parameter, *values, f"{100 * one.probability:.0f}", why(one, told.trust)))
    return Table(
        "actions",
        f"What to change in the best trial ({best.number}), the most promising first",
        (
            Column("parameter", key=True),
            Column("from", key=True),
            Column("to", key=True),
            Column("chance to improve", "%"),
            Column("why", key=True),
        ),
        tuple(rows),
        notes=tuple(_notes(told)),
    )


def _notes(told: SearchDiagnosis) -> Iterator[str]:
    likely = [one for one in told_chances().calibration if one["foretold"] >= _LIKELY]
    told_as, came = (" and ".join(f"{100 * one[key]:.0f}" for one in likely[:2]) for key in ("foretold", "improved"))
    yield f"On tables held out, of changes told with {told_as} % {came} % improved; other searches may differ."
    yield from _fitting(told)
    if told.search.is_noise_borrowed:
        said = (
            f"A gain counts above noise: sd {told.search.noise:.3g}, which is that of other trainings (the prior's); "
        )
        yield said + "that of yours is not known, and may be much larger or smaller."
    elif told.search.noise:  # that it is not known is a warning
        yield f"A gain counts above noise: sd {told.search.noise:.3g}, from {told.search.noise_from}."
    elif told.search.noise_from:
        yield f"Any gain counts: there is no noise, by {told.search.noise_from}."


def _fitting(told: SearchDiagnosis) -> Iterator[str]:
    """Whether counts from elsewhere fit, where any bear on these actions; before trials say so it is a guess."""
    if told.trust is None or not any(one.prior_tries for one in told.actions):
        return
    if math.isclose(told.trust, UNTESTED):
        yield "Whether counts from elsewhere fit this search cannot be told from its trials yet."
    elif told.trust < TRUSTED:
        said = "By the order of its trials, counts from elsewhere do not fit this search (probability "
        yield f"{said}{told.trust:.2f}): chances rest on its own trials."
    else:
        yield f"By the order of its trials, counts from elsewhere fit this search with probability {told.trust:.2f}."


def _taken_table(told: SearchDiagnosis) -> Table:
    rows = []
    for one in told.taken:
        names, olds, news = (
            ("; ".join(parts) for parts in zip(*map(_edit_cells, one.edits), strict=True))
            if one.edits
            else (UNKNOWN,) * 3
        )
        chance = UNKNOWN if one.trial.chance is None else f"{100 * one.trial.chance:.0f}"
        after = significant(one.trial.score, 5) if one.trial.has_score else UNKNOWN
        trial = f"{one.trial.number} (from {one.origin})"
        rows.append((trial, names, olds, news, chance, significant(one.before, 5), after, one.outcome))
    keys = {"trial", "parameter", "from", "to"}  # which may be long, and are wrapped
    titles = ("trial", "parameter", "from", "to", "foretold", "before", "after", "outcome")
    return Table(
        "taken",
        "What isorun changed, and what that brought",
        tuple(Column(title, "%" if title == "foretold" else "", key=title in keys) for title in titles),
        tuple(rows),
        notes=(
            "before: the score of the trial that was changed.",
            "improved: by more than noise, and not from one training that got nowhere to another.",
        ),
        folded=len(rows) > _FOLDED_FROM,
    )


def _edit_cells(edit: tuple[str, Value, Value]) -> tuple[str, str, str]:
    return edit[0], _written(edit[1]), _written(edit[2])


def _symptom_table(told: SearchDiagnosis) -> Table:
    best = told.search.best
    trials = [*([best] if best is not None else []), *(trial for trial in told.latest if trial is not best)]
    rows = tuple(
        (
            f"{trial.number}{' (best)' if trial is best else ''}",
            "stalled" if trial.number in told.stalled else trial.state,
            significant(trial.score, 5) if trial.has_score else UNKNOWN,
            *(UNKNOWN if symptom == "unknown" else symptom for symptom in trial.symptoms),
        )
        for trial in trials
    )
    return Table(
        "symptoms",
        "The best and the latest trials",
        (
            Column("trial", key=True),
            Column("state", key=True),
            Column("score"),
            *(Column(one, key=True) for one in SYMPTOMS),
        ),
        rows,
    )


def _figures(told: SearchDiagnosis) -> Iterator[Figure]:
    story = _story(told)
    taken = [
        TakenAction(
            one.trial.number, _label(one), one.before, one.trial.score if one.trial.has_score else None, one.outcome
        )
        for one in told.taken
    ]
    drawn = (
        progress_by_trial(story),
        progress_by_time(story),
        symptom_strip(story, _SOUND),
        action_gains(taken, told.search.direction),
    )
    yield from (figure for figure in drawn if figure is not None)


def _label(one: Taken) -> str:
    """All that was changed, in a line."""
    return ", ".join(f"{name} {_written(old)} → {_written(new)}" for name, old, new in one.edits) or "nothing"


def _story(told: SearchDiagnosis) -> SearchStory:
    search = told.search
    timed = any(trial.seconds is not None for trial in search.trials)
    marks = tuple(
        TrialMark(
            trial.number,
            trial.score if trial.has_score else None,
            _state(told, trial),
            ended if timed and (trial.seconds is not None or trial.started is not None) else None,
            trial.proposed_by == "isorun",
            {name: word for name, word in zip(SYMPTOMS, trial.symptoms, strict=True) if word != "unknown"},
        )
        for trial, ended in zip(search.trials, elapsed(search), strict=True)
    )
    moments = [(bug.since_trial, f"{bug.kind} since {bug.since_trial}") for bug in told.bugs]
    first = next((mark.number for mark in marks if mark.proposed), None)
    moments += [] if first is None else [(first, f"isorun proposes from {first} on")]
    return SearchStory(marks, search.direction, search.margin, told.limits.target, tuple(moments), search.bests)


def _state(told: SearchDiagnosis, trial: Trial) -> str:
    if trial.number in told.stalled:
        return "stalled"
    return "without" if trial.state == "finished" and not trial.has_score else trial.state


def _written(value: Value) -> str:
    return f"{value:.4g}" if isinstance(value, float) else UNKNOWN if value is None else str(value)
