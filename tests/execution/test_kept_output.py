import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun.execution.output import BoundedLog, LineSplitter, LiveRows, Output, Secrets, last_row, readable_tail
from isorun.worker.runfolder import create


def lines_of(pieces, line_bytes=1000):
    got = []
    splitter = LineSplitter(lambda line, seconds: got.append((line, seconds)), line_bytes)
    for seconds, piece in enumerate(pieces):
        splitter.write(piece, float(seconds))
    splitter.close(99.0)
    return got, splitter


@given(data=st.binary(max_size=400), cuts=st.lists(st.integers(0, 400), max_size=8))
def test_lines_do_not_depend_on_how_the_bytes_arrive(data, cuts):
    ends = sorted({min(cut, len(data)) for cut in cuts} | {len(data)})
    pieces = [data[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    whole = [line for line, _ in lines_of([data])[0]]
    assert [line for line, _ in lines_of(pieces)[0]] == whole
    expected = [part for part in data.replace(b"\r", b"\n").split(b"\n") if part]
    assert whole == [part.decode("utf-8", "replace") for part in expected]


def test_each_line_has_the_time_at_which_its_end_was_read():
    got, _ = lines_of([b"a\nb", b"b\rc", b""])
    assert got == [("a", 0.0), ("bb", 1.0), ("c", 99.0)]


def test_a_line_longer_than_the_limit_is_passed_on_once_cut_and_counted():
    got, splitter = lines_of([b"x" * 1500, b"x" * 1500, b"\nnext\n"])
    assert [line for line, _ in got] == ["x" * 1000, "next"]
    assert splitter.cut_lines == 1


def test_a_hundred_megabyte_line_takes_little_memory():
    splitter = LineSplitter(lambda _line, _seconds: None)
    piece = b"y" * 262_144
    tracemalloc.start()
    for _ in range(400):
        splitter.write(piece, 0.0)
    splitter.close(1.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert splitter.cut_lines == 1
    assert peak < 2_000_000


@given(pieces=st.lists(st.binary(max_size=60), max_size=30))
def test_a_log_keeps_everything_or_its_start_and_end_and_says_how_much_is_missing(pieces, tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "output.log"
    log = BoundedLog(path, head_bytes=50, tail_bytes=40)
    for piece in pieces:
        log.write(piece)
    data, end = b"".join(pieces), log.end()
    log.close()
    kept = path.read_bytes()
    if len(data) <= 90:
        assert kept == data
        assert end == data
    else:
        assert kept == data[:50] + f"\n[isorun: {len(data) - 90} bytes were cut here]\n".encode() + data[-40:]
        assert end
        assert data.endswith(end)


def test_a_log_that_prints_gigabytes_stays_small_in_memory_and_on_disk(tmp_path):
    log = BoundedLog(tmp_path / "output.log", head_bytes=10_000, tail_bytes=40_000)
    tracemalloc.start()
    for number in range(20_000):
        log.write(b"%07d\n" % number * 100)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    log.close()
    assert peak < 500_000
    assert (tmp_path / "output.log").stat().st_size < 50_100


def test_a_full_disk_does_not_end_the_run_and_is_kept_as_a_failure(tmp_path):
    log = BoundedLog(tmp_path / "output.log", head_bytes=4)
    log._file.close()
    with Path("/dev/full").open("wb", buffering=0) as full:
        log._file = full
        log.write(b"abcdefgh")
        log.close()
    assert "No space left" in log.failure
    assert log.end() == b"abcdefgh"


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"a\rb\rc\n", "c"),
        (b"progress 10%\rprogress 100%\r\ndone\n", "progress 100%\ndone"),
        (b"half \xff\xfe bytes", "half \ufffd\ufffd bytes"),
        (b"nul\0byte", "nul\ufffdbyte"),
        (b"", ""),
        (b"bar\r", "bar"),
        (b"\x1b[0;31mNameError\x1b[0m: \x1b[1mx\x1b[0m", "NameError: x"),
    ],
)
def test_a_tail_reads_as_a_terminal_would_show_it(raw, shown):
    assert readable_tail(raw) == shown


class TestOutput:
    def output(self, folder):
        self.lines, self.path = [], folder / "output.log"
        self.log = BoundedLog(self.path, secrets=Secrets(["hunter2-secret"]))
        return Output(self.log, LineSplitter(lambda *line: self.lines.append(line)))

    def test_what_was_read_waits_and_keeps_its_times(self, tmp_path):
        output = self.output(tmp_path)
        for data, seconds in ((b"a: 1\rb: hunter2-se", 0.5), (b"cret\nc", 0.75), (b": 3\n", 1.0)):
            output.write(data, seconds)
        assert self.lines == []
        output.take_in()
        assert self.lines == [("a: 1", 0.5), ("b: hunter2-secret", 0.75), ("c: 3", 1.0)]
        assert self.path.read_bytes() == b"a: 1\rb: <redacted>\nc: 3\n"
        output.write(b"d", 2.0)
        output.close(3.0)
        assert self.lines[3:] == [("d", 3.0)]
        self.log.close()

    def test_much_does_not_wait(self, tmp_path):
        output = self.output(tmp_path)
        for number in range(100):
            output.write(b"x" * 999 + b"\n", float(number))
        assert 50 < len(self.lines) < 100
        self.log.close()


FIRST = {"t": 1.0, "step": 1.0, "values": {"loss": 0.5, "hunter2-secret": float("nan")}}


class TestLiveRows:
    def live(self, folder, *printed):
        rows = iter(printed)
        return LiveRows(folder, lambda: next(rows, {}), Secrets(["hunter2-secret"]))

    def test_what_is_printed_is_told_without_secrets_and_left_from_the_second_look_on(self, tmp_path):
        live = self.live(tmp_path, FIRST)
        (row,) = live.rows()
        assert row == {"kind": "row", "t": 1.0, "step": 1.0, "values": {"loss": 0.5, "<redacted>": "NaN"}}
        assert list(tmp_path.iterdir()) == []
        assert live.rows() == ()
        assert last_row(tmp_path) == row
        assert [path.name for path in tmp_path.iterdir()] == ["printed.json"]
        assert (tmp_path / "printed.json").stat().st_mode & 0o777 == 0o600

    def test_what_is_printed_is_left_the_more_seldom_the_longer_a_run_goes_on(self, tmp_path):
        printed = [{"t": float(look), "step": None, "values": {"loss": 0.5}} for look in range(1, 121)]
        live, left = self.live(tmp_path, *printed), []
        for _ in printed:
            live.rows()
            left.append(int(last_row(tmp_path).get("t", 0)))
        assert left[:9] == [0, 2, 3, 4, 5, 6, 7, 8, 8]
        assert all(look - seen < 5 for look, seen in enumerate(left[1:], start=2))
        assert len(set(left)) < 40

    def test_what_a_training_logs_itself_comes_before_what_it_prints(self, tmp_path):
        events = create(tmp_path / "events.jsonl")
        events.append({"kind": "row", "t": 0.1, "step": 7, "values": {"acc": 0.9}})
        events.flush()
        live = self.live(tmp_path, FIRST, FIRST)
        assert [row["values"] for row in (*live.rows(), *live.rows())] == [{"acc": 0.9}]
        live.close()
        (tmp_path / "printed.json").write_text(json.dumps(FIRST))
        assert last_row(tmp_path)["step"] == 7

    @pytest.mark.parametrize("text", ["", "{", "[1]", '{"values": 3}', "[" * 100_000])
    def test_a_damaged_row_is_none(self, tmp_path, text):
        (tmp_path / "printed.json").write_text(text)
        assert last_row(tmp_path) == {}
