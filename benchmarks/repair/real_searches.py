"""Real searches with a fault, taken over at trial 10: Optuna's TPE and KerasTuner's Bayesian search on small networks.

A search of ten trials is the same for all who go on with it: the engine alone, uniform edits, repairing with a shuffled
prior, repairing. None of them has a way out in its own space. The controls that begin afresh have what isorun offers in
their space from the first trial on; they are compared after as many trials as there are after the take-over, and after
all 25. The prior knows nothing of the data set that is searched on. Every trial is watched as users watch theirs.
"""

from __future__ import annotations

import itertools
import os
import shutil
import statistics
import tempfile
import time
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

os.environ.setdefault("KERAS_BACKEND", "torch")
os.environ["CUDA_VISIBLE_DEVICES"] = ""  # networks this small wait for a GPU longer than it computes

import numpy as np
import optuna
import torch

import isorun
import isorun.repair
from isorun.repair.engines.optuna import RepairSampler
from isorun.repair.policy import RepairPolicy
from isorun.repair.priors import prior_of
from repair.faulty_networks import (
    BATCH,
    DATA,
    EPOCHS,
    FAULTS,
    TARGETS,
    Fault,
    build,
    built_by_keras,
    material,
    single_changes,
    train,
)
from repair.kept_searches import (
    Keeper,
    Line,
    about,
    arguments,
    interval,
    lines_of,
    row,
    run_all,
    wilson,
    write_rows,
)
from repair.searching import UniformEdits
from run import machine

__all__ = ["ARMS", "ENGINES", "Found", "jobs", "measure", "rows_of", "search"]

TRIALS: Final = 25
TAKEN_OVER: Final = 10
_NEVER: Final = 1_000_000
_SEEDS: Final = {"optuna": 5, "keras_tuner": 2}
ENGINES: Final = tuple(_SEEDS)
_GOING_ON: Final = ("engine alone", "uniform edits", "shuffled prior", "repair")
_AFRESH: Final = ("engine afresh, expanded space", "random afresh, expanded space")
ARMS: Final = (*_GOING_ON, *_AFRESH)
_LEAST: Final = 0.8


@dataclass(frozen=True)
class Case:
    """A search: by an engine, on a data set, with a fault, with a seed."""

    engine: str
    data: str
    fault: str
    seed: int

    @property
    def what_is_wrong(self) -> Fault:
        return next(one for one in FAULTS if one.name == self.fault)

    @property
    def draws(self) -> int:
        """The seed of everything in it: another one for each case, so that no draw is lucky for all faults at once."""
        return zlib.crc32(f"{self.engine} {self.data} {self.fault} {self.seed}".encode())

    @property
    def target(self) -> float:
        return TARGETS[self.data]

    def line(self, arm: str) -> Line:
        """How a search of it is kept."""
        return {"engine": self.engine, "data": self.data, "fault": self.fault, "seed": self.seed, "arm": arm}

    def policy(self, arm: str) -> RepairPolicy:
        """What goes on with the search; the engine alone is a policy that never begins."""
        prior = f"shipped, without {self.data}" + (f", shuffled {self.draws}" if arm == "shuffled prior" else "")
        kind = UniformEdits if arm == "uniform edits" else RepairPolicy
        begin = _NEVER if arm == "engine alone" else TAKEN_OVER
        return kind(begin, prior=prior_of(prior), seed=self.draws)


@dataclass(frozen=True)
class Job:
    """Some arms of a case: what a process does at a time."""

    case: Case
    arms: tuple[str, ...]

    def __str__(self) -> str:
        one = self.case
        return f"{one.engine}, {one.data}, {one.fault}, seed {one.seed}: {', '.join(self.arms)}"


@dataclass(frozen=True)
class Found:
    """What came of a case. reached: by arm, in which of its trials (from 1 on) the target was reached, if in any."""

    case: Case
    reached: Mapping[str, int | None]

    def within(self, arm: str, trials: int) -> bool:
        """Whether an arm reached the target in so many trials."""
        at = self.reached[arm]
        return at is not None and at <= trials


