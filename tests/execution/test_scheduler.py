"""The scheduler: every cell once, failures by policy, work shared with others, a clean stop."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from isorun.errors import StoreError
from isorun.execution.base import AbstractExecutor, Job, RunEnded
from isorun.execution.scheduler import Observer, Scheduler
from isorun.study.cells import Cell
from isorun.study.levels import Level
from isorun.study.parts import Policy
from isorun.study.records import RunRecord, RunState


def cells(number):
    return [Cell("a", ("true",), "default", {}, "default", {}, Level.DEFAULT, None, repeat) for repeat in range(number)]


def finished(_job):
    return RunState.FINISHED


def failed(_job):
    return RunState.FAILED


def record_of(job, state=RunState.FINISHED):
    return RunRecord(job.cell, job.attempt, state, 0, "", "", "instant", 1, "t", 0.0, 0.0, 0)


class StubExecutor(AbstractExecutor):
    """Answers with the states a test asks for."""

    def __init__(self, jobs=1, state_of=finished, seconds=0.0):
        self.capacity = jobs
        self.pool = ThreadPoolExecutor(jobs)
        self.state_of = state_of
        self.seconds = seconds
        self.stopped = threading.Event()
        self.executed = []
        self.at_once = self.most_at_once = 0
        self.lock = threading.Lock()

    def submit(self, job, tell):
        self.pool.submit(lambda: tell(RunEnded(job.run_id, self.execute(job))))

    def execute(self, job):
        with self.lock:
            self.executed.append(job.cell.id)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        interrupted = self.stopped.wait(self.seconds)
        with self.lock:
            self.at_once -= 1
        return record_of(job, RunState.INTERRUPTED if interrupted else self.state_of(job))

    def stop(self, run_id=None):
        self.stopped.set()

    def close(self):
        self.stop()


@dataclass
class StubTicket:
    desk: "StubDesk"
    cell: Cell
    attempt: int

    def release(self):
        self.desk.held.discard(self.cell.id)


@dataclass
class StubDesk:
    """A store for tests: claims and records in memory."""

    kept: list = field(default_factory=list)
    held: set = field(default_factory=set)
    done: set = field(default_factory=set)
    attempts: dict = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def claim(self, cell):
        with self.lock:
            if cell.id in self.held or cell.id in self.done:
                return None
            self.held.add(cell.id)
            self.attempts[cell.id] = self.attempts.get(cell.id, 0) + 1
            return StubTicket(self, cell, self.attempts[cell.id])

    def is_done(self, cell):
        return cell.id in self.done

    def job(self, cell, ticket):
        return Job(cell, ticket.attempt, cell.command, Path(), 1)

    def keep(self, record):
        with self.lock:
            self.kept.append(record)
            if record.state is RunState.FINISHED:
                self.done.add(record.cell.id)


def carry_out(number=5, executor=None, desk=None, policy=None, observer=None):
    executor, desk = executor or StubExecutor(), desk or StubDesk()
    scheduler = Scheduler(executor, desk, policy or Policy(), observer or Observer())
    return scheduler.carry_out(cells(number)), executor, desk


def test_every_cell_is_carried_out_once_and_kept():
    outcome, executor, desk = carry_out(20, StubExecutor(jobs=4))
    assert sorted(executor.executed) == sorted(cell.id for cell in cells(20))
    assert len(desk.kept) == len(outcome.records) == outcome.count(RunState.FINISHED) == 20
    assert not desk.held


def test_as_many_runs_at_once_as_there_are_slots_and_no_more():
    _, executor, _ = carry_out(12, StubExecutor(jobs=3, seconds=0.02))
    assert executor.most_at_once == 3


def test_a_failed_run_is_tried_again_as_often_as_the_policy_says():
    failing = cells(3)[1].id
    executor = StubExecutor(state_of=lambda job: RunState.FAILED if job.cell.id == failing else RunState.FINISHED)
    outcome, _, _ = carry_out(3, executor, policy=Policy(retries=2))
    assert executor.executed.count(failing) == 3
    assert outcome.count(RunState.FAILED) == 3
    assert outcome.count(RunState.FINISHED) == 2


def test_a_retry_that_succeeds_ends_the_trying():
    executor = StubExecutor(state_of=lambda job: RunState.FINISHED if job.attempt == 2 else RunState.FAILED)
    outcome, _, _ = carry_out(1, executor, policy=Policy(retries=5))
    assert [record.attempt for record in outcome.records] == [1, 2]


def test_by_default_a_failure_does_not_stop_the_others():
    executor = StubExecutor(state_of=failed)
    outcome, _, _ = carry_out(4, executor)
    assert outcome.count(RunState.FAILED) == 4
    assert not outcome.stopped


def test_fail_fast_stops_at_the_first_failure():
    executor = StubExecutor(state_of=failed)
    outcome, _, desk = carry_out(50, executor, policy=Policy(on_failure="fail-fast"))
    assert len(executor.executed) == 1
    assert "fail-fast" in outcome.stopped
    assert len(desk.kept) == 1


def test_a_cell_that_somebody_else_finishes_is_left_to_them():
    desk = StubDesk()
    theirs = cells(3)[2].id
    desk.held.add(theirs)

    def finish_elsewhere():
        time.sleep(0.2)
        desk.done.add(theirs)

    threading.Thread(target=finish_elsewhere).start()
    outcome, executor, _ = carry_out(3, desk=desk)
    assert theirs not in executor.executed
    assert outcome.elsewhere == 1


def test_many_cells_of_another_scheduler_are_looked_at_together_and_not_one_after_the_other():
    desk = StubDesk()
    theirs = {cell.id for cell in cells(40)[1:]}
    desk.held |= theirs
    threading.Timer(0.2, desk.done.update, [theirs]).start()
    began = time.monotonic()
    outcome, _, _ = carry_out(40, desk=desk)
    assert outcome.elsewhere == 39
    assert time.monotonic() - began < 5


def test_a_stop_while_waiting_for_another_scheduler_starts_nothing():
    executor, desk = StubExecutor(), StubDesk()
    theirs = cells(1)[0].id
    desk.held.add(theirs)
    scheduler = Scheduler(executor, desk, Policy(), Observer())

    def stop():
        desk.held.discard(theirs)
        scheduler._halt("interrupted")

    threading.Timer(0.2, stop).start()
    outcome = scheduler.carry_out(cells(1))
    assert outcome.stopped == "interrupted"
    assert executor.executed == []


def test_a_cell_whose_holder_died_is_taken_over():
    desk = StubDesk()
    theirs = cells(3)[2].id
    desk.held.add(theirs)

    def die():
        time.sleep(0.2)
        desk.held.discard(theirs)

    threading.Thread(target=die).start()
    _, executor, _ = carry_out(3, desk=desk)
    assert executor.executed.count(theirs) == 1


def test_an_error_of_the_store_ends_the_work_and_reaches_the_caller():
    class FullDisk(StubDesk):
        def keep(self, record):
            raise StoreError("the disk is full")

    desk = FullDisk()
    with pytest.raises(StoreError, match="disk is full"):
        carry_out(30, StubExecutor(jobs=2), desk)
    assert not desk.held


def test_ctrl_c_stops_the_runs_and_keeps_what_they_left():
    class Interrupting(Observer):
        def run_started(self, cell):
            import _thread

            threading.Timer(0.1, _thread.interrupt_main).start()

    outcome, executor, desk = carry_out(5, StubExecutor(seconds=30), observer=Interrupting())
    assert outcome.stopped == "interrupted"
    assert len(executor.executed) == 1
    assert [record.state for record in desk.kept] == [RunState.INTERRUPTED]
