"""From what a run left to its record."""

from __future__ import annotations

import math
import os
import re
import secrets
import stat
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from isorun.errors import ExecutionError
from isorun.execution import Job
from isorun.execution.output import EventLog, Secrets, non_finite_notes
from isorun.execution.process import Exit
from isorun.sources import Found, files_written, is_fresh, merged
from isorun.study import Environment
from isorun.study.parsing import CONTAINER, PACKAGES
from isorun.study.records import Note, RunRecord, RunState, Series, open_envelope, sealed_and_gzipped
from isorun.worker.frameworks import is_model_file
from isorun.worker.levels import OWN_VARIABLES
from isorun.worker.redaction import holds_secret, names_secret
from isorun.worker.runfolder import open_own
from isorun.worker.usercode import code_version, hash_of_file

__all__ = [
    "ChangedFiles",
    "CodeVersions",
    "Ended",
    "GivenFiles",
    "assemble",
    "digest_of_file",
    "digest_of_variable",
    "failed_to_read",
    "found_in_files",
    "how_it_changed",
    "keep_record",
    "lost_record",
    "read_record",
    "state_and_reason",
    "variables_read",
    "with_script",
    "words_for_files",
    "written_paths",
]

RECORD_NAME: Final = "record.json.gz"
GIVEN_FILES: Final = "given_files"
VARIABLES_READ: Final = "variables_read"
READ_FILES: Final = "read_files"
FILES: Final = "files"
INPUTS: Final = "inputs"
_MOST_GIVEN_FILES: Final = 32
_LARGEST_GIVEN_FILE: Final = 64 * 1024 * 1024
_LARGEST_READ_FILE: Final = 2 * 1024 * 1024
"""What a training read and is larger is known by size and time: a run may not wait for data to be hashed."""
_OWN_FILES: Final = re.compile(
    r"(?:job|request|printed)\.json|events.*\.jsonl|(?:writers|worker-error)\.txt|output\.log"
)
_TIME_AS_FLOAT: Final = 1e-5
"""What a time loses that is told in seconds."""
_FILE_OPTION: Final = re.compile(r"[-_.]?(?:file|path)$")
_PASSING: Final = re.compile(
    r"(?:SLURM|PBS|LSB|SGE|SSH|XDG|VSCODE|TERM|ISORUN)_?.*|(?:OLD)?PWD|SHLVL|DISPLAY|COLUMNS|LINES|_|.*_P?ID"
)

# Thousands of short runs must not call git thousands of times; code that is edited meanwhile is still noticed.
_MAX_AGE_SECONDS: Final = 10.0
_AGE_BY_TIME: Final = 50
"""So many times as long as git took its answer serves: it has two percent of a processor at most."""


