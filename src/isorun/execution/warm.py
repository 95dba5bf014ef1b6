"""Warm launching: fork servers that have imported the frameworks, started under keepers, and the runs forked from them.

The server itself is the worker's (`worker/forkserver.py`); here is the side of the executor, loaded only when a run is
to be forked. Under a keeper everything a server forks, and everything that those fork, ends when the executor ends.

What a server should import before it forks is found in the script's source, which is never executed. Only frameworks
that are known to survive a fork after their import are taken: they start no threads and open no device when imported.
Those that do are imported by each run itself.
"""

from __future__ import annotations

import ast
import math
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from isorun.errors import ExecutionError
from isorun.execution.keeper import PASSED_SOCKET, Process, children, descendants, kill_all, send
from isorun.execution.process import ANSWER_SECONDS, Exit, Keepers, KeptProcess, Marks, end_processes, signal_name
from isorun.study import FUNCTION
from isorun.worker import forkserver as messages
from isorun.worker.forkserver import Launch
from isorun.worker.frameworks import preload_with, safe_to_preload
from isorun.worker.levels import PER_RUN_VARIABLES, site_folder
from isorun.worker.programs import MODULE, SCRIPT, Program

if TYPE_CHECKING:
    from isorun.execution.launching import ReadyRun

__all__ = ["ServerKey", "WarmRun", "WarmServer", "WarmServers", "imports_of_script", "modules_to_preload"]

_START_SECONDS: Final = 300.0
_COMPLAINT_BYTES: Final = 2000
_LOOK_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class ServerKey:
    """What all runs of one server share: everything that Python or a library reads when it is loaded."""

    interpreter: str
    variables: tuple[tuple[str, str], ...]
    cpus: tuple[int, ...]
    preload: tuple[str, ...]
    working_folder: Path


class WarmServer:
    """A server that is ready to fork. failed: modules that it could not import, with the error.

    Raises ExecutionError when it does not start.
    """

    def __init__(self, keepers: Keepers, key: ServerKey, cpus: Sequence[int]) -> None:
        self.alive = True
        self.last_used = time.monotonic()
        self._runs: dict[int, WarmRun] = {}
        self._count = 0
        self._lock = threading.Lock()
        self._complaints = b""
        self._connection, self._process = _start(keepers, key, cpus)
        try:
            ready = self._greet({"cpus": list(cpus), "preload": list(key.preload)})
        except ExecutionError:
            self._release()
            raise
        self._pid: int = ready["pid"]
        self.failed: dict[str, str] = ready["failed"]
        self._thread = threading.Thread(target=self._listen, name="warm-server", daemon=True)
        self._thread.start()

    @property
    def busy(self) -> bool:
        """Whether a run is in progress."""
        return bool(self._runs)

    def launch(self, launch: Launch, files: Sequence[int], run: WarmRun) -> None:
        """Fork a child for the run, with these files as (input,) output and error; tell the run about it."""
        with self._lock:
            self.last_used = time.monotonic()
            self._count += 1
            self._runs[self._count] = run
            message = {"do": "launch", "id": self._count, "launch": launch.to_json()}
            try:
                messages.send(self._connection, message, files)
            except OSError:
                del self._runs[self._count]
                self.alive = False
                raise

    def orphans(self) -> list[Process]:
        """Processes that a run left behind: descendants of the keeper, but not, or no longer, of the server.

        Who lost its parent is a child of the keeper. Mostly there is none, and to read the whole table of processes for
        that takes longer than all else at the end of a run.
        """
        keeper = self._process.keeper_pid
        if all(children(keeper) == [self._pid] for _ in range(2)):
            return []
        of_server = {process.pid for process in descendants(self._pid)}
        kept = descendants(keeper)
        return [process for process in kept if process.pid != self._pid and process.pid not in of_server]

    def close(self) -> None:
        """End the server and everything that was forked from it."""
        self._process.kill()
        while self._thread.is_alive():
            self._process.see_to_it()
            self._thread.join(_LOOK_SECONDS)
        self._release()

    def see_to_it(self) -> None:
        """Let the server go on where a run stopped it, or its keeper."""
        self._process.see_to_it()
        send([self._pid], signal.SIGCONT)

    def end(self) -> None:
        """Kill the server, and so all of its runs: it does not answer any more."""
        self._process.kill()

    def _greet(self, hello: Mapping[str, Any]) -> dict[str, Any]:
        self._connection.settimeout(_START_SECONDS)
        try:
            messages.send(self._connection, hello)
            answer = messages.receive(self._connection)
        except OSError:
            answer = None
        if answer is None:
            self._process.kill()
            raise ExecutionError("a warm fork server did not start", found=self._all_complaints() or "no message")
        self._connection.settimeout(None)
        return answer[0]

    def _listen(self) -> None:
        poll = select.poll()
        poll.register(self._connection, select.POLLIN)
        poll.register(self._process.output_fd, select.POLLIN)
        while True:
            ready = {fd for fd, _ in poll.poll()}
            if self._process.output_fd in ready and not self._read_complaints():
                poll.unregister(self._process.output_fd)
            if self._connection.fileno() in ready and not self._take_event():
                self._lose_all()
                return

    def _take_event(self) -> bool:
        """Pass the next event on; whether the server is still there."""
        try:
            received = messages.receive(self._connection)
        except OSError:
            received = None
        if received is None:
            return False
        event = received[0]
        with self._lock:
            ended = event["event"] == "exited"
            run = self._runs.pop(event["id"]) if ended else self._runs[event["id"]]
        if ended:
            run.exited(event)
        else:
            run.started(event["pid"])
        return True

    def _lose_all(self) -> None:
        with self._lock:
            self.alive = False
            lost, self._runs = list(self._runs.values()), {}
        for run in lost:
            run.lost()

    def _read_complaints(self) -> bool:
        """What the server prints is kept in part; it must be read, or the server would wait for us."""
        data = os.read(self._process.output_fd, 65536)
        self._complaints = (self._complaints + data)[-_COMPLAINT_BYTES:]
        return bool(data)

    def _all_complaints(self) -> str:
        while self._read_complaints():
            continue
        return self._complaints.decode(errors="replace").strip()

    def _release(self) -> None:
        self.alive = False
        self._process.close()
        self._connection.close()


