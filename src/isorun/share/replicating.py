"""Replicating: runs of a package again, from the package alone: repeated, replicated, reproduced, or not.

What is run, a group at a time (approach, config, environment, level):
1. Where a seed is fixed: the first stored seed once. Where its bits are the same, up to n of the stored seeds, each
   once.
2. Where bits differ or cannot be had: n new draws, which are held against the stored ones. At level default n runs;
   where a seed is fixed n seeds that the package does not have; and where it has one seed alone, n runs of that.
Looks after every run go on up to a maximum, where one is given.

The command, folder and rule are told before anything is run, and the rule is kept in the folder: the same call goes on
where it was stopped, and another one is refused there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from isorun import workflow
from isorun.analysis.checks import Margin, SameBits
from isorun.analysis.checks.comparable import same_runs
from isorun.analysis.evidence import Condition, first_of, some
from isorun.analysis.evidence.judged import JudgedMetric
from isorun.analysis.evidence.shared_files import is_isolated
from isorun.analysis.replications import (
    GroupOutcome,
    GroupRuns,
    ReplicatedGroup,
    Replication,
    ReplicationRule,
    judge_groups,
)
from isorun.analysis.replications.groups import (
    NO_RUNS,
    Place,
    StoredGroup,
    by_place,
    conditions_of,
    same_bits,
    side_of,
    stored_groups,
    without_result,
)
from isorun.analysis.replications.setups import replaced_between
from isorun.analysis.studies.selection import last_words
from isorun.analysis.studies.study_result import StudyResult, analyse_recorded, not_logged
from isorun.environments.interpreter import REPLACED
from isorun.errors import ExecutionError, InputError, NothingRecorded, known_names
from isorun.packages.names import PREFIX as REGISTERED
from isorun.packages.opened import PackageStore
from isorun.scheduling import INTERRUPTED
from isorun.session import PACKAGE_SUFFIX, Session
from isorun.share.at_hand import (
    DATA,
    Lack,
    as_many_cpus,
    chosen_interpreter,
    cpus_of,
    lacking_machine,
    package_at,
    pinned,
    refuse_lacks,
    with_python_here,
)
from isorun.share.declared_again import environment_of, study_of_cells
from isorun.share.looking import signer_to_run
from isorun.share.replaying import Watcher
from isorun.share.replication_folder import ReplicationFolder
from isorun.share.seen_first import seen_of
from isorun.store import shown_place
from isorun.study import FUNCTION
from isorun.study.cells import GROUP_FACTORS, Cell, cells_of
from isorun.study.design import Metric, Study
from isorun.study.parsing import PACKAGES
from isorun.study.records import RunRecord, RunState

__all__ = ["ReplicationPlan", "replicate"]

_NEVER_STARTED: Final = "none"


@dataclass(frozen=True, slots=True)
class ReplicationPlan:
    """What would be run, before anything is. commands: of the package, as they are run. variables: that it sets.

    Of all its runs: an enemy can give runs of one name different contents, and which of them is taken is no matter to
    whoever looks. installs: requirements of environments that are made again. fewest, most: how many runs, by what
    comes of the first ones.
    """

    package: str
    address: str
    signature: str
    study: str
    commands: tuple[str, ...]
    variables: tuple[str, ...]
    environments: tuple[str, ...]
    installs: tuple[str, ...]
    folder: str
    groups: int
    fewest: int
    most: int

    def lines(self) -> list[tuple[str, str]]:
        """For people, who have to see what runs before it does."""
        found = [("package", f"{self.package} ({self.address[:19]}…, signature: {self.signature}), study {self.study}")]
        found += [("command", command) for command in self.commands]
        found += [("variable", text) for text in self.variables]
        found += [("environment", text) for text in self.environments]
        found += [("installs", ", ".join(self.installs))] if self.installs else []
        runs = some(self.fewest, "run") if self.fewest == self.most else f"{self.fewest:,} to {self.most:,} runs"
        return [*found, ("folder", self.folder), ("runs", f"{runs} of {some(self.groups, 'group')}")]


Confirm = Callable[[ReplicationPlan], None]
"""Raises where it is not to be run."""


def replicate(
    package: str | Path,
    *,
    runs: int = 5,
    max_runs: int | None = None,
    margin: float | None = None,
    margin_unit: str | None = None,
    metric: str | None = None,
    where: Mapping[str, str] | None = None,
    selection: str | None = None,
    alpha: float = 0.05,
    code: str | Path | None = None,
    data: Sequence[str | Path] = (),
    folder: str | Path | None = None,
    store: str | Path | None = None,
    python: str | None = None,
    anyway: bool = False,
    jobs: int = 1,
    confirm: Confirm | None = None,
    watch: Watcher | None = None,
    command: str = "",
) -> Replication:
    """Run a package again, here. It runs the package's own command: look at that first, or let `confirm` do it.

    package: a file, or `registry:OWNER/PROJECT/NAME@VERSION`.
    runs: stored seeds whose bits are asked for, and new draws, a group. max_runs: look after every run up to so many.
    margin: a difference that does not matter, in points for accuracies, else in the metric's own numbers; without one
    two standard deviations of the stored runs. where: only these groups. code: a clone of the code's repository, where
    the package has not all files. data: folders with its data. folder: where it is run; the same call goes on there.
    store: where the new runs are kept. anyway: run with what is here where something cannot be had.
    """
    with PackageStore(package_at(package)) as kept:
        signer_to_run(kept.package)
        known = list(kept.records())
        stored = _wanted(known, where or {}, str(package))
        groups = stored_groups(stored)
        judging = _Judging.of(kept, stored, metric, selection)
        rule = ReplicationRule(runs, max_runs, judging.margin(margin, margin_unit), alpha)
        home = Path(folder) if folder else Path(f"{_short_name(str(package))}-replication")
        declared = {
            "package": kept.package.address,
            "runs": runs,
            "max_runs": max_runs,
            "margin": margin,
            "margin_unit": margin_unit,
            "metric": judging.metric.name,
            "selection": judging.selection,
            "alpha": alpha,
            "where": dict(where or {}),
        }
        place = ReplicationFolder(home, declared)
        place.refuse_other()
        surroundings = _Surroundings.of(groups, python, anyway=anyway)
        if confirm is not None:
            confirm(_plan(kept, groups, rule, surroundings, home=home, package=str(package)))
        working, lacks = place.put(kept.package, stored, Path(code) if code else None, [Path(one) for one in data])
        lacks += surroundings.lacks
        if not anyway:
            refuse_lacks(lacks, "the package")
        place.declare(working)
        study = _study(kept, groups, rule, working, surroundings)
        target = str(store) if store else place.store
        at_hand = _AtHand(study, groups, rule, judging, watch)
        with as_many_cpus(_cpus(stored, jobs)):
            session = workflow.session_of(
                study, store=target, jobs=jobs, launch=_launch(stored), python=surroundings.python
            )
            with session as opened:
                _refuse_own_runs(stored, opened.store.records(cell.id for cell in cells_of(study)), target)
                workflow.remember(study, store=opened.store)
                at_hand.run(opened)
        told = Replication(
            str(package),
            kept.package.address,
            kept.package.manifest.study,
            judging.metric.name,
            judging.metric.direction,
            judging.metric.scale,
            rule,
            at_hand.judged,
            replaced_between(stored, at_hand.finished()),
            at_hand.made,
            str(home),
            target,
            command,
            conditions=(*_told(lacks, anyway=anyway), *without_result(_asked(known, where or {}))),
        )
    place.keep_result(told.to_json())
    return told


def _short_name(package: str) -> str:
    """What a folder may be called after a package."""
    return Path(package.removeprefix(REGISTERED).replace(":", "-")).name.partition("@")[0].removesuffix(PACKAGE_SUFFIX)


def _wanted(records: Sequence[RunRecord], where: Mapping[str, str], place: str) -> list[RunRecord]:
    """The finished runs of the groups that are asked for."""
    if wrong := [name for name in where if name not in GROUP_FACTORS]:
        raise InputError(f"runs are not told apart by {wrong[0]!r}", allowed=known_names(wrong[0], GROUP_FACTORS))
    finished = [record for record in records if record.state is RunState.FINISHED]
    if finished and finished[0].cell.command[0] == "imported":
        raise InputError(f"the runs of {place} were imported: isorun did not make them, and cannot make more")
    for name, label in where.items():
        labels = list(dict.fromkeys(str(getattr(record.cell, name)) for record in finished))
        if label not in labels:
            raise InputError(f"no {name} of {place} is {label!r}", allowed=known_names(label, labels))
        finished = _asked(finished, {name: label})
    if not finished:
        raise NothingRecorded(f"no run of {place} has finished", hint=f"isorun verify {place} says what is in it")
    return finished


def _asked(records: Iterable[RunRecord], where: Mapping[str, str]) -> list[RunRecord]:
    return [record for record in records if all(str(getattr(record.cell, name)) == where[name] for name in where)]


def _refuse_own_runs(stored: Sequence[RunRecord], there: Iterable[RunRecord], place: str) -> None:
    """A store that the package was made of has its runs already: they would be held against themselves."""
    same = same_runs(there, stored)
    if same:
        raise InputError(
            f"{shown_place(place)} holds the runs of the package itself ({some(len(same), 'run')})",
            found=f"{first_of(same, 3, ', ')}: recorded once, and in both",
            hint="leave --store out, or name a new one: runs are made again there",
        )


@dataclass(frozen=True, slots=True)
class _Judging:
    """What runs are judged by: the metric and the selection of the package's study, or as asked."""

    metric: JudgedMetric
    selection: str
    metrics: Mapping[str, Metric]
    study: Study
    stored: StudyResult

    @classmethod
    def of(
        cls, kept: PackageStore, records: Sequence[RunRecord], metric: str | None, selection: str | None
    ) -> _Judging:
        study = kept.package.study()
        metrics = study.metrics if metric is None else {metric: study.metrics.get(metric, Metric(metric))}
        result = analyse_recorded(study.name, records, metrics, study.selections)
        if result.primary is None or result.primary.name not in result.logged:
            raise not_logged(metric or "", result.logged)
        names = [item.name for item in result.selections]
        if selection is not None and selection not in names:
            raise InputError(f"the study has no selection {selection!r}", allowed=known_names(selection, names))
        return cls(
            result.primary,
            selection or names[0],
            {result.primary.name: Metric(result.primary.name, result.primary.direction)},
            study,
            result,
        )

    def margin(self, given: float | None, unit: str | None) -> Margin | None:
        """The margin as it was said."""
        return None if given is None else Margin.of(given, unit, self.metric.scale)

    def result(self, records: Sequence[RunRecord]) -> StudyResult:
        """What new runs say, by the same metric."""
        return analyse_recorded("new runs", records, self.metrics, self.study.selections)