def measure() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        keeper = Keeper(Path(folder) / "lines.jsonl", float("inf"))
        for engine, seeds in _SEEDS.items():
            run_all(search, jobs([engine], range(seeds), ARMS, ()), keeper, len(os.sched_getaffinity(0)))
        return rows_of(lines_of([keeper.path]))


def main() -> None:
    parser = arguments(__doc__.partition("\n")[0], ARMS, ENGINES, _SEEDS["optuna"])
    asked = parser.parse_args()
    if asked.command == "rows":
        lines = lines_of(asked.files)
        write_rows("repair.real_searches", rows_of(lines), lines)
        return
    missing = jobs(asked.engine, range(asked.seeds), asked.arms, lines_of([asked.out]))
    run_all(search, missing, Keeper(asked.out, time.time() + asked.seconds), asked.processes)


def jobs(engines: Iterable[str], seeds: Iterable[int], arms: Sequence[str], lines: Iterable[Line]) -> list[Job]:
    """The arms that there are no lines of. Those that go on with the same ten trials are one job."""
    known = {about(line) for line in lines}
    found = []
    for seed, engine, data, fault in itertools.product(seeds, engines, DATA, FAULTS):
        case = Case(engine, data, fault.name, seed)
        missing = [arm for arm in arms if about(case.line(arm)) not in known]
        found += [Job(case, going_on)] if (going_on := tuple(arm for arm in missing if arm in _GOING_ON)) else []
        found += [Job(case, (arm,)) for arm in missing if arm in _AFRESH]
    return found


def search(job: Job, keeper: Keeper) -> None:
    """All arms of a job, each kept as it ends."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    material(job.case.data, is_raw=False)  # data that are not there must not look like searches that reach nothing
    began = time.process_time()
    for arm, reached in (_by_optuna if job.case.engine == "optuna" else _by_keras_tuner)(job, keeper.check):
        told = {"reached": reached, "cpu_seconds": round(time.process_time() - began, 1), "machine": machine()}
        keeper.keep({**job.case.line(arm), **told})
        began = time.process_time()


def _by_optuna(job: Job, check: Callable[[], None]) -> Iterator[tuple[str, int | None]]:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    case, begun = job.case, None
    for arm in job.arms:
        if arm in _AFRESH:
            kind = optuna.samplers.RandomSampler if arm.startswith("random") else optuna.samplers.TPESampler
            seed = case.draws + 2 + _AFRESH.index(arm)  # TPE begins with random trials: they are not those of the other
            study = optuna.create_study(direction="maximize", sampler=kind(seed=seed % 2**32))
            yield arm, _first(study, case, TRIALS, check)
            continue
        if begun is None:
            begun = optuna.create_study(direction="maximize", sampler=_sampler(case, "engine alone", case.draws))
            _first(begun, case, TAKEN_OVER, check, ends=False)
        study = optuna.create_study(direction="maximize", sampler=_sampler(case, arm, case.draws + 1))
        study.add_trials(begun.trials)
        yield arm, _first(study, case, TRIALS - TAKEN_OVER, check)


def _sampler(case: Case, arm: str, seed: int) -> optuna.samplers.BaseSampler:
    return RepairSampler(optuna.samplers.TPESampler(seed=seed % 2**32), case.policy(arm))


def _first(study: optuna.Study, case: Case, trials: int, check: Callable[[], None], *, ends: bool = True) -> int | None:
    """In which of the trials to come the target is reached; the search ends there, or goes on all the same."""
    before = len(study.trials)

    def end(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        check()
        if ends and (trial.value or 0.0) >= case.target:
            study.stop()

    study.optimize(lambda trial: objective(trial, case), n_trials=trials, catch=(Exception,), callbacks=[end])
    return next((one.number - before + 1 for one in study.trials[before:] if (one.value or 0.0) >= case.target), None)


def objective(trial: optuna.Trial, case: Case, epochs: int = EPOCHS) -> float:
    """A training as a user of Optuna writes it, with isorun's three lines."""
    torch.manual_seed(case.draws + trial.number)
    fault = case.what_is_wrong
    stuff = material(case.data, is_raw=fault.is_raw)
    layers = trial.suggest_int("layers", *fault.layers)
    units = trial.suggest_int("units", 16, 64, log=True)
    model = build(fault, stuff[0].shape[1], units, layers, trial.suggest_float("dropout", 0.0, 0.3))
    optimizer = torch.optim.SGD(model.parameters(), lr=fault.rate, momentum=fault.momentum, weight_decay=fault.decay)
    isorun.repair.expand(trial, model, optimizer, epochs=epochs)
    with isorun.watch(model) as watcher:
        scores = list(train(model, optimizer, stuff, epochs))
    isorun.repair.note(trial, watcher, val_accuracy=scores)
    return max(scores)


