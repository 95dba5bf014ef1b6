"""KerasTuner: an oracle and a tuner that are the user's own and repair.

A tuner that is repaired stays the object that it was, of the class that it was: methods that KerasTuner documents for
overriding are put on the two objects (docs/decisions/0007). Its oracle proposes through the policy, and its trials are
watched; what isorun must remember lies beside each trial in the project folder (`keras_folders.py`).

KerasTuner writes its files in place, and a folder with half a file cannot be opened again: the tuner that is made on it
fails before isorun comes to it. A repaired search replaces them whole, and keeps beside each trial what its own file is
about to say (`mend`), so that it may be killed at any moment.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from isorun.diagnose import Trace, symptoms_of
from isorun.errors import InputError, IsorunError
from isorun.repair.bugs import stall_limit
from isorun.repair.engines.keras_folders import (
    BOOKKEEPING,
    NOTE,
    STATE,
    ProjectState,
    is_project,
    no_project,
    read_json,
    unreadable_trial,
)
from isorun.repair.policy import RepairPolicy, values_for
from isorun.repair.priorities import Proposal
from isorun.repair.searches import KEEP, Search, is_offered
from isorun.worker.watching import Watcher, watch

__all__ = ["RepairedOracle", "RepairedTuner", "attach", "check_tuner", "continue_search", "end_trial", "mend"]

_HALF: Final = ".half-written"
_ATTEMPTS: Final = 2
"""How often a trial may end the whole process before it is given up."""


class _Attachment:
    """What a repaired tuner and its oracle share: the folder, the policy, and the trial that is being trained."""

    def __init__(self, folder: Path, policy: RepairPolicy, pretrained: Any = None) -> None:
        self.folder = folder
        self.policy = policy
        self.names: dict[int, str] = {}
        self.running = ""
        self.watcher: Watcher | None = None
        self.offered: dict[str, list[str]] = {}
        self.answers: dict[str, str] = {}
        self.left_out: dict[str, str] = {}
        self.as_built: dict[str, str] = {}
        self.pretrained = pretrained
        self.longest: float | None = None
        self._notes: dict[str, dict[str, Any]] = {}

    def search(self, oracle: Any) -> Search:
        """The search as its oracle knows it."""
        states = {name: trial.get_state() for name, trial in oracle.trials.items()}
        for name, state in states.items():
            if name not in self._notes or state["status"] not in ("COMPLETED", "FAILED"):
                self._notes[name] = read_json(self._path(name)) or {}
        about = {"start_order": oracle.start_order, "hyperparameters": oracle.hyperparameters.get_config()}
        direction = getattr(oracle.objective, "direction", "min")
        state = ProjectState(self.folder.name, about, states, self._notes, direction=direction)
        self.names = {number: name for name, number in state.numbers.items()}
        return state.search()

    def note(self, trial_id: str, **told: Any) -> dict[str, Any]:
        """Remember more of a trial."""
        known = {**(read_json(self._path(trial_id)) or {}), **told}
        self._path(trial_id).parent.mkdir(parents=True, exist_ok=True)
        write_whole(self._path(trial_id), known)
        self._notes[trial_id] = known
        return known

    def is_proposed(self, trial_id: str) -> bool:
        """Whether a trial is isorun's own."""
        return "proposal" in (self._notes.get(trial_id) or {})

    def forget(self, trial_id: str) -> None:
        """Nothing was proposed for it, whatever a process that was killed had in mind."""
        self._path(trial_id).unlink(missing_ok=True)
        self._notes.pop(trial_id, None)

    def _path(self, trial_id: str) -> Path:
        return self.folder / f"trial_{trial_id}" / NOTE

    def begin(self, trial_id: str, state: Mapping[str, Any] | None = None) -> int:
        """A trial begins to train. How often it began before and never ended, because its process did."""
        before = int((read_json(self._path(trial_id)) or {}).get("began", 0))
        kept = {} if state is None else {STATE: state}
        self.note(trial_id, started=time.time(), began=before + 1, process=os.getpid(), **kept)
        self.running = trial_id
        return before

    def end(self, trial: Any, seconds: float) -> None:
        """A trial has ended, one way or another: keep what was seen in it."""
        watcher, self.watcher, self.running = self.watcher, None, ""
        told: dict[str, Any] = {"seconds": round(seconds, 3), "began": 0}
        if watcher is not None:
            watcher.stop()
            trace = Trace.of_rows(watcher.rows, parameters=trial.hyperparameters.values)
            told["symptoms"] = symptoms_of(trace)._asdict()
        if self.offered:
            told.update(offered=self.offered, answers=self.answers, left_out=self.left_out, as_built=self.as_built)
        self.note(trial.trial_id, **told)

    def built(self, hp: Any, model: Any) -> Any:
        """A model was built: with what isorun offers, and watched where a trial is about to train it."""
        if not (hasattr(model, "fit") and hasattr(model, "layers")):
            return model
        model = self._expanded(hp, model)
        if self.running:
            if self.watcher is not None:
                self.watcher.stop()
            self.watcher = watch(model)
        return model

    def _expanded(self, hp: Any, model: Any) -> Any:
        """What is offered is declared nowhere: it is no part of the engine's space, and a trial has it as a value."""
        from isorun.repair.expansion.keras import expand_model  # noqa: PLC0415 - an extra

        self.offered, self.answers = {}, {}

        def ask(name: str, choices: tuple[str, ...]) -> str:
            answer = hp.values.get(name, KEEP)
            self.offered[name] = list(choices)
            self.answers[name] = answer if answer in choices else KEEP
            return self.answers[name]

        own = [one.name for one in hp.space if not is_offered(one.name)]
        expanded = expand_model(model, ask, own, self.pretrained)
        self.left_out = dict(expanded.left_out)
        self.as_built = dict(expanded.as_built)
        return expanded.model