class WarmRun:
    """A run that was forked from a server.

    output_fd: its standard output and error, to be read. status_fd: readable when it has ended. input_fd: its standard
    input, empty if not given.
    """

    def __init__(
        self, server: WarmServer, launch: Launch, run_folder: Path, grace: float, input_fd: int | None = None
    ) -> None:
        self._server = server
        self._run_folder = run_folder
        self._grace = grace
        self._pid = 0
        self._began = self._ended = time.monotonic()
        self._forked = threading.Event()
        self._lock = threading.Lock()
        self._event: Mapping[str, Any] | None = None
        self._over = False
        self._asked_to_stop = False
        self._answer_by = math.inf
        self._kill_timer: threading.Timer | None = None
        self._open(launch, [] if input_fd is None else [input_fd])

    def _open(self, launch: Launch, given: list[int]) -> None:
        """Ask for the fork and wait for it, so that a server that dies before it forked can be replaced."""
        self.output_fd, output = os.pipe()
        self.status_fd, self._end_fd = os.pipe()
        try:
            self._server.launch(launch, [*given, output, output], self)
        except OSError:
            os.close(self._end_fd)
            self.close()
            raise
        finally:
            os.close(output)
        self._forked.wait()
        if self._pid == 0:
            self.close()
            raise ConnectionError("the fork server died before it forked")

    def started(self, pid: int) -> None:
        """The server forked the process."""
        self._began = time.monotonic()
        self._pid = pid
        self._forked.set()

    def exited(self, event: Mapping[str, Any]) -> None:
        """The process ended."""
        self._event = event
        self.lost()

    def lost(self) -> None:
        """Nothing more will be heard of the process."""
        with self._lock:
            self._over = True
        self._ended = time.monotonic()
        self._forked.set()
        os.close(self._end_fd)

    def exit(self) -> Exit | None:
        """How it ended, or None; blocks until there is news."""
        if os.read(self.status_fd, 1):
            return None
        if self._event is None:
            return Exit(None, "", 0.0, 0.0, 0, kept=False)
        left_behind = end_processes(self._leftovers)
        code = self._event["returncode"]
        return Exit(
            exit_code=code if code >= 0 else None,
            signal=signal_name(-code) if code < 0 else "",
            wall_seconds=self._ended - self._began,
            cpu_seconds=self._event["user_seconds"] + self._event["system_seconds"],
            peak_memory_bytes=self._event["peak_memory_bytes"],
            left_behind=() if self._asked_to_stop else tuple(left_behind),
        )

    def _leftovers(self) -> list[Process]:
        """What this run left behind; while other runs share the server, only what is certain to be its own."""
        orphans = self._server.orphans()
        if not orphans or not self._server.busy:
            return orphans
        marks = Marks(self._run_folder, session=self._pid, pipe=os.fstat(self.output_fd).st_ino)
        return [process for process in orphans if marks.fit(process)]

    def ask_to_stop(self) -> None:
        """SIGTERM to the process and all its descendants, and SIGKILL after the grace time."""
        with self._lock:
            if self._over or self._asked_to_stop:
                return
            self._asked_to_stop = True
            self._answer_by = time.monotonic() + self._grace + ANSWER_SECONDS
            family = [self._pid, *(process.pid for process in descendants(self._pid))]
            send(family, signal.SIGTERM)
            send(family, signal.SIGCONT)
            self._kill_timer = threading.Timer(self._grace, self.kill)
            self._kill_timer.daemon = True
            self._kill_timer.start()

    def see_to_it(self) -> None:
        """Let a server that was stopped go on; end it where it does not tell the end of this run."""
        with self._lock:
            over = self._over
        if over:
            return
        self._server.see_to_it()
        if time.monotonic() >= self._answer_by:
            self._server.end()

    def kill(self) -> None:
        """SIGKILL to the process and all its descendants."""
        with self._lock:
            if not self._over:
                send([self._pid], signal.SIGSTOP)
                kill_all(self._pid)
                send([self._pid], signal.SIGKILL)

    def close(self) -> None:
        """Kill what still runs and give back all resources."""
        if self._pid:
            self.kill()
        if self._kill_timer is not None:
            self._kill_timer.cancel()
        for name in ("status_fd", "output_fd"):
            if (fd := getattr(self, name)) >= 0:
                os.close(fd)
                setattr(self, name, -1)


