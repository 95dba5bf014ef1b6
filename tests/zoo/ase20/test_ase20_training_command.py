"""The training command as isorun starts it: what it records, and how it refuses."""

import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from isorun.errors import UsageError  # noqa: E402
from isorun.worker.levels import hooked_python_path  # noqa: E402
from isorun.worker.runfolder import EventReader  # noqa: E402
from isorun.zoo.studies.ase20 import train  # noqa: E402
from isorun.zoo.studies.ase20.training.options import parsed  # noqa: E402

COMMAND = [sys.executable, "-m", "isorun.zoo.studies.ase20.train"]
SMALL = ["--network", "lenet1", "--data", "digits", "--made-data", "--epochs", "2", "--seed", "3", "--device", "cpu"]


def recorded(folder):
    return [event for file in folder.glob("*.jsonl") for event in EventReader(file).events()]


@pytest.fixture(scope="module")
def events(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    env = {**os.environ, "ISORUN_RUN_DIR": str(folder), "PYTHONPATH": hooked_python_path(os.environ)}
    env["OMP_NUM_THREADS"] = "1"
    done = subprocess.run([*COMMAND, *SMALL], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    return recorded(folder)


@pytest.mark.long
def test_every_epoch_is_recorded_with_its_metrics_and_classes(events):
    rows = [event for event in events if event["kind"] == "row"]
    assert [row["step"] for row in rows] == [1, 2]
    for row in rows:
        assert set(row["values"]) == {"train_loss", "val_loss", "val_accuracy", "test_accuracy"}
        assert set(row["per_class"]["test_accuracy"]) == {str(number) for number in range(10)}


@pytest.mark.long
def test_predictions_labels_and_weights_are_recorded_at_the_end(events):
    predictions = {event["name"]: event for event in events if event["kind"] == "predictions"}
    assert set(predictions) == {"predictions", "predictions.labels"}
    assert all(event["pred_kind"] == "class" and event["shape"] == [32] for event in predictions.values())
    assert {"weights.initial", "weights.final"} <= {event.get("name") for event in events if event["kind"] == "digest"}


@pytest.mark.long
def test_the_result_is_the_accuracy_and_how_many_images_there_were(events):
    (result,) = [event["values"] for event in events if event["kind"] == "result"]
    assert set(result) == {"test_accuracy", "train_images", "validation_images", "test_images"}
    # made data: 512 for training, and of 128 others a quarter for the test
    assert [result[name] for name in ("train_images", "validation_images", "test_images")] == [512, 96, 32]


@pytest.mark.long
def test_no_seed_is_fixed_by_the_training_itself(events):
    assert not [event for event in events if event["kind"] == "seeded"]


@pytest.mark.long
def test_two_processes_with_the_same_seed_end_with_the_same_weights(events, tmp_path):
    env = {**os.environ, "ISORUN_RUN_DIR": str(tmp_path), "PYTHONPATH": hooked_python_path(os.environ)}
    env["OMP_NUM_THREADS"] = "1"
    subprocess.run([*COMMAND, *SMALL, "--vary", "none", "--base-seed", "3"], env=env, check=True)
    again = recorded(tmp_path)

    def digests(found):
        return {event["name"]: event["value"] for event in found if event["kind"] == "digest"}

    assert digests(again) == digests(events)


@pytest.mark.long
def test_outside_isorun_it_trains_and_tells_the_epochs(capsys, monkeypatch):
    monkeypatch.delenv("ISORUN_RUN_DIR", raising=False)
    assert train.main(SMALL) == 0
    told = capsys.readouterr().out
    assert told.startswith("lenet1 on made on the spot like digits")
    assert "epoch 2: validation loss" in told


@pytest.mark.long
def test_images_of_the_wrong_kind_are_refused_with_the_data_that_fits(capsys):
    assert train.main(["--network", "resnet38", "--data", "mnist", "--seed", "1"]) == 2
    told = capsys.readouterr().err
    assert "resnet38 cannot be trained on mnist" in told
    assert "cifar10, cifar100" in told


@pytest.mark.long
def test_missing_data_is_named_with_the_command_that_gets_it(made_data_folder, capsys):
    assert train.main(["--network", "resnet38", "--data", "cifar10", "--seed", "1", "--device", "cpu"]) == 1
    assert "isorun data get cifar10" in capsys.readouterr().err


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.long
def test_a_gpu_that_is_not_there_is_said(capsys):
    assert train.main([*SMALL, "--device", "cuda"]) == 2
    assert "torch sees no GPU" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["--network", "lenet2", "--data", "mnist", "--seed", "1"],
        ["--network", "lenet1", "--data", "imagenet", "--seed", "1"],
        ["--network", "lenet1", "--data", "mnist"],
        ["--network", "lenet1", "--data", "mnist", "--seed", "-1"],
        ["--network", "lenet1", "--data", "mnist", "--seed", "1", "--epochs", "few"],
        ["--network", "lenet1", "--data", "mnist", "--seed", "1", "--vary", "luck"],
    ],
)
@pytest.mark.long
def test_words_that_mean_nothing_are_a_usage_error(words, capsys):
    with pytest.raises(SystemExit) as exit_:
        parsed(words)
    assert exit_.value.code == 2
    assert "usage:" in capsys.readouterr().err


@pytest.mark.long
def test_too_few_test_images_are_refused():
    with pytest.raises(UsageError, match="too few test images"):
        train.train(parsed([*SMALL, "--test-images", "3"]))


@pytest.mark.long
def test_a_missing_framework_is_named_with_the_extra_that_brings_it(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert train.main(SMALL) == 1
    assert "isorun[zoo]" in capsys.readouterr().err


@pytest.mark.long
def test_real_images_are_trained_on(shared_data_folder, capsys, monkeypatch):
    monkeypatch.delenv("ISORUN_RUN_DIR", raising=False)
    words = ["--network", "resnet38", "--data", "cifar10", "--epochs", "1", "--seed", "1", "--device", "cpu"]
    assert train.main([*words, "--train-images", "40", "--batch", "20", "--test-images", "20"]) == 0
    assert "stand-in cifar10.npz" in capsys.readouterr().out
