"""The loop: every cell once, failures by policy, work shared with others, a clean stop, an agenda that hears all."""

import os
import signal
import threading
import time
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun.errors import ExecutionError, StoreError, StudyError
from isorun.execution import AbstractExecutor, ExecutorFailed, RowsLogged, RunEnded, RunStarted
from isorun.scheduling import AbstractAgenda, CellList, Observer, carry_out
from isorun.session import ExecutorOptions, Session
from isorun.study.cells import cells_of
from isorun.study.design import Study, adhoc_study, kept_study, without_secrets
from isorun.study.records import RunState
from isorun.testing.memory_store import MemoryStore
from record_builder import make_record

ROW = {"step": 1.0, "t": 0.1, "values": {"loss": 0.5}}


def study_of(number=5, **policy):
    return Study("s", approaches={"a": "true"}, repeats=number, policy=policy or None)


def finished(_job):
    return RunState.FINISHED


def failed(_job):
    return RunState.FAILED


class StubExecutor(AbstractExecutor):
    """Answers from threads of its own with the states a test asks for."""

    def __init__(self, capacity=1, state_of=finished, seconds=0.0, change=lambda record: record):
        self.capacity = capacity
        self.state_of = state_of
        self.seconds = seconds
        self.change = change
        self.stopped = threading.Event()
        self.killed = False
        self.executed = []
        self.at_once = self.most_at_once = 0
        self.lock = threading.Lock()

    def submit(self, job, tell):
        with self.lock:
            self.executed.append(job.cell.id)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        threading.Thread(target=self._run, args=(job, tell)).start()

    def _run(self, job, tell):
        tell(RunStarted(job.run_id, {"host": "here"}))
        tell(RowsLogged(job.run_id, (ROW,)))
        interrupted = self.stopped.wait(self.seconds)
        state = RunState.INTERRUPTED if interrupted else self.state_of(job)
        with self.lock:
            self.at_once -= 1
        record = make_record(job.cell, attempt=job.attempt, state=state, reason="" if state == "finished" else "why")
        tell(RunEnded(job.run_id, self.change(record)))

    def stop(self, run_id=None):
        self.stopped.set()

    def close(self):
        self.killed = True
        self.stop()


class Listening(CellList):
    """A list that remembers what it heard."""

    def __init__(self, cells):
        super().__init__(cells)
        self.heard = []

    def hear(self, record, *, final):
        self.heard.append((record.cell.id, record.state, final))


def session_of(executor, store):
    return Session(store, executor, ExecutorOptions(runs=None))


def carried(study=None, executor=None, store=None, observer=None, agenda=None):
    study, executor, store = study or study_of(), executor or StubExecutor(), store or MemoryStore()
    agenda = agenda or Listening(cells_of(study))
    outcome = carry_out(agenda, session_of(executor, store), study, observer)
    return outcome, executor, store


def test_every_cell_is_carried_out_once_and_kept():
    study = study_of(20)
    outcome, executor, store = carried(study, StubExecutor(capacity=4))
    assert sorted(executor.executed) == sorted(cell.id for cell in cells_of(study))
    assert len(store.records()) == len(outcome.records) == outcome.count(RunState.FINISHED) == 20
    assert not store.holders()


def test_as_many_runs_at_once_as_the_executor_can_use_and_no_more():
    _, executor, _ = carried(study_of(12), StubExecutor(capacity=3, seconds=0.02))
    assert executor.most_at_once == 3


def test_a_failed_run_is_tried_again_as_often_as_the_policy_says():
    study = study_of(3, retries=2)
    failing = cells_of(study)[1].id
    executor = StubExecutor(state_of=lambda job: RunState.FAILED if job.cell.id == failing else RunState.FINISHED)
    agenda = Listening(cells_of(study))
    outcome, _, _ = carried(study, executor, agenda=agenda)
    assert executor.executed.count(failing) == 3
    assert outcome.count(RunState.FAILED) == 3
    assert outcome.count(RunState.FINISHED) == 2
    assert [final for cell, _, final in agenda.heard if cell == failing] == [False, False, True]


