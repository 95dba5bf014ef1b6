"""What all commands print and write alike."""

import json
import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun.cli import print_json, write_file
from isorun.errors import InputError

NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers()
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=30,
)


def printed(value, capsys):
    capsys.readouterr()
    print_json(value)
    return capsys.readouterr().out


@pytest.fixture(scope="module")
def capture():
    """Standard output as text, for tests that print many times."""
    import contextlib
    import io

    def run(value):
        stream = io.StringIO()
        with contextlib.redirect_stdout(stream):
            print_json(value)
        return stream.getvalue()

    return run


@given(JSON)
def test_what_is_printed_reads_back_as_it_was(capture, value):
    assert json.loads(capture(value)) == value


@given(st.lists(JSON, max_size=6))
def test_an_iterator_is_printed_as_a_list_an_item_a_line(capture, items):
    text = capture(iter(items))
    assert json.loads(text) == items
    assert text.count("\n") == (len(items) + 2 if items else 1)


def test_what_a_terminal_could_act_on_is_escaped_and_reads_back(capture):
    hostile = "\x9b31m\x7f\u202e\udc80\x1b[2J é 漢"
    text = capture({hostile: [hostile]})
    assert json.loads(text) == {hostile: [hostile]}
    assert not set("\x9b\x7f\u202e\udc80\x1b") & set(text)
    assert "é 漢" in text


def test_numbers_stand_on_one_line_and_the_rest_on_lines_of_its_own(capsys):
    assert printed({"a": [1, 2.5, None], "b": ["x", "y"], "c": {}}, capsys) == (
        '{\n  "a": [1, 2.5, null],\n  "b": [\n    "x",\n    "y"\n  ],\n  "c": {}\n}\n'
    )


def test_a_number_json_has_no_sign_for_is_refused(capsys):
    with pytest.raises(ValueError, match="Out of range"):
        printed({"a": [float("nan")]}, capsys)


def test_a_file_that_cannot_be_written_leaves_nothing_behind(tmp_path, monkeypatch):
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        write_file(tmp_path / "folder", "text", "html")
    with pytest.raises(InputError, match="cannot be written"):
        write_file(tmp_path / "missing" / "a.html", "text", "html")
    with pytest.raises(InputError, match="cannot be written"):
        write_file("/", "text", "html")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_written_file_follows_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        write_file(tmp_path / "a.html", "text", "html")
    finally:
        os.umask(before)
    assert (tmp_path / "a.html").stat().st_mode & 0o777 == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["a.html"]


def test_what_is_no_file_is_written_to_and_never_replaced(tmp_path):
    pipe, heard = tmp_path / "pipe", []
    os.mkfifo(pipe)
    listener = threading.Thread(target=lambda: heard.append(pipe.read_text()))
    listener.start()
    write_file(pipe, "a report", "html")
    listener.join(10)
    assert heard == ["a report"]
    assert pipe.is_fifo()


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "link.html").symlink_to(tmp_path / "real.html")
    write_file(tmp_path / "link.html", "a report", "html")
    assert (tmp_path / "link.html").is_symlink()
    assert (tmp_path / "real.html").read_text() == "a report"
