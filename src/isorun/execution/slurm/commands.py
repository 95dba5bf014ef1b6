"""SLURM by its own commands, as every version from 20 on understands them: sbatch, squeue, scontrol, scancel, sacct.

Formats are the old ones of single letters, with the field that may hold anything last; JSON came late and differs from
version to version. What is sent along with a job lies in SLURM's own files for others to see, so commands get few
variables of this process, and no secret.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from isorun.errors import ExecutionError

__all__ = [
    "AccountingSilent",
    "ArrayElement",
    "ControllerSilent",
    "JobEnd",
    "Partition",
    "QueueFull",
    "Slurm",
    "SubmissionRefused",
]

_ANSWER_SECONDS: Final = 40.0
"""Longer than SLURM's own patience with its controller (MessageTimeout, ten seconds by default, tried again)."""
_CANCEL_AT_ONCE: Final = 200
_ACCOUNTING_PAUSE_SECONDS: Final = 60.0
"""How long the accounting is left alone after it gave no answer: it may be away for a moment, or not be kept at all."""
_ACCOUNTING_PATIENCE_SECONDS: Final = 300.0
"""How long the end of a job is waited for that only an accounting that is away may know."""
_SENT_ALONG: Final = re.compile(
    r"PATH|LD_LIBRARY_PATH|PYTHONPATH|HOME|USER|LOGNAME|SHELL|LANG|LC_\w+|TZ|SLURM_CONF|SLURM_CLUSTERS|SBATCH_\w+"
)
"""What a batch script begins with: enough for the interpreter. The rest goes in a file that is the user's alone."""
_SILENT: Final = re.compile(
    r"unable to contact|socket timed out|connection (?:refused|timed out|reset|failure)|zero bytes were transmitted"
    r"|message (?:send|receive|recv)|slurm_receive_msg|unable to connect|no address associated|not responding",
    re.IGNORECASE,
)
_FULL: Final = re.compile(
    r"MaxSubmit\w*|submit limit|temporarily unable to accept|resource temporarily|job count limit", re.I
)
_NOT_KEPT: Final = re.compile(r"storage is disabled|not running a supported|is not supported|are supported", re.I)
"""What sacct says where no accounting is kept; in whatever other words it fails, it may do better later."""
_NO_JOB: Final = re.compile(r"invalid job id", re.IGNORECASE)
_UNLIMITED: Final = frozenset(["UNLIMITED", "INFINITE", "NONE", "N/A", "(null)", ""])


class ControllerSilent(Exception):
    """The controller does not answer, or its answer was lost on the way: what was asked may have happened."""


class AccountingSilent(ControllerSilent):
    """The controller answers; the accounting, which may know what it has forgotten, does not."""


class QueueFull(Exception):
    """So many jobs may not be queued now; fewer, or later, may."""


class SubmissionRefused(Exception):
    """SLURM says no, in its own words, and will say so again."""


@dataclass(frozen=True, slots=True)
class ArrayElement:
    """One element of an array as squeue shows it. name: the job's, which has our token."""

    name: str
    job: str
    index: int
    state: str
    node: str
    reason: str

    @property
    def number(self) -> str:
        """How SLURM's commands call it."""
        return f"{self.job}_{self.index}"


