"""What is said of a search: its bugs, what its trials showed, what was changed and what that brought, what to try next.

The verdict comes first, then tables, then numbered warnings, each with the next command.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from isorun import showing
from isorun.analysis import Told
from isorun.analysis.evidence import Condition
from isorun.repair.actions import unknown_parameters
from isorun.repair.bugs import (
    Bug,
    Limits,
    elapsed,
    failed_silently,
    find_bugs,
    guilty_end,
    is_complete,
    is_silent,
    silence_of,
    stalled_trials,
)
from isorun.repair.engines import NextSteps, next_steps
from isorun.repair.priorities import Prior, RankedAction, Scope, ranked, told_chances, trust_in
from isorun.repair.racing import RaceVerdict
from isorun.repair.searches import SYMPTOMS, Search, Trial, Value
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

__all__ = ["Racing", "SearchDiagnosis", "Taken", "diagnose", "search_view"]

_LATEST: Final = 5
_SHOWN: Final = 8
_FOLDED_FROM: Final = 25
_LIKELY: Final = 0.1
_TRUSTED: Final = 0.5
"""From this trust on, counts from elsewhere are what a chance mostly comes from, and are named as its reason."""
_IN_VAIN: Final = 10
_SOUND: Final = ("normal", "plain", "residual", "depthwise", "inverted-bottleneck", "attention")
_CONDITIONS: Final = (
    {"*": "trainings", "*named": "{} networks"},
    {"slow": "that converge slowly", "oscillating": "that oscillate", "normal": "that converge"},
    {
        "vanishing": "with vanishing gradients",
        "exploding": "with exploding gradients",
        "dying": "with dying ReLUs",
        "normal": "with sound gradients",
    },
    {"exploding": "whose weights explode", "normal": "whose weights stay finite"},
)
"""The words for A, C, G and W in a condition."""


@dataclass(frozen=True, slots=True)
class Taken:
    """An action that isorun took. edits: parameter, from, to. before: the score of the trial that it changed.

    outcome: improved (above noise), within noise, worse, no score, or the state of a trial that has not finished.
    """

    trial: Trial
    origin: int
    edits: tuple[tuple[str, Value, Value], ...]
    before: float
    outcome: str

    @property
    def label(self) -> str:
        """All that was changed, in a line."""
        return ", ".join(f"{name} {_written(old)} → {_written(new)}" for name, old, new in self.edits) or "nothing"

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "trial": self.trial.number,
            "origin": self.origin,
            "changes": [{"parameter": name, "from": _plain(old), "to": _plain(new)} for name, old, new in self.edits],
            "probability": self.trial.chance,
            "before": self.before,
            "after": self.trial.score if self.trial.has_score else None,
            "outcome": self.outcome,
        }


@dataclass(frozen=True, slots=True)
class Racing:
    """What came of racing. races: candidate, the best trial until then, and the verdict. extra: trainings it took.

    error_rate: that any candidate that is no better was called better, over all trials.
    """

    races: tuple[tuple[int, int, RaceVerdict], ...]
    extra: int
    error_rate: float

    @property
    def called(self) -> tuple[tuple[int, int], ...]:
        """The trials that are called better, and than which."""
        return tuple((one, other) for one, other, verdict in self.races if verdict == "better")

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        races = [{"trial": one, "against": other, "verdict": verdict} for one, other, verdict in self.races]
        return {"races": races, "extra_trainings": self.extra, "error_rate": self.error_rate}


@dataclass(frozen=True, slots=True)
class SearchDiagnosis(Told):
    """trust: the probability that the prior speaks of this search; None without a prior. actions: the best first.

    steps: what can be done about it. stalled: numbers of trials. racing: where what looks better is repeated.
    """

    told_as: ClassVar[str] = "search-diagnosis"

    search: Search
    bugs: tuple[Bug, ...]
    actions: tuple[RankedAction, ...]
    trust: float | None
    limits: Limits
    steps: NextSteps
    stalled: frozenset[int] = frozenset()
    racing: Racing | None = None

    @property
    def latest(self) -> tuple[Trial, ...]:
        """The trials that ended last."""
        return tuple(trial for trial in self.search.trials if trial.is_over)[-_LATEST:]

    @property
    def states(self) -> dict[str, int]:
        """How many trials are in each state."""
        return dict(Counter(trial.state for trial in self.search.trials))

    @property
    def taken(self) -> tuple[Taken, ...]:
        """The actions that isorun took, in order."""
        by_number = {trial.number: trial for trial in self.search.trials}
        proposed = [trial for trial in self.search.trials if trial.proposed_by == "isorun" and trial.origin is not None]
        origins = ((trial, by_number.get(trial.origin)) for trial in proposed)  # type: ignore[arg-type]
        return tuple(
            _taken(self.search, trial, origin) for trial, origin in origins if origin is not None and origin.has_score
        )

    @property
    def warnings(self) -> tuple[Condition, ...]:
        """What to know and what to do about it, the bugs first."""
        return (*_bug_warnings(self), *_other_warnings(self))

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        best = self.search.best
        return {
            "engine": self.search.engine,
            "study": self.search.name,
            "direction": self.search.direction,
            "trials": len(self.search.trials),
            "states": self.states,
            "best": None if best is None else _trial_json(best),
            "racing": None if self.racing is None else self.racing.to_json(),
            "noise": self.search.noise or None,
            "bugs": [bug.to_json() for bug in self.bugs],
            "symptoms": {
                "best": None if best is None else {"trial": best.number, **_symptoms(best)},
                "latest": [{"trial": trial.number, **_symptoms(trial)} for trial in self.latest],
            },
            "trust_in_prior": self.trust,
            "actions": [_action_json(one, best, self.trust) for one in self.actions if best is not None],
            "taken": [one.to_json() for one in self.taken],
            "stalled": sorted(self.stalled),
            "unknown_parameters": list(unknown_parameters(self.search)),
            "left_out": dict(self.search.left_out),
            "warnings": [warning.to_json() for warning in self.warnings],
        }

    def view(self, *, figures: bool = False) -> View:
        """For people: the page, by default without its figures, which terminals and notebooks do not show."""
        return search_view(self, figures=figures)


showing.VIEWS[SearchDiagnosis.told_as] = SearchDiagnosis.view
showing.install()


def diagnose(
    search: Search,
    prior: Prior | None = None,
    limits: Limits = Limits(),  # noqa: B008
    *,
    where: str = "",
    steps: NextSteps | None = None,
    now: float | None = None,
    seed: int = 0,
    racing: Racing | None = None,
) -> SearchDiagnosis:
    """All that can be said of a search as it stands. The same search gives the same answer.

    where: what `isorun repair` finds the search by. steps: what can be done about it; else as its engine is used.
    racing: what came of repeats.
    """
    at = time.time() if now is None else now
    return SearchDiagnosis(
        search,
        find_bugs(search, limits, at),
        tuple(ranked(search, prior, np.random.default_rng(seed))),
        trust_in(prior, search) if prior is not None else None,
        limits,
        steps or next_steps(search, limits, where),
        frozenset(trial.number for trial, _ in stalled_trials(search, limits, at)),
        racing,
    )


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


def _bug_warnings(told: SearchDiagnosis) -> Iterator[Condition]:
    running = {trial.number for trial in told.search.trials if trial.state == "running"}
    for bug in told.bugs:
        step = told.steps.go_on
        if bug.kind == "stalled-trial" and bug.since_trial in running:
            message = f"trial {bug.since_trial} can be tried again once its process is gone"
            step = told.steps.again
        elif bug.kind == "stalled-trial":
            message = "a trial that takes this long should be ended, so that the others get the time"
            step = told.steps.end
        elif bug.kind == "repeated-failure":
            message = "the same failure comes again: mend it, or leave the value out of the space; then go on"
        elif bug.kind == "exhausted-space":
            message = "there is nothing new to try in this space: it needs more to change"
            step = told.steps.widen
        elif not told.steps.is_repaired:
            message = 'isorun leaves this search to its engine (begin = "never"); '
            message += 'with begin = "bug" it changes its best trial where that has the best chance to help'
        elif bug.kind == "duplicates":
            message = "isorun proposes only what has not been tried"
        elif _has_not_helped(told):
            message = (
                f"{len(told.taken)} changes of its best trials did not help: what is wrong may lie beyond this space"
            )
            step = told.steps.widen
        else:
            message = "the search can go on by changing its best trial where that has the best chance to help"
        yield Condition(bug.kind, message, step)


def _has_not_helped(told: SearchDiagnosis) -> bool:
    """Whether isorun has tried for long, and in vain."""
    return len(told.taken) >= _IN_VAIN and not any(one.outcome == "improved" for one in told.taken[-_IN_VAIN:])


def _other_warnings(told: SearchDiagnosis) -> Iterator[Condition]:
    search = told.search
    over = [trial for trial in search.trials if trial.is_over]
    without = [trial.number for trial in over if trial.state == "finished" and not trial.has_score]
    if without:
        said = f"{count(len(without), 'trial')} ended without a number as score (NaN or none), first trial {without[0]}"
        yield Condition("no-score", said, told.steps.look)
    silent = failed_silently(search)
    if silent:
        said = (
            f"why {count(len(silent), 'trial')} failed is not kept, first trial {silent[0].number}: what the training "
        )
        said += "printed tells it; where isorun goes on with the search, the reason is kept"
        yield Condition("failed-silently", said, told.steps.go_on)
    blind = sum(trial.symptoms.gradient == "unknown" for trial in over)
    if over and 2 * blind > len(over):
        said = (
            f"nothing was seen inside {blind:,} of {count(len(over), 'training')}: actions are chosen without symptoms"
        )
        yield Condition("symptoms-unknown", said, told.steps.watch)
    if len(search.scored) > 1 and not search.noise:
        said = "how much a score varies between seeds is not known (no trial was repeated): any gain counts"
        yield Condition("noise-unknown", said, told.steps.repeat)
    untimed = sum(trial.seconds is None and trial.state != "failed" for trial in over)
    if untimed:
        said = f"{untimed:,} of {count(len(over), 'trial')} have no duration: what stalls cannot be told of them"
        yield Condition("no-times", said, told.steps.time)
    yield from _unfinished(told)


def _unfinished(told: SearchDiagnosis) -> Iterator[Condition]:
    outside = [trial.number for trial in told.search.trials if trial.why_failed.startswith("infeasible")]
    if outside:
        said = f"{count(len(outside), 'trial')} broke a constraint, the first trial {outside[0]}: none can be the best"
        yield Condition("infeasible", said, told.steps.look)
    running = [trial.number for trial in told.search.trials if trial.state == "running"]
    if running and not told.stalled & set(running):
        named = ", ".join(map(str, running[:5])) + (", …" if len(running) > 5 else "")
        said = f"{count(len(running), 'trial')} marked running ({named})"
        said += ": where no process makes them any more, they can be tried again"
        yield Condition("running", said, told.steps.again)


def _symptoms(trial: Trial) -> dict[str, str]:
    return dict(zip(SYMPTOMS, trial.symptoms, strict=True))


def _plain(value: Value) -> Value:
    """A value that any JSON can hold."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _written(value: Value) -> str:
    return f"{value:.4g}" if isinstance(value, float) else UNKNOWN if value is None else str(value)


