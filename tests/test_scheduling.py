"""The loop: every cell once, failures by policy, work shared with others, a clean stop, an agenda that hears all."""

import os
import queue
import signal
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun import scheduling, session
from isorun.errors import ExecutionError, PluginError, StoreConflict, StoreError, StudyError
from isorun.execution import AbstractExecutor, ExecutorFailed, Job, RowsLogged, RunEnded, RunStarted
from isorun.scheduling import AbstractAgenda, CellList, Observer, carry_out
from isorun.session import ExecutorOptions, Session
from isorun.store.folder import FolderStore
from isorun.study.cells import cells_of
from isorun.study.design import Study, adhoc_study, document_without_secrets, kept_study
from isorun.study.records import RunState
from isorun.testing.instant_executor import Computed, InstantExecutor
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
    return Session(store, executor, ExecutorOptions(run_folders=None))


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


class LosingExecutor(StubExecutor):
    """Loses the run of one cell so many times."""

    def __init__(self, cell_id, times, *, with_its_place=False, **options):
        super().__init__(**options)
        self.cell_id, self.times, self.with_its_place = cell_id, times, with_its_place

    def _run(self, job, tell):
        if job.cell.id != self.cell_id or job.attempt > self.times:
            super()._run(job, tell)
            return
        with self.lock:
            self.at_once -= 1
        record = make_record(job.cell, attempt=job.attempt, state=RunState.INTERRUPTED, reason="NODE_FAIL")
        tell(RunEnded(job.run_id, record, lost=True, with_its_place=self.with_its_place))


@pytest.mark.parametrize(("times", "finished"), [(4, 3), (20, 3), (21, 2), (30, 2)])
def test_a_run_that_was_lost_with_its_place_is_made_again_more_often_and_not_for_ever(times, finished):
    study = study_of(3)
    lost = cells_of(study)[1].id
    outcome, executor, _ = carried(study, LosingExecutor(lost, times, with_its_place=True))
    assert outcome.count(RunState.FINISHED) == finished
    assert executor.executed.count(lost) == min(times, 20) + 1


@pytest.mark.parametrize(("times", "finished"), [(1, 3), (3, 3), (4, 2), (9, 2)])
def test_a_run_that_its_place_lost_is_made_again_three_times_apart_from_retries(times, finished):
    study = study_of(3)
    lost = cells_of(study)[1].id
    agenda = Listening(cells_of(study))
    outcome, executor, store = carried(study, LosingExecutor(lost, times), agenda=agenda)
    assert outcome.count(RunState.FINISHED) == finished
    assert executor.executed.count(lost) == min(times, 3) + 1
    heard = [final for cell, _, final in agenda.heard if cell == lost]
    assert heard == [False] * (len(heard) - 1) + [True]
    assert [record.reason for record in store.records([lost])][: min(times, 4)] == ["NODE_FAIL"] * min(times, 4)


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


def test_who_is_waited_for_is_told_once_however_often_one_looks(monkeypatch):
    monkeypatch.setattr(scheduling, "_LOOK_AGAIN_SECONDS", 0.01)
    study, store, looks = study_of(1), MemoryStore(), []
    (theirs,) = cells_of(study)
    claim = store.claim(theirs.id)
    holders = store.holders
    store.holders = lambda: looks.append(1) or holders()

    def finish_elsewhere():
        store.finish(make_record(theirs, attempt=claim.attempt))
        claim.release()

    threading.Timer(0.3, finish_elsewhere).start()
    waits = Waits()
    carried(study, store=store, observer=waits)
    assert len(looks) > 3
    assert waits.seen == [(theirs.id, os.getpid())]


