"""A real Trainer of Hugging Face transformers, on a network of a few weights; nothing is fetched."""

import pytest

from isorun.analysis.studies.class_values import class_values, predicted_and_labels

pytestmark = pytest.mark.slow

TRAINING = """
    import sys
    import numpy as np, torch
    from torch.utils.data import Dataset
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
    {imported}

    class Sentences(Dataset):
        def __init__(self, seed):
            drawn = torch.Generator().manual_seed(seed)
            self.words = torch.randint(5, 20, (90, 6), generator=drawn)
            self.labels = self.words[:, 0] % 3
        def __len__(self):
            return len(self.words)
        def __getitem__(self, place):
            return {{"input_ids": self.words[place], "labels": self.labels[place]}}

    def compute_metrics(given):
        return {{"accuracy": float((given.predictions.argmax(-1) == given.label_ids).mean())}}

    torch.manual_seed(0)
    model = BertForSequenceClassification(BertConfig(
        vocab_size=20, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, num_labels=3))
    arguments = TrainingArguments(
        "out", num_train_epochs=2, per_device_train_batch_size=15, eval_strategy="epoch", logging_strategy="epoch",
        save_strategy="no", learning_rate=0.01, report_to=[], use_cpu=True, disable_tqdm=True, seed=0)
    trainer = Trainer(model=model, args=arguments, train_dataset=Sentences(1), eval_dataset=Sentences(2), {given})
    trainer.train()
    trainer.evaluate()
    trainer.predict(Sentences(3))
"""
WITH = TRAINING.format(
    imported="from isorun.frameworks.transformers import IsorunCallback; told = IsorunCallback()",
    given="callbacks=[told], compute_metrics=told.compute_metrics(compute_metrics)",
)
WITHOUT = TRAINING.format(imported="", given="compute_metrics=compute_metrics")


def test_epochs_final_values_predictions_and_classes_are_told(trained):
    record = trained(WITH, "transformers", "accelerate")
    assert {record.origins[name] for name in ("loss", "eval_loss", "eval_accuracy")} == {"log"}
    assert list(record.series["eval_accuracy"].steps) == [1.0, 2.0]
    assert list(record.series["loss"].steps) == [1.0, 2.0]
    assert record.results["eval_accuracy"] == record.series["eval_accuracy"].values[-1]
    assert "test_accuracy" in record.results
    predicted, labels = predicted_and_labels(record, 2.0)
    assert (predicted == labels).mean() == pytest.approx(record.series["eval_accuracy"].values[1])
    assert set(class_values(record, "eval_accuracy", None)) == {"0", "1", "2"}


def test_a_value_that_is_logged_and_printed_is_there_once_and_the_same(trained):
    with_callback = trained(WITH, "transformers", "accelerate")
    printed = trained(WITHOUT, "transformers", "accelerate")
    assert set(printed.series) <= set(with_callback.series)
    for name in ("loss", "eval_loss", "eval_accuracy"):
        told, read = with_callback.series[name], printed.series[name]
        assert len(told.values) == 2
        assert list(told.values) == pytest.approx(list(read.values)[:2], abs=1e-3)
