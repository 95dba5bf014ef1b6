import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun.analysis.sequential import SPENDING, cumulative_error
from isorun.analysis.sequential.boundaries import calibrate, rejected_by
from isorun.errors import InputError


@given(st.sampled_from(sorted(SPENDING)), st.floats(0.001, 0.2), st.lists(st.floats(0.01, 1.0), min_size=2, max_size=9))
def test_spending_never_falls_and_never_exceeds_alpha(name, alpha, points):
    spent = cumulative_error(name, sorted(points), alpha)
    assert list(spent) == sorted(spent)
    assert spent[-1] <= alpha * (1 + 1e-9)


@pytest.mark.parametrize("name", sorted(SPENDING))
def test_everything_is_spent_at_the_end(name):
    assert cumulative_error(name, (0.4, 1.0), 0.05)[-1] == 0.05


def test_spending_at_half_the_information_equals_the_published_values():
    halves = {name: cumulative_error(name, (0.5,), 0.05)[0] for name in SPENDING}
    assert halves["obrien-fleming"] == pytest.approx(0.00557, abs=1e-5)
    assert halves["pocock"] == pytest.approx(0.03101, abs=1e-5)
    assert halves["power-1.5"] == pytest.approx(0.05 / (2 * math.sqrt(2)))


def test_an_unknown_spending_function_names_the_known_ones():
    with pytest.raises(InputError, match=r"power-1.5, pocock, obrien-fleming \(did you mean 'pocock'"):
        cumulative_error("pocok", (1.0,), 0.05)


@pytest.mark.parametrize(
    ("name", "published"),
    [("obrien-fleming", [3.357, 2.680, 2.290, 2.031]), ("pocock", [2.438, 2.427, 2.410, 2.397, 2.386])],
)
def test_calibrated_boundaries_of_normal_paths_equal_the_group_sequential_tables(name, published):
    """Lan-DeMets boundaries for five equally spaced looks, .025 spent on each side, as gsDesign and ldbounds print."""
    rng = np.random.default_rng(11)
    steps = np.cumsum(rng.standard_normal((5, 400_000)), axis=0) / np.sqrt(np.arange(1, 6))[:, None]
    cumulative = [2 * spent for spent in cumulative_error(name, (0.2, 0.4, 0.6, 0.8, 1.0), 0.025)]
    calibration = calibrate(np.abs(steps), cumulative)
    assert calibration.critical[-len(published) :] == pytest.approx(published, abs=0.035)


@given(st.integers(0, 10_000), st.integers(2, 6))
def test_a_calibration_never_overspends_even_when_the_statistic_takes_few_values(seed, values):
    rng = np.random.default_rng(seed)
    paths = rng.integers(0, values, (4, 500)).astype(float)
    allowed = (0.02, 0.05, 0.1, 0.2)
    calibration = calibrate(paths, allowed)
    assert all(spent <= limit + 1e-12 for spent, limit in zip(calibration.spent, allowed, strict=True))
    assert rejected_by(paths, calibration.critical) == pytest.approx(calibration.spent)


def test_no_claim_is_possible_where_the_largest_value_is_too_common():
    assert calibrate(np.ones((1, 100)), (0.05,)).critical == (math.inf,)
