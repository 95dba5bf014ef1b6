"""Figures of searches: the line of the best, who proposed what, what trials showed, what changes brought."""

from dataclasses import replace

from figure_examples import story, taken

from isorun.report.figures.description import Shape
from isorun.report.figures.searches import (
    BestCurve,
    SearchStory,
    TakenAction,
    TrialMark,
    action_gains,
    progress_by_time,
    progress_by_trial,
    symptom_strip,
)


def mark(number, score=None, state="finished", **more):
    known = {"ended": 60.0 * (number + 1), "proposed": False, "symptoms": {}, **more}
    return TrialMark(number, score, state, **known)


def test_the_best_so_far_is_a_flight_of_stairs():
    assert BestCurve("a", ((0, 1.0, ""), (3, 2.0, "")), 5).corners == ((0, 1.0), (3, 1.0), (3, 2.0), (5, 2.0))
    figure = progress_by_trial(SearchStory((mark(0, 0.5), mark(1, 0.4), mark(2, 0.7), mark(3, 0.6)), "higher"))
    assert figure.lines[0].points == ((0, 0.5), (2, 0.5), (2, 0.7), (3, 0.7))
    lower = progress_by_trial(SearchStory((mark(0, 0.5), mark(1, 0.4), mark(2, 0.7)), "lower"))
    assert lower.lines[0].points == ((0, 0.5), (1, 0.5), (1, 0.4), (2, 0.4))
    assert "it is 0.40000 since trial 1" in lower.sentence


def test_time_goes_by_the_end_of_trials_and_not_by_their_numbers():
    marks = (mark(0, 0.5, ended=300.0), mark(1, 0.4, ended=60.0), mark(2, 0.6, ended=600.0))
    figure = progress_by_time(SearchStory(marks, "higher"))
    assert figure.lines[0].points == ((1.0, 0.4), (5.0, 0.4), (5.0, 0.5), (10.0, 0.5), (10.0, 0.6), (10.0, 0.6))
    assert figure.x.label == "minutes of search"
    assert progress_by_time(SearchStory((mark(0, 0.5, ended=None),), "higher")) is None


def test_who_proposed_and_what_has_no_score_is_told_by_shape_and_by_word():
    marks = (mark(0, 0.5), mark(1, 0.6, proposed=True), mark(2, None, "failed"), mark(3, None, "running"))
    figure = progress_by_trial(SearchStory(marks, "higher", target=0.9, moments=((2, "stuck since 2"),)))
    shapes = {dot.title: dot.shape for dot in figure.dots}
    assert shapes["trial 1: 0.60000, proposed by isorun"] is Shape.DIAMOND
    assert shapes["trial 2: failed"] is Shape.CROSS
    assert shapes["trial 3: running"] is Shape.RING
    labels = [entry.label for entry in figure.legend]
    without = {f"a trial without a score: {state}" for state in ("failed", "running")}
    assert {"a trial proposed by isorun", *without, "target 0.9", "stuck since 2"} <= set(labels)
    assert "Trials without a score (2)" in figure.sentence


def test_one_exploded_loss_does_not_flatten_the_rest():
    figure = progress_by_trial(SearchStory((mark(0, 1e9), *(mark(n, 1 / n) for n in range(1, 8))), "lower"))
    assert figure.y.high < 2
    assert "2 scores above" in figure.sentence
    assert all(y <= figure.y.high for line in figure.lines for _, y in line.points)


def test_what_is_beyond_the_edge_is_an_arrow_and_no_score_of_the_line():
    scores = [0.1, 0.3, *(0.9 + n / 1000 for n in range(10))]
    figure = progress_by_trial(SearchStory(tuple(mark(n, score) for n, score in enumerate(scores)), "higher"))
    arrows = [dot for dot in figure.dots if dot.shape is Shape.DOWN]
    assert [dot.title.partition(",")[0] for dot in arrows] == ["trial 0: 0.10000", "trial 1: 0.30000"]
    assert all("beyond the edge" in dot.title for dot in arrows)
    assert figure.lines[0].points[0] == (2, arrows[0].y)  # it comes in from outside with the first that is inside
    assert figure.lines[0].points[1] == (2, 0.9)
    assert all(dot.y == scores[int(dot.x)] for dot in figure.dots if dot.shape is not Shape.DOWN)
    assert any(entry.shape is Shape.DOWN for entry in figure.legend)


