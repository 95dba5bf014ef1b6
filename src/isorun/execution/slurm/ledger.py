"""What was submitted, in the folder of runs: `slurm/TOKEN/` for each array, `slurm/TOKEN/INDEX/` for each run of it.

    submission.json    which runs, for which isorun; written before sbatch is called
    queued.json        the job's number, once SLURM has told it
    environment.json   the variables of the shell that submitted, for the runs; gone when all have ended: the element
                       that ends last removes it, or who waits for it, or who opens the ledger next
    batch.sh           what SLURM starts: always the same text
    log-INDEX.txt      what the element printed before and after its training
    INDEX/job.json     the job; with its secrets until it has ended
    INDEX/began-K      who began it the K-th time: a later one takes the run from an earlier one
    INDEX/ended-K      the K-th has ended, and nothing of it is left
    INDEX/events-K.jsonl, INDEX/stopped-K.json.gz, INDEX/failed-K.json
    INDEX/record.json.gz   the one record of the run: who links it first has made the run
    INDEX/fenced       why nobody waits for it any more: it ends, and does not begin
    INDEX/stop         `isorun stop` asked for its end: who waits for it ends all its work
    INDEX/over         SLURM's last word on a run that left no record

The token is in the name and in the comment of the job, so that what SLURM knows can be told from jobs of others, also
when numbers are given out again. All of this is for the user alone (folders 0700, files 0600), and what another user
made or may write is never carried out. `.TOKEN.tmp` is one that is being written.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from isorun import __version__
from isorun.errors import ExecutionError
from isorun.execution import Job
from isorun.execution.slurm.ownership import is_ours, open_to_others
from isorun.study.records import RunRecord, open_envelope, sealed_and_gzipped
from isorun.worker.runfolder import is_shared, make_own_folder, open_own, write_own

__all__ = [
    "FOLDER",
    "RECORD",
    "Ledger",
    "RunPlace",
    "Submission",
    "is_live",
    "job_name",
    "latest_begin",
    "read_submission",
]

FOLDER: Final = "slurm"
RECORD: Final = "record.json.gz"
_BEGAN: Final = re.compile(r"began-(\d+)")
_TOKEN: Final = re.compile(r"[0-9a-f]{12}")
_UNFINISHED: Final = re.compile(r"\.[0-9a-f]{12}\.tmp")
_UNFINISHED_SECONDS: Final = 3600.0
"""After so long nobody writes a submission any more that was begun."""
_LOG_BYTES: Final = 4096

NOT_SHARED: Final = 66
NO_INTERPRETER: Final = 67
OTHER_VERSION: Final = 68
NO_PRELUDE: Final = 69
CANNOT_RUN: Final = 70
NOT_OWN: Final = 71
"""What an element's exit code says where it could not make its run."""
_OF_THE_NODE: Final = re.compile(
    r"(?:SLURM|SBATCH|SSH|XDG|DBUS|VSCODE|TMUX|STY|DISPLAY|HOSTNAME|PWD|OLDPWD|SHLVL|TMPDIR|TERM|_)(?:_.*)?"
    r"|.*_VISIBLE_DEVICES|GPU_DEVICE_ORDINAL|ZE_AFFINITY_MASK|ISORUN_RUN.*"
)
"""Variables that belong to a machine, a terminal or a job, and do not travel."""

BATCH: Final = """#!/bin/sh
# isorun: one run of a study. $1: the interpreter, $2: the folder of this submission.
if [ ! -r "$2/submission.json" ]; then
    echo "isorun: the folder $2 cannot be read on $(hostname)" >&2
    exit 66
fi
if [ ! -x "$1" ]; then
    echo "isorun: there is no interpreter $1 on $(hostname)" >&2
    exit 67
fi
exec "$1" -m isorun.execution.slurm.element "$2"
"""
PRELUDE: Final = """# isorun: the user's own file $1 is read, then the interpreter $2 goes on with the submission $3.
. "$1" || exit 69
exec "$2" -m isorun.execution.slurm.element "$3" entered
"""


