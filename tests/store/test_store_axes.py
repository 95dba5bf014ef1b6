"""Axes are packed small and keep what they promise."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun.store import content
from isorun.store.content import pack_axis, unpack_axes, unpack_axis

floats = st.floats(allow_nan=True, allow_infinity=True)
times = st.lists(st.floats(0, 1e7), min_size=1, max_size=40).map(sorted)


def unpacked(steps, seconds):
    return tuple(map(np.asarray, unpack_axis(pack_axis(steps, seconds))))


@given(st.lists(st.tuples(floats, floats), max_size=30))
def test_steps_are_exact_whatever_they_are(points):
    steps = [step for step, _ in points]
    found, _ = unpacked(steps, [second for _, second in points])
    np.testing.assert_array_equal(found, steps)


@given(times)
def test_seconds_are_within_the_promised_part_of_the_longest_gap(seconds):
    _, found = unpacked(range(len(seconds)), seconds)
    longest = max(np.diff(seconds), default=0.0)
    assert np.abs(found - seconds).max() <= max(longest / 65_000, 2.0**-41)


@given(st.lists(st.tuples(floats, floats), max_size=30))
def test_rounding_twice_changes_nothing(points):
    first = unpacked(*zip(*points, strict=True)) if points else unpacked([], [])
    second = unpacked(*first)
    np.testing.assert_array_equal(first, second)


def test_an_axis_whose_parts_do_not_fit_together_is_refused():
    packed = pack_axis(range(5), [0.0, 1.0, 2.0, 3.0, 4.0])
    for changed in (packed._replace(points=10**12), packed._replace(seconds=b""), packed._replace(steps=bytes(8))):
        with pytest.raises(ValueError, match="an axis of"):
            unpack_axis(changed)


def test_whole_and_half_seconds_are_exact():
    seconds = [0.0, 0.5, 1.0, 2.5, 100.0]
    assert unpacked(range(5), seconds)[1].tolist() == seconds


def test_a_regular_axis_costs_two_bytes_a_point():
    packed = pack_axis(range(200), [1.01 * number for number in range(200)])
    assert packed.steps is None
    assert len(packed.seconds) == 2 * 199


def test_seconds_that_go_back_are_kept_as_they_are():
    seconds = [0.1, 0.3, 0.2]
    assert unpacked(range(3), seconds)[1].tolist() == seconds


@given(st.lists(st.tuples(floats, floats), max_size=30), times)
def test_many_points_are_packed_to_the_bits_of_few(points, seconds):
    columns = [list(column) for column in zip(*points, strict=True)] or [[], []]
    axes = [columns, [list(range(len(seconds))), seconds]]
    few = [pack_axis(*axis) for axis in axes]
    with mock.patch.object(content, "_FEW", -1):
        content._range.cache_clear()
        assert repr([pack_axis(*axis) for axis in axes]) == repr(few)
    content._range.cache_clear()


@given(st.lists(times, max_size=6))
def test_many_axes_are_unpacked_to_the_bits_of_each(columns):
    axes = [pack_axis(range(3, 3 + len(seconds)), seconds) for seconds in columns]
    with mock.patch.object(content, "_AT_ONCE", 5):
        found = unpack_axes(axes)
    assert set(found) == {axis for axis in axes if axis.exponent is not None}
    for axis, together in found.items():
        assert [column.tobytes() for column in together] == [column.tobytes() for column in unpack_axis(axis)]


def test_what_is_damaged_is_not_unpacked_with_the_others():
    whole = pack_axis(range(5), [0.0, 1.0, 2.0, 3.0, 4.0])
    damaged = [
        whole._replace(points=6),
        whole._replace(points="5"),
        whole._replace(seconds=whole.seconds[1:]),
        whole._replace(seconds="12345678"),
        whole._replace(exponent=5000),
        whole._replace(first_tick=2**62),
        whole._replace(first_tick=1.5),
        whole._replace(stride=None),
    ]
    assert list(unpack_axes([*damaged, whole])) == [whole]