def _plan(
    kept: PackageStore,
    groups: Sequence[StoredGroup],
    rule: ReplicationRule,
    surroundings: _Surroundings,
    *,
    home: Path,
    package: str,
) -> ReplicationPlan:
    seen = seen_of(surroundings.cells(groups), kept.package.study_document())
    installed = (word for made in surroundings.environments.values() for word in made["settings"]["requirements"])
    again = [min(rule.runs, len(group.seeds)) for group in groups]
    most = [first + rule.last - (group.one_seed and rule.last > 0) for first, group in zip(again, groups, strict=True)]
    return ReplicationPlan(
        package,
        kept.package.address,
        signer_to_run(kept.package),
        kept.package.manifest.study,
        seen.commands,
        seen.variables,
        seen.environments,
        tuple(dict.fromkeys(installed)),
        str(home),
        len(groups),
        sum(first or rule.runs for first in again),
        sum(most),
    )


@dataclass(frozen=True, slots=True)
class _Surroundings:
    """The interpreter that runs are made with, and the environments that are made again because it lacks something.

    asked: the interpreter that was asked for. lacks: what cannot be had.
    """

    python: str
    asked: str | None
    environments: Mapping[str, Mapping[str, Any]]
    lacks: tuple[Lack, ...]

    @classmethod
    def of(cls, groups: Sequence[StoredGroup], python: str | None, *, anyway: bool) -> _Surroundings:
        """Nothing of the package is started for it, and nothing is made yet."""
        lacks = list(dict.fromkeys(lack for group in groups for lack in lacking_machine(group.records[0])))
        plain = [group for group in groups if _is_plain(with_python_here(group.first_cell(), python))]
        found, lacking = chosen_interpreter(plain[0].records[0], python) if plain else ("", [])
        rebuilt: dict[str, Mapping[str, Any]] = {}
        if lacking and (anyway or python or not _can_be_made(plain)):
            lacks += lacking
        elif lacking:
            for group in plain:
                version, requirements = pinned(group.records[0])
                settings = {"kind": PACKAGES, "settings": {"requirements": requirements}, "python": version}
                cell = with_python_here(group.first_cell(), python)
                rebuilt[cell.environment] = {**environment_of(cell, {}), **settings}
        return cls("" if rebuilt else found, python, rebuilt, tuple(lacks))

    def cells(self, groups: Sequence[StoredGroup]) -> list[Cell]:
        """The stored cells as they are run here."""
        return [with_python_here(record.cell, self.asked) for group in groups for record in group.records]


