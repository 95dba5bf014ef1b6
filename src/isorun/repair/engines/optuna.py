"""Optuna: a sampler around the user's own, and studies in any storage, running, finished or killed.

The user's sampler proposes until a bug is found; then trials that change the best one are proposed, until that stops
helping. What was proposed is remembered in the study's own storage, as one attribute a trial, so that other processes
and later ones know it. A proposal that another process makes at the same moment is made anew: the attribute is
written before the others are read, so that of two alike at least one sees the other.
"""

from __future__ import annotations

import copy
import difflib
import json
import math
import os
import shlex
import sqlite3
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial, TrialState

from isorun.diagnose import Symptoms, Trace, symptoms_of
from isorun.errors import InputError
from isorun.repair.bugs import Limits
from isorun.repair.engines import (
    MORE,
    AbstractEngine,
    NextSteps,
    address_of,
    chosen,
    command,
    without_password,
    written,
)
from isorun.repair.expansion import AS_BUILT, LEFT_OUT
from isorun.repair.policy import RepairPolicy, values_for
from isorun.repair.priorities import Proposal
from isorun.repair.searches import (
    UNKNOWN_SYMPTOMS,
    Configuration,
    Parameter,
    Search,
    State,
    Trial,
    Value,
    is_offered,
    not_offered,
    with_kept,
)

__all__ = ["OptunaStorage", "RepairSampler", "ask", "continue_study", "note", "open_study", "requeue", "search_of"]

_PROPOSAL: Final = "isorun:proposal:"
_WHY: Final = "isorun:why"
_PROCESS: Final = "isorun:process"
_SYMPTOMS: Final = "isorun:symptoms"
_AGAIN: Final = "isorun:tried-before-as"
_GONE: Final = "its process was gone before it ended"
_GRID: Final = "grid_id"
"""What Optuna's own GridSampler notes with each trial; no other sampler says what it is."""
_ATTEMPTS: Final = 5
_RECENT: Final = 50
"""Of so many trials it is told what could not be offered in them."""
_PATIENCE: Final = 10.0
"""Seconds to wait for a database that another process holds."""
_STATES: Final[Mapping[TrialState, State]] = {
    TrialState.COMPLETE: "finished",
    TrialState.PRUNED: "pruned",
    TrialState.FAIL: "failed",
    TrialState.RUNNING: "running",
    TrialState.WAITING: "waiting",
}
_OVER: Final = ("finished", "pruned", "failed")


