"""The models behind Tables 1, 2 and 4 against R, and the nested model against variances that are known."""

import csv
import dataclasses

import pytest
from fewshot_records import SHARED_DATA, drawn, noisy, planned, records_of, request

from isorun.zoo.studies.fewshot.experiments import EXPERIMENTS, approach_name
from isorun.zoo.studies.fewshot.findings import judge
from isorun.zoo.studies.fewshot.measured import FinishedRun, collect
from isorun.zoo.studies.fewshot.models import fitting_model, nested_model, paper_model
from isorun.zoo.studies.fewshot.tables import random_tests

NAMES = [item.name for item in EXPERIMENTS]
APPROACHES = [approach_name(name, number) for name in sorted(NAMES) for number in (1, 2)]

# R 4.2.2, lme4 1.1-31, lmerTest 3.1-3: lmer(metric ~ experiment + (1|seed) + (1|repeat_id)) on fewshot_repeat.csv,
# then ranova, anova(ddf = "Kenward-Roger") and difflsmeans.
R_RANOVA = {
    "none left out": (15, -2026.89902412, 4083.79804824, None, None),
    "(1 | seed)": (14, -2251.52695162, 4531.05390325, 449.2558550050, 1.04727905201e-99),
    "(1 | repeat)": (14, -2073.10994514, 4174.21989027, 92.4218420283, 7.00368343014e-22),
}
R_ANOVA = (4734.45992609, 430.405447827, 11, 1054.10436604, 175.523483757, 2.76202279422e-229)
R_DIFFERENCES = [
    (-4.97044741833, 0.241860971455, -5.44503114128, -4.49586369539, 3.43794628695e-79),
    (-4.07113534445, 0.239094202848, -4.54029008869, -3.60198060021, 1.2711200911e-57),
    (-1.83651412378, 0.231665912216, -2.29109281867, -1.38193542888, 5.66831352316e-15),
    (-2.10057888362, 0.236352694305, -2.56435416537, -1.63680360187, 2.6532886218e-18),
    (1.68193393964, 0.23371075778, 1.2233426876, 2.14052519168, 1.17019625609e-12),
    (-1.12782908442, 0.226086985379, -1.57146083266, -0.684197336177, 7.11387976219e-07),
]


@pytest.fixture(scope="module")
def golden_model():
    """The paper's model of the 1,074 simulated runs that R fitted; e01 and e02 are two rounds, and so on."""
    path = SHARED_DATA / "mixed-model-goldens/fewshot_repeat.csv"
    if not path.is_file():
        pytest.skip("the runs that R fitted are not at hand")
    with path.open() as file:
        rows = list(csv.DictReader(file))
    named = dict(zip(sorted({row["experiment"] for row in rows}), APPROACHES, strict=True))
    return paper_model([golden_run(named[row["experiment"]], row) for row in rows])


def golden_run(approach, row):
    return FinishedRun(
        approach,
        approach[:-2],
        int(approach[-1]),
        row["config"],
        row["seed"],
        row["repeat_id"],
        float(row["metric"]),
        "",
    )


def test_table_1_is_as_lmertest_gives_it(golden_model):
    found = {row.effect: (row.parameters, row.loglik, row.aic, row.lrt, row.p) for row in random_tests(golden_model)}
    assert list(found) == list(R_RANOVA)
    for effect, numbers in R_RANOVA.items():
        assert found[effect][:3] == pytest.approx(numbers[:3], abs=1e-6)
        assert found[effect][3:] == (pytest.approx(numbers[3:], rel=1e-6) if numbers[3] else (None, None))


def test_table_2_is_as_lmertest_gives_it(golden_model):
    for name, numbers in zip(sorted(NAMES), R_DIFFERENCES, strict=True):
        row = golden_model.rerun(name)
        assert (row.estimate, row.se, row.lower, row.upper) == pytest.approx(numbers[:4], rel=1e-5)
        assert row.p == pytest.approx(numbers[4], rel=1e-3)


def test_table_4_is_as_lmertest_gives_it(golden_model):
    row = golden_model.f_test
    assert (row.sum_sq, row.mean_sq, row.num_df, row.den_df, row.f) == pytest.approx(R_ANOVA[:5], rel=1e-5)
    assert row.p == pytest.approx(R_ANOVA[5], rel=1e-2)


def test_all_three_hypotheses_are_rejected_where_r_sees_the_effects(golden_model):
    judged = judge(golden_model, NAMES)
    assert [row.rejected for row in judged] == [True, True, True]
    assert [row.p for row in judged[:2]] == pytest.approx([7.00368343014e-22, 1.04727905201e-99], rel=1e-5)


def runs_of(accuracy, asked=None):
    (main, _) = planned(asked or request("paper")).values()
    return collect(records_of(main, accuracy)).runs


