"""Project folders of KerasTuner, running, finished or killed, as searches: from their JSON alone.

Nothing is imported, unpickled or written. A file that is half-written is the file of a trial that failed, and what
isorun remembers lies beside each trial (`trial_07/isorun.json`): the proposal, when it began, its symptoms, what was
offered.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from isorun.diagnose import Symptoms, Trace, symptoms_of
from isorun.errors import InputError
from isorun.repair.bugs import Limits
from isorun.repair.engines import MORE, AbstractEngine, NextSteps, command, needing
from isorun.repair.searches import (
    UNKNOWN_SYMPTOMS,
    Parameter,
    Search,
    State,
    Trial,
    is_offered,
    not_offered,
    with_kept,
)

if TYPE_CHECKING:
    from isorun.repair.policy import RepairPolicy

__all__ = [
    "BOOKKEEPING",
    "NOTE",
    "STATE",
    "KerasTunerFolder",
    "ProjectState",
    "is_project",
    "no_project",
    "read_json",
    "read_project",
    "unreadable_trial",
]

BOOKKEEPING: Final = "tuner/"
"""What the names of values begin with that KerasTuner keeps for itself."""
NOTE: Final = "isorun.json"
STATE: Final = "state"
"""What a note calls the state of its trial as KerasTuner was about to write it."""
_EPOCHS: Final = "tuner/epochs"
_STATES: Final[Mapping[str, State]] = {
    "COMPLETED": "finished",
    "FAILED": "failed",
    "INVALID": "waiting",
    "RUNNING": "running",
}
_MOST_VALUES: Final = 64
_PLAIN: Final = (str, int, float, type(None))
"""What values can be: KerasTuner has no others."""


class KerasTunerFolder(AbstractEngine):
    """A project folder of KerasTuner, which is one search. Nothing but JSON is read to examine it."""

    name = "keras-tuner"
    location = "keras-tuner:FOLDER"
    function_option = "--tuner"
    is_one_search = True

    @property
    def folder(self) -> Path:
        """Where it lies; who names a file of it means the folder."""
        path = Path(self.where.partition(":")[2])
        return path.parent if path.name == "oracle.json" else path

    def names(self) -> Sequence[str]:
        """The project's name."""
        if not is_project(self.folder):
            raise no_project(self.folder)
        return (self.folder.name,)

    def read(self, name: str) -> Search:  # noqa: ARG002 - a folder is one search
        """The project as it stands."""
        return read_project(self.folder)

    def go_on(self, name: str, function: Callable[..., Any], trials: int, policy: RepairPolicy, *, again: bool) -> None:  # noqa: ARG002 - as above; KerasTuner itself tries again what was running
        """More trials of the tuner that the user's function gives."""
        with needing("keras-tuner", "going on with a KerasTuner search"):
            from isorun.repair.engines.keras_tuner import continue_search  # noqa: PLC0415 - an extra

            continue_search(self.folder, function, trials, policy)

    def give_up(self, name: str, number: int, why: str) -> bool:  # noqa: ARG002 - as above
        """By the files alone: no tuner has the folder open then, and the next one reads them."""
        from isorun.repair.engines.keras_tuner import end_trial  # noqa: PLC0415 - seldom needed

        return end_trial(self.folder, number, why)

    def steps(self, search: Search, limits: Limits) -> NextSteps:  # noqa: ARG002 - as above
        """By a tuner of the user's."""
        go_on = command(self.where, "", limits, *MORE, "--tuner", "train.py:tuner")
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


def read_project(folder: Path) -> Search:
    """The search that a project folder holds, as it stands: running, finished, killed, or with half-written files."""
    if not is_project(folder):
        raise no_project(folder)
    oracle = read_json(folder / "oracle.json") or {}
    states, notes = {}, {}
    for path in folder.glob("trial_*/trial.json"):
        name = path.parent.name.removeprefix("trial_")
        notes[name] = read_json(path.with_name(NOTE)) or {}
        states[name] = read_json(path) or unreadable_trial(name, oracle, notes[name])
    ends = {name: (folder / f"trial_{name}" / "trial.json").stat().st_mtime for name in states}
    return ProjectState(folder.name, oracle, states, notes, ends).search()


