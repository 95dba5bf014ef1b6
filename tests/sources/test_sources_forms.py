"""One line, exactly these metrics."""

from __future__ import annotations

import math
import warnings

import pytest

from isorun.sources.lines import scan_text

FORMS = [
    ("loss = 0.5 * mse + 0.5 * kl", {}),
    ("total_loss = 0.3 + 0.5 = 0.8", {}),
    ("accuracy: 0.9 x 100", {}),
    ("val_acc: 0.91 * best", {"val_acc": 0.91}),
    ("+ python train.py --loss 0.3 --val-acc=5", {}),
    ("--Test acc: 0.91", {"test_acc": 0.91}),
    ("std of acc: 0.02", {}),
    ("Standard deviation of accuracy on the test set: 0.02", {}),
    ("gap between train and val acc: 0.1", {}),
    ("improvement in val_loss 0.01", {}),
    ("acc_steps: 8 grad_acc: 4", {}),
    ("kl_beta: 0.2 entropy_coeff: 0.01 error_tolerance: 0.001", {}),
    ("return code: 0 error code: 3 cache hits: 55", {}),
    ('{"config": {"loss": 3}, "run": {"params": {"score": 4}}, "test_acc": 0.9}', {"test_acc": 0.9}),
    ("val_acc： 0.91", {"val_acc": 0.91}),
    ("val_acc: 0.98", {"val_acc": 0.98}),
    ("loss=0.1", {"loss": 0.1}),
    ("loss = 1e-05, mae = -0.5", {"loss": 1e-05, "mae": -0.5}),
    ("loss: 1,234.5", {"loss": 1234.5}),
    ("score: 12,345,678", {"score": 12345678.0}),
    ("step 1,234 loss 0.5", {"loss": 0.5}),
    ("Accuracy: 9908/10000 (99%)", {"accuracy": 0.9908}),
    ("Test set: Average loss: 0.0292, Accuracy: 9908/10000 (99%)", {"test_loss": 0.0292, "test_accuracy": 0.9908}),
    ("Epoch: 12 | train loss 0.31 | val acc 97.4%", {"train_loss": 0.31, "val_acc": 0.974}),
    ("Accuracy (%): 97.4", {"accuracy": 0.974}),
    ("[12/50] loss: 0.1", {"loss": 0.1}),
    ("63/63 [======] - 1s 3ms/step - loss: 0.3 - accuracy: 0.91", {"loss": 0.3, "accuracy": 0.91}),
    ("32/63 [===>....] - ETA: 0s - loss: 0.3", {"loss": 0.3}),
    (
        "Epoch 4: 100%|███| 100/100 [00:01<00:00, 54.26it/s, v_num=0, train_loss=0.31, val_acc=0.97]",
        {"train_loss": 0.31, "val_acc": 0.97},
    ),
    ("{'eval_loss': 0.41, 'eval_runtime': 1.5, 'epoch': 3.0}", {"eval_loss": 0.41}),
    ("{'eval_accuracy': np.float64(0.88), 'epoch': '3'}", {"eval_accuracy": 0.88}),
    ('{"epoch": 1, "val_acc": 0.9, "train": {"loss": 0.5}, "model": "lenet"}', {"val_acc": 0.9, "train/loss": 0.5}),
    ("Epoch 3: {'loss': 0.25}", {"loss": 0.25}),
    ("100%|██| 50/50 [00:01<00:00, 48it/s, loss=0.12, acc=0.9]", {"loss": 0.12, "acc": 0.9}),
    (
        "Train: 3 [ 100/390 ( 26%)]  Loss: 0.5 (0.6)  Time: 0.123s, 1000.00/s  LR: 1.000e-03  Data: 0.01 (0.02)",
        {"train_loss": 0.6, "lr": 0.001},
    ),
    (" * Acc@1 76.13 (23.87) Acc@5 92.86", {"acc@1": 76.13, "acc@5": 92.86}),
    ("Train Epoch: 1 [0/60000 (0%)]\tLoss: 2.29", {"train_loss": 2.29}),
    ("2024-01-02 10:00:00,123 INFO train - epoch=3 val_loss=0.2", {"val_loss": 0.2}),
    ("2024-01-02 10:00:00,123 - train - INFO - accuracy: 0.9", {"accuracy": 0.9}),
    ("[2024-01-02 10:00:00,123][train][INFO] - loss: 0.1", {"loss": 0.1}),
    ("2024-01-02 10:00:00.123 | INFO     | __main__:main:12 - val_acc: 0.9", {"val_acc": 0.9}),
    ("I0102 10:00:00.123456 12345 train.py:12] loss = 0.1", {"loss": 0.1}),
    ("INFO:root:loss:0.3", {"loss": 0.3}),
    ("(worker pid=123) test_acc: 0.5", {"test_acc": 0.5}),
    ("[rank0]: loss: 0.5", {"loss": 0.5}),
    ("Test Top 1: 0.9 Top 5: 0.99", {"test_top-1": 0.9, "test_top-5": 0.99}),
    ("\x1b]0;training of x\x07val_acc: 0.75", {"val_acc": 0.75}),
    ("\x1b]8;;https://h/x\x1b\\val_acc\x1b]8;;\x1b\\: 0.75", {"val_acc": 0.75}),
    ("\x1b[32m[INFO]\x1b[0m val_acc: \x1b[1m0.75\x1b[0m", {"val_acc": 0.75}),
    ("Best val acc: 0.91 at epoch 7", {"best_val_acc": 0.91}),
    ("Final test accuracy = 0.97", {"final_test_accuracy": 0.97}),
    ("step 500: train loss 2.1, val loss 2.2", {"train_loss": 2.1, "val_loss": 2.2}),
    ("[10]\tvalidation_0-logloss:0.215", {"validation_0-logloss": 0.215}),
    ("Iteration 1, loss = 2.3", {"loss": 2.3}),
    ("[1,  2000] loss: 2.2", {"loss": 2.2}),
    (
        "Epoch: [0][  10/5005]\tTime  0.1 ( 0.5)\tLoss 6.9e+00 (7.0e+00)\tAcc@1   0.00 (  0.10)",
        {"loss": 7.0, "acc@1": 0.1},
    ),
    ("Epoch(val) [1][79/79]    accuracy/top1: 45.1  data_time: 0.01", {"val_accuracy/top1": 45.1}),
    ("train Loss: 0.6 Acc: 0.7", {"train_loss": 0.6, "train_acc": 0.7}),
    (
        "Epoch 5, Train Loss: 0.5, Val Loss: 0.6, Accuracy: 93.2%",
        {"train_loss": 0.5, "val_loss": 0.6, "val_accuracy": 0.932},
    ),
    ("Accuracy of the network on the 10000 test images: 54 %", {"test_accuracy": 0.54}),
    ("Accuracy for class: plane is 55.4 %", {"accuracy[plane]": 0.554}),
    ("Epoch 2 foo=0.25", {"foo": 0.25}),
    ("Epoch [3]  loss 0.5  acc 0.25", {"loss": 0.5, "acc": 0.25}),
    ("Epoch three  train loss 0.5  val loss 0.25", {"train_loss": 0.5, "val_loss": 0.25}),
    ("Epoch  Train Loss  Val Loss\n  1   0.5   0.25", {"train_loss": 0.5, "val_loss": 0.25}),
    ("[3]\teval-merror:0.27556", {"eval-merror": 0.27556}),
    ("[1,200] Accuracy: 89.33%", {"accuracy": 0.8933}),
    (
        "0:\tlearn: 0.9\ttest: 0.95\tbest: 0.95 (0)\ttotal: 52ms\tremaining: 264ms",
        {"learn": 0.9, "test": 0.95, "best": 0.95},
    ),
    ("0:\tlearn: 0.9\ttotal: 52ms\tremaining: 264ms", {"learn": 0.9}),
    ("{'learn': {'MAE': 0.25}, 'validation': {'MAE': 0.5}}", {"learn/MAE": 0.25, "validation/MAE": 0.5}),
    ("DEV : loss 0.25 - f1-score (micro avg)  0.5", {"val_loss": 0.25, "val_f1-score_micro": 0.5}),
    ("OLS   R-squared:   0.25", {"r-squared": 0.25}),
    ("OLS   Adj. R-squared:   0.25", {"adj_r-squared": 0.25}),
    ("-3.007 per-word bound, 8.5 perplexity estimate based on a held-out corpus of 100 documents", {"perplexity": 8.5}),
    (
        "classes   top1_acc   top5_acc: 100% ━━━ 2/2 26.3it/s\n    all        0.5          1",
        {"top1_acc": 0.5, "top5_acc": 1.0},
    ),
    ("Test: [1/1] Acc@1 40.0 (45.0)\n *   Acc@1 50.000", {"test_acc@1": 50.0}),
    ("| rollout/       |      |\n|    ep_rew_mean | 22.3 |\n-----------------------", {"rollout/ep_rew_mean": 22.3}),
    (
        "  Iter       Train Loss      OOB Improve   Remaining Time\n     1      1.5    0.25    0.03s",
        {"train_loss": 1.5, "oob_improve": 0.25},
    ),
    ("Coefficient of determination: 0.47", {"coefficient_of_determination": 0.47}),
    ("Test set: Average loss: 0.05, Accuracy: (98%)", {"test_loss": 0.05, "test_accuracy": 0.98}),
]

