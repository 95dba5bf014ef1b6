"""Ray: every run is a task of a Ray cluster, or of one that is started on this machine for the time of the runs.

    isorun run study.toml --executor ray                  RAY_ADDRESS, else one's own on this machine, else a new one
    isorun run study.toml --executor ray:HEAD:6379        the cluster whose head is there; this machine is a node of it
    isorun run study.toml --executor ray://HEAD:10001     from outside of a cluster, through its Ray Client server

The executor keeps the jobs and never loads Ray: that is done by the driver, a process of its own (`link.py`,
`driver.py`), which may die with the cluster's head. Then all runs that it had in flight are lost runs, and another
driver is started. On the nodes `node.py` carries out one job a task.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from isorun.errors import ExecutionError, IsorunError
from isorun.execution import (
    AbstractExecutor,
    Event,
    ExecutorFailed,
    Job,
    Preparing,
    RunEnded,
    RunStarted,
    Tell,
    event_from_json,
)
from isorun.execution.assemble import STOPPED, keep_record, lost_record
from isorun.execution.carrying import new_folder
from isorun.execution.process import GRACE_SECONDS
from isorun.execution.ray.cluster import Cluster, Needs
from isorun.execution.ray.link import Link
from isorun.execution.ray.refusals import Refusals
from isorun.execution.ray.settings import RaySettings
from isorun.study import Environment
from isorun.study.records import Note, RunRecord, RunState, open_envelope
from isorun.worker.runfolder import make_own_folder, open_own

__all__ = ["RayExecutor"]

_NAME: Final = "ray"
_CONNECT_SECONDS: Final = 120.0
_LOOK_SECONDS: Final = 60.0
_CLOSE_SECONDS: Final = 20.0
_LEAVE_SECONDS: Final = 5.0
_AGAIN_SECONDS: Final = 1.0


@dataclass(slots=True)
class _Open:
    """A job that has not ended. sent_at: when the driver that is there now got it. without: nodes it may not go to."""

    job: Job
    tell: Tell
    sent_at: float | None = None
    stopped: bool = False
    without: tuple[str, ...] = ()


class RayExecutor(AbstractExecutor):
    """Carries out jobs on a Ray cluster.

    runs: where the folders of runs lie here; a node that sees it writes there, from others they are brought back.
    jobs: runs at a time, as many as the cluster has room for if None. url: the cluster. settings: `gpus-per-run` for
    environments that do not say, `time` as a limit for studies that have none, `patience` for a head that has gone.
    """

    def __init__(
        self,
        runs: Path,
        jobs: int | None = None,
        *,
        launch: str = "auto",
        devices: str = "auto",
        url: str = "",
        settings: Mapping[str, str] | None = None,
        grace_seconds: float = GRACE_SECONDS,
    ) -> None:
        self._asked = RaySettings.of(url, settings or {}, devices)
        self._runs, self._jobs, self._launch, self._grace = runs.absolute(), jobs, launch, grace_seconds
        self._marker = f".shared-{secrets.token_hex(8)}"
        self._temporary: Path | None = None
        self._changed = threading.Condition(threading.RLock())
        self._open: dict[str, _Open] = {}
        self._cluster: Cluster | None = None
        self._connected = self._all_stopped = self._closed = self._told_of_cluster = False
        self._error: ExecutionError | None = None
        self._refusal: ExecutionError | None = None
        self._lost_at = 0.0
        self._least: Needs | None = None
        self._refusals = Refusals()
        self._looked: dict[int, Mapping[str, str] | None] = {}
        self._looks = 0
        self._links: list[Link] = []
        self._begin()

    def _begin(self) -> None:
        """Start a driver; a folder that nodes can tell from their own is marked for them."""
        self._runs.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            make_own_folder(self._runs)
        os.close(open_own(self._runs / self._marker, os.O_WRONLY | os.O_CREAT))
        self._temporary = self._temporary or Path(tempfile.mkdtemp(prefix="isorun-ray-"))
        with self._changed:
            left = self._lost_at + self._asked.patience - time.monotonic() if self._lost_at else 0.0
            address = self._cluster.address if self._cluster is not None else self._asked.address
            settings = {
                "address": address,
                "patience": max(left, 0.0),
                "board": self._board,
                "grace": self._grace,
                "temporary": str(self._temporary),
            }
            self._links.append(Link(settings, self._hear, self._hear_end_of_link))

    @property
    def _board(self) -> str:
        """What the actor is called that runs tell things to while they last."""
        return f"isorun-{self._marker}"

    @property
    def _link(self) -> Link:
        return self._links[-1]

    @property
    def capacity(self) -> int:  # type: ignore[override]
        """So many as were asked for; else those that fit, and as many that wait: Ray hands them out as others end."""
        with self._changed:
            if self._cluster is None or self._error is not None:
                self._wait_for_cluster()
            if not self._connected:
                return 0
            assert self._cluster is not None
            return self._jobs or 2 * max(self._cluster.room(self._least or Needs()), 1)

    def _wait_for_cluster(self) -> Cluster:
        with self._changed:
            self._changed.wait_for(lambda: self._cluster is not None or self._error is not None, _CONNECT_SECONDS)
            if self._error is not None:
                raise self._error
            if self._cluster is None:
                raise ExecutionError(
                    "Ray gave no answer",
                    found=f"{_CONNECT_SECONDS:.0f} s without a connection to {self._asked.address or 'a cluster'}",
                    hint="ray status --address HOST:PORT asks the cluster how it is",
                )
            return self._cluster

    def check(self, environment: Environment) -> None:
        """Refuse what no node of the cluster has, nor one that an autoscaler may start."""
        needs = Needs.of_environment(environment, self._asked.gpus)
        self._wait_for_cluster().check(needs)
        with self._changed:
            least = self._least or needs
            self._least = min(least, needs, key=lambda item: (item.gpus, item.cpus, item.memory))

    def check_command(self, command: Sequence[str], environment: Environment, working_folder: Path) -> None:
        """Refuse what cannot begin on one of the nodes: no working folder, no program, no isorun."""
        self._wait_for_cluster()
        declared = {"name": environment.name, **environment.to_json()}
        asked = {"command": list(command), "environment": declared, "working_folder": str(working_folder)}
        with self._changed:
            self._looks += 1
            number = self._looks
            self._link.send({"do": "look", "number": number, "asked": asked})
            self._changed.wait_for(lambda: number in self._looked, _LOOK_SECONDS)
            refusal = self._looked.get(number)
        if refusal is not None:
            raise ExecutionError(**refusal)

    def submit(self, job: Job, tell: Tell) -> None:
        """Hand the job to Ray; while there is no cluster it waits here."""
        limit = self._asked.time if job.time_limit_seconds is None else job.time_limit_seconds
        job = replace(job, executor=_NAME, time_limit_seconds=limit)
        with self._changed:
            self._open[job.run_id] = _Open(job, tell)
            if self._all_stopped or self._closed:
                self._end(job.run_id, lost_record(job, STOPPED, state=RunState.INTERRUPTED))
            elif self._error is not None:
                self._fail(job.run_id, self._error)
            elif self._connected:
                self._send(job.run_id)

    def _send(self, run_id: str) -> None:
        held = self._open[run_id]
        needs = self._needs_of(held.job)
        assert self._cluster is not None
        held.without = self._refusals.kept_out(self._cluster.with_room(needs))
        errand = {
            "job": held.job.to_json(),
            "runs": str(self._runs),
            "marker": self._marker,
            "board": self._board,
            "launch": self._launch,
            "grace": self._grace,
            "cpus": needs.cpus,
            "gpus": needs.gpus,
        }
        held.sent_at = time.monotonic()
        order = {"do": "submit", "run_id": run_id, "needs": needs.to_json(), "without": held.without}
        self._link.send(order, json.dumps(errand).encode())
        if not self._told_of_cluster:
            self._told_of_cluster = True
            held.tell(Preparing(run_id, str(self._cluster)))

    def _needs_of(self, job: Job) -> Needs:
        return Needs.of(job.resources, job.environment.switches.get("device", ""), self._asked.gpus)

    def stop(self, run_id: str | None = None) -> None:
        """End one run, or all and start no more; one that waits here has ended at once."""
        with self._changed:
            self._all_stopped = self._all_stopped or run_id is None
            for name in tuple(self._open) if run_id is None else (run_id,):
                held = self._open.get(name)
                if held is None:
                    continue
                held.stopped = True
                if held.sent_at is not None:
                    self._link.send({"do": "stop", "run_id": name})
                else:
                    self._end(name, lost_record(held.job, STOPPED, state=RunState.INTERRUPTED))

    def close(self) -> None:
        """End everything this executor started."""
        with self._changed:
            if self._closed:
                return
            self.stop()
            if self._connected:
                self._changed.wait_for(lambda: not self._open or not self._connected, _CLOSE_SECONDS)
            self._closed = True
            reason = "stopped with its executor, before Ray told its end"
            for run_id, held in tuple(self._open.items()):
                self._end(run_id, lost_record(held.job, reason, state=RunState.INTERRUPTED))
            is_local = self._cluster is not None and self._cluster.address == "local"
        if self._connected and not is_local:
            self._link.ask_to_end(_LEAVE_SECONDS)
        for link in self._links:
            link.close()
        with suppress(OSError):
            (self._runs / self._marker).unlink()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def _hear(self, message: dict[str, Any], body: bytes) -> None:
        """What the driver says, in its own thread."""
        with self._changed:
            if not self._closed:
                self._take(message, body)
            self._changed.notify_all()

    def _take(self, message: dict[str, Any], body: bytes) -> None:
        run_id = message.get("run_id", "")
        match message["say"]:
            case "connected":
                self._cluster = Cluster.from_json(message["address"], message["ray"], message)
                self._connected, self._lost_at, self._refusal = True, 0.0, None
                for waiting in tuple(self._open):
                    self._send(waiting)
            case "cluster" if self._cluster is not None:
                self._cluster = Cluster.from_json(self._cluster.address, self._cluster.version, message)
                self._take_back_stranded(self._cluster)
            case "refused":
                self._refusal = ExecutionError(**message["refusal"])
                if self._cluster is None:  # else it was there before, and may come back as long as there is patience
                    self._error = self._refusal
            case "looked":
                self._looked[message["number"]] = message["refusal"]
            case "event":
                self._pass_on(message["event"])
            case "answer" if run_id in self._open:
                self._hear_answer(run_id, message, body)
            case "stopped" if run_id in self._open:
                self._end(run_id, lost_record(self._open[run_id].job, STOPPED, state=RunState.INTERRUPTED))
            case "lost" if run_id in self._open:
                self._lose(run_id, f"Ray lost the run: {message['reason']}", with_its_place=message["node"])
            case "failed" if run_id in self._open:
                what = f"Ray cannot carry out the run {run_id}"
                self._refuse(run_id, "", ExecutionError(what, found=message["reason"]))

    def _pass_on(self, told: Mapping[str, Any]) -> None:
        held = self._open.get(told["run_id"])
        if held is not None:
            event = event_from_json(told, _no_record)
            self._refusals.some_run_began |= isinstance(event, RunStarted)
            held.tell(event)

    def _hear_answer(self, run_id: str, message: Mapping[str, Any], body: bytes) -> None:
        answer = json.loads(message["answer"])
        if "refused" in answer:
            self._refuse(run_id, answer["node"], ExecutionError(**answer["refused"]))
            return
        self._refusals.forget(answer["node"])
        for told in answer["events"]:
            self._pass_on(json.loads(told))
        try:
            record = open_envelope(body[: message["record"]]).record
            if not answer["ended"]:
                record = self._brought_back(record, message, body, answer["left"])
        except (ValueError, OSError) as error:
            self._lose(run_id, f"what came back from Ray cannot be read: {error}")
            return
        self._end(run_id, record)

    def _brought_back(
        self, record: RunRecord, message: Mapping[str, Any], body: bytes, left: Sequence[str]
    ) -> RunRecord:
        """The record of a run on a node that does not share its folder, whose files are put where they would lie."""
        folder, start = self._runs / record.run_id, message["record"]
        new_folder(folder)
        for name, size in message["files"]:
            _put(folder, name, body[start : start + size])
            start += size
        where, notes = dict(record.where), record.notes
        if left:
            shown = ", ".join(left[:3]) + (" …" if len(left) > 3 else "")
            place = f"{where.get('host', 'its node')}:{where.get('folder', '')}"
            notes = (*notes, Note("files-on-node", f"too large to bring back: {shown}; in {place}"))
        brought = replace(record, where={**where, "folder": str(folder)}, notes=notes)
        keep_record(brought, folder)
        return brought

    def _end(self, run_id: str, record: RunRecord) -> None:
        self._tell(run_id, RunEnded(run_id, record))

    def _lose(self, run_id: str, reason: str, *, with_its_place: bool = False) -> None:
        held = self._open[run_id]
        record = lost_record(held.job, reason, state=RunState.INTERRUPTED)
        self._tell(run_id, RunEnded(run_id, record, lost=not held.stopped, with_its_place=with_its_place))

    def _refuse(self, run_id: str, node: str, error: ExecutionError) -> None:
        """A node did not let the run begin: it is lost, unless no node is left on which another could."""
        held, needs = self._open[run_id], self._needs_of(self._open[run_id].job)
        self._refusals.note(node, held.sent_at or 0.0)
        if self._cluster is None or self._refusals.by_all(self._cluster.with_room(needs)):
            self._fail(run_id, error)
        else:
            self._lose(run_id, f"Ray lost the run: {error.what}" + (f" ({error.found})" if error.found else ""))

    def _take_back_stranded(self, cluster: Cluster) -> None:
        """Ray would keep a task for ever whose nodes have all gone but those that it may not go to."""
        for run_id, held in tuple(self._open.items()):
            there = cluster.with_room(self._needs_of(held.job)) if held.without else set()
            if there and there <= set(held.without):
                self._link.send({"do": "stop", "run_id": run_id})
                self._lose(run_id, "Ray lost the run: only nodes that refused runs are left")

    def _fail(self, run_id: str, error: IsorunError) -> None:
        self._tell(run_id, ExecutorFailed(error, run_id))

    def _tell(self, run_id: str, event: Event) -> None:
        self._open.pop(run_id).tell(event)
        self._changed.notify_all()

    def _hear_end_of_link(self, link: Link, tail: str) -> None:
        """The driver has ended. Its runs are lost, and where it was not asked to, another one takes over."""
        with self._changed:
            if self._closed or link is not self._link:
                return
            was_there = self._connected
            self._connected = False
            last = tail.strip().splitlines()[-1:] or ["it ended without a word"]
            for run_id, held in tuple(self._open.items()):
                if held.sent_at is not None:
                    reason = f"the connection to the Ray cluster was lost ({last[0][:200]})"
                    self._lose(run_id, reason, with_its_place=True)
            self._lost_at = self._lost_at or time.monotonic()
            again = time.monotonic() - self._lost_at < self._asked.patience and self._cluster is not None
            if not again:
                ended = ExecutionError("the process that speaks to Ray has ended", found=last[0])
                self._error = self._error or self._refusal or ended
            self._changed.notify_all()
            if self._error is not None:
                for run_id in tuple(self._open):
                    self._fail(run_id, self._error)
        if again:
            if not was_there:
                time.sleep(_AGAIN_SECONDS)
            with self._changed:
                if not self._closed:
                    self._begin()


def _no_record() -> RunRecord:
    raise ExecutionError("the end of a run was told without its record")


def _put(folder: Path, name: str, content: bytes) -> None:
    """Write a file of a run's folder, as nothing but a file in that folder."""
    parts = Path(name).parts
    if not parts or Path(name).is_absolute() or ".." in parts:
        raise ValueError(f"a file with the name {name!r}")
    path = folder.joinpath(*parts)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(open_own(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW), "wb") as file:
        file.write(content)