def carried(environment: Mapping[str, str]) -> dict[str, str]:
    """What goes along of the variables of the shell that submits."""
    return {name: value for name, value in environment.items() if not _OF_THE_NODE.fullmatch(name)}


def job_name(token: str) -> str:
    """What SLURM calls the job of a submission."""
    return f"isorun-{token}"


@dataclass(frozen=True, slots=True)
class RunPlace:
    """The folder of one run of a submission."""

    folder: Path

    @property
    def events(self) -> list[Path]:
        """The files of events, the latest begin's last."""
        return sorted(self.folder.glob("events-*.jsonl"), key=lambda path: int(path.stem.rpartition("-")[2]))

    def job(self) -> Job:
        """The job; without its secrets when it has ended."""
        return Job.from_json(json.loads((self.folder / "job.json").read_text(encoding="utf-8")))

    def names(self) -> set[str]:
        """What lies in it. A listing is asked anew of a file server, where single names may be remembered for long."""
        try:
            return set(os.listdir(self.folder))  # noqa: PTH208 - names alone
        except OSError:
            return set()

    def begin(self, who: Mapping[str, Any]) -> int:
        """Be the next to begin the run; the number of this begin."""
        while True:
            number = latest_begin(self.names()) + 1
            with suppress(FileExistsError):
                write_own(self.folder / f"began-{number}", json.dumps(who), os.O_EXCL)
                return number

    def began(self, number: int) -> dict[str, Any]:
        """Who began it that time; empty where that cannot be read."""
        try:
            who: dict[str, Any] = json.loads((self.folder / f"began-{number}").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return who

    def mark(self, name: str, text: str = "") -> None:
        """Leave a word for whoever looks; the first one stays."""
        with suppress(FileExistsError):
            write_own(self.folder / name, text, os.O_EXCL)

    def unmark(self, name: str) -> None:
        """Take such a word back."""
        (self.folder / name).unlink(missing_ok=True)

    def keep(self, record: RunRecord) -> bool:
        """Make this the record of the run; False where another begin of it was first."""
        temporary = self._written(record)
        try:
            os.link(temporary, self.folder / RECORD)
        except FileExistsError:
            return False
        except OSError:  # a file system without links: nobody else is there but by a rare accident
            if (self.folder / RECORD).exists():
                return False
            temporary.rename(self.folder / RECORD)
        finally:
            temporary.unlink(missing_ok=True)
        return True

    def keep_stopped(self, number: int, record: RunRecord) -> None:
        """Keep what a begin left that was stopped by SLURM, which may begin the run again."""
        self._written(record).replace(self.folder / f"stopped-{number}.json.gz")

    def _written(self, record: RunRecord) -> Path:
        temporary = self.folder / f"record-{secrets.token_hex(6)}.tmp"
        with os.fdopen(open_own(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
            file.writelines(sealed_and_gzipped(record))
            file.flush()
            os.fsync(file.fileno())
        return temporary

    def record(self) -> RunRecord | None:
        """The record of the run; None where there is none."""
        return _read(self.folder / RECORD)

    def stopped_record(self) -> RunRecord | None:
        """What the latest begin that was stopped left."""
        number = latest_begin(self.names())
        return _read(self.folder / f"stopped-{number}.json.gz") if number >= 0 else None

    def failure(self) -> str:
        """Why a begin found that no run is possible there; empty where none did."""
        for path in sorted(self.folder.glob("failed-*.json")):
            with suppress(OSError, ValueError):
                return str(json.loads(path.read_text(encoding="utf-8"))["error"])
        return ""

    def forget_secrets(self) -> None:
        """The run has ended: what is left of its job holds no secrets."""
        with suppress(OSError, ValueError, ExecutionError):
            kept = json.dumps(self.job().to_json_without_secrets())
            temporary = self.folder / f"job-{secrets.token_hex(6)}.tmp"
            write_own(temporary, kept, os.O_EXCL)
            temporary.replace(self.folder / "job.json")


def latest_begin(names: set[str]) -> int:
    """The number of the latest begin among the names in a place; -1 where none began."""
    return max((int(found[1]) for name in names if (found := _BEGAN.fullmatch(name))), default=-1)


def is_live(place: RunPlace) -> bool:
    """Whether the run may still come to an end that nobody heard of."""
    names = place.names()
    return "job.json" in names and not names & {"fenced", "over"}


def _read(path: Path) -> RunRecord | None:
    try:
        return open_envelope(path.read_bytes()).record
    except (OSError, ValueError):
        return None


@dataclass(slots=True)
class Submission:
    """One array. runs: the ids of its runs, by index. number: the job's, empty until SLURM told it."""

    folder: Path
    runs: tuple[str, ...]
    content: Mapping[str, Any]
    number: str = ""
    at: float = field(default_factory=time.time)

    @property
    def token(self) -> str:
        """What tells it from all others."""
        return self.folder.name

    @property
    def name(self) -> str:
        """What SLURM calls it."""
        return job_name(self.token)

    def place(self, index: int) -> RunPlace:
        """The folder of one of its runs."""
        return RunPlace(self.folder / str(index))

    def queued(self, number: str) -> None:
        """SLURM told the job's number."""
        self.number = number
        with suppress(OSError):
            write_own(self.folder / "queued.json", json.dumps({"job": number, "at": time.time()}))

    def log_of(self, index: int) -> str:
        """The end of what an element printed; empty where there is nothing to read."""
        try:
            with (self.folder / f"log-{index}.txt").open("rb") as file:
                file.seek(max(file.seek(0, os.SEEK_END) - _LOG_BYTES, 0))
                return file.read().decode("utf-8", "replace")
        except OSError:
            return ""

    @property
    def is_over(self) -> bool:
        """Whether nothing of it will begin any more."""
        places = map(self.place, reversed(range(len(self.runs))))  # the last began last: mostly one look is enough
        return all(place.names() & {"fenced", "over", RECORD} for place in places)

    def forget_environment_if_over(self) -> None:
        """Remove the variables once all runs have ended, and secrets of jobs that nobody saw end: none is needed."""
        variables = self.folder / "environment.json"
        with suppress(OSError):
            if variables.exists() and self.is_over:
                for place in map(self.place, range(len(self.runs))):
                    if RECORD not in place.names():  # an element that keeps its record forgets them by itself
                        place.forget_secrets()
                variables.unlink(missing_ok=True)


class Ledger:
    """All submissions whose runs lie in one folder of runs."""

    def __init__(self, runs: Path) -> None:
        self.folder = runs.absolute() / FOLDER
        self._seen = 0
        self._read: dict[str, Submission] = {}
        self._unread: set[str] = set()
        self._cells: dict[str, list[tuple[Submission, int]]] = {}

    def sweep(self) -> None:
        """Remove variables and secrets that were left where nobody came back: of what is over, or was never whole."""
        for submission in self.submissions():
            submission.forget_environment_if_over()
        with suppress(OSError):
            for path in self.folder.iterdir():
                found = path.lstat()
                is_old = time.time() - found.st_mtime > _UNFINISHED_SECONDS
                if _UNFINISHED.fullmatch(path.name) and found.st_uid == os.getuid() and is_old:
                    shutil.rmtree(path, ignore_errors=True)

    def write(self, jobs: Sequence[Job], content: Mapping[str, Any], variables: Mapping[str, str]) -> Submission:
        """A new submission of these jobs, on the disk with all that its elements read."""
        self._make_folder()
        token = secrets.token_hex(6)
        runs = tuple(job.run_id for job in jobs)
        whole = {"format": 1, "isorun": __version__, "runs": runs, "at": time.time(), **content}
        texts = {
            "environment.json": json.dumps(dict(variables)),
            "batch.sh": BATCH,
            "prelude.sh": PRELUDE,
            "submission.json": json.dumps(whole),
        }
        # For its owner alone, also in a store that a group shares: it holds secrets, and SLURM knows users. It gets its
        # name when it is whole: who looks meanwhile finds all of it or nothing.
        unfinished = self.folder / f".{token}.tmp"
        unfinished.mkdir(mode=0o700)
        try:
            for index, job in enumerate(jobs):
                (unfinished / str(index)).mkdir(mode=0o700)
                write_own(unfinished / str(index) / "job.json", json.dumps(job.to_json()))
            for name, text in texts.items():
                write_own(unfinished / name, text)
            folder = unfinished.rename(self.folder / token)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
        made = Submission(folder, runs, whole)
        self._add(made)
        return made

    def _make_folder(self) -> None:
        self.folder.parent.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in (self.folder.parent, self.folder):
            with suppress(FileExistsError):
                make_own_folder(folder)
        if is_shared(self.folder):
            with suppress(PermissionError):  # somebody else made it, who alone may do this
                # Sticky: members of the group add their own, and cannot put something else in the place of another's.
                self.folder.chmod(0o3770)

    def _add(self, submission: Submission) -> None:
        self._read[submission.token] = submission
        for index, run_id in enumerate(submission.runs):
            self._cells.setdefault(run_id.rpartition("-")[0], []).append((submission, index))

    def forget(self, submission: Submission) -> None:
        """Remove one that SLURM refused: nothing of it will ever begin."""
        self._read.pop(submission.token, None)
        shutil.rmtree(submission.folder, ignore_errors=True)

    def submissions(self) -> list[Submission]:
        """All of them, the oldest first; those that others wrote since the last look are read."""
        try:
            changed = self.folder.stat().st_mtime_ns
        except OSError:
            return []
        if changed != self._seen:
            names = {path.name for path in self.folder.iterdir() if _TOKEN.fullmatch(path.name)}
            self._unread = {name for name in names - self._read.keys() if is_ours(self.folder / name)}
            # What is changed within the clock's step is looked at once more.
            self._seen = changed if time.time_ns() - changed > 2_000_000_000 else 0
        for name in tuple(self._unread):  # what cannot be read, or not yet, is tried again at every look
            self._take(name)
        return sorted(self._read.values(), key=lambda one: one.at)

    def _take(self, token: str) -> None:
        folder = self.folder / token
        found = read_submission(folder)
        if found is None:
            return
        if foreign := open_to_others(folder):
            raise ExecutionError(
                "what was submitted to SLURM may have been changed by others",
                found=foreign,
                allowed="a folder and files of this user, which nobody else may write",
                hint=f"chmod -R go-rwx {folder} if nobody did, else scancel --name={job_name(token)} and remove it",
            )
        self._unread.discard(token)
        self._add(found)

    def of_cell(self, cell_id: str) -> list[tuple[Submission, int]]:
        """Every run of a cell that was ever submitted, the latest attempt first; of the same one the latest time."""
        self.submissions()

        def order(found: tuple[Submission, int]) -> tuple[int, float]:
            return int(found[0].runs[found[1]].rpartition("-")[2]), found[0].at

        known = [found for found in self._cells.get(cell_id, ()) if found[0].token in self._read]
        return sorted(known, key=order, reverse=True)

    def entries(self) -> Iterator[tuple[Submission, int, str]]:
        """Every run that was ever submitted: its submission, its index there, and its id."""
        for submission in self.submissions():
            for index, run_id in enumerate(submission.runs):
                yield submission, index, run_id


def read_submission(folder: Path) -> Submission | None:
    """The submission in a folder; None where there is none that can be read."""
    try:
        content = json.loads((folder / "submission.json").read_text(encoding="utf-8"))
        found = Submission(folder, tuple(map(str, content["runs"])), content, at=float(content["at"]))
    except (OSError, ValueError, LookupError, TypeError):
        return None
    with suppress(OSError, ValueError, LookupError, TypeError):
        found.number = str(json.loads((folder / "queued.json").read_text(encoding="utf-8"))["job"])
    return found
