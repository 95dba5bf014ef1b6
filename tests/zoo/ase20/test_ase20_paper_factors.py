"""Shares of the variance from single factors, with known answers."""

import numpy as np
import pytest
import scipy.stats
from ase20_records import records_of

from isorun.study.levels import Level
from isorun.zoo.paper import Request
from isorun.zoo.studies.ase20.paper import Ase20

WEIGHTS = (0.90, 0.91, 0.92, 0.93, 0.94)
ORDER = (0.91, 0.92, 0.93, 0.92, 0.92)
ALL = (0.88, 0.90, 0.92, 0.94, 0.96)
NONE = (0.92,) * 5
ARMS = {"weights": WEIGHTS, "order": ORDER, "all": ALL, "none": NONE}


def presented(folder, arms):
    request = Request("smoke", folder, only=("factors",), runs=5)
    (study,) = Ase20().studies(request)
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
    assert [cells[1] for cells in table.rows] == ["weights", "order", "all", "none", "together only (rest)"]
    assert [cells[7] for cells in table.rows][:3] == ["25.0", "5.0", "100.0"]
    assert "LeNet5 has no dropout and no augmentation." in table.notes


def test_the_verdict_names_the_largest_factor_with_its_interval(tmp_path):
    verdict = " ".join(presented(tmp_path, ARMS).verdict)
    assert "LeNet5: of single factors, weights brings the largest part (25 %" in verdict
    assert "90 % interval 4 to 160 %" in verdict


def test_seeds_that_are_meant_to_do_nothing_are_no_warning(tmp_path):
    codes = {item.code for item in presented(tmp_path, ARMS).warnings}
    assert not codes & {"no-identical-runs", "seed-without-effect"}


def test_a_share_of_no_variance_is_unknown(tmp_path):
    shown = presented(tmp_path, dict.fromkeys(ARMS, NONE))
    (shares,) = shown.numbers["factors"]
    assert shares["arms"]["weights"]["share"] is None
    assert shares["rest"] is None
    assert [cells[7] for cells in shown.tables[0].rows] == ["—"] * 5


def test_arms_without_runs_are_rows_with_dashes(tmp_path):
    shown = presented(tmp_path, {"weights": WEIGHTS, "all": ALL})
    order = next(cells for cells in shown.tables[0].rows if cells[1] == "order")
    assert order[2:] == ("0", *["—"] * 6)
    assert {item.code for item in shown.warnings} >= {"runs-missing"}


def test_the_figure_has_a_box_for_each_arm(tmp_path):
    (figure,) = presented(tmp_path, ARMS).figures
    assert [tick.label.split("\N{NO-BREAK SPACE}")[0] for tick in figure.y.ticks] == [f"{arm} (n" for arm in ARMS]
    assert len(figure.boxes) == 4
