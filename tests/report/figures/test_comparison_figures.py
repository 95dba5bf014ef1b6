"""Figures of comparisons: forest, improvement matrix, mean ranks, variance shares."""

from itertools import combinations

import pytest
from figure_examples import differences, groups, shares, unknowable
from hypothesis import given, settings
from hypothesis import strategies as st

from isorun.analysis.comparison import compare
from isorun.analysis.leaderboards.compare_many import ManyComparison, PairOutcome, compare_many
from isorun.analysis.mixed.result import VarianceShare
from isorun.analysis.pairwise.effects import Improvement
from isorun.analysis.samples import Significance
from isorun.errors import InputError
from isorun.report.figures.description import Shape
from isorun.report.figures.effects import ForestRow, forest, shares_figure
from isorun.report.figures.leaderboards import critical_difference, improvement_matrix, maximal_cliques


def test_a_forest_marks_the_intervals_that_leave_no_difference_out():
    figure = forest([ForestRow("a", 1.0, (0.5, 1.5)), ForestRow("b", 0.2, (-0.3, 0.7)), ForestRow("c", -1, (-2, -0.1))])
    assert [dot.shape for dot in figure.dots] == [Shape.SQUARE, Shape.OPEN_SQUARE, Shape.SQUARE]
    assert [line.points for line in figure.lines[1:]] == [
        ((0.5, 0), (1.5, 0)),
        ((-0.3, 1), (0.7, 1)),
        ((-2, 2), (-0.1, 2)),
    ]
    assert figure.lines[0].points == ((0.0, -0.5), (0.0, 2.5))
    assert figure.sentence.startswith("2 of 3 intervals leave 0 out")


def test_an_estimate_without_an_interval_is_not_said_to_hold_anything():
    found = forest([ForestRow("a", 0.0, None), ForestRow("b", 1.0, (0.5, 1.5))])
    assert [(item.label, item.shape) for item in found.legend] == [
        ("interval leaves 0 out", "square"),
        ("without a line: no interval can be given", "open square"),
        ("no difference (0)", None),
    ]
    assert [dot.shape for dot in found.dots] == ["open square", "square"]


def test_a_forest_may_ask_about_even_odds():
    figure = forest([ForestRow("a", 0.7, (0.55, 0.8))], "probability of improvement", reference=0.5)
    assert figure.sentence == "a: 0.700 (0.550 to 0.800); the interval leaves 0.5 out."


def test_a_forest_takes_comparisons_with_their_welch_interval():
    compared = compare([5.0, 6, 7, 8, 9], [1.0, 2, 3, 4, 5.5], a="new", b="base")
    figure = forest([compared])
    assert figure.y.ticks[0].label == "new − base"
    assert figure.dots[0].x == compared.difference
    assert tuple(x for x, _ in figure.lines[1].points) == compared.means.ci95


def test_a_forest_takes_comparisons_by_pairs_with_the_interval_of_the_pairs():
    compared = compare([5.0, 6.1, 7, 8.2, 9.1], [4.7, 5.7, 6.8, 7.8, 8.9], a="new", b="base", paired=True)
    figure = forest([compared])
    assert figure.dots[0].x == compared.paired.t.difference
    assert tuple(x for x, _ in figure.lines[1].points) == compared.paired.t.ci95
    assert figure.sentence.endswith("the interval leaves 0 out."), "without the pairs it would hold 0"


def test_a_difference_that_cannot_be_known_keeps_its_row_without_marks():
    figure = forest([*differences(2), unknowable("x", "y")])
    assert [tick.label for tick in figure.y.ticks][-1] == "x − y"
    assert len(figure.dots) == 1
    assert figure.data.rows[-1][1:] == ("—", "—", "—", "—")
    assert figure.sentence.endswith("For 1 no interval can be given.")


def test_the_matrix_puts_the_best_on_top_and_fills_both_directions():
    figure = improvement_matrix({("a", "b"): Improvement(0.2, (0.1, 0.4)), ("a", "c"): Improvement(0.6, (0.3, 0.8))})
    assert [tick.label for tick in figure.y.ticks] == ["1. b", "2. a", "3. c"]
    written = {(tile.y[0] + 0.5, tile.x[0] + 0.5): (tile.text, tile.strong) for tile in figure.tiles}
    assert written[0, 1] == ("80", True)
    assert written[1, 0] == ("20", True)
    assert written[1, 2] == ("60", False)
    assert (0, 2) not in written
    assert figure.data.rows[0] == ("b", "a", "80.0", "60.0", "90.0")


def test_the_strength_of_a_cell_is_its_distance_from_even_odds():
    tiles = improvement_matrix({("a", "b"): Improvement(0.75, None)}).tiles
    assert sorted(tile.strength for tile in tiles) == [0.0, 0.0, 0.5, 0.5]


