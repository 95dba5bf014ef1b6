"""Functions as approaches: those of a file are named, typed ones are written down, and the rest is refused."""

import linecache
import math
import os
import runpy
import sys
import types

import pytest

from isorun.errors import StudyError
from isorun.study.cells import cells_of
from isorun.study.design import Study
from isorun.study.functions import reference_to

TYPED = """
import math
import os.path as places
from collections import OrderedDict as Ordered
from random import Random

RATE = 0.5
SIZES = {"layers": [1, 2], "name": ("a", None)}
handle = open

class Base:
    def twice(self, value):
        return 2 * value

class Net(Base):
    rate = RATE

    def forward(self, value):
        return self.twice(value) + math.floor(SIZES["layers"][1] + self.rate)

def half(value):
    return value / 2

def train(seed, scale=RATE, generator=Random):
    steps = [half(step) for step in range(3)]
    return {"value": Net().forward(seed) + sum(steps) * scale, "kind": Ordered, "sep": places.sep}

def uses_socket():
    return connection.send(b"")

def outer():
    def inner():
        return RATE
    return inner

recursive = None
def countdown(number):
    return 0 if number == 0 else countdown(number - 1)
"""


@pytest.fixture
def typed(monkeypatch):
    """What a notebook has: functions of __main__ whose source is known but lies in no file."""
    name = "<typed-1>"
    module = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", module)
    monkeypatch.setitem(linecache.cache, name, (len(TYPED), None, TYPED.splitlines(keepends=True), name))
    exec(compile(TYPED, name, "exec"), module.__dict__)
    return module


def test_a_typed_function_is_written_with_what_it_needs_and_does_the_same(tmp_path, typed):
    reference = reference_to(typed.train, "approaches.a", tmp_path)
    path, name = reference.rsplit(":", 1)
    assert path.startswith(".isorun/functions/train-")
    there = runpy.run_path(str(tmp_path / path))
    assert there[name](3) == typed.train(3)
    assert "uses_socket" not in there


def test_the_file_is_named_by_its_content(tmp_path, typed):
    first = reference_to(typed.train, "a", tmp_path)
    assert reference_to(typed.train, "a", tmp_path) == first
    typed.RATE = 0.25
    assert reference_to(typed.train, "a", tmp_path) != first


def test_a_typed_function_is_an_approach(tmp_path, typed):
    study = Study("s", approaches={"a": typed.train}, folder=tmp_path)
    (cell,) = cells_of(study)
    assert cell.command[0] == "function"
    assert (tmp_path / cell.command[1].rsplit(":", 1)[0]).is_file()


def test_a_function_may_call_itself(tmp_path, typed):
    path, name = reference_to(typed.countdown, "a", tmp_path).rsplit(":", 1)
    assert runpy.run_path(str(tmp_path / path))[name](3) == 0


def test_what_cannot_be_taken_along_is_named_with_the_next_step(tmp_path, typed):
    typed.connection = object()
    with pytest.raises(StudyError, match=r"uses_socket uses connection[\s\S]*a object[\s\S]*inside the function"):
        reference_to(typed.uses_socket, "approaches.a", tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_function_whose_source_nobody_kept_is_refused_with_the_next_step(tmp_path, typed):
    exec(compile("def lost(seed):\n    return 1\n", "<stdin>", "exec"), typed.__dict__)
    with pytest.raises(StudyError, match=r"source of lost is not known[\s\S]*\.py file"):
        reference_to(typed.lost, "approaches.a", tmp_path)


@pytest.mark.parametrize("function", [lambda seed: seed, math.sin, print, "x".join])
def test_only_functions_at_the_top_level_are_taken(tmp_path, function):
    with pytest.raises(StudyError, match="top level"):
        reference_to(function, "approaches.a", tmp_path)


def test_a_function_inside_another_is_refused(tmp_path, typed):
    with pytest.raises(StudyError, match="top level"):
        reference_to(typed.outer(), "approaches.a", tmp_path)


def test_a_function_of_a_file_is_named_by_it(tmp_path):
    reference = reference_to(test_a_function_of_a_file_is_named_by_it, "approaches.a", tmp_path)
    assert reference == f"{__file__}:test_a_function_of_a_file_is_named_by_it"


@pytest.mark.parametrize("umask", [0, 0o022])
@pytest.mark.parametrize("shared", [False, True])
def test_typed_functions_are_for_those_alone_who_may_look_into_the_store(tmp_path, typed, umask, shared):
    store = tmp_path / ".isorun"
    if shared:
        store.mkdir()
        store.chmod(0o2770)
    before = os.umask(umask)
    try:
        path = tmp_path / reference_to(typed.train, "a", tmp_path).rsplit(":", 1)[0]
    finally:
        os.umask(before)
    modes = [found.stat().st_mode & 0o7777 for found in (store, path.parent, path)]
    assert modes == ([0o2770, 0o2770, 0o660] if shared else [0o700, 0o700, 0o600])


def test_a_function_that_an_older_isorun_left_open_is_closed(tmp_path, typed):
    path = tmp_path / reference_to(typed.train, "a", tmp_path).rsplit(":", 1)[0]
    path.parent.chmod(0o777)
    path.chmod(0o666)
    reference_to(typed.train, "a", tmp_path)
    assert (path.parent.stat().st_mode & 0o777, path.stat().st_mode & 0o777) == (0o700, 0o600)