def write_whole(path: Path, document: Any) -> str:
    """Replace a file by another in one step. What it says now."""
    draft, text = path.with_name(f"{path.name}.{os.getpid()}.new"), json.dumps(document)
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)
    return text


class _SavedWhole(dict[str, Any]):
    """The trials of an oracle. Each of them replaces its file whole from the moment on that the oracle has it.

    KerasTuner makes a trial, gives it to its oracle, and then saves it: nothing else of it lies in between.
    """

    def __init__(self, trials: Mapping[str, Any]) -> None:
        super().__init__()
        for name, trial in trials.items():
            self[name] = trial

    def __setitem__(self, name: str, trial: Any) -> None:
        trial.save = lambda path: write_whole(Path(path), trial.get_state())
        super().__setitem__(name, trial)


class _InPlaceOf:
    """Public methods of an object of KerasTuner that are put in the place of its own, which they call."""

    hooks: tuple[str, ...] = ()

    def __init__(self, whose: Any, state: _Attachment) -> None:
        self.state = state
        self.own: dict[str, Callable[..., Any]] = {}
        for name in self.hooks:
            found = getattr(whose, name)
            before = getattr(found, "__self__", None)  # an object may be attached again
            self.own[name] = before.own[name] if isinstance(before, _InPlaceOf) else found
            setattr(whose, name, getattr(self, name))
        whose.isorun = state


