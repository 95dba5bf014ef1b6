"""Engines: how a search is read, and how the next trial is proposed. A file an engine, public APIs only.

Here is what a user of each does next, in the words of that engine.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from isorun.errors import MissingExtra
from isorun.repair.bugs import Limits
from isorun.repair.searches import Search

__all__ = ["NextSteps", "needing", "next_steps", "steps_of_study"]

_NEEDS: Final = {"optuna": {"optuna"}, "keras-tuner": {"keras_tuner", "keras", "six"}, "autokeras": {"autokeras"}}
"""Modules without which an engine cannot be imported, by its extra; `six` is one that KerasTuner does not declare."""
_MORE: Final = 15
_FOLDERS: Final = "keras-tuner"


@contextmanager
def needing(extra: str, purpose: str) -> Iterator[None]:
    """Around what imports an engine: one that is not installed is named with its extra."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in _NEEDS[extra]:
            raise
        raise MissingExtra(extra, extra, purpose) from None


@dataclass(frozen=True, slots=True)
class NextSteps:
    """What can be done about a search, as whoever runs it does it.

    go_on: the search goes on, repaired. again: so that trials are tried again that are marked running and have no
    process. end: a trial that takes too long is ended. widen: there is more to change. watch: symptoms are seen.
    repeat: noise is known. time: trials have durations. look: what became of a trial. is_repaired: whether isorun
    proposes trials when the search goes on.
    """

    go_on: str
    again: str
    end: str
    widen: str
    watch: str
    repeat: str
    time: str
    look: str
    is_repaired: bool = True


def next_steps(search: Search, limits: Limits, where: str) -> NextSteps:
    """What a user of this engine does next. where: what `isorun repair` finds the search by."""
    if search.engine == _FOLDERS:
        go_on = _command(where, "", limits, "--continue", str(_MORE), "--tuner", "train.py:tuner")
        return NextSteps(
            go_on=go_on,
            again=go_on,  # this engine tries again what was running, whoever goes on
            end="isorun.repair.keras_tuner(tuner) ends such a trial by itself, between two batches",
            widen=f"give the function that builds the model more to choose (hp.Choice, hp.Float, …); then {go_on}",
            watch="isorun.repair.keras_tuner(tuner) watches every model that the tuner trains",
            repeat="try the best configuration three times with seeds of their own",
            time="isorun.repair.keras_tuner(tuner) keeps the times of its trials",
            look="trial.json in its folder has all that is kept of a trial",
        )
    more = ("--continue", str(_MORE), "--objective", "train.py:objective")
    go_on = _command(where, search.name, limits, *more)
    return NextSteps(
        go_on=go_on,
        again=_command(where, search.name, limits, *more, "--requeue"),
        end="raise optuna.TrialPruned() in the objective when a trial has taken ten times as long as the median",
        widen=f"isorun.repair.expand(trial, model, optimizer) in the objective offers more to change; then {go_on}",
        watch="watcher = isorun.watch(model) before the training, isorun.repair.note(trial, watcher) after it",
        repeat="try the best configuration three times with seeds of their own",
        time="run trials with study.optimize, or end them with study.tell at once",
        look="study.trials[NUMBER] in Python has all that is kept of a trial",
    )


def steps_of_study(where: str, store: str, *, has_all: bool, is_repaired: bool = True) -> NextSteps:
    """What is done next where isorun runs the search. has_all: as many trials were proposed as the study asks for.

    is_repaired: whether the study lets isorun propose trials of its own.
    """
    named = shlex.quote(where) + (f" --store {shlex.quote(store)}" if store else "")
    run = f"isorun run {named}"
    return NextSteps(
        go_on=f"raise the trials of its search, then: {run}" if has_all else run,
        again=run,  # it leaves alone what another process makes, and makes again what has none
        end=f"{run} --time-limit TIME, or time_limit in the study, ends a run that takes longer",
        widen=f"widen the space of its search, which begins one anew, then: {run}",
        watch="isorun.watch(model) in the training, before it begins",
        repeat=f"repeats = 3 in its search trains again what looks better; more trials, then: {run}",
        time=f"isorun doctor {named}",
        look=f"isorun doctor {named}",
        is_repaired=is_repaired,
    )


def _command(where: str, name: str, limits: Limits, *more: str) -> str:
    given = [("--target", limits.target), ("--time-limit", limits.time_limit), ("--patience", limits.patience)]
    asked = [word for option, value in given if value is not None for word in (option, f"{value:.12g}")]
    named = ["--study", name] if name else []
    return f"isorun repair {shlex.join([where]) if where else 'STORAGE'} {shlex.join([*named, *asked, *more])}"
