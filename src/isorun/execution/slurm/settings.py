"""What is asked of SLURM for every run: `--partition gpu --time 2h --gpus-per-run 1`, `slurm://gpu?account=x&qos=y`.

All of it is held against what the cluster has before anything is submitted: SLURM itself takes a job whose time is over
the partition's limit, and lets it wait for ever.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from isorun.errors import ExecutionError, known_names
from isorun.execution import Resources
from isorun.execution.slurm.commands import Partition

__all__ = ["SlurmSettings", "settings_of"]

_PASSED_ON: Final = ("account", "qos", "constraint", "reservation", "nodelist", "exclude", "nice", "licenses")
"""SlurmSettings that are options of sbatch under the same name."""
_KNOWN: Final = (
    *("partition", "time", "gpus-per-run", "cpus-per-run", "memory-per-run", "at-once", "prelude", "python"),
    *_PASSED_ON,
)
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|d)")
_CLOCK: Final = re.compile(r"(?:(\d+)-)?(\d+):(\d\d)(?::(\d\d))?")
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_GPUS: Final = re.compile(r"(?:([A-Za-z][\w.-]*):)?(\d+)")
_MEMORY: Final = re.compile(r"(\d+)\s*([KMGT])(?:i?B)?", re.IGNORECASE)
_MOST_QUEUED: Final = 5000
"""How many elements are queued at a time where nobody says: a controller holds ten thousand jobs of all users."""


@dataclass(frozen=True, slots=True)
class SlurmSettings:
    """What every run is asked for with. python: what carries runs out on the nodes. prelude: a file that is read first.

    at_once: how many runs may be queued or running at a time. throttle: how many elements of an array may run at once,
    None for as many as SLURM lets.
    """

    partition: str = ""
    seconds: int | None = None
    gpu_type: str = ""
    gpus: int = 0
    cpus: int | None = None
    memory_bytes: int | None = None
    at_once: int = _MOST_QUEUED
    throttle: int | None = None
    prelude: str = ""
    python: str = ""
    passed_on: Mapping[str, str] = field(default_factory=dict)

    def gpus_of(self, resources: Resources) -> int:
        """The GPUs of one run: what its environment says, else what was asked for all."""
        return self.gpus if resources.devices is None else resources.devices

    def cpus_of(self, resources: Resources) -> int:
        """The CPUs of one run."""
        return resources.cpus or self.cpus or 1

    def options(self, resources: Resources) -> list[str]:
        """Options of sbatch, each one word."""
        words = [f"--partition={self.partition}"] if self.partition else []
        if self.seconds is not None:
            words += [f"--time={math.ceil(self.seconds / 60)}", f"--signal=B:USR1@{self._lead}"]
        memory = resources.memory_bytes or self.memory_bytes
        words += [f"--mem={math.ceil(memory / 2**20)}M"] if memory else []
        gpus = self.gpus_of(resources)
        words += [f"--gres=gpu:{f'{self.gpu_type}:' if self.gpu_type else ''}{gpus}"] if gpus else []
        words += [f"--{name}={value}" for name, value in self.passed_on.items()]
        return [*words, "--ntasks=1", f"--cpus-per-task={self.cpus_of(resources)}"]

    @property
    def _lead(self) -> int:
        """How many seconds before its end a run is asked to stop: time to end and to be recorded."""
        return max(5, min(60, (self.seconds or 0) // 20))

    def check(self, partitions: Sequence[Partition]) -> None:
        """Raise ExecutionError where the cluster has no such partition, or no run may take so long there."""
        partition = self._partition(partitions)
        if partition is None:
            return
        if not partition.is_up:
            raise ExecutionError(
                f"SLURM's partition {partition.name!r} takes no jobs now",
                allowed=known_names("", [one.name for one in partitions if one.is_up]),
                hint="sinfo shows the state of partitions",
            )
        if self.seconds is not None and partition.seconds is not None and self.seconds > partition.seconds:
            longer = [one.name for one in partitions if one.seconds is None or one.seconds >= self.seconds]
            raise ExecutionError(
                f"time: no run may take so long in SLURM's partition {partition.name!r}",
                found=_duration(self.seconds),
                allowed=f"up to {_duration(partition.seconds)}",
                hint=f"--partition {longer[0]}" if longer else f"--time {_duration(partition.seconds)}",
            )
        self.check_run(Resources(), partitions)

    def check_run(self, resources: Resources, partitions: Sequence[Partition]) -> None:
        """Raise ExecutionError where no node of the partition has what one run needs."""
        partition = self._partition(partitions)
        if partition is None or not partition.cpus:
            return
        for name, wanted, there, plural in (
            ("--gpus-per-run", self.gpus_of(resources), partition.gpus, "GPUs"),
            ("cpus-per-run", self.cpus_of(resources), partition.cpus, "CPUs"),
            ("memory-per-run", resources.memory_bytes or self.memory_bytes or 0, partition.memory_bytes, "bytes"),
        ):
            if wanted > there:
                others = [one.name for one in partitions if _has(one, plural) >= wanted]
                raise ExecutionError(
                    f"{name}: no node of SLURM's partition {partition.name!r} has {wanted:,} {plural} for a run",
                    found=f"at most {there:,} on a node",
                    allowed=f"partitions that have so many: {', '.join(others) or 'none'}",
                    hint=f"--partition {others[0]}" if others else "sinfo -o '%R %c %m %G' shows what nodes have",
                )

    def _partition(self, partitions: Sequence[Partition]) -> Partition | None:
        """The partition of runs; None where SLURM has no default one, and sbatch will say so."""
        if not self.partition:
            return next((one for one in partitions if one.is_default), None)
        # Several, of which SLURM takes the first that is free, are SLURM's to check.
        if "," in self.partition:
            return None
        for one in partitions:
            if one.name == self.partition:
                return one
        raise ExecutionError(
            f"SLURM has no partition {self.partition!r}",
            allowed=known_names(self.partition, [one.name for one in partitions]),
            hint="sinfo lists the partitions, and what each is for",
        )


def settings_of(given: Mapping[str, str], url: str = "", jobs: int | None = None) -> SlurmSettings:
    """The settings that an executor was asked for with; ExecutionError for what is none, or says nothing.

    jobs: runs at a time; None where nobody said, and the queue decides.
    """
    unknown = [name for name in given if name not in _KNOWN]
    if unknown:
        raise ExecutionError(f"SLURM: {unknown[0]!r} is no setting", allowed=known_names(unknown[0], sorted(_KNOWN)))
    for name, value in given.items():
        if not value or not value.isprintable():
            raise ExecutionError(f"SLURM: the setting {name!r} has no value that can be used", found=repr(value))
    named = urlsplit(url).netloc if url else ""
    partition = given.get("partition", named)
    if named and partition != named:
        raise ExecutionError("SLURM: two partitions are named", found=f"{named} and {partition}", allowed="one")
    gpu_type, gpus = _gpus(given.get("gpus-per-run", "0"))
    at_once = _count(given, "at-once") or jobs
    return SlurmSettings(
        partition=partition,
        seconds=_time(given["time"]) if "time" in given else None,
        gpu_type=gpu_type,
        gpus=gpus,
        cpus=_count(given, "cpus-per-run"),
        memory_bytes=_memory(given["memory-per-run"]) if "memory-per-run" in given else None,
        at_once=at_once or _MOST_QUEUED,
        throttle=at_once,
        prelude=_file(given["prelude"]) if "prelude" in given else "",
        python=given.get("python", ""),
        passed_on={name: given[name] for name in _PASSED_ON if name in given},
    )


def _has(partition: Partition, what: str) -> int:
    return {"GPUs": partition.gpus, "CPUs": partition.cpus, "bytes": partition.memory_bytes}[what]


def _time(text: str) -> int:
    """Seconds. A number alone is minutes to SLURM and seconds to isorun, so it is refused."""
    duration, clock = _DURATION.fullmatch(text.strip()), _CLOCK.fullmatch(text.strip())
    seconds = 0
    if duration:
        seconds = math.ceil(float(duration[1]) * _UNITS[duration[2]])
    elif clock and (clock[1] or clock[4]):  # 10:30 may be minutes or hours
        days, hours, minutes, rest = (int(part or 0) for part in clock.groups())
        seconds = days * 86400 + hours * 3600 + minutes * 60 + rest
    if not seconds:
        raise ExecutionError("--time: it is not a duration", found=text, allowed="90m, 2h, 1d, 02:30:00, 1-12:00")
    return seconds


def _duration(seconds: int) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def _gpus(text: str) -> tuple[str, int]:
    found = _GPUS.fullmatch(text)
    if not found:
        raise ExecutionError("--gpus-per-run: it is no number of GPUs", found=text, allowed="1, or a100:1")
    return found[1] or "", int(found[2])


def _count(given: Mapping[str, str], name: str) -> int | None:
    if name not in given:
        return None
    if not given[name].isdecimal() or not int(given[name]):
        raise ExecutionError(f"SLURM: {name} is no number", found=given[name], allowed="1, 2, 3, …")
    return int(given[name])


def _memory(text: str) -> int:
    found = _MEMORY.fullmatch(text.strip())
    if not found:
        raise ExecutionError("SLURM: memory-per-run is no size", found=text, allowed="500M, 16G")
    return int(found[1]) << {"K": 10, "M": 20, "G": 30, "T": 40}[found[2].upper()]


def _file(text: str) -> str:
    """The path of a file that is there; what it holds is the user's own, and never taken from a setting."""
    path = Path(text).expanduser().absolute()
    if not path.is_file():
        raise ExecutionError(
            "SLURM: the prelude is no file",
            found=str(path),
            allowed="a file with what runs need first, such as `module load cuda`; the nodes read it by bash",
        )
    return str(path)
