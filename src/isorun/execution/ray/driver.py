"""The process that speaks to Ray: `python -m isorun.execution.ray.driver`, with a socket to isorun as file 3.

It connects to a cluster, or starts one here, submits a task for every job, and passes on what comes of them. Nothing is
retried here: a run that Ray lost is told as lost, and isorun decides. What a task is given and gives back is JSON and
bytes. The two functions and the class at the end are what Ray takes to the nodes: they are pickled whole, because this
file is `__main__`, so that a node without isorun, or with another, can say so.
"""

from __future__ import annotations

import functools
import json
import os
import queue
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import isorun
from isorun.execution import keeper
from isorun.execution.ray.frames import Frames
from isorun.execution.ray.nearby import cluster_here, token_variables

_PULSE_SECONDS: Final = 2.0
_LISTEN_SECONDS: Final = 0.5
_ANSWER_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 45.0
_MOST_LOOKS: Final = 64
# How long after a run was asked to stop its task may take beyond the run's own grace before its worker is killed.
_FORCE_SECONDS: Final = 10.0
_STORE_BYTES: Final = 80 << 20
_TCP_SECONDS: Final = 5.0
_CLIENT: Final = "ray://"
_LOCAL: Final = "local"
_NODE_LABEL: Final = "ray.io/node-id"


@dataclass(slots=True)
class _Sent:
    """A task in flight. force_at: when its worker is killed, if it was asked to stop."""

    reference: Any
    since: float = field(default_factory=time.monotonic)
    stopped: bool = False
    force_at: float | None = None


