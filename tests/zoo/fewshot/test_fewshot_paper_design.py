"""The declared design of the few-shot paper: Table 3's distributions, five by five by five, twice."""

import re
import subprocess
import sys

import pytest
from fewshot_records import planned, request

from isorun.errors import IsorunError
from isorun.study.cells import Level, cells_of, drawn_configs
from isorun.zoo.paper import PRELOAD, SCALES
from isorun.zoo.studies.fewshot.design import CONTROL_SEED
from isorun.zoo.studies.fewshot.experiments import EXPERIMENTS, approach_name
from isorun.zoo.studies.fewshot.paper import Fewshot
from isorun.zoo.studies.fewshot.scales import PLANS
from isorun.zoo.studies.fewshot.training.options import read_options


@pytest.fixture
def no_data(tmp_path, monkeypatch):
    monkeypatch.setenv("ISORUN_DATA", str(tmp_path / "data"))


def words_of(cell):
    """The training command of a cell as the training sees it."""
    seed, values = cell.seed or 0, cell.config_values
    named = {"seed": str(seed), **{f"config.{key}": str(value) for key, value in values.items()}}
    return [re.sub(r"\{([\w.]+)\}", lambda match: named[match.group(1)], word) for word in cell.command[3:]]


def trainings(study):
    """One cell of each approach and config, with what its training would read: cells differ in their seed besides."""
    first = {(cell.approach, cell.config): cell for cell in reversed(cells_of(study))}
    return [(cell, read_options(words_of(cell))) for cell in first.values()]


@pytest.mark.parametrize("scale", SCALES)
def test_every_cell_of_every_scale_is_a_command_that_the_training_understands(scale):
    for study in planned(request(scale)).values():
        for cell, options in trainings(study):
            assert (options.ways, options.shots, options.seed) == (5, 5, cell.seed)
            assert 0 < options.learning_rate < 0.2
            assert options.method in cell.approach


def test_the_paper_scale_is_twelve_experiments_of_125_runs_and_four_controls_of_ten():
    main, control = planned(request("paper"), data="miniimagenet").values()
    runs = [cell.approach for cell in cells_of(main)]
    assert {name: runs.count(name) for name in runs} == {
        approach_name(item.name, number): 125 for item in EXPERIMENTS for number in (1, 2)
    }
    controls = cells_of(control)
    assert len(controls) == 40
    assert {cell.seed for cell in controls} == {CONTROL_SEED} == {7654}
    assert {cell.level for cell in (*cells_of(main), *controls)} == {Level.FIXED_SEED}


def test_both_rounds_have_the_same_configs_seeds_and_command_but_are_other_cells():
    (main, _) = planned(request("paper")).values()
    by_round = {
        number: [cell for cell in cells_of(main) if cell.approach == f"tadam-sgd-{number}"] for number in (1, 2)
    }
    first, second = (
        [(cell.command, cell.config_values, cell.seed, cell.repeat) for cell in cells] for cells in by_round.values()
    )
    assert first == second
    assert not {cell.id for cell in by_round[1]} & {cell.id for cell in by_round[2]}


def test_configs_of_the_paper_scale_are_drawn_within_table_3():
    (main, _) = planned(request("paper")).values()
    drawn = {name: [values for _, values in drawn_configs(config)] for name, config in main.configs.items()}
    assert {name: len(values) for name, values in drawn.items()} == {"matching": 5, "prototypical": 5, "tadam": 5}
    for values in drawn["tadam"]:
        assert 0.02 <= values["learning_rate"] <= 0.1
        assert 5 < values["lr_decay_rate"] < 15
        assert 16 <= values["queries"] <= 64
        assert 32 <= values["pretrain_batch"] <= 64
    for values in drawn["matching"]:
        assert 0.0001 <= values["learning_rate"] <= 0.1
        assert 0.00001 <= values["lr_decay_rate"] <= 0.01
        assert 5 <= values["queries"] <= 30
    for values in drawn["prototypical"]:
        assert 0.0005 < values["learning_rate"] < 0.0095
        assert 500 <= values["lr_decay_period"] <= 2000


def test_the_paper_scale_trains_as_long_as_table_3_says():
    (main, _) = planned(request("paper")).values()
    found = {}
    for _, options in trainings(main):
        found[options.method] = (options.episodes, options.eval_episodes, options.tasks_per_batch, options.early_stop)
    assert found == {
        "matching": (75_000, 600, 1, 20),
        "prototypical": (10_000, 600, 1, 0),
        "tadam": (21_000, 500, 2, 0),
    }