def _is_plain(cell: Cell) -> bool:
    """Whether it runs in an interpreter of the machine."""
    return not cell.environment_content.get("kind") and cell.command[0] in (*REPLACED, FUNCTION)


def _can_be_made(groups: Sequence[StoredGroup]) -> bool:
    """Whether an environment of packages can take the place: there is something to install, and isorun is not it."""
    parts = [word for group in groups for word in group.first_cell().command]
    return all(pinned(group.records[0])[1] for group in groups) and not any(
        word.startswith("isorun.") for word in parts
    )


def _study(
    kept: PackageStore, groups: Sequence[StoredGroup], rule: ReplicationRule, working: Path, surroundings: _Surroundings
) -> Study:
    """The study with the stored cells and all new ones that the rule may ask for."""
    draws = [place for group in groups for place in (*group.same_seeds(rule.runs), *group.new_draws(rule.last))]
    seeds = sorted({seed for _, seed, _ in draws if seed is not None}) or [1]
    repeats = 1 + max(repeat for *_, repeat in draws)
    document = kept.package.study_document()
    return study_of_cells(
        kept.package.manifest.study,
        surroundings.cells(groups),
        document,
        working,
        seeds=seeds,
        repeats=repeats,
        environments=surroundings.environments,
        isolate=any(is_isolated(record) for group in groups for record in group.records),
    )


