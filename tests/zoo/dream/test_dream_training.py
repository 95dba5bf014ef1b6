"""Networks of a search: every value of the space trains, the seed decides all, and what is outside is refused."""

import json
import math
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from isorun.errors import UsageError  # noqa: E402
from isorun.zoo.data.made import made_images  # noqa: E402
from isorun.zoo.studies.dream import train  # noqa: E402
from isorun.zoo.studies.dream.space import ADDED, DEFAULTS, FAULTS, ORIGINAL, SPACE, checked  # noqa: E402
from isorun.zoo.studies.dream.training import SearchedTraining, made_material  # noqa: E402

SMALL = ["--made-data", "--epochs", "1", "--train-images", "32", "--judged-images", "16", "--device", "cpu"]


@pytest.fixture(scope="module")
def material():
    return made_material(made_images("digits", train=120), torch.device("cpu"), 64, 32)


def trained(material, config, *, seed=3, epochs=1):
    training = SearchedTraining(config, material, seed=seed, epochs=epochs)
    found = list(training.epochs())
    return found, [parameter.detach().clone() for parameter in training.network.parameters()]


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in SPACE.items() for value in values])
def test_every_value_of_every_parameter_trains_an_epoch(material, name, value):
    (found,), weights = trained(material, {"filters": 8, "stages": 1, "batch_size": 32, name: value})
    assert found.epoch == 1
    assert 0.0 <= found.accuracy <= 1.0
    assert 0.0 <= found.val_accuracy <= 1.0
    assert all(isinstance(number, float) for number in (found.loss, found.val_loss))
    start = SearchedTraining({"filters": 8, "stages": 1, "batch_size": 32, name: value}, material, seed=3, epochs=1)
    assert not all(torch.equal(*pair) for pair in zip(start.network.parameters(), weights, strict=True))


@pytest.mark.parametrize(("name", "value"), [("block_type", "inverted"), ("dropout", 0.5), ("augment", True)])
def test_the_seed_decides_all_numbers_and_weights(material, name, value):
    config = {"filters": 8, "batch_size": 32, name: value}
    first, weights = trained(material, config, epochs=2)
    again, same = trained(material, config, epochs=2)
    other, different = trained(material, config, seed=4, epochs=2)
    assert first == again
    assert all(torch.equal(*pair) for pair in zip(weights, same, strict=True))
    assert first != other
    assert not all(torch.equal(*pair) for pair in zip(weights, different, strict=True))


def test_a_training_learns_and_one_without_a_number_for_its_loss_ends(material):
    config = {"filters": 8, "batch_size": 32, "learning_rate": 0.01, "normalize": True}
    found, _ = trained(material, config, epochs=8)
    assert [epoch.epoch for epoch in found] == [*range(1, 9)]
    assert found[-1].loss < 0.5 * found[0].loss
    broken = SearchedTraining(config, material, seed=3, epochs=8)
    with torch.no_grad():
        next(broken.network.parameters()).fill_(float("nan"))
    (only,) = broken.epochs()
    assert math.isnan(only.loss)


def test_the_learning_rate_ends_at_its_share_by_half_a_cosine(material):
    config = {"filters": 8, "stages": 1, "learning_rate": 0.1, "end_learning_rate": 0.01}
    training = SearchedTraining(config, material, seed=3, epochs=3)
    rates = [training.optimizer.param_groups[0]["lr"] for _ in training.epochs()]
    assert rates == pytest.approx([0.1, 0.1 * (0.01 + 0.99 / 2), 0.001])


def test_images_that_a_search_judges_by_are_none_that_it_trains_on():
    images = made_images("digits", train=90)
    whole = made_material(images, torch.device("cpu"))
    assert (len(whole.labels), len(whole.judged_labels)) == (72, 18)
    asked = made_material(images, torch.device("cpu"), 1000, 1000)
    assert (len(asked.labels), len(asked.judged_labels)) == (60, 30)
    seen = {image.numpy().tobytes() for image in asked.images}
    assert not seen & {image.numpy().tobytes() for image in asked.judged_images}


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"learning_rat": 0.1}, "(?s)learning_rat is no parameter.*learning_rate"),
        ({"activation": "swish"}, "activation cannot be 'swish'"),
        ({"filters": 0}, "(?s)filters cannot be 0.*8, 16, 32, 64"),
        ({"filters": "8"}, "filters cannot be '8'"),
        ({"kernel_size": 4}, "kernel_size cannot be 4"),
        ({"depth": 2.0}, r"depth cannot be 2\.0"),
        ({"depth": True}, "depth cannot be True"),
        ({"normalize": 1}, "normalize cannot be 1"),
        ({"learning_rate": -0.1}, "(?s)learning_rate cannot be -0.1.*1e-05 to 1.0"),
        ({"learning_rate": float("nan")}, "learning_rate cannot be nan"),
        ({"dropout": True}, "dropout cannot be True"),
    ],
)
def test_what_the_space_does_not_have_is_refused(config, said):
    with pytest.raises(UsageError, match=said):
        checked(config)


def test_what_is_left_out_is_as_by_default_and_fractions_between_are_allowed():
    assert checked({}) == DEFAULTS
    assert checked({"learning_rate": 0.03, "dropout": 0})["learning_rate"] == 0.03
    assert set(DEFAULTS) == set(SPACE) == {*ORIGINAL, *ADDED}
    assert all(checked({name: value}) for name, values in SPACE.items() for value in values)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_made_of_values_of_the_space_and_is_none_of_the_defaults(name):
    fault = FAULTS[name]
    assert fault.told
    assert all(value in SPACE[parameter] for parameter, value in fault.values.items())
    assert checked(fault.values) != DEFAULTS


def test_help_lists_every_parameter_and_needs_no_framework():
    start = "import sys; from isorun.zoo.studies.dream import train\n"
    code = f"{start}try: train.main(['--help'])\nfinally: assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert all(f"--{name.replace('_', '-')}" in done.stdout for name in SPACE)


def test_words_that_do_not_fit_end_with_2_and_a_reason(capsys):
    assert train.main([*SMALL, "--filters", "0"]) == 2
    assert "filters cannot be 0" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        train.main([*SMALL, "--normalize", "perhaps"])
    assert "allowed are true and false" in capsys.readouterr().err


@pytest.mark.long
def test_a_run_through_the_command_line_has_its_metrics_and_is_watched(tmp_path):
    words = [sys.executable, "-m", "isorun.zoo.studies.dream.train", *SMALL, "--filters", "8", "--seed", "{seed}"]

    def isorun(*asked):
        command = [sys.executable, "-m", "isorun", *asked]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    run = isorun("run", "--name", "tiny", "--", *words)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "val_accuracy" in isorun("report", "tiny").stdout
    (told,) = json.loads(isorun("doctor", "tiny", "--json").stdout)["runs"]
    assert told["symptoms"]["architecture"] == "plain"