def test_a_shorter_training_decays_its_learning_rate_as_often():
    (main, _) = planned(request("gpu", only=("tadam-sgd", "prototypical-sgd", "control"))).values()
    (options, *_) = [options for _, options in trainings(main) if options.method == "tadam"]
    assert options.episodes / options.lr_decay_period == pytest.approx(21_000 / 2500)
    values = [values for _, values in drawn_configs(main.configs["prototypical"])]
    assert all(10_000 / 2000 <= 600 / value["lr_decay_period"] <= 10_000 / 500 for value in values)


@pytest.mark.parametrize("scale", ["smoke", "cpu", "gpu"])
def test_omniglot_has_images_enough_for_every_episode(scale):
    for study in planned(request(scale)).values():
        for _, options in trainings(study):
            assert options.train_shots + options.queries <= 20


@pytest.mark.parametrize("scale", SCALES)
def test_the_cost_names_the_number_of_trainings(scale):
    runs = sum(len(cells_of(study)) for study in planned(request(scale)).values())
    assert f" {runs:,} trainings" in Fewshot.scales[scale].cost


def test_only_named_parts_are_planned():
    studies = planned(request("cpu", only=("tadam-adam",)))
    assert list(studies) == ["fewshot-cpu"]
    assert set(studies["fewshot-cpu"].approaches) == {"tadam-adam-1", "tadam-adam-2"}
    assert list(planned(request("cpu", only=("control",)))) == ["fewshot-cpu-control"]


def test_runs_are_repeats_of_every_seed():
    main, control = planned(request("cpu", runs=4)).values()
    assert main.repeats == control.repeats == 4


def test_the_device_is_passed_on():
    (main, _) = planned(request("cpu", device="cuda")).values()
    assert all(options.device == "cuda" for _, options in trainings(main))


@pytest.mark.usefixtures("no_data")
def test_smoke_makes_its_data_when_none_is_at_hand(tmp_path):
    for study in Fewshot().studies(request("smoke", folder=tmp_path)):
        assert all(options.made_data for _, options in trainings(study))


@pytest.mark.usefixtures("no_data")
@pytest.mark.parametrize(("scale", "name"), [("cpu", "omniglot"), ("gpu", "cifar-fs"), ("paper", "miniimagenet")])
def test_other_scales_without_data_say_how_to_get_it(tmp_path, scale, name):
    with pytest.raises(IsorunError, match=f"(?s){name} is not at hand.*isorun data get {name}"):
        Fewshot().studies(request(scale, folder=tmp_path))


def test_the_first_data_set_at_hand_is_used(tmp_path, monkeypatch):
    monkeypatch.setattr("isorun.zoo.data.presence.at_hand", lambda name: name.startswith("omniglot"))
    for study in Fewshot().studies(request("gpu", folder=tmp_path)):
        assert {options.data for _, options in trainings(study)} == {"omniglot"}


def test_every_scale_but_the_papers_says_what_is_less():
    assert Fewshot.scales["paper"].scaled_down == ()
    for scale in ("smoke", "cpu", "gpu"):
        said = " ".join(Fewshot.scales[scale].scaled_down)
        assert "instead of miniImageNet" in said
        assert f"{PLANS[scale].steps['prototypical']} of 10,000" in said


def test_omniglot_without_the_lists_of_its_split_is_not_enough(tmp_path, monkeypatch):
    folder = tmp_path / "omniglot"
    folder.mkdir()
    (folder / "omniglot.npz").touch()
    monkeypatch.setenv("ISORUN_DATA", str(tmp_path))
    with pytest.raises(IsorunError, match="isorun data get omniglot-vinyals"):
        Fewshot().studies(request("cpu", folder=tmp_path))


def test_a_prototypical_network_has_the_parameters_of_the_usual_conv_4():
    counts = {network.name: network.parameters for network in Fewshot.networks}
    assert len(counts) == 4
    assert counts["prototypical networks (Conv-4)"] == 3 * 64 * 9 + 3 * 64 * 64 * 9 + 4 * (64 + 2 * 64) == 113_088


def test_listing_the_paper_loads_neither_torch_nor_statistics():
    code = (
        "import sys; from isorun.zoo.studies.fewshot.paper import Fewshot; Fewshot().scales; "
        "print([name for name in ('torch', 'scipy', 'numpy', 'PIL') if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_only_smoke_runs_are_held_to_one_thread_and_all_start_warm():
    for scale in SCALES:
        for study in planned(request(scale)).values():
            environment = study.environments["default"]
            assert environment.threads == (1 if scale == "smoke" else None)
            assert environment.preload == PRELOAD
