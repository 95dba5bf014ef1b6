"""What is known of a search as it stands: its bugs, what was changed and what that brought, what to try next, warnings.

Every warning has the next command. `search_page.py` says how people see it.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from isorun import showing
from isorun.analysis import Told
from isorun.analysis.evidence import Condition
from isorun.repair.actions import unknown_parameters
from isorun.repair.bugs import Bug, Limits, failed_silently, find_bugs, stalled_trials
from isorun.repair.engines import NextSteps, next_steps
from isorun.repair.priorities import Prior, RankedAction, Scope, ranked, trust_in
from isorun.repair.racing import RaceVerdict
from isorun.repair.searches import SYMPTOMS, Search, Trial, Value
from isorun.report import count

if TYPE_CHECKING:
    from isorun.report import View

__all__ = ["TRUSTED", "Racing", "SearchDiagnosis", "Taken", "diagnose", "why"]

TRUSTED: Final = 0.5
"""From this trust on, counts from elsewhere are what a chance mostly comes from, and are named as its reason."""
_LATEST: Final = 5
_IN_VAIN: Final = 10
_GO_ON_BY_CHANGES: Final = ("performance", "ineffective-search", "duplicates")
_CONDITIONS: Final = (
    {"slow": "that converge slowly", "oscillating": "that oscillate", "normal": "that converge"},
    {
        "vanishing": "with vanishing gradients",
        "exploding": "with exploding gradients",
        "dying": "with dying ReLUs",
        "normal": "with sound gradients",
    },
    {"exploding": "whose weights explode", "normal": "whose weights stay finite"},
)
"""The words for C, G and W in a condition; A is its subject."""


@dataclass(frozen=True, slots=True)
class Taken:
    """An action that isorun took. edits: parameter, from, to. before: the score of the trial that it changed.

    outcome: improved or worse (`Search.is_better`), within noise (also from one training that got nowhere to another),
    the same, no score, or the state of a trial that has not finished.
    """

    trial: Trial
    origin: int
    edits: tuple[tuple[str, Value, Value], ...]
    before: float
    outcome: str

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

    error_rate: that any candidate that is no better was called better, over all trials. copies: what is said of repeats
    that are copies of one draw.
    """

    races: tuple[tuple[int, int, RaceVerdict], ...]
    extra: int
    error_rate: float
    copies: tuple[Condition, ...] = ()

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
        copies = self.racing.copies if self.racing is not None else ()
        return (*_bug_warnings(self), *copies, *_other_warnings(self))

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
            "noise": self.search.noise if self.search.noise or self.search.noise_from else None,
            "noise_from": self.search.noise_from or None,
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
        from isorun.repair.search_page import search_view  # noqa: PLC0415 - loads when one is shown

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


def _bug_warnings(told: SearchDiagnosis) -> Iterator[Condition]:
    running = {trial.number for trial in told.search.trials if trial.state == "running"}
    is_told = any(bug.kind == "exhausted-space" for bug in told.bugs)
    is_tried = not told.actions and (is_told or not told.search.space)
    for bug in told.bugs:
        if is_tried and is_told and bug.kind in _GO_ON_BY_CHANGES:
            continue  # one sentence says for all of them that there is nothing to change
        step = told.steps.go_on
        if bug.kind == "stalled-trial" and bug.since_trial in running:
            message = f"trial {bug.since_trial} can be tried again once its process is gone"
            step = told.steps.again
        elif bug.kind == "stalled-trial":
            message = "a trial that takes this long should be ended, so that the others get the time"
            step = told.steps.end
        elif bug.kind == "repeated-failure":
            message = "the same failure comes again: mend it, or leave the value out of the space; then go on"
        elif bug.kind == "exhausted-space" or is_tried:
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
        said = f"{count(len(without), 'trial')} ended without a number as score (NaN, infinite or none), "
        said += f"first trial {without[0]}"
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
        known = "by convergence alone" if any(map(_has_convergence, over)) else "without symptoms"
        said = f"no gradients were seen in {blind:,} of {count(len(over), 'training')}: actions are chosen {known}"
        yield Condition("symptoms-unknown", said, told.steps.watch)
    if len(search.scored) > 1 and (search.is_noise_borrowed or not (search.noise or search.noise_from)):
        said = "how much a score varies between seeds is not known (no trial was repeated enough): "
        said += "any gain counts" if not search.noise else "for choosing, the noise of other trainings stands for it"
        yield Condition("noise-unknown", said, told.steps.repeat)
    untimed = sum(trial.seconds is None and trial.state != "failed" for trial in over)
    if untimed:
        said = f"{untimed:,} of {count(len(over), 'trial')} have no duration: what stalls cannot be told of them"
        yield Condition("no-times", said, told.steps.time)
    yield from _unfinished(told)


def _has_convergence(trial: Trial) -> bool:
    return trial.symptoms.convergence != "unknown"


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
    if one.prior_tries and (trust or 0.0) >= TRUSTED:
        counts = f"{one.prior_improved:,.0f} of {one.prior_tries:,.0f}"
        said.append(f"{_known_by(one.known_by)} it improved {counts} trainings elsewhere")
    if one.tries:
        pairs = "pair of trials" if one.tries == 1 else "pairs of trials"
        said.append(f"{'' if said else 'it improved '}{one.improved:,} of {one.tries:,} {pairs} here")
    return "; ".join(said) or "no trials here differ in this alone: as changes in general"


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
    words += [known[word] for known, word in zip(_CONDITIONS, others, strict=True) if word in known]
    return f"for {' '.join(words)}"


def _taken(search: Search, trial: Trial, origin: Trial) -> Taken:
    names = dict.fromkeys([*origin.parameters, *trial.parameters])
    changed = tuple(
        (name, origin.parameters.get(name), trial.parameters.get(name))
        for name in names
        if repr(origin.parameters.get(name)) != repr(trial.parameters.get(name))
    )
    assert origin.score is not None
    if trial.has_score:
        improved, worse = search.is_better(trial, origin), search.is_better(origin, trial)
        alike = "the same" if trial.score == origin.score else "within noise"
        outcome = "improved" if improved else "worse" if worse else alike
    else:
        outcome = "no score" if trial.state == "finished" else trial.state
    return Taken(trial, origin.number, changed, origin.score, outcome)