@dataclass(frozen=True, slots=True)
class JobEnd:
    """How SLURM says that an element ended. code, signal: of the batch script."""

    state: str
    code: int = 0
    signal: int = 0
    node: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition. seconds: the longest that a job may take, None for no limit.

    cpus, memory_bytes, gpus: those of its largest node, 0 where that is not known.
    """

    name: str
    is_default: bool = False
    is_up: bool = True
    seconds: int | None = None
    cpus: int = 0
    memory_bytes: int = 0
    gpus: int = 0


class Slurm:
    """The commands. Each is one process that is waited for; none is asked more often than its caller asks."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        own = os.environ if environment is None else environment
        self._environment = {name: value for name, value in own.items() if _SENT_ALONG.fullmatch(name)}
        # Times as they are, whatever the user's shell says of them.
        self._environment["SLURM_TIME_FORMAT"] = "standard"
        self._ask_accounting_at = 0.0
        self._accounting_away_since: float | None = None
        missing = [name for name in ("sbatch", "squeue", "scontrol", "scancel") if not self._path(name)]
        if missing:
            raise ExecutionError(
                "there is no SLURM on this machine",
                found=f"no {', '.join(missing)} in PATH",
                hint="isorun run … on a login node of the cluster, or --executor local",
            )

    def submit(self, options: Sequence[str], script: Path, arguments: Sequence[str]) -> str:
        """Queue a job; its number. ControllerSilent where it is not known whether it was queued."""
        words = ["sbatch", "--parsable", "--export=ALL", *options, str(script), *arguments]
        try:
            code, output, said = self._run(words)
        except subprocess.TimeoutExpired as error:
            raise ControllerSilent("sbatch gave no answer") from error
        number = output.strip().partition(";")[0]
        if code == 0 and number.isdecimal():
            return number
        if _SILENT.search(said) or code == 0 or code < 0:
            raise ControllerSilent(_one_line(said) or f"sbatch ended with {code}")
        if _FULL.search(said):
            raise QueueFull(_one_line(said))
        raise SubmissionRefused(_one_line(said) or f"sbatch ended with {code}")

    def elements(self) -> list[ArrayElement]:
        """All array elements of this user that the controller knows, those that ended lately included."""
        form = "%F|%K|%T|%N|%j|%r"
        answer = self._asked(["squeue", "-h", "-r", "-t", "all", "-u", str(os.getuid()), "-o", form])
        found = []
        for line in answer.splitlines():
            parts = line.strip().split("|", 5)
            if len(parts) == 6 and parts[1].isdecimal():
                job, index, state, node, name, reason = parts
                found.append(ArrayElement(name, job, int(index), state, node, reason))
        return found

    def end_of(self, number: str, name: str) -> JobEnd | None:
        """How an element ended; None where nobody knows it any more, or the number is another job's by now.

        AccountingSilent where the accounting, which may know it, is away, and has not been for long.
        """
        code, output, said = self._run_or_silent(["scontrol", "show", "job", number, "-o"])
        if code == 0:
            fields = dict(re.findall(r"(?:^|\s)(JobName|JobState|ExitCode|NodeList|Reason)=(\S*)", output))
            if fields.get("JobName") == name:
                exit_code, _, number_of_signal = fields.get("ExitCode", "0:0").partition(":")
                node, reason = _known(fields.get("NodeList", "")), _known(fields.get("Reason", ""))
                return JobEnd(fields.get("JobState", ""), _number(exit_code), _number(number_of_signal), node, reason)
        elif not _NO_JOB.search(said) and _SILENT.search(said):
            raise ControllerSilent(_one_line(said))
        return self._accounted(number, name)

    def _accounted(self, number: str, name: str) -> JobEnd | None:
        """The same from the accounting, which remembers for longer; None where there is none, or it stays away."""
        now = time.monotonic()
        if self._path("sacct") is None:
            return None
        if now < self._ask_accounting_at:
            self._bear_without_accounting(now)
            return None
        form = "JobID,State,ExitCode,NodeList,JobName"
        try:
            code, output, said = self._run(["sacct", "-n", "-P", "-X", "-D", "-j", number, "-o", form])
        except subprocess.TimeoutExpired:
            code, output, said = 1, "", ""
        if code:
            self._ask_accounting_at = now + _ACCOUNTING_PAUSE_SECONDS
            is_away = _NOT_KEPT.search(said) is None
            self._accounting_away_since = (self._accounting_away_since or now) if is_away else None
            self._bear_without_accounting(now)
            return None
        self._accounting_away_since = None
        for job, state, exit_code, node, called in (
            row for line in reversed(output.splitlines()) if len(row := line.split("|", 4)) == 5
        ):
            if job == number and called == name:
                word, _, by = state.partition(" ")
                first, _, second = exit_code.partition(":")
                return JobEnd(word, _number(first), _number(second), _known(node), by)
        return None

    def _bear_without_accounting(self, now: float) -> None:
        """AccountingSilent for as long as it is worth while to wait for an accounting that is away."""
        since = self._accounting_away_since
        if since is not None and now - since < _ACCOUNTING_PATIENCE_SECONDS:
            raise AccountingSilent("sacct gave no answer")

    def cancel(self, numbers: Iterable[str]) -> None:
        """Ask that these elements end; those that have ended are nothing."""
        left = list(numbers)
        while left:
            some, left = left[:_CANCEL_AT_ONCE], left[_CANCEL_AT_ONCE:]
            code, _, said = self._run_or_silent(["scancel", "--quiet", *some])
            if code and _SILENT.search(said):
                raise ControllerSilent(_one_line(said))

    def partitions(self) -> list[Partition]:
        """The partitions that there are, the default one first."""
        answer = self._asked(["scontrol", "show", "partition", "-o"])
        nodes = self._largest_nodes()
        found = []
        for line in answer.splitlines():
            fields = dict(word.partition("=")[::2] for word in line.split())
            name = fields.get("PartitionName", "")
            if name:
                cpus, memory, gpus = nodes.get(name, (0, 0, 0))
                seconds, is_up = _seconds(fields.get("MaxTime", "")), fields.get("State", "UP") == "UP"
                found.append(Partition(name, fields.get("Default") == "YES", is_up, seconds, cpus, memory, gpus))
        return sorted(found, key=lambda partition: not partition.is_default)

    def _largest_nodes(self) -> dict[str, tuple[int, int, int]]:
        """CPUs, bytes of memory and GPUs of the largest node of each partition."""
        largest: dict[str, tuple[int, int, int]] = {}
        for line in self._asked(["sinfo", "-h", "-o", "%R|%c|%m|%G"]).splitlines():
            parts = line.strip().split("|", 3)
            if len(parts) == 4:
                name, cpus, memory, gres = parts
                one = (_number(cpus), _number(memory) << 20, _gpus(gres))
                largest[name] = tuple(map(max, one, largest.get(name, (0, 0, 0))))  # type: ignore[assignment]
        return largest

    def largest_array(self) -> int:
        """How many elements one array may have."""
        found = re.search(r"^MaxArraySize\s*=\s*(\d+)", self._asked(["scontrol", "show", "config"]), re.MULTILINE)
        return max(int(found[1]) if found else 1001, 1)

    def _asked(self, words: Sequence[str]) -> str:
        """The answer of a command that only looks."""
        code, output, said = self._run_or_silent(words)
        if code:
            raise ControllerSilent(_one_line(said) or f"{words[0]} ended with {code}")
        return output

    def _run_or_silent(self, words: Sequence[str]) -> tuple[int, str, str]:
        try:
            return self._run(words)
        except subprocess.TimeoutExpired as error:
            raise ControllerSilent(f"{words[0]} gave no answer") from error

    def _run(self, words: Sequence[str]) -> tuple[int, str, str]:
        program = self._path(words[0])
        if program is None:
            raise ControllerSilent(f"{words[0]} is not in PATH any more")
        # A session of its own: Ctrl-C in the terminal may not end sbatch between its question and its answer.
        try:
            done = subprocess.run(
                [program, *words[1:]],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_ANSWER_SECONDS,
                check=False,
                start_new_session=True,
            )
        except OSError as error:  # no memory, no process or no open file to be had just now
            raise ControllerSilent(f"{words[0]} cannot be started: {error.strerror or error}") from error
        return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")

    def _path(self, name: str) -> str | None:
        return shutil.which(name, path=self._environment.get("PATH"))


