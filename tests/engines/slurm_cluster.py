"""A SLURM cluster of the tests' own: a controller and two nodes on this machine, in a folder, killed and started again.

It needs Debian's slurmctld and slurmd and works for any user, root included, without munge and without accounting.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

_CONF = """
ClusterName=isorun
SlurmctldHost=localhost
SlurmctldPort={ports[0]}
AuthType=auth/none
CredType=cred/none
AuthInfo=cred_expire=5
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/run/ctld.pid
SlurmdPidFile={folder}/run/%n.pid
SlurmctldLogFile={folder}/log/ctld.log
SlurmdLogFile={folder}/log/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=1,batch_sched_delay=0
MaxArraySize={array}
MinJobAge=300
SlurmdTimeout=4
BatchStartTimeout=10
KillWait={kill_wait}
CompleteWait=0
MessageTimeout=3
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
GresTypes=gpu
NodeName=n[1-2] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{ports[1]}-{ports[2]}] CPUs=4 RealMemory=4000 Gres=gpu:2
PartitionName=low Nodes=ALL Default=YES PriorityTier=1 GraceTime=5 MaxTime=60
PartitionName=high Nodes=ALL PriorityTier=10 PreemptMode=OFF MaxTime=60
PartitionName=one Nodes=n1 PriorityTier=1 MaxTime=60
"""
_READY_SECONDS = 30.0


def needed() -> None:
    """Skip the test where there is no SLURM."""
    if not all(map(shutil.which, ("slurmctld", "slurmd", "sbatch"))):
        pytest.skip("needs SLURM: apt-get install slurmctld slurmd slurm-client")


def _ports() -> tuple[int, int, int]:
    """Three in a row that are free now."""
    for first in range(18000 + os.getpid() % 900 * 10, 40000, 10):
        probes = [socket.socket() for _ in range(3)]
        try:
            for number, probe in enumerate(probes):
                probe.bind(("127.0.0.1", first + number))
        except OSError:
            continue
        finally:
            for probe in probes:
                probe.close()
        return first, first + 1, first + 2
    raise RuntimeError("no ports are free")


class Cluster:
    """The daemons, and SLURM's commands as a user types them. variables: what makes commands find this cluster."""

    def __init__(self, *, array: int = 41, kill_wait: int = 8) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="isorun-slurm-"))
        self.variables = {"SLURM_CONF": str(self.folder / "slurm.conf")}
        for name in ("state", "run", "log"):
            (self.folder / name).mkdir()
        user, host = pwd.getpwuid(os.getuid()).pw_name, socket.gethostname().partition(".")[0]
        conf = _CONF.format(folder=self.folder, user=user, host=host, ports=_ports(), array=array, kill_wait=kill_wait)
        (self.folder / "slurm.conf").write_text(conf)
        for number in range(2):  # what SLURM lends is a file, and what is in it is nobody's concern
            (self.folder / f"gpu{number}").touch()
        (self.folder / "gres.conf").write_text(f"NodeName=n[1-2] Name=gpu File={self.folder}/gpu[0-1]\n")
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self.start("controller")
        for node in ("n1", "n2"):
            self.start(node)
        try:
            self.wait_until(self._is_idle, "the nodes are not idle")
        except BaseException:
            self.close()
            raise

    def start(self, name: str, *, without: Path | None = None) -> None:
        """Start a daemon: the controller or a node. without: a folder in whose place the node sees an empty one."""
        words = ["slurmctld", "-D"] if name == "controller" else ["slurmd", "-D", "-N", name]
        if without is not None:
            hides = 'mount -t tmpfs none "$0" && exec "$@"'
            words = ["unshare", "-m", "sh", "-c", hides, str(without), *words]
        with (self.folder / "log" / f"{name}.out").open("ab") as output:
            self._daemons[name] = subprocess.Popen(
                words, env={**os.environ, **self.variables}, stdout=output, stderr=output, start_new_session=True
            )

    def kill(self, name: str) -> None:
        """SIGKILL to a daemon alone: what it has started goes on."""
        daemon = self._daemons.pop(name)
        daemon.kill()
        daemon.wait()

    def stop(self, name: str) -> None:
        """Let a daemon end in its own way."""
        daemon = self._daemons.pop(name)
        daemon.terminate()
        daemon.wait(20)

    def freeze(self, name: str, *, thaw: bool = False) -> None:
        """SIGSTOP to a daemon: it is there and does not answer. thaw: SIGCONT."""
        self._daemons[name].send_signal(signal.SIGCONT if thaw else signal.SIGSTOP)

    def run(self, *words: str) -> str:
        """What a command of SLURM prints; empty where it fails."""
        done = subprocess.run(
            words, env={**os.environ, **self.variables}, capture_output=True, text=True, check=False, timeout=60
        )
        return done.stdout if done.returncode == 0 else ""

    def jobs(self) -> dict[str, str]:
        """The states of all jobs and elements that the controller knows, by their numbers."""
        rows = self.run("squeue", "-h", "-r", "-t", "all", "-o", "%i %T").split("\n")
        return dict(row.split(" ", 1) for row in rows if row)

    def wait_until(self, found, what: str, seconds: float = _READY_SECONDS) -> None:
        until = time.monotonic() + seconds
        while not found():
            assert time.monotonic() < until, f"{what}: {self.jobs()}, {self.run('sinfo', '-N')}"
            time.sleep(0.1)

    def recover(self) -> None:
        """All daemons there, no job left, and all nodes idle: for the next test."""
        for name in ("controller", "n1", "n2"):
            if name not in self._daemons or self._daemons[name].poll() is not None:
                self.start(name)
        self.wait_until(lambda: bool(self.run("scontrol", "ping")), "the controller does not answer")
        self.run("scancel", "-u", str(os.getuid()))
        self.resume()
        over = {"COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "PREEMPTED", "NODE_FAIL", "OUT_OF_MEMORY"}
        self.wait_until(lambda: set(self.jobs().values()) <= over, "jobs are left", 180)
        self.wait_until(self._is_idle, "nodes are not idle", 180)

    def resume(self) -> None:
        """What whoever runs a cluster does for it after a crash.

        A controller that was killed just after it had started a job may have forgotten that, starts it again, finds
        that wrong with the node, and drains it; and it knows only from nodes that register which jobs ended meanwhile.
        """
        self.run("scontrol", "reconfigure")
        self.run("scontrol", "update", "nodename=n1,n2", "state=resume")

    def knows_its_nodes(self) -> bool:
        """Whether the controller answers and has heard of every node since it was started."""
        states = self.run("sinfo", "-h", "-N", "-o", "%T").split()
        return bool(states) and not any(state.startswith("unk") for state in states)

    def _is_idle(self) -> bool:
        return set(self.run("sinfo", "-h", "-N", "-o", "%T").split()) == {"idle"}

    def close(self) -> None:
        """End all of it."""
        self.run("scancel", "-u", str(os.getuid()))
        for name in ("n1", "n2", "controller"):
            daemon = self._daemons.get(name)
            if daemon is not None and daemon.poll() is None:
                daemon.terminate()
                try:
                    daemon.wait(10)
                except subprocess.TimeoutExpired:
                    daemon.kill()
                    daemon.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
