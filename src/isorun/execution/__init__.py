"""What every executor promises: it takes jobs and reports events. It never sees a store."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from isorun.errors import ExecutionError, IsorunError, StudyError
from isorun.study import Environment, Sources, is_withheld
from isorun.study.cells import Cell, fill_placeholders
from isorun.study.design import Study
from isorun.study.records import RunRecord
from isorun.worker.redaction import redacted_argv

if TYPE_CHECKING:
    from isorun.execution.assemble import lost_record, read_record

__all__ = [
    "AbstractExecutor",
    "Event",
    "ExecutorFailed",
    "Job",
    "Preparing",
    "Resources",
    "RowsLogged",
    "RunEnded",
    "RunStarted",
    "Tell",
    "event_from_json",
    "event_to_json",
    "job_of",
    "lost_record",
    "read_record",
]

_VERSION: Final = 1


def __getattr__(name: str) -> Any:
    """What executors of others need of records, from where they are made: that is built on this file."""
    if name in {"lost_record", "read_record"}:
        from isorun.execution import assemble  # noqa: PLC0415

        return getattr(assemble, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@dataclass(frozen=True, slots=True)
class Resources:
    """What one run may use; None where nothing was asked for and the executor gives an equal share."""

    cpus: int | None = None
    devices: int | None = None
    memory_bytes: int | None = None

    def to_json(self) -> dict[str, int | None]:
        """Plain JSON."""
        return {"cpus": self.cpus, "devices": self.devices, "memory_bytes": self.memory_bytes}

    @classmethod
    def from_json(cls, data: Mapping[str, int | None]) -> Resources:
        """What `to_json` wrote."""
        return cls(data.get("cpus"), data.get("devices"), data.get("memory_bytes"))


@dataclass(frozen=True, slots=True)
class Job:
    """One run to carry out: a claimed cell, and everything that another machine needs to carry it out.

    command: the approach's argument vector with its secrets, placeholders not filled: `{run_dir}` is known only where
    the run happens. seed: what `{seed}` stands for; at level `default` drawn for this run alone. isolate: whether it
    works in a copy of the working folder. executor: what the record says of who carried it out, `where["executor"]`;
    empty for `local`. An executor sets it before the job goes on its way.
    """

    cell: Cell
    attempt: int
    command: tuple[str, ...]
    working_folder: Path
    seed: int
    environment: Environment = field(default_factory=lambda: Environment("default"))
    resources: Resources = field(default_factory=Resources)
    time_limit_seconds: float | None = None
    sources: Sources = field(default_factory=Sources)
    isolate: bool = False
    executor: str = ""

    @property
    def given_seed(self) -> int:
        """What `{seed}` is filled with: the run's seed, or the one that is kept where random streams are parted."""
        if "streams" not in self.environment.switches:
            return self.seed
        from isorun.worker.frameworks.switches import given_seed  # noqa: PLC0415  few environments ask for that

        return given_seed(self.environment.switches, self.seed)

    @property
    def run_id(self) -> str:
        """The id of this execution: the cell's id and the attempt."""
        return f"{self.cell.id}-{self.attempt}"

    def with_python(self, python: str) -> Job:
        """The same job, in which a leading `python` stands for this one where the study does not say.

        Empty leaves it to the PATH of wherever the run happens. The cell is the same: what was found is recorded.
        """
        if not python or self.environment.python:
            return self
        return replace(self, environment=replace(self.environment, python=python))

    @property
    def made_by(self) -> dict[str, str]:
        """What `where` of its record says of the executor; nothing for `local`."""
        return {"executor": self.executor} if self.executor else {}

    def filled(self, run_folder: Path) -> Job:
        """The same job with every placeholder replaced, in the command and in the names of files."""
        fixed = {
            "seed": str(self.given_seed),
            "repeat": str(self.cell.repeat),
            "level": str(self.cell.level),
            "run_dir": str(run_folder.absolute()),
        }

        def fill(texts: tuple[str, ...]) -> tuple[str, ...]:
            return fill_placeholders(texts, fixed, self.cell.config_values, f"approaches.{self.cell.approach}")

        sources = replace(
            self.sources,
            files=fill(self.sources.files),
            tensorboard=fill(self.sources.tensorboard),
            installed={name: fill(settings) for name, settings in self.sources.installed.items()},
        )
        return replace(self, command=fill(self.command), sources=sources)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, with the secrets that the run needs: for the machine that carries it out, not to be kept."""
        return {
            "job": _VERSION,
            "cell": self.cell.to_json(),
            "attempt": self.attempt,
            "command": list(self.command),
            "working_folder": str(self.working_folder),
            "seed": self.seed,
            "environment": {"name": self.environment.name, **self.environment.to_json()},
            "resources": self.resources.to_json(),
            "time_limit_seconds": self.time_limit_seconds,
            "sources": self.sources.to_json(),
            **({"isolate": True} if self.isolate else {}),
            **({"executor": self.executor} if self.executor else {}),
        }

    def to_json_without_secrets(self) -> dict[str, Any]:
        """What may be kept of it."""
        environment = {"name": self.environment.name, **self.environment.to_json(), **self.environment.content()}
        return {**self.to_json(), "command": redacted_argv(self.command, {}), "environment": environment}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Job:
        """The job that `to_json` wrote; ExecutionError for one that a newer isorun wrote, and for what is none."""
        _check_version(data)
        try:
            return cls._read(data)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise _no_job(f"{type(error).__name__}: {error}") from error

    @classmethod
    def _read(cls, data: Mapping[str, Any]) -> Job:
        return cls(
            cell=Cell.from_json(data["cell"]),
            attempt=data["attempt"],
            command=tuple(data["command"]),
            working_folder=Path(data["working_folder"]),
            seed=data["seed"],
            environment=Environment.from_json(data["environment"]),
            resources=Resources.from_json(data["resources"]),
            time_limit_seconds=data["time_limit_seconds"],
            sources=Sources.from_json(data["sources"]),
            isolate=bool(data.get("isolate", False)),
            executor=str(data.get("executor", "")),
        )


def _check_version(data: object) -> None:
    version = data.get("job") if isinstance(data, Mapping) else None
    if not isinstance(version, int):
        raise _no_job(f"no version: {str(data)[:80] if version is None else version!r}")
    if version > _VERSION:
        raise ExecutionError(
            "the job was written by a newer isorun, and parts of it may mean nothing here",
            found=f"version {version}",
            allowed=f"up to version {_VERSION}",
            hint="install the same isorun on the machine that submits and on the one that runs",
        )


def _no_job(found: str) -> ExecutionError:
    return ExecutionError("this is not a job", found=found, allowed="what `Job.to_json` gives")


def job_of(study: Study, cell: Cell, attempt: int, seed: int) -> Job:
    """What to carry out for a claimed cell; StudyError when the study was kept without a secret that it needs."""
    environment = study.environments[cell.environment]
    approach = study.approaches[cell.approach]
    if any(map(is_withheld, (*approach.command, *environment.env.values()))):
        raise StudyError(
            f"approaches.{cell.approach}: a variable or secret of it was not kept, so it cannot be run by its name",
            hint="type the command again; finished runs are kept",
        )
    return Job(
        cell=cell,
        attempt=attempt,
        command=approach.command,
        working_folder=Path(study.folder).resolve(),
        seed=seed,
        environment=environment,
        resources=Resources(environment.threads, environment.devices_per_run, environment.memory_bytes),
        time_limit_seconds=study.policy.time_limit_seconds,
        sources=approach.sources,
        isolate=study.policy.isolate,
    )


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The run's process is there. where: "host" and "folder", and what else the executor knows of the place."""

    run_id: str
    where: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Preparing:
    """The run waits for its environment, which is made here for the first time. message: how far that is."""

    run_id: str
    message: str


