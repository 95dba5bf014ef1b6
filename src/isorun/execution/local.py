"""The local executor: every run is a process of its own on this machine, pinned to its own CPUs."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from isorun.environments.interpreter import check_command
from isorun.errors import ExecutionError, IsorunError
from isorun.execution import AbstractExecutor, Event, ExecutorFailed, Job, RunEnded, Tell
from isorun.execution.carrying import Workbench, Workshop, carry_out, new_folder
from isorun.execution.process import GRACE_SECONDS
from isorun.execution.resources import Devices, Slots, StandardInput, check_memory
from isorun.study import Environment
from isorun.study.records import RunRecord

__all__ = ["LocalExecutor"]


class LocalExecutor(AbstractExecutor):
    """Carries out jobs on this machine.

    runs: where the folders of runs are made, or what says it of a job. jobs: how many runs at once; CPUs and devices
    are divided among them. devices: "auto", "none", or those that may be used ("0,1"). launch and grace_seconds: see
    `Workshop`. called: what records say of the executor; empty for `local`.
    """

    def __init__(
        self,
        runs: Path | Callable[[Job], Path],
        jobs: int = 1,
        *,
        launch: str = "auto",
        devices: str = "auto",
        standard_input: StandardInput | None = None,
        grace_seconds: float = GRACE_SECONDS,
        called: str = "",
    ) -> None:
        self.capacity = jobs
        self._runs = runs
        self._called = called
        self._slots = Slots(jobs)
        self._devices = Devices(devices, jobs)
        self._workshop = Workshop(launch=launch, standard_input=standard_input, grace_seconds=grace_seconds)
        # `concurrent.futures` has a pool, and takes as long to load as a run takes beside its training.
        self._waiting: deque[tuple[Job, Tell]] = deque()
        self._threads: set[threading.Thread] = set()
        self._open: set[str] = set()
        # A signal handler calls `stop` in the thread that may hold it just then.
        self._lock = threading.RLock()

    def check(self, environment: Environment) -> None:
        """Refuse what this machine does not have: CPUs, devices, memory."""
        self._slots.check(environment.threads)
        self._devices.check_environment(environment)
        check_memory(environment.memory_bytes)

    def check_command(self, command: Sequence[str], environment: Environment, working_folder: Path) -> None:
        """Refuse a program or a script that is not there."""
        check_command(command, environment, working_folder)

    def submit(self, job: Job, tell: Tell) -> None:
        """Run the job when a slot is free."""
        with self._lock:
            self._open.add(job.run_id)
            self._waiting.append((job, tell))
            if len(self._threads) < self.capacity:
                thread = threading.Thread(target=self._work, name="slot")
                self._threads.add(thread)
                thread.start()

    def _work(self) -> None:
        """Carry out jobs in the order they came, until none waits."""
        while True:
            with self._lock:
                if not self._waiting:
                    self._threads.discard(threading.current_thread())
                    return
                job, tell = self._waiting.popleft()
            self._execute(job, tell)

    def _execute(self, job: Job, tell: Tell) -> None:
        event: Event
        try:
            event = RunEnded(job.run_id, self._record(job, tell))
        except IsorunError as error:
            event = ExecutorFailed(error, job.run_id)
        except Exception as error:
            what = f"the run {job.run_id} could not be carried out"
            event = ExecutorFailed(ExecutionError(what, found=f"{type(error).__name__}: {error}"), job.run_id)
        with self._lock:
            self._open.discard(job.run_id)
            self._workshop.forget(job.run_id)
        tell(event)

    def _record(self, job: Job, tell: Tell) -> RunRecord:
        job = replace(job, executor=self._called)
        folder = (self._runs(job) if callable(self._runs) else self._runs) / job.run_id
        new_folder(folder)
        self._devices.check_device(job.environment.switches.get("device", ""))
        lent = self._devices.lend(job.resources.devices, job.environment.variables)
        with self._slots.lend(job.resources.cpus) as cpus, lent as devices:
            return carry_out(job, folder, Workbench(self._workshop, cpus, devices), tell)

    def stop(self, run_id: str | None = None) -> None:
        """End one run, or those in progress and start none any more."""
        with self._lock:
            if run_id is None or run_id in self._open:
                self._workshop.stop(run_id)

    def close(self) -> None:
        """End everything this executor started."""
        self._workshop.kill()
        with self._lock:
            threads = list(self._threads)
        for thread in threads:
            thread.join()
        self._workshop.close()
