"""Plans: what is kept, what may change after the first look, and stages that are declared beforehand."""

import json
import math

import numpy as np
import pytest

from isorun.analysis.sequential import Plan, against_stored, continued, cumulative_error, every, fractions
from isorun.analysis.sequential.rules import planned_rule, sequential_rule
from isorun.analysis.sequential.trace import ends, trace
from isorun.analysis.sequential.verdict import decide, decide_by
from isorun.errors import InputError

STAGES = (30, 60, 120)
PLANS = [
    Plan(),
    Plan(max_runs=None),
    Plan(method="fixed", test="mann-whitney", margin=0.1),
    Plan(paired=True, alpha=0.01, spending="pocock", futility=False),
    Plan(looks=against_stored(50, max_runs=12)),
    Plan(looks=[5, (6, 5), 9]),
    Plan(max_runs=60, stages=STAGES),
]


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_a_plan_comes_back_from_json_as_it_was(plan):
    back = Plan.from_json(json.loads(json.dumps(plan.to_json(), allow_nan=False)))
    assert back.to_json() == plan.to_json()
    assert continued(plan, back).to_json() == plan.to_json()


def test_a_plan_kept_is_the_plan_that_decides():
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal(12) + 1, rng.standard_normal(12)
    plan = Plan.from_json(Plan(max_runs=20, alpha=0.1).to_json())
    assert decide_by(plan, a, b, direction="higher") == decide(a, b, direction="higher", max_runs=20, alpha=0.1)


@pytest.mark.parametrize(
    "data",
    [{"methd": "fixed"}, {"max_runs": "30"}, {"looks": [[5]]}, {"looks": "x"}, {"method": 3}, {"stages": ["a"]}],
    ids=str,
)
def test_a_plan_that_cannot_be_read_is_refused(data):
    with pytest.raises(InputError):
        Plan.from_json(data)


@pytest.mark.parametrize(
    "change",
    [
        {"alpha": 0.1},
        {"spending": "pocock"},
        {"min_runs": 8},
        {"test": "mann-whitney"},
        {"paired": True},
        {"margin": 0.5},
        {"looks": 5},
        {"method": "fixed"},
    ],
    ids=str,
)
def test_what_makes_the_error_rate_does_not_change_after_the_first_look(change):
    with pytest.raises(InputError, match="declared before the first look"):
        continued(Plan(), Plan(**change))


def test_naming_the_default_test_changes_nothing():
    assert continued(Plan(), Plan(test="brunner-munzel", method="sequential")) == Plan()


def test_a_smaller_maximum_is_an_earlier_stop_under_the_same_boundaries():
    assert continued(Plan(), Plan(max_runs=20)) == Plan()


def test_the_futility_stop_may_be_left_out_at_any_time():
    assert continued(Plan(), Plan(futility=False)) == Plan(futility=False)


@pytest.mark.parametrize("asked", [Plan(max_runs=60), Plan(max_runs=31), Plan(max_runs=60, stages=(30, 60))])
def test_a_maximum_is_not_raised_after_the_first_look(asked):
    with pytest.raises(InputError, match=r"(?s)cannot be raised.*new runs under a plan with stages"):
        continued(Plan(), asked)


def test_a_declared_stage_may_be_gone_on_to():
    kept = Plan(max_runs=30, stages=STAGES)
    assert continued(kept, Plan(max_runs=60)) == Plan(max_runs=60, stages=STAGES)
    with pytest.raises(InputError, match="30, 60, 120"):
        continued(kept, Plan(max_runs=240))


def test_stages_share_the_error_and_the_first_has_most_of_it():
    schedule = every(1, min_runs=5, max_runs=120)
    spent = cumulative_error("power-1.5", fractions(schedule), 0.05, (30 / 120, 60 / 120, 1.0))
    by_runs = {look.n_a: error for look, error in zip(schedule, spent, strict=True)}
    assert by_runs[30] == pytest.approx(0.04)
    assert by_runs[60] == pytest.approx(0.045)
    assert by_runs[120] == pytest.approx(0.05)
    assert list(spent) == sorted(spent)


def test_a_stage_uses_the_boundaries_of_the_whole_plan():
    a = b = np.zeros(0)
    rules = [planned_rule(Plan(max_runs=most, stages=STAGES, looks=5), a, b) for most in STAGES]
    assert [rule.schedule[-1].n_a for rule in rules] == list(STAGES)
    assert rules[2].critical[: len(rules[0].critical)] == rules[0].critical
    assert [rule.stages for rule in rules] == [(60, 120), (120,), ()]


def test_the_end_of_a_stage_says_that_one_may_go_on_and_the_end_of_a_plan_that_one_may_not():
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((2, 30))
    staged = decide(a, b, direction="higher", max_runs=STAGES, futility=False, looks=5)
    assert staged.stop
    assert "going on to 60 runs a side keeps the error rate" in staged.why
    alone = decide(a, b, direction="higher", futility=False)
    assert "the whole error rate is spent" in alone.why
    assert "new comparison of new runs" in alone.why


@pytest.mark.parametrize(
    "wrong",
    [{"stages": (60, 30), "max_runs": 30}, {"stages": (40, 60)}, {"stages": (30, 60), "method": "fixed"}],
    ids=str,
)
def test_stages_that_cannot_be_are_refused(wrong):
    with pytest.raises(InputError, match="stages"):
        Plan(**wrong)


@pytest.mark.parametrize("wrong", [{"test": "signed-rank"}, {"test": "mann-whitney", "paired": True}, {"test": "x"}])
def test_a_test_that_does_not_fit_the_pairing_is_refused(wrong):
    with pytest.raises(InputError):
        Plan(**wrong)


@pytest.mark.slow
@pytest.mark.parametrize("ratio", [1.0, 4.0, 10.0])
def test_going_on_from_30_to_60_to_120_as_declared_keeps_the_error_rate(ratio):
    rule = sequential_rule(
        every(1, min_runs=5, max_runs=120), "power-1.5", 0.05, futility=False, stages=STAGES, max_runs=120
    )
    rng = np.random.default_rng(29)
    claimed = [
        ends(trace(rule, rng.standard_normal((120, 4_000)), ratio * rng.standard_normal((120, 4_000)))).decided.mean()
        for _ in range(3)
    ]
    assert np.mean(claimed) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 12_000)


@pytest.mark.slow
def test_a_plan_in_stages_costs_little_power_in_its_first():
    rng = np.random.default_rng(31)
    a, b = rng.standard_normal((2, 30, 20_000))
    alone = sequential_rule(every(1, min_runs=5, max_runs=30), "power-1.5", 0.05, futility=False)
    staged = sequential_rule(
        every(1, min_runs=5, max_runs=120), "power-1.5", 0.05, futility=False, stages=STAGES, max_runs=30
    )
    lost = ends(trace(alone, a + 1, b)).decided.mean() - ends(trace(staged, a + 1, b)).decided.mean()
    assert 0 <= lost <= 0.025
