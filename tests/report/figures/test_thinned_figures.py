"""Large studies: figures draw as much as can be seen, lose no extreme, and say what they left out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isorun.analysis.samples import Pairs
from isorun.analysis.spreads import spread
from isorun.analysis.studies.study_result import analyse_study
from isorun.report.figures.distributions import BoxRow, RunValue, box_figure
from isorun.report.figures.effects import paired_change
from isorun.report.figures.thinning import drawn_places, thinned
from isorun.report.study_view import study_view
from isorun.study.cells import Level
from record_builder import make_cell, make_record, make_series, make_study

STEPS = 5_000


@pytest.fixture(scope="module")
def long_curves():
    """Three runs of 5,000 steps, one of them with a single peak and a single dip."""
    values = [[0.5 + 0.1 * np.sin(step / 50 + run) for step in range(STEPS)] for run in range(3)]
    values[1][1234], values[1][4321] = 0.99, 0.01
    records = [
        make_record(make_cell(repeat=run), series={"test_acc": make_series(values[run])}) for run in range(len(values))
    ]
    result = analyse_study(make_study(levels=(Level.DEFAULT,), repeats=3), records)
    return next(figure for figure in study_view(result, figures=True).figures if figure.name == "curves-LeNet")


def test_a_long_curve_keeps_its_peaks_its_ends_and_its_steps(long_curves):
    points = dict(long_curves.panels[0].lines[1].points)
    assert len(points) <= 402
    assert points[1235.0] == pytest.approx(99.0)
    assert points[4322.0] == pytest.approx(1.0)
    assert {1.0, float(STEPS)} <= set(points)


def test_a_thinned_figure_says_so_and_its_data_are_bounded(long_curves):
    assert "Long curves are thinned" in long_curves.sentence
    assert len(long_curves.data.rows) <= 402
    assert "Of 5,000 steps" in long_curves.data.notes[0]


def test_a_thinned_band_holds_the_median_that_is_drawn(long_curves):
    whole, end = long_curves.panels
    (band,) = whole.bands
    xs, lows, highs = zip(*band.points, strict=True)
    assert (xs[0], xs[-1]) == (1.0, STEPS)
    assert min(lows) <= min(y for _, y in whole.lines[-1].points)
    assert max(highs) >= max(y for _, y in whole.lines[-1].points)
    assert min(x for line in end.lines for x, _ in line.points) > STEPS / 2


@settings(max_examples=100)
@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=900).map(lambda values: np.asarray(values * 3)))
def test_drawn_places_are_in_order_and_hold_both_extremes_and_both_ends(values):
    places = drawn_places(values, 400)
    assert list(places) == sorted(set(places.tolist()))
    assert (places[0], places[-1]) == (0, values.size - 1)
    assert (values[places].min(), values[places].max()) == (values.min(), values.max())
    assert places.size == values.size or places.size <= 402


def test_a_short_curve_is_drawn_whole_and_says_nothing():
    assert drawn_places(np.arange(400.0), 400).tolist() == list(range(400))
    records = [make_record(make_cell(repeat=run), series={"acc": make_series([0.1, 0.2])}) for run in range(2)]
    result = analyse_study(make_study(levels=(Level.DEFAULT,), repeats=2), records)
    assert all("thinned" not in figure.sentence for figure in study_view(result, figures=True).figures)


def box_row(name, values):
    return BoxRow(name, spread(values), tuple(RunValue(str(n), value) for n, value in enumerate(values)), 0)


def test_of_many_runs_as_many_are_drawn_as_can_be_seen_and_the_box_holds_all():
    values = np.random.default_rng(1).standard_normal(5_000).tolist()
    figure = box_figure("f", "title", "x", [box_row("a", values)], "Sentence.")
    drawn = [dot.x for dot in figure.dots if dot.small]
    assert len(drawn) == 300
    assert (min(drawn), max(drawn)) == (min(values), max(values))
    assert figure.boxes[0].median == pytest.approx(np.median(values))
    assert "as many are drawn" in figure.sentence
    assert len(figure.data.rows) == 300
    assert "JSON" in figure.data.notes[0]


def test_of_many_rows_the_first_are_drawn_and_the_rest_is_counted():
    figure = box_figure("f", "title", "x", [box_row(f"row {n}", [1.0, n]) for n in range(2_000)], "Sentence.")
    assert not figure.boxes
    assert len(figure.y.ticks) == 60
    assert "first 60 of 2,000 rows" in figure.sentence


def test_short_lines_are_all_drawn_on_a_page_and_of_long_ones_it_is_said_how_many():
    pairs = Pairs(np.arange(60.0), np.arange(60.0) + 1.0)
    change = paired_change(pairs, "adam", "sgd", "acc")
    drawn = thinned(change)
    assert len(drawn.lines) == len(change.lines) == 61
    assert drawn.sentence == change.sentence
    many = paired_change(Pairs(np.arange(900.0), np.arange(900.0) + 1.0), "adam", "sgd", "acc")
    assert len(thinned(many).lines) == 321
    assert "Of many thin lines of one colour the first ones are drawn, at least 320." in thinned(many).sentence


def test_of_many_long_curves_eight_are_drawn_on_a_page():
    values = [[run + step for step in range(90)] for run in range(12)]
    records = [make_record(make_cell(repeat=run), series={"acc": make_series(values[run])}) for run in range(12)]
    result = analyse_study(make_study(levels=(Level.DEFAULT,), repeats=12), records)
    drawn = thinned(next(figure for figure in study_view(result, figures=True).figures if "curves" in figure.name))
    assert [len([line for line in panel.lines if line.faint]) for panel in drawn.panels] == [8, 12]
    assert "at least 8." in drawn.sentence