def _by_keras_tuner(job: Job, check: Callable[[], None]) -> Iterator[tuple[str, int | None]]:
    with tempfile.TemporaryDirectory() as folder:
        begun = Path(folder) / "begun"
        for arm in job.arms:
            where = Path(folder) / arm
            if arm in _GOING_ON:
                if not begun.exists():
                    _tuned(job.case, begun, "engine alone", TAKEN_OVER, check, ends=False)
                shutil.copytree(begun, where)
            yield arm, _tuned(job.case, where, arm, TRIALS, check)


def _tuned(
    case: Case, folder: Path, arm: str, trials: int, check: Callable[[], None], *, ends: bool = True
) -> int | None:
    """Run a tuner on a folder, new or not; in which of its trials it reached the target. It ends there."""
    import keras
    import keras_tuner

    from isorun.repair.engines.keras_tuner import attach

    fault, count = case.what_is_wrong, itertools.count()
    x, y, held_x, held_y = material(case.data, is_raw=fault.is_raw)

    def built(hp: Any) -> Any:
        keras.utils.set_random_seed((case.draws + next(count)) % 2**32)
        layers = hp.Int("layers", *fault.layers)
        units = hp.Int("units", 16, 64, sampling="log")
        return built_by_keras(fault, x.shape[1], units, layers, hp.Float("dropout", 0.0, 0.3))

    class Ending(keras_tuner.RandomSearch if arm.startswith("random") else keras_tuner.BayesianOptimization):  # type: ignore[misc]
        def on_trial_end(self, trial: Any) -> None:
            super().on_trial_end(trial)
            check()
            if ends and (trial.score or 0.0) >= case.target:
                self.oracle.max_trials = len(self.oracle.trials)

    seed = (case.draws + (arm in _AFRESH) + arm.startswith("random")) % 2**32
    kept = {"directory": str(folder), "project_name": "search", "max_consecutive_failed_trials": 100}
    model = isorun.repair.expansion.hypermodel(built) if arm in _AFRESH else built
    tuner = Ending(model, "val_accuracy", max_trials=trials, seed=seed, **kept)
    before = len(tuner.oracle.trials)
    if arm not in _AFRESH:
        attach(tuner, case.policy(arm))
    tuner.search(x, y, epochs=EPOCHS, batch_size=BATCH, validation_data=(held_x, held_y), verbose=0)
    scores = [tuner.oracle.trials[name].score or 0.0 for name in tuner.oracle.start_order[before:]]
    return next((place for place, score in enumerate(scores, start=1) if score >= case.target), None)


