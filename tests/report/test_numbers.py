"""How numbers are written."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from isorun.report import (
    UNKNOWN,
    count,
    decimals_for,
    fixed,
    memory,
    p_value,
    percentage,
    share_of_size,
    significant,
    style_for,
    whole,
)

ACCURACY = style_for("fraction")
LOSS = style_for("")


@pytest.mark.parametrize(
    ("sd", "decimals"),
    [(0.43, 2), (0.043, 3), (4.3, 1), (43.0, 0), (430.0, 0), (0.0996, 2), (0.996, 1), (1e308, 0), (0.0, 2)],
)
def test_two_significant_digits_of_the_spread_set_the_decimals(sd, decimals):
    assert decimals_for(sd) == decimals


def test_accuracies_are_percent_and_their_differences_points():
    assert ACCURACY.with_unit(ACCURACY.value(0.97104, 0.0043)) == "97.10 %"
    assert ACCURACY.difference_with_unit(ACCURACY.difference(0.0123, 0.0043)) == "1.23 points"
    assert ACCURACY.difference(0.0043) == "0.43"


def test_accuracies_logged_as_percent_are_not_multiplied_again():
    assert style_for("percent").value(97.104, 0.43) == "97.10"


def test_other_numbers_have_no_unit():
    assert LOSS.with_unit(LOSS.value(0.12345, 0.0012)) == "0.1235"
    assert LOSS.value(12.345678, None) == "12.35"


def test_no_difference_is_a_plain_zero_and_a_small_one_is_not():
    assert ACCURACY.difference(0.0) == "0"
    assert ACCURACY.difference(1e-12) == "1.0e-10"


def test_what_is_not_known_is_a_dash():
    assert [ACCURACY.value(None, None), ACCURACY.difference(None), percentage(None), memory(None), p_value(None)] == [
        UNKNOWN
    ] * 5
    assert [significant(None), whole(None), fixed(None, 2)] == [UNKNOWN] * 3


def test_small_rules():
    assert percentage(40.148) == "4,014.8"
    assert [p_value(0.0004), p_value(0.0344)] == ["< 0.001", "0.034"]
    assert [whole(20.0), whole(19.25)] == ["20", "19.2"]
    assert [count(1, "run"), count(1200, "run")] == ["1 run", "1,200 runs"]
    assert memory(417 * 2**20) == "417"
    assert significant(12345.6) == "12,346"
    assert [fixed(-0.0001, 4), fixed(math.inf, 1), fixed(math.nan, 1), fixed(2.5e12, 0)] == [
        "-0.0001",
        "∞",
        "NaN",
        "2.5e+12",
    ]


@given(st.floats(min_value=-1e300, max_value=1e300), st.floats(min_value=0, max_value=1e30))
def test_any_number_is_written_shortly_and_reads_back_near(value, sd):
    text = LOSS.value(value, sd).replace(",", "")
    assert len(text) <= 22
    assert float(text) == pytest.approx(value, rel=0.06, abs=max(sd, 1e-300))


def test_a_number_with_more_decimals_than_are_shown_is_written_in_powers_of_ten():
    assert significant(1.3467748149060015e-08) == "1.35e-08"
    assert significant(2e-07) == "2.00e-07"
    assert significant(0.000012345) == "0.0000123"


@pytest.mark.parametrize(
    ("values", "sd", "texts"),
    [
        ((954_925_249.0, 1_011_236_685.0, 1_030_141_516.0), 1.8e7, ["954,925,249", "1.011e+09", "1.030e+09"]),
        ((9.72e-07, 9.9e-07, 1.001e-06), 1.1e-08, ["9.72e-07", "9.90e-07", "1.001e-06"]),
        ((3.214e-12, 3.298e-12), 4e-14, ["3.214e-12", "3.298e-12"]),
        ((0.25, 0.250001), 3e-12, ["0.25000000", "0.25000100"]),
        ((-2.5e300, 2.5e12), 1e299, ["-2.50e+300", "2.5e+12"]),
    ],
)
def test_a_power_of_ten_has_the_digits_that_its_spread_is_seen_by(values, sd, texts):
    assert [LOSS.value(value, sd) for value in values] == texts


def test_a_number_alone_has_four_digits_however_large_or_small():
    assert [LOSS.value(value, None) for value in (1.0304e9, 5.1234e-07, 12.3456)] == ["1.030e+09", "5.123e-07", "12.35"]


def test_a_spread_over_a_size_is_a_plain_zero_only_where_nothing_varies():
    assert [share_of_size(ratio) for ratio in (0.0, 0.0001, 0.125, None)] == ["0", "0.0", "12.5", UNKNOWN]


@given(st.floats(), st.one_of(st.none(), st.floats()), st.integers(1, 6))
@example(1.75e308, 1.75e308, 2)
@example(-5e-324, 5e-324, 2)
def test_any_number_can_be_written(value, sd, digits):
    assert significant(value, digits)
    assert fixed(value, digits, sd)
    for style in (LOSS, ACCURACY, style_for("percent")):
        assert style.value(value, sd)
        assert style.difference(value, sd)
