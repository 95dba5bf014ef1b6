"""Pricing: runs of a training with ever more steps towards determinism, taking turns, and what they cost and buy.

price(["python", "train.py"])      what each step costs here, and the cheapest set that gives bit-identical runs

All runs are ordinary records in the store: what was measured is used again, unless the code or the machine changed.
"""

from __future__ import annotations

import itertools
import os
import shlex
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from isorun import workflow
from isorun.analysis.evidence import Condition, first_of
from isorun.analysis.evidence.provenance import effective
from isorun.analysis.evidence.run_units import BY_DIGESTS, BY_NUMBERS, BY_WEIGHTS, bits_of
from isorun.analysis.prices import AS_IT_IS, LADDER, SEED, LadderStep, Names, NotApplicable, applicable, rungs
from isorun.analysis.prices.choice import MOST_RUNS, least_seconds, recommended, wanted_runs
from isorun.analysis.prices.conditions import Circumstances, more_time, price_conditions
from isorun.analysis.prices.price import OUT_OF_TIME, Price, judged
from isorun.analysis.prices.priced_runs import FEWEST_RUNS, PlannedRun, PricedRuns, made_run, metric_of
from isorun.analysis.studies.conditions import told_at_once
from isorun.errors import ExecutionError, InputError
from isorun.execution import AbstractExecutor
from isorun.reuse import changes_since
from isorun.scheduling import AbstractAgenda, Observer, Outcome, carry_out
from isorun.session import Session
from isorun.study.cells import Cell, Level, cells_of
from isorun.study.design import Environment, Study, adhoc_study, changed, with_key
from isorun.study.records import RunRecord, RunState
from isorun.worker import frameworks
from isorun.worker.frameworks import switches
from isorun.worker.frameworks.switches import THREADS
from isorun.worker.levels import InstructionPath, cpu_path, this_cpu_flags

__all__ = ["price"]

_AS_IT_IS: Final = "as it is"
_GENERATION: Final = 1000
"""Repeats of a later measurement of changed code begin at so many more: those before stay what they are."""
_OPTIONAL: Final = tuple(step for step in LADDER if step.name != SEED)


def price(
    training: Sequence[str] | Study,
    *,
    runs: int = 6,
    seconds: float = 600.0,
    steps: int = 0,
    metric: str = "",
    store: workflow.Store = None,
    executor: str | AbstractExecutor = "local",
    devices: str = "auto",
    observer: Observer | None = None,
    folder: str | Path | None = None,
) -> Price:
    """What each step towards determinism costs in time and buys in variance, for this training on this machine.

    training: a command, or a study of one command in one environment, whose seeds are taken where it has more than one.
    runs: of each set of steps. seconds: for all of them; no block of runs is begun that would take longer. steps: end
    every run after so many steps of an optimizer (0: at its own end). metric: whose spread is told.
    """
    given = training if isinstance(training, Study) else _study_of(training, folder)
    _check(given, runs, seconds, steps)
    path = _one_cpu_path()
    study = _with_all_sets(given, steps, path, seconds)
    session = workflow.session_of(study, store=store, executor=executor, launch="fresh", devices=devices)
    with session as opened:
        keyed = with_key(study, opened.store.key)
        asked = metric or next(iter(given.metrics), "")
        ladder = _Ladder(keyed, opened, most=runs, seconds=seconds, path=path, metric=asked)
        outcome = carry_out(ladder, opened, keyed, observer)
        of_the_store = workflow.store_conditions(opened.store)
    command = next(iter(given.approaches.values())).command
    answer = _Answer(ladder, keyed, outcome, command=command, steps=steps, path=path)
    found = answer.price((*outcome.conditions, *of_the_store))
    return replace(found, next_steps=tuple(_after(found, workflow.store_words(store))))


def _study_of(command: Sequence[str], folder: str | Path | None) -> Study:
    return adhoc_study([list(command)], folder=Path.cwd() if folder is None else Path(folder))


