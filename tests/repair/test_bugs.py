"""Bugs of searches: each is found where it is, since the right trial, and healthy searches seldom have one."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_searches import OPERATIONS, of_scores, search

from isorun.diagnose import Symptoms
from isorun.errors import InputError
from isorun.repair.bugs import (
    BUGS,
    Limits,
    chance_of_gaining,
    failed_silently,
    find_bugs,
    guilty_end,
    is_complete,
    is_silent,
    patience_of,
    silence_of,
)
from isorun.repair.searches import Trial


def kinds(found, limits=Limits(), now=None):  # noqa: B008
    return {bug.kind: bug for bug in find_bugs(found, limits, now)}


NOWHERE = Symptoms("plain", "slow", "vanishing", "normal")
IN_PIECES = Symptoms(weight="exploding")


def showing(*symptoms, scores=(0.1, 0.11, 0.12, 0.13, 0.14)):
    found = of_scores(scores)
    shown = [replace(trial, symptoms=one) for trial, one in zip(found.trials, symptoms, strict=True)]
    return search(shown)


def test_five_trainings_that_all_got_nowhere_are_an_ineffective_search_whatever_their_scores_do():
    bug = kinds(showing(NOWHERE, IN_PIECES, NOWHERE, NOWHERE, NOWHERE))["ineffective-search"]
    assert bug.since_trial == 0
    assert "none of 5 trainings" in bug.evidence
    assert "0.14" in bug.evidence
    assert not kinds(showing(*[NOWHERE] * 4, scores=(0.1, 0.11, 0.12, 0.13)))
    further = (0.1, 0.11, 0.12, 0.13, 0.3)
    assert not kinds(showing(*[NOWHERE] * 4, Symptoms(), scores=further))
    assert not kinds(showing(*[NOWHERE] * 4, Symptoms("plain", "normal", "normal", "normal"), scores=further))
    assert not kinds(showing(*[NOWHERE] * 5), Limits(patience=20))  # a user's patience is kept


def test_a_target_missed_in_time_is_a_performance_bug():
    found = of_scores([0.1, 0.2, 0.3, 0.3, 0.3])
    bug = kinds(found, Limits(target=0.5, time_limit=35))["performance"]
    assert bug.since_trial == 3
    assert "0.3" in bug.evidence
    assert "0.5" in bug.evidence
    assert "performance" not in kinds(found, Limits(target=0.5, time_limit=60))
    assert "performance" not in kinds(found, Limits(target=0.25, time_limit=35))
    assert "performance" not in kinds(found)


def test_a_target_of_a_loss_is_reached_from_above():
    found = of_scores([0.9, 0.4, 0.6], direction="lower")
    assert "performance" not in kinds(found, Limits(target=0.5, time_limit=1))
    assert "performance" in kinds(found, Limits(target=0.3, time_limit=1))


def test_without_a_time_limit_the_pace_of_the_later_half_counts():
    slow = of_scores([0.1, 0.3, 0.4, *[0.4] * 9, *[0.41] * 10])
    assert kinds(slow, Limits(target=0.9))["performance"].since_trial == 11
    quick = of_scores(np.linspace(0, 0.8, 22))
    assert "performance" not in kinds(quick, Limits(target=0.9))


def test_no_improvement_in_so_many_trials_is_an_ineffective_search():
    found = of_scores([0.1, 0.2, 0.3, *[0.25] * 27])
    bug = kinds(found)["ineffective-search"]
    assert bug.since_trial == 3
    assert "27 trials since trial 2" in bug.evidence
    assert "of 100 random searches 10 are silent for so long" in bug.evidence
    assert "ineffective-search" in kinds(of_scores([0.1, 0.2, 0.3, *[0.25] * 13]))
    assert "ineffective-search" not in kinds(of_scores([0.1, 0.2, 0.3, *[0.25] * 11]))
    assert "ineffective-search" not in kinds(of_scores([0.1, 0.2, 0.3, *[0.25] * 9]))
    asked = kinds(of_scores([0.1, 0.2, 0.3, *[0.25] * 4]), Limits(patience=4))["ineffective-search"]
    assert "4 are too many, as was asked; of 100 random searches 43 are silent for so long" in asked.evidence


def test_a_silence_is_looked_at_long_before_it_is_called_a_bug():
    assert is_silent(of_scores([0.1, 0.2, 0.3, *[0.25] * 10]))
    assert not is_silent(of_scores([0.1, 0.2, 0.3, *[0.25] * 9]))
    assert is_silent(of_scores([0.1, 0.2, *[0.1] * 4]), Limits(patience=4))
    assert not is_silent(of_scores([None] * 30))


def test_the_silence_of_random_searches_is_as_frequent_as_told():
    rng = np.random.default_rng(6)
    silences = [silence_of(of_scores([float(one) for one in rng.random(30)], rng)) for _ in range(400)]
    for level in (0.1, 0.3, 0.6):
        assert np.mean([one.as_often <= level for one in silences]) == pytest.approx(level, abs=0.06)
        assert all(one.as_often == pytest.approx((30 - one.trials) / 30) for one in silences)


def test_the_chance_to_gain_is_that_of_scores_that_thin_out():
    """Exponential scores are drawn twice over; told and true chances are held together, by distance."""
    rng = np.random.default_rng(7)
    for distance in (0.5, 1.0, 2.0):
        drawn = rng.exponential(size=(300, 60))
        told = [chance_of_gaining(of_scores(list(map(float, one[:30])), rng), distance) for one in drawn]
        came = drawn[:, 30:].max(axis=1) > drawn[:, :30].max(axis=1) + distance
        assert np.mean(told) == pytest.approx(np.mean(came), abs=0.07)
    assert chance_of_gaining(of_scores([0.5] * 20), 0.01) == 0
    assert chance_of_gaining(of_scores([0.5] * 20), 0.0) == 0.5


def test_where_no_training_gets_anywhere_few_trials_are_enough():
    found = of_scores([0.1, 0.11, 0.1, 0.1, 0.1, 0.1])
    assert "ineffective-search" not in kinds(found)
    nowhere = [replace(trial, symptoms=Symptoms(convergence="slow")) for trial in found.trials]
    dead = replace(found, trials=tuple(nowhere))
    assert "none of 6 trainings since trial 0 got anywhere" in kinds(dead)["ineffective-search"].evidence
    assert "ineffective-search" not in kinds(replace(dead, trials=dead.trials[:4]))
    assert "ineffective-search" not in kinds(dead, Limits(patience=15))


def test_a_dead_training_that_looks_converged_is_known_by_its_score():
    slow, normal = Symptoms(convergence="slow"), Symptoms(convergence="normal")
    found = of_scores([0.1, 0.08, 0.11, 0.09, 0.1, 0.115])
    trials = [replace(trial, symptoms=normal if trial.number == 5 else slow) for trial in found.trials]
    evidence = kinds(replace(found, trials=tuple(trials)))["ineffective-search"].evidence
    assert "5 were seen to, and no score stands out from theirs" in evidence
    learns = [*trials[:5], replace(trials[5], score=0.4)]
    assert "ineffective-search" not in kinds(replace(found, trials=tuple(learns)))
    half = [replace(trial, symptoms=normal if trial.number > 2 else slow) for trial in found.trials]
    assert "ineffective-search" not in kinds(replace(found, trials=tuple(half)))


def test_where_gains_would_be_within_noise_the_sentence_says_what_that_is_worth():
    rng = np.random.default_rng(8)
    found = of_scores([*(float(one) for one in 0.5 + rng.normal(0, 0.002, 30))], rng, noise=0.01)
    evidence = kinds(found)["ineffective-search"].evidence
    assert "of 100 searches that did gain looked so too" in evidence or "random searches" in evidence


def test_failed_trials_are_trials_without_improvement():
    assert "ineffective-search" in kinds(of_scores([0.3, *[None] * 12]))


def test_a_gain_within_noise_is_no_improvement():
    scores = [0.5, *(0.5 + 0.001 * step for step in range(1, 15))]
    assert "ineffective-search" not in kinds(of_scores(scores))
    assert "ineffective-search" in kinds(of_scores(scores, noise=0.02))


def test_a_search_that_improves_seldom_is_given_more_patience():
    scores = [0.0] * 60
    for step, at in enumerate((0, 20, 40)):
        scores[at] = 0.1 * (step + 1)
    assert patience_of(of_scores(scores[:41])) > 25
    assert patience_of(of_scores([0.1, 0.2, 0.3])) == 10


@pytest.mark.parametrize(("rate", "most"), [(0.1, 0.2), (0.2, 0.12), (0.4, 0.06)])
def test_a_search_that_improves_at_its_rate_is_seldom_called_ineffective(rate, most):
    """Judged after 40 trials: one of twenty by design, and more where few improvements tell the rate."""
    rng = np.random.default_rng(5)
    alarms = []
    for _ in range(300):
        gains = np.where(rng.random(40) < rate, 0.1, 0.0)
        scores = np.where(gains > 0, np.cumsum(gains), -1.0)
        scores[0] = 0.0
        alarms.append("ineffective-search" in kinds(of_scores([float(score) for score in scores], rng)))
    assert np.mean(alarms) < most


def test_a_trial_far_longer_than_the_others_is_stalled():
    trials = [Trial(n, "finished", 0.1 * n, {"lr": n}, seconds=10.0 + n, started=20.0 * n) for n in range(8)]
    runs = Trial(8, "running", None, {"lr": 9}, started=200.0)
    bug = kinds(search([*trials, runs], ()), now=200 + 1000)["stalled-trial"]
    assert bug.since_trial == 8
    assert "running for 1e+03 s" in bug.evidence
    assert "stalled-trial" not in kinds(search([*trials, runs], ()), now=200 + 100)
    assert "stalled-trial" not in kinds(search([*trials, runs], ()), Limits(time_limit=10_000), now=200 + 1000)
    took = Trial(8, "finished", 0.1, {"lr": 9}, seconds=1000.0, started=200.0)
    assert kinds(search([*trials, took], ()))["stalled-trial"].since_trial == 8


def test_a_hang_is_seen_where_times_differ_as_sizes_do():
    sizes = [1.0, 3.0, 9.0, 20.0] * 4
    trials = [Trial(n, "finished", 0.1 * n, {"lr": n}, seconds=size) for n, size in enumerate(sizes)]
    hangs = Trial(16, "running", None, {"lr": 17}, started=0.0)
    assert kinds(search([*trials, hangs], ()), now=70.0)["stalled-trial"].since_trial == 16
    assert "stalled-trial" not in kinds(search([*trials, hangs], ()), now=55.0)


def test_no_value_is_blamed_where_everything_fails_or_by_chance():
    everything = of_scores([None] * 12)
    told = [replace(trial, why_failed="ValueError: shapes") for trial in everything.trials]
    bug = kinds(replace(everything, trials=tuple(told)))["repeated-failure"]
    assert bug.evidence == "12 of 12 trials failed with 'ValueError: shapes'"
    rng = np.random.default_rng(4)
    searches = [of_scores([None if rng.random() < 0.15 else 0.5 for _ in range(30)], rng) for _ in range(200)]
    assert np.mean(["repeated-failure" in kinds(found) for found in searches]) < 0.02


def test_times_that_vary_a_lot_are_not_stalled():
    rng = np.random.default_rng(2)
    alarms = 0
    for _ in range(200):
        seconds = np.exp(rng.normal(3, 1, 40))
        trials = [Trial(n, "finished", 0.1, {"lr": n}, seconds=float(s)) for n, s in enumerate(seconds)]
        alarms += "stalled-trial" in kinds(search(trials, ()))
    assert alarms / 200 < 0.05


def test_configurations_tried_again_are_duplicates():
    trials = [Trial(n, "finished", 0.1 * n, {"op0": "abc"[n % 3]}) for n in range(6)]
    bug = kinds(search(trials, OPERATIONS[:1]))["duplicates"]
    assert bug.since_trial == 3
    assert "3 of 6" in bug.evidence
    assert "trial 0" in bug.evidence


def test_the_best_trial_repeated_so_that_noise_is_known_is_no_bug_and_a_strategy_that_repeats_it_is():
    """As the warning noise-unknown advises; whoever repeats it, for no engine says what a trial was made for."""
    found = of_scores([0.5, 0.7, 0.6, 0.9, 0.8, 0.4, 0.3, 0.2, 0.1])
    best = found.best

    def again(times, scores=(0.85, 0.92, 0.88, 0.9)):
        more = (replace(best, number=9 + place, score=scores[place % 4]) for place in range(times))
        return replace(found, trials=(*found.trials, *more))

    assert "duplicates" not in kinds(again(3))
    assert "duplicates" not in kinds(again(3, (0.1, 0.2, 0.95, 0.3)))  # whichever of them is the best then
    assert "duplicates" in kinds(again(8))
    better = replace(best, number=12, parameters={**best.parameters, "lr": 0.5}, score=0.99)
    later = (*again(3).trials, better, replace(found.trials[0], number=13))
    assert "duplicates" not in kinds(replace(found, trials=later))  # nor after something better was found
    worst = (replace(found.trials[8], number=9 + place) for place in range(3))
    assert "duplicates" in kinds(replace(found, trials=(*found.trials, *worst)))
    assert "exhausted-space" in kinds(again(20))


def test_one_failure_again_and_again_names_the_value_it_comes_with():
    def trial(number, activation, why=""):
        state = "failed" if why else "finished"
        return Trial(
            number, state, None if why else 0.5, {"activation": activation, "lr": 10.0**-number}, why_failed=why
        )

    error = "Traceback\nRuntimeError: out of memory"
    trials = [trial(0, "relu"), trial(1, "tanh", error), trial(2, "tanh", error), trial(3, "relu")]
    assert "repeated-failure" not in kinds(search(trials))
    bug = kinds(search([*trials, trial(4, "tanh", error)]))["repeated-failure"]
    assert bug.since_trial == 1
    assert "'RuntimeError: out of memory'" in bug.evidence
    assert "3 of 3 with activation tanh" in bug.evidence


@pytest.mark.parametrize(
    "why",
    [
        "RuntimeError: CUDA out of memory. Tried to allocate {}.75 MiB. GPU 0 has 11.90 GiB",
        "OSError: /tmp/job{}/checkpoint.pt is cut off at 0x7f{}",
        "ValueError: Model too large! It contains {}000,000 params.",
        'ValueError: Input 0 of layer "dense_{}" is incompatible with the layer: expected axis -1 of {} values',
        "FileNotFoundError: [Errno 2] No such file or directory: '/data/part{}.npy'",
    ],
)
def test_a_failure_is_the_same_whatever_numbers_its_message_holds(why):
    scored = of_scores([None if number % 2 else 0.5 for number in range(12)])
    trials = [
        replace(one, why_failed=why.replace("{}", str(one.number)) if one.number % 2 else "") for one in scored.trials
    ]
    bug = kinds(replace(scored, trials=tuple(trials)))["repeated-failure"]
    assert bug.since_trial == 1
    assert "6 of " in bug.evidence
    assert f"trials failed alike, the first with {why.replace('{}', '1')!r}" in bug.evidence
    others = [replace(one, why_failed=one.why_failed and "abcdefghijkl"[one.number] * 9) for one in trials]
    assert "repeated-failure" not in kinds(replace(scored, trials=tuple(others)))


@pytest.mark.parametrize("names", [("relu2", "relu6"), ("resnet18", "resnet50"), ("act1d", "act2d")])
def test_names_that_differ_by_a_digit_are_different_failures(names):
    scored = of_scores([None if number < 6 else 0.5 + number / 1000 for number in range(60)])
    trials = [
        replace(one, why_failed=f"KeyError: {names[one.number % 2]!r}") if one.number < 6 else one
        for one in scored.trials
    ]
    assert "repeated-failure" not in kinds(replace(scored, trials=tuple(trials)))
    alike = [replace(one, why_failed=trials[0].why_failed) if one.number < 6 else one for one in trials]
    assert "6 of 60" in kinds(replace(scored, trials=tuple(alike)))["repeated-failure"].evidence


def test_processes_that_ended_differently_did_not_fail_alike():
    """Three of each code would be too few together with others: 6 of 60 alike are a tenth, 3 and 3 are not."""
    scored = of_scores([None if number < 6 else 0.5 + number / 1000 for number in range(60)])
    trials = [
        replace(one, why_failed=f"its process ended with exit code {(1, 137)[one.number % 2]}")
        if one.number < 6
        else one
        for one in scored.trials
    ]
    assert "repeated-failure" not in kinds(replace(scored, trials=tuple(trials)))
    alike = [replace(one, why_failed=trials[0].why_failed) if one.number < 6 else one for one in trials]
    bug = kinds(replace(scored, trials=tuple(alike)))["repeated-failure"]
    assert "6 of 60 trials failed with 'its process ended with exit code 1'" in bug.evidence


def test_the_first_trial_of_a_process_that_went_on_may_take_long_once_it_is_over():
    trials = [replace(one, seconds=1.0) for one in of_scores([0.5] * 12).trials]
    slow = replace(trials[10], seconds=100.0, process=7)
    assert "stalled-trial" not in kinds(search([*trials[:10], slow, replace(trials[11], process=7)]))
    again = [replace(trials[9], process=7), slow, trials[11]]
    assert kinds(search([*trials[:9], *again]))["stalled-trial"].since_trial == 10
    given_up = replace(slow, state="failed", score=None)
    assert "stalled-trial" in kinds(search([*trials[:10], given_up]))


def test_silent_failures_of_one_end_of_a_range_are_told():
    drawn = of_scores([0.5] * 40, np.random.default_rng(5))
    trials = [
        replace(one, state="failed", score=None) if one.parameters["dropout"] > 0.3 else one for one in drawn.trials
    ]
    failing = replace(drawn, trials=tuple(trials))
    failed = [one for one in trials if one.state == "failed"]
    assert f"{len(failed)} of {len(failed)} with dropout 0.3" in guilty_end(failing, failed)
    assert guilty_end(failing, failed).endswith(f"or more, 0 of {40 - len(failed)} with less")
    assert kinds(failing)["repeated-failure"].since_trial == failed[0].number
    assert failed_silently(failing) == tuple(failed)
    assert not failed_silently(replace(drawn, trials=tuple(replace(one, why_failed="why") for one in trials)))


def test_an_end_of_a_range_is_seldom_blamed_by_chance():
    rng = np.random.default_rng(6)
    blamed = 0
    for _ in range(200):
        drawn = of_scores([None if rng.random() < 0.3 else 0.5 for _ in range(30)], rng)
        blamed += bool(guilty_end(drawn, failed_silently(drawn)))
    assert blamed / 200 < 0.06


def test_failures_without_a_word_are_one_only_where_a_value_is_to_blame():
    rng = np.random.default_rng(1)
    silent = of_scores([None if number % 5 == 0 else 0.5 for number in range(15)], rng)
    assert "repeated-failure" not in kinds(silent)


def test_random_failures_are_seldom_blamed_on_a_value():
    rng = np.random.default_rng(3)
    alarms = 0
    for _ in range(200):
        scores = [None if rng.random() < 0.05 else float(rng.random()) for _ in range(30)]
        alarms += "repeated-failure" in kinds(of_scores(scores, rng))
    assert alarms / 200 < 0.05


def test_a_space_is_exhausted_when_all_was_tried_or_nothing_new_comes():
    trials = [Trial(n, "finished", 0.1, {"op0": "abcd"[n % 4]}) for n in range(5)]
    grid = replace(search(trials[:4], OPERATIONS[:1]), is_grid=True)
    assert is_complete(grid)
    assert "exhausted-space" not in kinds(grid)
    assert "exhausted-space" in kinds(search(trials[:4], OPERATIONS[:1]))
    exhausted = kinds(search(trials, OPERATIONS[:1]))["exhausted-space"]
    assert ("all 4 configurations" in exhausted.evidence, exhausted.since_trial) == (True, 3)
    assert "exhausted-space" not in kinds(search(trials[:3], OPERATIONS[:1]))
    again = [Trial(n, "finished", 0.1, {"op0": "ab"[n % 2]}) for n in range(22)]
    assert kinds(search(again, OPERATIONS[:1]))["exhausted-space"].since_trial == 2


def test_what_has_one_value_is_no_part_of_a_space_that_is_exhausted():
    trials = [Trial(n, "finished", 0.1, {"op0": "abcd"[n % 4], "fixed": 0.3}) for n in range(4)]
    assert "all 4 configurations" in kinds(search(trials, OPERATIONS[:1]))["exhausted-space"].evidence
    alone = [Trial(n, "finished", 0.1, {"fixed": 0.3}) for n in range(4)]
    assert kinds(search(alone, ()))["exhausted-space"].evidence == "the space has no choice"


def test_a_space_with_conditions_is_not_called_exhausted():
    trials = [Trial(0, "finished", 0.1, {"op0": "a", "op1": "a"}), Trial(1, "finished", 0.1, {"op0": "b"})]
    assert "exhausted-space" not in kinds(search(trials, OPERATIONS[:2]))


@settings(max_examples=60)
@given(st.lists(st.one_of(st.none(), st.floats()), max_size=30), st.sampled_from(["higher", "lower"]))
def test_any_search_can_be_judged(scores, direction):
    limits = Limits(target=0.5, time_limit=100)
    for bug in find_bugs(of_scores(scores, direction=direction), limits, now=1e6):
        assert bug.kind in BUGS
        assert 0 <= bug.since_trial < len(scores)
        assert bug.evidence


def test_random_searches_without_noise_have_no_other_bug_than_being_ineffective():
    rng = np.random.default_rng(9)
    for _ in range(50):
        scores = [float(score) for score in rng.normal(size=30)]
        assert set(kinds(of_scores(scores, rng))) <= {"ineffective-search"}
        assert not math.isnan(sum(scores))


@pytest.mark.parametrize(
    "asked",
    [
        *({"target": "x"}, {"target": math.nan}, {"target": True}, {"time_limit": -5}, {"time_limit": "1h"}),
        *({"patience": 0}, {"patience": 2.5}, {"patience": True}),
    ],
)
def test_a_limit_that_nobody_can_mean_is_refused_where_it_is_given(asked):
    with pytest.raises(InputError, match="is not understood"):
        Limits(**asked)
    assert Limits(np.float32(0.5), np.int64(3), np.int64(4)).patience == 4


def test_a_search_that_mostly_fails_has_a_bug_though_no_reason_is_kept():
    failed = [Trial(number, "failed", None, {"lr": 0.1 * number}) for number in range(1, 20)]
    bug = kinds(search([Trial(0, "finished", 0.5, {"lr": 0.5}), *failed]))["repeated-failure"]
    assert "19 of 20 trials failed" in bug.evidence
    assert "repeated-failure" in kinds(search(failed))


def test_noise_of_other_trainings_says_nothing_of_what_is_wrong():
    """Fine scores without noise, drawn at random: at most as many are called ineffective as are silent by chance."""
    rng = np.random.default_rng(11)
    told, false, gained = {"noise": 0.00559, "noise_from": "the prior"}, 0, 0
    for _ in range(200):
        scores = [float(one) for one in 0.9968 - 0.0125 * ((rng.random((50, 4)) - 0.5) ** 2).sum(axis=1)]
        found = kinds(of_scores(scores[:25], **told))
        assert found == kinds(of_scores(scores[:25]))
        if max(scores[25:]) > max(scores[:25]):
            gained, false = gained + 1, false + ("ineffective-search" in found)
    assert gained > 50
    assert false / gained <= 0.2 + 2 * math.sqrt(0.2 * 0.8 / gained)
    close = of_scores(scores[:25], **told)
    assert (close.own_margin, close.margin) == (0.0, pytest.approx(0.00559 * math.sqrt(2)))