@dataclass(frozen=True, slots=True)
class RowsLogged:
    """What the training logged since the last event: `row` events as the run folder has them, oldest first."""

    run_id: str
    rows: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The run is over, and nothing of it is left but its folder.

    lost: its place lost it (a node that died, a job that was preempted), which says nothing about the training: it is
    tried again, apart from the retries of trainings that fail. The record is interrupted, with the engine's own reason.
    with_its_place: all that was there was lost, so that this run is hardly to blame, and is tried again more often.
    halts: why all work that it belongs to is to end, where somebody asked for that from outside; else empty.
    """

    run_id: str
    record: RunRecord
    lost: bool = False
    halts: str = ""
    with_its_place: bool = False


@dataclass(frozen=True, slots=True)
class ExecutorFailed:
    """No run is possible, because of something that the user must change. run_id: the job that found it out."""

    error: IsorunError
    run_id: str = ""


def event_to_json(event: Event) -> dict[str, Any]:
    """The event as plain JSON. The record of a run that ended lies in its folder and is not in it."""
    match event:
        case RunStarted():
            return {"event": "started", "run_id": event.run_id, "where": dict(event.where)}
        case Preparing():
            return {"event": "preparing", "run_id": event.run_id, "message": event.message}
        case RowsLogged():
            return {"event": "rows", "run_id": event.run_id, "rows": [dict(row) for row in event.rows]}
        case RunEnded():
            return {"event": "ended", "run_id": event.run_id, "state": str(event.record.state)}
        case ExecutorFailed():
            return {"event": "failed", "run_id": event.run_id, "error": event.error.message()}


def event_from_json(data: Mapping[str, Any], read_record: Callable[[], RunRecord]) -> Event:
    """The event that `event_to_json` wrote; ExecutionError for what is none.

    read_record: called for the end of a run, whose record lies in the run's folder
    (`lambda: read_record(folder)`).
    """
    try:
        match data["event"]:
            case "started":
                return RunStarted(data["run_id"], dict(data["where"]))
            case "preparing":
                return Preparing(data["run_id"], str(data["message"]))
            case "rows":
                return RowsLogged(data["run_id"], tuple(dict(row) for row in data["rows"]))
            case "ended":
                return RunEnded(data["run_id"], read_record())
            case "failed":
                return ExecutorFailed(ExecutionError(str(data["error"])), data["run_id"])
    except (LookupError, TypeError, ValueError) as error:
        raise ExecutionError("this is not an event of a run", found=f"{type(error).__name__}: {error}") from error
    kinds = "preparing, started, rows, ended, failed"
    raise ExecutionError("this is not an event of a run", found=f"{data['event']!r}", allowed=kinds)


Event = Preparing | RunStarted | RowsLogged | RunEnded | ExecutorFailed
Tell = Callable[[Event], None]


class AbstractExecutor(abc.ABC):
    """Carries out jobs, each in a process of its own.

    Every submitted job ends in exactly one RunEnded, also one that failed, was stopped at its limit, or was killed,
    unless ExecutorFailed says that no run is possible at all. Preparing, RunStarted and RowsLogged come before it; all
    may be left out. capacity: how many jobs it can use at once; more may be submitted, and wait.
    """

    capacity: int

    stays: bool = False
    """Whether what was submitted goes on when this process leaves, and can be come back to (`leave`, `in_flight`)."""

    def in_flight(self, cell_id: str) -> Job | None:  # noqa: ARG002 - for those who override
        """The run of this cell that an earlier process submitted and whose end nobody was told; None where none is.

        Submitting that very job waits for it instead of carrying it out twice. The base knows of none.
        """
        return None

    def leave(self) -> Sequence[str]:
        """Go without ending anything: the ids of the runs that go on. Nothing is told afterwards, and close ends none.

        Only where `stays` is set; the others know nothing that could go on.
        """
        return ()

    def check(self, environment: Environment) -> None:  # noqa: B027 - who knows no limits refuses nothing
        """Raise ExecutionError where no run of this environment can ever be carried out: a device that is not there.

        Asked for each environment of a study before its first run, so that nothing is refused after hours of others.
        """

    def check_command(self, command: Sequence[str], environment: Environment, working_folder: Path) -> None:  # noqa: B027 - as above
        """Raise ExecutionError where no run of this command can begin: a program that does not exist.

        Asked for each approach in each environment before its first run. Placeholders are not filled yet.
        """

    @abc.abstractmethod
    def submit(self, job: Job, tell: Tell) -> None:
        """Take the job and return at once. `tell` is called from any thread, never after `close` returned."""

    @abc.abstractmethod
    def stop(self, run_id: str | None = None) -> None:
        """End one run, or all runs and start no more: they are asked first, then killed, with all their children.

        What was stopped ends as interrupted; a run id that is not known, or has ended, is nothing. The id of a run that
        was stopped may be submitted again, and is a run as any other.
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Kill what still runs, and wait until everything this executor started has gone. Closing twice is nothing.

        Every job that was submitted and had not ended is told as RunEnded, interrupted, before this returns: whoever
        waits for it would wait for ever (`lost_record` makes the record of one that is out of reach). Nothing may be
        submitted afterwards.
        """
