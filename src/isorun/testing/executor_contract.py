"""What every executor promises, as tests: subclass `ExecutorContract` and say how your executor is made."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from isorun.execution import AbstractExecutor, Event, ExecutorFailed, Job, Preparing, RunEnded, RunStarted
from isorun.execution.keeper import processes
from isorun.study.cells import Cell, Level
from isorun.study.records import RunRecord, RunState

__all__ = ["FAILS", "HANGS", "LOGS", "STUBBORN", "ExecutorContract", "carried_out", "execute", "job_for"]

LOGS: Final = "import isorun; isorun.log(epoch=1, acc=0.25); isorun.log(epoch=2, acc=0.5); isorun.result(test_acc=0.5)"
FAILS: Final = "raise ValueError('no data')"
HANGS: Final = """
import os, subprocess, sys, time
child = subprocess.Popen(["sleep", "30"], start_new_session=True)
with open(sys.argv[0] + ".new", "w") as file:
    file.write(f"{os.getpid()} {child.pid}")
os.rename(sys.argv[0] + ".new", sys.argv[0] + ".pids")
time.sleep(30)
"""
STUBBORN: Final = f"""
import signal, sys
signal.signal(signal.SIGTERM, lambda number, frame: open(sys.argv[0] + ".asked", "w").close())
{HANGS}
time.sleep(30)
"""


def job_for(script: str, folder: Path, number: int = 0, *, level: str = "default", seed: int = 1, **fields: Any) -> Job:
    """A job that runs the script, which is written into the folder; each number is another cell."""
    name = f"train{number}.py"
    (folder / name).write_text(script, encoding="utf-8")
    fixed = None if level == "default" else seed
    cell = Cell("a", ("python", name), "default", {}, "default", {}, Level(level), fixed, number)
    return Job(cell=cell, attempt=1, command=cell.command, working_folder=folder, seed=seed, **fields)


def carried_out(executor: AbstractExecutor, jobs: Sequence[Job], seconds: float = 120.0) -> list[Event]:
    """All events of the jobs, in the order in which they came; returns when each has ended, raises what prevents it."""
    events: list[Event] = []
    told: queue.Queue[Event] = queue.Queue()
    for job in jobs:
        executor.submit(job, told.put)
    open_runs = {job.run_id for job in jobs}
    while open_runs:
        events.append(event := told.get(timeout=seconds))
        if isinstance(event, ExecutorFailed):
            raise event.error
        if isinstance(event, RunEnded):
            open_runs.remove(event.run_id)
    return events


def execute(executor: AbstractExecutor, job: Job, seconds: float = 120.0) -> RunRecord:
    """The record of one job."""
    last = carried_out(executor, [job], seconds)[-1]
    assert isinstance(last, RunEnded)
    return last.record


def _end(told: queue.Queue[Event], seconds: float = 60.0) -> RunRecord:
    """The record of the only run that is told of."""
    while not isinstance(event := told.get(timeout=seconds), RunEnded):
        continue
    return event.record


def _until(found: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < until, what
        time.sleep(0.02)


def _alive(pids: Iterable[int]) -> list[str]:
    running = processes()
    return [running[pid].name for pid in pids if pid in running]


class ExecutorContract:
    """The promises of `AbstractExecutor`. The trainings are the four scripts above.

    processes_here: whether the trainings are processes that can be seen from here; False where they run on other
    machines, or nowhere. tells_rows: False where rows come with the record only, which the base allows; then nothing
    that `isorun status` shows and no agenda that stops runs works with it. Say in a comment why.
    """

    processes_here = True
    tells_rows = True

    def make_executor(self, runs: Path) -> AbstractExecutor:
        """An executor of the kind, whose run folders lie in `runs`. Subclasses say how."""
        raise NotImplementedError

    @pytest.fixture
    def executor(self, tmp_path: Path) -> Iterator[AbstractExecutor]:
        """One executor for one test."""
        made = self.make_executor(tmp_path / "runs")
        yield made
        made.close()

    def test_a_run_that_ends_well_is_finished_and_has_what_it_logged(
        self, executor: AbstractExecutor, tmp_path: Path
    ) -> None:
        job = job_for(LOGS, tmp_path, level="fixed-seed", seed=5)
        record = execute(executor, job)
        assert (record.state, record.exit_code, record.reason) == (RunState.FINISHED, 0, "")
        assert record.results == {"test_acc": 0.5}
        assert list(record.series["acc"].values) == [0.25, 0.5]
        assert list(record.series["acc"].steps) == [1.0, 2.0]
        assert record.origins == {"acc": "log", "test_acc": "log"}
        assert (record.cell, record.attempt, record.seed_used) == (job.cell, 1, 5)

    def test_a_run_that_fails_is_a_record_with_its_reason_and_log(
        self, executor: AbstractExecutor, tmp_path: Path
    ) -> None:
        record = execute(executor, job_for(FAILS, tmp_path))
        assert (record.state, record.exit_code) == (RunState.FAILED, 1)
        assert record.reason == "exit code 1: ValueError: no data"
        assert record.log_tail.endswith("ValueError: no data")

    def test_a_run_at_its_time_limit_is_timed_out(self, executor: AbstractExecutor, tmp_path: Path) -> None:
        record = execute(executor, job_for(HANGS, tmp_path, time_limit_seconds=0.3))
        assert record.state is RunState.TIMED_OUT
        assert record.exit_code is None
        assert record.reason == "still running after the time limit of 0.3 s"
        assert record.wall_seconds < 10

    def test_every_job_has_one_end_and_nothing_comes_after_it(self, executor: AbstractExecutor, tmp_path: Path) -> None:
        jobs = [job_for(LOGS, tmp_path, number) for number in range(3)]
        events = carried_out(executor, jobs)
        for job in jobs:
            told = [event for event in events if not isinstance(event, Preparing)]
            kinds = [type(event) for event in told if getattr(event, "run_id", "") == job.run_id]
            assert kinds.count(RunEnded) == 1
            assert kinds[-1] is RunEnded
            assert RunStarted not in kinds[1:]

    def test_more_jobs_than_it_has_room_for_wait_and_all_end(self, executor: AbstractExecutor, tmp_path: Path) -> None:
        jobs = [job_for(LOGS, tmp_path, number) for number in range(executor.capacity + 2)]
        ended = [event.record for event in carried_out(executor, jobs) if isinstance(event, RunEnded)]
        assert {record.run_id for record in ended} == {job.run_id for job in jobs}
        assert all(record.state is RunState.FINISHED for record in ended)

    def test_after_stop_no_run_is_finished(self, executor: AbstractExecutor, tmp_path: Path) -> None:
        executor.stop()
        record = execute(executor, job_for(LOGS, tmp_path))
        assert record.state is RunState.INTERRUPTED
        assert record.results == {}

    def test_one_run_can_be_stopped_and_the_others_go_on(self, executor: AbstractExecutor, tmp_path: Path) -> None:
        stopped, other = job_for(HANGS, tmp_path, 0), job_for(LOGS, tmp_path, 1)
        told: queue.Queue[Event] = queue.Queue()
        executor.stop(other.run_id)  # not known yet: nothing
        for job in (stopped, other):
            executor.submit(job, told.put)
        executor.stop(stopped.run_id)
        ended: dict[str, RunState] = {}
        until = time.monotonic() + 20
        while len(ended) < 2:
            event = told.get(timeout=until - time.monotonic())
            if isinstance(event, RunEnded):
                ended[event.run_id] = event.record.state
        assert ended == {stopped.run_id: RunState.INTERRUPTED, other.run_id: RunState.FINISHED}

    def test_the_id_of_a_run_that_was_stopped_can_be_submitted_again(
        self, executor: AbstractExecutor, tmp_path: Path
    ) -> None:
        told: queue.Queue[Event] = queue.Queue()
        executor.submit(hangs := job_for(HANGS, tmp_path), told.put)
        executor.stop(hangs.run_id)
        _end(told)
        again = job_for(LOGS, tmp_path)
        assert again.run_id == hangs.run_id
        assert execute(executor, again).state is RunState.FINISHED

    def test_closing_ends_every_open_job_and_tells_it_before_it_returns(
        self, executor: AbstractExecutor, tmp_path: Path
    ) -> None:
        jobs = [job_for(HANGS, tmp_path, number) for number in range(executor.capacity + 2)]
        told: queue.Queue[Event] = queue.Queue()
        for job in jobs:
            executor.submit(job, told.put)
        executor.close()
        events = [told.get_nowait() for _ in range(told.qsize())]
        states = {event.run_id: event.record.state for event in events if isinstance(event, RunEnded)}
        assert states == {job.run_id: RunState.INTERRUPTED for job in jobs}
        assert sum(isinstance(event, RunEnded) for event in events) == len(jobs)

    @pytest.mark.parametrize("how", ["stop one", "stop all", "close"])
    def test_what_was_ended_has_gone_with_all_its_children_when_its_end_is_told(
        self, executor: AbstractExecutor, tmp_path: Path, how: str
    ) -> None:
        told: queue.Queue[Event] = queue.Queue()
        pids = self.hanging(executor, job := job_for(HANGS, tmp_path), told)
        if how == "close":
            executor.close()
        else:
            executor.stop(job.run_id if how == "stop one" else None)
        record = _end(told)
        assert _alive(pids) == []
        assert record.state is RunState.INTERRUPTED

    def test_a_run_that_is_stopped_is_asked_first_and_then_killed(
        self, executor: AbstractExecutor, tmp_path: Path
    ) -> None:
        told: queue.Queue[Event] = queue.Queue()
        pids = self.hanging(executor, job := job_for(STUBBORN, tmp_path), told)
        executor.stop(job.run_id)
        assert _end(told).state is RunState.INTERRUPTED
        assert _alive(pids) == []
        assert (tmp_path / "train0.py.asked").is_file(), "it was killed and not asked"

    def hanging(self, executor: AbstractExecutor, job: Job, told: queue.Queue[Event]) -> list[int]:
        """The processes of the job when all of them are there; the test is skipped where nobody can see them."""
        if not self.processes_here:
            pytest.skip("no process of this executor can be seen from here")
        executor.submit(job, told.put)
        written = job.working_folder / f"{job.command[1]}.pids"
        _until(written.is_file, "the training did not start")
        pids = [int(pid) for pid in written.read_text(encoding="utf-8").split()]
        assert len(_alive(pids)) == len(pids) == 2
        return pids

    def test_nothing_is_told_after_closing_returned(self, executor: AbstractExecutor, tmp_path: Path) -> None:
        told: queue.Queue[Event] = queue.Queue()
        for number in range(2):
            executor.submit(job_for(LOGS, tmp_path, number), told.put)
        executor.close()
        heard = told.qsize()
        time.sleep(0.5)
        assert told.qsize() == heard

    def test_what_a_training_logs_is_told_while_it_runs(self, executor: AbstractExecutor, tmp_path: Path) -> None:
        if not self.tells_rows:
            pytest.skip("this executor tells no rows")
        told: queue.Queue[Event] = queue.Queue()
        executor.submit(job := job_for(f"{LOGS}\n{HANGS}", tmp_path), told.put)
        rows: list[Any] = []
        while len(rows) < 2:
            event = told.get(timeout=60)
            assert not isinstance(event, RunEnded), "the run ended before its rows were told"
            rows += [(row["step"], row["values"]) for row in getattr(event, "rows", ())]
        executor.stop(job.run_id)
        _end(told)
        assert rows == [(1, {"acc": 0.25}), (2, {"acc": 0.5})]

    def test_every_record_survives_its_way_through_json(self, executor: AbstractExecutor, tmp_path: Path) -> None:
        for number, script in enumerate((LOGS, FAILS)):
            record = execute(executor, job_for(script, tmp_path, number))
            assert RunRecord.from_json(record.to_json()) == record

    def test_submitting_returns_at_once(self, executor: AbstractExecutor, tmp_path: Path) -> None:
        told: queue.Queue[Event] = queue.Queue()
        job = job_for(HANGS, tmp_path, time_limit_seconds=1.0)
        began = time.monotonic()
        executor.submit(job, told.put)
        assert time.monotonic() - began < 0.9
        _end(told)

    def test_closing_twice_is_fine(self, executor: AbstractExecutor) -> None:
        executor.close()
        executor.close()
