"""Shares of the variance from single factors, with known answers."""

import numpy as np
import pytest
import scipy.stats
from ase20_records import records_of

from isorun.analysis.spreads import spread
from isorun.study.cells import Level
from isorun.zoo.paper import Request
from isorun.zoo.studies.ase20.factors import FactorArm, FactorShares, factor_lead
from isorun.zoo.studies.ase20.paper import Ase20

WEIGHTS = (0.90, 0.91, 0.92, 0.93, 0.94)
ORDER = (0.91, 0.92, 0.93, 0.92, 0.92)
ALL = (0.88, 0.90, 0.92, 0.94, 0.96)
NONE = (0.92,) * 5
ARMS = {"weights": WEIGHTS, "order": ORDER, "all": ALL, "none": NONE}


def presented(folder, arms):
    request = Request("cpu", folder, only=("factors",), runs=5, recorded=True)
    study = next(study for study in Ase20().studies(request) if study.name == "ase20-cpu-factors-lenet5")
    runs = {(arm, Level.DETERMINISTIC): values for arm, values in arms.items()}
    return Ase20().present(request, {study.name: records_of(study, runs, weights="same")})


@pytest.fixture(autouse=True)
def no_data(made_data_folder):
    """Presenting needs no data."""


def test_a_factors_share_is_its_variance_over_that_of_all(tmp_path):
    (shares,) = presented(tmp_path, ARMS).numbers["factors"]
    # variances of 1, 2, 3, 4, 5 (times 0.01) and of their doubles: a quarter
    assert shares["arms"]["weights"]["variance"] == pytest.approx(0.00025)
    assert shares["arms"]["weights"]["share"] == pytest.approx(0.25)
    order = np.var(ORDER, ddof=1) / np.var(ALL, ddof=1)
    assert shares["arms"]["order"]["share"] == pytest.approx(order)
    assert shares["arms"]["none"]["share"] == 0.0
    assert shares["rest"] == pytest.approx(1 - 0.25 - order)


def test_the_interval_of_a_share_is_that_of_the_f_law(tmp_path):
    (shares,) = presented(tmp_path, ARMS).numbers["factors"]
    expected = [0.25 / scipy.stats.f.ppf(level, 4, 4) for level in (0.95, 0.05)]
    assert shares["arms"]["weights"]["share_ci90"] == pytest.approx(expected)


def test_what_varies_with_nothing_varied_is_taken_off(tmp_path):
    noise = (0.92, 0.93, 0.92, 0.91, 0.92)
    (shares,) = presented(tmp_path, ARMS | {"none": noise}).numbers["factors"]
    floor = np.var(noise, ddof=1) / np.var(ALL, ddof=1)
    order = np.var(ORDER, ddof=1) / np.var(ALL, ddof=1)
    assert shares["arms"]["none"]["share"] == pytest.approx(floor)
    assert shares["arms"]["weights"]["share"] == pytest.approx(0.25 - floor)
    assert shares["rest"] == pytest.approx(1 - floor - (0.25 - floor) - (order - floor))


def test_the_table_has_a_row_for_each_arm_and_the_rest(tmp_path):
    shown = presented(tmp_path, ARMS)
    (table,) = shown.tables
    assert [cells[1] for cells in table.rows] == ["weights", "order", "all", "none", "rest"]
    assert [cells[6] for cells in table.rows] == ["25.0", "5.0", "100.0", "0.0", "70.0"]
    assert "LeNet5 has no dropout and no augmentation." in table.notes


def lead_sentence(shown):
    return next(line for line in shown.verdict if line.startswith("LeNet5, one factor varied"))


def lead_of(shown):
    return shown.numbers["factors"][0]["lead"]


def test_a_factor_is_named_the_largest_only_when_its_variance_can_be_told_from_the_next(tmp_path):
    narrow = tuple(0.92 + (value - 0.92) / 10 for value in ORDER)
    shown = presented(tmp_path, ARMS | {"order": narrow})
    p = 2 * scipy.stats.f.sf(np.var(WEIGHTS, ddof=1) / np.var(narrow, ddof=1), 4, 4)
    assert p < 0.05
    assert lead_of(shown) == {"largest": "weights", "not_told_apart": [], "f_test_p": pytest.approx(p)}
    assert "weights makes the accuracy vary most (SDev 1.6 points; next is order with 0.07" in lead_sentence(shown)


