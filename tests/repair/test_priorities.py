"""Priorities: counts with back-off, own trials, the guard against a wrong prior, and draws that find good trials."""

import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_searches import ACTIVATION, LR, OPERATIONS, SPACE, configuration, of_scores, search

from isorun.diagnose import Symptoms
from isorun.repair.actions import Edit, edit
from isorun.repair.priorities import (
    Beliefs,
    Observation,
    Prior,
    PriorRow,
    observations,
    propose,
    ranked,
    scopes_of,
    trust_in,
)
from isorun.repair.searches import UNKNOWN_SYMPTOMS, Parameter, Trial

TO_RELU = edit(ACTIVATION, "sigmoid", "relu")
TO_TANH = edit(ACTIVATION, "sigmoid", "tanh")
VANISHING = Symptoms("plain", "slow", "vanishing", "normal")
HEALTHY = Symptoms("plain", "normal", "normal", "normal")


def prior(*rows):
    return Prior(tuple(PriorRow(*row) for row in rows))


def test_levels_let_go_of_a_w_c_g_and_then_of_the_edit():
    named = ("edit", "activation", "sigmoid", "relu")
    assert scopes_of(TO_RELU, VANISHING) == (
        (*named, "plain", "slow", "vanishing", "normal"),
        (*named, "*", "slow", "vanishing", "normal"),
        (*named, "*", "slow", "vanishing", "*"),
        (*named, "*", "*", "vanishing", "*"),
        (*named, "*", "*", "*", "*"),
        ("way", "activation", "relu"),
        ("parameter", "activation"),
        (),
    )
    assert len(scopes_of(TO_RELU, UNKNOWN_SYMPTOMS)) == 4


def test_with_many_counts_the_probability_is_their_share_under_the_condition():
    known = prior((TO_RELU, VANISHING, 10_000, 9_000), (TO_RELU, HEALTHY, 10_000, 1_000))
    assert known.probability(TO_RELU, VANISHING) == pytest.approx(0.9, abs=0.01)
    assert known.probability(TO_RELU, HEALTHY) == pytest.approx(0.1, abs=0.01)
    assert known.probability(TO_RELU, UNKNOWN_SYMPTOMS) == pytest.approx(0.5, abs=0.01)


def test_a_condition_never_seen_is_judged_by_what_it_shares_with_others():
    known = prior((TO_RELU, VANISHING, 1000, 900), (TO_RELU, HEALTHY, 1000, 100))
    elsewhere = Symptoms("residual", "oscillating", "vanishing", "normal")
    assert known.probability(TO_RELU, elsewhere) > 0.8


def test_an_edit_never_seen_is_judged_by_its_way_and_its_parameter():
    raise_lr, lower_lr = edit(LR, 1e-4, 1e-2), edit(LR, 1e-1, 1e-2)
    known = prior((raise_lr, UNKNOWN_SYMPTOMS, 100, 90), (lower_lr, UNKNOWN_SYMPTOMS, 100, 10))
    assert known.probability(edit(LR, 1e-5, 1e-4), UNKNOWN_SYMPTOMS) > 0.75
    assert known.probability(edit(LR, 1.0, 1e-1), UNKNOWN_SYMPTOMS) < 0.25
    assert known.probability(TO_RELU, UNKNOWN_SYMPTOMS) == pytest.approx(0.5, abs=0.02)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 50), st.floats(0, 1), st.sampled_from([VANISHING, HEALTHY, UNKNOWN_SYMPTOMS])))
)
def test_a_probability_is_one_whatever_was_counted(counted):
    known = prior(*((TO_RELU, symptoms, tries, tries * share) for tries, share, symptoms in counted))
    for one in (TO_RELU, TO_TANH):
        assert 0 < known.probability(one, VANISHING) < 1


def test_more_improvements_never_lower_a_probability():
    chances = [prior((TO_RELU, VANISHING, 20, k)).probability(TO_RELU, VANISHING) for k in range(21)]
    assert chances == sorted(chances)


def test_own_trials_overrule_a_prior():
    known = prior((TO_RELU, UNKNOWN_SYMPTOMS, 1000, 900))
    seen = [Observation(TO_RELU, UNKNOWN_SYMPTOMS, False)] * 12
    assert Beliefs(known, []).mean(TO_RELU, UNKNOWN_SYMPTOMS) == pytest.approx(0.9, abs=0.01)
    assert Beliefs(known, seen).mean(TO_RELU, UNKNOWN_SYMPTOMS) < 0.2
    assert Beliefs(known, seen).own(TO_RELU) == (12, 0)