def test_a_cell_that_somebody_else_finished_while_we_ran_it_is_theirs_and_stops_nobody():
    study, store = study_of(3), MemoryStore()
    lost = cells_of(study)[1]

    def overtaken(job):
        if job.cell.id == lost.id:
            store.finish(replace(make_record(lost, attempt=job.attempt + 1), results={"acc": 0.125}))
        return RunState.FINISHED

    agenda = Listening(cells_of(study))
    outcome, _, _ = carried(study, StubExecutor(state_of=overtaken), store, agenda=agenda)
    assert (len(outcome.records), outcome.elsewhere, outcome.stopped) == (2, 1, "")
    assert [condition.code for condition in outcome.conditions] == ["made-elsewhere"]
    assert lost.label in outcome.conditions[0].message
    assert [record.results["acc"] for record in store.records([lost.id])] == [0.125]
    assert sorted(cell for cell, _, final in agenda.heard if final) == sorted(cell.id for cell in cells_of(study))
    assert not store.holders()


def test_a_cell_whose_claim_somebody_else_took_over_is_waited_for_and_stops_nobody():
    """A store may give the claim of a worker that was silent for too long to another one, who is still at it."""
    study, store = study_of(2), MemoryStore()
    lost = cells_of(study)[1]
    taken = []

    def overtaken(job):
        if job.cell.id == lost.id:
            store.release(lost.id, job.attempt)
            taken.append(store.claim(lost.id))
        return RunState.FINISHED

    class Ending(Waits):
        def waiting_for(self, cell, holder):
            super().waiting_for(cell, holder)
            store.finish(replace(make_record(lost, attempt=taken[0].attempt), results={"acc": 0.125}))
            taken[0].release()

    waits = Ending()
    outcome, _, _ = carried(study, StubExecutor(state_of=overtaken), store, waits)
    assert waits.seen == [(lost.id, os.getpid())]
    assert (len(outcome.records), outcome.elsewhere, outcome.stopped) == (1, 1, "")
    assert [condition.code for condition in outcome.conditions] == ["made-elsewhere"]
    assert [record.results["acc"] for record in store.records([lost.id])] == [0.125]


def test_what_python_stands_for_goes_with_every_job():
    study, seen = Study("s", approaches={"a": "python t.py"}), []
    executor = InstantExecutor(lambda job: seen.append(job.environment.python) or Computed())
    opened = Session(MemoryStore(), executor, ExecutorOptions(run_folders=None, python="/opt/python"))
    carry_out(CellList(cells_of(study)), opened, study)
    assert seen == ["/opt/python"]


def test_a_conflict_with_nothing_is_trouble_of_the_store():
    class Confused(MemoryStore):
        def finish(self, record):
            raise StoreConflict("another record is there")

    with pytest.raises(StoreConflict):
        carried(study_of(1), store=Confused())


class Growing(StubExecutor):
    """Has no room until it was asked for it some times; then for as many as it was told."""

    def __init__(self, rooms, **options):
        super().__init__(**options)
        self.rooms = list(rooms)

    @property
    def capacity(self):
        return self.rooms.pop(0) if len(self.rooms) > 1 else self.rooms[0]

    @capacity.setter
    def capacity(self, _):
        pass


class Room(Observer):
    told = 0

    def waiting_for_room(self):
        self.told += 1


@pytest.fixture
def quick_looks(monkeypatch):
    monkeypatch.setattr(scheduling, "_LOOK_AGAIN_SECONDS", 0.01)


@pytest.mark.usefixtures("quick_looks")
@pytest.mark.parametrize("rooms", [[0] * 20 + [2], [0, 0, 1], [1, 1, *[0] * 20, 1]])
def test_an_executor_without_room_is_waited_for_and_nothing_is_given_up(rooms):
    room = Room()
    outcome, executor, _ = carried(study_of(4), Growing(rooms), observer=room)
    assert outcome.count(RunState.FINISHED) == outcome.proposed == 4
    assert len(executor.executed) == 4
    assert room.told <= 1
    assert room.told or rooms[0] or len(rooms) < 20


@pytest.mark.usefixtures("quick_looks")
def test_capacity_that_grows_while_a_run_goes_on_is_used():
    outcome, executor, _ = carried(study_of(3), Growing([1] * 5 + [3], seconds=1.0))
    assert executor.most_at_once == 3
    assert outcome.count(RunState.FINISHED) == 3