def _check(study: Study, runs: int, seconds: float, steps: int) -> None:
    if len(study.approaches) > 1 or len(study.environments) > 1 or study.searches:
        found = f"{len(study.approaches)} approaches, {len(study.environments)} environments"
        raise InputError("one command in one environment is priced at a time", found=found)
    if not FEWEST_RUNS <= runs <= MOST_RUNS:
        raise InputError(
            "so many runs of each set cannot be made", found=str(runs), allowed=f"{FEWEST_RUNS} to {MOST_RUNS}"
        )
    if not seconds > 0 or steps < 0 or steps == 1:
        raise InputError(
            "there is nothing to time",
            found=f"seconds = {seconds:g}, steps = {steps}",
            allowed="seconds above 0; steps 0 (whole trainings), or 2 and more: the first one is not timed",
        )


def _one_cpu_path(*, intel: bool | None = None) -> InstructionPath:
    """The path that level `deterministic` takes, as switches where libraries answer to them, else by its variables.

    MKL answers on processors of its own maker alone. The switch `cpu` holds more than the level does, such as OpenBLAS.
    """
    path = cpu_path(this_cpu_flags())
    if intel is None:
        try:
            intel = "GenuineIntel" in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        except OSError:
            intel = False
    switches = {name: value for name, value in path.switches.items() if intel or name != "mkl"}
    set_by_them = Environment("", switches=switches).variables
    return InstructionPath({name: value for name, value in path.variables.items() if name not in set_by_them}, switches)


def _requested(names: Sequence[str], path: InstructionPath) -> tuple[dict[str, str], dict[str, str]]:
    """The switches and the variables that ask for these steps."""
    switches: dict[str, str] = {}
    variables: dict[str, str] = {}
    for step in _OPTIONAL:
        if step.name in names:
            switches |= path.switches if step.switch == "cpu" else step.switches
            variables |= path.variables if step.switch == "cpu" else step.variables
    return switches, variables


def _environment_name(names: Sequence[str]) -> str:
    """The environment of a set: the seed is its level's."""
    return ", ".join(name for name in names if name != SEED) or _AS_IT_IS


def _with_all_sets(study: Study, steps: int, path: InstructionPath, seconds: float) -> Study:
    """The study with an environment for every set of steps: which can be taken is known after the first run."""
    base = next(iter(study.environments.values()))
    environments = {}
    for length in range(len(_OPTIONAL) + 1):
        for chosen in itertools.combinations([step.name for step in _OPTIONAL], length):
            switches, variables = _requested(chosen, path)
            name = _environment_name(chosen)
            made = replace(
                base,
                name=name,
                env={**base.env, **variables},
                switches={**base.switches, **switches},
                steps=steps,
            )
            environments[name] = made.to_json()
    limit = study.policy.time_limit_seconds
    return changed(
        study,
        environments=environments,
        levels=[str(Level.DEFAULT), str(Level.FIXED_SEED)],
        seeds=list(study.seeds) if len(study.seeds) > 1 else [study.seeds[0], study.seeds[0] + 1],
        repeats=1,
        policy={"time_limit": seconds if limit is None else limit},
    )