STOPPED: Final = "stopped on request"
NEVER_STARTED: Final = Exit(None, "", 0.0, 0.0, 0)
_LAST_WORDS: Final = re.compile(r"(?:[\w.]*(?:Error|Exception|Interrupt|Exit|Warning)\b|\S*python\S*: ).*")
_LAST_WORDS_LENGTH: Final = 200
# What programs say of ENOTTY. What a program says before it fails may be followed by the traceback of who started it.
_NO_TERMINAL: Final = re.compile(r"Inappropriate ioctl for device|\bnot a (?:tty|terminal)\b", re.IGNORECASE)
_TAIL_SEARCHED: Final = 1000
_NO_ANSWER: Final = re.compile(r"^EOFError: EOF when reading a line\s*\Z", re.MULTILINE)
_MISSING_MODULE: Final = re.compile(r"^ModuleNotFoundError: No module named '?([\w.]*).*\Z", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that has ended, and everything that is known about it.

    began_unix: the wall clock before the launch; launched_unix: after it, where its seconds begin (None: the same).
    lines, files: metrics read from the output and from files. asked_to_stop: the executor was told to stop while the
    run was going on. secrets: what notes may not quote. unreadable: why what it left could not be read, empty if it
    could. not_begun: why what is around the command never began it, empty if it did. changed: files of the working
    folder that were there before and are not as they were.
    """

    job: Job
    launch: str
    began_unix: float
    exit: Exit
    timed_out: bool
    asked_to_stop: bool
    events: EventLog
    lines: Found
    files: Found
    log_tail: str
    requested: Mapping[str, Any]
    made: Mapping[str, Any] = field(default_factory=dict)
    code: Mapping[str, Any] = field(default_factory=dict)
    where: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    unreadable: str = ""
    secrets: Secrets = field(default_factory=Secrets)
    not_begun: str = ""
    changed: Mapping[str, Any] = field(default_factory=dict)
    launched_unix: float | None = None


def assemble(ended: Ended) -> RunRecord:
    """The record of the run."""
    events = ended.events
    found = _all_metrics(ended)
    state, reason = state_and_reason(ended)
    started = ended.began_unix if ended.launched_unix is None else ended.launched_unix
    return RunRecord(
        cell=ended.job.cell,
        attempt=ended.job.attempt,
        state=state,
        exit_code=ended.exit.exit_code,
        signal=ended.exit.signal,
        reason=reason,
        launch=ended.launch,
        seed_used=ended.job.seed,
        started_at=datetime.fromtimestamp(started, UTC).isoformat(timespec="milliseconds"),
        wall_seconds=ended.exit.wall_seconds,
        cpu_seconds=ended.exit.cpu_seconds,
        peak_memory_bytes=ended.exit.peak_memory_bytes,
        results=found.results,
        per_class=events.per_class,
        series=found.series,
        predictions=tuple(events.predictions),
        digests=events.digests,
        environment={"requested": ended.requested, "made": ended.made, **_environment(ended)},
        code=ended.code,
        origins=found.origins,
        seeded=tuple(events.seeded),
        notes=tuple(_notes(ended, found)),
        log_tail=ended.log_tail,
        startup_seconds=events.startup_seconds,
        devices=tuple(ended.requested.get("devices", ())),
        where=ended.where,
        watched=events.watched,
    )


def _environment(ended: Ended) -> dict[str, Any]:
    """What the worker told, and the files that other runs may have met, by their paths in the working folder."""
    told, folder = dict(ended.events.effective), _prefix(ended.job.working_folder)
    told.pop(INPUTS, None)  # what they held is among what was requested
    files = told.pop(FILES, None)
    named = {name.removeprefix(folder): item for name, item in files.items()} if isinstance(files, dict) else {}
    return {"effective": told, **({FILES: {**ended.changed, **named}} if named or ended.changed else {})}


def _prefix(folder: Path) -> str:
    return str(folder.absolute()) + os.sep


def lost_record(
    job: Job, reason: str, *, state: RunState = RunState.FAILED, began_unix: float | None = None
) -> RunRecord:
    """The record of a run that left none: its machine was lost, or it was taken out of a queue (INTERRUPTED).

    reason: why, in words. began_unix: when it began, where that is known. What it logged is gone; a failed run is made
    again as any other.
    """
    secrets = Secrets.of(job.command, job.environment.env)
    ended = Ended(
        job=job,
        launch="none",
        began_unix=time.time() if began_unix is None else began_unix,
        exit=NEVER_STARTED,
        timed_out=False,
        asked_to_stop=False,
        events=EventLog(),
        lines=Found(),
        files=Found(),
        log_tail="",
        requested={"level": str(job.cell.level)},
        where=job.made_by,
    )
    return replace(assemble(ended), state=state, reason=secrets.masked(reason), notes=())


def failed_to_read(ended: Ended, error: Exception) -> Ended:
    """The run without anything it left but its output, and why: a training may leave what nobody can read."""
    why = f"{type(error).__name__}: {error}"[:_LAST_WORDS_LENGTH]
    return replace(ended, unreadable=why, events=EventLog(), lines=Found(), files=Found())


def _all_metrics(ended: Ended) -> Found:
    """What the training logged wins over its files, and those over its output.

    A training that prints what it also logs is the normal case and worth no note; two files that disagree are.
    """
    logged = _logged(ended.events)
    files, lines = (_after_startup(found, ended.events.startup_seconds) for found in (ended.files, ended.lines))
    return merged(logged, files, _without(lines, {*logged.origins, *files.origins, *ended.events.stands_for}))


def found_in_files(ended: Ended, run_folder: Path, *, whole: bool, is_alone: bool) -> Ended:
    """The run with what files that it wrote and nobody named say of metrics.

    They are relied on where it printed and logged none, and else offered; is_alone: no other run wrote there.
    """
    folder, since = ended.job.working_folder.absolute(), ended.began_unix
    paths = written_paths(folder, run_folder, since, ended.events.effective)
    if not paths:
        return ended
    from isorun.sources.written import Looked, found_among  # noqa: PLC0415  most runs leave no such file

    logged = _logged(ended.events)
    own = merged(logged, _without(ended.lines, {*logged.origins, *ended.events.stands_for}))
    named = ended.job.sources.files or ended.job.sources.tensorboard  # whoever names files has said what to rely on
    has_metrics = bool(own.origins or ended.files.origins or named)
    look = Looked(folder, run_folder, since, whole=whole, is_alone=is_alone, has_metrics=has_metrics)
    return replace(ended, files=merged(ended.files, found_among(paths, look, own)))


def written_paths(folder: Path, run_folder: Path, since: float, effective: Mapping[str, Any]) -> list[Path]:
    """Files of a run that may hold metrics: those its worker told of, and what lies in its folders and is new.

    trackio keeps its databases in one place for all projects, which is asked where the run loaded it.
    """
    told, packages = effective.get(FILES), effective.get("packages")
    names = [Path(name) for name in told if isinstance(name, str)] if isinstance(told, Mapping) else []
    seen = [path for path in names if path.is_relative_to(folder) and is_fresh(_time_of(path), since)]
    lying = files_written(folder, since, run_folder.parent.parent)  # a store holds other runs' folders
    if not set(names).issuperset(lying):
        printed = _printed_to()
        lying = [path for path in lying if (known := _identity(path)) is None or known[:2] not in printed]
    seen += lying
    seen += [path for path in files_written(run_folder, since, folder) if not _is_isoruns_own(path, run_folder)]
    if isinstance(packages, Mapping) and "trackio" in packages:
        seen += [path for path in files_written(_trackio_folder(effective), since) if path.suffix == ".db"]
    return seen


def _printed_to() -> set[tuple[int, int]]:
    """The files that processes print to when the run has ended: what stands there is of others, or of many runs.

    Such is `isorun run … > run.log` or `… | tee run.log` beside the study, and the same of another worker or of the
    isorun that handed this run to a cluster.
    """
    found: set[tuple[int, int]] = set()
    for process in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208  hundreds, at the end of every such run
        descriptors = f"/proc/{process}/fd/"
        opened = [known for name in "12" if (known := _identity(descriptors + name)) is not None]
        if not opened:  # one of the system's own, or it has ended
            continue
        with suppress(OSError):
            found.update(known[:2] for known in opened if known[2])
            with open(f"/proc/{process}/comm", "rb", buffering=0) as comm:  # noqa: PTH123  as above
                is_tee = comm.read() == b"tee\n"
            names = os.listdir(descriptors) if is_tee else []  # noqa: PTH208  as above
            found.update(known[:2] for name in names if (known := _identity(descriptors + name)) and known[2])
    return found


def _identity(path: str | Path) -> tuple[int, int, bool] | None:
    """Device and inode, and whether it is a regular file: a terminal or a pipe could not be taken for a run's."""
    try:
        status = os.stat(path)  # noqa: PTH116  as above
    except OSError:
        return None
    return status.st_dev, status.st_ino, stat.S_ISREG(status.st_mode)


def _trackio_folder(effective: Mapping[str, Any]) -> Path:
    variables = {**os.environ, **(effective.get("variables") or {})}
    home = Path(variables.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    return Path(variables.get("TRACKIO_DIR") or home / "trackio").absolute()


def _time_of(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0


def _is_isoruns_own(path: Path, run_folder: Path) -> bool:
    return path.parent == run_folder and _OWN_FILES.fullmatch(path.name) is not None


def _logged(events: EventLog) -> Found:
    names = dict.fromkeys([*events.series, *events.results], "log")
    return Found(series=events.series, results=events.results, origins=names)


def _after_startup(found: Found, startup_seconds: float | None) -> Found:
    """What was seen from outside, with times as the worker's own: from the end of the start-up."""
    if not startup_seconds:
        return found
    return replace(found, series={name: _earlier(item, startup_seconds) for name, item in found.series.items()})


def _earlier(series: Series, by: float) -> Series:
    return Series(series.steps, [max(seconds - by, 0.0) for seconds in series.seconds], series.values)


def _without(found: Found, names: set[str]) -> Found:
    return replace(
        found,
        series={name: item for name, item in found.series.items() if name not in names},
        results={name: item for name, item in found.results.items() if name not in names},
        origins={name: item for name, item in found.origins.items() if name not in names},
        examples={name: item for name, item in found.examples.items() if name not in names},
    )


def state_and_reason(ended: Ended) -> tuple[RunState, str]:
    """How the run ended, and why in words; a finished run needs no reason."""
    if ended.asked_to_stop:
        return RunState.INTERRUPTED, STOPPED
    if ended.timed_out:
        limit = ended.job.time_limit_seconds
        return RunState.TIMED_OUT, f"still running after the time limit of {limit:g} s"
    if not ended.exit.kept:
        return RunState.FAILED, "the process that kept the run was killed; the run was ended with it"
    if ended.exit.signal:
        guess = " (out of memory?)" if ended.exit.signal == "SIGKILL" else ""
        return RunState.FAILED, f"killed by {ended.exit.signal}{guess}"
    if ended.not_begun:
        return RunState.FAILED, ended.not_begun
    if ended.exit.exit_code != 0:
        return RunState.FAILED, f"exit code {ended.exit.exit_code}{_last_words(ended.log_tail)}{_remedy(ended)}"
    if ended.unreadable:
        return RunState.FAILED, f"what the run left cannot be read ({ended.unreadable})"
    if ended.events.has_gaps:
        return RunState.FAILED, f"some of what the run logged is missing or damaged: {ended.events.gap}"
    return RunState.FINISHED, ""


def _last_words(log_tail: str) -> str:
    """The error a Python program ends with, when its last line reads like one."""
    last = log_tail.rstrip().rpartition("\n")[2]
    return f": {last[:_LAST_WORDS_LENGTH]}" if _LAST_WORDS.fullmatch(last) else ""


def _remedy(ended: Ended) -> str:
    """What to do about a module that is not there, or a terminal."""
    if _NO_ANSWER.search(ended.log_tail[-_LAST_WORDS_LENGTH:]):
        return " (it asked for a line of input: give its answers to every run: isorun run … < FILE)"
    if _NO_TERMINAL.search(ended.log_tail[-_TAIL_SEARCHED:]):
        return (
            " (it asked for a terminal, and isorun has none to give: look for its option to do without, or give it "
            "one: isorun run … -- script -qec 'COMMAND' /dev/null)"
        )
    python = ended.events.start.get("executable") or ended.made.get("python")
    missing = _MISSING_MODULE.search(ended.log_tail[-_LAST_WORDS_LENGTH:])
    if not python or not missing:
        return ""
    return f" in {python}: {_how_to_get(missing[1], str(python), ended.job.environment)}"


def _how_to_get(module: str, python: str, environment: Environment) -> str:
    """What isorun made is made anew from what the study says, and nothing is to be installed there by hand."""
    if environment.kind == PACKAGES:
        given = environment.settings
        listed = ", ".join([*given.get("requirements", ()), *([given["lock"]] if given.get("lock") else [])])
        return f"add what brings {module} to {listed} in the study: isorun installs it for {environment.name!r}"
    if environment.kind == CONTAINER:
        return f"choose an image that has {module}"
    other = "choose another Python: in the command itself, or with isorun run --python"
    package = f"{python} -m pip install {module.partition('.')[0]}"
    return f"install what is missing with `{package}`, or the package that brings it, or {other}"


def _notes(ended: Ended, found: Found) -> list[Note]:
    notes = [*ended.notes, *ended.events.notes, *found.notes]
    notes += non_finite_notes(found.results, found.series)
    if not ended.events.start:
        notes.append(Note("no-worker", f"no Python process of this run loaded the worker: {_without_worker(ended)}"))
    notes += [*_thread_notes(ended), *_early_notes(ended)]
    if ended.exit.left_behind:
        names = ", ".join(sorted(ended.exit.left_behind))
        notes.append(Note("left-behind", f"processes that outlived the training were ended: {names}"))
    return [Note(note.code, ended.secrets.masked(note.message)) for note in dict.fromkeys(notes)]


def _without_worker(ended: Ended) -> str:
    if ended.job.cell.level.fixes_seed:
        return f"the level {ended.job.cell.level} was not applied"
    return "no environment and no digests were recorded"


def _early_notes(ended: Ended) -> list[Note]:
    """A training that isorun itself ended, for who only looks at it or times it, is never a whole one."""
    work, look = (ended.events.effective.get(name) for name in ("work", "audit"))
    cut = isinstance(work, Mapping) and work.get("cut")
    if not cut and not (isinstance(look, Mapping) and look.get("stopped")):
        return []
    when = f"after {work.get('steps')} optimizer steps" if cut and isinstance(work, Mapping) else "while looked at"
    return [Note("ended-early", f"isorun ended the training {when}, as was asked: it is no whole one")]


def _thread_notes(ended: Ended) -> list[Note]:
    """Libraries clamp and ignore requests for threads silently; a declared number that was not kept is told."""
    asked = ended.job.resources.cpus
    parts = {name: part for name, part in ended.events.effective.items() if isinstance(part, Mapping)}
    used = {name: part["threads"] for name, part in parts.items() if "threads" in part}
    return [
        Note("threads-differ", f"{asked} threads were asked for and {name} used {count}")
        for name, count in used.items()
        if asked is not None and asked != count
    ]


def keep_record(record: RunRecord, folder: Path) -> None:
    """Keep the record in the run's folder too: a store that was damaged is rebuilt from there.

    It is not waited for until it has reached the disk: what makes a run count is the store's copy. A disk that is
    full, or a folder that was removed, is the store's to tell.
    """
    # The training may have put anything into its folder: nothing that lies there is opened, followed or waited for.
    temporary = folder / f"{RECORD_NAME}.{secrets.token_hex(8)}.tmp"
    try:
        with os.fdopen(open_own(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW), "wb") as file:
            file.writelines(sealed_and_gzipped(record))
        temporary.replace(folder / RECORD_NAME)
    except OSError:
        return
    finally:  # whatever went wrong, half a record is none
        with suppress(OSError):
            temporary.unlink()


def read_record(folder: Path) -> RunRecord:
    """The record in the folder of a run; ExecutionError when there is none, or it is not what was written."""
    path = folder / RECORD_NAME
    try:
        return open_envelope(path.read_bytes()).record
    except (OSError, ValueError) as error:
        raise ExecutionError(f"the record {path} cannot be read", found=str(error)) from error


class _Answer:
    """What a thread of its own finds out."""

    def __init__(self, ask: Callable[[], dict[str, Any]]) -> None:
        self._ask = ask
        self._found: dict[str, Any] = {}
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._find, name="code-version")
        self._thread.start()

    def _find(self) -> None:
        try:
            self._found = self._ask()
        except Exception as error:
            self._error = error

    def wait(self) -> None:
        """Until it is there, whatever it is."""
        self._thread.join()

    def result(self) -> dict[str, Any]:
        """What was found; waits for it."""
        self.wait()
        if self._error is not None:
            raise self._error
        return self._found


class CodeVersions:
    """Asks git in a thread of its own, for a small part of the time, and where it takes long every ten seconds."""

    def __init__(self) -> None:
        self._latest: dict[Path, tuple[float, _Answer]] = {}
        self._took: dict[Path, float] = {}
        self._lock = threading.Lock()
        self._asking = threading.Lock()

    def ask(self, folder: Path) -> _Answer:
        """The version of the code in a folder, as it is about now."""
        with self._lock:
            asked_at, answer = self._latest.get(folder, (0.0, None))
            serves = min(_MAX_AGE_SECONDS, _AGE_BY_TIME * self._took.get(folder, math.inf))
            now = time.monotonic()
            if answer is None or now - asked_at > serves:
                answer = _Answer(partial(self._answer, folder))
                self._latest[folder] = (now, answer)
            return answer

    def _answer(self, folder: Path) -> dict[str, Any]:
        with self._asking:  # one at a time: this is a small part of the machine's work
            began = time.monotonic()
            found = code_version(folder)
            self._took[folder] = time.monotonic() - began
        return found

    def close(self) -> None:
        """Let the threads end."""
        for _, answer in self._latest.values():
            answer.wait()


_MOST_ENTRIES: Final = 5_000


@dataclass(slots=True)
class _Look:
    """How model files looked before a run began. is_alone: no other run worked in the folder meanwhile."""

    folder: Path
    times: dict[str, float]
    is_alone: bool = True


class ChangedFiles:
    """Model files of the working folder that change while a run goes on: those that its worker did not see it write.

    Where several runs work in one folder at a time, nobody can say whose change it was, and none is told.
    """

    def __init__(self) -> None:
        self._looks: list[_Look] = []
        self._lock = threading.Lock()

    def before(self, folder: Path) -> _Look:
        """A run is about to begin there."""
        look = _Look(folder, dict(_model_files(folder)))
        with self._lock:
            others = [other for other in self._looks if other.folder == folder]
            for other in (*others, *([look] if others else ())):
                other.is_alone = False
            self._looks.append(look)
        return look

    def after(self, look: _Look) -> dict[str, Any]:
        """It has ended: the files that were there and are not as they were."""
        with self._lock:
            self._looks.remove(look)
        now = dict(_model_files(look.folder)) if look.is_alone and look.times else {}
        return {
            name: {"found": before, "wrote": [now[name]], "read": []}
            for name, before in look.times.items()
            if now.get(name, before) != before
        }


def _model_files(folder: Path) -> Iterator[tuple[str, float]]:
    """Those near the top first, and of a folder with very many files not all: data has more than a training writes."""
    left, waiting = _MOST_ENTRIES, deque([str(folder)])
    while waiting and left > 0:
        with suppress(OSError), os.scandir(waiting.popleft()) as entries:
            for entry in entries:
                left -= 1
                if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                    waiting.append(entry.path)
                elif is_model_file(entry.name) and entry.is_file():
                    yield os.path.relpath(entry.path, folder), entry.stat().st_mtime
                if left <= 0:
                    break


Stamp = tuple[int, int, int, int]


class GivenFiles:
    """The files that commands name or trainings read: settings, data, a script in another language.

    The record keeps what they held. A file that the run itself wrote, or that was edited meanwhile, is left out: nobody
    knows what was read.
    """

    def __init__(self) -> None:
        self._digests: dict[Path, tuple[Stamp, str]] = {}

    def before(self, job: Job) -> dict[str, tuple[Path, Stamp]]:
        """The files that the job's words name, and how they look before it begins."""
        found = {}
        for word in words_for_files(job.command):
            path = job.working_folder / word
            if stamp := _stamp(path):
                found[word] = (path, stamp)
            if len(found) == _MOST_GIVEN_FILES:
                break
        return found

    def untouched(self, given: Mapping[str, tuple[Path, Stamp]], hidden: Secrets) -> dict[str, Any]:
        """For the record, when the run has ended: those that are as they were, with their digests."""
        kept = [
            {"path": word, "sha256": digest}
            for word, (path, stamp) in given.items()
            if hidden.masked(word) == word and _stamp(path) == stamp and (digest := self._digest(path, stamp))
        ]
        return {GIVEN_FILES: kept} if kept else {}

    def with_inputs(self, ended: Ended) -> Ended:
        """With the data files that the training read by itself, as far as they are as they were when it began."""
        told, folder = ended.events.effective.get(INPUTS), _prefix(ended.job.working_folder)
        kept: list[dict[str, Any]] = []
        for name, then in told.items() if isinstance(told, dict) else ():
            path, shown, stamp = Path(name), name.removeprefix(folder), _stamp(Path(name))
            is_named = any(item["path"] == shown for item in ended.requested.get(GIVEN_FILES, ()))
            if stamp is None or is_named or names_secret(shown) or ended.secrets.masked(name) != name:
                continue
            if stamp[3] / 1e9 >= ended.began_unix or abs(stamp[3] / 1e9 - then) > _TIME_AS_FLOAT:
                continue
            if stamp[2] > _LARGEST_READ_FILE:
                kept.append({"path": shown, "size": stamp[2], "mtime_ns": stamp[3]})
            elif digest := self._digest(path, stamp):
                kept.append({"path": shown, "sha256": digest})
        return replace(ended, requested={**ended.requested, READ_FILES: kept}) if kept else ended

    def _digest(self, path: Path, stamp: Stamp) -> str:
        known, digest = self._digests.get(path, (None, ""))
        if known != stamp:
            digest = digest_of_file(path)
            self._digests[path] = (stamp, digest)
        return digest


def words_for_files(command: Sequence[str]) -> Iterator[str]:
    """Words that may name files, also behind `=`; not a program of the system's, and nothing that holds a secret."""
    before = ""
    for number, word in enumerate(command):
        name, sign, value = word.partition("=")
        option = name if sign else before
        if not names_secret(_FILE_OPTION.sub("", option)) and (number or word.startswith(".")):
            yield from (part for part in (word, value) if part)
        before = word if word.startswith("-") else ""


def _stamp(path: Path) -> Stamp | None:
    """What changes when a file is written; None for what is no regular file."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    is_file = stat.S_ISREG(found.st_mode)
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns) if is_file else None


def digest_of_file(path: Path) -> str:
    """The hash of a file, for a large one its size alone; empty where it cannot be read."""
    try:
        stamp = _stamp(path)
        size = 0 if stamp is None else stamp[2]
        is_small = size <= _LARGEST_GIVEN_FILE
        return "" if stamp is None else hash_of_file(path) if is_small else f"{size} bytes"
    except OSError:
        return ""


def how_it_changed(path: Path, size: object, mtime_ns: object) -> str:
    """What is not as it was of a file that had this size and time: "content", "time", or nothing that can be seen."""
    stamp = _stamp(path)
    if stamp is None or (stamp[2], stamp[3]) == (size, mtime_ns):
        return ""
    return "content" if stamp[2] != size else "time"


def digest_of_variable(name: str) -> str:
    """Enough of a hash to notice another value, too little to keep one; empty where it is not set or may be secret."""
    value = os.environ.get(name)
    if value is None or names_secret(name) or holds_secret(name, value):
        return ""
    return sha256(value.encode(errors="surrogateescape")).hexdigest()[:8]


def variables_read(job: Job, effective: Mapping[str, Any]) -> dict[str, Any]:
    """For the record: the variables of the caller's that the training's sources ask for, as digests.

    Those of the study are part of what tells cells apart, and what a session or a batch system sets anew each time says
    nothing about the training.
    """
    own = job.environment.env.keys() | OWN_VARIABLES | effective.get("variables", {}).keys()
    asked = [name for name in effective.get("variables_read", ()) if name not in own and not _PASSING.fullmatch(name)]
    return {VARIABLES_READ: {name: digest_of_variable(name) for name in asked}} if asked else {}


def with_script(version: Mapping[str, Any], effective: Mapping[str, Any]) -> dict[str, Any]:
    """The version, and the hashes of the script and of all the training's own source files as the worker saw them."""
    found = {
        "script_sha256": effective.get("script", {}).get("sha256"),
        "sources_sha256": effective.get("sources_sha256"),
    }
    return {**version, **{name: value for name, value in found.items() if value}}