@pytest.mark.usefixtures("quick_looks")
def test_a_stop_while_there_is_no_room_ends_the_work():
    threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGINT]).start()
    outcome, executor, _ = carried(study_of(3), Growing([0]))
    assert (outcome.stopped, outcome.proposed, outcome.records, executor.executed) == ("interrupted", 3, (), [])


class ByRoom(AbstractAgenda):
    """Proposes as many as there is room for."""

    def __init__(self, cells):
        self.left = list(cells)
        self.rooms = []

    def propose(self, room):
        if not self.left:
            return ()
        self.rooms.append(room())
        batch, self.left = self.left[: self.rooms[-1]], self.left[self.rooms[-1] :]
        return batch

    def hear(self, record, *, final):
        pass


def test_an_agenda_may_propose_as_many_as_there_is_room_for():
    study = study_of(7)
    agenda = ByRoom(cells_of(study))
    outcome, _, _ = carried(study, StubExecutor(capacity=3, seconds=0.02), agenda=agenda)
    assert len(outcome.records) == 7
    assert agenda.rooms == [3, 1, 1, 1, 1]


@pytest.mark.usefixtures("quick_looks")
def test_an_agenda_that_was_told_of_no_room_is_asked_again():
    study = study_of(3)
    agenda = ByRoom(cells_of(study))
    outcome, _, _ = carried(study, Growing([0] * 9 + [3]), agenda=agenda)
    assert outcome.count(RunState.FINISHED) == 3
    assert agenda.rooms[0] == 0


def test_where_nothing_is_proposed_no_executor_is_opened():
    opened = Session(MemoryStore(), "no-such-executor", ExecutorOptions(run_folders=None))
    assert carry_out(CellList(()), opened, study_of()).proposed == 0


class Pruning(Listening):
    """Stops the runs of one cell at their first row."""

    def __init__(self, cells, pruned):
        super().__init__(cells)
        self.pruned = pruned
        self.rows = []

    def hear_rows(self, cell, rows):
        self.rows += [(cell.id, row["values"]["loss"]) for row in rows]
        return cell.id == self.pruned


def test_an_agenda_hears_rows_and_can_stop_one_run():
    class StopsOne(StubExecutor):
        def stop(self, run_id=None):
            self.asked.append(run_id)
            self.told.put(run_id)

        def _run(self, job, tell):
            if job.cell.id != pruned.id:
                return super()._run(job, tell)
            tell(RowsLogged(job.run_id, (ROW,)))
            self.told.get(timeout=20)
            return tell(
                RunEnded(job.run_id, make_record(job.cell, attempt=job.attempt, state=RunState.INTERRUPTED, reason="x"))
            )

    study = study_of(3, retries=2)
    pruned = cells_of(study)[1]
    executor = StopsOne()
    executor.asked, executor.told = [], queue.Queue()
    agenda = Pruning(cells_of(study), pruned.id)
    outcome, _, _ = carried(study, executor, agenda=agenda)
    assert executor.asked == [f"{pruned.id}-1"]
    assert (pruned.id, RunState.INTERRUPTED, True) in agenda.heard
    assert len(agenda.rows) == 3
    assert (outcome.count(RunState.FINISHED), outcome.stopped) == (2, "")


class Foreign(Exception):
    """What a driver of somebody else raises."""


@pytest.mark.parametrize("what", ["claim", "finish", "records", "run_ids"])
def test_what_a_store_of_others_raises_names_it(what):
    def broken(*_):
        raise Foreign("connection reset")

    class Torn(MemoryStore):
        pass

    setattr(Torn, what, broken)
    store = Torn()
    if what == "records":
        MemoryStore.claim(store, cells_of(study_of(1))[0].id)
        store.run_ids = set
    with pytest.raises(PluginError, match=r"the store .*Torn failed[^$]*Foreign: connection reset"):
        carried(study_of(1), store=store)


