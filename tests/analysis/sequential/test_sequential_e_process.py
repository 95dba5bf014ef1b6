import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from isorun.analysis.sequential import Look, every
from isorun.analysis.sequential.equivalence import critical_t, e_value
from isorun.analysis.sequential.rules import e_process_rule
from isorun.analysis.sequential.trace import ends, trace


@pytest.mark.parametrize("look", [Look(5, 5), Look(12, 8), Look(30, 30)])
@pytest.mark.parametrize("t", [0.0, 1.3, -2.5, 4.0])
def test_the_evidence_equals_the_integral_over_the_prior(look, t):
    degrees, scale = look.n_a + look.n_b - 2, math.sqrt(look.information)

    def weighted(effect):
        return stats.nct.pdf(t, degrees, effect * scale) * stats.norm.pdf(effect)

    marginal = integrate.quad(weighted, -8, 8, limit=200)[0]
    assert float(e_value(t, look)) == pytest.approx(marginal / stats.t.pdf(t, degrees), rel=1e-6)


@given(st.integers(5, 200), st.integers(5, 200), st.floats(0.001, 0.2))
def test_the_critical_t_is_where_the_evidence_reaches_one_over_alpha(n_a, n_b, alpha):
    look = Look(n_a, n_b)
    critical = critical_t(look, alpha)
    if math.isfinite(critical):
        assert float(e_value(critical, look)) == pytest.approx(1 / alpha, rel=1e-6)
    else:
        assert float(e_value(np.inf, look)) <= 1 / alpha * (1 + 1e-9)


def test_so_few_runs_that_no_t_is_enough_have_no_critical_t():
    assert critical_t(Look(2, 2), 0.001) == math.inf


def test_the_expected_evidence_under_the_null_is_one():
    look = Look(6, 7)
    density = lambda t: float(e_value(t, look)) * stats.t.pdf(t, 11)  # noqa: E731
    assert integrate.quad(density, -400, 400, limit=500)[0] == pytest.approx(1, abs=1e-3)


def test_looking_two_hundred_times_keeps_the_error_rate():
    rng = np.random.default_rng(8)
    schedule = every(1, min_runs=5, max_runs=200)
    a, b = rng.standard_normal((200, 4_000)), rng.standard_normal((200, 4_000))
    assert ends(trace(e_process_rule(schedule, 0.05), a, b)).decided.mean() <= 0.05