def search_of(
    study: optuna.Study,
    read: dict[int, Trial] | None = None,
    made: Mapping[int, Mapping[str, Any]] | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> Search:
    """The study as it stands. read: trials that were over when they were last read; it is filled.

    made: proposals that are known besides those in the storage. attributes: of the study, where they were read.
    """
    if len(study.directions) != 1:
        raise InputError(
            "a study with several objectives cannot be repaired: there is no best trial to change",
            found=f"{len(study.directions)} directions",
            allowed="a study with one direction",
        )
    known = {} if read is None else read
    higher = study.direction == optuna.study.StudyDirection.MAXIMIZE
    reasons = _attributes(study) if attributes is None else attributes
    proposals = {**(made or {}), **_proposed(reasons)}
    frozen = study.get_trials(deepcopy=False)
    left = {one.user_attrs.get(_AGAIN) for one in frozen}
    for one in frozen:
        if one.number not in known or not known[one.number].is_over:
            why = str(reasons.get(f"{_WHY}:{one.number}", _GONE if one.number in left else ""))
            known[one.number] = _trial(one, proposals.get(one.number, {}), why, higher=higher)
    space = tuple(_parameter(name, one) for name, one in _space(frozen).items())
    trials = with_kept((known[one.number] for one in frozen), space)
    return Search(
        engine="optuna",
        name=study.study_name,
        direction="higher" if higher else "lower",
        space=space,
        trials=trials,
        left_out=not_offered((one.user_attrs.get(LEFT_OUT) for one in frozen[-_RECENT:]), space),
        is_grid=bool(frozen) and all(_GRID in one.system_attrs for one in frozen),
    )


def _attributes(study: optuna.Study) -> Mapping[str, Any]:
    try:
        return dict(study.user_attrs)
    except AttributeError:  # under Hyperband a sampler sees the trials of one bracket, and no attributes
        return {}


def _proposals(study: optuna.Study) -> dict[int, Mapping[str, Any]]:
    return _proposed(_attributes(study))


def _proposed(attributes: Mapping[str, Any]) -> dict[int, Mapping[str, Any]]:
    return {
        int(key.removeprefix(_PROPOSAL)): value
        for key, value in attributes.items()
        if key.startswith(_PROPOSAL) and isinstance(value, Mapping)
    }


def _space(trials: Sequence[FrozenTrial]) -> dict[str, BaseDistribution]:
    """The parameters by name, as the latest trial that has them declares them; those with one value are no choice."""
    found: dict[str, BaseDistribution] = {}
    for trial in trials:
        found.update(trial.distributions)
    return {name: one for name, one in found.items() if not one.single()}


def _parameter(name: str, distribution: BaseDistribution) -> Parameter:
    if isinstance(distribution, CategoricalDistribution):
        return Parameter(name, "category", choices=tuple(distribution.choices))
    assert isinstance(distribution, (FloatDistribution, IntDistribution))
    kind: Literal["int", "float"] = "int" if isinstance(distribution, IntDistribution) else "float"
    low, high, log, step = distribution.low, distribution.high, distribution.log, distribution.step
    return Parameter(name, kind, low=low, high=high, log=log, step=step)


def _trial(frozen: FrozenTrial, proposal: Mapping[str, Any], why: str, *, higher: bool) -> Trial:
    infeasible = any(value > 0 for value in _constraints(frozen))
    state = "pruned" if infeasible and frozen.state == TrialState.COMPLETE else _STATES[frozen.state]
    values = frozen.values or [None]
    duration, started = frozen.duration, frozen.datetime_start
    return Trial(
        number=frozen.number,
        state=state,
        score=values[0] if state == "finished" else None,
        parameters=dict(frozen.params),
        seconds=duration.total_seconds() if duration is not None and why != _GONE else None,  # until it was found gone
        started=started.timestamp() if started is not None else None,
        symptoms=_symptoms(frozen, higher=higher) if state in _OVER else UNKNOWN_SYMPTOMS,
        why_failed=why or str(frozen.user_attrs.get(_WHY, "infeasible: it breaks a constraint" if infeasible else "")),
        proposed_by="isorun" if proposal else "",
        origin=proposal.get("origin"),
        chance=proposal.get("chance"),
        process=frozen.user_attrs.get(_PROCESS),
        as_built=frozen.user_attrs.get(AS_BUILT, {}),
    )


def _constraints(frozen: FrozenTrial) -> list[float]:
    """Optuna 5 has them as a mapping; before, they were a list among the attributes."""
    told = getattr(frozen, "constraints", None)
    return list(told.values()) if isinstance(told, Mapping) else list(frozen.system_attrs.get("constraints") or ())


def _symptoms(frozen: FrozenTrial, *, higher: bool) -> Symptoms:
    """As the trial told them (`isorun.repair.note`), else what its parameters and reported values give away."""
    told = frozen.user_attrs.get(_SYMPTOMS)
    if isinstance(told, Mapping):
        return Symptoms(**{name: str(told.get(name, "unknown")) for name in Symptoms._fields})
    reported = [value for _, value in sorted(frozen.intermediate_values.items())]
    curves = {"val_accuracy" if higher else "val_loss": reported} if reported else {}
    return symptoms_of(Trace.of_rows((), curves=curves, parameters=frozen.params))


def note(trial: optuna.Trial, trace: Trace) -> None:
    """Keep the symptoms of a trial with it."""
    trial.set_user_attr(_SYMPTOMS, symptoms_of(trace)._asdict())


class RepairSampler(BaseSampler):  # type: ignore[misc]  # mypy does not look into Optuna
    """The user's sampler, and where the policy says so, actions on the best trial. See `isorun.repair.optuna`."""

    def __init__(self, sampler: BaseSampler, policy: RepairPolicy) -> None:
        self._sampler = sampler
        self._policy = policy
        self._read: dict[int, Trial] = {}
        self._plans: dict[int, Proposal | None] = {}
        self._made: dict[int, Mapping[str, Any]] = {}
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()

    def __str__(self) -> str:
        return f"{type(self).__name__}({self._sampler})"

    def reseed_rng(self) -> None:
        """Let workers draw differently: the user's sampler does. Isorun's draws differ by the number of the trial."""
        self._sampler.reseed_rng()

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """As the user's sampler does."""
        self._sampler.before_trial(_as_its_own(study), trial)

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Nothing for a trial that isorun proposes: its values are given one by one, as the objective asks for them."""
        if self._plan(study, trial) is not None:
            return {}
        space: dict[str, BaseDistribution] = self._sampler.infer_relative_search_space(_as_its_own(study), trial)
        return {name: one for name, one in space.items() if not is_offered(name)}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """As the user's sampler does, for its own trials."""
        if self._plan(study, trial) is not None:
            return {}
        values: dict[str, Any] = self._sampler.sample_relative(_as_its_own(study), trial, search_space)
        return {name: value for name, value in values.items() if not is_offered(name)}

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """The planned value; where the plan has none that fits, as the user's sampler does."""
        for value in values_for(self._plan(study, trial), _parameter(param_name, param_distribution)):
            return value
        return self._sampler.sample_independent(_as_its_own(study), trial, param_name, param_distribution)

    def after_trial(
        self, study: optuna.Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """As the user's sampler does."""
        with self._lock:
            self._plans.pop(trial.number, None)
        self._sampler.after_trial(_as_its_own(study), trial, state, values)

    def _plan(self, study: optuna.Study, trial: FrozenTrial) -> Proposal | None:
        """What isorun proposes for a trial; none where the user's sampler does. Decided once."""
        with self._lock:
            if trial.number not in self._plans:
                self._plans[trial.number] = self._decide(study, trial.number)
            return self._plans[trial.number]

    def _decide(self, study: optuna.Study, number: int) -> Proposal | None:
        for _ in range(_ATTEMPTS):
            attributes = _attributes(study)  # once: a storage is asked, and Optuna copies them all
            search = search_of(study, self._read, made=self._made, attributes=attributes)
            others = {place: one for place, one in _proposed(attributes).items() if place != number}
            taken = [_claimed(one) for place, one in others.items() if self._is_open(place)]
            plan = self._policy.plan(search, number, taken)
            if plan is None or self._claim(study, number, plan):
                break
        return plan

    def _is_open(self, number: int) -> bool:
        return number not in self._read or not self._read[number].is_over

    def _claim(self, study: optuna.Study, number: int, plan: Proposal) -> bool:
        """Write the proposal down; false where another process wrote the same one.

        The configuration is one text: Optuna copies all attributes part by part whenever one is asked for.
        """
        claim = plan.to_json()
        claim["configuration"] = json.dumps(claim["configuration"])
        self._made[number] = claim
        try:
            study.set_user_attr(f"{_PROPOSAL}{number}", claim)
        except AttributeError:  # as above: nothing can be written under Hyperband, and this process alone knows
            return True
        return not any(
            place != number and self._is_open(place) and one.get("configuration") == claim["configuration"]
            for place, one in _proposals(study).items()
        )


def _own_part(trial: FrozenTrial) -> FrozenTrial:
    """The trial without what isorun offers: no part of the space of the user's sampler."""
    if not any(map(is_offered, trial.params)):
        return trial
    stripped = copy.copy(trial)
    stripped.distributions = {name: one for name, one in trial.distributions.items() if not is_offered(name)}
    stripped.params = {name: value for name, value in trial.params.items() if not is_offered(name)}
    return stripped


def _as_its_own(study: optuna.Study) -> Any:
    """The study as the user's sampler sees it; the study itself where nothing was offered in it."""
    if not any(is_offered(name) for trial in study.get_trials(deepcopy=False) for name in trial.params):
        return study
    return _OwnStudy(study)


class _OwnStudy:
    """A study whose trials have the user's parameters alone. All else is the study's own."""

    def __init__(self, study: optuna.Study) -> None:
        self._shown = study

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._shown, name)
        if name == "trials":
            return [_own_part(trial) for trial in found]
        if name.endswith("get_trials"):  # whatever a sampler asks for trials by
            return lambda *args, **options: [_own_part(trial) for trial in found(*args, **options)]
        return found


def _claimed(proposal: Mapping[str, Any]) -> Configuration:
    kept = proposal.get("configuration", ())
    return tuple((str(name), str(value)) for name, value in (json.loads(kept) if isinstance(kept, str) else kept))


class OptunaStorage(AbstractEngine):
    """A storage of Optuna: sqlite:///FILE, journal:FILE, or any URL that SQLAlchemy understands.

    Nothing is written: a file that is not there is not made, and one that is no study is left as it is.
    """

    name = "optuna"
    location = "sqlite:///FILE"
    strategies = ("tpe", "random")
    by_chance = ("random",)

    @cached_property
    def _storage(self) -> Any:
        return _storage(self.where)

    def names(self) -> Sequence[str]:
        """The studies of the storage."""
        found: list[str] = _answered(self.where, lambda: optuna.get_all_study_names(self._storage))
        return found

    def read(self, name: str) -> Search:
        """The study as it stands."""
        study = self.study(name)
        found: Search = _answered(self.where, lambda: search_of(study))
        return found

    def study(self, name: str, sampler: BaseSampler | None = None) -> optuna.Study:
        """The study itself."""
        loaded: optuna.Study = _answered(
            self.where, lambda: optuna.load_study(study_name=name, storage=self._storage, sampler=sampler)
        )
        return loaded

    def go_on(self, name: str, function: Callable[..., Any], trials: int, policy: RepairPolicy, *, again: bool) -> None:
        """More trials of the user's objective, by TPE where it is not isorun's turn."""
        with written(self.where, optuna.exceptions.StorageInternalError):
            _set_aside_half_a_line(self.where)
            study = self.study(name, RepairSampler(optuna.samplers.TPESampler(), policy))
            if again:
                requeue(study)
            continue_study(study, function, trials)

    def give_up(self, name: str, number: int, why: str) -> bool:
        """The reason is an attribute of the study, for a trial of another process cannot be given one."""
        with written(self.where, optuna.exceptions.StorageInternalError):
            _set_aside_half_a_line(self.where)
            study = self.study(name)
            study.set_user_attr(f"{_WHY}:{number}", why)
            study.tell(number, state=TrialState.FAIL)
        return True

    def steps(self, search: Search, limits: Limits) -> NextSteps:
        """By study.optimize, in an objective of the user's."""
        more = (*MORE, "--objective", "train.py:objective")
        go_on = command(self.where, search.name, limits, *more)
        return NextSteps(
            go_on=go_on,
            again=command(self.where, search.name, limits, *more, "--requeue"),
            end="raise optuna.TrialPruned() in the objective when a trial has taken ten times as long as the median",
            widen=f"isorun.repair.expand(trial, model, optimizer) in the objective offers more to change; then {go_on}",
            watch="watcher = isorun.watch(model) before the training, isorun.repair.note(trial, watcher) after it",
            repeat="try the best configuration three times with seeds of their own",
            time="run trials with study.optimize, or end them with study.tell at once",
            look="study.trials[NUMBER] in Python has all that is kept of a trial",
        )

    @classmethod
    def propose(cls, strategy: str, search: Search, space: Sequence[Parameter], seed: int) -> Mapping[str, Value]:
        """From a study in memory, made anew: nothing has to be kept."""
        return ask(strategy, search, space, seed)


def open_study(url: str, name: str | None, sampler: BaseSampler | None = None) -> optuna.Study:
    """A study in a storage, the only one where none is named."""
    storage = OptunaStorage(url)
    return storage.study(chosen(storage, name), sampler)


def _storage(url: str) -> Any:
    scheme, _, rest = url.partition(":")
    if scheme == "journal":
        path = Path(rest)
        if not path.is_file():
            raise _not_there(path)
        backend = optuna.storages.journal.JournalFileBackend(str(path))
        return _answered(url, lambda: optuna.storages.JournalStorage(backend))
    if scheme == "sqlite":
        if not rest.startswith("///"):
            hint = f"isorun repair {shlex.quote('sqlite:///' + rest.lstrip('/'))}"
            raise InputError(f"{url} is no address of a database", allowed="sqlite:///FILE: three slashes", hint=hint)
        _check_sqlite(url, Path(rest.removeprefix("///").partition("?")[0]))
    return _answered(url, lambda: optuna.storages.get_storage(url))


def _set_aside_half_a_line(url: str) -> None:
    """A journal whose writer was killed, or had no room, ends in half a line: Optuna would write on in that line.

    Then it could not read the journal any more, from that line on. What is cut off is kept beside it.
    """
    scheme, _, rest = url.partition(":")
    if scheme != "journal" or not _half_a_line(Path(rest)):
        return
    lock = optuna.storages.journal.JournalFileSymlinkLock(rest)
    lock.acquire()  # somebody else may be writing that line now
    try:
        half = _half_a_line(Path(rest))
        if half:
            Path(f"{rest}.half-written").write_bytes(half)
            os.truncate(rest, Path(rest).stat().st_size - len(half))
    finally:
        lock.release()


def _half_a_line(path: Path) -> bytes:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 1))
        if file.read(1) in (b"", b"\n"):
            return b""
        file.seek(0)
        return file.read().rpartition(b"\n")[2]


