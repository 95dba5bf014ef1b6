"""Two executors: one carries out every job in a process of its own, as another machine would; one tosses coins."""

import json
import random
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from isorun.errors import ExecutionError
from isorun.execution import (
    AbstractExecutor,
    ExecutorFailed,
    RunEnded,
    event_from_json,
    lost_record,
    read_record,
)
from isorun.study.records import RunState, Series
from isorun.testing.instant_executor import Computed, InstantExecutor


def open_apart(options):
    """The executor, with as many runs at a time as was asked for."""
    return Apart(options.runs, options.jobs)


class Apart(AbstractExecutor):
    """Starts `python -m isorun.execution.carrying` for each job, and hears its events from what it prints.

    SIGTERM asks a run to stop: `carrying` answers for all its processes, and has gone only when they have.
    """

    def __init__(self, runs, jobs=1):
        self.capacity = jobs
        self._runs = runs
        # What is started inherits the mask, and lifts it when it can hear: a signal that comes before is not lost.
        self._pool = ThreadPoolExecutor(jobs, initializer=signal.pthread_sigmask, initargs=_BLOCKED)
        self._lock = threading.Lock()
        self._processes = {}
        self._stopped = set()
        self._ended = False

    def submit(self, job, tell):
        """Carry the job out when there is room."""
        with self._lock:
            self._processes[job.run_id] = None
        self._pool.submit(self._carry_out, job, tell)

    def _carry_out(self, job, tell):
        try:
            last = self._last_event(job, tell)
        except (ExecutionError, OSError, ValueError) as error:
            last = RunEnded(job.run_id, lost_record(job, str(error)))
        with self._lock:
            del self._processes[job.run_id]
            self._stopped.discard(job.run_id)
        tell(last)

    def _last_event(self, job, tell):
        folder = self._runs / job.run_id
        process = self._started(job, folder)
        if process is None:
            return RunEnded(job.run_id, lost_record(job, "stopped on request", state=RunState.INTERRUPTED))
        with process:
            process.stdin.write(json.dumps(job.to_json()))
            process.stdin.close()
            last = None
            for line in process.stdout:
                event = event_from_json(json.loads(line), lambda: read_record(folder))
                if isinstance(event, (RunEnded, ExecutorFailed)):
                    last = event
                else:
                    tell(event)
        return last or RunEnded(job.run_id, lost_record(job, f"its process ended with {process.returncode}"))

    def _started(self, job, folder):
        command = [sys.executable, "-m", "isorun.execution.carrying", "-", str(folder)]
        with self._lock:
            if self._ended or job.run_id in self._stopped:
                return None
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self._processes[job.run_id] = process
            return process

    def stop(self, run_id=None):
        """Ask one run to stop, or all, and start no more."""
        with self._lock:
            self._ended = self._ended or run_id is None
            for name, process in self._processes.items():
                if run_id in (None, name):
                    self._stopped.add(name)
                    if process is not None:
                        process.terminate()

    def close(self):
        """Stop all, and wait until they have gone."""
        self.stop()
        self._pool.shutdown()


_BLOCKED = (signal.SIG_BLOCK, {signal.SIGTERM})


def open_coins(options):
    """What a run leaves is drawn from its seed, and nothing is trained."""
    return InstantExecutor(_toss, options.jobs)


def _toss(job):
    generator = random.Random(job.seed)
    tosses = [generator.random() for _ in range(3)]
    return Computed({"heads": tosses[-1]}, series={"heads": Series((1.0, 2.0, 3.0), (0.1, 0.2, 0.3), tuple(tosses))})