def test_a_retry_that_succeeds_ends_the_trying():
    executor = StubExecutor(state_of=lambda job: RunState.FINISHED if job.attempt == 2 else RunState.FAILED)
    outcome, _, _ = carried(study_of(1, retries=5), executor)
    assert [record.attempt for record in outcome.records] == [1, 2]


def test_by_default_a_failure_does_not_stop_the_others():
    outcome, _, _ = carried(study_of(4), StubExecutor(state_of=failed))
    assert outcome.count(RunState.FAILED) == 4
    assert not outcome.stopped


def test_fail_fast_stops_at_the_first_failure():
    outcome, executor, store = carried(study_of(50, on_failure="fail-fast"), StubExecutor(state_of=failed))
    assert len(executor.executed) == len(store.records()) == 1
    assert "fail-fast" in outcome.stopped


def test_fail_fast_waits_for_the_runs_in_progress_and_keeps_them_as_interrupted():
    first = cells_of(study_of(3))[0].id

    def state_of(job):
        time.sleep(0 if job.cell.id == first else 0.2)
        return RunState.FAILED

    outcome, _, store = carried(study_of(3, on_failure="fail-fast"), StubExecutor(capacity=2, state_of=state_of))
    assert len(store.records()) == len(outcome.records) == 2
    assert not store.holders()


class Waits(Observer):
    """Remembers who was waited for."""

    def __init__(self):
        self.seen = []

    def waiting_for(self, cell, holder):
        self.seen.append((cell.id, holder and holder.pid))


def test_a_cell_that_somebody_else_finishes_is_left_to_them_and_its_record_is_heard():
    study, store = study_of(3), MemoryStore()
    theirs = cells_of(study)[2]
    claim = store.claim(theirs.id)

    def finish_elsewhere():
        store.finish(make_record(theirs, attempt=claim.attempt))
        claim.release()

    threading.Timer(0.2, finish_elsewhere).start()
    agenda, waits = Listening(cells_of(study)), Waits()
    outcome, executor, _ = carried(study, store=store, agenda=agenda, observer=waits)
    assert theirs.id not in executor.executed
    assert outcome.elsewhere == 1
    assert (theirs.id, RunState.FINISHED, True) in agenda.heard
    assert waits.seen == [(theirs.id, os.getpid())]


def test_many_cells_of_another_isorun_are_looked_at_together_and_not_one_after_the_other():
    study, store = study_of(40), MemoryStore()
    theirs = {cell.id: store.claim(cell.id) for cell in cells_of(study)[1:]}

    def finish_elsewhere():
        for cell in cells_of(study)[1:]:
            store.finish(make_record(cell, attempt=theirs[cell.id].attempt))

    threading.Timer(0.2, finish_elsewhere).start()
    began = time.monotonic()
    outcome, _, _ = carried(study, store=store)
    assert outcome.elsewhere == 39
    assert time.monotonic() - began < 5


def test_a_stop_while_waiting_for_another_isorun_starts_nothing():
    study, store, executor = study_of(1), MemoryStore(), StubExecutor()
    claim = store.claim(cells_of(study)[0].id)

    def stop():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)
        claim.release()

    threading.Timer(0.2, stop).start()
    outcome, _, _ = carried(study, executor, store)
    assert outcome.stopped == "interrupted"
    assert executor.executed == []


def test_a_cell_whose_holder_died_is_taken_over():
    study, store = study_of(3), MemoryStore()
    theirs = cells_of(study)[2].id
    threading.Timer(0.2, store.claim(theirs).release).start()
    _, executor, _ = carried(study, store=store)
    assert executor.executed.count(theirs) == 1


