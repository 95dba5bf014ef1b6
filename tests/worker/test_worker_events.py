"""Event files survive a cut at any byte, and lines that are missing, doubled or out of their place are noticed."""

from __future__ import annotations

import json
import os
import random
import threading
import time
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun.worker import runfolder
from isorun.worker.runfolder import EventReader

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def lines(count: int) -> list[bytes]:
    return [runfolder.encode(step, {"kind": "row", "step": step, "values": {"é\n": step / 7}}) for step in range(count)]


def old_line(event: dict) -> bytes:
    """A line as the first protocol had them, without a number."""
    body = json.dumps(event).encode()
    return b"%d %08x %s\n" % (len(body), zlib.crc32(body), body)


def read(path: Path, data: bytes) -> tuple[list[dict], EventReader]:
    path.write_bytes(data)
    reader = EventReader(path)
    return reader.events(), reader


def test_a_line_is_length_crc_number_and_json():
    line = runfolder.encode(7, {"kind": "note", "t": 1})
    body = b'7 {"kind":"note","t":1}'
    assert line == b"%d %08x %s\n" % (len(body), zlib.crc32(body), body)


def test_a_file_cut_at_every_byte_gives_exactly_the_whole_events_before_the_cut(tmp_path):
    whole_lines = lines(12)
    data = b"".join(whole_lines)
    ends = [sum(map(len, whole_lines[: count + 1])) for count in range(len(whole_lines))]
    for cut in range(len(data) + 1):
        whole = sum(end <= cut for end in ends)
        found, reader = read(tmp_path / "x", data[:cut])
        assert [event["step"] for event in found] == list(range(whole))
        assert reader.good_bytes == (ends[whole - 1] if whole else 0)
        assert reader.unread_bytes == cut - reader.good_bytes
        reader.close()


@given(st.lists(st.dictionaries(st.text(), JSON_VALUES, max_size=4), max_size=6), st.binary(max_size=40))
def test_what_was_written_is_read_back_whatever_follows_it(tmp_path_factory, written, junk):
    data = b"".join(runfolder.encode(number, event) for number, event in enumerate(written))
    found, reader = read(tmp_path_factory.mktemp("events") / "x", data + junk + b"\n")
    assert found == written
    assert reader.good_bytes == len(data)
    assert reader.problem or not junk.strip()


@pytest.mark.parametrize("position", range(0, 40, 3))
def test_a_flipped_bit_ends_the_reading_there(tmp_path, position):
    three = lines(3)
    broken = bytearray(three[1])
    broken[position % len(broken)] ^= 1
    found, reader = read(tmp_path / "x", three[0] + bytes(broken) + three[2])
    assert [event["step"] for event in found] == [0]
    assert reader.problem
    assert reader.unread_bytes == len(three[1]) + len(three[2])


@pytest.mark.parametrize(
    ("order", "good"),
    [((0, 2, 1, 3), 1), ((0, 1, 1, 2), 2), ((0, 2, 3), 1), ((1, 2, 3), 0), ((0, 1, 2, 0), 3), ((0, 0), 1)],
    ids=["swapped", "doubled", "missing", "without-the-first", "from-the-start-again", "the-first-twice"],
)
def test_lines_that_are_missing_doubled_or_swapped_are_noticed(tmp_path, order, good):
    four = lines(4)
    found, reader = read(tmp_path / "x", b"".join(four[number] for number in order))
    assert [event["step"] for event in found] == list(range(good))
    assert f"number {good} is missing" in reader.problem


@given(st.permutations(range(12)), st.lists(st.integers(0, 11), max_size=3), st.sets(st.integers(0, 11), max_size=3))
def test_any_rearrangement_of_lines_is_noticed_or_is_none(tmp_path_factory, order, doubled, dropped):
    twelve = lines(12)
    kept = [number for number in (*order, *doubled) if number not in dropped]
    found, reader = read(tmp_path_factory.mktemp("events") / "x", b"".join(twelve[number] for number in kept))
    assert [event["step"] for event in found] == kept[: len(found)] == list(range(len(found)))
    assert bool(reader.problem) == (kept != list(range(len(kept))))


def test_lines_without_a_number_do_not_check_wherever_they_stand(tmp_path):
    written = [{"kind": "start", "isorun": 1}, {"kind": "row", "values": {"a": 1}}]
    found, reader = read(tmp_path / "x", b"".join(map(old_line, written)))
    assert found == []
    assert reader.problem
    mixed, reader = read(tmp_path / "y", runfolder.encode(0, written[0]) + old_line(written[1]))
    assert mixed == [written[0]]
    assert reader.problem


def test_a_line_may_be_larger_than_a_block(tmp_path):
    large = [{"data": "x" * 700_000, "n": number} for number in range(3)]
    data = b"".join(runfolder.encode(number, event) for number, event in enumerate(large))
    found, reader = read(tmp_path / "x", data)
    assert found == large
    assert not reader.problem


