"""A model that lacks an effect says so; numbers that may be labels are asked about; H2 and H3 hold their error rate."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from isorun.analysis.evidence import voided
from isorun.analysis.mixed.checks import drawn_in, interaction_tests, joint_test, model_that_fits, with_checks
from isorun.analysis.mixed.formula import with_factor
from isorun.analysis.mixed.hypotheses import hypotheses
from isorun.analysis.mixed.model import mixed_model

PAPER = "y ~ experiment + (1|seed) + (1|repeat)"
FITS = f"{PAPER} + (1|experiment:seed)"
PAIRS = [("e0", "e1"), ("e2", "e3")]


def study(rng, *, experiments=4, seeds=5, repeats=5, own=1.0, shared=0.0, gap=0.0):
    """own: sd of seed effects particular to each experiment; shared: of those alike in all; noise has sd 1."""
    e, s, r = (g.ravel() for g in np.meshgrid(*map(np.arange, (experiments, seeds, repeats)), indexing="ij"))
    y = own * rng.normal(size=(experiments, seeds))[e, s] + shared * rng.normal(size=seeds)[s] + gap * (e == 1)
    return {
        "y": y + rng.normal(size=len(e)),
        "experiment": np.array([f"e{place}" for place in range(experiments)])[e],
        "seed": s.astype(str),
        "repeat": r.astype(str),
    }


def conditions(data, formula):
    return with_checks(mixed_model(data, formula)).conditions


def test_an_interaction_that_is_there_voids_the_model_and_names_the_formula_to_use():
    condition = conditions(study(np.random.default_rng(1)), PAPER)[0]
    assert (condition.code, condition.voids, condition.groups) == ("interaction-missing", True, ("experiment",))
    assert "p < 0.001" in condition.message
    assert f'"{FITS}"' in condition.next_step


def test_the_formula_to_use_next_has_nothing_to_complain_of():
    found = conditions(study(np.random.default_rng(1)), FITS)
    assert not [item for item in found if item.code == "interaction-missing"]


def test_an_interaction_that_is_not_shown_weakens_and_does_not_void():
    (condition,) = [
        item
        for item in conditions(study(np.random.default_rng(2), own=0.0, shared=1.0), PAPER)
        if item.code == "interaction-missing"
    ]
    assert not condition.voids
    assert "does not rule them out" in condition.message
    assert "(1|experiment:seed) + (1|experiment:repeat)" in condition.next_step


def test_the_test_is_the_likelihood_ratio_of_the_two_models():
    data = study(np.random.default_rng(3), own=0.5)
    (test, _) = interaction_tests(mixed_model(data, PAPER))
    without, with_it = mixed_model(data, PAPER), mixed_model(data, FITS)
    assert test.term == "(1 | experiment:seed)"
    assert test.formula == FITS
    assert test.lrt == pytest.approx(2 * (with_it.loglik_reml - without.loglik_reml), abs=1e-7)
    assert test.p == pytest.approx(with_it.ranova[-1].p_boundary, abs=1e-9)


@pytest.mark.parametrize(
    ("formula", "why"),
    [
        (FITS, "it is there already"),
        ("y ~ experiment + (1|repeat) + (1|seed:experiment) + (1|seed)", "under another name"),
        ("y ~ experiment + (1|cell) + (1|seed)", "as a column of its own"),
        ("y ~ experiment + (experiment|seed)", "as slopes of the factor"),
        ("y ~ experiment + (1|cell)", "the groups lie within the levels"),
        ("y ~ 1 + (1|seed)", "there is no factor"),
        ("y ~ x + (1|seed)", "every row has its own value"),
    ],
)
def test_nothing_is_missing_where(formula, why):
    data = study(np.random.default_rng(4))
    data["cell"] = np.char.add(np.char.add(data["experiment"], "-"), data["seed"])
    data["x"] = np.random.default_rng(4).normal(size=100)
    found = [test.term for test in interaction_tests(mixed_model(data, formula))]
    assert not [term for term in found if "seed" in term or "cell" in term], why


def test_without_replication_the_residual_is_the_interaction():
    data = study(np.random.default_rng(5), repeats=1)
    assert interaction_tests(mixed_model(data, "y ~ experiment + (1|seed)")) == ()


def test_a_test_that_cannot_be_made_is_said_and_voids_nothing():
    data = study(np.random.default_rng(6), repeats=2)
    data["y"] = np.random.default_rng(6).normal(size=20).repeat(2)
    (test,) = interaction_tests(mixed_model(data, "y ~ experiment + (1|seed)"))
    assert test.p is None
    assert "no residual variance" in test.why_not
    (condition,) = [
        item for item in conditions(data, "y ~ experiment + (1|seed)") if item.code == "interaction-missing"
    ]
    assert not condition.voids
    assert "could not be tested" in condition.message


def configs(means=(0.80, 0.95, 0.80), seed=0):
    rng = np.random.default_rng(seed)
    config, seeds = np.repeat([1.0, 2.0, 3.0], 20), np.tile(np.arange(10), 6)
    y = np.array(means)[(config - 1).astype(int)] + 0.01 * rng.normal(size=60) + 0.01 * rng.normal(size=10)[seeds]
    return {"y": y, "config": config, "seed": seeds}


def test_three_configs_that_lie_on_no_line_void_the_slope():
    result = with_checks(mixed_model(configs(), "y ~ config + (1|seed)"))
    condition = voided(result.conditions)
    assert condition.code == "number-or-factor"
    assert "3 values" in condition.message
    assert "lack of fit: p < 0.001" in condition.message
    assert condition.next_step == 'use "y ~ factor(config) + (1|seed)"'
    assert result.anova[0].p > 0.3
    assert with_checks(mixed_model(configs(), "y ~ factor(config) + (1|seed)")).anova[0].p < 1e-6


def test_a_line_that_fits_is_asked_about_and_not_voided():
    (condition,) = [
        item
        for item in conditions(configs((0.80, 0.85, 0.90), seed=1), "y ~ config + (1|seed)")
        if item.code == "number-or-factor"
    ]
    assert not condition.voids
    assert "factor(config)" in condition.next_step


@pytest.mark.parametrize("values", [2, 7])
def test_two_values_or_many_are_not_asked_about(values):
    rng = np.random.default_rng(1)
    data = {"y": rng.normal(size=84), "x": np.tile(np.arange(values), 84 // values), "g": np.repeat(np.arange(6), 14)}
    assert not [item for item in conditions(data, "y ~ x + (1|g)") if item.code == "number-or-factor"]


def test_lack_of_fit_is_the_f_test_of_a_quadratic_for_three_values():
    data = configs((0.80, 0.81, 0.80), seed=3)
    (condition,) = [item for item in conditions(data, "y ~ config + (1|seed)") if item.code == "number-or-factor"]
    data["square"] = data["config"] ** 2
    p = mixed_model(data, "y ~ config + square + (1|seed)", ddf="kenward-roger").anova[1].p
    assert (f"p = {p:.3f}" if p >= 0.001 else "p < 0.001") in condition.message


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("y ~ x + (x|g)", "y ~ factor(x) + (x|g)"),
        ("y ~ x*a + x:b - x", "y ~ factor(x)*a + factor(x):b - factor(x)"),
        ("y ~ (x + a):b + factor(x) + (1|x)", "y ~ (factor(x) + a):b + factor(x) + (1|x)"),
        ("x ~ a + (0 + x||x)", "x ~ a + (0 + x||x)"),
    ],
)
def test_a_column_of_the_fixed_part_is_made_levels(formula, expected):
    assert with_factor(formula, "x") == expected
    assert with_factor(formula.replace("x", "`a z`"), "a z") == expected.replace("x", "`a z`")


def test_the_joint_test_leaves_out_all_effects_of_a_group():
    result = model_that_fits(mixed_model(study(np.random.default_rng(7)), PAPER), "seed")
    lrt, p, count = joint_test(result, "seed")
    without = mixed_model(study(np.random.default_rng(7)), "y ~ experiment + (1|repeat)")
    assert count == 2
    assert lrt == pytest.approx(2 * (result.loglik_reml - without.loglik_reml), abs=1e-7)
    assert p == pytest.approx(0.5 * stats.chi2.sf(lrt, 1) + 0.25 * stats.chi2.sf(lrt, 2), rel=1e-9)
    single = mixed_model(study(np.random.default_rng(7), own=0.3), "y ~ experiment + (1|seed)")
    assert joint_test(single, "seed")[1] == pytest.approx(single.ranova[0].p_boundary, rel=1e-6)


def test_the_hypotheses_are_judged_with_the_model_that_fits_and_the_given_one_stands_beside_it():
    judged = hypotheses(mixed_model(study(np.random.default_rng(5)), PAPER), reruns=PAIRS)
    assert judged.formula == FITS
    assert judged.as_given.formula == PAPER
    assert judged.seeds.rejected
    assert "experiment:seed: sd" in judged.seeds.sentence
    assert not judged.reruns.rejected
    assert judged.sentences[-1].startswith(f"Judged with {FITS}")
    assert PAPER in judged.sentences[-1]
    assert hypotheses(mixed_model(study(np.random.default_rng(8)), FITS), reruns=PAIRS).as_given is None


def test_the_model_that_fits_is_the_one_that_its_formula_says():
    data = study(np.random.default_rng(9))
    wider = model_that_fits(mixed_model(data, PAPER, adjust="tukey"), "seed")
    same = mixed_model(data, wider.formula, ddf="kenward-roger", adjust="tukey")
    assert wider.fixed == same.fixed
    assert wider.differences == same.differences
    assert model_that_fits(wider, "seed") is None


def test_runs_and_seeds_are_counted():
    data = study(np.random.default_rng(10), seeds=3, repeats=10)
    result = mixed_model(data, FITS)
    counted = drawn_in(result)
    assert (counted.n, counted.units, counted.unit) == (120, 3, "seed")
    assert counted.sentence(result.anova[0]).startswith("120 runs of 3 seeds count as 3 for experiment: its test has ")
    given = mixed_model(data, PAPER)
    assert "this model counts every run (116.0 degrees" in drawn_in(given).sentence(given.anova[0])


@pytest.mark.parametrize(
    ("column", "known"),
    [("seed", True), ("random_seed", True), ("Seed.1", True), ("seedling", False), ("reseed", False)],
)
def test_columns_of_seeds_are_recognised_by_name(column, known):
    data = study(np.random.default_rng(11))
    data[column] = data["seed"]
    counted = drawn_in(mixed_model(data, f"y ~ experiment + (1|{column})"))
    assert (counted.unit, counted.units) == ((column, 5) if known else (None, None))


def test_seeds_within_levels_are_counted_and_a_colon_in_a_label_does_not_confuse():
    data = study(np.random.default_rng(12))
    within = drawn_in(mixed_model(data, "y ~ experiment + (1|experiment:seed)"))
    assert (within.units, within.unit) == (5, "seed")
    data["seed"] = np.char.add("a:", data["seed"])
    assert drawn_in(mixed_model(data, "y ~ experiment + (1|seed)")).units == 5


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 10_000), st.floats(0.01, 100.0))
@example(1389, 31.679463412330648)  # the likelihoods differ by rounding alone
def test_the_scale_of_the_response_changes_no_check(seed, scale):
    data = study(np.random.default_rng(seed), own=0.5)
    moved = {**data, "y": scale * data["y"]}
    first, second = (interaction_tests(mixed_model(part, PAPER))[0] for part in (data, moved))
    assert first.p == pytest.approx(second.p, rel=1e-3, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("design", "paper_rejects"),
    [({}, 0.25), ({"seeds": 3, "repeats": 10}, 0.5), ({"experiments": 2, "seeds": 3}, 0.15), ({"own": 0.0}, 0.0)],
)
def test_h3_holds_its_error_rate_where_seeds_act_in_each_experiment_in_their_own_way(design, paper_rejects):
    rng, repetitions, fits, given_model = np.random.default_rng(31), 200, 0, 0
    pairs = PAIRS[: design.get("experiments", 4) // 2]
    for _ in range(repetitions):
        result = mixed_model(study(rng, **design), PAPER)
        wider = model_that_fits(result, "seed")
        fits += min(row.p for row in wider.differences if (row.a, row.b) in pairs) * len(pairs) < 0.05
        given_model += min(row.p for row in result.differences if (row.a, row.b) in pairs) * len(pairs) < 0.05
    # .055 and three standard errors of so many simulations.
    assert fits / repetitions <= 0.055 + 3 * (0.05 * 0.95 / repetitions) ** 0.5
    assert given_model / repetitions >= paper_rejects


@pytest.mark.slow
def test_h2_and_the_check_hold_their_error_rate_where_seeds_do_not_act():
    rng, repetitions, seeds, missing = np.random.default_rng(32), 200, 0, 0
    for _ in range(repetitions):
        result = mixed_model(study(rng, own=0.0), PAPER)
        seeds += joint_test(model_that_fits(result, "seed"), "seed")[1] < 0.05
        missing += interaction_tests(result)[0].p < 0.05
    assert seeds / repetitions <= 0.055
    assert missing / repetitions <= 0.055