def _not_there(path: Path) -> InputError:
    """What is said of a path without a file: what lies beside it, and the nearest that is a storage."""
    beside = sorted(one for one in path.parent.glob("*") if one.is_file()) if path.parent.is_dir() else []
    near = difflib.get_close_matches(path.name, [one.name for one in beside])
    likely = [path, *(path.with_name(name) for name in near)]
    address = next((found for one in likely if (found := address_of(one))), "")
    return InputError(
        f"{path} is a folder" if path.is_dir() else f"{path} is not there",
        found=f"in its folder: {', '.join(one.name for one in beside[:10]) or 'no file'}",
        hint=f"isorun repair {shlex.quote(address)}" if address else "",
    )


def _check_sqlite(url: str, path: Path) -> None:
    """SQLite makes a database of any name that is opened, and Optuna its tables in any database."""
    if not path.is_file():
        raise _not_there(path)
    try:
        tables = _tables(path, "ro")
    except sqlite3.OperationalError as error:
        if "readonly" not in str(error):
            raise _unreadable(url, error) from None
        tables = _recovered(url, path)
    except sqlite3.DatabaseError as error:
        raise _unreadable(url, error) from None
    if "studies" not in tables:
        found = f"tables {', '.join(sorted(tables))}" if tables else "no table"
        raise InputError(f"{path} is no storage of Optuna", found=found, allowed="a database that a study was kept in")


