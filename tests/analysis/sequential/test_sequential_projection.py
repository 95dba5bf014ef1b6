import numpy as np
import pytest

from isorun.analysis.sequential import every
from isorun.analysis.sequential.projection import EFFECTS, project, smoothed_resample
from isorun.analysis.sequential.rules import sequential_rule
from isorun.analysis.sequential.trace import ends, trace

RULE = sequential_rule(every(1, min_runs=5, max_runs=30), "power-1.5", 0.05, futility=True)


def test_resampled_runs_keep_mean_and_sd():
    values = np.array([1.0, 2.0, 2.5, 7.0, 3.0, 1.5])
    drawn = smoothed_resample(values, (400, 1_000), np.random.default_rng(0))
    assert drawn.mean() == pytest.approx(values.mean(), rel=0.01)
    assert drawn.std() == pytest.approx(values.std(ddof=1), rel=0.01)


def test_runs_that_do_not_vary_are_resampled_as_they_are():
    assert (smoothed_resample(np.full(5, 3.0), (4, 3), np.random.default_rng(0)) == 3.0).all()


def test_a_clear_difference_needs_few_more_runs_and_a_small_one_more():
    rng = np.random.default_rng(2)
    b, noise = rng.standard_normal(6), rng.standard_normal(6)
    near = project(RULE, noise + 0.8, b, np.random.default_rng(1))
    far = project(RULE, noise + 2.5, b, np.random.default_rng(1))
    assert far.chance > near.chance
    assert far.more_runs is not None
    assert near.more_runs is None or far.more_runs < near.more_runs


def test_the_chance_given_an_effect_grows_with_it():
    rng = np.random.default_rng(3)
    found = project(RULE, rng.standard_normal(8) + 0.5, rng.standard_normal(8), np.random.default_rng(1))
    assert [effect for effect, _ in found.chances] == list(EFFECTS)
    chances = [chance for _, chance in found.chances]
    assert chances == sorted(chances)
    assert chances[0] < 0.15
    assert chances[-1] > 0.7


@pytest.mark.parametrize("size", [8, 11])
def test_swapping_the_sides_changes_nothing(size):
    rng = np.random.default_rng(4)
    a, b = rng.standard_normal(8) + 0.7, rng.standard_normal(size)
    there, back = (project(RULE, *sides, np.random.default_rng(1)) for sides in ((a, b), (b, a)))
    assert there == back
    assert there != project(RULE, a, b, np.random.default_rng(2))  # or there would be nothing drawn to be the same


def test_pairs_seen_from_the_other_side_have_the_same_projection():
    rule = sequential_rule(every(1, min_runs=5, max_runs=30), "power-1.5", 0.05, futility=True, test="signed-rank")
    differences = np.random.default_rng(5).standard_normal(8) + 0.6
    there, back = (project(rule, sign * differences, np.zeros(8), np.random.default_rng(1)) for sign in (1, -1))
    assert there == back


def test_pairs_are_projected_by_their_differences():
    rng = np.random.default_rng(5)
    rule = sequential_rule(every(1, min_runs=5, max_runs=30), "power-1.5", 0.05, futility=True, test="signed-rank")
    differences = rng.standard_normal(8) + 0.6
    found = project(rule, differences, np.zeros(8), np.random.default_rng(1))
    assert 0 < found.chance < 1
    assert dict(found.chances)[1.0] > dict(found.chances)[0.0]


def test_no_number_is_given_when_no_look_is_left():
    a = np.arange(30.0)
    projection = project(RULE, a, a.copy(), np.random.default_rng(0))
    assert projection.more_runs is None
    assert projection.chance is None


@pytest.mark.slow
@pytest.mark.parametrize("runs", [6, 10])
def test_stated_chances_keep_their_word(runs):
    """Of comparisons that are open after so many runs, as many are decided as was stated, for each true effect and,
    whatever the effects are, among those with the same stated chance."""
    stated, given, happened, in_time = _stated_and_real(runs, comparisons=150)
    for effect in EFFECTS:
        assert np.mean(given[effect]) == pytest.approx(np.mean(happened[effect]), abs=0.10)
    chances, outcomes = np.concatenate(list(stated.values())), np.concatenate(list(happened.values()))
    for low in (0.0, 0.25, 0.5, 0.75):
        alike = (chances >= low) & (chances < low + 0.25)
        assert chances[alike].mean() == pytest.approx(outcomes[alike].mean(), abs=0.10)
    assert 0.4 <= np.mean(in_time) <= 0.6


def _stated_and_real(runs, comparisons):
    stated, given, happened, in_time = {}, {}, {}, []
    look = runs - 5
    for effect in EFFECTS:
        rng = np.random.default_rng([71, runs, int(10 * effect)])
        a, b = rng.standard_normal((30, comparisons)) + effect, rng.standard_normal((30, comparisons))
        traced = trace(RULE, a, b)
        still_open = np.flatnonzero(~(traced.favours[: look + 1] != 0).any(axis=0))
        end = ends(traced.since(look + 1))
        found = [project(RULE, a[:runs, c], b[:runs, c], np.random.default_rng(0)) for c in still_open]
        stated[effect] = [projection.chance for projection in found]
        given[effect] = [dict(projection.chances)[effect] for projection in found]
        happened[effect] = end.decided[still_open]
        took = np.where(end.decided, np.array([look.n_a for look in RULE.schedule])[look + 1 + end.look] - runs, 99)
        in_time += [took[c] <= p.more_runs for c, p in zip(still_open, found, strict=True) if p.more_runs is not None]
    return stated, given, happened, in_time
