import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun.errors import ExecutionError
from isorun.execution.resources import Slots, divide, usable_cpus


@given(cpus=st.lists(st.integers(0, 255), min_size=1, max_size=64, unique=True), data=st.data())
def test_slots_are_disjoint_equally_large_and_as_large_as_possible(cpus, data):
    jobs = data.draw(st.integers(1, len(cpus)))
    slots = divide(cpus, jobs)
    used = [cpu for slot in slots for cpu in slot]
    assert len(slots) == jobs
    assert len(set(used)) == len(used)
    assert set(used) <= set(cpus)
    assert {len(slot) for slot in slots} == {len(cpus) // jobs}


@pytest.mark.parametrize("jobs", [0, -1, 3])
def test_jobs_that_do_not_fit_are_refused_with_the_largest_number_that_fits(jobs):
    with pytest.raises(ExecutionError) as caught:
        divide([4, 5], jobs)
    assert caught.value.found == "2 CPUs that this process may use"
    assert caught.value.allowed == "--jobs from 1 to 2"


def test_one_job_has_all_cpus():
    assert sorted(Slots(1).slots[0]) == sorted(os.sched_getaffinity(0)) == sorted(usable_cpus())


def test_declared_threads_take_the_first_cpus_of_the_slot():
    with Slots(2, cpus=[0, 1, 2, 3, 4, 5]).lend(2) as cpus:
        assert cpus == (0, 1)


@pytest.mark.parametrize(("threads", "hint"), [(2, "--jobs 2"), (4, "--jobs 1"), (5, "lower `threads`"), (0, "lower")])
def test_threads_that_fit_no_slot_are_refused_with_the_jobs_that_would_fit(threads, hint):
    with pytest.raises(ExecutionError) as caught:
        Slots(4, cpus=[0, 1, 2, 3]).check(threads)
    assert caught.value.hint.startswith(hint)
    assert caught.value.allowed == "threads from 1 to 1"


def test_a_slot_is_lent_to_one_run_at_a_time_and_comes_back_after_an_error():
    slots = Slots(1, cpus=[7])
    got = threading.Event()

    def second():
        with slots.lend():
            got.set()

    def first():
        with slots.lend():
            thread.start()
            assert not got.wait(0.05)
            raise KeyError

    thread = threading.Thread(target=second)
    with pytest.raises(KeyError):
        first()
    assert got.wait(5)
    thread.join()


def test_two_slots_are_never_the_same():
    slots = Slots(2, cpus=[0, 1])
    with slots.lend() as first, slots.lend() as second:
        assert {first, second} == {(0,), (1,)}
