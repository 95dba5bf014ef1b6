"""Runs by the start of their ids, in one store and in two; this machine without a training."""

import subprocess
import sys

import pytest

import isorun
from isorun import describing, session
from isorun.errors import ExecutionError, NothingRecorded
from isorun.study.records import RunState
from isorun.testing.memory_store import MemoryStore
from record_builder import make_cell, make_record


def store_of(*records):
    store = MemoryStore()
    for record in records:
        store.finish(record)
    return store


FAILED = make_record(make_cell(repeat=0), attempt=1, state=RunState.FAILED)
AGAIN = make_record(make_cell(repeat=0), attempt=2)
OTHER = make_record(make_cell(repeat=1), launch="fresh")
ID = AGAIN.cell.id


def test_a_run_is_found_by_its_id_its_cell_and_the_start_of_either():
    store = store_of(FAILED, AGAIN, OTHER)
    assert session.run_named(f"{ID}-1", store).state is RunState.FAILED
    for name in (f"{ID}-2", ID, ID[:9], f"{ID}-"):
        assert session.run_named(name, store).run_id == AGAIN.run_id
    assert session.run_named(OTHER, store) is OTHER


def test_an_id_that_is_not_there_lists_close_ones():
    with pytest.raises(NothingRecorded) as seen:
        session.run_named(f"{ID[:-1]}x", store_of(AGAIN, OTHER))
    assert seen.value.allowed.startswith(f"close ones: {AGAIN.run_id}")
    with pytest.raises(NothingRecorded, match="there is no run"):
        session.run_named("zz", MemoryStore())


def test_a_start_of_several_ids_lists_them():
    cells = [make_record(make_cell(repeat=number)) for number in range(40)]
    with pytest.raises(NothingRecorded, match="several runs begin with") as seen:
        session.run_named(
            next(first for first in "0123456789abcdef" if sum(one.run_id[0] == first for one in cells) > 1),
            store_of(*cells),
        )
    assert "write more of the id" in seen.value.hint
    with pytest.raises(NothingRecorded):
        session.run_named("", store_of(*cells))


def test_a_package_is_no_run_and_the_way_to_its_runs_is_told():
    with pytest.raises(NothingRecorded, match="is a package, not a run") as seen:
        session.run_named("resnet56.isorun")
    assert "isorun report resnet56.isorun --full lists its runs" in seen.value.hint
    assert "RUN --store resnet56.isorun" in seen.value.hint


def test_runs_of_two_stores_are_compared():
    found = isorun.env_diff(ID, OTHER.cell.id, store=store_of(AGAIN), second_store=store_of(OTHER))
    assert [item.what for item in found.differences] == ["launch"]
    assert isorun.env_diff(AGAIN, OTHER).differences == found.differences


@pytest.mark.slow
def test_this_machine_is_described_without_a_training(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = isorun.env_describe(python=sys.executable)
    assert found.run == ""
    assert f"CPython {sys.version.split()[0]}" in found.sentence
    assert "numpy" in found.sentence
    assert list(tmp_path.iterdir()) == []


def test_an_interpreter_that_is_none_is_refused():
    with pytest.raises(ExecutionError):
        isorun.env_describe(python="/no/such/python")


def test_devices_are_those_that_nvidia_lists(tmp_path, monkeypatch):
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'NVIDIA H200, 570.86.15'\necho 'NVIDIA H200, 570.86.15'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert describing._devices() == {"devices": ["NVIDIA H200"] * 2, "driver": "570.86.15"}
    tool.write_text("#!/bin/sh\necho broken, very\nexit 9\n")
    assert describing._devices() == {}


def test_what_imports_print_does_not_reach_the_answer(monkeypatch):
    def answered(*_, **__):
        return subprocess.CompletedProcess([], 0, stdout="hello {", stderr="")

    monkeypatch.setattr(describing.subprocess, "run", answered)
    with pytest.raises(ExecutionError, match="cannot tell its environment"):
        describing._asked(sys.executable)
