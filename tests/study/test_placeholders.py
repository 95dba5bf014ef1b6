"""Placeholders and literal braces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun.errors import StudyError
from isorun.study.cells import check_placeholders, fill_placeholders

FIXED = {"seed": "7", "repeat": "0", "level": "default", "run_dir": "/r"}


def fill(*command, **config):
    return fill_placeholders(command, FIXED, config, "here")


def test_placeholders_are_filled_wherever_they_stand():
    assert fill("--seed={seed}", "{run_dir}/x", "{config.lr}", lr=0.1) == ("--seed=7", "/r/x", "0.1")


def test_json_and_other_braces_are_left_alone():
    assert fill('{"a": {"b": 1}}', "{1:2}", "{}") == ('{"a": {"b": 1}}', "{1:2}", "{}")


def test_double_braces_stand_for_a_literal_name():
    assert fill("{{seed}}", "{{sede}}", "{{config.lr}}") == ("{seed}", "{sede}", "{config.lr}")


def test_braces_around_a_name_that_is_none_of_ours_reach_the_training_as_typed():
    words = ("{x}", "out/{epoch}-{speed}.pt", "{{x}}", "{step}{x.y}")
    check_placeholders(words, "here")
    assert fill(*words) == words


@pytest.mark.parametrize("word", ["{sede}", "{Seed}", "{run-dir}", "{rundir}", "{lveel}"])
def test_a_slip_in_one_of_our_names_is_refused(word):
    with pytest.raises(StudyError, match=r"there is no placeholder \{"):
        check_placeholders((f"--x={word}",), "here")


def test_a_missing_config_value_is_named():
    with pytest.raises(StudyError, match=r"asks for \{config.lr\}"):
        fill("{config.lr}", momentum=0.9)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_read_back_exactly(number):
    assert float(fill("{config.x}", x=number)[0]) == number


@given(st.text())
def test_filling_never_looks_inside_what_it_filled_in(text):
    assert fill("{config.x}", x=text) == (text,)
