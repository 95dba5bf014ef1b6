"""Clusters of Ray on this machine, each node a process group of its own, which can be killed as a machine would be."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from isorun.execution.keeper import processes

# A node that is silent for about two seconds has died; by default that takes fourteen.
QUICK = (
    '{"health_check_initial_delay_ms": 500, "health_check_period_ms": 300,'
    ' "health_check_failure_threshold": 4, "health_check_timeout_ms": 700}'
)


class Clusters:
    """A cluster whose head is at `address`. Nodes are added, killed, and started again."""

    def __init__(self, cpus=2):
        # The paths of Ray's sockets have to be short.
        self.folder = Path(tempfile.mkdtemp(prefix="ir-", dir="/tmp"))
        self.port = _free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.groups = []
        self.head = None
        self.start_head(cpus)

    def start_head(self, cpus=2):
        """Start the head, or start it again where it was."""
        words = ["--head", "--port", str(self.port), "--include-dashboard=false", f"--system-config={QUICK}"]
        self.head = self._start([*words, "--temp-dir", str(self.folder / "h")], cpus)
        self._wait_for_nodes()

    def add_node(self, cpus=2):
        """Start another node; what `kill` takes."""
        return self._start(["--address", self.address], cpus)

    def _start(self, words, cpus):
        log = (self.folder / f"node{len(self.groups)}.log").open("wb")
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats"]
        options = ["--node-ip-address", "127.0.0.1", "--num-cpus", str(cpus), "--object-store-memory", "83886080"]
        with log:
            node = subprocess.Popen(
                [*command, *options, *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, "RAY_AUTH_MODE": "disabled"},
            )
        self.groups.append(node)
        return node

    def _wait_for_nodes(self):
        until = time.monotonic() + 90
        while time.monotonic() < until:
            assert self.head.poll() is None, (self.folder / f"node{len(self.groups) - 1}.log").read_text()
            # The last of what is started is the raylet, which is ready when its socket is there.
            sockets = (self.folder / "h").glob("session_latest/sockets/raylet*")
            if _answers(self.port) and any(sockets) and _has_raylet(self.head.pid):
                return
            time.sleep(0.1)
        raise AssertionError("the head did not start")

    def kill(self, node):
        """As if the machine had lost power: everything of the node is killed at once."""
        for process in processes().values():
            if process.session == node.pid:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
        node.wait()

    def close(self):
        """End all nodes."""
        for node in self.groups:
            self.kill(node)
        shutil.rmtree(self.folder, ignore_errors=True)


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _answers(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _has_raylet(session):
    return any(process.session == session and process.name == "raylet" for process in processes().values())
