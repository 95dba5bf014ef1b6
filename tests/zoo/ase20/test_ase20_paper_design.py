"""The studies of the ASE 2020 paper at all scales."""

import pytest

from isorun.errors import DataError
from isorun.study.cells import Level, cells_of, fill_placeholders
from isorun.zoo.paper import SCALES, Request
from isorun.zoo.studies.ase20 import paper as paper_module
from isorun.zoo.studies.ase20.paper import Ase20
from isorun.zoo.studies.ase20.scales import FACTOR_SIZES, NETWORKS, SIZES
from isorun.zoo.studies.ase20.training.options import parsed
from isorun.zoo.studies.ase20.training.recipes import FACTORS, RECIPES


@pytest.fixture
def everything_at_hand(monkeypatch):
    monkeypatch.setattr(paper_module, "at_hand", lambda _: True)


@pytest.fixture
def nothing_at_hand(monkeypatch):
    monkeypatch.setattr(paper_module, "at_hand", lambda _: False)


def options_of(study):
    """What the training would understand of every command of the study."""
    return {name: parsed(command_words(approach)) for name, approach in study.approaches.items()}


def command_words(approach):
    assert approach.command[:3] == ("python", "-m", "isorun.zoo.studies.ase20.train")
    return fill_placeholders(approach.command, {"seed": "7"}, {}, "test")[3:]


@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_plans_studies_whose_commands_the_training_understands(scale, everything_at_hand, tmp_path):
    studies = Ase20().studies(Request(scale, tmp_path))
    cells = [cell for study in studies for cell in cells_of(study)]
    assert len({cell.id for cell in cells}) == len(cells)
    for study in studies:
        for options in options_of(study).values():
            assert options.seed == 7
            assert not options.made_data


@pytest.mark.parametrize("scale", SCALES)
def test_all_six_networks_have_a_study_at_every_scale(scale, everything_at_hand, tmp_path):
    names = {study.name for study in Ase20().studies(Request(scale, tmp_path))}
    assert {f"ase20-{scale}-{network}" for network in NETWORKS} <= names


def test_the_paper_scale_is_the_published_one(everything_at_hand, tmp_path):
    studies = {study.name: study for study in Ase20().studies(Request("paper", tmp_path))}
    for network, epochs in (("lenet5", 50), ("resnet56", 200), ("wrn-28-10", 200)):
        study = studies[f"ase20-paper-{network}"]
        (options,) = options_of(study).values()
        assert (study.repeats, options.epochs) == (16, epochs)
        assert (options.train_images, options.test_images, options.batch) == (0, 0, 0)
        assert {Level.DEFAULT, Level.FIXED_SEED} <= set(study.levels)
    assert Ase20().scales["paper"].scaled_down == ()


def test_the_gpu_scale_has_three_levels_with_eight_runs_for_each_network():
    for network in NETWORKS:
        assert SIZES["gpu"][network].runs == 8
        assert SIZES["gpu"][network].levels == tuple(Level)


def test_smoke_takes_made_data_where_there_is_none(nothing_at_hand, tmp_path):
    for study in Ase20().studies(Request("smoke", tmp_path)):
        assert all(options.made_data for options in options_of(study).values())


def test_smoke_takes_real_data_where_it_is(monkeypatch, tmp_path):
    monkeypatch.setattr(paper_module, "at_hand", lambda name: name == "mnist")
    made = {study.name: options_of(study) for study in Ase20().studies(Request("smoke", tmp_path))}
    assert not made["ase20-smoke-lenet1"]["LeNet1"].made_data
    assert made["ase20-smoke-resnet38"]["ResNet38"].made_data


def test_missing_data_is_named_at_once_with_the_command_that_gets_it(monkeypatch, tmp_path):
    monkeypatch.setattr(paper_module, "at_hand", lambda name: name == "mnist")
    with pytest.raises(DataError) as caught:
        Ase20().studies(Request("cpu", tmp_path))
    assert "isorun data get cifar10 cifar100 fashion-mnist digits" in caught.value.message()


def test_parts_that_are_not_asked_for_need_no_data(monkeypatch, tmp_path):
    monkeypatch.setattr(paper_module, "at_hand", lambda name: name == "mnist")
    (study,) = Ase20().studies(Request("cpu", tmp_path, only=("lenet4",)))
    assert study.name == "ase20-cpu-lenet4"


def test_runs_and_device_of_the_request_reach_the_studies(everything_at_hand, tmp_path):
    studies = Ase20().studies(Request("gpu", tmp_path, only=("lenet5", "factors"), runs=3, device="cuda"))
    identical, *factors = studies
    assert (identical.repeats, identical.seeds) == (3, (1,))
    assert all((study.repeats, study.seeds) == (1, (1, 2, 3)) for study in factors)
    assert {options.device for study in studies for options in options_of(study).values()} == {"cuda"}


def test_further_data_is_for_the_lenets(everything_at_hand, tmp_path):
    (study,) = Ase20().studies(Request("cpu", tmp_path, only=("digits",)))
    assert list(study.approaches) == ["LeNet1", "LeNet4", "LeNet5"]
    assert {options.data for options in options_of(study).values()} == {"digits"}


def test_factors_are_varied_one_at_a_time_all_together_and_not_at_all(everything_at_hand, tmp_path):
    studies = {study.name: study for study in Ase20().studies(Request("gpu", tmp_path, only=("factors",)))}
    wide = options_of(studies["ase20-gpu-factors-wrn-28-10"])
    assert {name: options.vary for name, options in wide.items()} == {
        name: name for name in ("weights", "order", "dropout", "augmentation", "all", "none")
    }
    assert list(studies["ase20-gpu-factors-lenet5"].approaches) == ["weights", "order", "all", "none"]
    assert all(study.levels == (Level.DETERMINISTIC,) for study in studies.values())


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_has_the_factors_that_its_recipe_has(name):
    recipe = RECIPES[name]
    absent = {"dropout": recipe.dropout == 0.0, "augmentation": recipe.moves is None}
    assert NETWORKS[name].factors == tuple(factor for factor in FACTORS if not absent.get(factor, False))
    assert NETWORKS[name].optimizer.lower() == recipe.optimizer


def test_chance_is_that_of_the_number_of_classes(everything_at_hand, tmp_path):
    studies = {study.name: study for study in Ase20().studies(Request("smoke", tmp_path))}
    assert studies["ase20-smoke-lenet5"].metrics["test_accuracy"].chance == 0.1
    assert studies["ase20-smoke-wrn-28-10"].metrics["test_accuracy"].chance == 0.01


def test_every_scale_has_a_size_for_every_part():
    for scale in SCALES:
        assert set(SIZES[scale]) == {*NETWORKS, "fashion-mnist", "digits"}
        assert "lenet5" in FACTOR_SIZES[scale]
