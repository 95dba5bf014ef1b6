"""Engines: where their searches are kept, how they are read, and how they go on. A file an engine, public APIs only.

An engine is known by its name, which begins its addresses (`keras-tuner:FOLDER`). Optuna's are those of its storages.
Other distributions bring more (entry-point group `isorun.engines`). What a user does next is said by each in its own
words; here are those that fit any.
"""

from __future__ import annotations

import abc
import errno
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, get_args

from isorun import plugins
from isorun.errors import InputError, MissingExtra, PluginError, UsageError, foreign_errors, known_names
from isorun.repair.bugs import Limits
from isorun.repair.searches import Direction, Parameter, Search, State, Value, with_noise
from isorun.study.searches import Kind

if TYPE_CHECKING:
    from isorun.repair.policy import RepairPolicy

__all__ = [
    "AbstractEngine",
    "NextSteps",
    "Strategy",
    "address_of",
    "chosen",
    "command",
    "needing",
    "next_steps",
    "open_engine",
    "read_search",
    "steps_of_study",
    "strategy_of",
    "without_password",
    "written",
]

_NEEDS: Final = {"optuna": {"optuna"}, "keras-tuner": {"keras_tuner", "keras", "six"}, "autokeras": {"autokeras"}}
"""Modules without which an engine cannot be imported, by its extra; `six` is one that KerasTuner does not declare."""
MORE: Final = ("--continue", "15")
"""How far a search goes on that is told to."""
_NOT_WRITTEN: Final = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
_FOLDERS: Final = "keras-tuner"
_DATABASES: Final = ("sqlite", "journal", "mysql", "mariadb", "postgresql", "oracle", "mssql")
"""What begins the address of a storage of Optuna; behind it a driver may stand (mysql+pymysql://)."""
_LOCATIONS: Final = ("sqlite:///FILE", "journal:FILE", "another URL that Optuna understands", f"{_FOLDERS}:FOLDER")


@contextmanager
def needing(extra: str, purpose: str) -> Iterator[None]:
    """Around what imports an engine: one that is not installed is named with its extra."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in _NEEDS[extra]:
            raise
        raise MissingExtra(extra, extra, purpose) from None


class AbstractEngine(abc.ABC):
    """One place in which an engine keeps searches. `where` is its address as the user wrote it.

    Promises:
    - Opening and reading write nothing, and run nothing of the user's.
    - `names` are the searches that are there; `read` gives any of them as it stands: running, finished or killed.
    - The same place gives the same search. Trials are in the order of their numbers, which never change; one that
      finished has its score, and the space holds the values that the engine itself may choose.
    - What is not there, half-written or held by others is an error of isorun (`InputError`) that says what to do.
    - `go_on` makes so many trials more and loses none, each as the policy plans it, where it has a plan. A trial that
      raises is a failed one that says why.
    - A trial of `go_on` is written down before it begins: running, with when it began and its process. One whose
      process is gone stays so until it is given up (`give_up`) or tried again (`again`): isorun attends that process.
    - `propose` gives the same values for the same trials and seed, one for each parameter, within its range.
    """

    name: ClassVar[str] = ""
    """As the answer calls the engine, and as the entry point does."""
    location: ClassVar[str] = ""
    """What an address looks like, such as `keras-tuner:FOLDER`."""
    function_option: ClassVar[str] = "--objective"
    """The option of `isorun repair` that names the user's function with which a search goes on."""
    is_one_search: ClassVar[bool] = False
    """Whether a place is one search, which has no name, and whose running trials are tried again by themselves."""
    strategies: ClassVar[tuple[str, ...]] = ()
    """What a study may ask `propose` for: `engine = "NAME:STRATEGY"`."""
    by_chance: ClassVar[tuple[str, ...]] = ()
    """Those of them that learn nothing from trials: isorun leaves no trial to chance that it can propose itself."""

    def __init__(self, where: str) -> None:
        self.where = where

    @abc.abstractmethod
    def names(self) -> Sequence[str]:
        """The searches that are there."""

    @abc.abstractmethod
    def read(self, name: str) -> Search:
        """The search of this name. Its noise is found by isorun, unless the engine knows it and says from where."""

    def go_on(self, name: str, function: Callable[..., Any], trials: int, policy: RepairPolicy, *, again: bool) -> None:
        """Make more trials, proposed by the policy. again: first those whose process is gone."""
        del function, policy, again
        raise UsageError(f"searches of {self.name} can be examined, but not continued", found=f"{name}: {trials} more")

    def give_up(self, name: str, number: int, why: str) -> bool:
        """A running trial whose process is gone has failed, for this reason. False where that cannot be written."""
        del name, number, why
        return False

    def steps(self, search: Search, limits: Limits) -> NextSteps:
        """What whoever runs such a search does next."""
        if type(self).go_on is AbstractEngine.go_on:
            return _steps_by_engine(search)
        return next_steps(search, limits, self.where, self.function_option, is_named=not self.is_one_search)

    @classmethod
    def propose(cls, strategy: str, search: Search, space: Sequence[Parameter], seed: int) -> Mapping[str, Value]:
        """What a strategy of this engine tries after these trials, where isorun runs them. Nothing is kept."""
        raise NotImplementedError(f"{cls.__name__} has strategies and no propose: {strategy}, {seed}")


