"""On a node of a Ray cluster: one job, carried out in a worker process of Ray.

Such a process serves many tasks, one after the other, so it keeps what runs share (`Workshop`): the process that forks
keepers, fork servers, environments. A run is a process of its own all the same, as everywhere. When the worker process
dies, or the node's raylet and with it the worker, the keeper of the run ends everything that the run started.
"""

from __future__ import annotations

import fcntl
import functools
import json
import os
import queue
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from isorun.environments.interpreter import check_command
from isorun.errors import ExecutionError, IsorunError
from isorun.execution import Event, Job, event_to_json
from isorun.execution.carrying import Workbench, Workshop, carry_out, new_folder
from isorun.execution.resources import DEVICE_VARIABLES, Devices, usable_cpus
from isorun.study import Environment
from isorun.study.records import RunRecord, sealed
from isorun.worker.runfolder import make_own_folder

__all__ = ["Answer", "look_around", "serve"]

Answer = tuple[str, bytes, dict[str, bytes]]
"""What a task gives back: how it went, as JSON; the record in its envelope; files of a folder that is not shared."""

_REPORT_SECONDS: Final = 1.0
_FIRST_REPORT_SECONDS: Final = 0.5
# Ray raises KeyboardInterrupt for a task that is cancelled when the main thread next wakes up.
_WAKE_SECONDS: Final = 0.25
_LARGEST_FILE: Final = 8 << 20
_MOST_BYTES: Final = 64 << 20
# What Ray sets for its workers and would change a training that inherits it.
_OF_RAY: Final = ("OMP_NUM_THREADS", "PYTHONBREAKPOINT", "PYTHONUNBUFFERED")

_workshops: dict[tuple[str, float], Workshop] = {}


def serve(text: str, node: str) -> Answer:
    """Carry out the job of an errand on this node.

    What the task is cancelled for is a run that is asked to stop, and its record.
    """
    errand: _Errand | None = None
    while True:
        try:
            errand = errand or _Errand(json.loads(text), node)
            return errand.answer()
        except KeyboardInterrupt:
            if errand is None:
                raise
            errand.stop()
        except (IsorunError, OSError) as error:  # of the place where a run would be, before it began
            told = error if isinstance(error, IsorunError) else _as_told("no run can begin here", error)
            return _refused(_parts(told), node)


def look_around(text: str) -> str:
    """Whether runs of a command can begin on this node: what prevents it as JSON, empty if nothing does."""
    asked = json.loads(text)
    environment, folder = Environment.from_json(asked["environment"]), Path(asked["working_folder"])
    try:
        _check_folder(folder)
        check_command(asked["command"], environment, folder)
    except IsorunError as error:
        return json.dumps(_parts(error))
    return ""


def _check_folder(folder: Path) -> None:
    if folder.is_dir():
        return
    host = socket.gethostname()
    raise ExecutionError(
        f"the working folder {folder} is not there",
        found=f"no such folder on {host}",
        allowed="the same path on every node of the cluster: a shared file system, or a copy on each of them",
        hint=f"rsync -a {folder}/ {host}:{folder}/ makes a copy; a shared file system needs none",
    )


def _parts(error: IsorunError) -> dict[str, str]:
    host = socket.gethostname()
    what = f"on the node {host} of the Ray cluster: {error.what}"
    return {"what": what, "found": error.found, "allowed": error.allowed, "hint": error.hint}


class _Errand:
    """One job: a thread carries it out, and the main thread reports and hears when Ray cancels the task."""

    def __init__(self, asked: Mapping[str, Any], node: str) -> None:
        self._asked, self._node = asked, node
        self._job = Job.from_json(asked["job"])
        self._shared = (Path(asked["runs"]) / asked["marker"]).is_file()
        runs = Path(asked["runs"]) if self._shared else _own_place() / "runs"
        self._folder = runs / self._job.run_id
        self._workshop = _workshop(asked["launch"], asked["grace"])
        self._events: list[str] = []
        self._wait = _FIRST_REPORT_SECONDS
        # Not `Thread.join`: a KeyboardInterrupt in it makes the thread look as if it had ended.
        self._answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="run").start()

    def answer(self) -> Answer:
        """Wait for the end, and tell meanwhile what happens to those who watch."""
        while True:
            with suppress(queue.Empty):
                return self._answers.get(timeout=_WAKE_SECONDS)
            self._wait -= _WAKE_SECONDS
            if self._wait <= 0:
                self._wait = _REPORT_SECONDS
                self._report()

    def stop(self) -> None:
        """Ask the run to stop; its end is told as any other."""
        self._workshop.stop(self._job.run_id)

    def _report(self) -> None:
        """Put what was told on the board. Whoever watches may miss it, and so nothing here is waited for."""
        events, self._events = self._events, []
        with suppress(Exception):
            _board(self._asked["board"]).put.remote(events)

    def _tell(self, event: Event) -> None:
        self._events.append(json.dumps(event_to_json(event)))

    def _work(self) -> None:
        try:
            answer = self._ended(self._record())
        except IsorunError as error:
            answer = _refused(_parts(error), self._node)
        except Exception as error:
            told = _as_told(f"the run {self._job.run_id} could not be carried out", error)
            answer = _refused(_parts(told), self._node)
        self._workshop.forget(self._job.run_id)
        self._answers.put(answer)

    def _record(self) -> RunRecord:
        _check_folder(self._job.working_folder)
        _make_place(self._folder.parent, shared=self._shared)
        new_folder(self._folder)
        for name in _OF_RAY:
            if name not in _variables_of_raylet():
                os.environ.pop(name, None)
        said = (os.environ.get(name) for name in DEVICE_VARIABLES)
        devices = _devices("auto" if self._asked["gpus"] else "none", *said)
        devices.check_device(self._job.environment.switches.get("device", ""))
        with ExitStack() as lent:
            seen = lent.enter_context(devices.lend(self._job.resources.devices, self._job.environment.variables))
            cpus = lent.enter_context(_own_cpus(self._asked["cpus"]))
            return carry_out(self._job, self._folder, Workbench(self._workshop, cpus, seen), self._tell)

    def _ended(self, record: RunRecord) -> Answer:
        files, left = ({}, []) if self._shared else _collected(self._folder)
        if not self._shared and not left:
            shutil.rmtree(self._folder, ignore_errors=True)
        ended = {"ended": self._shared, "left": left, "events": self._events, "node": self._node}
        return json.dumps(ended), b"".join(sealed(record)[0]), files


