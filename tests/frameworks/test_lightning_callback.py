"""A real Lightning Trainer, alone and in two processes."""

import pytest

from isorun.analysis.studies.class_values import class_values, predicted_and_labels

pytestmark = pytest.mark.slow

TRAINING = """
    import json, sys
    import lightning, torch
    from torch.utils.data import DataLoader, TensorDataset
    from isorun.frameworks.lightning import IsorunCallback

    drawn = torch.Generator().manual_seed(0)
    x = torch.randn(101, 4, generator=drawn)
    y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
    loader = DataLoader(TensorDataset(x, y), batch_size=10)
    cross_entropy = torch.nn.functional.cross_entropy

    class Network(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 3)
        def training_step(self, batch, _):
            loss = cross_entropy(self.layer(batch[0]), batch[1])
            self.log("train_loss", loss, on_step=True, on_epoch=True, prog_bar=True)
            return loss
        def on_train_epoch_end(self):
            self.log("late", float(self.current_epoch))
        def validation_step(self, batch, _):
            self.log("val_loss", cross_entropy(self.layer(batch[0]), batch[1]), prog_bar=True)
        def test_step(self, batch, _):
            scores = self.layer(batch[0])
            self.log("test_acc", (scores.argmax(1) == batch[1]).float().mean())
            return {"logits": scores}
        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.5)

    settings = json.loads(sys.argv[1])
    trainer = lightning.Trainer(
        max_epochs=3, accelerator="cpu", callbacks=[IsorunCallback()], logger=False, enable_checkpointing=False,
        **settings)
    network = Network()
    trainer.fit(network, loader, loader)
    print(trainer.test(network, loader))
"""


def test_epochs_final_values_predictions_and_classes_are_told(trained):
    record = trained(TRAINING, "lightning", words=("{}",))
    assert set(record.series) == {"train_loss", "late", "val_loss"}
    assert set(record.results) == {"test_acc"}
    assert set(record.origins.values()) == {"log"}
    for name in ("train_loss", "late", "val_loss"):
        assert list(record.series[name].steps) == [0.0, 1.0, 2.0]
    assert list(record.series["late"].values) == [0.0, 1.0, 2.0]
    predicted, labels = predicted_and_labels(record, None)
    assert predicted.shape == (101,)
    assert (predicted == labels).mean() == pytest.approx(record.results["test_acc"])
    assert set(class_values(record, "test_acc", None)) == {"0", "1", "2"}


def test_a_validation_within_an_epoch_is_told_at_its_part_and_without_metrics_of_the_training(trained):
    record = trained(TRAINING, "lightning", words=('{"val_check_interval": 5}',))
    assert list(record.series["val_loss"].steps)[1::2] == pytest.approx([10 / 11 - 1, 10 / 11, 10 / 11 + 1])
    assert list(record.series["train_loss"].steps) == [0.0, 1.0, 2.0]


def test_an_epoch_without_validation_repeats_no_value(trained):
    record = trained(TRAINING, "lightning", words=('{"check_val_every_n_epoch": 2}',))
    assert list(record.series["val_loss"].steps) == [1.0]
    assert list(record.series["train_loss"].steps) == [0.0, 1.0, 2.0]


def test_two_processes_are_one_record_with_all_predictions_in_the_order_of_the_data(trained):
    record = trained(TRAINING, "lightning", words=('{"devices": 2, "strategy": "ddp"}',))
    ranks = record.environment["effective"]["ranks"]
    assert (ranks["world_size"], [one["rank"] for one in ranks["each"]]) == (2, [0, 1])
    assert list(record.series["train_loss"].steps) == [0.0, 1.0, 2.0]
    _, labels = predicted_and_labels(record, None)
    _, of_one = predicted_and_labels(trained(TRAINING, "lightning", words=("{}",)), None)
    assert labels.tolist() == of_one.tolist()