@pytest.mark.parametrize(
    ("state", "left_to_do"), [(RunState.INTERRUPTED, True), (RunState.FAILED, False), (RunState.FINISHED, False)]
)
def test_what_another_isorun_tried_meanwhile_is_left_to_it_unless_it_was_interrupted(state, left_to_do):
    study, store = study_of(2), MemoryStore()
    first, theirs = cells_of(study)

    def try_elsewhere(job):
        if job.cell.id == first.id:
            claim = store.claim(theirs.id)
            store.finish(make_record(theirs, attempt=claim.attempt, state=state))
            claim.release()
        return RunState.FINISHED

    outcome, executor, _ = carried(study, StubExecutor(state_of=try_elsewhere), store)
    assert (theirs.id in executor.executed) is left_to_do
    assert outcome.elsewhere == (not left_to_do)


def test_what_failed_before_this_call_is_tried_again():
    study, store = study_of(1), MemoryStore()
    carried(study, StubExecutor(state_of=failed), store)
    outcome, _, _ = carried(study, store=store)
    assert [(record.attempt, record.state) for record in outcome.records] == [(2, RunState.FINISHED)]


def test_an_error_of_the_store_ends_the_work_and_reaches_the_caller():
    class FullDisk(MemoryStore):
        def finish(self, record):
            raise StoreError("the disk is full")

    store = FullDisk()
    with pytest.raises(StoreError, match="disk is full"):
        carried(study_of(30), StubExecutor(capacity=2), store)
    assert not store.holders()


@pytest.mark.parametrize("error", [OverflowError("int too large"), TypeError("no"), RecursionError("deep")])
def test_a_record_whose_content_cannot_be_kept_is_one_failed_run_and_stops_nobody(error):
    class Picky(MemoryStore):
        def finish(self, record):
            if record.results.get("bad"):
                raise error
            super().finish(record)

    study = study_of(3)
    bad = cells_of(study)[1].id
    executor = StubExecutor(change=lambda record: replace(record, results={"bad": float(record.cell.id == bad)}))
    outcome, _, store = carried(study, executor, Picky())
    assert Counter(record.state for record in outcome.records) == {RunState.FINISHED: 2, RunState.FAILED: 1}
    (kept,) = store.records([bad])
    assert "cannot be kept" in kept.reason
    assert [note.code for note in kept.notes] == ["record-not-kept"]


def test_what_prevents_any_run_reaches_the_caller_and_frees_all_cells():
    class Hopeless(StubExecutor):
        def submit(self, job, tell):
            if len(self.executed) == 1:
                tell(ExecutorFailed(ExecutionError("there is no python"), job.run_id))
            else:
                super().submit(job, tell)

    executor, store = Hopeless(capacity=2, seconds=30), MemoryStore()
    with pytest.raises(ExecutionError, match="no python"):
        carried(study_of(4), executor, store)
    assert not store.holders()
    assert [record.state for record in store.records()] == [RunState.INTERRUPTED]


def test_a_study_kept_without_a_secret_is_refused_and_its_cell_is_free_again(tmp_path):
    study = adhoc_study([("python", "t.py")], environment={"env": {"HF_TOKEN": "hidden-value"}}, folder=tmp_path)
    kept = kept_study(without_secrets(study), tmp_path, study.name)
    store = MemoryStore()
    with pytest.raises(StudyError, match="not kept"):
        carried(kept, store=store)
    assert not store.holders()


class Signalling(Observer):
    """Sends this process signals once a run has begun."""

    def __init__(self, *numbers):
        self.numbers = list(numbers)

    def run_started(self, cell):
        for place, number in enumerate(self.numbers):
            threading.Timer(0.1 + 0.2 * place, os.kill, [os.getpid(), number]).start()
        self.numbers = []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_asks_for_an_end_stops_the_runs_and_keeps_what_they_left(number):
    before = signal.getsignal(number)
    outcome, executor, store = carried(study_of(5), StubExecutor(seconds=30), observer=Signalling(number))
    assert outcome.stopped == "interrupted"
    assert len(executor.executed) == 1
    assert not executor.killed
    assert [record.state for record in store.records()] == [RunState.INTERRUPTED]
    assert signal.getsignal(number) is before