class _Driver:
    """One connection to one cluster."""

    def __init__(self, frames: Frames, asked: Mapping[str, Any]) -> None:
        self._frames, self._asked = frames, asked
        self._news: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._sent: dict[str, _Sent] = {}
        self._kinds: dict[tuple[float, float, float, tuple[str, ...]], Any] = {}
        self._board: Any = None
        self._board_name = asked["board"]
        self._leaving = False

    def connect(self) -> None:
        """Join the cluster that was asked for, or start one here; say what it is."""
        address = self._asked["address"]
        if address == _LOCAL:  # Ray reads these when it is loaded, and hands them to all that it starts
            os.environ.update(token_variables(Path(self._asked["temporary"])))
        import ray  # noqa: PLC0415  it takes a second, and not before there is somebody to speak to

        self._ray = ray
        options: dict[str, Any] = {"address": address, "namespace": self._board_name, "log_to_driver": False}
        if not address.startswith(_CLIENT):
            options["configure_logging"] = False
        if address == _LOCAL:
            options |= {
                "num_cpus": len(os.sched_getaffinity(0)),
                "object_store_memory": _STORE_BYTES,
                "include_dashboard": False,
                "_node_ip_address": "127.0.0.1",
                # Ray opens its folder to everybody; the one around it is this user's alone.
                "_temp_dir": str(Path(self._asked["temporary"]) / "r"),
            }
        ray.init(**options)
        self._frames.send({"say": "connected", "address": address, "ray": ray.__version__, **self._cluster()})

    def work(self) -> None:
        """Do what isorun asks for and hear what comes of it, until it asks to leave or has gone."""
        for target in (self._read_orders, self._feel_pulse, self._listen):
            threading.Thread(target=target, daemon=True).start()
        while not self._leaving:
            with suppress(queue.Empty):
                self._news.get(timeout=_LISTEN_SECONDS)()
            self._force_late()
        self._ray.shutdown()

    def _read_orders(self) -> None:
        while order := self._frames.receive():
            self._news.put(functools.partial(self._follow, *order))
        os._exit(0)  # isorun has gone, or is done with us

    def _follow(self, order: Mapping[str, Any], body: bytes) -> None:
        match order["do"]:
            case "submit":
                self._submit(order["run_id"], order["needs"], order["without"], body.decode())
            case "stop":
                self._stop(order["run_id"])
            case "look":
                threading.Thread(target=self._look, args=(order,), daemon=True).start()
            case "leave":
                self._leaving = True

    def _submit(self, run_id: str, needs: Mapping[str, float], without: Sequence[str], errand: str) -> None:
        """Hand a job to Ray. The errand is JSON that nobody on the way to the node reads."""
        key = (needs["cpus"], needs["gpus"], needs["memory"], tuple(without))
        if key not in self._kinds:
            asked = {"num_cpus": needs["cpus"], "num_gpus": needs["gpus"], "memory": needs["memory"] or None}
            if without:
                asked["scheduling_strategy"] = _anywhere_but(without)
            task = self._ray.remote(isorun_run)
            self._kinds[key] = task.options(name="isorun run", max_retries=0, **asked)
        try:
            reference = self._kinds[key].remote(errand, isorun.__version__)
        except Exception as error:
            self._lost(run_id, error)
            return
        self._sent[run_id] = _Sent(reference)
        reference.future().add_done_callback(
            lambda done: self._news.put(lambda: self._hear_end(run_id, reference, done))
        )

    def _hear_end(self, run_id: str, reference: Any, done: Any) -> None:
        sent = self._sent.get(run_id)
        if sent is None or sent.reference is not reference:
            return
        del self._sent[run_id]
        try:
            said, record, files = done.result()
        except BaseException as error:
            if sent.stopped:
                self._frames.send({"say": "stopped", "run_id": run_id})
            else:
                self._lost(run_id, error)
            return
        message = {"say": "answer", "run_id": run_id, "answer": said, "record": len(record)}
        sizes = [(name, len(content)) for name, content in files.items()]
        self._frames.send({**message, "files": sizes}, b"".join((record, *files.values())))

    def _lost(self, run_id: str, error: BaseException) -> None:
        from ray import exceptions  # noqa: PLC0415  as above

        never = (exceptions.RayTaskError, exceptions.RuntimeEnvSetupError, exceptions.TaskUnschedulableError)
        node = isinstance(error, exceptions.NodeDiedError | exceptions.LocalRayletDiedError)
        kind = "failed" if isinstance(error, never) else "lost"
        self._frames.send({"say": kind, "run_id": run_id, "reason": _in_words(error), "node": node})

    def _stop(self, run_id: str) -> None:
        sent = self._sent.get(run_id)
        if sent is None or sent.stopped:
            return
        sent.stopped = True
        sent.force_at = time.monotonic() + self._asked["grace"] + _FORCE_SECONDS
        with suppress(Exception):
            self._ray.cancel(sent.reference, force=False)

    def _force_late(self) -> None:
        now = time.monotonic()
        for sent in self._sent.values():
            if sent.force_at is not None and now >= sent.force_at:
                sent.force_at = now + _FORCE_SECONDS
                with suppress(Exception):
                    self._ray.cancel(sent.reference, force=True)

    def _feel_pulse(self) -> None:
        """Tell what the cluster is, again and again: nodes come and go, and whoever hears nothing for long gives up."""
        while True:
            time.sleep(_PULSE_SECONDS)
            with suppress(Exception):
                self._frames.send({"say": "cluster", **self._cluster()})

    def _cluster(self) -> dict[str, Any]:
        nodes = [
            {"id": node["NodeID"], "host": node.get("NodeManagerHostname", ""), "has": _counted(node["Resources"])}
            for node in self._ray.nodes()
            if node["Alive"]
        ]
        return {"nodes": nodes, "to_come": self._to_come()}

    def _to_come(self) -> list[dict[str, float]]:
        """What nodes an autoscaler may still start have; empty where there is none."""
        if self._asked["address"].startswith(_CLIENT):
            return []
        with suppress(Exception):  # no public name says it, and without it only what is there counts
            config = self._ray._private.state.state.get_cluster_config()  # noqa: SLF001
            groups = config.node_group_configs if config is not None else ()
            return [_counted(group.resources) for group in groups if group.max_count != 0]
        return []

    def _listen(self) -> None:
        """Fetch what runs told, where some last long enough to tell anything; short ones tell it with their end."""
        while True:
            time.sleep(_LISTEN_SECONDS)
            since = [sent.since for sent in tuple(self._sent.values())]
            if not since or time.monotonic() - min(since) < _LISTEN_SECONDS:
                continue
            with suppress(Exception):
                self._board = self._board or self._new_board()
                for text in self._ray.get(self._board.taken.remote(), timeout=_ANSWER_SECONDS):
                    self._frames.send({"say": "event", "event": json.loads(text)})

    def _new_board(self) -> Any:
        board = self._ray.remote(IsorunBoard)
        return board.options(name=self._board_name, num_cpus=0, max_restarts=-1).remote()

    def _look(self, order: Mapping[str, Any]) -> None:
        """Ask every node on which runs may come whether they could begin there; those that are silent are left out."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy  # noqa: PLC0415  as above

        refusal: Mapping[str, str] | None = None
        with suppress(Exception):
            task = self._ray.remote(isorun_look)
            there = [node["id"] for node in self._cluster()["nodes"] if node["has"].get("CPU", 0.0) >= 1]
            looks = [
                task.options(
                    name="isorun look",
                    num_cpus=0,
                    max_retries=0,
                    scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
                ).remote(json.dumps(order["asked"]), isorun.__version__)
                for node in there[:_MOST_LOOKS]
            ]
            until = time.monotonic() + _LOOK_SECONDS
            while looks and refusal is None:
                done, looks = self._ray.wait(looks, timeout=max(until - time.monotonic(), 0.0))
                if not done:
                    break
                with suppress(Exception):
                    refusal = json.loads(self._ray.get(done[0]) or "null")
        self._frames.send({"say": "looked", "number": order["number"], "refusal": refusal})


def _counted(resources: Mapping[str, float]) -> dict[str, float]:
    return {name: float(resources[name]) for name in ("CPU", "GPU", "memory") if name in resources}


def _anywhere_but(nodes: Sequence[str]) -> Any:
    from ray.util.scheduling_strategies import NodeLabelSchedulingStrategy, NotIn  # noqa: PLC0415  as above

    return NodeLabelSchedulingStrategy(hard={_NODE_LABEL: NotIn(*nodes)})


def _in_words(error: BaseException) -> str:
    """The first words of what Ray says: the rest of it is about its own parts."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else 'no words'}"[:400]


