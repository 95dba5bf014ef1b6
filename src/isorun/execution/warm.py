"""Warm launching: from which server a run is forked, and the servers that are there."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from isorun.errors import ExecutionError
from isorun.execution.preload import modules_to_preload
from isorun.execution.process import Keepers
from isorun.execution.warmserver import ServerKey, WarmRun, WarmServer
from isorun.study import FUNCTION
from isorun.worker.forkserver import Launch
from isorun.worker.levels import PER_RUN_VARIABLES
from isorun.worker.programs import MODULE, SCRIPT, Program

if TYPE_CHECKING:
    from isorun.execution.launching import ReadyRun

__all__ = ["WarmServers"]

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
            working_folder=ready.job.working_folder,
        )

    def _preload(self, ready: ReadyRun) -> tuple[str, ...]:
        if ready.job.environment.preload is not None:
            return ready.job.environment.preload
        assert ready.python_program is not None
        script = _script(ready.python_program, ready.job.working_folder)
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