@functools.lru_cache(maxsize=16)
def _devices(asked: str, *_said: str | None) -> Devices:
    """Those of this node as the variables name them, which Ray sets for a task: drivers are asked once for each."""
    return Devices(asked)


def _as_told(what: str, error: Exception) -> ExecutionError:
    return ExecutionError(what, found=f"{type(error).__name__}: {error}")


def _refused(parts: Mapping[str, str], node: str) -> Answer:
    return json.dumps({"refused": parts, "node": node}), b"", {}


def _workshop(launch: str, grace: float) -> Workshop:
    """The one of this process, which ends with it: keepers notice."""
    found = _workshops.get((launch, grace))
    if found is None:
        found = _workshops[launch, grace] = Workshop(launch=launch, grace_seconds=grace)
    return found


_boards: dict[str, Any] = {}


def _board(name: str) -> Any:
    if name not in _boards:
        import ray  # noqa: PLC0415  here it is loaded long since

        _boards[name] = ray.get_actor(name)
    return _boards[name]


_raylet: dict[str, str] = {}


def _variables_of_raylet() -> Mapping[str, str]:
    """The variables that this node was started with: those are its user's, and what else is here is Ray's."""
    if not _raylet:
        with suppress(OSError):
            text = Path(f"/proc/{os.environ.get('RAY_RAYLET_PID', os.getppid())}/environ").read_bytes()
            _raylet.update(item.partition("=")[::2] for item in os.fsdecode(text).split("\0") if item)
    return _raylet


def _own_place() -> Path:
    """A folder of this user's on this machine, for locks and for folders of runs that are not shared."""
    place = Path(tempfile.gettempdir()) / f"isorun-{os.getuid()}"
    with suppress(FileExistsError):
        make_own_folder(place)
    found = place.lstat()
    if found.st_uid != os.getuid() or not place.is_dir() or place.is_symlink() or found.st_mode & 0o022:
        raise ExecutionError(
            f"{place} cannot be used", found="it is somebody else's, or others may write to it", hint=f"rm -r {place}"
        )
    return place


def _make_place(runs: Path, *, shared: bool) -> None:
    if not shared:
        runs.mkdir(mode=0o700, exist_ok=True)


@contextmanager
def _own_cpus(count: int) -> Iterator[tuple[int, ...]]:
    """So many CPUs of this machine that no other run of ours has: libraries take as many threads as they see CPUs.

    A CPU is held by a lock on a file, which the system takes back from who dies. Where Ray was told of more CPUs than
    there are none are held, and the run sees all of them.
    """
    usable, held = usable_cpus(), list[tuple[int, int]]()
    place = _own_place() / "cpus"
    place.mkdir(mode=0o700, exist_ok=True)
    try:
        for cpu in usable:
            if len(held) == count:
                break
            if (lock := _lock(place / str(cpu))) is not None:
                held.append((cpu, lock))
        yield tuple(cpu for cpu, _ in held) if len(held) == count else usable
    finally:
        for _, lock in held:
            os.close(lock)


def _lock(path: Path) -> int | None:
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


def _collected(folder: Path) -> tuple[dict[str, bytes], list[str]]:
    """The files of a run's folder by their names in it, smallest first as far as there is room; those left out."""
    found = sorted(
        (path.stat().st_size, str(path.relative_to(folder)), path)
        for root, _, names in os.walk(folder)
        for path in (Path(root) / name for name in names)
        if path.is_file() and not path.is_symlink()
    )
    files: dict[str, bytes] = {}
    left, room = list[str](), _MOST_BYTES
    for size, name, path in found:
        if size > min(_LARGEST_FILE, room):
            left.append(name)
            continue
        files[name], room = path.read_bytes(), room - size
    return files, left