def test_a_second_signal_kills_the_runs():
    class Stubborn(StubExecutor):
        def stop(self, run_id=None):
            pass

        def close(self):
            self.killed = True
            self.stopped.set()

    outcome, executor, _ = carried(
        study_of(2), Stubborn(seconds=30), observer=Signalling(signal.SIGINT, signal.SIGTERM)
    )
    assert executor.killed
    assert outcome.stopped == "interrupted"


def test_a_signal_that_was_ignored_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        outcome, _, _ = carried(study_of(2), StubExecutor(seconds=0.3), observer=Signalling(signal.SIGHUP))
    finally:
        signal.signal(signal.SIGHUP, before)
    assert outcome.count(RunState.FINISHED) == 2
    assert not outcome.stopped


def test_the_loop_works_in_any_thread():
    done = []
    thread = threading.Thread(target=lambda: done.append(carried(study_of(2))[0]))
    thread.start()
    thread.join(20)
    assert done[0].count(RunState.FINISHED) == 2


def test_observers_hear_the_rows_of_a_running_training():
    class Rows(Observer):
        told = ()

        def run_started(self, cell):
            self.told += ("started",)

        def rows_logged(self, cell, rows):
            self.told += tuple(row["values"]["loss"] for row in rows)

        def run_ended(self, record):
            self.told += (record.state,)

    rows = Rows()
    carried(study_of(1), observer=rows)
    assert rows.told == ("started", 0.5, RunState.FINISHED)


class Doubling(AbstractAgenda):
    """Proposes as many cells again as have ended, until all are out."""

    def __init__(self, cells):
        self.left = list(cells)
        self.open = 0
        self.next = 1
        self.batches = []

    def propose(self):
        if self.open or not self.left:
            return ()
        batch, self.left = self.left[: self.next], self.left[self.next :]
        self.open, self.next = len(batch), 2 * self.next
        self.batches.append(len(batch))
        return batch

    def hear(self, record, *, final):
        self.open -= final


def test_an_agenda_proposes_more_when_it_has_heard_enough():
    study = study_of(10)
    agenda = Doubling(cells_of(study))
    outcome, executor, _ = carried(study, StubExecutor(capacity=4, seconds=0.01), agenda=agenda)
    assert agenda.batches == [1, 2, 4, 3]
    assert len(outcome.records) == 10
    assert executor.most_at_once <= 4


def test_an_error_of_the_agenda_ends_the_work_and_reaches_the_caller():
    class Broken(CellList):
        def hear(self, record, *, final):
            raise StudyError("no such metric")

    store = MemoryStore()
    study = study_of(10)
    with pytest.raises(StudyError, match="no such metric"):
        carried(study, StubExecutor(capacity=2), store, agenda=Broken(cells_of(study)))
    assert not store.holders()


@given(st.data())
def test_whatever_fails_each_cell_ends_once_and_nothing_stays_held(data):
    number, retries = data.draw(st.integers(1, 6)), data.draw(st.integers(0, 2))
    capacity = data.draw(st.integers(1, 4))
    fails = data.draw(st.lists(st.integers(0, 3), min_size=number, max_size=number))
    study = study_of(number, retries=retries)
    times = {cell.id: fails[cell.repeat] for cell in cells_of(study)}
    executor = StubExecutor(
        capacity, lambda job: RunState.FAILED if job.attempt <= times[job.cell.id] else RunState.FINISHED
    )
    agenda = Listening(cells_of(study))
    outcome, _, store = carried(study, executor, agenda=agenda)
    assert sorted(cell for cell, _, final in agenda.heard if final) == sorted(times)
    assert len(outcome.records) == sum(min(count, retries) + 1 for count in times.values())
    assert {cell for cell, state, _ in agenda.heard if state is RunState.FINISHED} == store.finished()
    assert not store.holders()
