"""A large package is counted by two processes: what they say, and what they refuse, is what one says."""

import dataclasses
import subprocess

import pytest

from isorun.errors import PackageError
from isorun.packages import counting, runs
from isorun.packages.counting import counted_runs
from isorun.packages.reading import open_package
from isorun.packages.writing import PackageWriter
from isorun.study.records import RunState
from isorun.testing.made_records import make_cell, make_record

STARTED = subprocess.Popen


@pytest.fixture
def many(tmp_path, monkeypatch):
    """A package of nine blocks. So few runs of so small blocks are made, so that the test is quick."""
    monkeypatch.setattr(runs, "MOST_RUNS", 3)
    monkeypatch.setattr(counting.os, "sched_getaffinity", lambda _: {0, 1})
    records = [
        make_record(make_cell(seed), points=seed % 4, state=RunState.FAILED if seed % 5 == 0 else RunState.FINISHED)
        for seed in range(1, 27)
    ]
    return written(tmp_path / "many.isorun", sorted(records, key=lambda record: record.cell.id))


def written(path, records):
    with path.open("wb") as file:
        writer = PackageWriter(file)
        writer.add_study({"name": "s"})
        writer.add_records(records)
        writer.finish("s")
    return path


@pytest.fixture
def read_here(monkeypatch):
    """How many blocks this process reads, call by call."""
    seen, count = [], counting._count
    monkeypatch.setattr(
        counting, "_count", lambda package, blocks: (seen.append(len(blocks)), count(package, blocks))[1]
    )
    return seen


def test_two_processes_say_what_one_says(many, read_here):
    with open_package(many) as package:
        alone = counted_runs(package)
        both = counted_runs(package, apart=True)
        assert (alone.runs, alone.points) == (26, package.manifest.points)
    assert both == alone
    assert alone.states == {"finished": 21, "failed": 5}
    assert read_here == [9, 5], "the other four were read by the second process"


def test_small_packages_and_machines_of_one_cpu_need_no_second_process(many, read_here, monkeypatch, tmp_path):
    few = written(tmp_path / "few.isorun", [make_record(make_cell(1))])
    with open_package(few) as package:
        assert counted_runs(package, apart=True).runs == 1
    monkeypatch.setattr(counting.os, "sched_getaffinity", lambda _: {0})
    with open_package(many) as package:
        assert counted_runs(package, apart=True).runs == 26
    assert read_here == [1, 9]


@pytest.mark.parametrize("how", ["killed", "nonsense"])
def test_a_second_process_that_does_not_answer_costs_nothing_but_time(many, read_here, monkeypatch, how):
    words = {"killed": ["sh", "-c", "kill -9 $$"], "nonsense": ["echo", '{"runs": 3}']}[how]
    monkeypatch.setattr(counting.subprocess, "Popen", lambda _, **options: STARTED(words, **options))
    with open_package(many) as package:
        assert counted_runs(package, apart=True).runs == 26
    assert read_here == [5, 4]


def test_what_is_wrong_with_the_last_runs_is_told_as_ever(tmp_path, monkeypatch, many):
    same = make_record(make_cell(1))
    ordered = sorted((make_record(make_cell(seed)) for seed in range(2, 20)), key=lambda record: record.cell.id)
    path = written(tmp_path / "twice.isorun", [*ordered, *(dataclasses.replace(same, cell=ordered[-1].cell),) * 2])
    said = []
    for apart in (False, True):
        with open_package(path) as package, pytest.raises(PackageError, match="stands twice") as raised:
            counted_runs(package, apart=apart)
        said.append((raised.value.what, raised.value.found))
    assert said[0] == said[1]


def test_the_first_of_the_second_half_comes_behind_the_last_of_the_first(many):
    with open_package(many) as package:
        blocks = package.blocks()
        first, second = counting._count(package, blocks[:4]), counting._count(package, blocks[4:])
    assert first.followed_by(second).runs == 26
    with pytest.raises(PackageError, match="not in its place"):
        second.followed_by(first)


def test_two_processes_may_take_no_more_memory_than_one(many, monkeypatch):
    from isorun import packages

    with open_package(many) as package:
        found = counted_runs(package)
        monkeypatch.setattr(packages, "_TOLD", 0)
        monkeypatch.setattr(packages, "_FREE", found.told - 1)
        for apart in (
            False,
            True,
        ):  # the second process knows nothing of less, and each part alone would be let through
            with pytest.raises(PackageError, match="far more comes out"):
                counted_runs(package, apart=apart)