def rows_of(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """What is told of all searches of an engine, and of each fault."""
    rows = []
    for engine in dict.fromkeys(line["engine"] for line in lines):
        here = _whole([line for line in lines if line["engine"] == engine])
        stuck = [one for group in _by_fault(here).values() if _share(group, "engine alone") <= 0.5 for one in group]
        rows += _summary(engine, stuck, len(here))
        rows += [_fault_row(engine, *named) for named in _by_fault(here).items()]
    return [*rows, *_alone_and_together()]


def _whole(lines: Sequence[Line]) -> list[Found]:
    """The cases that all arms of the engine were searched in: they are compared in pairs."""
    found: dict[Case, dict[str, int | None]] = {}
    for line in lines:
        case = Case(*(line[name] for name in ("engine", "data", "fault", "seed")))
        found.setdefault(case, {})[line["arm"]] = line["reached"]
    arms = [arm for arm in ARMS if any(arm in reached for reached in found.values())]
    whole = [(case, reached) for case, reached in found.items() if set(reached) == set(arms)]
    return [Found(case, {arm: reached[arm] for arm in arms}) for case, reached in whole]


def _by_fault(found: Sequence[Found]) -> dict[tuple[str, str], list[Found]]:
    groups: dict[tuple[str, str], list[Found]] = {}
    for one in found:
        groups.setdefault((one.case.data, one.case.fault), []).append(one)
    return groups


def _summary(engine: str, stuck: Sequence[Found], searched: int) -> list[dict[str, Any]]:
    """Over all searches with faults that the engine alone finds a way out of in at most half."""
    rows = []
    for kind, group in (("one change helps", False), ("only two or three changes together", True)):
        here = [one for one in stuck if one.case.what_is_wrong.together is group]
        for arm in here[0].reached if here else ():
            is_repair = arm == "repair"
            name = f"{engine}, {kind}: {arm} reaches the target"
            detail = f"{_told(here, arm)}; of {searched} searches those with faults that the engine alone is stuck with"
            share = _share(here, arm)
            is_met = not is_repair or share >= _LEAST
            rows.append(row(name, (100 * share, "%"), 100 * _LEAST if is_repair else "", detail, is_met=is_met))
        if here:
            rows.append(_against_afresh(f"{engine}, {kind}: repair over the engine afresh on the expanded space", here))
    return rows


def _against_afresh(name: str, found: Sequence[Found]) -> dict[str, Any]:
    after, afresh = TRIALS - TAKEN_OVER, _AFRESH[0]
    pairs = [(one.within("repair", after), one.within(afresh, after)) for one in found]
    mean, low, high = interval(np.array([100.0 * (ours - theirs) for ours, theirs in pairs]))
    trials = [_capped(one, "repair", after) - _capped(one, afresh, after) for one in found]
    sooner = interval(np.array(trials, dtype=float))
    detail = f"{after} trials each, paired: 95 % interval {low:+.0f} to {high:+.0f}; trials that repair needs more "
    detail += f"(those that do not reach it as {after + 1}): {sooner[0]:+.1f} ({sooner[1]:+.1f} to {sooner[2]:+.1f})"
    return row(name, (mean, "points"), "≥ 0", detail, is_met=mean >= 0)


def _capped(one: Found, arm: str, trials: int) -> int:
    at = one.reached[arm]
    return trials + 1 if at is None or at > trials else at


def _fault_row(engine: str, named: tuple[str, str], found: Sequence[Found]) -> dict[str, Any]:
    detail = "; ".join(f"{arm} {_told(found, arm)}" for arm in found[0].reached)
    return row(f"{engine}, {named[0]}, {named[1]}: repair", (100 * _share(found, "repair"), "%"), "", detail)


def _share(found: Sequence[Found], arm: str) -> float:
    return statistics.fmean(one.within(arm, TRIALS - TAKEN_OVER) for one in found) if found else 0.0


def _told(found: Sequence[Found], arm: str) -> str:
    """How many reach the target, with Wilson's interval, and the median trial."""
    after = TRIALS - TAKEN_OVER
    reached = [one for one in found if one.within(arm, after)]
    low, high = wilson(len(reached), len(found))
    median = statistics.median(_capped(one, arm, after) for one in found) if found else after + 1
    told = f"{len(reached)} of {len(found)} in {after} trials ({100 * low:.0f} to {100 * high:.0f} %)"
    told += f", median trial {median:g}" if median <= after else ", median not reached"
    if arm in _AFRESH:
        told += f", in {TRIALS} trials {sum(one.within(arm, TRIALS) for one in found)}"
    return told


def _alone_and_together() -> list[dict[str, Any]]:
    """That no single change that is offered helps where several must be made at once."""
    torch.set_num_threads(1)
    rows = []
    for data, fault in itertools.product(DATA, (one for one in FAULTS if one.together)):
        scores = single_changes(fault, data)
        helping = sum(score >= TARGETS[data] for score in scores.values())
        detail = f"of {len(scores)} offered; the best of them scores {max(scores.values()):.2f}"
        name = f"{data}, {fault.name}: single changes that reach the target"
        rows.append(row(name, (helping, ""), 0, detail, is_met=helping == 0))
    return rows


if __name__ == "__main__":
    main()