class RepairedOracle(_InPlaceOf):
    """What the user's oracle does otherwise: it proposes through the policy where it is isorun's turn."""

    hooks = ("populate_space", "score_trial", "end_trial", "save")

    def __init__(self, oracle: Any, state: _Attachment) -> None:
        super().__init__(oracle, state)
        self.oracle = oracle
        oracle.trials = _SavedWhole(oracle.trials)

    def populate_space(self, trial_id: str) -> dict[str, Any]:
        """The values of the next trial, as the policy or the user's oracle says."""
        state, oracle = self.state, self.oracle
        left = self._left_behind(trial_id)
        if left is not None:
            return {"status": "RUNNING", "values": left}
        search = state.search(oracle)
        state.longest = stall_limit(search, state.policy.limits)
        number, is_hyperband = max(state.names, default=-1) + 1, self._is_hyperband()
        plan = state.policy.plan(search, number)
        if plan is None or (oracle.max_trials is None and not is_hyperband and number % 2):
            # where nothing but the engine's own strategy ends the search, it keeps every other trial
            state.forget(trial_id)
            return dict(self.own["populate_space"](trial_id))
        engine = self.own["populate_space"](trial_id) if is_hyperband else {}
        if engine and (engine["status"] != "RUNNING" or "tuner/trial_id" in engine["values"]):
            state.forget(trial_id)
            return dict(engine)
        state.note(trial_id, proposal={**plan.to_json(), "trial": state.names[plan.origin]})
        return {"status": "RUNNING", "values": self._planned(search, plan, engine.get("values") or {})}

    def _left_behind(self, trial_id: str) -> dict[str, Any] | None:
        """The values of a trial that was written down and never run, because its process was killed in between."""
        ongoing = {one.trial_id for one in self.oracle.ongoing_trials.values()}
        for one in self.oracle.trials.values():
            if one.status == "RUNNING" and one.trial_id not in ongoing:
                one.status, one.message = "FAILED", f"its process ended: it is tried again as trial {trial_id}"
                folder = self.state.folder / f"trial_{one.trial_id}"
                write_whole(folder / "trial.json", one.get_state())
                proposal = (read_json(folder / NOTE) or {}).get("proposal")
                self.state.forget(trial_id)
                if proposal:
                    self.state.note(trial_id, proposal=proposal)
                return dict(one.hyperparameters.values)
        return None

    def _is_hyperband(self) -> bool:
        from keras_tuner.oracles import HyperbandOracle  # noqa: PLC0415 - an extra

        return isinstance(self.oracle, HyperbandOracle)

    def _planned(self, search: Search, plan: Proposal, engine: Mapping[str, Any]) -> dict[str, Any]:
        """The plan's values of parameters that are active in it. Hyperband says how long it is trained."""
        from keras_tuner import HyperParameters  # noqa: PLC0415 - an extra

        chosen = HyperParameters()
        for one in self.oracle.hyperparameters.space:
            chosen.merge([one])
            if chosen.is_active(one):
                parameter = search.parameters.get(one.name)
                found = values_for(plan, parameter) if parameter is not None else ()
                given = plan.action.parameters.get(one.name, one.default)
                chosen.values[one.name] = found[0] if found else given
        offered = {name: value for name, value in plan.action.parameters.items() if is_offered(name)}
        kept = {name: value for name, value in engine.items() if name.startswith(BOOKKEEPING)}
        return {**chosen.values, **offered, **kept}

    def score_trial(self, trial: Any) -> None:
        """As the user's oracle does. The next that KerasTuner does is to write the trial down, in place."""
        self.own["score_trial"](trial)
        self.state.note(trial.trial_id, **{STATE: trial.get_state()})

    def end_trial(self, trial: Any) -> None:
        """As the user's oracle does. That trials fail one after another ends a search in which none succeeded."""
        from keras_tuner import Oracle  # noqa: PLC0415 - an extra
        from keras_tuner.oracles import GridSearchOracle  # noqa: PLC0415 - an extra

        if any(one.status == "COMPLETED" for one in self.oracle.trials.values()):
            self.oracle.max_consecutive_failed_trials = None
        if trial.status != "COMPLETED":
            self.state.note(trial.trial_id, **{STATE: trial.get_state()})
        if isinstance(self.oracle, GridSearchOracle) and self.state.is_proposed(trial.trial_id):
            Oracle.end_trial(self.oracle, trial)  # a grid goes on from each of its own points, and this is none
        else:
            self.own["end_trial"](trial)

    def save(self) -> None:
        """The same file as the user's oracle writes, at once."""
        write_whole(self.state.folder / "oracle.json", self.oracle.get_state())


class RepairedTuner(_InPlaceOf):
    """What the user's tuner does otherwise: its trials are watched, and one that hangs is ended."""

    hooks = ("run_trial", "save")

    def __init__(self, tuner: Any, state: _Attachment) -> None:
        super().__init__(tuner, state)
        self.tuner = tuner

    def run_trial(self, trial: Any, *args: Any, **kwargs: Any) -> Any:
        """As the user's tuner does, with what is seen kept beside the trial."""
        from keras_tuner.errors import FailedTrialError  # noqa: PLC0415 - an extra

        before = self.state.begin(trial.trial_id, trial.get_state())
        began = time.monotonic()
        try:
            if before >= _ATTEMPTS:
                raise FailedTrialError(f"the process ended in this trial {before} times: it is not tried again")
            if self.state.longest is not None and _takes_callbacks(self.tuner):
                kwargs["callbacks"] = [*(kwargs.get("callbacks") or ()), _end_after(self.state.longest)]
            return self.own["run_trial"](trial, *args, **kwargs)
        finally:
            self.state.end(trial, time.monotonic() - began)

    def save(self) -> None:
        """The same files as the user's tuner writes, each at once."""
        from keras_tuner import Oracle  # noqa: PLC0415 - an extra

        if isinstance(self.tuner.oracle, Oracle):  # not that of another process
            self.tuner.oracle.save()
        write_whole(self.state.folder / f"{self.tuner.tuner_id}.json", self.tuner.get_state())