def is_project(folder: Path) -> bool:
    """Whether a search of KerasTuner lies in a folder."""
    return (folder / "oracle.json").is_file() or any(folder.glob("trial_*/trial.json"))


def no_project(folder: Path) -> InputError:
    """What is said of a folder that is none: those that are."""
    within = folder if folder.is_dir() else folder.parent
    beside = sorted(one for one in within.glob("*") if one.is_dir() and is_project(one)) if within.is_dir() else []
    return InputError(
        f"{folder} is not there" if not folder.is_dir() else f"{folder} is no project of KerasTuner",
        found=f"projects in {within}: {', '.join(one.name for one in beside[:20]) or 'none'}",
        allowed="the folder that holds oracle.json: directory/project_name of the tuner",
        hint=f"isorun repair keras-tuner:{beside[0]}" if beside else "",
    )


def read_json(path: Path) -> dict[str, Any] | None:
    """What a file holds; None where it is missing, half-written, nested too deep, or no file that ends (a pipe)."""
    try:
        found = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def unreadable_trial(name: str, oracle: Mapping[str, Any], note: Mapping[str, Any]) -> dict[str, Any]:
    """The state of a trial whose file cannot be read: as isorun kept it, else what the oracle knows of it."""
    kept = note.get(STATE)
    if isinstance(kept, Mapping) and kept.get("trial_id") == name:
        is_void = kept.get("status") == "COMPLETED" and _number(kept.get("score")) is None
        return {**kept, "status": "FAILED", "message": "the score is not a number"} if is_void else dict(kept)
    ongoing = oracle.get("ongoing_trials")
    runs = isinstance(ongoing, Mapping) and name in ongoing.values()
    return {"trial_id": name, "status": "RUNNING" if runs else "FAILED", "message": "its trial.json is half-written"}