def _trial_json(trial: Trial) -> dict[str, Any]:
    parameters = {name: _plain(value) for name, value in trial.parameters.items()}
    return {"trial": trial.number, "score": trial.score, "parameters": parameters}


def _action_json(one: RankedAction, best: Trial, trust: float | None) -> dict[str, Any]:
    edit = one.action.edits[0]
    return {
        "parameter": edit.parameter,
        "from": _plain(best.parameters[edit.parameter]),
        "to": _plain(edit.value),
        "probability": round(one.probability, 4),
        "tries": one.tries,
        "improved": one.improved,
        "why": why(one, trust),
    }


def why(one: RankedAction, trust: float | None) -> str:
    """Where the probability of an action comes from: which trainings elsewhere, where they are trusted, and here."""
    said = []
    if one.prior_tries and (trust or 0.0) >= _TRUSTED:
        counts = f"{one.prior_improved:,.0f} of {one.prior_tries:,.0f}"
        said.append(f"{_known_by(one.known_by)} it improved {counts} trainings elsewhere")
    if one.tries:
        said.append(f"{'' if said else 'it improved '}{one.improved} of {one.tries} here")
    return "; ".join(said) or "not tried before: as changes in general"


def _known_by(scope: Scope) -> str:
    if scope[0] == "edit":
        return _condition(scope[4:]) if any(word != "*" for word in scope[4:]) else "whatever the symptoms,"
    if scope[0] == "way":
        way = {"up": "when raised,", "down": "when lowered,"}
        return way.get(scope[2], f"when set to {scope[2]},") + " from whatever value,"
    return f"by any change of the {scope[1]}"


