"""Recipes at known epochs, and seeds of the four factors."""

import itertools

import pytest

from isorun.errors import UsageError
from isorun.zoo.studies.ase20.training.networks import factor_seeds
from isorun.zoo.studies.ase20.training.recipes import FACTORS, NETWORKS, RECIPES, learning_rate


@pytest.mark.parametrize(
    ("epoch", "rate"),
    [(0, 1e-3), (80, 1e-3), (81, 1e-4), (120, 1e-4), (121, 1e-5), (160, 1e-5), (161, 1e-6), (180, 1e-6), (181, 5e-7)],
)
def test_the_resnets_rate_follows_the_keras_example(epoch, rate):
    assert learning_rate(RECIPES["resnet56"], epoch, 200) == pytest.approx(rate)


@pytest.mark.parametrize(
    ("epoch", "rate"), [(0, 0.1), (59, 0.1), (60, 0.02), (119, 0.02), (120, 0.004), (160, 0.0008), (199, 0.0008)]
)
def test_the_wide_resnets_rate_is_divided_by_five_at_60_120_and_160(epoch, rate):
    assert learning_rate(RECIPES["wrn-28-10"], epoch, 200) == pytest.approx(rate)


def test_a_shorter_training_passes_its_milestones_at_the_same_shares():
    short = [learning_rate(RECIPES["wrn-28-10"], epoch, 20) for epoch in range(20)]
    assert short == pytest.approx([0.1] * 6 + [0.02] * 6 + [0.004] * 4 + [0.0008] * 4)


def test_the_lenets_rate_is_constant():
    assert {learning_rate(RECIPES["lenet1"], epoch, 50) for epoch in range(50)} == {RECIPES["lenet1"].learning_rate}


def test_epochs_and_optimizers_are_those_of_table_1():
    found = {name: (RECIPES[name].optimizer, RECIPES[name].epochs) for name in NETWORKS}
    lenets = dict.fromkeys(("lenet1", "lenet4", "lenet5"), ("sgd", 50))
    assert found.pop("resnet14") == ("adam", 24)  # ours
    assert found == {**lenets, "resnet38": ("adam", 200), "resnet56": ("adam", 200), "wrn-28-10": ("sgd", 200)}


@pytest.mark.parametrize("varied", FACTORS)
def test_only_the_varied_factor_takes_the_seed(varied):
    base, one, two = factor_seeds(0, 0, "none"), factor_seeds(1, 0, varied), factor_seeds(2, 0, varied)
    for name in FACTORS:
        seeds = {getattr(seeds, name) for seeds in (base, one, two)}
        assert len(seeds) == (3 if name == varied else 1)


def test_all_factors_take_the_seed_by_default_and_none_does_with_none():
    assert factor_seeds(5) == factor_seeds(9, 5, "none")
    assert factor_seeds(5, 1, "none") == factor_seeds(6, 1, "none")


def test_factors_with_the_same_seed_have_unrelated_streams():
    seeds = [getattr(factor_seeds(number), name) for number, name in itertools.product(range(50), FACTORS)]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_an_unknown_factor_is_refused_with_those_there_are():
    with pytest.raises(UsageError, match="did you mean 'weights'"):
        factor_seeds(1, 0, "weight")