def test_what_one_edit_of_a_parameter_showed_speaks_of_its_others():
    seen = [Observation(TO_RELU, UNKNOWN_SYMPTOMS, True)] * 6
    beliefs = Beliefs(None, seen)
    assert beliefs.mean(TO_TANH, UNKNOWN_SYMPTOMS) > Beliefs(None, []).mean(TO_TANH, UNKNOWN_SYMPTOMS) + 0.1
    assert beliefs.mean(TO_RELU, UNKNOWN_SYMPTOMS) > beliefs.mean(TO_TANH, UNKNOWN_SYMPTOMS)


def test_observations_are_trials_that_differ_in_one_parameter_whoever_proposed_them():
    base = {"lr": 1e-3, "activation": "sigmoid"}
    trials = [
        Trial(0, "finished", 0.5, base),
        Trial(1, "finished", 0.7, {**base, "activation": "relu"}),
        Trial(2, "failed", None, {**base, "activation": "tanh"}),
        Trial(3, "finished", 0.9, {"lr": 1e-1, "activation": "tanh"}),
        Trial(4, "finished", 0.6, {**base, "lr": 1.001e-3}),
    ]
    seen = {(one.edit.before, one.edit.after): one.improved for one in observations(search(trials, (LR, ACTIVATION)))}
    assert seen == {
        ("sigmoid", "relu"): True,
        ("relu", "sigmoid"): False,
        ("sigmoid", "tanh"): False,
        ("relu", "tanh"): False,
        ("1e-1", "1e-3"): False,
    }


def test_a_gain_within_noise_is_no_improvement():
    trials = [Trial(0, "finished", 0.5, {"activation": "tanh"}), Trial(1, "finished", 0.55, {"activation": "relu"})]
    assert any(one.improved for one in observations(search(trials, (ACTIVATION,))))
    assert not any(one.improved for one in observations(search(trials, (ACTIVATION,), noise=0.1)))


# A world of four operations where each place has a best one: op "d", then "c", "b", "a".
WORTH = {"a": 0.0, "b": 1.0, "c": 2.0, "d": 3.0}


def worth(parameters, rng, noise=0.3):
    return sum(WORTH[value] for value in parameters.values()) + rng.normal(0, noise)


def world_prior(turned=False):
    rows = []
    for place in OPERATIONS:
        for one in "abcd":
            for other in "abcd":
                if one != other:
                    helps = (WORTH[other] > WORTH[one]) != turned
                    rows.append((edit(place, one, other), UNKNOWN_SYMPTOMS, 100, 90 if helps else 10))
    return prior(*rows)


def random_search(trials, rng):
    made = [configuration(rng, OPERATIONS) for _ in range(trials)]
    return search([Trial(n, "finished", worth(one, rng), one) for n, one in enumerate(made)], OPERATIONS)


def test_the_guard_trusts_a_prior_that_fits_and_lets_go_of_one_that_does_not():
    rng = np.random.default_rng(0)
    fits, wrong = [], []
    for _ in range(40):
        found = random_search(8, rng)
        fits.append(trust_in(world_prior(), found))
        wrong.append(trust_in(world_prior(turned=True), found))
    assert np.median(fits) > 0.95
    assert np.median(wrong) < 0.05
    assert 0.5 < trust_in(world_prior(), random_search(1, rng)) < 0.97


def test_a_wrong_prior_goes_trial_by_trial():
    rng = np.random.default_rng(1)
    by_trials = [
        np.mean([trust_in(world_prior(turned=True), random_search(trials, rng)) for _ in range(60)])
        for trials in (1, 3, 6, 12)
    ]
    assert by_trials == sorted(by_trials, reverse=True)
    assert by_trials[-1] < 0.02


@settings(max_examples=30)
@given(st.lists(st.one_of(st.none(), st.floats()), max_size=12), st.integers(0, 100))
def test_trust_and_proposals_stand_any_scores(scores, seed):
    rng = np.random.default_rng(seed)
    found = of_scores(scores, rng)
    known = prior((TO_RELU, VANISHING, 50, 40))
    assert 0 <= trust_in(known, found) <= 1
    proposal = propose(found, known, rng)
    assert (proposal is None) == (found.best is None)


def climbed(known, seed, guard=True, trials=8):
    rng = np.random.default_rng(seed)
    made = list(random_search(3, rng).trials)
    while len(made) < trials:
        found = search(made, OPERATIONS)
        proposal = propose(found, known, rng, guard=guard)
        parameters = configuration(rng, OPERATIONS) if proposal is None else proposal.action.parameters
        origin = None if proposal is None else proposal.origin
        made.append(Trial(len(made), "finished", worth(parameters, rng), parameters, origin=origin))
    return search(made, OPERATIONS)


def reached(known, **options):
    found = [climbed(known, seed, **options) for seed in range(15)]
    return np.mean([sum(WORTH[value] for value in one.best.parameters.values()) for one in found])


