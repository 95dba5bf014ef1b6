"""Actions: parameters known by their meaning, single edits that stay in the space and are new, jumps."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_searches import LR, OPERATIONS, SPACE, configuration, search

from isorun.repair.actions import (
    edit,
    edits_between,
    idle_parameters,
    jumps,
    led_to,
    meaning,
    single_edits,
    unknown_parameters,
)
from isorun.repair.priorities import propose
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


def test_anywhere_is_every_part_of_a_range():
    start = Trial(0, "finished", 0.5, {"lr": 1e-5})
    found = single_edits(search([start], (LR,)), start, (), np.random.default_rng(0), anywhere=True)
    powers = [math.floor(math.log10(one.parameters["lr"]) * 6 / 5) for one in found]
    assert set(powers) >= {-5, -4, -3, -2, -1}  # sixths of five powers of ten, but the one that it is in


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
    singles = [action.edits[0] for action in single_edits(found, origin, (), rng)]
    made = list(jumps(found, origin, singles, (), rng))
    assert made
    for action in made:
        assert len(action.edits) in (2, 3)
        assert len({edit.parameter for edit in action.edits}) == len(action.edits)
        changed = {name for name, value in action.parameters.items() if origin.parameters[name] != value}
        assert changed == {edit.parameter for edit in action.edits}
    assert list(jumps(found, origin, [one for one in singles if one.parameter == "lr"], (), rng)) == []

    def worth(some):
        return sum(ord(one.after[0]) for one in some) / len(some)

    ordered = list(jumps(found, origin, singles[:5], (), np.random.default_rng(0), worth=worth))
    alike = list(jumps(found, origin, singles[:5], (), np.random.default_rng(0)))
    assert ordered == sorted(alike, key=lambda action: -worth(action.edits))


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


def category(name, *choices):
    return Parameter(name, "category", choices=choices)


OPTIMIZER = category("optimizer", "SGD", "torch.optim.Adam", "rmsprop")
MOMENTUM = Parameter("momentum", "float", low=0.0, high=0.99)
NESTEROV = category("nesterov", True, False)
ACTIVATION = category("activation", "relu", "tanh")
UNITS = tuple(Parameter(f"units_{place}", "int", low=4, high=64) for place in range(2))


@pytest.mark.parametrize(
    ("parameters", "idle"),
    [
        ({"optimizer": "torch.optim.Adam", "momentum": 0.9, "nesterov": True}, {"momentum", "nesterov"}),
        ({"optimizer": "SGD", "momentum": 0.9, "nesterov": True}, set()),
        ({"optimizer": "SGD", "momentum": 0.0, "nesterov": True}, {"nesterov"}),
        ({"optimizer": "rmsprop", "momentum": 0.9}, set()),
        ({"momentum": 0.9}, set()),
        ({"optimizer": "torch.optim.Adam"}, set()),
    ],
)
def test_momentum_is_idle_under_adam(parameters, idle):
    assert idle_parameters((OPTIMIZER, MOMENTUM, NESTEROV), parameters) == idle


@pytest.mark.parametrize(
    ("one", "other", "value", "is_idle"),
    [
        (category("bn_momentum", 0.1, 0.9), OPTIMIZER, "torch.optim.Adam", False),
        (category("weight_decay", 0.0, 0.1), OPTIMIZER, "SGD", False),
        (category("weight_decay", 0.0, 0.1), category("solver", "adam", "lbfgs"), "lbfgs", True),
        (category("beta1", 0.5, 0.9), OPTIMIZER, "SGD", True),
        (category("beta1", 0.5, 0.9), OPTIMIZER, "torch.optim.Adam", False),
        (category("isorun.momentum", "keep", "0.9"), category("isorun.optimizer", "keep", "adam"), "adam", True),
        (category("isorun.momentum", "keep", "0.9"), category("isorun.optimizer", "keep", "adam"), "keep", False),
        (category("isorun.step_ratio", "keep", "0.1"), category("isorun.fine_tuning", "keep", "two"), "keep", True),
        (category("isorun.freeze", "keep", "all"), category("isorun.fine_tuning", "keep", "two"), "two", False),
        (category("isorun.fine_tuning", "keep", "two"), category("isorun.pretrained", "keep", "given"), "keep", True),
        (category("rotation", 0, 0.1), category("augment", True, False), False, True),
        (category("rotation", 0, 0.1), category("augment", True, False), True, False),
        (category("block_1/res_net_block_1/version", 1, 2), category("block_1/block_type", "resnet", "x"), "x", True),
        (category("block_1/res_net_block_1/version", 1, 2), category("block_type", "resnet", "x"), "resnet", False),
        (category("vanilla_activation", "relu"), category("block_type", "vanilla", "resnet"), "resnet", True),
        (category("activation", "relu"), category("block_type", "vanilla", "resnet"), "resnet", False),
        (category("adam_lr", 0.1), category("optimizer", "sgd", "adam", "adamw"), "sgd", True),
        (category("adam_lr", 0.1), category("optimizer", "sgd", "adam", "adamw"), "adamw", False),
        (category("adamw_lr", 0.1), category("optimizer", "sgd", "adam", "adamw"), "adam", True),
        (category("max_units", 1, 2), category("pooling", "max", "average"), "average", False),
    ],
)
def test_what_changes_nothing_is_told_by_names_and_values(one, other, value, is_idle):
    parameters = {one.name: one.choices[0], other.name: value}
    assert idle_parameters((one, other), parameters) == ({one.name} if is_idle else set())


def test_settings_of_layers_that_are_not_there_are_idle():
    layers = Parameter("n_layers", "int", low=1, high=3, step=1)
    units = tuple(Parameter(f"units_{place}", "int", low=8, high=64, step=1) for place in range(3))
    parameters = {"n_layers": 2, **{one.name: 16 for one in units}}
    assert idle_parameters((layers, *units), parameters) == {"units_2"}
    assert idle_parameters((layers, *units[:2]), parameters) == set()  # two of something else
    second = Parameter("num_blocks", "int", low=1, high=3, step=1)
    assert idle_parameters((layers, second, *units), {**parameters, "num_blocks": 1}) == set()


def test_idle_parameters_are_not_edited_alone_and_come_in_with_their_premise():
    origin = Trial(0, "finished", 0.5, {"optimizer": "torch.optim.Adam", "momentum": 0.5, "lr": 1e-3})
    found = search([origin], (OPTIMIZER, MOMENTUM, SPACE[0]))
    rng = np.random.default_rng(0)
    assert {one.edits[0].parameter for one in single_edits(found, origin, (), rng)} == {"optimizer", "lr"}
    every = [one.edits[0] for one in single_edits(found, origin, (), rng, with_idle=True)]
    together = [{one.parameter for one in action.edits} for action in jumps(found, origin, every, (), rng)]
    assert {"optimizer", "momentum"} in together
    assert {"momentum", "lr"} not in together


DEPTH = Parameter("rf_max_depth", "int", low=2, high=32, log=True, step=1)
BRANCHES = (Parameter("classifier", "category", choices=("SVC", "forest")), LR, DEPTH)


def test_an_edit_that_opens_a_branch_is_completed_so_that_it_is_known_whether_it_was_tried():
    forests = [Trial(n, "finished", 0.5 + n / 100, {"classifier": "forest", DEPTH.name: 4 + n}) for n in range(3)]
    best = Trial(3, "finished", 0.9, {"classifier": "SVC", "lr": 0.1})
    found = search([*forests, best], BRANCHES)
    tried = {trial.configuration for trial in found.trials}
    for number in range(4, 40):
        opened = [
            action
            for action in single_edits(found, best, tried, np.random.default_rng(number))
            if action.edits[0].parameter == "classifier"
        ]
        if not opened:
            break
        assert set(opened[0].parameters) == {"classifier", DEPTH.name}
        assert opened[0].configuration not in tried
        tried.add(opened[0].configuration)
    assert 5 < number < 39  # values near that of the best forest, and then no more
    both = [edit(BRANCHES[0], "SVC", "forest"), edit(LR, 0.1, 0.01)]
    together = list(jumps(found, best, both, (), np.random.default_rng(0)))
    assert together == []  # there is no learning rate in a forest


def test_a_choice_is_not_blamed_for_what_other_values_of_its_trials_open():
    """The only trial with tanh has one layer and RMSprop: tanh takes neither momentum nor the second layer away."""
    space = (ACTIVATION, OPTIMIZER, MOMENTUM, Parameter("layers", "int", low=1, high=2), *UNITS)
    sgd = {"optimizer": "SGD", "momentum": 0.9}
    rmsprop = {"optimizer": "rmsprop"}
    made = [
        {"activation": "relu", **sgd, "layers": 2, "units_0": 8, "units_1": 4},
        {"activation": "relu", **sgd, "layers": 1, "units_0": 16},
        {"activation": "relu", **rmsprop, "layers": 2, "units_0": 8, "units_1": 16},
        {"activation": "tanh", **rmsprop, "layers": 1, "units_0": 32},
    ]
    best = Trial(4, "finished", 0.9, {"activation": "relu", **sgd, "layers": 2, "units_0": 4, "units_1": 8})
    found = search([*(Trial(n, "finished", 0.5, one) for n, one in enumerate(made)), best], space)
    assert led_to(found, best, [edit(ACTIVATION, "relu", "tanh")]) == {**best.parameters, "activation": "tanh"}
    without = {name: value for name, value in best.parameters.items() if name != "momentum"}
    assert led_to(found, best, [edit(OPTIMIZER, "SGD", "rmsprop")]) == {**without, "optimizer": "rmsprop"}
    one_layer = {name: value for name, value in best.parameters.items() if name != "units_1"}
    assert led_to(found, best, [edit(space[3], 2, 1)]) == {**one_layer, "layers": 1}


def test_what_a_new_parameter_opens_in_turn_comes_with_it():
    model, kernel = category("model", "forest", "SVC"), category("kernel", "poly", "rbf")
    degree = Parameter("degree", "int", low=2, high=5)
    made = [{"model": "forest"}, {"model": "forest"}, {"model": "SVC", "kernel": "rbf"}]
    made += [{"model": "SVC", "kernel": "poly", "degree": 3}] * 2
    trials = [Trial(n, "finished", n / 10, one) for n, one in enumerate(made)]
    found = search(trials, (model, kernel, degree))
    assert led_to(found, trials[0], [edit(model, "forest", "SVC")]) == made[-1]
    assert led_to(found, trials[-1], [edit(model, "SVC", "forest")]) == {"model": "forest"}
    assert led_to(found, trials[-1], [edit(kernel, "poly", "rbf")]) == made[2]


@pytest.mark.long
def test_a_search_over_branches_proposes_nothing_twice():
    trials = [Trial(n, "finished", 0.5, {"classifier": "forest", DEPTH.name: 2 + n}) for n in range(5)]
    trials += [Trial(n, "finished", 0.9 + n / 1000, {"classifier": "SVC", "lr": 10.0 ** (4 - n)}) for n in range(5, 9)]
    for number in range(9, 60):
        proposed = propose(search(trials, BRANCHES), None, np.random.default_rng(number))
        assert proposed.action.configuration not in {trial.configuration for trial in trials}
        names = {"forest": {"classifier", DEPTH.name}, "SVC": {"classifier", "lr"}}
        assert set(proposed.action.parameters) == names[proposed.action.parameters["classifier"]]
        trials.append(Trial(number, "finished", 0.6, proposed.action.parameters, proposed_by="isorun", origin=8))


def test_what_the_user_built_is_not_proposed_by_another_name():
    rate = Parameter("isorun.learning_rate", "category", choices=("keep", "1e-2", "1e-3"))
    built = {"isorun.learning_rate": "1e-3"}

    def targets(value, as_built):
        trial = Trial(0, "finished", 0.5, {"isorun.learning_rate": value, "lr": 0.1}, as_built=as_built)
        actions = single_edits(search([trial], (rate, LR)), trial, (), np.random.default_rng(0))
        return [one.edits[0].value for one in actions if one.edits[0].parameter == rate.name]

    assert targets("keep", {}) == ["1e-2", "1e-3"]
    assert targets("keep", built) == ["1e-2"]
    assert targets("1e-3", built) == ["1e-2"]
    assert targets("1e-2", built) == ["keep"]


def test_a_choice_with_which_every_trial_failed_is_not_proposed_until_one_does_not():
    rng = np.random.default_rng(0)
    made = [
        Trial(number, "failed" if value == "sigmoid" else "finished", None if value == "sigmoid" else 0.5, parameters)
        for number in range(12)
        for value in ["sigmoid" if number % 3 == 2 else "relu"]
        for parameters in [{**configuration(rng), "activation": value}]
    ]
    proposed = {
        propose(search(made), None, np.random.default_rng(seed)).action.parameters["activation"] for seed in range(60)
    }
    assert proposed == {"relu", "tanh"}
    again = [*made, Trial(12, "finished", 0.4, {**configuration(rng), "activation": "sigmoid"})]
    actions = single_edits(search(again), again[0], (), rng)
    assert {action.parameters["activation"] for action in actions} == {"relu", "tanh", "sigmoid"}


def test_failures_that_have_nothing_to_do_with_a_choice_leave_it_open():
    """Three of four trials fail: that all three of one choice did is what chance does."""
    rng = np.random.default_rng(0)
    values = ["relu", "tanh"] * 8 + ["sigmoid"] * 3
    made = [
        Trial(
            number,
            "finished" if number in (0, 1, 2, 3) else "failed",
            0.5 if number < 4 else None,
            {**configuration(rng), "activation": value},
        )
        for number, value in enumerate(values)
    ]
    actions = single_edits(search(made), made[0], (), rng)
    assert {action.parameters["activation"] for action in actions} == {"relu", "tanh", "sigmoid"}
