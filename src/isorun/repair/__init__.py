"""Repair: AutoML searches that are stuck or waste time, seen, explained, and put right.

    study = optuna.create_study(sampler=isorun.repair.optuna(TPESampler()))
    tuner = isorun.repair.keras_tuner(kt.BayesianOptimization(...))
    model = autokeras.AutoModel(..., tuner=isorun.repair.autokeras("greedy"))

A search is read from its engine (`searches.py`), its bugs are found (`bugs.py`), actions on its best trial
(`actions.py`) are drawn by the chance that they improve it (`priorities.py`), and all is told (`diagnosis.py`).
"""

from __future__ import annotations

import importlib
import re
import shlex
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from isorun.errors import InputError

if TYPE_CHECKING:
    from isorun.repair.diagnosis import SearchDiagnosis
    from isorun.repair.expansion import expand, hypermodel, lightning
    from isorun.repair.policy import RepairPolicy
    from isorun.repair.priorities import Prior
    from isorun.repair.racing import race
    from isorun.session import Store
    from isorun.study.design import Study

__all__ = [
    "autokeras",
    "examine",
    "expand",
    "go_on",
    "hypermodel",
    "keras_tuner",
    "lightning",
    "note",
    "optuna",
    "race",
]

_ELSEWHERE: Final = {
    "expand": "isorun.repair.expansion",
    "hypermodel": "isorun.repair.expansion",
    "lightning": "isorun.repair.expansion",
    "race": "isorun.repair.racing",
}
"""Where a name comes from that is imported when it is first asked for."""
_STORAGE: Final = re.compile(r"[A-Za-z][\w+.-]+:")
"""What begins the address of a search that an engine runs itself."""
_DATABASE_FILES: Final = (".db", ".sqlite", ".sqlite3")


