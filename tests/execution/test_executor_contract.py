"""What every executor promises, checked for each of them."""

import threading

import pytest

from isorun.execution.instant import Computed, InstantExecutor
from isorun.execution.local import LocalExecutor
from isorun.study.records import RunRecord, RunState

LOGS = "import isorun; isorun.log(epoch=1, acc=0.25); isorun.log(epoch=2, acc=0.5); isorun.result(test_acc=0.5)"
FAILS = "raise ValueError('no data')"
HANGS = "import time; time.sleep(30)"


def compute(job):
    """The same three trainings without a process."""
    text = (job.working_folder / job.command[1]).read_text()
    if text == FAILS:
        raise ValueError("no data")
    if text == HANGS:
        return Computed(wall_seconds=30.0)
    from isorun.study.records import Series

    return Computed(results={"test_acc": 0.5}, series={"acc": Series((1.0, 2.0), (0.0, 0.0), (0.25, 0.5))})


EXECUTORS = {
    "instant": lambda: InstantExecutor(compute),
    "local fresh": lambda: LocalExecutor(launch="fresh", grace_seconds=1.0),
    "local warm": lambda: LocalExecutor(launch="warm", grace_seconds=1.0),
}


@pytest.fixture(params=EXECUTORS)
def executor(request):
    made = EXECUTORS[request.param]()
    yield made
    made.close()


class TestEveryExecutor:
    def test_a_run_that_ends_well_is_finished_and_has_what_it_logged(self, executor, make_job):
        job = make_job(script=LOGS, level="fixed-seed", seed=5)
        record = executor.execute(job)
        assert (record.state, record.exit_code, record.reason) == (RunState.FINISHED, 0, "")
        assert record.results == {"test_acc": 0.5}
        assert record.series["acc"].values == (0.25, 0.5)
        assert record.series["acc"].steps == (1.0, 2.0)
        assert record.sources == {"acc": "log", "test_acc": "log"}
        assert (record.cell, record.attempt, record.seed_used) == (job.cell, 1, 5)

    def test_a_run_that_fails_is_a_record_with_its_reason_and_log(self, executor, make_job):
        record = executor.execute(make_job(script=FAILS))
        assert (record.state, record.exit_code) == (RunState.FAILED, 1)
        assert record.reason == "exit code 1: ValueError: no data"
        assert record.log_tail.endswith("ValueError: no data")

    def test_a_run_at_its_time_limit_is_timed_out(self, executor, make_job):
        record = executor.execute(make_job(script=HANGS, time_limit_seconds=0.3))
        assert record.state is RunState.TIMED_OUT
        assert record.exit_code is None
        assert record.reason == "still running after the time limit of 0.3 s"
        assert record.wall_seconds < 10

    def test_after_stop_no_run_is_finished(self, executor, make_job):
        executor.stop()
        record = executor.execute(make_job(script=LOGS))
        assert record.state is RunState.INTERRUPTED
        assert record.results == {}

    def test_every_record_survives_its_way_through_json(self, executor, make_job):
        for script in (LOGS, FAILS):
            record = executor.execute(make_job(script=script))
            assert RunRecord.from_json(record.to_json()) == record

    def test_it_may_be_called_from_as_many_threads_as_it_has_jobs_and_more(self, executor, make_job):
        records = []
        jobs = [make_job(script=LOGS) for _ in range(3)]
        threads = [threading.Thread(target=lambda job=job: records.append(executor.execute(job))) for job in jobs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {record.run_id for record in records} == {f"{job.cell.id}-1" for job in jobs}
        assert all(record.state is RunState.FINISHED for record in records)

    def test_closing_twice_is_fine(self, executor):
        executor.close()
        executor.close()
