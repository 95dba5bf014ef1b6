"""Variance shares with intervals, and H1, H2 and H3 as readable verdicts."""

import numpy as np
import pytest
from scipy import stats

from isorun.analysis.mixed.fit import refit
from isorun.analysis.mixed.hypotheses import hypotheses, variance_shares
from isorun.analysis.mixed.model import mixed_model
from isorun.errors import InputError

FORMULA = "y ~ experiment + (1|seed) + (1|repeat)"


def study(rng, *, seed_sd=0.0, repeat_sd=0.0, gap=0.0, seeds=6, repeats=5):
    experiment, seed, repeat = (
        grid.ravel() for grid in np.meshgrid(np.arange(4), np.arange(seeds), np.arange(repeats), indexing="ij")
    )
    y = gap * (experiment == 1) + 3.0 * (experiment >= 2)
    y = y + rng.normal(size=seeds)[seed] * seed_sd + rng.normal(size=repeats)[repeat] * repeat_sd
    names = np.array(["m1", "m1-again", "m2", "m2-again"])
    return {
        "y": y + rng.normal(size=len(seed)),
        "experiment": names[experiment],
        "seed": seed.astype(str),
        "repeat": repeat.astype(str),
    }


PAIRS = [("m1", "m1-again"), ("m2-again", "m2")]


def test_unstable_seeds_and_reruns_are_rejected_in_words():
    result = mixed_model(study(np.random.default_rng(0), seed_sd=2.0, gap=1.5), FORMULA)
    judged = hypotheses(result, reruns=PAIRS)
    assert judged.seeds.rejected
    assert judged.reruns.rejected
    assert judged.repeats.rejected is False
    assert judged.verdict == "Results are not stable: H2 and H3 rejected, H1 not rejected."
    assert "m1 and m1-again by -1." in judged.reruns.sentence
    assert "results vary with seed" in judged.seeds.sentence
    assert "95% interval" in judged.repeats.sentence


def test_stable_results_are_not_called_stable_but_not_shown_unstable():
    judged = hypotheses(mixed_model(study(np.random.default_rng(3)), FORMULA), reruns=PAIRS)
    assert judged.verdict == "No instability is shown: H1 and H2 and H3 not rejected."
    assert "remains possible" in judged.reruns.sentence


def test_what_the_model_cannot_test_is_said_and_not_guessed():
    result = mixed_model(study(np.random.default_rng(1)), "y ~ experiment + (1|seed)")
    judged = hypotheses(result, repeat=None)
    assert judged.repeats.rejected is None
    assert judged.reruns.p is None
    assert "H1 and H3 not tested" in judged.verdict
    with pytest.raises(InputError, match="no random effect 'repeat'"):
        hypotheses(result)
    with pytest.raises(InputError, match="did you mean 'm1-again'"):
        hypotheses(result, repeat=None, reruns=[("m1", "m1-agai")])
    with pytest.raises(InputError, match="alpha"):
        hypotheses(result, repeat=None, alpha=5)


def test_shares_sum_to_one_and_lie_in_their_intervals():
    shares = variance_shares(mixed_model(study(np.random.default_rng(2), seed_sd=1.0), FORMULA))
    assert [row.group for row in shares] == ["seed", "repeat", "Residual"]
    assert sum(row.share for row in shares) == pytest.approx(1.0)
    for row in shares:
        assert 0.0 <= row.lower <= row.share <= row.upper <= 1.0


def test_an_interval_ends_where_the_deviance_has_risen_by_the_chi_square_quantile():
    result = mixed_model(study(np.random.default_rng(2), seed_sd=1.0), "y ~ experiment + (1|seed)")
    share = variance_shares(result)[0]
    objective = result.fit.objective
    minimum = objective.value(result.fit.point)
    for end in (share.lower, share.upper):
        rise = objective.value(objective.at(np.array([end / (1 - end)]))) - minimum
        assert rise == pytest.approx(stats.chi2.ppf(0.95, 1), abs=1e-3)


def test_a_share_that_may_be_zero_has_an_interval_from_zero():
    result = mixed_model(study(np.random.default_rng(3)), FORMULA)
    assert all(row.lower == 0.0 for row in variance_shares(result)[:2])
    with pytest.raises(InputError, match="between 0 and 1"):
        variance_shares(result, level=2)


def test_leaving_a_random_effect_out_is_fitting_without_it():
    data = study(np.random.default_rng(4), seed_sd=1.0, repeat_sd=1.0)
    full, without = mixed_model(data, FORMULA), mixed_model(data, "y ~ experiment + (1|seed)")
    dropped = refit(full.fit.objective, full.fit.problem, full.fit.ratios, np.array([True, False]))
    assert dropped.log_likelihood == pytest.approx(without.loglik_reml, abs=1e-9)


@pytest.mark.slow
def test_intervals_of_differences_cover_95_percent_and_tests_hold_their_rate():
    rng = np.random.default_rng(11)
    covered = rejected = seeds_rejected = 0
    repetitions = 2000
    for _ in range(repetitions):
        result = mixed_model(
            study(rng, seed_sd=0.7, gap=0.4, seeds=5, repeats=3), "y ~ experiment + (1|seed)", adjust="none"
        )
        rows = {(row.a, row.b): row for row in result.differences}
        covered += rows["m1", "m1-again"].lower <= -0.4 <= rows["m1", "m1-again"].upper
        rejected += rows["m2", "m2-again"].p < 0.05
        null = mixed_model(study(rng, seeds=5, repeats=3), "y ~ experiment + (1|seed)")
        seeds_rejected += null.ranova[0].p_boundary < 0.05
    assert 0.93 <= covered / repetitions <= 0.97
    assert 0.03 <= rejected / repetitions <= 0.07
    assert seeds_rejected / repetitions <= 0.07


@pytest.mark.slow
def test_intervals_of_variance_shares_cover_about_95_percent():
    rng = np.random.default_rng(12)
    repetitions, covered = 400, 0
    for _ in range(repetitions):
        result = mixed_model(study(rng, seed_sd=1.0, seeds=12, repeats=3), "y ~ experiment + (1|seed)")
        share = variance_shares(result)[0]
        covered += share.lower <= 0.5 <= share.upper
    assert 0.92 <= covered / repetitions <= 0.98