@dataclass(frozen=True)
class ProjectState:
    """What KerasTuner and isorun keep of a search.

    oracle: oracle.json. trials, notes: trial.json and isorun.json by the name of the trial. ends: when a trial's file
    was written last. direction: of the objective ("min", "max"), where it is known.
    """

    name: str
    oracle: Mapping[str, Any]
    trials: Mapping[str, Mapping[str, Any]]
    notes: Mapping[str, Mapping[str, Any]]
    ends: Mapping[str, float] = field(default_factory=dict)
    direction: str = ""

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The numbers of trials by their names, in order: the names themselves are numbers, where KerasTuner chose."""
        if all(name.isdecimal() for name in self.trials):
            return {name: int(name) for name in sorted(self.trials, key=int)}
        order = [one for one in _list(self.oracle.get("start_order")) if isinstance(one, str) and one in self.trials]
        return {name: number for number, name in enumerate([*order, *sorted(set(self.trials) - set(order))])}

    def search(self) -> Search:
        """As all searches look."""
        trials = [self._trial(number, name) for name, number in self.numbers.items()]
        space = (*_space(self.oracle, self.trials.values()), *_rungs(trials), *_offered(self.notes.values()))
        kept = with_kept([replace(one, parameters=_fitting(one.parameters, space)) for one in trials], space)
        return Search(
            engine="keras-tuner",
            name=self.name,
            direction="higher" if (self.direction or _direction(self.trials.values())) == "max" else "lower",
            space=space,
            trials=kept,
            left_out=not_offered((self.notes.get(name, {}).get("left_out") for name in self.numbers), space),
        )

    def _trial(self, number: int, name: str) -> Trial:
        state, note = self.trials[name], self.notes.get(name, {})
        found, why = _ended(state)
        over = found in ("finished", "failed")
        values = {**_mapping(note.get("answers")), **_mapping(_mapping(state.get("hyperparameters")).get("values"))}
        parameters = {key: one for key, one in values.items() if key == _EPOCHS or not key.startswith(BOOKKEEPING)}
        proposal = _mapping(note.get("proposal"))
        started, seconds = self._times(name)
        return Trial(
            number=number,
            state=found,
            score=_number(state["score"]) if found == "finished" else None,
            parameters=parameters,
            seconds=seconds if over else None,
            started=started,
            symptoms=_symptoms(note, parameters) if over else UNKNOWN_SYMPTOMS,
            why_failed=why,
            proposed_by="isorun" if proposal else "",
            origin=self.numbers.get(str(proposal.get("trial"))),
            chance=_number(proposal.get("chance")),
            process=note["process"] if isinstance(note.get("process"), int) else None,
            as_built=_mapping(note.get("as_built")),
        )

    def _times(self, name: str) -> tuple[float | None, float | None]:
        """When it began and how long it took: as isorun saw it, else by what KerasTuner displayed and wrote."""
        note = self.notes.get(name, {})
        starts = _mapping(_mapping(self.oracle.get("display")).get("trial_start"))
        started = _number(note.get("started")) or _timestamp(starts.get(name))
        ended = self.ends.get(name)
        guessed = max(ended - started, 0.0) if ended is not None and started is not None else None
        return started, max(_number(note.get("seconds")) or 0.0, 0.0) or guessed


def _ended(state: Mapping[str, Any]) -> tuple[State, str]:
    """How a trial ended, and why where it failed."""
    found: State = _STATES.get(str(state.get("status")), "waiting")
    score, why = state.get("score"), str(state.get("message") or "")
    if found == "finished" and not isinstance(score, (int, float)):
        return "failed", why or "there is no score"
    if found != "running" and isinstance(score, (int, float)) and _number(score) is None:
        return "failed", why or "the score is not a finite number"
    return found, why if found == "failed" else ""


def _list(found: Any) -> list[Any]:
    return found if isinstance(found, list) else []


def _mapping(found: Any) -> Mapping[str, Any]:
    return found if isinstance(found, Mapping) else {}


def _number(found: Any) -> float | None:
    """A finite number; None for whatever else stands there."""
    try:
        known = float(found) if isinstance(found, (int, float)) else math.nan
    except OverflowError:  # a whole number of hundreds of digits
        return None
    return known if math.isfinite(known) else None


def _fitting(values: Mapping[str, Any], space: Iterable[Parameter]) -> dict[str, Any]:
    """The values that KerasTuner could have written: a file may hold anything in their place."""
    numeric = {parameter.name for parameter in space if parameter.is_numeric}
    plain = {name: one for name, one in values.items() if isinstance(one, _PLAIN)}
    return {name: one for name, one in plain.items() if name not in numeric or _number(one) is not None}


def _timestamp(text: Any) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp()
    except (TypeError, ValueError, OverflowError, OSError):
        return None


def _symptoms(note: Mapping[str, Any], parameters: Mapping[str, Any]) -> Symptoms:
    told = note.get("symptoms")
    if isinstance(told, Mapping):
        return Symptoms(**{name: str(told.get(name, "unknown")) for name in Symptoms._fields})
    return symptoms_of(Trace.of_rows((), parameters=parameters))


def _direction(states: Iterable[Mapping[str, Any]]) -> str:
    """KerasTuner keeps the name of the objective nowhere: it is the metric whose values are the scores."""
    fits: dict[str, str] = {}
    wrong: set[str] = set()
    for state in states:
        score = _number(state.get("score"))
        if score is None:
            continue
        for name, metric in _mapping(_mapping(state.get("metrics")).get("metrics")).items():
            observed = map(_mapping, _list(_mapping(metric).get("observations")))
            told = [value for one in observed for value in _list(one.get("value"))]
            fits[name] = str(_mapping(metric).get("direction"))
            if not any(math.isclose(value, score) for value in map(_number, told) if value is not None):
                wrong.add(name)
    left = sorted(set(fits) - wrong, key=lambda name: (not name.startswith("val_"), name))
    return fits[left[0]] if left else "min"


def _space(oracle: Mapping[str, Any], states: Iterable[Mapping[str, Any]]) -> tuple[Parameter, ...]:
    """The parameters by name: a name may stand under several conditions, and then has the values of all."""
    declared = _list(_mapping(oracle.get("hyperparameters")).get("space"))
    if not declared:
        declared = [one for state in states for one in _list(_mapping(state.get("hyperparameters")).get("space"))]
    found: dict[str, Parameter] = {}
    for one in map(_mapping, declared):
        config = _mapping(one.get("config"))
        name = str(config.get("name"))
        if one.get("class_name") != "Fixed" and not name.startswith(BOOKKEEPING) and not is_offered(name):
            try:
                made = _parameter(str(one.get("class_name")), name, config)
            except (KeyError, TypeError, ValueError, ArithmeticError):
                made = Parameter(name, "category", choices=_NOT_UNDERSTOOD)
            found[name] = _joined(found[name], made) if name in found else made
    return tuple(one for one in found.values() if one.size != 1 or one.choices == _NOT_UNDERSTOOD)


_NOT_UNDERSTOOD: Final = ("?",)
"""The only choice of a parameter of a kind that isorun does not know: it is left as it is."""


def _parameter(kind: str, name: str, config: Mapping[str, Any]) -> Parameter:
    if kind == "Boolean":
        return Parameter(name, "category", choices=(False, True))
    if kind == "Choice":
        choices = tuple(config.get("values", ()))
        known = bool(choices) and all(isinstance(one, _PLAIN) for one in choices)
        return Parameter(name, "category", choices=choices if known else _NOT_UNDERSTOOD)
    if kind not in ("Int", "Float"):
        return Parameter(name, "category", choices=_NOT_UNDERSTOOD)
    low, high, step = config["min_value"], config["max_value"], config.get("step")
    if any(_number(one) is None for one in (low, high, *([] if step is None else [step]))):
        raise TypeError(name)
    log = config.get("sampling") == "log"
    if step is not None and config.get("sampling") in ("log", "reverse_log"):
        powers = range(min(int(math.log(high / low, step) + 1e-8) + 1, _MOST_VALUES))
        steps = [low * step**power for power in powers]
        stepped = steps if log else [high + low - one for one in steps]
        return Parameter(name, "category", choices=tuple(int(one) if kind == "Int" else one for one in stepped))
    whole: Literal["int", "float"] = "int" if kind == "Int" else "float"
    return Parameter(name, whole, low=low, high=high, log=log, step=None if log else step)


def _joined(one: Parameter, other: Parameter) -> Parameter:
    if one.kind == other.kind == "category":
        return replace(one, choices=tuple(dict.fromkeys((*one.choices, *other.choices))))
    if one.kind == other.kind:
        return replace(one, low=min(one.low, other.low), high=max(one.high, other.high))
    return Parameter(one.name, "category", choices=_NOT_UNDERSTOOD)


def _rungs(trials: Iterable[Trial]) -> Iterator[Parameter]:
    """How long Hyperband trained: it sets trials apart, but is the engine's to choose, so no value is within it."""
    lengths = {str(trial.parameters[_EPOCHS]) for trial in trials if _EPOCHS in trial.parameters}
    if lengths:
        yield Parameter(_EPOCHS, "category", choices=tuple(f"{length} epochs" for length in sorted(lengths)))


def _offered(notes: Iterable[Mapping[str, Any]]) -> tuple[Parameter, ...]:
    found: dict[str, Parameter] = {}
    for note in notes:
        for name, choices in _mapping(note.get("offered")).items():
            known = tuple(one for one in _list(choices) if isinstance(one, _PLAIN))
            found[name] = Parameter(name, "category", choices=known)
    return tuple(found.values())