def __getattr__(name: str) -> Any:
    if name in _ELSEWHERE:
        return getattr(importlib.import_module(_ELSEWHERE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has: {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def optuna(
    sampler: Any,
    *,
    begin: str | int = "bug",
    target: float | None = None,
    time_limit: float | None = None,
    patience: int | None = None,
    prior: Prior | str | Path | None = "shipped",
    guard: bool = True,
    seed: int | None = None,
) -> Any:
    """A sampler around yours: it proposes as yours does until the search has a bug, and then changes the best trial.

    begin: "bug", or the number of the trial from which on isorun proposes. target, time_limit (seconds), patience
    (trials): what the search is asked for; without them defaults apply (docs/repair.md). prior: "shipped", a
    file, None. guard: whether a prior that does not fit this search is let go.
    """
    with _needing("optuna", "repairing an Optuna search"):
        from optuna.samplers import BaseSampler  # noqa: PLC0415 - an extra

        from isorun.repair.engines.optuna import RepairSampler  # noqa: PLC0415 - as above
    if not isinstance(sampler, BaseSampler):
        allowed = "an Optuna sampler, such as optuna.samplers.TPESampler()"
        raise InputError("isorun.repair.optuna goes around a sampler", found=repr(sampler), allowed=allowed)
    return RepairSampler(sampler, _policy(begin, target, time_limit, patience, prior, guard=guard, seed=seed))


def keras_tuner(
    tuner: Any,
    *,
    begin: str | int = "bug",
    target: float | None = None,
    time_limit: float | None = None,
    patience: int | None = None,
    prior: Prior | str | Path | None = "shipped",
    guard: bool = True,
    seed: int | None = None,
    pretrained: Any = None,
) -> Any:
    """Your tuner, of any class: its trials are watched, and when the search has a bug, they change the best one.

    The tuner that is given is the one that is returned. The arguments are those of `isorun.repair.optuna`. pretrained:
    weights (a file, or a function that loads them into the model), which makes loading them a choice that is offered.
    """
    with _needing("keras-tuner", "repairing a KerasTuner search"):
        from isorun.repair.engines.keras_tuner import attach, check_tuner  # noqa: PLC0415 - an extra

        check_tuner(tuner)
    policy = _policy(begin, target, time_limit, patience, prior, guard=guard, seed=seed)
    return attach(tuner, policy, pretrained)


def autokeras(
    strategy: str | type = "greedy",
    *,
    begin: str | int = "bug",
    target: float | None = None,
    time_limit: float | None = None,
    patience: int | None = None,
    prior: Prior | str | Path | None = "shipped",
    guard: bool = True,
    seed: int | None = None,
) -> type:
    """A class for AutoKeras' argument `tuner=`: its own strategy, and when the search has a bug, changes of the best.

    strategy: "greedy", "bayesian", "hyperband", "random", or a class of tuners. The others are those of
    `isorun.repair.optuna`.
    """
    with _needing("autokeras", "repairing an AutoKeras search"):
        from isorun.repair.engines.autokeras import repaired_tuner  # noqa: PLC0415 - an extra
    return repaired_tuner(strategy, _policy(begin, target, time_limit, patience, prior, guard=guard, seed=seed))


def _needing(extra: str, purpose: str) -> AbstractContextManager[None]:
    from isorun.repair.engines import needing  # noqa: PLC0415 - it loads NumPy

    return needing(extra, purpose)


def _policy(
    begin: str | int,
    target: float | None,
    time_limit: float | None,
    patience: int | None,
    prior: Prior | str | Path | None,
    *,
    guard: bool,
    seed: int | None,
) -> RepairPolicy:
    from isorun.repair.bugs import Limits  # noqa: PLC0415 - as above
    from isorun.repair.policy import RepairPolicy  # noqa: PLC0415 - as above
    from isorun.repair.priors import prior_of  # noqa: PLC0415 - as above

    limits = Limits(target=target, time_limit=time_limit, patience=patience)
    drawn: dict[str, Any] = {} if seed is None else {"seed": seed}
    return RepairPolicy(begin, limits, prior_of(prior), guard=guard, **drawn)


def examine(
    where: str | Path | Study,
    study: str | None = None,
    *,
    store: Store = None,
    target: float | None = None,
    time_limit: float | None = None,
    patience: int | None = None,
    prior: Prior | str | Path | None = "usual",
) -> SearchDiagnosis:
    """What is wrong with a search that is finished, running or was killed, and what to try next. Nothing is written.

    where: as `isorun repair` takes it: a storage, such as sqlite:///study.db, or a study with a search that isorun
    runs: its file, its name, or an isorun.Study. study: which study of the storage, or search of the study; none where
    there is one. store: of a study, where its records are kept. prior: "usual" is the study's own, else shipped.
    """
    if not isinstance(where, str) or not is_storage(where):
        if isinstance(where, (str, Path)):
            refuse_bare_path(where)
        return _of_study(where, study, store, (target, time_limit, patience), prior)
    if store is not None:
        raise InputError("a store belongs to a study that isorun runs", found=where, allowed="a study's file or name")
    from isorun.repair.bugs import Limits  # noqa: PLC0415 - as above
    from isorun.repair.diagnosis import diagnose  # noqa: PLC0415 - as above
    from isorun.repair.engines import open_engine, read_search, without_password  # noqa: PLC0415 - as above
    from isorun.repair.priors import prior_of  # noqa: PLC0415 - as above

    known, limits = prior_of(prior), Limits(target, time_limit, patience)
    engine = open_engine(where)
    search = read_search(engine, study, known.noise if known else 0.0)
    return diagnose(search, known, limits, where=without_password(where), steps=engine.steps(search, limits))


def go_on(
    where: str,
    trials: int,
    function: str | Callable[..., Any],
    study: str | None = None,
    *,
    requeue: bool = False,
    in_process: bool = False,
    target: float | None = None,
    time_limit: float | None = None,
    patience: int | None = None,
    prior: str | Path | None = "shipped",
) -> SearchDiagnosis:
    """Make so many trials more of a search that an engine runs, repaired, and say what is wrong with it then.

    where, study: as `examine` takes them. function: FILE.py:FUNCTION, which runs a trial (of KerasTuner: gives a tuner
    and what its search is given). It is called in a process of its own: a trial that ends that process, or hangs, has
    failed, and the search goes on. in_process: it is called in this one, as a function that is given itself always is.
    requeue: first those trials that are marked running and whose process is gone.
    """
    from isorun.repair.attending import Continuation, attend  # noqa: PLC0415 - as above
    from isorun.repair.bugs import Limits  # noqa: PLC0415 - as above

    if not is_storage(str(where)):
        what, allowed = "isorun goes on with searches that an engine runs", "a storage, such as sqlite:///study.db"
        raise InputError(
            what, found=str(where), allowed=allowed, hint="isorun.run(study) goes on with those of a study"
        )
    if type(trials) is not int or trials < 1:  # a bool is an int, too
        raise InputError("trials is not understood", found=repr(trials), allowed="a whole number from 1 on")
    named = function if isinstance(function, str) else ""
    given = None if prior is None else str(prior)
    asked = Continuation(where, study, named, trials, Limits(target, time_limit, patience), given, requeue)
    if in_process or not named:
        asked.make(None if isinstance(function, str) else function)
    else:
        attend(asked, lambda said: print(f"isorun: {said}", file=sys.stderr))
    return examine(where, study, target=target, time_limit=time_limit, patience=patience, prior=prior)


def is_storage(where: str) -> bool:
    """Whether this is the address of a search that an engine runs itself, and not a study."""
    return _STORAGE.match(where) is not None


def refuse_search(where: str | Path) -> None:
    """What an engine runs has no recorded runs: isorun repair is who looks into it."""
    from isorun.repair.engines import without_password  # noqa: PLC0415 - as above

    if is_storage(str(where)) and not Path(where).exists():
        told = without_password(str(where))
        raise InputError(
            "the trials of a search that an engine runs are no recorded runs",
            found=told,
            allowed="a study's file or name, or the id of a run",
            hint=f"isorun repair {shlex.quote(told)} tells the symptoms of its best and latest trials",
        )
    refuse_bare_path(where)


def refuse_bare_path(where: str | Path) -> None:
    """A storage that is named by its path alone would be taken for a study: the address is told."""
    from isorun.repair.engines import address_of  # noqa: PLC0415 - as above

    path = Path(where)
    is_database = path.suffix in _DATABASE_FILES and (not path.exists() or not path.stat().st_size)
    if address := address_of(path) or (f"sqlite:///{path}" if is_database else ""):
        engine = "KerasTuner" if address.startswith("keras-tuner:") else "Optuna"
        raise InputError(
            f"{where} is not a study of isorun",
            found=f"a path as {engine} keeps searches in; what stands before it is missing",
            allowed="sqlite:///FILE, journal:FILE, keras-tuner:FOLDER, or a study's file or name",
            hint=f"isorun repair {shlex.quote(address)}",
        )


def _of_study(
    source: str | Path | Study,
    name: str | None,
    store: Store,
    asked: tuple[float | None, float | None, int | None],
    prior: Prior | str | Path | None,
) -> SearchDiagnosis:
    from isorun.repair.bugs import Limits  # noqa: PLC0415 - as above
    from isorun.repair.told_searches import told_of_search  # noqa: PLC0415 - as above
    from isorun.session import opened, recorded  # noqa: PLC0415 - as above

    named = {
        "where": str(source) if isinstance(source, (str, Path)) else "",
        "kept_in": str(store) if isinstance(store, (str, Path)) else "",
    }
    with opened(source, store) as (study, place), recorded(place, study) as kept:
        return told_of_search(study, kept, name, limits=Limits(*asked), prior=prior, **named)


def note(trial: Any, watched: Any, **curves: Any) -> None:
    """Keep what was seen inside a trial's training with the trial, so that actions can be chosen by its symptoms.

    watched: what `isorun.watch(model)` returned, or its rows. curves: values epoch by epoch, such as val_accuracy=[…].
    """
    from isorun.diagnose import Trace  # noqa: PLC0415 - as above

    with _needing("optuna", "keeping symptoms with an Optuna trial"):
        from isorun.repair.engines.optuna import note as noted  # noqa: PLC0415 - as above

    if not hasattr(trial, "set_user_attr"):
        allowed = "the trial that Optuna gives to the objective"
        raise InputError("isorun.repair.note tells a trial", found=repr(trial), allowed=allowed)
    rows = getattr(watched, "rows", watched)
    if rows is None or isinstance(rows, (str, bytes)) or not hasattr(rows, "__iter__"):
        allowed = "what isorun.watch(model) returned, or its rows"
        raise InputError("isorun.repair.note keeps what was seen", found=repr(watched), allowed=allowed)
    noted(trial, Trace.of_rows(rows, curves=curves, parameters=trial.params))