NO_METRICS = [
    "Epoch 3/50",
    "torch 2.13.0+cpu on 127.0.0.1:6006 with cuda:0",
    "2024-01-02 10:00:00 started, pid 123",
    "Namespace(lr=0.01, epochs=5, loss_weight=0.5)",
    "lr: 0.1, momentum: 0.9, batch_size: 128",
    "saving to /data/run_3/loss_0.5/model.pt",
    "ETA: 0:10:05, 12.5 it/s, 3.4 GB, time: 12.3",
    "10/10 done in 12.5s",
    "CUDA error: 700",
    'File "train.py", line 12, in <module>',
    "Epoch 1: val_loss improved from inf to 0.41, saving model to m.keras",
    "EarlyStopping counter: 3 out of 10",
    "loss_scale: 65536.0",
    "Total params: 1,234",
    "loss: 0,845",
    "loss=0,912 acc=0,500",
    "loss: 0,25 acc: 0,5",
    "loss: 1.234,5",
    "accuracy: 97,4 %",
    "loss: 1,234",
    '{"loss": "0,912"}',
    "{'loss': 0,912}",
    "epoch  loss\n1  0,512\n2  0,400",
    "epoch 1 reward: 999\nepoch 2 reward: 1,234\nepoch 3 reward: 998",
    "1,234.5 perplexity estimate based on a held-out corpus",
    "loss: 0.5ms",
    "{'not': 'a number', 'nested': [1, 2]}",
    "[LightGBM] [Info] Start training from score -1.098612",
    "engine/trainer: amp=True, augment=False, iou=0.7, mask_ratio=4, resume=False, loss=0.5",
    "classes   top1_acc   top5_acc: 100% ━━━━━━━━━━━━ 2/2 26.3it/s 0.1s",
    "Df Residuals:                     397",
    "{broken json: 0.5",
    "loss: abc",
    "loss 10: 0.5",
    "loss 1: 0.5, loss 2: 0.25",
    "epoch 4 loss=1.#IND acc=1.#QNAN",
    "precision: 16",
    "errors: 0",
    "top_p: 0.9",
    "callbacks.model_checkpoint.save_top_k: 1",
    "accuracy: (0.5, 0.25)",
    "Epoch 0, global step 100: 'val_wer' reached 0.45 (best 0.45), saving model to '/x/val_wer=0.4.ckpt' as top 3",
    "step=10, RunningAvgSamplesPerSec=100.1, MemAllocated=1.2GB",
]