@pytest.mark.parametrize("what", ["submit", "stop"])
def test_what_an_executor_of_others_raises_names_it(what, monkeypatch):
    monkeypatch.setattr(scheduling, "_GIVE_UP_SECONDS", 0.1)

    class Torn(StubExecutor):
        pass

    def broken(*_):
        raise RuntimeError("the cluster is away")

    setattr(Torn, what, broken)
    store = MemoryStore()
    with pytest.raises(PluginError, match=r"the executor .*Torn failed[^$]*RuntimeError: the cluster is away"):
        carried(study_of(2), Torn(seconds=1.0), store, Signalling(signal.SIGINT))
    assert not store.holders()


def test_what_came_of_it_is_told_in_one_line():
    outcome, _, _ = carried(study_of(2), StubExecutor(state_of=failed))
    assert (str(outcome), repr(outcome)) == ("0 finished, 2 did not finish", "<Outcome: 0 finished, 2 did not finish>")
    page = replace(outcome, stopped="<b>")._repr_html_()
    assert "<strong>0 finished, 2 did not finish; stopped: &lt;b&gt;.</strong>" in page
    assert str(scheduling.Outcome(())) == "nothing was missing"
    assert str(scheduling.Outcome((), 3, proposed=3)) == "0 finished, 3 done by another isorun or earlier"


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


@pytest.mark.parametrize("change", [{"peak_memory_bytes": 2**70}, {"exit_code": -(2**64)}, {"wall_seconds": "long"}])
def test_a_number_that_no_database_can_hold_is_one_failed_run_too(change, tmp_path):
    study = study_of(2)
    bad = cells_of(study)[1].id
    executor = StubExecutor(change=lambda record: replace(record, **change) if record.cell.id == bad else record)
    with FolderStore(tmp_path) as store:
        carried(study, executor, store)
        assert [record.state for record in store.records([bad])] == [RunState.FAILED]
        assert len(store.finished()) == 1
        store.pack()
        assert store.notes() == ()


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
    kept = kept_study(document_without_secrets(study), tmp_path, study.name)
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


class Stubborn(StubExecutor):
    """Runs that do not stop when asked; closing ends them and waits for them. silent: without telling anybody."""

    def __init__(self, silent=False, **options):
        super().__init__(**options)
        self.silent = silent
        self.asked = []
        self.threads = []

    def submit(self, job, tell):
        before = set(threading.enumerate())
        super().submit(job, lambda event: (self.silent and isinstance(event, RunEnded)) or tell(event))
        self.threads += set(threading.enumerate()) - before

    def stop(self, run_id=None):
        self.asked.append(run_id)

    def close(self):
        self.killed = True
        self.stopped.set()
        for thread in self.threads:
            thread.join(20)


def opened_by_the_session(monkeypatch, executor, store):
    monkeypatch.setattr(session, "open_executor", lambda *_: executor)
    return Session(store, "any", ExecutorOptions(run_folders=None))


TWICE = (signal.SIGINT, signal.SIGTERM)


def test_a_second_signal_kills_the_runs(monkeypatch):
    study, executor, store = study_of(2), Stubborn(seconds=30), MemoryStore()
    opened = opened_by_the_session(monkeypatch, executor, store)
    outcome = carry_out(CellList(cells_of(study)), opened, study, Signalling(*TWICE))
    assert executor.killed
    assert outcome.stopped == "interrupted"
    assert [record.state for record in store.records()] == [RunState.INTERRUPTED]


def test_an_executor_that_kills_without_a_word_is_not_waited_for(monkeypatch):
    study, store = study_of(2), MemoryStore()
    opened = opened_by_the_session(monkeypatch, Stubborn(silent=True, seconds=30), store)
    began = time.monotonic()
    outcome = carry_out(CellList(cells_of(study)), opened, study, Signalling(*TWICE))
    assert time.monotonic() - began < 10
    assert (outcome.stopped, len(outcome.records)) == ("interrupted", 1)
    (record,) = store.records()
    assert (record.state, record.reason[:6]) == (RunState.INTERRUPTED, "killed")
    assert not store.holders()