@pytest.mark.parametrize("bad", [{}, {("a", "a"): Improvement(0.5, None)}])
def test_a_matrix_without_pairs_is_refused(bad):
    with pytest.raises(InputError):
        improvement_matrix(bad)


def _ranked(ranks, p_values, post_hoc="wilcoxon"):
    named = zip(combinations(ranks, 2), p_values, strict=True)
    pairs = tuple(PairOutcome(a, b, 0.0, p, p) for (a, b), p in named)
    return ManyComparison("friedman", Significance(1.0, 0.1), None, ranks, post_hoc, "holm", pairs, 0.9)


def test_bars_join_those_who_cannot_be_told_apart():
    ranks = {"c": 3.0, "a": 1.0, "b": 2.0}  # pairs in this order: ca, cb, ab
    figure = critical_difference(_ranked(ranks, [0.001, 0.4, 0.6]))
    assert [tick.label for tick in figure.y.ticks] == ["a (1.00)", "b (2.00)", "c (3.00)", "not told apart", ""]
    bars = [(tile.x, sum(tile.y) / 2) for tile in figure.tiles]
    assert bars == [((1.0, 2.0), 3.0), ((2.0, 3.0), 4.0)]
    assert figure.sentence == (
        "a has the best mean rank; 1 other cannot be told from it. "
        "1 of 3 pairs differ at 0.05 (Wilcoxon, corrected by Holm)."
    )


def test_a_bar_over_an_approach_that_is_no_member_has_no_square_on_it():
    figure = critical_difference(_ranked({"a": 1.0, "b": 2.0, "c": 3.0}, [0.001, 0.5, 0.001]))
    assert [(dot.x, dot.y) for dot in figure.dots if dot.y >= 3] == [(1.0, 3.0), (3.0, 3.0)]


def test_the_critical_difference_is_drawn_for_nemenyi_at_its_level_alone():
    compared = compare_many(groups(4, 20), paired=True)
    unit = critical_difference(compared).lines[-1].points
    assert unit[1][0] - unit[0][0] == pytest.approx(compared.critical_difference)
    other = critical_difference(compare_many(groups(4, 20), paired=True, post_hoc="wilcoxon"))
    stricter = critical_difference(compared, alpha=0.01)  # the comparison carries the difference at 0.05
    for figure in (other, stricter):
        assert not any("critical" in tick.label for tick in figure.y.ticks)


def test_only_the_largest_of_very_many_sets_are_drawn_and_the_sentence_says_so():
    names = [f"{place}{side}" for place in range(4) for side in "ab"]
    ranks = {name: float(place + 1) for place, name in enumerate(names)}
    p_values = [0.001 if a[0] == b[0] else 0.5 for a, b in combinations(names, 2)]
    figure = critical_difference(_ranked(ranks, p_values))
    assert len(figure.y.ticks) == 8 + 12
    assert figure.sentence.endswith("Drawn are the 12 largest of 16 sets.")


@settings(max_examples=60)
@given(
    st.integers(min_value=2, max_value=7).flatmap(
        lambda n: st.tuples(st.just(n), st.sets(st.sampled_from(list(combinations(range(n), 2)))))
    )
)
def test_cliques_are_exactly_the_sets_that_nothing_can_join(case):
    count, edges = case
    names = [str(place) for place in range(count)]
    alike = {(str(a), str(b)) for a, b in edges}

    def is_clique(members):
        return all((a, b) in alike for a, b in combinations(members, 2))

    subsets = [members for size in range(2, count + 1) for members in combinations(names, size) if is_clique(members)]
    expected = [one for one in subsets if not any(set(one) < set(other) for other in subsets)]
    assert sorted(maximal_cliques(names, alike)) == sorted(expected)


def test_shares_are_bars_from_zero_with_their_intervals():
    figure = shares_figure([VarianceShare("seed", 0.7, 0.4, 0.9), VarianceShare("Residual", 0.3, 0.1, 0.6)])
    assert [tile.x for tile in figure.tiles] == [(0.0, 70.0), (0.0, pytest.approx(30.0))]
    assert figure.lines[0].points == ((40.0, 0.0), (90.0, 0.0))
    assert figure.sentence == "The largest share of the variance, 70.0 % (interval 40.0 to 90.0 %), comes from seed."


def test_the_residual_has_a_colour_of_its_own():
    series = [tile.series for tile in shares_figure(shares(3)).tiles]
    assert len(set(series[:-1])) == 1
    assert series[-1] not in series[:-1]


@pytest.mark.parametrize("draw", [forest, shares_figure])
def test_nothing_cannot_be_drawn(draw):
    with pytest.raises(InputError, match="nothing to draw"):
        draw([])
