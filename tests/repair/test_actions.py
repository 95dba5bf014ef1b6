"""Actions: parameters known by their meaning, single edits that stay in the space and are new, jumps."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_searches import OPERATIONS, SPACE, configuration, search

from isorun.repair.actions import edits_between, jumps, meaning, single_edits, unknown_parameters
from isorun.repair.searches import Parameter, Trial


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("lr", "learning-rate"),
        ("learning_rate_init", "learning-rate"),
        ("optimizer/learning_rate", "learning-rate"),
        ("end_lr", "end-learning-rate"),
        ("alpha", "weight-decay"),
        ("weightDecay", "weight-decay"),
        ("n_units_l0", "width"),
        ("convnet.filters_0_1", "width"),
        ("dropout_1", "dropout"),
        ("activation_fn_2", "activation"),
        ("kernel_initializer", "initialiser"),
        ("batch_size", "batch"),
        ("num_layers", "depth"),
        ("image_block_1/block_type", "block"),
        ("trainable", "freezing"),
        ("pretrained", "transfer"),
        ("rf_max_depth", "tree-depth"),
        ("op3", ""),
        ("x", ""),
        ("", ""),
    ],
)
def test_a_parameter_is_known_by_its_name(name, known):
    assert meaning(name) == known


@given(st.text(max_size=30))
def test_any_name_has_a_meaning_or_none(name):
    assert isinstance(meaning(name), str)


@settings(max_examples=40)
@given(st.integers(0, 10_000))
def test_single_edits_change_one_parameter_stay_in_the_space_and_are_new(seed):
    rng = np.random.default_rng(seed)
    trials = [Trial(number, "finished", 0.5, configuration(rng)) for number in range(4)]
    found = search(trials)
    actions = single_edits(found, trials[0], (trial.configuration for trial in trials), rng)
    assert len({action.configuration for action in actions}) == len(actions)
    assert {action.edits[0].parameter for action in actions} == {parameter.name for parameter in SPACE}
    for action in actions:
        changed = [name for name, value in action.parameters.items() if trials[0].parameters[name] != value]
        assert changed == [action.edits[0].parameter]
        assert all(found.parameters[name].holds(value) for name, value in action.parameters.items())
        assert action.edits[0].before != action.edits[0].after


def test_what_was_tried_is_not_proposed_again():
    rng = np.random.default_rng(0)
    first = Trial(0, "finished", 0.5, {"op0": "a"})
    found = search([first], OPERATIONS[:1])
    other = {Trial(1, "failed", None, {"op0": "b"}).configuration, (("op0", "'c'"),)}
    assert [action.parameters["op0"] for action in single_edits(found, first, other, rng)] == ["d"]


def test_jumps_change_two_or_three_parameters_to_what_single_edits_would():
    rng = np.random.default_rng(3)
    origin = Trial(0, "finished", 0.5, configuration(rng))
    found = search([origin])
    singles = single_edits(found, origin, (), rng)
    made = jumps(origin, singles, (), rng)
    assert made
    for action in made:
        assert len(action.edits) in (2, 3)
        assert len({edit.parameter for edit in action.edits}) == len(action.edits)
        changed = {name for name, value in action.parameters.items() if origin.parameters[name] != value}
        assert changed == {edit.parameter for edit in action.edits}
    assert jumps(origin, [action for action in singles if action.edits[0].parameter == "lr"], (), rng) == []


def test_edits_between_two_trials_are_those_of_the_parameters_they_share():
    one = Trial(0, "finished", 0.1, {"lr": 1e-3, "activation": "relu", "dropout": 0.1})
    other = Trial(1, "finished", 0.2, {"lr": 1e-2, "activation": "relu", "units": 32})
    (edit,) = edits_between(search([one, other]), one, other)
    assert (edit.meaning, edit.before, edit.after, edit.rises) == ("learning-rate", "1e-3", "1e-2", True)
    assert edit.reversed.rises is False


def test_a_value_outside_the_space_is_left_alone():
    origin = Trial(0, "finished", 0.5, {"lr": 5.0, "gone": 1, "dropout": 0.2})
    actions = single_edits(search([origin]), origin, (), np.random.default_rng(0))
    assert {action.edits[0].parameter for action in actions} == {"dropout"}


def test_parameters_without_a_meaning_are_named():
    found = search([], (*SPACE, Parameter("q7", "float", low=0, high=9), *OPERATIONS[:1]))
    assert unknown_parameters(found) == ("q7", "op0")
