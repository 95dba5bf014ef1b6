"""Figures of groups of values: box and strip, distribution functions, paired changes, profiles."""

from itertools import pairwise

import numpy as np
import pytest
from figure_examples import groups, pairs, profiles
from hypothesis import given, settings
from hypothesis import strategies as st

from isorun.analysis.leaderboards.across_tasks import PerformanceProfile
from isorun.analysis.measurements import read_table
from isorun.analysis.samples import Pairs
from isorun.errors import InputError
from isorun.report.figures import effects
from isorun.report.figures.description import Shape
from isorun.report.figures.distributions import ecdf, strip
from isorun.report.figures.effects import paired_change
from isorun.report.figures.leaderboards import performance_profiles

VALUES = st.lists(st.floats(min_value=-1e6, max_value=1e6), min_size=1, max_size=40)
TABLE = {"setting": ["b", "b", "a", "a", "a"], "loss": [1.0, 3.0, 2.0, 4.0, 9.0]}


def test_a_table_s_groups_are_drawn_as_a_mapping_is():
    of_table = strip(read_table(TABLE).groups("loss", ["setting"]), "loss")
    assert of_table == strip({"a": [2.0, 4.0, 9.0], "b": [1.0, 3.0]}, "loss")


def test_every_value_is_a_dot_and_every_mean_a_triangle():
    figure = strip({"a": [2.0, 4.0, 9.0], "b": [1.0, 3.0]})
    assert sorted(dot.x for dot in figure.dots if dot.shape is Shape.CIRCLE) == [1.0, 2.0, 3.0, 4.0, 9.0]
    assert [dot.x for dot in figure.dots if dot.shape is Shape.TRIANGLE] == [5.0, 2.0]
    assert figure.sentence == "The median of value is highest for a (4.000) and lowest for b (2.000)."


def test_large_groups_have_small_dots_and_thinned_ones_say_so():
    few, many = strip(groups(2, 40)), strip(groups(2, 5000))
    assert not any(dot.small for dot in few.dots)
    assert sum(dot.small for dot in many.dots) == 600
    assert "evenly spaced" in many.sentence
    assert many.y.ticks[0].label.endswith("5000)")


@pytest.mark.parametrize("draw", [strip, ecdf])
@pytest.mark.parametrize("bad", [{}, {"a": []}, {"a": [1.0, float("nan")]}, {"a": ["x"]}, []])
def test_groups_that_cannot_be_drawn_are_refused(draw, bad):
    with pytest.raises(InputError):
        draw(bad)


@settings(max_examples=40)
@given(VALUES)
def test_a_distribution_function_rises_from_0_to_1_and_is_right_at_every_value(values):
    points = ecdf({"a": values}).lines[0].points
    assert points[0][1] == 0.0
    assert points[-1][1] == 1.0
    assert all(x <= x2 and y <= y2 for (x, y), (x2, y2) in pairwise(points))
    for value in values:
        share = max(y for x, y in points if x <= value)
        assert share == pytest.approx(np.mean(np.array(values) <= value))


def test_lines_beyond_the_colours_are_dotted_and_beyond_ten_counted():
    figure = ecdf(groups(14, 6))
    assert [line.dotted for line in figure.lines] == [False] * 5 + [True] * 5
    assert len({(entry.series, entry.dotted) for entry in figure.legend}) == 10
    assert figure.sentence.endswith("Drawn are the first 10 of 14 groups.")
    assert len(figure.data.rows) == 14


def test_pairs_are_slopes_coloured_by_their_direction():
    figure = paired_change(Pairs(np.array([1.0, 2.0, 3.0]), np.array([2.0, 1.0, 3.0])), "old", "new")
    assert [line.points for line in figure.lines[:3]] == [((0, 1), (1, 2)), ((0, 2), (1, 1)), ((0, 3), (1, 3))]
    assert len({line.series for line in figure.lines[:3]}) == 3
    assert figure.sentence == (
        "Of 3 pairs, under new against old: 1 higher, 1 lower, 1 the same; the mean stays 2.000."
    )


def test_pairs_carry_their_labels_and_count_runs_without_partner():
    figure = paired_change(pairs(2), labels=["seed 7", "seed 8"])
    assert [row[0] for row in figure.data.rows] == ["seed 7", "seed 8"]
    assert figure.dots[0].title.startswith("seed 7 under A: ")
    assert figure.sentence.endswith("want of a partner: 1 run.")


def test_pairs_need_a_label_each_and_there_must_be_one():
    with pytest.raises(InputError, match="3 labels for 2 pairs"):
        paired_change(pairs(2), labels=["a", "b", "c"])
    with pytest.raises(InputError, match="no pair"):
        paired_change(Pairs(np.array([]), np.array([])))


def test_profiles_have_bands_while_these_can_be_told_apart():
    few, many = performance_profiles(profiles(4)), performance_profiles(profiles(5))
    assert (len(few.bands), len(many.bands)) == (4, 0)
    assert "bands" in few.sentence
    assert "bands" not in many.sentence


def test_profiles_are_drawn_from_low_to_high_thresholds():
    figure = performance_profiles({"a": PerformanceProfile((2.0, 1.0), (0.2, 0.7), None, None)})
    assert figure.lines[0].points == ((1.0, 0.7), (2.0, 0.7), (2.0, 0.2))
    assert figure.data.rows[0][:3] == ("a", "1.000", "70.0")


def test_no_profile_is_refused():
    with pytest.raises(InputError, match="no profile"):
        performance_profiles({})


def test_a_mean_that_changes_is_told_with_enough_digits():
    assert effects._moved(0.000720512, 0.000720514) == "changes from 0.000720512 to 0.000720514"
    assert effects._moved(0.5, 0.5) == "stays 0.5000"
