"""Whose turn a trial is, and what is proposed in it: without an engine."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_searches import LR, SPACE, of_scores, search

from isorun.diagnose import Symptoms
from isorun.errors import InputError
from isorun.repair.actions import edit
from isorun.repair.bugs import Limits, patience_of
from isorun.repair.policy import RepairPolicy, values_for
from isorun.repair.priorities import Prior, PriorRow
from isorun.repair.searches import KEEP, Parameter, Trial, with_kept

OFFER = Parameter("isorun.activation", "category", choices=(KEEP, "relu", "selu"))
STUCK = of_scores([0.5, *[0.1] * 14])


def test_the_engine_proposes_until_there_is_a_bug():
    assert RepairPolicy(seed=0).plan(of_scores([0.1, 0.2, 0.3]), 3) is None
    assert RepairPolicy(seed=0).plan(STUCK, 15).origin == 0


def test_from_a_number_on_isorun_proposes():
    grows = of_scores([0.1, 0.2, 0.3])
    assert RepairPolicy(5, seed=0).plan(grows, 4) is None
    assert RepairPolicy(5, seed=0).plan(grows, 5).origin == 2


def test_a_reached_target_hands_back():
    assert RepairPolicy(limits=Limits(target=0.5), seed=0).plan(STUCK, 15) is None
    assert RepairPolicy(limits=Limits(target=0.51), seed=0).plan(STUCK, 15) is not None


def after(own, before=STUCK.trials):
    """A stuck search, and so many trials by isorun since that did not help."""
    trials = [*before]
    for number in range(len(before), len(before) + own):
        trials.append(replace(trials[number - len(before) + 1], number=number, proposed_by="isorun", score=0.1))
    return search(trials)


def is_isoruns(policy, found):
    return [policy.plan(found, number) is not None for number in (50, 51, 52, 53)]


ALWAYS, EVERY_OTHER, NEVER = [True] * 4, [True, False] * 2, [False] * 4


def test_once_begun_it_stays_until_it_no_longer_helps_and_then_every_other_trial_is_the_engines():
    policy = RepairPolicy(limits=Limits(patience=12), seed=0)
    assert is_isoruns(policy, after(5)) == ALWAYS
    assert is_isoruns(policy, after(12)) == EVERY_OTHER


def test_a_search_that_grew_slowly_is_shared_after_25_trials_that_did_not_help():
    slow = [replace(one, number=at, score=0.1) for at, one in enumerate(STUCK.trials[1:] * 3)]
    slow[40] = replace(slow[40], score=0.5)
    assert patience_of(search(slow)) > 50
    begun = [replace(one, proposed_by="isorun" if one.number == 30 else "") for one in slow]
    assert is_isoruns(RepairPolicy(seed=0), after(24, begun)) == ALWAYS
    assert is_isoruns(RepairPolicy(seed=0), after(25, begun)) == EVERY_OTHER


def test_a_number_says_when_it_begins_and_the_engine_comes_back_as_it_does_after_a_bug():
    assert is_isoruns(RepairPolicy(5, seed=0), after(24)) == ALWAYS
    assert is_isoruns(RepairPolicy(5, seed=0), after(25)) == EVERY_OTHER
    assert is_isoruns(RepairPolicy(5, limits=Limits(patience=12), seed=0), after(12)) == EVERY_OTHER
    assert is_isoruns(RepairPolicy(5, limits=Limits(target=0.5), seed=0), STUCK) == NEVER
    by_chance = RepairPolicy(5, limits=Limits(target=0.5), seed=0, hands_over=False)
    assert is_isoruns(by_chance, after(40)) == ALWAYS


def test_where_a_prior_is_let_go_the_engine_has_the_trial_unless_nothing_trains():
    rates = [Trial(number, "finished", 0.1 * number, {"lr": 10.0**-number}) for number in range(1, 6)]
    rows = [edit(LR, one.parameters["lr"], other.parameters["lr"]) for one in rates for other in rates if one != other]
    wrong = Prior(tuple(PriorRow(row, Symptoms(), 500, 450 if row.rises else 5) for row in rows))

    def plans(trials, **options):
        policies = (RepairPolicy(0, prior=wrong, seed=seed, **options) for seed in range(20))
        return [policy.plan(search(trials, (LR,)), 6) for policy in policies]

    assert plans(rates).count(None) >= 18
    assert None not in plans(rates, hands_over=False)
    assert None not in plans(rates, guard=False)
    assert None not in plans([replace(one, symptoms=Symptoms(convergence="slow")) for one in rates])


def test_after_an_improvement_it_goes_on():
    better = replace(of_scores([0.5, *[0.1] * 14, 0.9]).trials[15], proposed_by="isorun")
    assert RepairPolicy(seed=0).plan(search([*STUCK.trials, better]), 16).origin == 15


@given(st.integers(0, 2**63), st.integers(15, 500))
def test_the_same_search_number_and_seed_give_the_same_proposal_and_never_one_that_is_taken(seed, number):
    first = RepairPolicy(seed=seed).plan(STUCK, number)
    assert RepairPolicy(seed=seed).plan(STUCK, number) == first
    other = RepairPolicy(seed=seed).plan(STUCK, number, taken=[first.action.configuration])
    assert other.action.configuration != first.action.configuration


def test_without_a_seed_two_policies_draw_differently():
    assert RepairPolicy().seed != RepairPolicy().seed


@pytest.mark.parametrize("options", [{"begin": -1}, {"begin": True}, {"begin": "never"}, {"seed": -1}, {"seed": "1"}])
def test_what_makes_no_sense_is_refused(options):
    with pytest.raises(InputError, match="not understood"):
        RepairPolicy(**options)


def test_trials_that_were_never_offered_anything_have_it_kept_and_can_be_changed_there():
    space = (*SPACE, OFFER)
    trials = with_kept((*STUCK.trials, Trial(15, "waiting", None, {})), space)
    assert all(trial.parameters["isorun.activation"] == KEEP for trial in trials[:15])
    assert trials[15].parameters == {}
    plans = [RepairPolicy(0, seed=seed).plan(search(trials, space), 16) for seed in range(200)]
    changed = {edit.parameter for plan in plans for edit in plan.action.edits}
    assert "isorun.activation" in changed
    assert with_kept(STUCK.trials, SPACE) == STUCK.trials


def test_in_the_engines_turn_what_is_offered_is_kept_and_the_rest_is_the_engines():
    assert values_for(None, OFFER) == (KEEP,)
    assert values_for(None, LR) == ()


def test_in_a_plan_values_are_its_own_and_what_it_does_not_say_is_the_engines():
    plan = RepairPolicy(0, seed=0).plan(STUCK, 15)
    for parameter in SPACE:
        assert values_for(plan, parameter) == (plan.action.parameters[parameter.name],)
    assert values_for(plan, OFFER) == (KEEP,)
    branch = Parameter("momentum", "float", low=0.0, high=1.0)
    assert values_for(plan, branch) == ()
    opened = replace(plan, action=replace(plan.action, parameters={**plan.action.parameters, "momentum": 0.4}))
    assert values_for(opened, branch) == (0.4,)
    narrower = Parameter("momentum", "float", low=0.9, high=1.0)
    assert values_for(opened, narrower) == ()


def test_a_trial_that_was_offered_something_is_not_changed_where_that_does_not_apply():
    other = Parameter("isorun.momentum", "category", (KEEP, "0.9"))
    before, after = with_kept(
        (Trial(0, "finished", 0.1, {"lr": 0.1}), Trial(1, "finished", 0.2, {"lr": 0.1, OFFER.name: KEEP})),
        (*SPACE, OFFER, other),
    )
    assert before.parameters == {"lr": 0.1, OFFER.name: KEEP, other.name: KEEP}
    assert after.parameters == {"lr": 0.1, OFFER.name: KEEP}


def test_a_guard_is_there_or_not():
    with pytest.raises(InputError, match="guard is not understood"):
        RepairPolicy(guard="no")