@pytest.mark.parametrize(("line", "expected"), FORMS)
def test_a_common_form_gives_its_metrics_and_no_others(line: str, expected: dict[str, float]) -> None:
    found = scan_text(line)
    assert {name: series.values[-1] for name, series in found.series.items()} == expected


@pytest.mark.parametrize("line", NO_METRICS)
def test_a_line_without_metrics_gives_none(line: str) -> None:
    assert scan_text(line).series == {}


@pytest.mark.parametrize("written", ["nan", "NaN", "inf", "-inf"])
def test_values_that_are_not_finite_are_kept(written: str) -> None:
    value = scan_text(f"loss: {written}").series["loss"].values[0]
    assert math.isnan(value) if "n" in written[:1].lower() else value == float(written)


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("Epoch 3/50 loss: 0.1", 3),
        ("epoch=3 loss=0.1", 3),
        ("Epoch: [3][ 10/50] loss 0.1", 3),
        ("Epoch #3 - loss: 0.1", 3),
        ("[3/50] loss: 0.1", 3),
        ("[3,  100] loss: 0.1", 3),
        ("Train: 3 [ 1/5 ( 20%)] loss: 0.1", 3),
        ("Epochs:  10%|█| 3/50 [00:01<00:10, 4it/s, loss=0.3]", 3),
        ('{"epoch": 3, "step": 70, "loss": 0.1}', 3),
        ("step 300 | loss 0.1", 300),
        ("[300]\tvalid-loss:0.1", 300),
        ("[1,300] loss: 0.1", 1300),
        ("Episode 30\tloss: 0.1", 30),
        ("7:\tlearn: 0.9\ttotal: 52ms", 7),
        ("| time/ | |\n|    total_timesteps | 256 |\n| train/ | |\n|    loss | 0.5 |\n-----", 256),
    ],
)
def test_the_epoch_or_step_on_a_line_becomes_the_step(line: str, step: float) -> None:
    assert [series.steps for series in scan_text(line).series.values()] == [(float(step),)]