def _one_line(said: str) -> str:
    """What SLURM says, without the names of its commands."""
    lines = [re.sub(r"^(?:\w+: )?(?:error: |fatal: )?", "", line.strip()) for line in said.splitlines()]
    return "; ".join(dict.fromkeys(line for line in lines if line))[:400]


def _known(text: str) -> str:
    return "" if text in {"(null)", "None", "N/A", "None assigned"} else text


def _number(text: str) -> int:
    found = re.match(r"\d+", text)
    return int(found[0]) if found else 0


def _gpus(gres: str) -> int:
    """The GPUs in `gpu:a100:4(S:0-1),mps:400`."""
    return sum(int(count) for count in re.findall(r"(?:^|,)gpu(?::[^:,()]+)?:(\d+)", gres))


def _seconds(text: str) -> int | None:
    """A time of SLURM's own; None for no limit."""
    if text in _UNLIMITED:
        return None
    days, dash, clock = text.partition("-")
    parts = [_number(part) for part in (clock if dash else days).split(":")]
    if dash:
        hours, minutes, seconds = (*parts, 0, 0)[:3]
        return _number(days) * 86400 + hours * 3600 + minutes * 60 + seconds
    hours, minutes, seconds = (0, parts[0], 0) if len(parts) == 1 else (0, *parts)[-3:]
    return hours * 3600 + minutes * 60 + seconds
