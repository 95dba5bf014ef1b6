"""What is said of a search: its bugs, the symptoms of its best and latest trials, and what to try next, and why."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from isorun import showing
from isorun.analysis import Told
from isorun.repair.actions import unknown_parameters
from isorun.repair.bugs import Bug, Limits, find_bugs
from isorun.repair.priorities import Prior, RankedAction, ranked, trust_in
from isorun.repair.searches import SYMPTOMS, Search, Trial
from isorun.report import UNKNOWN, Column, Listing, Table, View, count, significant

__all__ = ["SearchDiagnosis", "diagnose"]

_LATEST: Final = 5
_SHOWN: Final = 8


@dataclass(frozen=True, slots=True)
class SearchDiagnosis(Told):
    """trust: the probability that the prior speaks of this search; None without a prior. actions: the best first."""

    told_as: ClassVar[str] = "search-diagnosis"

    search: Search
    bugs: tuple[Bug, ...]
    actions: tuple[RankedAction, ...]
    trust: float | None
    limits: Limits

    @property
    def latest(self) -> tuple[Trial, ...]:
        """The trials that ended last."""
        return tuple(trial for trial in self.search.trials if trial.is_over)[-_LATEST:]

    @property
    def states(self) -> dict[str, int]:
        """How many trials are in each state."""
        return dict(Counter(trial.state for trial in self.search.trials))

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
            "noise": self.search.noise or None,
            "bugs": [bug.to_json() for bug in self.bugs],
            "symptoms": {
                "best": None if best is None else {"trial": best.number, **_symptoms(best)},
                "latest": [{"trial": trial.number, **_symptoms(trial)} for trial in self.latest],
            },
            "trust_in_prior": self.trust,
            "actions": [_action_json(one) for one in self.actions],
            "unknown_parameters": list(unknown_parameters(self.search)),
        }

    def view(self) -> View:
        """For people."""
        tables = [_action_table(self)] if self.actions else []
        tables += [_symptom_table(self)] if self.latest else []
        unknown = unknown_parameters(self.search)
        listing = Listing("Parameters whose meaning is not known", tuple(unknown))
        return View(tuple(self._verdict()), tuple(tables), listings=(listing,) if unknown else ())

    def _verdict(self) -> list[str]:
        best, name = self.search.best, f"{self.search.engine} study {self.search.name}"
        states = ", ".join(f"{number} {state}" for state, number in self.states.items())
        counted = f"{count(len(self.search.trials), 'trial')} ({states})" if states else "no trial"
        if best is None:
            return [
                f"{name}: {counted}; no trial has finished with a score yet, so nothing can be said of it.",
                *self._bugs(),
            ]
        score = significant(best.score, 5)
        return [f"{name}: {counted}; the best score is {score} (trial {best.number}).", *self._bugs()]

    def _bugs(self) -> list[str]:
        said = [f"{bug.kind}, since trial {bug.since_trial}: {bug.evidence}." for bug in self.bugs]
        return said or ["No bug is found."]


showing.VIEWS[SearchDiagnosis.told_as] = SearchDiagnosis.view
showing.install()


def diagnose(
    search: Search,
    prior: Prior | None = None,
    limits: Limits = Limits(),  # noqa: B008
    *,
    now: float | None = None,
    seed: int = 0,
) -> SearchDiagnosis:
    """All that can be said of a search as it stands. The same search gives the same answer."""
    at = time.time() if now is None else now
    rng = np.random.default_rng(seed)
    trust = trust_in(prior, search) if prior is not None else None
    return SearchDiagnosis(search, find_bugs(search, limits, at), tuple(ranked(search, prior, rng)), trust, limits)


def _symptoms(trial: Trial) -> dict[str, str]:
    return dict(zip(SYMPTOMS, trial.symptoms, strict=True))


def _trial_json(trial: Trial) -> dict[str, Any]:
    return {"trial": trial.number, "score": trial.score, "parameters": dict(trial.parameters)}


def _action_json(one: RankedAction) -> dict[str, Any]:
    edit = one.action.edits[0]
    return {
        "parameter": edit.parameter,
        "from": edit.before,
        "to": edit.value,
        "probability": round(one.probability, 4),
        "tries": one.tries,
        "improved": one.improved,
        "why": why(one),
    }


def why(one: RankedAction) -> str:
    """Where the probability of an action comes from."""
    said = []
    if one.prior_tries:
        share = f"{100 * one.prior_improved / one.prior_tries:.0f} %"
        said.append(f"elsewhere it improved {share} of {one.prior_tries:,.0f} trainings")
    if one.tries:
        said.append(f"here {one.improved} of {one.tries}")
    return "; ".join(said) or "not tried before: as similar changes"


def _action_table(told: SearchDiagnosis) -> Table:
    rows = []
    for one in told.actions[:_SHOWN]:
        edit = one.action.edits[0]
        value = f"{edit.value:.4g}" if isinstance(edit.value, float) else str(edit.value)
        rows.append((edit.parameter, edit.before, value, f"{100 * one.probability:.0f}", why(one)))
    return Table(
        "actions",
        "What to change in the best trial, the most promising first",
        (Column("parameter", key=True), Column("from"), Column("to"), Column("chance to improve", "%"), Column("why")),
        tuple(rows),
        notes=tuple(_notes(told)),
    )


def _notes(told: SearchDiagnosis) -> Iterator[str]:
    if told.trust is not None:
        yield f"By the order of its trials, counts from elsewhere fit this search with probability {told.trust:.2f}."
    if told.search.noise:
        yield f"A gain counts above noise: sd {told.search.noise:.3g}, from {told.search.noise_from}."
    else:
        yield "How much a score varies between seeds is not known (no trial was repeated): any gain counts."


def _symptom_table(told: SearchDiagnosis) -> Table:
    best = told.search.best
    trials = [*([best] if best is not None else []), *(trial for trial in told.latest if trial is not best)]
    rows = tuple(
        (
            f"{trial.number}{' (best)' if trial is best else ''}",
            trial.state,
            UNKNOWN if trial.score is None else significant(trial.score, 5),
            *(UNKNOWN if symptom == "unknown" else symptom for symptom in trial.symptoms),
        )
        for trial in trials
    )
    titles = ("state", "score", *SYMPTOMS)
    return Table(
        "symptoms",
        "The best and the latest trials",
        (Column("trial", key=True), *(Column(title) for title in titles)),
        rows,
    )