def test_factors_whose_variances_are_alike_are_said_not_to_be_told_apart(tmp_path):
    shown = presented(tmp_path, ARMS)
    p = 2 * scipy.stats.f.sf(np.var(WEIGHTS, ddof=1) / np.var(ORDER, ddof=1), 4, 4)
    assert p > 0.05
    lead = {"largest": None, "not_told_apart": ["weights", "order"], "f_test_p": pytest.approx(p)}
    assert lead_of(shown) == lead
    told = lead_sentence(shown)
    assert "weights and order cannot be told apart as sources of variance (SDev 1.6 and 0.71 points" in told
    # 0.25 over the 95 % and 5 % points of the F law with 4 and 4 degrees of freedom
    assert "which 5 seeds cannot tell from weights alone (90 % interval of the ratio of variances 0.039 to 1.6)" in told
    assert "25 %" not in told


@pytest.mark.parametrize(("all_", "words"), [(40.0, "more than with weights"), (0.01, "less than with weights")])
def test_all_factors_together_are_said_to_vary_more_or_less_where_that_is_clear(all_, words, tmp_path):
    together = tuple(0.5 + all_ * (value - 0.92) / 4 for value in ALL)
    assert f"{words} alone" in lead_sentence(presented(tmp_path, ARMS | {"all": together}))


def test_a_factor_that_varies_beats_one_that_does_not(tmp_path):
    assert lead_of(presented(tmp_path, ARMS | {"order": NONE}))["largest"] == "weights"


@pytest.mark.parametrize("arms", [{"order": ORDER[:4]}, {"weights": NONE, "order": NONE}])
def test_too_few_seeds_or_no_variance_give_no_leading_factor(arms, tmp_path):
    shown = presented(tmp_path, ARMS | arms)
    assert lead_of(shown) is None
    assert not any("one factor varied at a time" in line for line in shown.verdict)


def test_a_rest_below_zero_is_not_shown_as_a_share(tmp_path):
    shown = presented(tmp_path, ARMS | {"all": NONE[:1] + WEIGHTS[1:]})
    assert shown.numbers["factors"][0]["rest"] < 0
    assert shown.tables[0].rows[-1][1:] == ("rest", *["—"] * 4, "< 0", "—")


def test_of_three_alike_factors_one_is_named_the_largest_in_less_than_5_of_100_studies():
    generator = np.random.default_rng(1)
    named = 0
    for _ in range(400):
        drawn = {name: tuple(generator.normal(size=5)) for name in ("weights", "order", "augmentation", "all")}
        arms = tuple(FactorArm(name, values, spread(values), 0, None, None) for name, values in drawn.items())
        named += not factor_lead(FactorShares("ResNet38", "cifar10", arms, None)).alike
    # the largest against the smallest would be told apart by chance in 11 of 100
    assert named / 400 < 0.05


def test_seeds_that_are_meant_to_do_nothing_are_no_warning(tmp_path):
    codes = {item.code for item in presented(tmp_path, ARMS).warnings}
    assert not codes & {"no-identical-runs", "seed-without-effect"}


def test_a_share_of_no_variance_is_unknown(tmp_path):
    shown = presented(tmp_path, dict.fromkeys(ARMS, NONE))
    (shares,) = shown.numbers["factors"]
    assert shares["arms"]["weights"]["share"] is None
    assert shares["rest"] is None
    assert [cells[6] for cells in shown.tables[0].rows] == ["—"] * 4


def test_arms_without_runs_are_rows_with_dashes(tmp_path):
    shown = presented(tmp_path, {"weights": WEIGHTS, "all": ALL})
    order = next(cells for cells in shown.tables[0].rows if cells[1] == "order")
    assert order[2:] == ("0", *["—"] * 5)
    assert {item.code for item in shown.warnings} >= {"runs-missing"}


def test_the_figure_has_a_box_for_each_arm(tmp_path):
    (figure,) = presented(tmp_path, ARMS).figures
    assert [tick.label.split("\N{NO-BREAK SPACE}")[0] for tick in figure.y.ticks] == [f"{arm} (n" for arm in ARMS]
    assert len(figure.boxes) == 4