class _Ladder(AbstractAgenda):
    """The agenda of a price: block by block, what `wanted_runs` says; what the store has is taken from there.

    first: the first run of the training as it is, which says what can be done here. too_long: seconds that the least
    measurement would take, where that is more than may be spent.
    """

    def __init__(
        self, study: Study, session: Session, *, most: int, seconds: float, path: InstructionPath, metric: str
    ) -> None:
        self.runs = PricedRuns()
        self.records: dict[PlannedRun, RunRecord] = {}
        self.first: RunRecord | None = None
        self.taken: Names = ()
        self.left_out: tuple[NotApplicable, ...] = ()
        self.failure = ""
        self.too_long = 0.0
        self.metric = metric
        self._study = study
        self._store = session.store
        self.most = most
        self.seconds = seconds
        self._path = path
        self._generation = 0
        self._fits = False
        self._open: dict[str, PlannedRun] = {}
        self._templates = {(cell.environment, cell.level): cell for cell in cells_of(study)}

    def propose(self, room: Callable[[], int]) -> Sequence[Cell]:  # noqa: ARG002 - one after the other
        """The runs of the next block that the store does not have."""
        while not self._open and not self.failure and not self.too_long:
            wanted = {run: self._cell(run) for run in self._wanted()}
            if not wanted:
                return ()
            kept = self._kept(list(wanted.values()))
            if not all(self._take(run, kept[cell.id]) for run, cell in wanted.items() if cell.id in kept):
                continue
            lacking = {cell.id: run for run, cell in wanted.items() if cell.id not in kept}
            self._refuse_too_long(lacking.values())
            if lacking and not self.too_long:
                # In the first block each run may show that there is no time for four of each.
                at_once = 1 if any(run.block == 1 for run in wanted) else len(lacking)
                self._open = dict(list(lacking.items())[:at_once])
                return [cell for cell in wanted.values() if cell.id in self._open]
        return ()

    def _refuse_too_long(self, lacking: Iterable[PlannedRun]) -> None:
        """Look before new runs are made whether there is time for the least measurement; once there is, it is made."""
        if self.first is None or self._fits or not any(0 < run.block <= FEWEST_RUNS for run in lacking):
            return
        least = least_seconds(self.runs, self.taken)
        self.too_long = least if least > self.seconds else 0.0
        self._fits = not self.too_long and self.has_a_block

    def hear(self, record: RunRecord, *, final: bool) -> None:
        """A run ended; one that failed says that its set cannot be had."""
        if not final or record.cell.id not in self._open:
            return
        run = self._open.pop(record.cell.id)
        if record.state is RunState.FINISHED:
            if not self._take(run, record):
                self._open.clear()
        elif record.state is RunState.INTERRUPTED:
            return
        elif run.names == AS_IT_IS:
            self.failure = f"{record.state}: {record.reason}"
        else:
            self.runs.failed[run.names] = f"{record.state}: {record.reason}"

    def to_come(self) -> int:
        """The rest of the ladder; how many sets are tried after it is not known."""
        if self.first is None:
            return 0
        ladder = rungs(self.taken)
        made = sum(1 for run in self.runs.made if run.names in ladder and 0 < run.block <= self.most)
        return max(len(ladder) * self.most - made - len(self._open), 0)

    @property
    def has_a_block(self) -> bool:
        """Whether every set of the ladder has run once."""
        ladder = (names for names in rungs(self.taken) if names not in self.runs.failed)
        return all(PlannedRun(names, 1) in self.runs.made for names in ladder)

    def _wanted(self) -> Sequence[PlannedRun]:
        def at_hand(runs: Sequence[PlannedRun]) -> bool:
            return bool(self._kept([self._cell(run) for run in runs]))

        return wanted_runs(self.runs, self.taken, self.most, self.seconds, at_hand)

    def _cell(self, run: PlannedRun) -> Cell:
        level = Level.FIXED_SEED if SEED in run.names else Level.DEFAULT
        seeds = self._study.seeds
        seed = seeds[(run.block - 1) % len(seeds)] if level.fixes_seed else None
        template = self._templates[_environment_name(run.names), level]
        return replace(template, seed=seed, repeat=self._generation * _GENERATION + run.block)

    def _kept(self, cells: Sequence[Cell]) -> dict[str, RunRecord]:
        found = self._store.records(cell.id for cell in cells)
        return {record.cell.id: record for record in found if record.state is RunState.FINISHED}

    def _take(self, run: PlannedRun, record: RunRecord) -> bool:
        """Use a run. False where it shows that code or machine are not those of the first: all begins again."""
        if self.first is None:
            if record.where.get("host", socket.gethostname()) != socket.gethostname() or changes_since(
                self._study, [record]
            ):
                self._generation += 1
                return False
            self.first = record
            self.taken, self.left_out = applicable(record, self._path.switches)
            self.metric = metric_of([record], self.metric)
            self.runs.needed = () if record.seeded else (SEED,)  # what seeds itself may do without ours
        elif _versions_differ(record, self.first):
            self._generation += 1
            self.runs, self.records, self.first, self._fits = PricedRuns(), {}, None, False
            return False
        self.records[run] = record
        self.runs.made[run] = made_run(record, self.metric)
        return True