def _start(keepers: Keepers, key: ServerKey, cpus: Sequence[int]) -> tuple[socket.socket, KeptProcess]:
    ours, theirs = socket.socketpair()
    try:
        process = KeptProcess(
            keepers,
            [key.interpreter, str(site_folder() / "enter.py"), "serve", str(PASSED_SOCKET)],
            env={name: value for name, value in key.variables if name not in PER_RUN_VARIABLES},
            working_folder=key.working_folder,
            cpus=cpus,
            passed=theirs.fileno(),
        )
    except ExecutionError:
        ours.close()
        raise
    finally:
        theirs.close()
    return ours, process


_MOST_SERVERS: Final = 8
# With these the OpenMP runtime binds threads to the CPUs it saw when it was loaded: those must be the run's own.
_BINDING_VARIABLES: Final = ("OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY")


@dataclass
class _Place:
    """Where the server of one key is, or will be; starting it takes seconds, during which others may work."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    server: WarmServer | None = None
    broken: str = ""


class WarmServers:
    """The fork servers of one executor, started when first needed, and again when they have died."""

    def __init__(self, keepers: Keepers, grace_seconds: float) -> None:
        self._keepers = keepers
        self._grace_seconds = grace_seconds
        self._places: dict[ServerKey, _Place] = {}
        self._preloads: dict[tuple[Path, Path], tuple[str, ...]] = {}
        self._lock = threading.Lock()

    def start(self, ready: ReadyRun, input_fd: int | None = None) -> WarmRun:
        """Fork the run; ExecutionError when that is not possible, with the reason as what was found."""
        assert ready.python_program is not None
        job = ready.job
        launch = Launch(ready.python_program, str(job.working_folder.absolute()), ready.env, ready.cpus)
        for _ in range(2):
            server = self._server(ready)
            try:
                return WarmRun(server, launch, ready.folder, self._grace_seconds, input_fd)
            except OSError:
                continue  # the server died just now: once more with a new one
        raise ExecutionError("a warm fork server dies when it is asked for a run", found="it died twice")

    def _server(self, ready: ReadyRun) -> WarmServer:
        key = self._key(ready)
        with self._lock:
            place = self._places.setdefault(key, _Place())
        with place.lock:
            if place.broken:
                raise ExecutionError("a warm fork server cannot be used", found=place.broken)
            if place.server is None or not place.server.alive:
                self._make_room()
                place.server = self._started(key, ready, place)
            return place.server

    def _started(self, key: ServerKey, ready: ReadyRun, place: _Place) -> WarmServer:
        if place.server is not None:
            place.server.close()
            place.server = None
        try:
            server = WarmServer(self._keepers, key, ready.cpus)
        except ExecutionError as error:
            place.broken = error.found
            raise
        if failed := _serious_failures(server.failed, ready):
            server.close()
            place.broken = f"preloading failed: {failed}"
            raise ExecutionError("a warm fork server cannot be used", found=place.broken)
        return server

    def _make_room(self) -> None:
        """End the server that was idle longest when there are many: each holds the memory of its imports."""
        with self._lock:
            idle = [place for place in self._places.values() if place.server and not place.server.busy]
        for place in sorted(idle, key=lambda item: item.server.last_used if item.server else 0.0)[:-_MOST_SERVERS]:
            if place.lock.acquire(blocking=False):
                try:
                    if place.server and not place.server.busy:
                        place.server.close()
                        place.server = None
                finally:
                    place.lock.release()

    def _key(self, ready: ReadyRun) -> ServerKey:
        shared = {name: value for name, value in ready.env.items() if name not in PER_RUN_VARIABLES}
        bound = any(name in shared for name in _BINDING_VARIABLES)
        return ServerKey(
            interpreter=ready.interpreter,
            variables=tuple(sorted(shared.items())),
            cpus=ready.cpus if bound else tuple(range(len(ready.cpus))),
            preload=self._preload(ready),
            working_folder=ready.origin,
        )

    def _preload(self, ready: ReadyRun) -> tuple[str, ...]:
        if ready.job.environment.preload is not None:
            return ready.job.environment.preload
        assert ready.python_program is not None
        script = _script(ready.python_program, ready.origin)
        if script is None:
            return ()
        with self._lock:
            if script not in self._preloads:
                self._preloads[script] = modules_to_preload(*script)
            return self._preloads[script]

    def close(self) -> None:
        """End all servers and what runs on them."""
        with self._lock:
            places, self._places = list(self._places.values()), {}
        for place in places:
            with place.lock:
                if place.server is not None:
                    place.server.close()
                    place.server = None


def _script(program: Program, folder: Path) -> tuple[Path, Path] | None:
    """The file that holds the program, and the folder that leads `sys.path` when it runs; None if it is in no file."""
    target = program.target.rpartition(":")[0] if program.kind == FUNCTION else program.target
    if program.kind in (SCRIPT, FUNCTION):
        return (folder / target, (folder / target).parent)
    if program.kind == MODULE:
        base = folder.joinpath(*target.split("."))
        files = (base.with_name(base.name + ".py"), base / "__main__.py")
        return next(((file, folder) for file in files if file.is_file()), None)
    return None


def _serious_failures(failed: dict[str, str], ready: ReadyRun) -> str:
    """Modules that were declared must be there; those found in the source may be optional there."""
    declared = ready.job.environment.preload is not None
    serious = {name: why for name, why in failed.items() if declared or not why.startswith("ModuleNotFoundError")}
    return "; ".join(f"{name}: {why}" for name, why in serious.items())


_MOST_FILES: Final = 500


def modules_to_preload(script: Path, root: Path) -> tuple[str, ...]:
    """The safe modules that a script and the local modules it uses import, in the order in which they come.

    Behind them come the parts of these frameworks that would otherwise be imported at the first training step.

    The order is kept because the first library to load an OpenMP runtime decides which one the others get.
    root: the folder that leads `sys.path` when the script runs.
    """
    found = [name for name in imports_of_script(script, root) if name.partition(".")[0] in safe_to_preload()]
    parts = [part for name in found for part in preload_with(name.partition(".")[0])]
    return tuple(dict.fromkeys([*found, *parts]))


def imports_of_script(script: Path, root: Path) -> tuple[str, ...]:
    """All modules that are imported anywhere in the script or in local modules that it imports, each once."""
    found: dict[str, None] = {}
    seen: set[Path] = set()
    waiting = [script]
    while waiting and len(seen) < _MOST_FILES:
        file = waiting.pop(0)
        if file in seen:
            continue
        seen.add(file)
        for name in _imported_names(file, root):
            local = _local_file(name, root)
            if local is None:
                found[name] = None
            else:
                waiting.append(local)
    return tuple(found)


def _imported_names(file: Path, root: Path) -> Iterator[str]:
    try:
        tree = ast.parse(file.read_bytes(), filename=str(file))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return  # the run itself will say what is wrong with it
    for node in _in_source_order(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from _names_of_from(node, file, root)


def _in_source_order(tree: ast.Module) -> list[ast.Import | ast.ImportFrom]:
    nodes = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    return sorted(nodes, key=lambda node: (node.lineno, node.col_offset))


def _names_of_from(node: ast.ImportFrom, file: Path, root: Path) -> Iterator[str]:
    """The module itself, and for local packages the names too, since they may be modules."""
    module = _absolute_name(node, file, root)
    if module is None:
        return
    if module:
        yield module
    yield from (name for alias in node.names if _local_file(name := f"{module}.{alias.name}".strip("."), root))


def _absolute_name(node: ast.ImportFrom, file: Path, root: Path) -> str | None:
    """The full name that a relative import stands for; None if it leads out of the root."""
    if node.level == 0:
        return node.module or ""
    folder = file.parent
    for _ in range(node.level - 1):
        folder = folder.parent
    if not folder.is_relative_to(root):
        return None
    parts = [*folder.relative_to(root).parts, *([node.module] if node.module else [])]
    return ".".join(parts)


def _local_file(name: str, root: Path) -> Path | None:
    base = root.joinpath(*name.split("."))
    candidates = (base.with_name(base.name + ".py"), base / "__init__.py")
    return next((file for file in candidates if file.is_file()), None)
