"""Output captured from real trainings, with the values those trainings had."""

from __future__ import annotations

from pathlib import Path

import pytest

from isorun.sources import Found
from isorun.sources.lines import scan_text

SAMPLES = Path(__file__).parent / "samples"


def scanned(name: str) -> Found:
    with (SAMPLES / f"{name}.txt").open(encoding="utf-8", newline="") as file:
        return scan_text(file.read())


def values(found: Found) -> dict[str, tuple[float, ...]]:
    return {name: series.values for name, series in found.series.items()}


@pytest.mark.parametrize("sample", ["keras_fit", "keras_fit_verbose2"])
def test_keras_bars_give_one_value_an_epoch_and_evaluate_stays_apart(sample: str) -> None:
    found = scanned(sample)
    assert values(found) == {
        "accuracy": (0.5195, 0.5234, 0.5352),
        "loss": (0.9287, 0.9020, 0.8761),
        "val_accuracy": (0.3906, 0.4062, 0.3906),
        "val_loss": (0.9578, 0.9347, 0.9128),
        "eval_accuracy": (0.5469,),
        "eval_loss": (0.8321,),
    }
    assert found.series["accuracy"].steps == (1.0, 2.0, 3.0)
    assert found.results == {"eval_accuracy": 0.5469, "eval_loss": 0.8321}
    assert found.notes == ()


def test_lightning_bars_and_its_test_table_are_read() -> None:
    found = scanned("lightning")
    assert values(found) == {
        "train_loss": (0.737, 0.595, 0.501),
        "train_acc": (0.438, 0.719, 0.938),
        "val_loss": (0.703, 0.605, 0.537),
        "val_acc": (0.522, 0.725, 0.853),
        "test_acc": (0.8531249761581421,),
        "test_loss": (0.5369906425476074,),
    }
    assert found.series["val_acc"].steps == (0.0, 1.0, 2.0)
    assert found.results == {"test_acc": 0.8531249761581421, "test_loss": 0.5369906425476074}


def test_lightning_rich_bars_leave_their_last_values() -> None:
    found = scanned("lightning_rich")
    assert values(found) == {
        "train_loss": (0.501,),
        "train_acc": (0.938,),
        "val_loss": (0.537,),
        "val_acc": (0.853,),
        "test_acc": (0.8531249761581421,),
        "test_loss": (0.5369906425476074,),
    }
    assert found.series["val_acc"].steps == (2.0,)


def test_trainer_dictionaries_are_read_without_speeds_and_times() -> None:
    found = scanned("huggingface_trainer")
    assert set(found.series) == {"loss", "grad_norm", "learning_rate", "eval_loss", "eval_accuracy", "train_loss"}
    assert found.series["loss"].steps == (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
    assert found.series["loss"].values == (0.6936, 0.6927, 0.6928, 0.6932, 0.6932, 0.693)
    assert found.series["eval_accuracy"].steps == (1.0, 2.0, 3.0)
    assert found.series["eval_accuracy"].values == (0.4844, 0.4844, 0.484375)


def test_tqdm_bars_with_a_described_epoch_and_a_validation_bar_are_told_apart() -> None:
    found = scanned("tqdm_named_epochs")
    assert values(found) == {
        "acc": (0.8, 0.85, 0.9),
        "loss": (1.09, 0.59, 0.423),
        "val_loss": (0.5, 0.25, 0.1667),
    }
    assert found.series["val_loss"].steps == (1.0, 2.0, 3.0)


def test_tqdm_bars_without_epochs_give_one_value_a_bar() -> None:
    found = scanned("tqdm_plain")
    assert values(found) == {"acc": (0.8, 0.85, 0.9), "loss": (1.09, 0.59, 0.423)}
    assert found.series["loss"].steps == (0.0, 1.0, 2.0)


def test_a_table_with_an_epoch_column_is_read_by_its_heading() -> None:
    found = scanned("fastprogress_table")
    assert values(found) == {
        "train_loss": (0.9, 0.8, 0.7),
        "valid_loss": (0.8, 0.7, 0.6),
        "accuracy": (0.7, 0.75, 0.8),
    }
    assert found.series["accuracy"].steps == (0.0, 1.0, 2.0)