def test_a_second_signal_does_not_close_an_executor_that_others_opened():
    class Slow(Stubborn):
        def stop(self, run_id=None):
            super().stop(run_id)
            threading.Timer(0.6, self.stopped.set).start()

    executor = Slow(seconds=30)
    outcome, _, store = carried(study_of(2), executor, observer=Signalling(*TWICE))
    assert not executor.killed
    assert len(executor.asked) == 2
    assert None not in executor.asked
    assert [record.state for record in store.records()] == [RunState.INTERRUPTED]
    assert outcome.stopped == "interrupted"


def test_a_third_ctrl_c_is_what_it_always_is(monkeypatch):
    monkeypatch.setattr(scheduling, "_GIVE_UP_SECONDS", 0.1)
    executor, store = Stubborn(seconds=30), MemoryStore()
    try:
        with pytest.raises(KeyboardInterrupt):
            carried(study_of(2), executor, store, Signalling(*[signal.SIGINT] * 3))
    finally:
        executor.close()
    assert not store.holders()
    assert [record.state for record in store.records()] == [RunState.INTERRUPTED]


@pytest.mark.parametrize("make", [lambda: InstantExecutor(_no_luck, 2), lambda: StubExecutor(state_of=_none_of_bad)])
def test_an_executor_whose_runs_were_stopped_carries_out_the_next_study(make):
    executor = make()
    bad = Study("bad", approaches={"bad": "false"}, repeats=3, policy={"on_failure": "fail-fast"})
    outcome, _, _ = carried(bad, executor)
    assert "fail-fast" in outcome.stopped
    outcome, _, _ = carried(study_of(3), executor)
    assert outcome.count(RunState.FINISHED) == 3
    executor.close()


def _no_luck(job):
    return Computed(exit_code=int(job.cell.approach == "bad"))


def _none_of_bad(job):
    return RunState.FAILED if job.cell.approach == "bad" else RunState.FINISHED


def test_the_first_reason_to_stop_is_the_one_that_is_told():
    class InterruptsAtTheEnd(Observer):
        def run_ended(self, record):
            if record.state is RunState.FAILED:
                os.kill(os.getpid(), signal.SIGINT)

    first = cells_of(study_of(3))[0].id

    def state_of(job):
        if job.cell.id == first:
            return RunState.FAILED
        time.sleep(0.4)  # still running when the signal comes, and no second failure to be told of
        return RunState.FINISHED

    study = study_of(3, on_failure="fail-fast")
    outcome, _, _ = carried(study, StubExecutor(capacity=2, state_of=state_of), observer=InterruptsAtTheEnd())
    assert "fail-fast" in outcome.stopped


def test_an_interrupted_run_is_not_tried_again():
    class Interrupts(StubExecutor):
        def _run(self, job, tell):
            self.stopped.set()
            super()._run(job, tell)

    outcome, executor, _ = carried(study_of(1, retries=3), Interrupts())
    assert [record.state for record in outcome.records] == [RunState.INTERRUPTED]
    assert len(executor.executed) == 1


def test_an_agenda_is_not_asked_after_a_stop():
    class Counting(CellList):
        asked = 0

        def propose(self, room):
            self.asked += 1
            return super().propose(room)

    study = study_of(4, on_failure="fail-fast")
    agenda = Counting(cells_of(study))
    carried(study, StubExecutor(state_of=failed), agenda=agenda)
    assert agenda.asked == 1


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

    def propose(self, room):
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


