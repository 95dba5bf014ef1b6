"""A word while a computation takes long: none for short ones, an estimate where known, a clean line at the end."""

import io
import time
from pathlib import Path

import pytest

from isorun import cli
from isorun.analysis.evidence import Condition
from isorun.cli import Waiting, data, duration
from isorun.cli.data import TransferProgress
from isorun.cli.progress import Progress
from record_builder import make_study


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(cli, "_SILENT_SECONDS", 0.02)
    monkeypatch.setattr(cli, "_FIRST_LINE_SECONDS", 0.02)
    monkeypatch.setattr(cli, "_EVERY", 0.01)


def until(condition):
    ends = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.005)


def test_a_short_computation_is_not_spoken_of(monkeypatch):
    monkeypatch.setattr(cli, "_SILENT_SECONDS", 60)
    stream = Terminal()
    Waiting("power", stream).end()
    assert stream.getvalue() == ""


def test_on_a_terminal_the_line_is_rewritten_and_goes_away():
    stream = Terminal()
    patient = Waiting("power", stream)
    until(lambda: stream.getvalue().count("isorun power: computing") > 2)
    patient.end()
    assert "\n" not in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_elsewhere_a_line_comes_after_twice_the_time_of_the_one_before():
    stream = io.StringIO()
    patient = Waiting("power", stream)
    until(lambda: stream.getvalue().count("\n") == 3)
    patient.end()
    assert "\x1b" not in stream.getvalue()


def test_the_time_left_is_told_where_it_is_known():
    patient = Waiting("power", io.StringIO())
    assert patient.line(30.0) == "isorun power: computing for 30 s"
    patient.tell(1, 4)
    assert patient.line(30.0) == "isorun power: computing for 30 s, 25% done, about 90 s left"
    patient.tell(0, 0)
    assert patient.line(30.0) == "isorun power: computing for 30 s"
    patient.end()


def test_a_computation_tells_through_the_command_that_waits(monkeypatch, capsys):
    monkeypatch.setattr(cli, "_FIRST_LINE_SECONDS", 60)
    with cli.waiting("power"):
        cli.tell(1, 2)
        assert "50%" in cli._current[-1].line(1.0)
        cli.waiting_is_over()
        cli.tell(1, 2)
    assert cli._current == []
    assert capsys.readouterr().err == ""


def test_a_stream_that_is_closed_ends_no_computation():
    stream = Terminal()
    patient = Waiting("power", stream)
    stream.close()
    time.sleep(0.05)
    patient.end()


def test_a_stream_that_is_closed_ends_no_study():
    stream = Terminal()
    progress = Progress(make_study(), stream)
    stream.close()
    progress.warned(Condition("odd", "something is odd", "look at it"))


def test_a_line_that_is_rewritten_fits_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    stream = Terminal()
    progress = TransferProgress(stream)
    progress.begins(Path("a-file-of-a-long-name.tar.gz"), 0, 100)
    monkeypatch.setattr(data, "_EVERY", 0.0)
    progress.moved(50)
    assert stream.getvalue() == "\r\x1b[Ka-file-of-a-long-na"


def test_durations_are_said_as_people_say_them():
    assert [duration(seconds) for seconds in (3, 200, 7200)] == ["3 s", "3 min", "2.0 h"]