def _condition(symptoms: Scope) -> str:
    """For plain networks that converge slowly with vanishing gradients."""
    architecture, *others = symptoms
    words = ["trainings" if architecture == "*" else f"{architecture} networks"]
    words += [known[word] for known, word in zip(_CONDITIONS[1:], others, strict=True) if word in known]
    return f"for {' '.join(words)}"


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
    if told.trust is not None and told.trust < _TRUSTED:
        said = (
            f"By the order of its trials, counts from elsewhere do not fit this search (probability {told.trust:.2f}): "
        )
        yield said + "chances rest on its own trials."
    elif told.trust is not None:
        yield f"By the order of its trials, counts from elsewhere fit this search with probability {told.trust:.2f}."
    if told.search.noise:  # that it is not known is a warning
        yield f"A gain counts above noise: sd {told.search.noise:.3g}, from {told.search.noise_from}."


def _taken(search: Search, trial: Trial, origin: Trial) -> Taken:
    names = dict.fromkeys([*origin.parameters, *trial.parameters])
    changed = tuple(
        (name, origin.parameters.get(name), trial.parameters.get(name))
        for name in names
        if repr(origin.parameters.get(name)) != repr(trial.parameters.get(name))
    )
    assert origin.score is not None
    if trial.has_score:
        gained = search.gain(trial) - search.gain(origin)
        outcome = "improved" if gained > search.margin else "worse" if gained < -search.margin else "within noise"
        outcome = "the same" if not gained else outcome
    else:
        outcome = "no score" if trial.state == "finished" else trial.state
    return Taken(trial, origin.number, changed, origin.score, outcome)


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
        notes=("before: the score of the trial that was changed. improved: by more than noise.",),
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
            one.trial.number, one.label, one.before, one.trial.score if one.trial.has_score else None, one.outcome
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
            {name: word for name, word in _symptoms(trial).items() if word != "unknown"},
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
