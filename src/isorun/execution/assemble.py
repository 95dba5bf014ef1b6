"""From what a run left to its record."""

from __future__ import annotations

import os
import re
import secrets
import stat
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from isorun.errors import ExecutionError
from isorun.execution import Job
from isorun.execution.inputs import INPUTS, prefix_of
from isorun.execution.output import Secrets
from isorun.execution.process import Exit
from isorun.execution.worker_events import EventLog, non_finite_notes
from isorun.sources import Found, files_written, is_fresh, may_hold_metrics, merged
from isorun.study import Environment
from isorun.study.parsing import CONTAINER, PACKAGES
from isorun.study.records import Note, RunRecord, RunState, Series, open_envelope, sealed_and_gzipped
from isorun.worker.runfolder import open_own

__all__ = [
    "Ended",
    "assemble",
    "failed_to_read",
    "found_in_files",
    "keep_record",
    "lost_record",
    "read_record",
    "state_and_reason",
    "written_paths",
]

RECORD_NAME: Final = "record.json.gz"
FILES: Final = "files"
_OWN_FILES: Final = re.compile(
    r"(?:job|request|printed)\.json|events.*\.jsonl|(?:writers|worker-error)\.txt|output\.log"
)


STOPPED: Final = "stopped on request"
OUTLIVED: Final = (
    "the command ended while the training that it had begun went on, which was then ended; let the command wait for it "
    "(wait in a script, setsid --wait)"
)
NEVER_STARTED: Final = Exit(None, "", 0.0, 0.0, 0)
_LAST_WORDS: Final = re.compile(r"(?:[\w.]*(?:Error|Exception|Interrupt|Exit|Warning)\b|\S*python\S*: ).*")
_LAST_WORDS_LENGTH: Final = 200
# A traceback and its places, which are indented; then the exception's type, whatever it is called, and its message.
_TRACED: Final = re.compile(
    r"^(?:\[rank\d+\]: ?)?Traceback \(most recent call last\):\n(?:(?:\[rank\d+\]:)?[ \t].*\n|\n)+?"
    r"(?:\[rank\d+\]: )?((?!\[rank)\S.*)",
    re.MULTILINE,
)
_OF_A_LAUNCHER: Final = re.compile(r"\S*\bChildFailedError\b")
_OF_A_COMMAND: Final = re.compile(r"(?:subprocess\.)?CalledProcessError: Command .* (?:returned non-zero|died with) .*")
_ERROR: Final = re.compile(r"[A-Za-z_][\w.]*(?::|\s*$)")
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
    told, folder = dict(ended.events.effective), prefix_of(ended.job.working_folder)
    told.pop(INPUTS, None)  # what they held is among what was requested
    files = told.pop(FILES, None)
    named = {name.removeprefix(folder): item for name, item in files.items()} if isinstance(files, dict) else {}
    return {"effective": told, **({FILES: {**ended.changed, **named}} if named or ended.changed else {})}


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
    return merged(logged, files, lines.without({*logged.origins, *files.origins, *ended.events.stands_for}))


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
    own = merged(logged, ended.lines.without({*logged.origins, *ended.events.stands_for}))
    named = ended.job.sources.files or ended.job.sources.tensorboard  # whoever names files has said what to rely on
    has_metrics = bool(own.origins or ended.files.origins or named)
    look = Looked(folder, run_folder, since, whole=whole, is_alone=is_alone, has_metrics=has_metrics)
    return replace(ended, files=merged(ended.files, found_among(paths, look, own)))


def written_paths(folder: Path, run_folder: Path, since: float, effective: Mapping[str, Any]) -> list[Path]:
    """Files of a run that may hold metrics: those its worker told of, and what lies in its folders and is new.

    trackio keeps its databases in one place for all projects, which is asked where the run loaded it.
    """
    told, packages = effective.get(FILES), effective.get("packages")
    written = told if isinstance(told, Mapping) else {}
    names = [Path(name) for name in written if isinstance(name, str) and may_hold_metrics(name)]
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
    if _was_outlived(ended) and (ended.events.names or ended.events.digests):
        return RunState.FAILED, OUTLIVED
    return RunState.FINISHED, ""


def _was_outlived(ended: Ended) -> bool:
    """Whether the process that told of itself went on when the command had ended: nobody knows how far it would go."""
    return ended.events.start.get("pid") in ended.exit.left_pids


def _last_words(log_tail: str) -> str:
    """The error a Python program ends with: its last line when that reads like one, else that of its last traceback.

    A message of several lines goes on behind its error. What stands at the end is told too: it may also be what a
    program says that caught that error and went on, and ended for another reason. So it is with a launcher in Python
    whose command failed: the error before it is most often that of the command.
    """
    lines = log_tail.rstrip().split("\n")
    traced = [error.rstrip() for error in _TRACED.findall(log_tail)]
    if _OF_A_COMMAND.fullmatch(lines[-1]) and len(traced) > 1:  # whoever ran the command tells what was typed
        return f": {_cut(traced[-2])} … {_cut(lines[-1])}"
    if _LAST_WORDS.fullmatch(lines[-1]):
        return f": {_cut(lines[-1])}"
    if not traced or not _ERROR.match(traced[-1]):
        return ""
    if _OF_A_LAUNCHER.match(traced[-1]):  # it tells that a process of its own failed, and goes on about that
        return f": {_cut(next((one for one in reversed(traced) if not _OF_A_LAUNCHER.match(one)), traced[-1]))}"
    return f": {_cut(traced[-1])} … {_cut(lines[-1].strip())}"


def _cut(words: str) -> str:
    """What is left of many words, with a sign that there were more."""
    return words if len(words) <= _LAST_WORDS_LENGTH else f"{words[: _LAST_WORDS_LENGTH - 1]}…"


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
    if launcher := _started_by(ended.events.start.get("argv", ()), ended.log_tail):
        return f" in the Python that {launcher} chose: install what is missing there, or the package that brings it"
    if _lies_in(ended.job.working_folder, missing[1]):
        return (
            f" in {python}: {missing[1]} lies in the working folder, where Python looks only if it is told: "
            "isorun run --env PYTHONPATH=. …, or python -m PACKAGE.MODULE instead of python PACKAGE/MODULE.py"
        )
    return f" in {python}: {_how_to_get(missing[1], str(python), ended.job.environment)}"


def _started_by(argv: Sequence[str], log_tail: str) -> str:
    """The name of the program that told of itself, where none of its files is in the traceback; else empty.

    Then a Python has failed that this one started (pdm, hatch), and it may be another interpreter.
    """
    script = Path(next(iter(argv[1:]), "-")).name
    is_its_own = f'{script}"' in log_tail or f"/{script}/" in log_tail
    return "" if script.startswith("-") or 'File "' not in log_tail or is_its_own else script


def _lies_in(folder: Path, module: str) -> bool:
    """Whether the training's own folder has the module, so that none is to be installed; a folder may hold data."""
    if "." in module or not module:
        return False
    return (folder / f"{module}.py").is_file() or any((folder / module).glob("*.py"))


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
    if _was_outlived(ended):
        notes.append(Note("training-outlived", f"a Python process outlived the command and was ended: {names}"))
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