def _tables(path: Path, mode: str) -> set[str]:
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode={mode}", uri=True, timeout=_PATIENCE)) as connection:
        return {row[0] for row in connection.execute("select name from sqlite_master where type = 'table'")}


def _recovered(url: str, path: Path) -> set[str]:
    """A process that was killed in the middle of writing left a journal: SQLite takes back what was half-written."""
    try:
        return _tables(path, "rw")
    except sqlite3.DatabaseError as error:
        raise _unreadable(url, error) from None


def _answered(url: str, ask: Callable[[], Any]) -> Any:
    """What a storage answers, or what is wrong with it in a sentence."""
    try:
        return ask()
    except InputError:
        raise
    except Exception as error:  # whatever a storage, its driver or a half-written file may raise
        raise _unreadable(url, error) from error


_DRIVERS: Final = {"psycopg": "'psycopg[binary]'", "psycopg2": "psycopg2-binary", "MySQLdb": "mysqlclient"}
"""What is installed for a module that a database needs, where it is called otherwise."""


def _unreadable(url: str, error: Exception) -> InputError:
    shown = without_password(url)
    cause = getattr(error.__cause__, "orig", None) or error  # Optuna's own words are of a commit, whatever it was
    lines = [line for line in str(cause).splitlines() if line.strip()] or [type(error).__name__]
    return InputError(
        f"the storage {shown} cannot be read",
        found=without_password(lines[0].strip())[:250],
        hint=_remedy(shown, error, lines[0]),
    )


