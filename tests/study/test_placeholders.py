"""Placeholders and literal braces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun.errors import StudyError
from isorun.study.cells import fill_placeholders

FIXED = {"seed": "7", "repeat": "0", "level": "default", "run_dir": "/r"}


def fill(*command, **config):
    return fill_placeholders(command, FIXED, config, "here")


def test_placeholders_are_filled_wherever_they_stand():
    assert fill("--seed={seed}", "{run_dir}/x", "{config.lr}", lr=0.1) == ("--seed=7", "/r/x", "0.1")


def test_json_and_other_braces_are_left_alone():
    assert fill('{"a": {"b": 1}}', "{1:2}", "{}") == ('{"a": {"b": 1}}', "{1:2}", "{}")


def test_double_braces_stand_for_a_literal_name():
    assert fill("{{seed}}") == ("{seed}",)


def test_a_missing_config_value_is_named():
    with pytest.raises(StudyError, match=r"asks for \{config.lr\}"):
        fill("{config.lr}", momentum=0.9)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_read_back_exactly(number):
    assert float(fill("{config.x}", x=number)[0]) == number


@given(st.text())
def test_filling_never_looks_inside_what_it_filled_in(text):
    assert fill("{config.x}", x=text) == (text,)
