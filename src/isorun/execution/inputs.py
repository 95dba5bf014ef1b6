"""What a run works with: the version of its code, files that it names, reads or changes, variables that it asks for."""

from __future__ import annotations

import math
import os
import re
import stat
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from isorun.execution import Job
from isorun.execution.output import Secrets
from isorun.worker.frameworks import is_model_file
from isorun.worker.levels import OWN_VARIABLES
from isorun.worker.redaction import holds_secret, names_secret
from isorun.worker.usercode import code_version, hash_of_file

if TYPE_CHECKING:
    from isorun.execution.assemble import Ended

__all__ = [
    "GIVEN_FILES",
    "INPUTS",
    "READ_FILES",
    "VARIABLES_READ",
    "ChangedFiles",
    "CodeVersions",
    "GivenFiles",
    "digest_of_file",
    "digest_of_variable",
    "how_it_changed",
    "prefix_of",
    "variables_read",
    "with_script",
    "words_for_files",
]

GIVEN_FILES: Final = "given_files"
VARIABLES_READ: Final = "variables_read"
READ_FILES: Final = "read_files"
INPUTS: Final = "inputs"
_MOST_GIVEN_FILES: Final = 32
_LARGEST_GIVEN_FILE: Final = 64 * 1024 * 1024
_LARGEST_READ_FILE: Final = 2 * 1024 * 1024
"""What a training read and is larger is known by size and time: a run may not wait for data to be hashed."""
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


def prefix_of(folder: Path) -> str:
    """What the names of all files below a folder begin with."""
    return str(folder.absolute()) + os.sep


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
        told, folder = ended.events.effective.get(INPUTS), prefix_of(ended.job.working_folder)
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