@pytest.mark.parametrize("text", ["loss: 0,845", '{"loss": "0,912"}', "epoch  loss\n1  0,512", "loss: 5\nloss: 1,234"])
def test_a_number_whose_comma_is_unclear_is_named_in_a_note(text):
    assert [note.code for note in scan_text(text).notes] == ["stdout.left-out"]
    assert "left out: loss: the comma in its number" in scan_text(text).notes[0].message


def test_what_the_parser_says_of_a_printed_line_is_not_printed():
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        scan_text("{\n1infbest},")
    assert said == []


def test_scores_of_clusterings_and_relative_errors_are_read():
    lines = """Homogeneity: 0.953\nCompleteness: 0.883\nV-measure: 0.917\nAdjusted Rand Index: 0.952
Adjusted Mutual Information: 0.916\nSilhouette Coefficient: 0.626\nBrier score: 0.12
The RAE of prediction is: 0.8645\nThe RSE of prediction is: 0.75\nclass index: 0.5\ncoefficient: 0.5"""
    assert dict(scan_text(lines).results) == {
        "homogeneity": 0.953,
        "completeness": 0.883,
        "v-measure": 0.917,
        "adjusted_rand_index": 0.952,
        "adjusted_mutual_information": 0.916,
        "silhouette_coefficient": 0.626,
        "brier_score": 0.12,
        "rae": 0.8645,
        "rse": 0.75,
    }


OBJECTS_SHOWN = [
    ("IntDistribution(high=32, log=True, low=2, step=1)", {}),
    ("FrozenTrial(number=3, state=<TrialState.COMPLETE: 1>, values=[0.98], trial_id=3, value=None)", {}),
    ("FrozenTrial(params={'svc_c': 4.7, 'aux_loss': 0.1}, distributions={'c': Low(high=9.5, low=0.5, step=1)})", {}),
    ("state=<TrialState.COMPLETE: 1> loss=0.5", {"loss": 0.5}),
    ("TrainConfig(loss=0.5, epochs=3)", {}),
    ("GridSearchCV(cv=5, error_score=nan)", {}),
    ("Ridge(low=2.5) accuracy: 0.75", {"accuracy": 0.75}),
    ("Ridge(low=2.5, high=3.5, step=1", {}),
    ("EvalOutput(loss=0.5, accuracy=0.75)", {"loss": 0.5, "accuracy": 0.75}),
    ("Train(loss=0.5)", {"train_loss": 0.5}),
]


@pytest.mark.parametrize(("line", "expected"), OBJECTS_SHOWN)
def test_the_fields_of_a_shown_object_are_settings_unless_it_is_a_result(line, expected):
    found = scan_text(line)
    assert {name: series.values[-1] for name, series in found.series.items()} == expected
