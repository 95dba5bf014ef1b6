"""Framed event files survive a cut at any byte."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun.worker import frames

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def fifty_lines() -> list[bytes]:
    return [frames.encode({"kind": "row", "step": step, "values": {"é\n": step / 7}}) for step in range(50)]


def test_a_line_is_its_length_its_crc_and_its_json():
    line = frames.encode({"kind": "note", "t": 1})
    body = b'{"kind":"note","t":1}'
    assert line == b"%d %08x %s\n" % (len(body), zlib.crc32(body), body)
    assert json.loads(body) == frames.decode(line).events[0]


def test_a_file_cut_at_every_byte_gives_exactly_the_whole_records_before_the_cut():
    lines = fifty_lines()
    data = b"".join(lines)
    ends = [sum(map(len, lines[: count + 1])) for count in range(len(lines))]
    for cut in range(len(data) + 1):
        whole = sum(end <= cut for end in ends)
        found = frames.decode(data[:cut])
        assert [event["step"] for event in found.events] == list(range(whole))
        assert found.good_bytes == (ends[whole - 1] if whole else 0)
        assert found.torn_bytes == cut - found.good_bytes


def test_after_a_repair_at_every_byte_of_a_record_an_append_is_readable(tmp_path: Path):
    lines = fifty_lines()[:3]
    data = b"".join(lines)
    for cut in range(len(data) + 1):
        path = tmp_path / f"{cut}.jsonl"
        path.write_bytes(data[:cut])
        before = frames.decode(data[:cut])
        assert frames.repair_tail(path) == before.torn_bytes
        with path.open("ab") as file:
            file.write(frames.encode({"kind": "later"}))
        after = frames.read(path)
        assert after.events == [*before.events, {"kind": "later"}]
        assert after.torn_bytes == 0
        torn = b"".join(kept.read_bytes() for kept in tmp_path.glob(f"{cut}.jsonl.torn-*"))
        assert torn == data[before.good_bytes : cut]


@given(st.lists(st.dictionaries(st.text(), JSON_VALUES, max_size=4), max_size=6), st.binary(max_size=40))
def test_what_was_written_is_read_back_whatever_follows_it(events, junk):
    data = b"".join(map(frames.encode, events))
    found = frames.decode(data + junk + b"\n")
    assert found.events[: len(events)] == events
    assert len(found.events) == len(events)


@pytest.mark.parametrize("position", range(0, 40, 3))
def test_a_flipped_bit_ends_the_reading_there(position):
    lines = fifty_lines()[:3]
    broken = bytearray(lines[1])
    broken[position % len(broken)] ^= 1
    found = frames.decode(lines[0] + bytes(broken) + lines[2])
    assert [event["step"] for event in found.events] == [0]


def test_numbers_that_json_cannot_hold_are_spelled_out():
    value = {"a": float("nan"), "b": [float("inf"), -float("inf"), 1.5]}
    assert frames.spelled(value) == {"a": "NaN", "b": ["Infinity", "-Infinity", 1.5]}
    with pytest.raises(ValueError, match="Out of range"):
        frames.encode(value)


def test_a_missing_file_has_no_events_and_needs_no_repair(tmp_path: Path):
    assert frames.read(tmp_path / "none") == ([], 0, 0)
    assert frames.repair_tail(tmp_path / "none") == 0