def test_a_right_prior_helps_and_a_wrong_one_with_the_guard_does_little_harm():
    without, right = reached(None), reached(world_prior())
    wrong, unguarded = reached(world_prior(turned=True)), reached(world_prior(turned=True), guard=False)
    assert right > without + 0.5
    assert wrong > without - 1.0
    assert wrong > unguarded


def test_no_configuration_is_proposed_twice_nor_one_that_is_taken():
    found = climbed(world_prior(), 3, trials=40)
    proposed = [trial.configuration for trial in found.trials if trial.origin is not None]
    assert len(set(proposed)) == len(proposed)
    rng = np.random.default_rng(0)
    only = search([Trial(0, "finished", 1.0, {"op0": "a"})], OPERATIONS[:1])
    taken = [(("op0", "'b'"),), (("op0", "'c'"),)]
    assert propose(only, None, rng, taken=taken).action.parameters == {"op0": "d"}
    assert propose(only, None, rng, taken=[*taken, (("op0", "'d'"),)]) is None


def test_two_changes_at_once_are_tried_where_no_single_one_helps():
    """Both must change together: each alone makes it worse."""
    rng = np.random.default_rng(0)
    made = [Trial(0, "finished", 1.0, {"op0": "a", "op1": "a"})]
    for number in range(1, 15):
        proposal = propose(search(made, OPERATIONS[:2]), None, rng)
        parameters = proposal.action.parameters
        score = 5.0 if (parameters["op0"], parameters["op1"]) == ("c", "d") else 0.5
        made.append(Trial(number, "finished", score, parameters, origin=proposal.origin))
    assert max(trial.score for trial in made) == 5.0


def test_while_nothing_trains_whole_configurations_are_drawn_and_what_was_dead_often_is_left():
    """Four must change together, each to one of three values: edits of two or three parameters cannot find it."""
    wrong = {parameter.name: "a" for parameter in OPERATIONS}
    reached = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        made = [Trial(number, "finished", 0.1, wrong, symptoms=VANISHING) for number in range(6)]
        for number in range(6, 26):
            proposal = propose(search(made, OPERATIONS), None, rng)
            if "a" not in proposal.action.parameters.values():
                break
            symptoms = {"parameters": proposal.action.parameters, "symptoms": VANISHING, "origin": proposal.origin}
            made.append(replace(made[0], number=number, **symptoms))
        reached.append(number)
    assert np.median(reached) < 12
    healthy = search([Trial(0, "finished", 0.1, wrong, symptoms=HEALTHY)], OPERATIONS)
    changed = {len(propose(healthy, None, np.random.default_rng(seed)).action.edits) for seed in range(60)}
    assert changed == {1}  # something that trains is changed in one place


def test_a_configuration_drawn_while_nothing_trains_is_new_and_changes_nothing_idle():
    optimizer = Parameter("optimizer", "category", choices=("adam", "sgd"))
    momentum = Parameter("momentum", "category", choices=(0.0, 0.9))
    dead = Trial(0, "finished", 0.1, {"optimizer": "adam", "momentum": 0.0}, symptoms=VANISHING)
    found = search([dead], (optimizer, momentum))
    proposed = [propose(found, None, np.random.default_rng(seed)).action for seed in range(60)]
    assert {tuple(one.parameters.values()) for one in proposed} == {("sgd", 0.0), ("sgd", 0.9)}
    taken = [one.configuration for one in proposed]
    assert propose(found, None, np.random.default_rng(0), taken=taken) is None


def test_the_same_generator_gives_the_same_proposal():
    found = random_search(5, np.random.default_rng(2))
    one, other = (propose(found, world_prior(), np.random.default_rng(7)) for _ in range(2))
    assert one == other


def test_actions_are_ranked_by_their_chance_and_tell_where_it_comes_from():
    found = random_search(6, np.random.default_rng(4))
    actions = ranked(found, world_prior(), np.random.default_rng(0))
    chances = [one.probability for one in actions]
    assert chances == sorted(chances, reverse=True)
    assert all(one.prior_tries == 100 for one in actions)
    assert ranked(search([], SPACE), None, np.random.default_rng(0)) == []


def test_a_large_search_is_judged_quickly():
    rng = np.random.default_rng(0)
    trials = [Trial(n, "finished", float(rng.random()), configuration(rng)) for n in range(1500)]
    began = time.process_time()
    assert propose(search(trials), world_prior(), rng) is not None
    assert time.process_time() - began < 2.0