def _cpus(records: Sequence[RunRecord], jobs: int) -> int | None:
    found = cpus_of(records)
    return None if found is None else found * jobs


def _launch(records: Sequence[RunRecord]) -> str:
    """As most of the stored runs were launched."""
    launches = [record.launch for record in records if record.launch in {"warm", "fresh"}]
    return max(dict.fromkeys(launches), key=launches.count, default="auto")


def _told(lacks: Iterable[Lack], *, anyway: bool) -> Iterable[Condition]:
    for lack in dict.fromkeys(lacks) if anyway else ():
        they, were = ("they", "were") if lack.kind in {DATA, PACKAGES} else ("it", "was")
        became = "it was run without" if lack.is_missing else f"{were} replaced"
        message = f"{lack.kind} could not be had as {they} {were}, and {became}: {lack.words}"
        yield Condition("replaced", message, lack.hint or "replicate where it can be had")


class _AtHand:
    """The runs of a replication as they come in. judged: what is said of each group so far; made: runs of this call."""

    def __init__(
        self,
        study: Study,
        groups: Sequence[StoredGroup],
        rule: ReplicationRule,
        judging: _Judging,
        watch: Watcher | None,
    ) -> None:
        self._study = study
        self._groups = groups
        self._rule = rule
        self._judging = judging
        self._watch = watch
        self._records: Mapping[Place, RunRecord] = {}
        self._drawn: dict[tuple[str, ...], int] = {}
        self.judged: tuple[ReplicatedGroup, ...] = ()
        self.made = 0

    def run(self, session: Session) -> None:
        """Ask for bits, then for statistics where bits do not settle it."""
        self._make(session, [place for group in self._groups for place in group.same_seeds(1)])
        alike = [group for group in self._groups if self._same(group)]
        self._make(session, [place for group in alike for place in group.same_seeds(self._rule.runs)])
        others = [group for group in self._groups if not self._same(group) and not self._failed(group.same_seeds(1))]
        wanted = self._rule.runs
        while others and wanted <= self._rule.last:
            self._drawn |= dict.fromkeys((group.group for group in others), wanted)
            self._make(session, [place for group in others for place in group.new_draws(wanted)])
            self._judge()
            open_ones = {
                told.name for told in self.judged if told.outcome is GroupOutcome.UNDECIDED and not told.failed
            }
            others = [group for group in others if group.name.label in open_ones]
            wanted += 1
        self._judge()

    def finished(self) -> list[RunRecord]:
        """The new runs that ended well."""
        return [record for record in self._records.values() if record.state is RunState.FINISHED]

    def _make(self, session: Session, places: Sequence[Place]) -> None:
        """Make what is missing of these cells."""
        wanted = set(places)
        if wanted:
            with self._watch(self._study) if self._watch else nullcontext() as observer:
                outcome = workflow.run_missing(self._study, session, observer, lambda cell: _place(cell) in wanted)
            self.made += len(outcome.records)
            if outcome.stopped == INTERRUPTED:
                raise KeyboardInterrupt
            if outcome.records and all(record.launch == _NEVER_STARTED for record in outcome.records):
                raise _cannot_be_made(outcome.records[-1])
        self._records = by_place(session.store.records(cell.id for cell in cells_of(self._study, session.store.key)))

    def _same(self, group: StoredGroup) -> bool:
        bits = self._bits(group)
        return bool(bits.compared) and bits.same == bits.compared

    def _failed(self, places: Sequence[Place]) -> list[RunRecord]:
        """Runs of these cells that did not end well: no more are made of a group whose first one did not."""
        found = [self._records[place] for place in places if place in self._records]
        return [record for record in found if record.state is not RunState.FINISHED]

    def _bits(self, group: StoredGroup) -> SameBits:
        again = [self._records[place] for place in group.same_seeds(self._rule.runs) if place in self._records]
        return same_bits(group.records, again, self._judging.metric.name)

    def _judge(self) -> None:
        self.judged = judge_groups([self._runs(group) for group in self._groups], self._rule)

    def _runs(self, group: StoredGroup) -> GroupRuns:
        count = self._drawn.get(group.group, 0)
        places = group.new_draws(count) if count else group.same_seeds(self._rule.runs)
        used = [self._records[place] for place in places if place in self._records]
        finished = [record for record in used if record.state is RunState.FINISHED]
        own = self._judging.result(finished) if finished else None
        chosen, metric = self._judging.selection, self._judging.metric.name
        stored = side_of(self._judging.stored, group.group, chosen, metric, by_run=group.one_seed)
        side = NO_RUNS if own is None else side_of(own, group.group, chosen, metric, by_run=group.one_seed)
        results = [result for result in (self._judging.stored, own) if result is not None]
        conditions = (*conditions_of(results, group.group), *_why_failed(self._failed(places), group.name.label))
        return GroupRuns(group.name.label, stored, side, self._bits(group), len(used) - len(finished), conditions)


def _why_failed(failed: Sequence[RunRecord], name: str) -> Iterable[Condition]:
    if failed:
        said = last_words(failed[-1].log_tail) or failed[-1].reason
        message = f"{some(len(failed), 'new run')} did not finish: {said}"
        look = f"look at runs/{failed[-1].run_id}/output.log in the store of the new runs"
        yield Condition("runs-failed", message, f"{look}; mend it, then the same command again", (name,))


def _place(cell: Cell) -> Place:
    return cell.group, cell.seed, cell.repeat


def _cannot_be_made(record: RunRecord) -> ExecutionError:
    return ExecutionError(
        "the environment of the package cannot be made here",
        found=record.reason,
        hint="see that pip or uv reaches a registry, or --python PATH; --anyway runs with the packages that are here",
    )