def _address(asked: str) -> str:
    """The cluster that is meant: as said, else by RAY_ADDRESS, else this user's on this machine, else a new one."""
    asked = asked or os.environ.get("RAY_ADDRESS", "")
    if asked and asked != "auto":
        return asked
    found = cluster_here()
    if found and _answers(found):
        return found
    if asked:
        raise ConnectionError("no cluster of Ray that is this user's runs on this machine")
    return _LOCAL


def _answers(address: str) -> bool:
    host, _, port = address.removeprefix(_CLIENT).rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_TCP_SECONDS):
            return True
    except (OSError, ValueError):
        return False


def _wait_for(address: str, patience: float) -> None:
    """Return when somebody answers at the address; ConnectionError when nobody does for so long."""
    until = time.monotonic() + patience
    while address != _LOCAL and not _answers(address):
        if time.monotonic() >= until:
            raise ConnectionError(f"nobody answers at {address}")
        time.sleep(_LISTEN_SECONDS)


def isorun_run(text: str, version: str) -> tuple[str, bytes, dict[str, bytes]]:
    """What Ray runs on a node: one job. This much of isorun goes with it, the rest is there."""
    import json  # noqa: PLC0415  what goes to a node brings its imports along
    import socket  # noqa: PLC0415
    import sys  # noqa: PLC0415

    import ray  # noqa: PLC0415

    node = ray.get_runtime_context().get_node_id()
    try:
        from isorun import __version__ as there  # noqa: PLC0415

        if there == version:
            from isorun.execution.ray.node import serve  # noqa: PLC0415

            return serve(text, node)
        found = f"isorun {there}"
    except ImportError as error:
        found = f"{type(error).__name__}: {error}"
    parts = {
        "what": f"the node {socket.gethostname()} of the Ray cluster has no isorun {version}",
        "found": f"{found}, in {sys.executable}",
        "allowed": f"isorun {version}, as here",
        "hint": f"{sys.executable} -m pip install isorun=={version}, on that node",
    }
    return json.dumps({"refused": parts, "node": node}), b"", {}


def isorun_look(text: str, version: str) -> str:
    """What Ray runs on a node before the first run: whether runs could begin there."""
    import json  # noqa: PLC0415  as above

    try:
        from isorun import __version__ as there  # noqa: PLC0415

        if there == version:
            from isorun.execution.ray.node import look_around  # noqa: PLC0415

            return look_around(text)
    except ImportError:
        there = ""
    return json.dumps(json.loads(isorun_run(text, version)[0])["refused"])


class IsorunBoard:
    """What runs tell while they last, until somebody takes it."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def put(self, texts: list[str]) -> None:
        """Put something up. What nobody takes is not kept for ever."""
        self._texts = (self._texts + texts)[-10_000:]

    def taken(self) -> list[str]:
        """What was put up since the last time."""
        texts, self._texts = self._texts, []
        return texts


def _refusal(error: BaseException, address: str) -> dict[str, str]:
    """Why there is no cluster, in words that say what to do."""
    said = " ".join(str(error).split())
    parts = {"what": f"the Ray cluster at {address} cannot be used", "found": said[:600], "allowed": "", "hint": ""}
    if "ersion mismatch" in said:
        parts["what"] = f"the Ray cluster at {address} has another version of Ray or Python than this isorun"
        parts["hint"] = (
            "install that version of Ray beside isorun: pip install 'ray==…', in an environment of its Python"
        )
    elif type(error).__name__ == "AuthenticationError" or "AuthenticationError" in said:
        parts["hint"] = "RAY_AUTH_TOKEN_PATH names the file with the cluster's token: ray get-auth-token shows it there"
    elif isinstance(error, ImportError):
        parts["hint"] = "pip install 'ray[client]'"
    elif not _answers(address) and address != _LOCAL:
        parts["what"] = f"no Ray cluster answers at {address}"
        parts["found"] = "" if isinstance(error, ConnectionError) else said[:200]
        parts["hint"] = (
            "ray start --head starts one; without RAY_ADDRESS isorun starts one here for the time of its runs"
        )
    elif isinstance(error, RuntimeError | ConnectionError):
        parts["hint"] = (
            f"is this machine a node of it? ray start --address {address} makes it one; from outside of the cluster: "
            "--executor ray://HEAD:10001"
        )
    return parts


def main() -> None:
    """Connect as isorun asks for it, and work until it is over."""
    frames = Frames(socket.socket(fileno=keeper.PASSED_SOCKET))
    first = frames.receive()
    if first is None:
        return
    asked = dict(first[0])
    try:
        asked["address"] = _address(asked["address"])
        _wait_for(asked["address"], asked["patience"])
        driver = _Driver(frames, asked)
        driver.connect()
    except BaseException as error:
        frames.send({"say": "refused", "refusal": _refusal(error, asked["address"] or "auto")})
        return
    driver.work()


if __name__ == "__main__":
    main()