def test_the_very_same_tries_count_once_however_finely_they_are_told():
    rare = Edit("optimizer", "optimizer", "sgd", "adam", None)
    common = Edit("optimizer", "optimizer", "adam", "sgd", None)
    seen = Symptoms("residual", "slow", "vanishing", "normal")
    told = Prior((PriorRow(rare, seen, 1, 1), PriorRow(common, seen, 400, 100)))
    coarse = Prior((PriorRow(rare, Symptoms(), 1, 1), PriorRow(common, Symptoms(), 400, 100)))
    assert told.probability(rare, seen) == pytest.approx(coarse.probability(rare, Symptoms()), abs=0.01)
    assert told.probability(rare, seen) < 0.3  # one success is no certainty


def test_an_offered_value_is_expected_to_do_what_it_did_from_wherever():
    normal = Symptoms(gradient="normal")
    rows = [
        PriorRow(Edit("activation", "activation", before, after, after), symptoms, 200, improved)
        for before, symptoms in (("sigmoid", Symptoms(gradient="vanishing")), ("tanh", normal))
        for after, improved in (("selu", 180 if before == "sigmoid" else 20), ("elu", 10))
    ]
    prior = Prior(tuple(rows))

    def chance(before, after, gradient="unknown"):
        edit = Edit("isorun.activation", "activation", before, after, after)
        return prior.probability(edit, Symptoms(gradient=gradient))

    assert chance("keep", "selu") == pytest.approx(0.5, abs=0.05)
    assert chance("keep", "elu") < 0.15
    assert chance("keep", "selu", "vanishing") > 0.8
    assert chance("sigmoid", "selu", "vanishing") > 0.8
    assert chance("tanh", "selu", "normal") < 0.3


def test_a_parameter_with_many_values_is_changed_no_more_often_than_one_with_few():
    """Six steps of a learning rate against one other activation, and nothing known of either."""
    two = Parameter("activation", "category", choices=("sigmoid", "relu"))
    found = search([Trial(0, "finished", 0.5, {"lr": 3e-3, "activation": "sigmoid"})], (LR, two))
    drawn = [propose(found, None, np.random.default_rng(seed)).action.edits[0].parameter for seed in range(400)]
    assert 160 < drawn.count("activation") < 240


def test_what_is_idle_is_neither_proposed_nor_counted():
    optimizer = Parameter("optimizer", "category", choices=("adam", "sgd"))
    momentum = Parameter("momentum", "category", choices=(0.0, 0.5, 0.9))
    trials = [
        Trial(0, "finished", 0.5, {"optimizer": "adam", "momentum": 0.0}),
        Trial(1, "finished", 0.4, {"optimizer": "adam", "momentum": 0.5}),
        Trial(2, "finished", 0.3, {"optimizer": "sgd", "momentum": 0.0}),
        Trial(3, "finished", 0.2, {"optimizer": "sgd", "momentum": 0.5}),
    ]
    found = search(trials, (optimizer, momentum))
    seen = [one.edit for one in observations(found) if one.edit.parameter == "momentum"]
    assert len(seen) == 2  # forth and back under SGD alone
    for seed in range(20):
        proposal = propose(found, None, np.random.default_rng(seed))
        assert proposal.action.parameters["optimizer"] == "sgd"


def test_of_trials_that_are_equal_within_noise_any_may_be_changed_and_a_better_one_always_is():
    scores = (0.5, 0.505, 0.495, 0.5, 0.2)
    made = [Trial(number, "finished", score, {"lr": 10.0 ** -(number + 1)}) for number, score in enumerate(scores)]

    def origins(trials, **more):
        found = search(trials, (LR,), **more)
        return {propose(found, None, np.random.default_rng(seed)).origin for seed in range(60)}

    assert origins(made) == {1}
    assert origins(made, noise=0.01) == {0, 1, 2, 3}
    assert origins([*made, Trial(5, "finished", 0.9, {"lr": 3e-3})], noise=0.01) == {5}


def test_trainings_that_got_nowhere_say_nothing_about_each_other():
    rng = np.random.default_rng(0)
    wrong = world_prior(turned=True)
    found = random_search(12, rng)
    nowhere = search([replace(trial, symptoms=VANISHING) for trial in found.trials], OPERATIONS)
    assert trust_in(wrong, found) < 0.05
    assert trust_in(wrong, nowhere) == pytest.approx(trust_in(wrong, search(found.trials[:1], OPERATIONS)))
    assert trust_in(wrong, replace(found, noise=1000.0)) == pytest.approx(trust_in(wrong, nowhere))
    one, other = Trial(0, "finished", 0.1, {"activation": "sigmoid"}), Trial(1, "finished", 0.2, {"activation": "relu"})
    for symptoms, improved in ((VANISHING, False), (HEALTHY, True)):
        pair = search([replace(one, symptoms=VANISHING), replace(other, symptoms=symptoms)], (ACTIVATION,))
        assert any(seen.improved for seen in observations(pair)) is improved
    assert {propose(nowhere, None, np.random.default_rng(seed)).origin for seed in range(60)} > {nowhere.best.number}
