import os
import threading
from collections import Counter
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun.errors import ExecutionError
from isorun.execution.resources import Devices, Slots, check_memory, divide, usable_cpus


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


@pytest.fixture
def gpus(tmp_path, monkeypatch):
    """A function that puts an `nvidia-smi` into PATH which lists so many GPUs."""
    for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)

    def put(number):
        folder = tmp_path / "driver"
        folder.mkdir(exist_ok=True)
        lines = "".join(f"GPU {n}: NVIDIA H200 (UUID: GPU-{n:08x})\\n" for n in range(number))
        (folder / "nvidia-smi").write_text(f'#!/bin/sh\n[ "$1" = -L ] && printf "{lines}"\n')
        (folder / "nvidia-smi").chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    return put


def lent(devices, *counts, **variables):
    """What runs that are there at the same time get."""
    with ExitStack() as stack:
        return [stack.enter_context(devices.lend(count, variables)) for count in counts]


def test_devices_are_found_by_asking_the_driver(gpus):
    gpus(3)
    assert Devices().names == ("0", "1", "2")


def test_four_runs_on_two_devices_see_one_each_and_share_them(gpus):
    gpus(2)
    runs = lent(Devices(jobs=4), None, None, None, None)
    assert [run.names for run in runs] == [("0",), ("1",), ("0",), ("1",)]
    assert runs[0].variables == {"CUDA_VISIBLE_DEVICES": "0", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    assert all(run.shared for run in runs)
    assert runs[1].recorded == ["cuda:1"]


def test_two_runs_on_two_devices_share_nothing(gpus):
    gpus(2)
    runs = lent(Devices(jobs=2), None, None)
    assert [run.names for run in runs] == [("0",), ("1",)]
    assert not any(run.shared for run in runs)


def test_one_run_at_a_time_sees_all_devices_as_they_are(gpus):
    gpus(2)
    (run,) = lent(Devices(), None)
    assert (run.names, run.variables) == (("0", "1"), {})


def test_a_device_that_was_given_back_is_free_again(gpus):
    gpus(2)
    devices = Devices(jobs=2)
    for _ in range(3):
        first, second = lent(devices, None, None)
        assert not first.shared
        assert not second.shared


def test_a_run_may_ask_for_several_devices(gpus):
    gpus(4)
    runs = lent(Devices(jobs=2), 2, 2)
    assert [run.variables["CUDA_VISIBLE_DEVICES"] for run in runs] == ["0,1", "2,3"]
    with pytest.raises(ExecutionError, match="asks for 5 devices a run") as caught:
        lent(Devices(jobs=2), 5)
    assert caught.value.allowed == "devices_per_run from 0 to 4"


def test_no_device_is_hidden_from_a_run_that_asks_for_none(gpus):
    gpus(2)
    for devices, count in ((Devices("none"), None), (Devices(), 0)):
        (run,) = lent(devices, count)
        assert run.names == ()
        assert run.variables["CUDA_VISIBLE_DEVICES"] == "-1"


def test_where_there_is_no_device_nothing_is_set(gpus):
    gpus(0)
    (run,) = lent(Devices(jobs=2), None)
    assert (run.names, run.variables, run.shared) == ((), {}, False)
    with pytest.raises(ExecutionError, match="asks for 1 device a run"):
        lent(Devices(jobs=2), 1)


def test_what_the_user_made_visible_is_what_is_divided(gpus, monkeypatch):
    gpus(8)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-aa, 3")
    runs = lent(Devices(jobs=2), None, None)
    assert [run.variables for run in runs] == [{"CUDA_VISIBLE_DEVICES": "GPU-aa"}, {"CUDA_VISIBLE_DEVICES": "3"}]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert Devices(jobs=2).names == ()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,-1,3")
    assert Devices(jobs=2).names == ("2",)


def test_variables_of_amd_are_divided_too_and_only_the_one_that_is_set(gpus, monkeypatch):
    gpus(0)
    monkeypatch.setenv("ROCR_VISIBLE_DEVICES", "4,5")
    runs = lent(Devices(jobs=2), None, None)
    assert [run.variables for run in runs] == [{"ROCR_VISIBLE_DEVICES": "4"}, {"ROCR_VISIBLE_DEVICES": "5"}]
    assert runs[0].recorded == ["rocm:4"]


def test_devices_that_the_study_names_are_left_as_they_are_and_counted(gpus):
    gpus(2)
    runs = lent(Devices(jobs=2), None, None, CUDA_VISIBLE_DEVICES="1")
    assert [(run.names, run.variables, run.shared) for run in runs] == [(("1",), {}, True)] * 2


def test_a_list_chooses_among_those_that_are_visible(gpus):
    gpus(3)
    assert Devices("2,0").names == ("2", "0")
    (run,) = lent(Devices("1"), None)
    assert run.variables["CUDA_VISIBLE_DEVICES"] == "1"
    for wrong in ("7", "0,0", "", "0,,1"):
        with pytest.raises(ExecutionError, match="--devices") as caught:
            Devices(wrong)
        assert caught.value.found == "0, 1, 2"


@given(number=st.integers(1, 6), jobs=st.integers(1, 8), asked=st.lists(st.integers(0, 6), max_size=12))
def test_no_device_is_shared_while_another_one_is_free(number, jobs, asked):
    names = ",".join(map(str, range(number)))
    devices = Devices("auto", jobs, {"CUDA_VISIBLE_DEVICES": names})
    uses = Counter()
    with ExitStack() as stack:
        for count in asked:
            if count > number:
                continue
            run = stack.enter_context(devices.lend(count, {}))
            assert len(run.names) == count
            free = {name for name in devices.names if not uses[name]}
            uses.update(run.names)
            assert run.shared == any(uses[name] > 1 for name in run.names)
            assert not run.shared or free <= set(run.names)


def test_more_memory_than_there_is_is_refused():
    check_memory(None)
    check_memory(1)
    with pytest.raises(ExecutionError, match="more memory than this machine has"):
        check_memory(2**60)