class StayingExecutor(StubExecutor):
    """Runs that go on without the process that submitted them. engine: what has them, for all who come."""

    stays = True

    def __init__(self, engine, capacity=10):
        super().__init__(capacity)
        self.engine = engine
        self.has_left = False

    def in_flight(self, cell_id):
        return self.engine.get(cell_id)

    def submit(self, job, tell):
        self.executed.append(job.run_id)
        self.engine[job.cell.id] = job
        self.waiting = {**getattr(self, "waiting", {}), job.run_id: (job, tell)}
        if len(self.waiting) == 3:
            os.kill(os.getpid(), signal.SIGINT)

    def leave(self):
        self.has_left = True
        return tuple(self.waiting)


class EndingExecutor(StayingExecutor):
    """The same engine when somebody comes back: everything ends."""

    def submit(self, job, tell):
        self.executed.append(job.run_id)
        tell(RunEnded(job.run_id, make_record(job.cell, attempt=job.attempt, state=RunState.FINISHED)))


def owning(executor, store):
    """A session that opened the executor itself."""
    opened = Session(store, "staying", ExecutorOptions(run_folders=None))
    opened._opened = executor
    return opened


def test_runs_that_may_not_be_queued_are_told_apart_from_those_that_go_on(monkeypatch):
    first = StayingExecutor({})
    monkeypatch.setattr(first, "leave", lambda: tuple(first.waiting)[:1])
    study = study_of(3)
    outcome = carry_out(CellList(cells_of(study)), owning(first, MemoryStore()), study)
    told = "left, and 1 run goes on without isorun; 2 more are not known to be queued: the same command finds or queues"
    assert outcome.stopped == f"{told} them"


def test_who_is_asked_to_stop_leaves_runs_that_stay_and_comes_back_to_the_same_attempts():
    study, store, engine = study_of(3), MemoryStore(), {}
    first = StayingExecutor(engine)
    outcome = carry_out(CellList(cells_of(study)), owning(first, store), study)
    assert outcome.stopped == "left, and 3 runs go on without isorun"
    assert first.has_left
    assert not first.stopped.is_set()
    assert not store.records()
    assert [holder.left for holder in store.holders()] == [True] * 3
    second = EndingExecutor(engine)
    outcome = carry_out(CellList(cells_of(study)), owning(second, store), study)
    assert second.executed == first.executed
    assert outcome.count(RunState.FINISHED) == 3
    assert {record.attempt for record in store.records()} == {1}
    assert not store.holders()


def test_runs_that_were_left_are_made_by_no_other_executor_and_not_waited_for():
    study, store = study_of(4), MemoryStore()
    cells = cells_of(study)
    carry_out(CellList(cells[:3]), owning(StayingExecutor({}), store), study)
    outcome, executor, _ = carried(study, store=store)
    assert executor.executed == [cells[3].id]
    assert (outcome.count(RunState.FINISHED), outcome.stopped) == (1, "3 cells left to a cluster's queue")
    assert [item.code for item in outcome.conditions] == ["in-slurm"]
    again = EndingExecutor({})  # which has a queue as well, and does not know of them either
    assert carry_out(CellList(cells), owning(again, store), study).stopped == "3 cells left to a cluster's queue"
    assert again.executed == []


def test_a_run_that_was_ended_from_outside_ends_the_work_it_belongs_to():
    class Halted(StayingExecutor):
        def submit(self, job, tell):
            super().submit(job, tell)
            record = make_record(job.cell, attempt=job.attempt, state=RunState.INTERRUPTED)
            if len(self.waiting) == 2:
                tell(RunEnded(job.run_id, record, halts="isorun stop"))

        def stop(self, run_id=None):
            job, tell = self.waiting[run_id]
            tell(RunEnded(run_id, make_record(job.cell, attempt=job.attempt, state=RunState.INTERRUPTED)))

    study, store = study_of(5), MemoryStore()
    executor = Halted({}, capacity=2)
    outcome = carry_out(CellList(cells_of(study)), owning(executor, store), study)
    assert (outcome.stopped, len(executor.executed), len(store.records())) == ("isorun stop", 2, 2)
    assert not store.holders()


