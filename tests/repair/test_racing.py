"""Racing: what is called better is, at the rate that is stated; known answers, and simulated searches."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import stdtr

import isorun.repair
from isorun.errors import InputError
from isorun.repair.racing import ERROR_RATE, RaceRule, Runs, error_of_plans, race, rule_of, standing_of


def runs(number, *scores, since=None, pending=()):
    one = Runs(number, float(number) if since is None else since, dict(enumerate(scores)))
    one.ended.update({repeat: repeat not in pending for repeat in one.scores})
    return one


def test_boundaries_fall_from_look_to_look_and_rise_with_candidates():
    rule = RaceRule(6)
    assert len(rule.critical) == 5
    assert all(one > other for one, other in zip(rule.critical, rule.critical[1:], strict=False))
    assert all(one < other for one, other in zip(rule.critical, RaceRule(6, candidates=25).critical, strict=True))


def test_a_clear_lead_wins_a_deficit_loses_and_what_is_between_stays_open():
    rule = RaceRule(10)
    assert rule.judge([0.9, 0.91, 0.9, 0.92], [0.5, 0.51, 0.52, 0.5]) == "better"
    assert rule.judge([0.5, 0.51], [0.52, 0.53]) == "not better"
    assert rule.judge([0.53, 0.5], [0.5, 0.52]) == "open"
    assert rule.judge([0.9], [0.1]) == "open"


def test_scores_that_agree_after_rounding_are_not_without_spread():
    """Two equals of which each has the same number of right answers twice: no more than luck."""
    rule = RaceRule(10)
    assert rule.judge([0.905, 0.905], [0.9, 0.9]) == "open"
    assert rule.judge([0.9, 0.9], [0.1, 0.1]) == "open"
    assert rule.judge([0.9] * 10, [0.1] * 10) == "ahead"  # ten that agree are no evidence of ten draws
    assert RaceRule(2, candidates=25).judge([0.905, 0.905], [0.9, 0.9]) == "ahead"
    dust = 0.1 + 0.2
    assert rule.judge([dust, dust], [0.3, 0.3]) == "not better"


def test_what_is_not_decided_in_the_repeats_allowed_is_not_called_better():
    rule = RaceRule(3)
    assert rule.judge([0.54, 0.51, 0.53], [0.51, 0.52, 0.50]) == "ahead"
    found = standing_of([runs(0, 0.51, 0.52, 0.50), runs(1, 0.54, 0.51, 0.53)], rule)
    assert (found.best, found.races) == (1, ((1, 0, "ahead"),))


def test_the_best_holds_its_place_until_a_race_is_won():
    rule = RaceRule(4, candidates=5)
    open_race = standing_of([runs(0, 0.5), runs(1, 0.6), runs(2, 0.9)], rule)
    assert (open_race.best, open_race.races) == (0, ((1, 0, "open"),))
    assert open_race.wanted == ((1, 1), (0, 1))
    pending = standing_of([runs(0, 0.5, None, pending={1}), runs(1, 0.6)], rule)
    assert pending.wanted == ((1, 1), (0, 1))
    won = standing_of([runs(0, 0.5, 0.5, 0.501, 0.5), runs(1, 0.6, 0.601, 0.6, 0.6)], rule)
    assert (won.best, won.wanted) == (1, ())
    lost = standing_of([runs(0, 0.5, 0.5), runs(1, 0.6, 0.3)], rule)
    assert (lost.best, lost.races) == (0, ((1, 0, "not better"),))


def test_repeats_that_fail_use_up_what_is_allowed():
    rule = RaceRule(3, candidates=5)
    assert standing_of([runs(0, 0.5, 0.6), runs(1, 0.6, None, None)], rule).races == ((1, 0, "not better"),)
    assert standing_of([runs(0, 0.5, None), runs(1, 0.6, 0.7)], rule).wanted == ((0, 2),)


def test_a_best_trial_whose_repeats_all_fail_does_not_keep_its_place_by_that():
    """What failed is no evidence for it either: who is ahead leads, and is not called better."""
    rule = RaceRule(3, candidates=5)
    found = standing_of([runs(0, 0.5, None, None), runs(1, 0.6, 0.7)], rule)
    assert (found.best, found.races) == (1, ((1, 0, "ahead"),))
    behind = standing_of([runs(0, 0.5, None, None), runs(1, 0.6, 0.2)], rule)
    assert (behind.best, behind.races) == (0, ((1, 0, "not better"),))
    table = {"new": iter([0.8, 0.81, 0.82, 0.8]), "old": iter([0.5, *[math.nan] * 9])}
    assert race(lambda config, _: next(table[config]), "new", "old", repeats=4).verdict == "ahead"
    # Repeats that a later plan allows belong to later races.
    longer = standing_of([runs(0, 0.5, None, None, 0.9, 0.9), runs(1, 0.6, 0.7)], rule)
    assert longer.races == ((1, 0, "ahead"),)


def test_two_draws_a_side_call_nothing_better():
    """Two trainings that learned and two that did not agree closely, and may be equals."""
    rule = RaceRule(5)
    assert rule.judge([0.9, 0.9012], [0.1, 0.1011]) == "open"
    assert rule.judge([0.9, 0.9012, 0.9003], [0.1, 0.1011, 0.1003]) == "better"
    assert RaceRule(2).judge([0.9, 0.9012], [0.1, 0.1011]) == "ahead"


def test_a_side_that_agrees_with_itself_does_not_halve_the_spread():
    rule = RaceRule(3)
    assert rule.judge([0.902, 0.902, 0.902], [0.9, 0.893, 0.896]) == "ahead"
    assert rule.judge([1.0, 1.0, 1.0], [0.9, 0.893, 0.896]) == "better"  # all right: each by itself


def test_without_repeats_the_best_score_is_the_best_and_without_scores_there_is_none():
    found = standing_of([runs(0, 0.5), runs(1, None), runs(2, 0.7), runs(3, 0.6)], RaceRule(1))
    assert (found.best, found.wanted) == (2, ())
    assert standing_of([runs(0, None)], RaceRule(5)).best is None


SCORES = st.lists(st.floats(-1, 1), min_size=1, max_size=6)


@given(st.lists(SCORES, min_size=1, max_size=5))
def test_what_is_wanted_is_never_there_and_never_too_much(trials):
    rule = RaceRule(5, candidates=5)
    found = standing_of([runs(number, *scores) for number, scores in enumerate(trials)], rule)
    assert found.best in range(len(trials))
    for number, repeat in found.wanted:
        assert len(trials[number]) <= repeat < rule.repeats


def trained(table):
    calls = []

    def train(config, seed):
        calls.append((config, seed))
        return table[config] + 0.001 * ((seed * 7919) % 13 - 6)

    return train, calls


def test_a_race_trains_both_by_turns_and_counts_what_it_took():
    train, calls = trained({"new": 0.8, "old": 0.5})
    found = isorun.repair.race(train, "new", "old", repeats=6)
    assert found.is_better
    assert found.trainings == len(calls) == len(found.candidate_scores) + len(found.incumbent_scores)
    assert [config for config, _ in calls[:4]] == ["new", "old", "new", "old"]
    assert [seed for config, seed in calls if config == "new"] == [1, 2, 3][: len(found.candidate_scores)]
    assert "better" in str(found)


def test_known_scores_are_used_and_what_does_not_look_better_costs_nothing():
    train, calls = trained({"new": 0.5, "old": 0.6})
    lost = race(train, "new", "old", candidate_scores=[0.5], incumbent_scores=[0.6, 0.61])
    assert (lost.verdict, lost.trainings, calls) == ("not better", 0, [])
    won = race(train, "new", "old", candidate_scores=[0.5], incumbent_scores=[0.6], direction="lower")
    assert won.is_better
    assert {seed for _, seed in calls} <= {2, 3, 4, 5, 6, 7, 8, 9, 10}


def test_a_candidate_that_breaks_loses_and_a_wrong_word_is_said():
    assert not race(lambda config, _: math.nan if config == "new" else 0.5, "new", "old").is_better
    for wrong in ({"repeats": 0}, {"error_rate": 0.0}, {"direction": "up"}, {"seeds": [1]}, {"candidates": 0}):
        with pytest.raises(InputError):
            race(lambda *_: 0.5, "new", "old", **wrong)


def test_copies_of_a_draw_count_once_and_a_side_of_one_draw_wins_nothing():
    rule = RaceRule(5)
    assert rule.judged([0.8512] * 5, [0.7913] * 5) == ("ahead", 2)  # known after two a side: no more are made
    assert rule.judged([0.8512] * 5, [0.7913, 0.7921, 0.7904, 0.7911, 0.7915]) == ("ahead", 5)
    assert rule.judged([0.7913] * 5, [0.8512] * 5) == ("not better", 2)
    assert rule.judged([0.9] * 5, [0.1] * 5) == ("ahead", 5)  # of one digit, five in a row are copies, two are not
    assert rule.judge([1.0] * 5, [0.7913, 0.7921, 0.7904, 0.7911, 0.7915]) == "better"  # all right, each by itself
    assert rule.judge([1.0] * 5, [0.0] * 5) == "ahead"
    drawn = (lambda _: [0], range)
    varied = [0.851, 0.862, 0.853, 0.857, 0.86], [0.5, 0.51, 0.49, 0.52, 0.5]
    assert (rule.judge(*varied), rule.judged(*varied, drawn)) == ("better", ("ahead", 5))


def test_a_training_that_ignores_its_seed_is_told_so():
    fixed = {"new": 0.8512, "old": 0.7913}
    found = race(lambda config, _: fixed[config], "new", "old", repeats=5)
    assert (found.verdict, found.trainings) == ("ahead", 4)
    assert "2 of the candidate count as 1, 2 of the incumbent count as 1" in found.why
    assert "let train(config, seed) use its seed" in str(found)
    standing = standing_of([runs(0, 0.7913, 0.7913), runs(1, 0.8512, 0.8512)], RaceRule(5))
    assert (standing.best, standing.races) == (1, ((1, 0, "ahead"),))
    assert standing.copied == {0: (2, 1), 1: (2, 1)}


def raced_equals(score, candidates, repeats, searches):
    """In how many searches of equals one was called better, raced as in the loop that the page shows."""
    called = 0
    for _ in range(searches):
        first, best, scores, wrong = [score(one) for one in range(candidates + 1)], 0, {}, False
        for one in range(1, candidates + 1):
            known = scores.setdefault(best, [first[best]])
            found = race(
                lambda config, _: score(config),
                one,
                best,
                repeats=repeats,
                candidates=candidates,
                candidate_scores=[first[one]],
                incumbent_scores=known,
            )
            wrong |= found.is_better
            scores[best] = list(found.incumbent_scores)
            if found.verdict in {"better", "ahead"}:
                best, scores[one] = one, list(found.candidate_scores)
        called += wrong
    return called / searches


@pytest.mark.parametrize("candidates", [1, 25])
def test_equals_that_ignore_their_seed_are_never_called_better(candidates):
    rng = np.random.default_rng(0)
    for _ in range(20):
        fixed = rng.normal(0.8, 0.02, candidates + 1)
        assert raced_equals(lambda config, scores=fixed: scores[config], candidates, 5, 1) == 0


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.01, 0.05, 0.1, 0.3])
def test_equals_that_fail_now_and_then_are_called_better_at_most_at_the_stated_rate(share):
    rng = np.random.default_rng(2)

    def score(_):
        return math.nan if rng.random() < share else rng.normal(0.9, 0.01)

    assert raced_equals(score, 25, 10, 300) <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 300)


def test_a_failed_repeat_is_no_evidence_and_one_training_calls_nothing():
    """The best trial fails once, and is trained once more; where it always fails, nothing is called."""
    table = {"new": iter([0.8, 0.81, 0.82]), "old": iter([0.5, math.nan, 0.52, 0.51])}
    found = race(lambda config, _: next(table[config]), "new", "old", repeats=5)
    assert found.verdict == "better"
    assert [math.isnan(one) for one in found.incumbent_scores][:2] == [False, True]
    assert "of which 1 gave no number" in found.why
    for always in (math.nan, math.inf):
        broken = race(lambda config, _, score=always: 0.8 if config == "new" else score, "new", "old", repeats=4)
        assert (broken.verdict, len(broken.incumbent_scores)) == ("ahead", 4)
    once = race(lambda config, _: {"new": 0.8, "old": 0.5}[config], "new", "old", repeats=1)
    assert (once.verdict, once.trainings) == ("ahead", 2)
    assert standing_of([runs(0, 0.5), runs(1, 0.8)], RaceRule(1)).races == ((1, 0, "ahead"),)


def searched(rng, trials, repeats, *, better=None, lead=0.0, spread=0.0, step=0.0):
    """One simulated search, raced as the agenda does. step: of the scale that scores are rounded to; 0: they are not.

    Whether one was called better that is not, whether the better one was called so, and led, and extra trainings.
    """
    means, sds = np.zeros(trials), np.exp(rng.normal(0.0, spread, trials))
    if better is not None:
        means[better] = lead

    def score(number):
        exact = rng.normal(means[number], sds[number])
        return round(exact / step) * step if step else exact

    rule, made, wrong, found, extra = RaceRule(repeats, candidates=trials), [runs(0, score(0))], False, False, 0
    for number in range(1, trials):
        made.append(runs(number, score(number)))
        while wanted := (standing := standing_of(made, rule)).wanted:
            for trial, repeat in wanted:
                made[trial].scores[repeat] = score(trial)
                made[trial].ended[repeat] = True
                extra += 1
        called = [other for one, other, verdict in standing.races if verdict == "better" and one == number]
        wrong |= any(means[number] <= means[other] for other in called)
        found |= bool(called) and number == better
    return wrong, found, standing.best == better, extra


def simulated(searches, seed, *arguments, **options):
    rng = np.random.default_rng(seed)
    return np.mean([searched(rng, *arguments, **options) for _ in range(searches)], axis=0)


@pytest.mark.slow
@pytest.mark.parametrize(("repeats", "spread"), [(5, 0.0), (10, 0.0), (10, 0.5)])
def test_equals_are_called_better_at_most_at_the_stated_rate(repeats, spread):
    wrong, *_ = simulated(400, 7, 25, repeats, spread=spread)
    assert wrong <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 400)


@pytest.mark.slow
@pytest.mark.parametrize(("repeats", "step"), [(5, 3.0), (5, 1.25), (5, 0.5), (10, 1.25)])
def test_equals_whose_scores_are_counted_are_called_better_at_most_at_the_stated_rate(repeats, step):
    wrong, *_ = simulated(400, 9, 25, repeats, step=step)
    assert wrong <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 400)


@pytest.mark.slow
@pytest.mark.parametrize(("candidates", "repeats"), [(1, 5), (25, 5)])
def test_equals_that_learn_half_of_the_time_are_called_better_at_most_at_the_stated_rate(candidates, repeats):
    rng = np.random.default_rng(3)
    searches = 300

    def score(_):
        return (0.9 if rng.random() < 0.5 else 0.1) + rng.normal(0, 0.002)

    assert raced_equals(score, candidates, repeats, searches) <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / searches)


@pytest.mark.slow
@pytest.mark.parametrize(("repeats", "lead", "least"), [(10, 2.0, 0.45), (10, 3.0, 0.9), (5, 3.0, 0.3)])
def test_what_is_better_is_found(repeats, lead, least):
    _, found, led, _ = simulated(150, 8, 25, repeats, better=12, lead=lead)
    assert found >= least
    assert led >= max(found - 0.05, 0.7)


def test_a_search_that_is_made_longer_keeps_the_rule_of_its_first_trials():
    first, longer = rule_of(12, [25], 10), rule_of(12, [25, 50, 60], 10)
    assert first == longer == RaceRule(10, candidates=25)
    assert rule_of(25, [25, 50, 60], 10) == RaceRule(10, ERROR_RATE / 2, 25)
    assert rule_of(59, [25, 50, 60], 10) == RaceRule(10, ERROR_RATE / 4, 10)
    assert error_of_plans([25]) == ERROR_RATE
    assert error_of_plans([25, 50, 60]) == pytest.approx(1.75 * ERROR_RATE)
    each = sum((rule := rule_of(number, [25, 50, 60], 10)).error_rate / rule.candidates for number in range(60))
    assert each == pytest.approx(error_of_plans([25, 50, 60]))


def test_an_error_too_rare_to_be_simulated_has_boundaries_all_the_same():
    rule = RaceRule(5, candidates=1100)
    spent = [stdtr(2 * size - 2, -critical) for size, critical in enumerate(rule.critical, start=2)]
    assert math.fsum(spent) == pytest.approx(rule.error_rate / 1100)
    assert rule.critical[-1] > RaceRule(5, candidates=900).critical[-1]
    more = RaceRule(5, candidates=100_000).critical
    assert all(one < other < math.inf for one, other in zip(rule.critical, more, strict=True))


def test_what_the_best_is_trained_later_changes_no_race_before():
    """Trial 1 did not look better than trial 0; that trial 0 had been lucky shows in its race with trial 2."""
    before = standing_of([runs(0, 0.6), runs(1, 0.59), runs(2, 0.61)], RaceRule(4))
    assert before.races == ((2, 0, "open"),)
    after = standing_of([runs(0, 0.6, 0.5, 0.5), runs(1, 0.59), runs(2, 0.61, 0.3)], RaceRule(4))
    assert after.races == ((2, 0, "not better"),)
    assert after.best == 0
    assert standing_of([runs(0, 0.6, 0.5), runs(2, 0.61, 0.3), runs(3, 0.57)], RaceRule(4)).wanted == ((3, 1),)


@given(st.lists(SCORES, min_size=2, max_size=6), st.lists(st.floats(-1, 1), max_size=5))
@example([[-4e-285], [0.0]], [0.0])
@example([[-5e-324], [0.0]], [0.0])
def test_a_race_that_is_over_stays_as_it_was(trials, more):
    rule = RaceRule(3, candidates=5)
    kept = [runs(number, *scores) for number, scores in enumerate(trials)]
    found = standing_of(kept, rule)
    later = [runs(number, *scores, *more) for number, scores in enumerate(trials)]
    again = standing_of([*later, runs(len(trials), 1.0)], rule)
    over = tuple(one for one in found.races if one[2] != "open")
    assert again.races[: len(over)] == over
    assert again.bests[: len(found.bests)] == found.bests
