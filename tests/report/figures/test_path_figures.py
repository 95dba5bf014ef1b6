"""Figures of sequential decisions: the path to a verdict."""

from dataclasses import replace
from functools import cache

import pytest
from figure_examples import decision

from isorun.analysis.sequential import Verdict
from isorun.analysis.sequential.verdict import decide
from isorun.errors import InputError
from isorun.report.figures.decision_paths import sequential_path


@cache
def open_decision():
    return decision()


@cache
def equivalent():
    return decision(30, 0.0, seed=5, margin=1.2)


def test_every_look_made_is_a_dot_at_its_number_of_runs():
    figure = sequential_path(open_decision())
    made = [point for point in open_decision().path if not point.planned]
    assert [dot.x for dot in figure.dots] == [point.n_a for point in made] == list(range(5, 19))


def test_rank_statistics_are_shown_in_standard_deviations():
    exact = decision(test="mann-whitney")
    sd = (5 * 5 * 11 / 12) ** 0.5
    assert sequential_path(exact).dots[0].y == pytest.approx(exact.path[0].statistic / sd)
    assert sequential_path(open_decision()).dots[0].y == open_decision().path[0].statistic


def test_a_dot_is_in_a_zone_exactly_when_a_claim_is_made():
    claimed = decision(30, 1.2)
    figure = sequential_path(claimed)
    upper = {x: low for x, low, _ in figure.bands[0].points}
    inside = [dot.x for dot in figure.dots if dot.x in upper and dot.y >= upper[dot.x]]
    assert claimed.verdict is Verdict.A_BETTER
    assert claimed.why.startswith(f"A better after {inside[0]:.0f} runs")


def test_boundaries_go_on_over_the_looks_ahead():
    figure = sequential_path(open_decision())
    upper, lower, path = figure.lines
    assert (upper.dashed, lower.dashed, path.dashed) == (True, True, False)
    assert upper.points[-1][0] == lower.points[-1][0] == 30
    assert path.points[-1][0] == max(dot.x for dot in figure.dots) < 30


def test_the_futility_zone_is_there_while_it_may_be_used():
    assert sequential_path(open_decision()).bands[2].points[0][0] == 17
    assert not sequential_path(decision(futility=False)).bands[2].points


def test_before_the_first_look_only_boundaries_are_drawn():
    figure = sequential_path(decision(3))
    assert not figure.dots
    assert figure.lines[0].dashed


def test_a_statistic_beyond_all_bounds_stands_at_the_edge():
    figure = sequential_path(decide([2.0] * 8, [1.0] * 8, direction="higher", max_runs=None))
    assert {dot.y for dot in figure.dots} == {figure.y.high}


def test_names_replace_the_letters():
    figure = sequential_path(open_decision(), "new", "base")
    assert [entry.label for entry in figure.legend][1:3] == ["new better", "base better"]
    assert "(A is new, B is base)" in figure.sentence


def test_unequal_sides_count_all_runs():
    figure = sequential_path(decision(looks=[(6, 9), (12, 18)]))
    assert figure.x.label == "runs of both sides"
    assert [dot.x for dot in figure.dots] == [15, 30]


def test_a_decision_without_looks_is_refused():
    with pytest.raises(InputError, match="without looks"):
        sequential_path(replace(equivalent(), path=()))