def _takes_callbacks(tuner: Any) -> bool:
    """Whether the trials of a tuner are run by KerasTuner itself, which gives them to `fit`, and not by the user."""
    from keras_tuner import Tuner  # noqa: PLC0415 - an extra

    runs = next(one for one in type(tuner).__mro__ if "run_trial" in vars(one))
    return isinstance(tuner, Tuner) and runs.__module__.startswith(("keras_tuner.", "autokeras."))


def _end_after(seconds: float) -> Any:
    """A callback that ends a training that takes far longer than all others did."""
    import keras  # noqa: PLC0415 - an extra
    from keras_tuner.errors import FailedTrialError  # noqa: PLC0415 - an extra

    class EndStalledTrial(keras.callbacks.Callback):  # type: ignore[misc]  # mypy does not look into Keras
        began = 0.0

        def on_train_begin(self, logs: Any = None) -> None:  # noqa: ARG002 - Keras gives it
            self.began = time.monotonic()

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002 - Keras gives them
            if time.monotonic() - self.began > seconds:
                raise FailedTrialError(f"stalled: it took longer than {seconds:.3g} s, far longer than others did")

    return EndStalledTrial()


class _Build:
    """A hypermodel's own build function, whose models go through the attachment."""

    def __init__(self, own: Any, attachment: _Attachment) -> None:
        self.own = own
        self.attachment = attachment

    def __call__(self, hp: Any, *args: Any, **kwargs: Any) -> Any:
        return self.attachment.built(hp, self.own(hp, *args, **kwargs))


def attach(tuner: Any, policy: RepairPolicy, pretrained: Any = None) -> Any:
    """The same tuner, repairing from now on. Trials that lie in its folder and that it does not know are its own."""
    from keras_tuner import Oracle  # noqa: PLC0415 - an extra

    folder = Path(tuner.project_dir)
    attachment = _Attachment(folder, policy, pretrained)
    RepairedTuner(tuner, attachment)
    if tuner.hypermodel is not None:
        _wrap(tuner.hypermodel, attachment)
    if isinstance(tuner.oracle, Oracle):  # a worker of a distributed search asks the oracle of another process
        RepairedOracle(tuner.oracle, attachment)
        _adopt(tuner.oracle, folder)
        _leave_out_what_is_offered(tuner.oracle)
        tuner.save()
    return tuner


def _wrap(hypermodel: Any, attachment: _Attachment) -> None:
    """Let its models go through the attachment, once. One that was expanded by hand builds what it was made around."""
    from isorun.repair.expansion.keras import ExpandedHyperModel  # noqa: PLC0415 - an extra

    own = hypermodel.build.own if isinstance(hypermodel.build, _Build) else hypermodel.build
    if isinstance(hypermodel, ExpandedHyperModel):
        own = getattr(hypermodel.hypermodel, "build", hypermodel.hypermodel)
        if attachment.pretrained is None:
            attachment.pretrained = hypermodel.pretrained
    hypermodel.build = _Build(own, attachment)


def _leave_out_what_is_offered(oracle: Any) -> None:
    from keras_tuner import HyperParameters  # noqa: PLC0415 - an extra

    config = oracle.hyperparameters.get_config()
    config["space"] = [one for one in config["space"] if not is_offered(one["config"]["name"])]
    config["values"] = {name: value for name, value in config["values"].items() if not is_offered(name)}
    oracle.hyperparameters = HyperParameters.from_config(config)


def _adopt(oracle: Any, folder: Path) -> None:
    """Take over the trials of a folder whose oracle was not written down, or only half."""
    from keras_tuner.engine.trial import Trial as KerasTrial  # noqa: PLC0415 - an extra

    for path in sorted(folder.glob("trial_*/trial.json")):
        name = path.parent.name.removeprefix("trial_")
        if name not in oracle.trials:
            _mend_trial(path)
            found = KerasTrial.load(str(path))
            oracle.trials[name] = found
            oracle.start_order.append(name)
            if found.status in ("COMPLETED", "FAILED"):
                oracle.end_order.append(name)
            oracle.update_space(found.hyperparameters)


