"""Ticks say where they are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun.report.figures.axes import value_axis
from isorun.report.figures.svg import text_width


@pytest.mark.parametrize(
    ("high", "labels"), [(15.0, ["0.0", "2.5", "5.0"]), (150.0, ["0", "25", "50"]), (1.5, ["0.00", "0.25", "0.50"])]
)
def test_steps_of_two_and_a_half_have_their_decimals(high, labels):
    assert [tick.label for tick in value_axis("x", [0.0, high]).ticks][:3] == labels


@given(st.floats(min_value=-1e6, max_value=1e6), st.floats(min_value=1e-4, max_value=1e6))
def test_a_tick_s_label_is_its_place(low, width):
    for tick in value_axis("x", [low, low + width]).ticks:
        assert float(tick.label.replace(",", "")) == pytest.approx(tick.at, abs=1e-9 * max(1.0, abs(low), width))


def test_wide_letters_take_more_room():
    assert text_width("iiii") < text_width("nnnn") < text_width("WWWW")
    assert text_width("漢字") == 26


def test_where_all_is_zero_there_is_no_scale():
    assert [tick.label for tick in value_axis("x", [0.0, 0.0, -0.0]).ticks] == ["0"]


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([9.5e8, 1.04e9], ["9.6e+08", "9.8e+08", "1.00e+09", "1.02e+09", "1.04e+09"]),
        ([9.72e-9, 1.055e-8], ["9.8e-09", "1.00e-08", "1.02e-08", "1.04e-08"]),
        ([-2e9, 3e9], ["-2e+09", "-1e+09", "0", "1e+09", "2e+09", "3e+09"]),
    ],
)
def test_ticks_of_very_large_and_very_small_numbers_are_told_apart(values, labels):
    ticks = value_axis("loss", values).ticks
    assert [tick.label for tick in ticks] == labels
    assert [float(tick.label) for tick in ticks] == pytest.approx([tick.at for tick in ticks], rel=1e-9, abs=1e-30)