def _versions_differ(record: RunRecord, first: RunRecord) -> bool:
    """Whether processor, device, interpreter or packages are others than those of the first run."""
    now, then = effective(record), effective(first)
    packages, before = (found.get("packages") or {} for found in (now, then))
    if any(packages[name] != before[name] for name in packages.keys() & before.keys()):
        return True
    facts = (("cpu", "model"), ("python", "version"), ("gpu", "devices"), ("gpu", "driver"))
    return any((now.get(part) or {}).get(name) != (then.get(part) or {}).get(name) for part, name in facts)


class _Answer:
    """From the runs to a price, with what weakens it and the next command for each."""

    def __init__(
        self,
        ladder: _Ladder,
        study: Study,
        outcome: Outcome,
        *,
        command: Sequence[str],
        steps: int,
        path: InstructionPath,
    ) -> None:
        self._ladder = ladder
        self._study = study
        self._outcome = outcome
        self._command = tuple(command)
        self._typed = f"-- {shlex.join(command)}"
        self._asked_steps = steps
        self._path = path
        self._records = list(ladder.records.values())
        bits = [bits_of(record) for record in self._records]
        known = [item for item in bits if item is not None]
        # That of the run that told least: no more than it was compared.
        kinds = {item.judged_by for item in known}
        self._judged_by = next((kind for kind in (BY_NUMBERS, BY_DIGESTS, BY_WEIGHTS) if kind in kinds), "")
        self._compared = tuple(sorted({name for item in known for name in item.names}))

    def price(self, others: Sequence[Condition]) -> Price:
        """All there is to say."""
        ladder = self._ladder
        self._refuse_nothing()
        base, steps, tried = judged(ladder.runs, ladder.taken)
        best = recommended(ladder.runs, ladder.taken)
        chosen = best.names
        found = Price(
            command=self._command,
            metric=ladder.metric,
            judged_by=self._judged_by,
            compared=self._compared,
            as_it_is=base,
            steps=steps,
            tried=tried,
            not_applicable=(*ladder.left_out, *self._failed()),
            recommended=chosen,
            cut_after=self._asked_steps if self._are_cut else 0,
            study_lines=() if chosen is None else tuple(_study_lines(chosen, self._environment(chosen), self._path)),
            variables={} if chosen is None else self._outside(chosen),
            stopped=self._outcome.stopped,
            undecided=best.undecided,
            needs=best.needs,
        )
        if not found.stopped and not ladder.too_long and found.steps and found.fewest_runs < ladder.most:
            found = replace(found, stopped=OUT_OF_TIME)
        weakened = price_conditions(found, self._records, self._circumstances(whole=best.whole))
        answers = self._about_answers() if base.runs else ()
        return replace(found, conditions=(*weakened, *answers, *others))

    def _circumstances(self, *, whole: bool) -> Circumstances:
        ladder = self._ladder
        sets = [names for names in rungs(ladder.taken) if names not in ladder.runs.failed]
        return Circumstances(
            ladder.most,
            whole,
            ladder.too_long,
            os.getloadavg()[0],
            os.cpu_count() or 1,
            seconds=ladder.seconds,
            spent=ladder.runs.spent,
            each_more=sum(ladder.runs.wall(names) for names in sets),
            asked_steps=self._asked_steps,
            steps_seen=self._steps_seen,
        )

    @property
    def _are_cut(self) -> bool:
        """Whether any run was ended after the steps that were asked for."""
        return any((effective(record).get("work") or {}).get("cut") for record in self._records)

    @property
    def _steps_seen(self) -> bool:
        """Whether the first run told of a step of an optimizer; who counts none is not cut."""
        first = self._ladder.first
        return first is None or (effective(first).get("work") or {}).get("steps") != 0

    def _about_answers(self) -> Iterator[Condition]:
        """What the user asks for and did not get; steps that a library did not take, or of which it says nothing."""
        own = switches.asked_of(self._environment(AS_IT_IS).content())
        for item in told_at_once(self._study, self._records):
            if item.code == "factor-without-effect" and item.message.partition(" = ")[0] in own:
                yield item
        for step in _OPTIONAL:
            with_it = [record for run, record in self._ladder.records.items() if step.name in run.names]
            heard = [effective(record).get("switches") or {} for record in with_it]
            if heard and step.switch not in own:
                yield from self._about_step(step, heard)

    def _about_step(self, step: LadderStep, heard: Sequence[Mapping[str, Mapping[str, str]]]) -> Iterator[Condition]:
        """heard: what the libraries of each run with the step answer."""
        asked = {THREADS: "1"} if step.switch == THREADS else _requested([step.name], self._path)[0]
        missed = {
            f"{who} has {name} = {has}"
            for answers in heard
            for name, others in switches.without_effect(asked, answers).items()
            for who, has in others.items()
        }
        if missed:
            message = f"{step.name} was asked for, and did not come about: {first_of(sorted(missed), 3, ', ')}"
            yield Condition("factor-without-effect", message, "the row of that step is not what its name says here")
        used = set(effective(self._records[0]).get("frameworks") or ())
        computing = [each.name for each in frameworks.every() if each.libraries and each.name in used]
        silent = [name for name in computing if all(step.switch not in answers.get(name, {}) for answers in heard)]
        if silent and step.switch in (THREADS, "cpu"):
            who = sorted({name for answers in heard for name, items in answers.items() if step.switch in items})
            message = (
                f"whether {', '.join(silent)} followed {step.name} is not known: only {', '.join(who)} "
                f"{'says' if len(who) == 1 else 'say'} what it has"
            )
            yield Condition("step-not-told", message, "the row of that step may show what the others did alone")

    def _refuse_nothing(self) -> None:
        """Without runs of the training as it is there is nothing to hold anything against."""
        ladder = self._ladder
        if ladder.failure:
            hint = f"isorun run {self._typed} shows its output"
            raise ExecutionError("the training does not run as it is", found=ladder.failure, hint=hint)
        if ladder.too_long and not ladder.has_a_block:
            each = ladder.runs.wall(AS_IT_IS)
            raise InputError(
                f"a run takes {each:.0f} s, and the least measurement {ladder.too_long:.0f} s",
                found=f"{len(rungs(ladder.taken))} sets of steps, {FEWEST_RUNS} runs each",
                hint=more_time(self._asked_steps, ladder.too_long, steps_seen=self._steps_seen),
            )

    def _failed(self) -> Iterator[NotApplicable]:
        for names, why in self._ladder.runs.failed.items():
            if names in rungs(self._ladder.taken):
                yield NotApplicable(names[-1], f"its run {why}")

    def _environment(self, names: Names) -> Environment:
        return self._study.environments[_environment_name(names)]

    def _outside(self, chosen: Names) -> dict[str, str]:
        """The variables that ask the libraries of this training, beside those that several stand on."""
        switches, variables = _requested(chosen, self._path)
        asked = Environment("", switches=switches, env=variables).variables
        first = self._ladder.first
        used = set(effective(first).get("frameworks") or ()) if first is not None else set()
        theirs = {
            name
            for framework in frameworks.every()
            if framework.name not in used
            for name in (*framework.switch_variables(switches), *framework.thread_variables)
        }
        hashes = {"PYTHONHASHSEED": "0"} if SEED in chosen else {}
        return {**hashes, **{name: value for name, value in asked.items() if name not in theirs}}


def _after(found: Price, store: str) -> Iterator[str]:
    """The two runs to hold against each other: that differ with all steps taken, or without and with those chosen."""
    chosen = found.recommended_set
    if chosen is not None and chosen.names:
        yield f"isorun env diff {found.as_it_is.run_ids[0]} {chosen.run_ids[0]}{store}"
    elif chosen is None and found.steps and found.steps[-1].set.unlike:
        yield f"isorun env diff {' '.join(found.steps[-1].set.unlike)}{store}"


def _study_lines(chosen: Names, environment: Environment, path: InstructionPath) -> Iterator[str]:
    """The lines of a study file that give this set."""
    yield f'levels = ["{Level.FIXED_SEED if SEED in chosen else Level.DEFAULT}"]'
    lines = [f'{name} = "{value}"' for name, value in environment.switches.items()]
    _, asked = _requested(chosen, path)
    if asked:
        lines.append("env = { " + ", ".join(f'{name} = "{value}"' for name, value in asked.items()) + " }")
    if lines:
        yield "[environments.default]"
        yield from lines
