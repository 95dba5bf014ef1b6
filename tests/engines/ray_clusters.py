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

# A node that has gone refuses connections, and has died after four of them; one that is slow has time.
QUICK = (
    '{"health_check_initial_delay_ms": 500, "health_check_period_ms": 300,'
    ' "health_check_failure_threshold": 4, "health_check_timeout_ms": 20000}'
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
        self.head = None
        self.head = self._started([*words, "--temp-dir", str(self.folder / "h")], cpus)

    def add_node(self, cpus=2):
        """Start another node; what `kill` takes."""
        return self._started(["--address", self.address], cpus)

    def _started(self, words, cpus):
        """Once more, and once more again, where Ray gave up waiting for its own parts, as it does on a busy machine."""
        for _ in range(2):
            try:
                return self._start(words, cpus)
            except AssertionError:
                self.kill(self.groups[-1])
        return self._start(words, cpus)

    def _start(self, words, cpus):
        log = self.folder / f"node{len(self.groups)}.log"
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats"]
        options = ["--node-ip-address", "127.0.0.1", "--num-cpus", str(cpus), "--object-store-memory", "83886080"]
        with log.open("wb") as output:
            node = subprocess.Popen(
                [*command, *options, *words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, "RAY_AUTH_MODE": "disabled"},
            )
        self.groups.append(node)
        self._wait_for(node, log)
        return node

    def _wait_for(self, node, log):
        """Nodes that start at the same time take each other's sockets, so one waits for the other."""
        until = time.monotonic() + 120
        while b"Ray runtime started" not in log.read_bytes():
            assert node.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.1)

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