def open_engine(where: str) -> AbstractEngine:
    """The engine whose address this is: isorun's own, one that is installed, else any URL that Optuna understands."""
    scheme = where.partition(":")[0]
    if scheme == _FOLDERS:
        from isorun.repair.engines.keras_folders import KerasTunerFolder  # noqa: PLC0415 - seldom needed

        return KerasTunerFolder(where)
    if scheme.partition("+")[0] not in _DATABASES:
        if scheme in plugins.brought(plugins.ENGINES):
            return _brought(scheme)(where)
        _refuse_unknown(where, scheme)
    with needing("optuna", "examining an Optuna study"):
        from isorun.repair.engines.optuna import OptunaStorage  # noqa: PLC0415 - an extra
    return OptunaStorage(where)


@dataclass(frozen=True, slots=True)
class Strategy:
    """What proposes the trials of a study by an engine: one of the engine's strategies."""

    engine: type[AbstractEngine]
    name: str

    @property
    def is_chance(self) -> bool:
        """Whether it learns nothing from trials."""
        return self.name in self.engine.by_chance

    def propose(self, search: Search, space: Sequence[Parameter], seed: int) -> Mapping[str, Value]:
        """What it tries next."""
        whose = self.engine.name
        with foreign_errors(lambda said: PluginError(f"the engine {whose!r} cannot propose a trial", found=said)):
            return self.engine.propose(self.name, search, space, seed)


def strategy_of(text: str) -> Strategy:
    """The strategy that a study names (`NAME:STRATEGY`), or what is wrong with the name."""
    name, _, wanted = text.partition(":")
    if name == "optuna":
        with needing("optuna", 'a search by Optuna (engine = "random" needs no extra)'):
            from isorun.repair.engines.optuna import OptunaStorage  # noqa: PLC0415 - an extra
        engine: type[AbstractEngine] = OptunaStorage
    else:
        engine = _brought(name)
    if wanted not in engine.strategies:
        what = f"the engine {name!r} has no strategy {wanted!r}"
        raise InputError(what, allowed=known_names(wanted, engine.strategies) if engine.strategies else "none")
    return Strategy(engine, wanted)


def read_search(engine: AbstractEngine, name: str | None, noise: float = 0.0) -> Search:
    """The search of this name, or the only one. noise: of a score between seeds, where the search does not show it."""
    with foreign_errors(lambda said: InputError(f"{without_password(engine.where)} cannot be read", found=said)):
        found = engine.read(chosen(engine, name))
    _refuse_other_words(engine, found)
    return with_noise(found, noise)


@contextmanager
def written(where: str, *kinds: type[Exception]) -> Iterator[None]:
    """Around what writes trials down: a storage that takes nothing more is told, and no training is at fault.

    kinds: what an engine raises then, besides the system's errors. Other errors of its own may come on top of them.
    """
    try:
        yield
    except Exception as error:
        chain: list[BaseException] = [error]
        while (cause := chain[-1].__cause__ or chain[-1].__context__) is not None and cause not in chain:
            chain.append(cause)
        for one in reversed(chain):
            if isinstance(one, kinds) or (isinstance(one, OSError) and one.errno in _NOT_WRITTEN):
                said = getattr(one.__cause__, "orig", None) or one
                raise InputError(
                    f"{without_password(where)} cannot be written",
                    found=str(said),
                    hint="make room, then the same command: finished trials are kept",
                ) from error
        raise


def _refuse_other_words(engine: AbstractEngine, search: Search) -> None:
    """Engines have words of their own: what is not translated would be taken for another, worst for best."""
    told: tuple[tuple[str, set[str], tuple[str, ...]], ...] = (
        ("direction", {search.direction}, get_args(Direction)),
        ("state of a trial", {trial.state for trial in search.trials}, get_args(State)),
        ("kind of parameter", {parameter.kind for parameter in search.space}, get_args(Kind)),
    )
    for what, words, allowed in told:
        if others := words - set(allowed):
            raise PluginError(
                f"the engine {engine.name!r} tells a {what} that isorun does not know",
                found=", ".join(sorted(map(repr, others))),
                allowed=", ".join(allowed),
            )