def test_where_no_trial_has_a_score_nothing_is_drawn():
    failed = SearchStory((mark(0, None, "failed"),), "higher")
    assert (progress_by_trial(failed), progress_by_time(failed), symptom_strip(failed, ())) == (None, None, None)
    assert action_gains([TakenAction(1, "lr", 0.5, None, "failed")], "higher") is None


def test_long_searches_are_thinned_and_say_so():
    figure = progress_by_trial(story(10_000))
    assert len(figure.dots) < 600
    assert f"Drawn are {len(figure.dots)} of 10,000 trials" in figure.sentence
    best = max(one.score for one in story(10_000).marks if one.score is not None)
    assert figure.lines[0].points[-1][1] == best
    strip = symptom_strip(story(10_000), ("normal",))
    assert len({tile.x for tile in strip.tiles}) == 20
    assert "about 500 trials" in strip.sentence


def test_a_tile_stands_where_a_trial_shows_the_symptom():
    marks = (mark(0, 0.1, symptoms={"gradient": "vanishing"}), mark(1, 0.2, symptoms={"gradient": "normal"}))
    strip = symptom_strip(SearchStory((*marks, mark(2, None, "failed")), "higher"), ("normal",))
    rows = [tick.label for tick in strip.y.ticks]
    placed = {(sum(tile.x) / 2, rows[round(sum(tile.y) / 2)], tile.strong) for tile in strip.tiles}
    assert placed == {(0, "gradient: vanishing", True), (1, "gradient: normal", False), (2, "ended: failed", True)}


def test_what_a_change_brought_goes_from_before_to_after():
    actions = [TakenAction(4, "lr 0.1 → 0.01", 0.5, 0.8, "improved"), TakenAction(5, "lr 0.1 → 1", 0.5, 0.2, "worse")]
    figure = action_gains(actions, "higher")
    assert [line.points for line in figure.lines] == [((0.5, 0), (0.8, 0)), ((0.5, 1), (0.2, 1))]
    assert figure.sentence.startswith("1 of 2 changes improved")
    failed = action_gains([*actions, TakenAction(6, "lr 0.1 → 9", 0.5, None, "failed")], "higher")
    assert failed.sentence == "1 of 2 changes improved the trial it started from above noise. 1 more has no score."
    many = action_gains([replace(one, trial=one.trial) for one in taken(1000)], "higher")
    assert len(many.y.ticks) == 24
    assert "Drawn are 24 of 1,000" in many.sentence


def test_the_line_follows_the_trials_that_repeats_say_were_the_best():
    """Trial 3 scored best once; trial 4 ended before trial 2, and was the best before it."""
    scores = (0.5, 0.4, 0.7, 0.9, 0.6)
    ended = (60.0, 120.0, 300.0, 360.0, 180.0)
    marks = tuple(mark(number, score, ended=at) for number, (score, at) in enumerate(zip(scores, ended, strict=True)))
    raced = SearchStory(marks, "higher", bests=(0, 4, 2))
    assert progress_by_trial(raced).lines[0].points == ((0, 0.5), (2, 0.5), (2, 0.7), (4, 0.7))
    assert [at for at, _ in progress_by_time(raced).lines[0].points] == [1.0, 3.0, 3.0, 5.0, 5.0, 6.0]
    assert all("as repeats say; it is 0.70000 since trial 2" in draw(raced).sentence
               for draw in (progress_by_trial, progress_by_time))  # fmt: skip


def test_states_that_share_a_shape_share_a_line_of_the_legend_and_moments_say_when():
    marks = (mark(0, 0.5), mark(1, None, "failed"), mark(2, None, "without"), mark(3, 0.6), mark(4, 0.6))
    told = SearchStory(marks, "higher", moments=((4, "late since 4"), (1, "early since 1")))
    labels = [entry.label for entry in progress_by_trial(told).legend]
    assert "a trial without a score: failed or no number as score" in labels
    assert labels[-2:] == ["early since 1", "late since 4"]
    assert progress_by_time(told).legend[-1].label == "late since 4 (4.0 minutes)"


def test_of_a_long_name_it_is_told_what_it_was_changed_to():
    label = f"{'block_' * 20}rate 0.1 → 0.25"
    (row,) = (tick.label for tick in action_gains([TakenAction(7, label, 0.5, 0.6, "improved")], "higher").y.ticks)
    assert row.startswith("7: block_")
    assert row.endswith("rate 0.1 → 0.25")
    assert len(row) <= 60