def test_a_seed_effect_within_configs_is_seen_by_the_nested_model_and_not_by_the_papers():
    runs = runs_of(noisy)
    assert judge(paper_model(runs), NAMES)[1].rejected is False
    nested = nested_model(runs)
    assert nested.seed_p < 1e-10
    shares = {row.group: row.share for row in nested.shares}
    assert shares["configs"] > shares["seeds"] > shares["repeats"]
    assert sum(shares.values()) == pytest.approx(1.0)


def test_the_nested_model_finds_the_variances_that_were_put_in():
    nested = nested_model(runs_of(lambda cell: noisy(cell, config=0.02, seed=0.02, repeat=0.02)))
    for row in nested.shares:
        assert row.lower < 1 / 3 < row.upper


def test_a_seed_effect_shared_by_all_experiments_is_seen_by_the_papers_model():
    judged = judge(paper_model(runs_of(lambda cell: noisy(cell) + 0.05 * drawn("everywhere", cell.seed))), NAMES)
    assert judged[1].rejected is True
    assert "results vary with seeds" in judged[1].sentence


def test_a_rerun_that_lies_higher_is_found():
    judged = judge(paper_model(runs_of(lambda cell: noisy(cell, rerun=0.02 * ("tadam-sgd" in cell.approach)))), NAMES)
    assert judged[2].rejected is True
    assert judged[2].rejected_corrected is True
    assert "tadam-sgd differ, of 6 experiments" in judged[2].sentence


def test_identical_repeats_leave_configs_and_seeds():
    nested = nested_model(runs_of(lambda cell: noisy(cell, repeat=0.0)))
    shares = {row.group: row.share for row in nested.shares}
    assert list(shares) == ["configs", "seeds", "repeats"]
    assert shares["repeats"] == 0.0
    assert 0.0 < shares["seeds"] < shares["configs"]


def test_one_config_leaves_seeds_and_repeats():
    asked = request("smoke", runs=3, only=("matching-sgd", "matching-adam", "control"))
    nested = nested_model(runs_of(noisy, asked))
    assert [row.group for row in nested.shares] == ["seeds", "repeats"]


def test_one_repeat_leaves_repeats_out_of_the_papers_model():
    model = paper_model(runs_of(noisy, request("smoke")))
    assert model.formula == "accuracy ~ experiment + (1|seed)"
    assert model.left_out == ("(1|repeat) is not in the model: there is only one repeat",)
    assert judge(model, NAMES)[0].rejected is None


def test_equal_results_everywhere_are_no_model_and_no_crash():
    runs = runs_of(lambda _: 0.2, request("cpu"))
    model = paper_model(runs)
    assert model.result is None
    assert "constant" in model.why_not
    assert "constant" in nested_model(runs).why_not
    assert [row.sentence.count("was not tested") for row in judge(model, NAMES)] == [1, 1, 1]


def test_noise_in_a_single_run_is_presented_as_next_to_nothing():
    runs = list(runs_of(lambda cell: noisy(cell, repeat=0.0), request("cpu")))
    runs[0] = dataclasses.replace(runs[0], accuracy=runs[0].accuracy + 1e-4)
    nested = nested_model(runs)
    assert [row.group for row in nested.shares] == ["configs", "seeds", "repeats"]
    assert 0.0 < nested.shares[2].share < 1e-5
    assert nested.seed_p < 1e-10


def judged_with_fit(runs):
    return judge(paper_model(runs), NAMES, fitting_model(runs))


def test_the_model_that_fits_sees_seeds_within_configs():
    judged = judged_with_fit(runs_of(noisy, request("cpu")))
    assert judged[1].rejected is False
    assert judged[1].rejected_fitting is True
    assert "by the paper's own model and rule it is not rejected" in judged[1].sentence


def test_seeds_that_act_in_each_round_in_their_own_way_are_no_difference_of_rounds():
    def particular(cell):
        return 0.6 + 0.02 * drawn(8, cell.approach, cell.seed) + 0.002 * drawn("noise", cell.id)

    judged = judged_with_fit(runs_of(particular, request("cpu")))
    assert judged[2].rejected_corrected is True
    assert judged[2].rejected_fitting is False


def test_a_rerun_that_lies_higher_is_found_by_the_model_that_fits():
    higher = runs_of(lambda cell: noisy(cell, rerun=0.02 * ("tadam-sgd" in cell.approach)), request("gpu"))
    judged = judged_with_fit(higher)
    assert judged[2].rejected_fitting is True
    assert "the rounds of tadam-sgd differ" in judged[2].fitting_words


def test_repeats_that_agree_within_a_round_count_once():
    runs = runs_of(lambda cell: 0.6 + 0.01 * drawn(cell.approach, cell.config, cell.seed), request("cpu"))
    model = fitting_model(runs)
    assert model.rows == len(runs) // 2
    assert "repeat" not in model.formula
    assert model.without_noise is None


def test_one_setting_is_no_model_that_fits_and_no_crash():
    runs = [run for run in runs_of(noisy, request("cpu")) if run.seed == "12345" and run.config.endswith("1")][:1]
    assert "cannot be told apart" in fitting_model(runs).why_not