def chosen(engine: AbstractEngine, name: str | None) -> str:
    """The name of the search that is meant: the one that is asked for, or the only one."""
    names = list(engine.names())
    if name is None and len(names) == 1:
        return names[0]
    if name in names:
        return str(name)
    where = without_password(engine.where)
    if not names:
        raise InputError(f"{where} holds no study yet", found="no study", hint="the same command when one has begun")
    close = known_names(name or "", names)
    likely = (
        close.rpartition("did you mean ")[2].removesuffix("?)").strip("'\"") if "did you mean" in close else names[0]
    )
    raise InputError(
        f"{where} holds no study {name!r}" if name is not None else f"{where} holds {len(names)} studies: which one?",
        found=("1 study" if len(names) == 1 else f"{len(names)} studies") if name is not None else "",
        allowed=close,
        hint=f"isorun repair {shlex.join([where, '--study', likely])}",
    )


def _brought(name: str) -> type[AbstractEngine]:
    found = plugins.load(plugins.ENGINES, name, own=("optuna", _FOLDERS))
    if not (isinstance(found, type) and issubclass(found, AbstractEngine)):
        raise PluginError(f"the engine {name!r} cannot be used", found=repr(found), allowed="a class of AbstractEngine")
    return found


def _refuse_unknown(where: str, scheme: str) -> None:
    """An address of nobody's. What has the form of a database's URL is left to Optuna: there are drivers of others."""
    known = [*_DATABASES, _FOLDERS, *plugins.brought(plugins.ENGINES)]
    meant = known_names(scheme.replace("_", "-"), known)
    if "did you mean" in meant or "://" not in where:
        raise InputError(
            f"{without_password(where)} is no address of a search",
            found=f"{scheme}:",
            allowed=", ".join([*_LOCATIONS, *(f"{name}:…" for name in plugins.brought(plugins.ENGINES))]),
            hint=_instead(where, meant),
        )


def _instead(where: str, meant: str) -> str:
    close = re.search(r"did you mean '([^']+)'", meant)
    if close is None:
        return ""
    rest = where.partition(":")[2]
    return f"isorun repair {shlex.quote(without_password(f'{close[1]}:{rest}'))}"


def address_of(path: Path) -> str:
    """The address of what lies at a path, where it is a search of an engine: people forget what stands before it."""
    folder = path.parent if path.name == "oracle.json" else path
    if folder.is_dir():
        is_project = (folder / "oracle.json").is_file() or any(folder.glob("trial_*/trial.json"))
        if not is_project and not (folder / "study.toml").is_file():  # the folder that projects lie in
            is_project = any(folder.glob("*/oracle.json"))
        return f"{_FOLDERS}:{folder}" if is_project else ""
    try:
        with path.open("rb") as file:
            begin = file.read(200)
    except OSError:
        return ""
    if begin.startswith(b"SQLite format 3\0"):
        return f"sqlite:///{path}"
    return f"journal:{path}" if begin.startswith(b'{"op_code"') else ""


def without_password(where: str) -> str:
    """The address of a database as a message may show it."""
    return re.sub(r"(://[^/@:]*):[^@]*@", r"\1:***@", where)


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


def next_steps(
    search: Search, limits: Limits, where: str, option: str = "--objective", *, is_named: bool = True
) -> NextSteps:
    """What is done next, in words that fit any engine.

    where: what `isorun repair` finds the search by. option: what names the user's function. is_named: whether the
    search has a name there, and its running trials have to be asked for.
    """
    name, more = search.name if is_named else "", (*MORE, option, "train.py:FUNCTION")
    again = command(where, name, limits, *more, *["--requeue"] * is_named)
    return _any_steps(search, command(where, name, limits, *more), again)


def _steps_by_engine(search: Search) -> NextSteps:
    """What is done next where isorun examines such searches, and does not go on with them."""
    go_on = f"try the first actions by {search.engine} itself"
    return _any_steps(search, go_on, go_on)


def _any_steps(search: Search, go_on: str, again: str) -> NextSteps:
    return NextSteps(
        go_on=go_on,
        again=again,
        end="end a trial in your function when it has taken ten times as long as the median",
        widen=f"give the search more to choose from; then {go_on}",
        watch=f"have {search.engine} keep with a trial what isorun.watch(model) sees in its training",
        repeat="try the best configuration three times with seeds of their own",
        time=f"have {search.engine} keep when a trial began and how long it took",
        look=f"{search.engine} itself has all that is kept of a trial",
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


def command(where: str, name: str, limits: Limits, *more: str) -> str:
    """`isorun repair` of a search. name: empty where the place is the search."""
    given = [("--target", limits.target), ("--time-limit", limits.time_limit), ("--patience", limits.patience)]
    asked = [word for option, value in given if value is not None for word in (option, f"{value:.12g}")]
    named = ["--study", name] if name else []
    return f"isorun repair {shlex.quote(without_password(where) or 'STORAGE')} {shlex.join([*named, *asked, *more])}"
