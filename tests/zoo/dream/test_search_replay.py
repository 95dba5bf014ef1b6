"""Replaying a search: the running best, the trials that improved it, and what properties every replay has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_search_logs import made_search

from isorun.errors import InputError
from isorun.zoo.data.search_logs import LoggedSearch
from isorun.zoo.studies.dream.measured import replay

SCORES = st.lists(st.floats(0, 1), min_size=1, max_size=40)


def test_a_search_worked_out_by_hand():
    run = replay(made_search([0.2, 0.1, 0.5, 0.5, 0.4, 0.8], seconds=100.0))
    assert [point.best for point in run.curve] == [0.2, 0.2, 0.5, 0.5, 0.5, 0.8]
    assert [point.elapsed_s for point in run.curve] == [100.0, 200.0, 300.0, 400.0, 500.0, 600.0]
    assert run.improving == (2, 5)
    assert (run.start, run.best, run.elapsed_s) == (0.2, 0.8, 600.0)
    assert run.gain_a_step == pytest.approx(0.3)
    assert run.reached(0.5).trial == 2
    assert run.reached(0.81) is None
    assert run.best_within(299.9) == 0.2
    assert run.best_within(300.0) == 0.5
    assert run.best_within(99.0) is None


def test_a_search_that_never_improves_has_no_gain():
    run = replay(made_search([0.4, 0.4, 0.1]))
    assert run.improving == ()
    assert run.gain_a_step is None


def test_trials_after_the_cut_do_not_count():
    run = replay(made_search([0.1] * 25 + [0.9]))
    assert len(run.curve) == 25
    assert run.best == 0.1
    assert replay(made_search([0.1] * 25 + [0.9]), None).best == 0.9


@given(SCORES, st.integers(1, 45))
def test_the_best_never_falls_and_is_the_highest_score(scores, trials):
    run = replay(made_search(scores), trials)
    bests = [point.best for point in run.curve]
    assert bests == sorted(bests)
    assert run.best == max(scores[:trials])
    assert len(bests) == min(trials, len(scores))


@given(SCORES)
def test_the_best_rises_at_improving_trials_and_nowhere_else(scores):
    run = replay(made_search(scores), None)
    bests = [point.best for point in run.curve]
    assert run.improving == tuple(at for at in range(1, len(bests)) if bests[at] > bests[at - 1])
    assert all(scores[at] > max(scores[:at]) for at in run.improving)


@given(SCORES, st.integers(1, 39))
def test_a_replay_is_the_beginning_of_a_longer_one(scores, trials):
    shorter, longer = replay(made_search(scores), trials), replay(made_search(scores), trials + 1)
    assert longer.curve[: len(shorter.curve)] == shorter.curve
    assert longer.improving[: len(shorter.improving)] == shorter.improving


@given(SCORES, st.floats(0, 1))
def test_a_target_is_reached_when_the_best_within_that_time_reaches_it(scores, target):
    run = replay(made_search(scores), None)
    point = run.reached(target)
    if point is None:
        assert run.best < target
    else:
        assert run.best_within(point.elapsed_s) >= target
        earlier = run.best_within(point.elapsed_s - 1)
        assert earlier is None or earlier < target


def test_a_replay_of_nothing_is_refused():
    with pytest.raises(InputError, match="too few trials"):
        replay(made_search([0.1]), 0)
    with pytest.raises(InputError, match="no trial"):
        replay(LoggedSearch("I", "greedy", "", ()))
