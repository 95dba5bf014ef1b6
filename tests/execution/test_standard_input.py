"""Standard input: every run gets the whole of it, and none is held up by it."""

import errno
import fcntl
import hashlib
import os
import struct
import termios
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from isorun.errors import ExecutionError
from isorun.execution import Job
from isorun.execution.assemble import lost_record
from isorun.execution.resources import StandardInput, read_another_input
from isorun.study.cells import Cell, Level
from isorun.testing.executor_contract import execute


@pytest.fixture
def copied():
    """A function that makes copies of standard input; they are closed when the test is over."""
    made = []

    def make(fd, **options):
        made.append(StandardInput(fd, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def read_all(copy):
    pieces = []
    while piece := os.read(copy.fd, 65536):
        pieces.append(piece)
    copy.close()
    return b"".join(pieces)


@pytest.fixture
def file_with(tmp_path):
    opened = []

    def make(content):
        (tmp_path / "in").write_bytes(content)
        opened.append(os.open(tmp_path / "in", os.O_RDONLY))
        return opened[-1]

    yield make
    for fd in opened:
        os.close(fd)


@pytest.fixture
def pipe():
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)


def test_every_reader_of_a_file_gets_all_of_it_and_the_file_stays_where_it_stands(file_with, copied):
    content = os.urandom(300_000)
    fd = file_with(content)
    os.read(fd, 10)
    given = copied(fd)
    readers = [given.open() for _ in range(3)]
    assert [read_all(reader) for reader in readers] == [content[10:]] * 3
    assert os.lseek(fd, 0, os.SEEK_CUR) == 10


def test_a_copy_does_not_change_with_the_file(file_with, tmp_path, copied):
    given = copied(file_with(b"before"))
    first = given.open()
    (tmp_path / "in").write_bytes(b"after and longer")
    assert [read_all(first), read_all(given.open())] == [b"before", b"before"]


def test_every_reader_of_a_pipe_gets_all_of_it_whenever_it_comes(pipe, copied):
    reading, writing = pipe
    content = os.urandom(500_000)
    given = copied(reading)
    early = given.open()

    def write():
        for start in range(0, len(content), 100_000):
            os.write(writing, content[start : start + 100_000])
            time.sleep(0.01)
        os.close(writing)

    writer = threading.Thread(target=write)
    writer.start()
    assert read_all(early) == content
    writer.join()
    assert read_all(given.open()) == content


@pytest.mark.alone
def test_a_pipe_that_never_ends_holds_nobody_up(pipe, copied):
    reading, writing = pipe
    given = copied(reading)
    began = time.monotonic()
    copy = given.open()
    os.write(writing, b"first")
    assert os.read(copy.fd, 100) == b"first"
    assert time.monotonic() - began < 2
    copy.close()
    given.close()
    os.close(writing)


@pytest.mark.parametrize("path", ["/dev/null", "/"])
def test_nothing_and_folders_are_not_copied(path, copied):
    fd = os.open(path, os.O_RDONLY)
    given = copied(fd)
    assert given.open() is None
    os.close(fd)


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/urandom"])
def test_a_device_that_never_ends_is_refused_by_its_name(path, copied):
    fd = os.open(path, os.O_RDONLY)
    given = copied(fd)
    with pytest.raises(ExecutionError, match=path):
        given.open()
    assert given.identity(5.0) == {"sha256": None, "bytes": 0}
    os.close(fd)


@pytest.fixture
def terminal():
    keyboard, made = os.openpty()
    fcntl.ioctl(made, termios.TIOCSWINSZ, struct.pack("HHHH", 31, 97, 0, 0))
    yield made, keyboard
    os.close(made)
    os.close(keyboard)


def test_of_a_terminal_every_run_has_one_of_its_own_at_which_nobody_types(terminal, copied):
    given, keyboard = terminal
    os.write(keyboard, b"for isorun\n")
    first, second = copied(given).open(), copied(given).open()
    assert os.ttyname(first.fd) not in {os.ttyname(second.fd), os.ttyname(given)}
    assert os.get_terminal_size(first.fd) == (97, 31)
    assert [os.read(first.fd, 100) for _ in range(3)] == [b"", b"", b""]
    assert not first.was_read()
    assert not copied(given).is_there
    first.close()
    second.close()
    assert os.read(given, 100) == b"for isorun\n"


def test_where_there_are_no_terminals_left_the_input_is_empty(terminal, copied, monkeypatch):
    def none_left():
        raise OSError(errno.ENOSPC, "no pseudo-terminal is left")

    monkeypatch.setattr(os, "openpty", none_left)
    assert copied(terminal[0]).open() is None


def test_a_closed_input_is_not_copied(copied):
    reading, writing = os.pipe()
    os.close(reading)
    os.close(writing)
    assert copied(reading).open() is None


ASKS_A_TERMINAL = """
import os, shutil, subprocess
os.environ.pop("COLUMNS", None)  # what a shell exports comes before what a terminal says
size = subprocess.run(["stty", "size"], check=True, stdout=subprocess.PIPE, text=True).stdout
try:
    input()
except EOFError:
    print("nobody types")
print("size", size.strip(), tuple(os.get_terminal_size()), shutil.get_terminal_size().columns)
"""


@pytest.mark.parametrize("launch", ["fresh", "warm"])
def test_a_training_that_asks_for_the_size_of_its_terminal_is_told_that_of_isoruns(
    launch, local, make_job, terminal, copied
):
    executor = local(launch=launch, standard_input=copied(terminal[0]))
    record = execute(executor, make_job(script=ASKS_A_TERMINAL))
    assert record.log_tail == "nobody types\nsize 31 97 (97, 31) 97"
    assert "stdin" not in record.environment["requested"]


def test_a_pipe_that_brings_nothing_is_not_copied(pipe, copied):
    reading, writing = pipe
    os.close(writing)
    assert copied(reading).open() is None


def test_a_file_that_is_too_large_is_refused_before_anything_runs(file_with, copied):
    given = copied(file_with(b"x" * 1000), most_bytes=999)
    with pytest.raises(ExecutionError, match="too large") as caught:
        given.open()
    assert "save it to a file" in caught.value.hint


def test_a_pipe_that_brings_too_much_is_an_error_too(pipe, copied):
    reading, writing = pipe
    given = copied(reading, most_bytes=10)
    copy = given.open()
    os.write(writing, b"x" * 11)
    os.close(writing)
    read_all(copy)
    with pytest.raises(ExecutionError, match="too large"):
        given.check()


def feeders():
    return [thread for thread in threading.enumerate() if thread.name == "standard-input"]


def test_whether_a_file_was_read_its_place_says(file_with, copied):
    given = copied(file_with(b"words"))
    unread, read = given.open(), given.open()
    os.read(read.fd, 1)
    assert [unread.was_read(), read.was_read()] == [False, True]
    unread.close()
    read.close()


@pytest.mark.parametrize("size", [1, 65_536, 300_000])
def test_whether_a_pipe_was_read_is_known_though_it_was_filled(pipe, copied, size):
    reading, writing = pipe
    given = copied(reading)
    unread, read = given.open(), given.open()
    writer = threading.Thread(target=lambda: (os.write(writing, b"x" * size), os.close(writing)))
    writer.start()
    assert os.read(read.fd, 1) == b"x"
    writer.join()
    time.sleep(0.05)
    assert [unread.was_read(), read.was_read()] == [False, True]
    unread.close()
    read.close()


def test_nothing_waits_for_an_endless_pipe_once_the_run_has_ended(pipe, copied):
    reading, writing = pipe
    given = copied(reading)
    before = len(feeders())
    for _ in range(20):
        given.open().close()
    until = time.monotonic() + 5
    while len(feeders()) > before + 1 and time.monotonic() < until:
        time.sleep(0.01)
    assert len(feeders()) <= before + 1  # the one that copies
    os.close(writing)


def test_what_an_input_is_is_known_when_all_of_it_has_come(pipe, copied, file_with):
    reading, writing = pipe
    known = {"sha256": hashlib.sha256(b"words").hexdigest(), "bytes": 5}
    assert copied(file_with(b"words")).identity() == known
    given = copied(reading)
    os.write(writing, b"words")
    assert given.identity(0.05)["sha256"] is None
    os.close(writing)
    assert given.identity(5.0) == known
    assert read_all(given.open()) == b"words"


def run_that_read(content):
    cell = Cell("a", ("true",), "default", {}, "default", {}, Level("default"), None, 0)
    record = lost_record(Job(cell, 1, ("true",), Path("/w"), 1), "")
    stdin = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    return replace(record, environment={"requested": {} if content == b"" else {"stdin": stdin}})


def test_runs_that_read_another_input_are_counted(copied, file_with, pipe):
    made = [run_that_read(content) for content in (b"old", b"new", b"", b"older")]
    assert read_another_input(made, copied(file_with(b"new"))) == 2
    assert read_another_input(made[1:3], copied(file_with(b"new"))) == 0
    assert read_another_input(made, copied(os.open("/dev/null", os.O_RDONLY))) == 3
    reading, writing = pipe
    endless = copied(reading)
    assert read_another_input([run_that_read(b"")], endless) == 0
    assert read_another_input(made, endless, seconds=0.05) == 0  # nobody knows yet
    os.close(writing)