def test_numbers_that_json_cannot_hold_are_spelled_out(tmp_path):
    value = {"a": float("nan"), "b": [float("inf"), -float("inf"), 1.5]}
    assert runfolder.spelled(value) == {"a": "NaN", "b": ["Infinity", "-Infinity", 1.5]}
    found, _ = read(tmp_path / "x", runfolder.encode(0, value))
    assert found == [runfolder.spelled(value)]


def test_checked_bytes_that_are_no_event_end_the_reading(tmp_path):
    for body in (
        b"1 [1, 2]",
        b'1 {"a": 1},{"b": 2}',
        b"1 nonsense",
        b"1 " + b"[" * 100_000,
        b'1 {"a": 1' + b"0" * 5000,
    ):
        bad = b"%d %08x %s\n" % (len(body), zlib.crc32(body), body)
        found, reader = read(tmp_path / "x", lines(1)[0] + bad + lines(3)[2])
        assert len(found) == 1
        assert reader.problem


@pytest.mark.alone
def test_what_is_no_ordinary_file_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    (tmp_path / "target").write_bytes(b"".join(lines(2)))
    for name in ("fifo", "folder", "zero", "link", "nothing"):
        began = time.monotonic()
        reader = EventReader(tmp_path / name)
        assert reader.events() == []
        assert reader.problem
        assert reader.unread_bytes == 0
        assert time.monotonic() - began < 1
        reader.close()


@pytest.mark.alone
def test_a_file_that_is_too_large_is_left_alone_and_one_of_zeros_is_left_at_once(tmp_path):
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(3 * 2**30)
    reader = EventReader(tmp_path / "huge")
    assert reader.events() == []
    assert "more than the" in reader.problem
    with (tmp_path / "zeros").open("wb") as file:
        file.truncate(runfolder.MAX_FILE_BYTES)
    began = time.monotonic()
    reader = EventReader(tmp_path / "zeros")
    assert reader.events() == []
    assert "line 1 does not check" in reader.problem
    assert time.monotonic() - began < 1


def test_a_writer_stops_at_the_bound_of_readers_and_the_file_shows_it(tmp_path, monkeypatch):
    monkeypatch.setattr(runfolder, "MAX_FILE_BYTES", 500)
    file = runfolder.create(tmp_path / "x")
    for number in range(20):
        file.append({"kind": "row", "step": number})
    assert file.lost > 0
    reader = EventReader(tmp_path / "x")
    found = reader.events()
    assert [event["step"] for event in found] == list(range(20 - file.lost))
    assert reader.unread_bytes == 1


def test_a_reader_goes_on_where_it_stopped_while_the_file_grows(tmp_path):
    file = runfolder.create(tmp_path / "x")
    reader = EventReader(tmp_path / "x")
    assert reader.events() == []
    seen = []
    writer = threading.Thread(target=lambda: [file.append({"n": number}) for number in range(3000)])
    writer.start()
    while writer.is_alive() or len(seen) < 3000:
        seen += [event["n"] for event in reader.events()]
        assert not reader.problem
    assert seen == list(range(3000))


# One fuzzed file: whole lines, then what kills, disks and other programs do to them.
def mutated(source: random.Random) -> bytes:
    parts = lines(source.randint(1, 30))
    for _ in range(source.randint(1, 4)):
        at = source.randrange(len(parts) + 1)
        what = source.randrange(8)
        if what == 0 and parts:
            parts.pop(source.randrange(len(parts)))
        elif what == 1 and parts:
            parts.insert(at, source.choice(parts))
        elif what == 2:
            source.shuffle(parts)
        elif what == 3:
            parts.insert(at, source.randbytes(source.randrange(200)))
        elif what == 4:
            parts.insert(at, bytes(source.randrange(3000)))
        elif what == 5:
            parts.insert(at, old_line({"kind": "row", "t": 0, "values": {"a": 10**400}}))
        elif what == 6:
            body = b'%d {"kind": "%s", "values": %s}' % (at, b"row", b"[" * source.randrange(5000))
            parts.insert(at, b"%d %08x %s\n" % (len(body), zlib.crc32(body), body))
        else:
            whole = bytearray(b"".join(parts))
            for _ in range(source.randint(1, 5)):
                if whole:
                    whole[source.randrange(len(whole))] ^= 1 << source.randrange(8)
            parts = [bytes(whole[: source.randrange(len(whole) + 1)])]
    return b"".join(parts)


def fuzz(folder: Path, count: int) -> int:
    """How many of the files were seen to be damaged; each gives a prefix of what was written, and ends quickly."""
    damaged = 0
    for seed in range(count):
        data = mutated(random.Random(seed))
        found, reader = read(folder / "x", data)
        honest = [event["step"] for event in found if "step" in event]
        assert honest == list(range(len(honest)))
        damaged += bool(reader.problem or reader.unread_bytes)
        reader.close()
    return damaged


def test_damaged_files_give_a_beginning_of_what_was_written(tmp_path):
    assert fuzz(tmp_path, 150) > 100


@pytest.mark.slow
def test_damaged_files_give_a_beginning_of_what_was_written_at_length(tmp_path):
    assert fuzz(tmp_path, 6000) > 5000