def mend(folder: Path) -> None:
    """Make a folder with half-written files one that KerasTuner opens. What was half-written is set aside."""
    for path in folder.glob("trial_*/trial.json"):
        _mend_trial(path)
    if (
        read_json(folder / "oracle.json") is None
    ):  # without the tuner's own file, KerasTuner begins with an empty oracle
        for path in (*folder.glob("oracle.json"), *folder.glob("tuner*.json")):
            path.replace(path.with_name(path.name + _HALF))
    for path in folder.glob("tuner*.json"):
        if read_json(path) is None:
            write_whole(path, {})


def _mend_trial(path: Path) -> None:
    """Half a trial is written anew from what was kept beside it; where nothing was, it never began to train."""
    if read_json(path) is None:
        name = path.parent.name.removeprefix("trial_")
        note = read_json(path.with_name(NOTE)) or {}
        path.replace(path.with_name(path.name + _HALF))
        empty: dict[str, Any] = {"hyperparameters": {"space": [], "values": {}}, "metrics": {"metrics": {}}}
        write_whole(path, {**empty, "score": None, "best_step": 0, **unreadable_trial(name, {}, note)})


def end_trial(folder: Path, number: int, why: str) -> bool:
    """Write down that a trial failed whose process is gone, as KerasTuner does when one fails."""
    mend(folder)
    oracle = read_json(folder / "oracle.json") or {}
    for path in folder.glob("trial_*/trial.json"):
        name = path.parent.name.removeprefix("trial_")
        if name.isdecimal() and int(name) == number:
            write_whole(path, {**(read_json(path) or {}), "status": "FAILED", "message": why})
            ongoing = {whose: one for whose, one in oracle.get("ongoing_trials", {}).items() if one != name}
            ended = [*oracle.get("end_order", ()), name]
            if oracle:
                write_whole(folder / "oracle.json", {**oracle, "ongoing_trials": ongoing, "end_order": ended})
            return True
    return False


def continue_search(folder: Path, make: Any, trials: int, policy: RepairPolicy) -> None:
    """Go on with a folder. make: the user's function that gives his tuner on it, and what its `search` is given."""
    if not is_project(folder):
        raise no_project(folder)
    mend(folder)
    made = _asked("the function of --tuner", make)
    if not (isinstance(made, tuple) and len(made) == 2 and isinstance(made[1], Mapping)):
        raise InputError(
            "the function of --tuner returns something else than a tuner and what its search is given",
            found=repr(made)[:200],
            allowed='return tuner, {"x": x, "y": y, "epochs": 5, "validation_data": (x_val, y_val)}',
        )
    tuner, arguments = made
    check_tuner(tuner)
    if Path(tuner.project_dir).resolve() != folder.resolve():
        raise InputError(
            "the tuner works in another folder",
            found=str(tuner.project_dir),
            allowed=f"directory={str(folder.parent)!r}, project_name={folder.name!r}",
        )
    attach(tuner, policy)
    tuner.oracle.max_trials = len(tuner.oracle.trials) + trials
    _asked("the search", lambda: tuner.search(**arguments))


def _asked(what: str, function: Callable[[], Any]) -> Any:
    """What the user's code answers, or how it ended in a sentence."""
    try:
        return function()
    except (IsorunError, ModuleNotFoundError):
        raise
    except Exception as error:  # whatever it may raise
        lines = [line for line in str(error).splitlines() if line.strip()]
        said = f"{type(error).__name__}: {lines[-1].strip() if lines else 'without a word'}"
        raise InputError(f"{what} ended with an error", found=said[:300]) from error


def check_tuner(tuner: Any) -> None:
    """Refuse what is no tuner, and a KerasTuner that lacks what is put in the place of its own."""
    import keras_tuner  # noqa: PLC0415 - an extra
    from keras_tuner.engine.base_tuner import BaseTuner  # noqa: PLC0415 - an extra

    wanted = {keras_tuner.Oracle: RepairedOracle.hooks, BaseTuner: RepairedTuner.hooks}
    lacks = [f"{one.__name__}.{name}" for one, names in wanted.items() for name in names if not hasattr(one, name)]
    if lacks:
        raise InputError(
            "this version of KerasTuner cannot be repaired",
            found=f"keras-tuner {keras_tuner.__version__} without {', '.join(lacks)}",
            hint="pip install 'keras-tuner==1.4.*'; isorun repair keras-tuner:FOLDER examines its folders all the same",
        )

    if not isinstance(tuner, BaseTuner):
        raise InputError(
            "isorun.repair.keras_tuner goes around a tuner",
            found=repr(tuner)[:200],
            allowed="a tuner of KerasTuner, such as keras_tuner.RandomSearch(build, ...)",
        )