def _remedy(shown: str, error: Exception, said: str) -> str:
    """What helps against what a storage or its driver says; empty where nothing is known."""
    missing = error if isinstance(error, ModuleNotFoundError) else error.__cause__ or error.__context__
    if isinstance(missing, ModuleNotFoundError) and missing.name:
        return f"pip install {_DRIVERS.get(missing.name, missing.name)}, the driver of this database"
    if "locked" in said:
        return "another process holds it: the same command again when that has ended"
    if "no longer compatible with the table schema" in said:
        return f"keep a copy, then: optuna storage upgrade --storage {shlex.quote(shown)}"
    if "readonly" in said:
        return "going on writes trials: make the file and its folder writable, or copy it and go on with the copy"
    path = Path(shown.partition(":")[2].removeprefix("///").partition("?")[0])
    address = address_of(path)
    return f"isorun repair {shlex.quote(address)}" if address and address != shown else ""


def continue_study(study: optuna.Study, objective: Callable[[optuna.Trial], Any], trials: int) -> None:
    """Go on with a study. A trial that fails leaves its last words, and the search goes on."""

    def attempted(trial: optuna.Trial) -> Any:
        trial.set_user_attr(_PROCESS, os.getpid())
        try:
            score = objective(trial)
        except optuna.TrialPruned:
            raise
        except Exception as error:
            trial.set_user_attr(_WHY, f"{type(error).__name__}: {error}"[:500])
            raise
        if why := _why_no_score(score):
            trial.set_user_attr(_WHY, why)
        return None if why else score  # of a number that is written as text Optuna itself ends

    study.optimize(attempted, n_trials=trials, catch=(Exception,))