def test_a_run_in_flight_that_was_recorded_or_replaced_is_made_anew():
    study, store, engine = study_of(3), MemoryStore(), {}
    cells = cells_of(study)
    carry_out(CellList(cells), owning(StayingExecutor(engine), store), study)
    store.finish(make_record(cells[0], attempt=1, state=RunState.FAILED))
    store.claim_again(cells[1].id, 1).release()
    store.claim(cells[1].id).release()
    again = EndingExecutor(engine)
    carry_out(CellList(cells), owning(again, store), study)
    assert sorted(again.executed) == sorted([f"{cells[0].id}-2", f"{cells[1].id}-3", f"{cells[2].id}-1"])
    assert store.finished() == {cell.id for cell in cells}


def test_a_run_in_flight_that_another_isorun_lets_go_of_just_now_is_come_back_to():
    study, engine = study_of(1), {}
    (cell,) = cells_of(study)

    class Letting(MemoryStore):
        """Somebody holds the cell when it is asked for again, and has let go of it before the next question."""

        asked = 0

        def claim_again(self, cell_id, attempt):
            Letting.asked += 1
            return None if Letting.asked == 1 else super().claim_again(cell_id, attempt)

    store = Letting()
    store.claim(cell.id).release()
    engine[cell.id] = Job(cell=cell, attempt=1, command=cell.command, working_folder=Path(), seed=1)
    again = EndingExecutor(engine)
    carry_out(CellList([cell]), owning(again, store), study)
    assert again.executed == [f"{cell.id}-1"]


def test_a_record_that_is_refused_after_an_older_failure_leaves_the_cell_to_be_looked_at_again():
    """The run was replaced, and whoever replaced it is gone: neither that old failure nor the refusal is an answer."""
    study = study_of(1)
    (cell,) = cells_of(study)

    class Replaced(MemoryStore):
        refused = 0

        def finish(self, record):
            if record.attempt == 2 and not self.refused:
                self.refused += 1
                raise StoreConflict("a later attempt was claimed")
            super().finish(record)

    store = Replaced()
    store.finish(make_record(cell, attempt=store.claim(cell.id).attempt, state=RunState.FAILED))
    store.close()
    agenda = Listening([cell])
    outcome, executor, _ = carried(study, store=store, agenda=agenda)
    assert store.refused == 1
    assert executor.executed == [cell.id, cell.id]
    assert [(state, final) for _, state, final in agenda.heard] == [(RunState.FINISHED, True)]
    assert [item.code for item in outcome.conditions] == ["made-elsewhere"]


def test_runs_that_stay_are_left_at_once_where_that_is_asked_for():
    study, store = study_of(2), MemoryStore()
    executor = StayingExecutor({})
    outcome = carry_out(CellList(cells_of(study)), owning(executor, store), study, detach=True)
    assert executor.has_left
    assert outcome.stopped.startswith(scheduling.LEFT)
    assert all(holder.left for holder in store.holders())


def test_trouble_of_the_store_leaves_runs_that_stay_and_an_impossible_run_ends_the_others():
    class Full(MemoryStore):
        def finish(self, record):
            raise StoreError("the disk is full")

    class Failing(StayingExecutor):
        def submit(self, job, tell):
            self.waiting = {job.run_id: (job, tell)}
            record = make_record(job.cell, attempt=job.attempt, state=RunState.FINISHED)
            tell(
                ExecutorFailed(ExecutionError("no"), job.run_id) if self.capacity == 1 else RunEnded(job.run_id, record)
            )

    study = study_of(2)
    leaving = Failing({}, capacity=2)
    with pytest.raises(StoreError, match="the disk is full"):
        carry_out(CellList(cells_of(study)), owning(leaving, Full()), study)
    assert leaving.has_left
    assert not leaving.stopped.is_set()
    ending = Failing({}, capacity=1)
    with pytest.raises(ExecutionError, match="no"):
        carry_out(CellList(cells_of(study)), owning(ending, MemoryStore()), study)
    assert not ending.has_left