def _why_no_score(score: object) -> str:
    """Why Optuna fails a trial that returned this, which it tells in its log alone."""
    found = list(score) if isinstance(score, Sequence) and not isinstance(score, str) else [score]
    if len(found) != 1:
        return f"the objective returned {len(found)} values, where the study has one"
    if isinstance(found[0], str):
        return f"the objective returned a text ({found[0][:40]!r})"
    try:
        number = float(found[0])  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return f"the objective returned no number ({type(found[0]).__name__})"
    return "the score is not a number (NaN)" if math.isnan(number) else ""


def requeue(study: optuna.Study) -> list[int]:
    """Put trials back that are marked running and whose process is gone: each is tried again with its parameters."""
    left = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    for one in left:
        study.set_user_attr(f"{_WHY}:{one.number}", _GONE)
        study.tell(one.number, state=TrialState.FAIL)
        if one.params:
            study.enqueue_trial(dict(one.params), user_attrs={_AGAIN: one.number})
    return [one.number for one in left]


def ask(strategy: str, search: Search, space: Sequence[Parameter], seed: int) -> dict[str, Any]:
    """What a strategy of Optuna proposes after these trials: a study in memory, made anew: nothing has to be kept.

    strategy: "tpe" or "random". The same trials and the same seed give the same answer.
    """
    states = {"finished": TrialState.COMPLETE, "failed": TrialState.FAIL, "pruned": TrialState.PRUNED}
    distributions = {parameter.name: _distribution(parameter) for parameter in space}
    direction = "maximize" if search.direction == "higher" else "minimize"
    with _quiet():
        sampler = optuna.samplers.RandomSampler(seed) if strategy == "random" else _tpe(seed)
        study = optuna.create_study(direction=direction, sampler=sampler)
        for trial in search.trials:
            state = states.get(trial.state, TrialState.RUNNING)
            told = {parameter.name: trial.parameters[parameter.name] for parameter in space}
            value = trial.score if trial.has_score else None
            study.add_trial(
                optuna.trial.create_trial(state=state, value=value, params=told, distributions=distributions)
            )
        return dict(study.ask(distributions).params)


def _tpe(seed: int) -> BaseSampler:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # constant_liar, which keeps trials at a time apart, is marked as experimental
        return optuna.samplers.TPESampler(seed=seed, constant_liar=True)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without a line for every study that is made in memory."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


def _distribution(parameter: Parameter) -> BaseDistribution:
    if parameter.kind == "category":
        return CategoricalDistribution(parameter.choices)
    if parameter.kind == "int":
        step = int(parameter.step or 1)
        return IntDistribution(int(parameter.low), int(parameter.high), log=parameter.log, step=step)
    return FloatDistribution(parameter.low, parameter.high, log=parameter.log, step=parameter.step)
