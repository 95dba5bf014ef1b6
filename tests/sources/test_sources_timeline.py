"""Many lines: epochs, passes, final values, limits and notes."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from isorun.sources import Found, describe, freeform, merged, objects, rows, timeline
from isorun.sources.lines import LineMetrics, scan_text
from isorun.study.design import Sources
from isorun.study.records import Note, Series


def codes(found: Found) -> list[str]:
    return [note.code for note in found.notes]


def test_values_printed_below_an_epoch_heading_belong_to_that_epoch() -> None:
    found = scan_text("Epoch 1\nloss: 3  [ 64/600]\nloss: 2.5 [128/600]\nEpoch 2\nloss: 2 [ 64/600]")
    assert found.series["loss"] == Series((1.0, 2.0), (0.0, 0.0), (2.5, 2.0))


def test_a_heading_that_names_a_split_prefixes_the_block_below_it() -> None:
    found = scan_text("Epoch 1\nTest Error: \n Accuracy: 44.4%, Avg loss: 2.157\n\nDone!")
    assert found.results == {"test_accuracy": 0.444, "test_loss": 2.157}


def test_a_heading_with_an_epoch_prefixes_the_line_below_it() -> None:
    found = scan_text("Validation after epoch 3:\nloss: 0.25\nloss: 0.5")
    assert found.series["val_loss"] == Series((3.0,), (0.0,), (0.25,))
    assert found.series["loss"].values == (0.5,)


def frame(*rows: tuple[int, float]) -> str:
    return "\n".join(["   epoch  val_acc", *(f"{epoch - 1}  {epoch:5}  {value:7.3f}" for epoch, value in rows)])


@given(st.permutations([(1, 0.5), (2, 0.7), (3, 0.9), (4, 0.8), (12, 0.6)]))
def test_a_frame_is_in_the_order_of_its_epochs_however_it_was_sorted(rows_of_frame: list[tuple[int, float]]) -> None:
    found = scan_text(f"{frame(*rows_of_frame)}\n\nval_loss: 0.25\n")
    assert found.series["val_acc"].steps == (1.0, 2.0, 3.0, 4.0, 12.0)
    assert found.series["val_acc"].values == (0.5, 0.7, 0.9, 0.8, 0.6)
    assert found.notes == ()


def test_progress_tells_the_latest_epoch_of_a_frame_that_was_sorted_best_first() -> None:
    metrics = LineMetrics(Sources())
    for line in frame((2, 0.9), (3, 0.8), (1, 0.5)).splitlines():
        metrics.feed(line, 1.0)
    assert metrics.latest() == {"t": 1.0, "step": 3.0, "values": {"val_acc": 0.8}}


def test_only_the_rows_of_one_frame_are_put_in_order() -> None:
    text = f"{frame((2, 0.7), (1, 0.5))}\n\nnow fold 2\n{frame((2, 0.6), (1, 0.4))}\n"
    assert scan_text(text).series["val_acc"].steps == (1.0, 2.0, 1.0, 2.0)
    assert scan_text(text).series["val_acc"].values == (0.5, 0.7, 0.4, 0.6)


def test_folds_below_each_other_stay_as_they_are_and_a_mixture_of_them_is_left_out() -> None:
    folds = scan_text(frame((1, 0.5), (2, 0.7), (1, 0.4), (2, 0.6)))
    assert folds.series["val_acc"].values == (0.5, 0.7, 0.4, 0.6)
    mixed = scan_text(frame((3, 0.9), (2, 0.8), (3, 0.7), (1, 0.6)))
    assert "val_acc" not in mixed.series
    assert codes(mixed) == ["stdout.left-out"]


@pytest.mark.parametrize("epoch", ["nan", "inf", "1" * 400])
def test_an_epoch_that_is_not_finite_is_none(epoch: str) -> None:
    assert scan_text(f"epoch: {epoch} loss: 0.5").series["loss"].steps == (0.0,)
    assert scan_text(f"epoch  loss\n{epoch} 0.5").series == {}


def test_the_last_test_row_is_a_result_when_no_epoch_follows() -> None:
    text = "Train Epoch: 1 [0/9 (0%)]\tLoss: 2\nTest set: Accuracy: 1/2 (50%)\n"
    assert scan_text(text).results == {"test_accuracy": 0.5}
    assert scan_text(text + "Train Epoch: 2 [0/9 (0%)]\tLoss: 1\n").results == {}


def test_a_single_value_of_a_training_without_epochs_is_a_result() -> None:
    assert scan_text("accuracy: 0.97").results == {"accuracy": 0.97}
    assert scan_text("accuracy: 0.96\naccuracy: 0.97").results == {}


def test_seconds_are_those_of_the_last_value_of_the_epoch() -> None:
    metrics = LineMetrics(Sources())
    for seconds, line in enumerate(["Epoch 1", "loss: 3", "loss: 2", "Epoch 2", "loss: 1"]):
        metrics.feed(line, float(seconds))
    assert metrics.finish().series["loss"].seconds == (2.0, 4.0)


def test_lines_without_any_clock_count_from_zero() -> None:
    assert scan_text("loss: 3\nloss: 2\nloss: 1").series["loss"].steps == (0.0, 1.0, 2.0)


def test_epochs_that_begin_again_are_kept_and_noted() -> None:
    found = scan_text("\n".join(f"Epoch {epoch} loss: 0.{epoch}" for epoch in [1, 2, 1, 2]))
    assert found.series["loss"].steps == (1.0, 2.0, 1.0, 2.0)
    assert codes(found) == ["stdout.restart"]


def test_names_that_count_only_in_company_are_noted_when_alone() -> None:
    found = scan_text("sharpness: 0.25")
    assert found.series == {}
    assert codes(found) == ["stdout.not-taken"]
    assert "sharpness" in found.notes[0].message


def test_a_metric_printed_on_two_scales_is_noted() -> None:
    assert codes(scan_text("acc: 97.4%\nacc: 0.974")) == ["stdout.scale", "stdout.no-epoch"]


def test_a_long_line_is_read_at_its_start_and_noted() -> None:
    found = scan_text("loss: 0.5 " + "x" * 5000 + " acc: 0.9")
    assert set(found.series) == {"loss"}
    assert codes(found) == ["stdout.long-lines"]


def test_points_and_names_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "MOST_POINTS", 10)
    monkeypatch.setattr(timeline, "MOST_METRICS", 3)
    printed = [f"loss: {value}" for value in range(100)] + [f"loss_{name}: 1" for name in range(100)]
    found = scan_text("\n".join(printed))
    assert len(found.series) == 3
    assert len(found.series["loss"].values) == 10
    assert found.series["loss"].values[-1] == 99
    assert codes(found) == ["stdout.limit", "stdout.names", "stdout.no-epoch"]


def test_describe_shows_what_was_found_and_in_which_line() -> None:
    lines = describe(scan_text("Epoch 1 loss: 0.5\nEpoch 2 loss: 0.25\nTest accuracy: 90%"))
    assert lines[0].split("  ")[0] == "metric"
    assert "0.5 .. 0.25" in lines[1]
    assert "Epoch 1 loss: 0.5" in lines[1]
    assert "test_accuracy" in lines[2]
    assert "(final)" in lines[2]
    assert describe(Found()) == []


@pytest.mark.parametrize(
    ("text", "name", "made"),
    [
        ("Eval: acc 0.9", "eval_acc", True),
        ("Val Acc: 0.9", "val_acc", False),
        ("val-acc: 0.9", "val-acc", False),
        ("test_acc: 0.9", "test_acc", False),
        ("acc: 0.9", "acc", False),
    ],
)
def test_a_name_that_isorun_put_together_is_told_as_its_own(text, name, made):
    (line,) = [line for line in describe(scan_text(text)) if line.startswith(f"{name} ")]
    assert ("isorun's name" in line) is made


def test_describe_has_a_column_for_the_better_direction_when_it_is_told() -> None:
    lines = describe(scan_text("Epoch 1 loss: 0.5 foo: 0.25"), {"loss": "lower"})
    assert [line.split()[:3] for line in lines] == [
        ["metric", "better", "values"],
        ["foo", "1", "0.25"],
        ["loss", "lower", "1"],
    ]


def test_merging_keeps_the_first_and_says_so() -> None:
    first = Found({"a": Series((0.0,), (0.0,), (1.0,))}, {}, {"a": "stdout: x"}, {}, (Note("x", "y"),))
    second = Found({"a": Series((0.0,), (0.0,), (2.0,))}, {"a": 2.0}, {"a": "file: y"})
    both = merged(first, second)
    assert both.series["a"].values == (1.0,)
    assert both.results == {}
    assert codes(both) == ["x", "sources.doubled"]


def test_output_is_left_alone_when_the_study_says_so() -> None:
    metrics = LineMetrics(Sources(stdout=False))
    metrics.feed("loss: 0.5", 0.0)
    assert metrics.finish() == Found()


signs = st.sampled_from(list(":=|{}[]()'\"\t│,é٣² "))
words = st.sampled_from(
    [
        "Epoch ",
        "loss",
        "0.5",
        "97%",
        "3/50",
        "nan",
        "-1e5",
        "Test metric",
        "epoch  loss",
        "\x1b[0m",
        "| a/ | |",
        "|  loss | 1 |",
        "classes acc:",
        "all 1",
    ]
)
fragments = st.one_of(signs, words, st.just("1" * 400), st.just("Accuracy of the "))


@given(st.lists(st.one_of(st.text(), st.lists(fragments).map("".join)), max_size=20))
@example(["1" + "0" * 310 + "%|LOSS"])
def test_no_text_makes_reading_fail_and_series_stay_equally_long(lines: list[str]) -> None:
    found = scan_text("\n".join(lines))
    describe(found)
    assert set(found.results) <= set(found.series) == set(found.origins) == set(found.examples)
    for series in found.series.values():
        assert len(series.steps) == len(series.seconds) == len(series.values) > 0


@given(
    st.from_regex(r"(train|val|test)_(loss|acc|f1)", fullmatch=True),
    st.lists(st.floats(allow_nan=False), min_size=1, max_size=5),
    st.sampled_from(
        ["Epoch {e}: {n}={v!r}", "epoch={e} {n}: {v!r}", '{{"epoch": {e}, "{n}": {v!r}}}', "[{e}/99] {n} {v!r}"]
    ),
)
def test_any_number_survives_the_way_through_a_line(name: str, values: list[float], form: str) -> None:
    written = "\n".join(form.format(e=e, n=name, v=value) for e, value in enumerate(values, start=1))
    if "Infinity" not in written and '"' in form:
        written = written.replace("inf", "Infinity")
    series = scan_text(written).series[name]
    assert series.values == tuple(values)
    assert series.steps == tuple(float(e) for e in range(1, len(values) + 1))


def test_the_latest_values_are_told_once_as_one_row():
    reading = LineMetrics(Sources())
    assert reading.latest() == {}
    for seconds, line in enumerate(["epoch 1 loss: 0.5 acc: 0.7", "epoch 2 loss: 0.25"]):
        reading.feed(line, float(seconds))
    assert reading.latest() == {"t": 1.0, "step": 2.0, "values": {"loss": 0.25, "acc": 0.7}}
    assert reading.latest() == {}
    reading.feed("epoch 3 loss: 0.125", 9.0)
    assert reading.latest() == {"t": 9.0, "step": 3.0, "values": {"loss": 0.125}}


def test_without_epochs_the_latest_row_has_no_step():
    reading = LineMetrics(Sources())
    reading.feed("loss: 0.5", 0.5)
    assert reading.latest() == {"t": 0.5, "step": None, "values": {"loss": 0.5}}


TRAINING = "Epoch 1 loss: 0.5\nEpoch 2 loss: 0.25"


@pytest.mark.parametrize(
    "settings",
    [
        'config: {"lr": 0.1, "target_accuracy": 0.9}',
        "Hyperparameters: target_accuracy: 0.95, dropout: 0.5, lr: 0.1",
        "Loading checkpoint with val_acc: 0.91 from best.pt",
        "2024-01-02 10:00:00 - train - INFO - Resuming from ckpt.pt, val_loss: 0.3",
        "{'max_steps': 100, 'seed': 3407, 'top_k': -1, 'batch_size': 32}",
        "{'lr': 0.1, 'target_acc': 0.99}",
        '{\n  "batch_size": 32,\n  "epochs": 10,\n  "accuracy": 0.9\n}',
        "args: lr=0.1 accuracy=0.99",
    ],
)
def test_settings_printed_before_the_training_are_no_metrics(settings):
    assert set(scan_text(f"{settings}\n{TRAINING}").series) == {"loss"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"lr": 0.1, "seed": 3, "test_acc": 0.93}', {"test_acc": [0.93]}),
        ("Loaded model: test accuracy: 0.93", {"test_accuracy": [0.93]}),
        ("Loading checkpoint, val_acc: 0.91\nval_acc: 0.5", {"val_acc": [0.5]}),
        ("val_acc: 0.5\nLoading checkpoint, val_acc: 0.91", {"val_acc": [0.5, 0.91]}),
        ("Epoch 1 target acc: 0.8", {"target_acc": [0.8]}),
        (
            '{"lr": 0.1, "train_loss": 0.9}\n{"lr": 0.1, "train_loss": 0.8}',
            {"train_loss": [0.9, 0.8], "lr": [0.1, 0.1]},
        ),
        ('{"lr": 0.1, "seed": 1, "step": 1, "loss": 0.9}', {"lr": [0.1], "loss": [0.9]}),
    ],
)
def test_results_beside_settings_are_metrics(text, expected):
    assert {name: list(series.values) for name, series in scan_text(text).series.items()} == expected


REPORT = """              precision    recall  f1-score   support

           0       0.67      0.65      0.66       100
           1       0.65      0.67      0.66       100

    accuracy                           0.66       200
   macro avg       0.66      0.66      0.66       200
"""


@pytest.mark.parametrize(
    ("text", "accuracy"),
    [
        (f"Epoch 1 accuracy: 0.7\nEpoch 2 accuracy: 0.8\n{REPORT}", [0.7, 0.8]),
        (f"Accuracy: 0.6625\n{REPORT}", [0.6625]),
        (f"{REPORT}\nAccuracy: 0.6625", [0.6625]),
    ],
)
def test_a_classification_report_does_not_go_on_with_the_accuracy_of_the_training(text, accuracy):
    found = scan_text(text)
    assert list(found.series["accuracy"].values) == accuracy
    assert found.results["report_accuracy"] == 0.66


def test_values_without_an_epoch_are_noted_with_their_number():
    found = scan_text("first model\nAccuracy: 0.91\nsecond model\nAccuracy: 0.81")
    assert codes(found) == ["stdout.no-epoch"]
    assert "'accuracy' was printed 2 times" in found.notes[0].message
    assert codes(scan_text("Epoch 1 acc: 0.5\nEpoch 2 acc: 0.6\nTest accuracy: 0.7")) == []


def test_a_value_after_the_last_epoch_is_a_final_value_and_replaces_none() -> None:
    found = scan_text("epoch 1 acc 0.5\nepoch 2 acc 0.7\nacc: 0.65")
    assert found.series["acc"] == Series((1.0, 2.0), (0.0, 0.0), (0.5, 0.7))
    assert found.results == {"acc": 0.65}
    assert found.notes == ()
    assert "0.5 .. 0.7 (0.65 final)" in describe(found)[1]


def test_of_several_values_after_the_last_epoch_the_last_is_final_and_that_is_told() -> None:
    found = scan_text("epoch 1 acc 0.5\nepoch 2 acc 0.7\nacc: 0.65\nacc: 0.66")
    assert (list(found.series["acc"].values), found.results) == ([0.5, 0.7], {"acc": 0.66})
    assert codes(found) == ["stdout.after-end"]


@pytest.mark.parametrize("line", ["Epoch {} accuracy on test: 0.3", "test accuracy for epoch {}: 0.3"])
def test_a_sentence_that_names_its_epoch_belongs_to_it(line: str) -> None:
    found = scan_text("\n".join(map(line.format, (4, 5))))
    assert found.series["test_accuracy"] == Series((4.0, 5.0), (0.0, 0.0), (0.3, 0.3))
    assert found.notes == ()


@pytest.mark.parametrize("again", ["0.5", "nan"])
def test_an_equal_value_without_its_epoch_replaces_nothing_and_is_not_told(again: str) -> None:
    rows = [f"step {step} test acc: {again}\ntest acc: {again} is the best so far" for step in (1, 2)]
    found = scan_text("\n".join([*rows, "step 3 test acc: 0.4"]))
    assert repr(list(found.series["test_acc"].values)) == repr([float(again), float(again), 0.4])
    assert found.notes == ()


def test_one_other_value_after_the_end_is_final_though_an_equal_one_came_first() -> None:
    found = scan_text("epoch 1 acc 0.5\nepoch 2 acc 0.7\nacc: 0.7\nacc: 0.66\nacc: 0.66")
    assert (list(found.series["acc"].values), found.results, found.notes) == ([0.5, 0.7], {"acc": 0.66}, ())


def test_a_value_beside_the_one_of_its_epoch_counts_as_the_last_and_that_is_told() -> None:
    found = scan_text("epoch 1 acc 0.5\nacc: 0.6\nepoch 2 acc 0.7\nacc: 0.65")
    assert list(found.series["acc"].values) == [0.6, 0.65]
    assert codes(found) == ["stdout.replaced"]


def test_what_a_line_says_after_the_running_values_of_a_bar_is_the_value_of_the_epoch() -> None:
    text = "".join(f"Epoch 1: 50%|##  | {n}/4 [00:01<00:01, loss=0.{n}]\n" for n in (3, 4)) + "loss: 0.25\n"
    found = scan_text(text)
    assert (list(found.series["loss"].values), codes(found)) == ([0.25], [])


@given(st.lists(st.integers(1, 99), min_size=1, max_size=8, unique=True), st.integers(1, 99))
def test_whatever_comes_after_the_epochs_every_epoch_keeps_its_value(percents: list[int], last: int) -> None:
    text = "".join(f"epoch {epoch} acc {value / 100}\n" for epoch, value in enumerate(percents))
    found = scan_text(f"{text}acc: {last / 100}\n")
    assert list(found.series["acc"].values) == [value / 100 for value in percents]
    assert found.results == {"acc": last / 100}


def test_values_that_are_left_out_of_a_metric_are_told_with_the_line() -> None:
    found = scan_text("epoch loss acc\n1 0.9 0.5\n2 0.8\n3 0.7 0.6\n")
    assert list(found.series["acc"].values) == [0.5, 0.6]
    assert codes(found) == ["stdout.values-left-out"] * 2
    assert "values of 'acc' were left out: a row of its table does not fit the heading (first in '2 0.8')" in [
        note.message for note in found.notes
    ]


def test_a_cell_with_a_word_is_told_and_an_empty_one_is_not() -> None:
    found = scan_text("| epoch | acc |\n|---|---|\n| 1 | 0.5 |\n| 2 | - |\n| 3 | 0.6 (best) |\n")
    assert list(found.series["acc"].values) == [0.5]
    assert [note.message for note in found.notes] == [
        "values of 'acc' were left out: a cell of its table is no number (first in '| 3 | 0.6 (best) |')"
    ]


@pytest.mark.parametrize("line", ["3 files in 2 folders", "12 of 50 done", "loss: 0.5", "4 0.5 at", "0.5 0.6 0.7"])
def test_a_line_below_a_table_that_is_no_row_is_not_told_as_one(line: str) -> None:
    found = scan_text(f"epoch loss acc\n1 0.9 0.5\ntraining is done\n{line}\n")
    assert not [note for note in found.notes if "does not fit" in note.message]


def test_random_bytes_give_no_metrics() -> None:
    noise = random.Random(7).randbytes(300_000)
    found = scan_text((noise + b"\nepoch 1 acc 0.5\n" + noise).decode("utf-8", "replace"))
    assert set(found.series) == {"acc"}


def test_a_byte_that_is_no_character_does_not_hide_a_line() -> None:
    assert scan_text("\ufffdpoque 1, loss: 0.5").series["loss"].values == (0.5,)


def bar(count: int, total: int, **values: float) -> str:
    return f"{count}/{total} ━━━━ 1s 5ms/step - " + " - ".join(f"{name}: {value}" for name, value in values.items())


def test_lines_of_a_bar_that_changed_places_are_no_evaluation_and_the_furthest_counts() -> None:
    lines = ["Epoch 1/2", bar(6, 10, acc=0.6), bar(8, 10, acc=0.8), bar(7, 10, acc=0.7), bar(10, 10, acc=0.9)]
    found = scan_text("\n".join([*lines, "Epoch 2/2", bar(9, 10, acc=0.95), bar(8, 10, acc=0.91)]))
    assert {name: series.values for name, series in found.series.items()} == {"acc": (0.9, 0.95)}


def test_a_bar_that_begins_again_is_an_evaluation_also_where_the_first_one_stopped_short() -> None:
    found = scan_text("\n".join(["Epoch 1/1", bar(9, 10, acc=0.9), bar(1, 10, acc=0.5), bar(10, 10, acc=0.6)]))
    assert {name: series.values for name, series in found.series.items()} == {"acc": (0.9,), "eval_acc": (0.6,)}


def test_a_bar_that_the_screen_wrapped_is_read_also_where_it_is_the_last_thing_printed() -> None:
    below = " " * 40
    found = scan_text(f"Epoch 1/1 ━━━━ 8/8 0:00:00 20it/s train_loss_step:\n{below}0.5 val_acc:\n{below}0.75")
    assert {name: series.values for name, series in found.series.items()} == {
        "train_loss_step": (0.5,),
        "val_acc": (0.75,),
    }


def test_a_note_quotes_a_line_without_its_escapes() -> None:
    found = scan_text("\x1b[1m   model  accuracy\x1b[0m\n\x1b[36m   lenet  0.91\x1b[0m")
    assert [note.message.split("first in ")[1] for note in found.notes] == ["'lenet 0.91')"]


def test_what_is_said_again_of_the_best_iteration_is_no_further_value() -> None:
    rounds = [f"[{number}]\tvalid-auc:0.{number}" for number in (7, 9, 8)]
    found = scan_text("\n".join([*rounds, "Stopping. Best iteration:", rounds[1]]))
    assert found.series["valid-auc"].values == (0.7, 0.9, 0.8)
    assert found.results == {"valid-auc": 0.9}
    further = scan_text("\n".join([*rounds, "Stopping. Best iteration:", rounds[1], "[10]\tvalid-auc:0.5"]))
    assert further.series["valid-auc"].values == (0.7, 0.9, 0.8, 0.5)
    assert further.results == {}
    assert scan_text(f"Best iteration is:\n{rounds[1]}").series["valid-auc"].values == (0.9,)


def test_a_value_told_again_in_another_form_is_one_value_and_in_the_same_form_two() -> None:
    assert scan_text("test_acc: 0.5\n{'test_acc': 0.5}").series["test_acc"].values == (0.5,)
    assert scan_text("test_acc: 0.5\ntest_acc: 0.5").series["test_acc"].values == (0.5, 0.5)


@pytest.mark.parametrize(
    ("line", "step"),
    [("Training loss (for 1 batch) at step 40: 0.5", 40), ("Training loss step 7: 0.5", 7)],
)
def test_a_name_with_its_step_before_the_value_is_read(line: str, step: int) -> None:
    assert scan_text(line).series == {"train_loss": Series((float(step),), (0.0,), (0.5,))}


@pytest.mark.parametrize(
    "line",
    ["Mar 25 13:03:58 node systemd[1]: started", "iteration: 2 of max_iter: 40", "img/s: 37.2", "Progress: 40.0%"],
)
def test_dates_limits_and_speeds_give_nothing(line: str) -> None:
    assert not scan_text(line).series


@pytest.mark.parametrize(
    "prefix",
    [
        "[rank{}]: ",
        "[GPU{}] ",
        "Rank {}, ",
        "[1,{}]<stdout>:",
        "rank={} ",
        "[2024-05-06 10:00:00,123] [Rank {}] ",
    ],
)
def test_what_other_ranks_print_does_not_replace_what_the_first_prints(prefix: str) -> None:
    lines = [f"{prefix.format(rank)}epoch {epoch} loss 0.{epoch}{rank}" for epoch in range(1, 5) for rank in (1, 0)]
    series = scan_text("\n".join(lines)).series
    assert {name: list(points.values) for name, points in series.items()} == {
        "loss": [0.1, 0.2, 0.3, 0.4],
        "loss@rank1": [0.11, 0.21, 0.31, 0.41],
    }
    assert list(series["loss@rank1"].steps) == [1, 2, 3, 4]


def test_ranks_that_are_not_equally_far_are_no_training_that_began_again() -> None:
    found = scan_text("[rank0]: epoch 1 loss 0.5\n[rank1]: epoch 2 loss 0.3\n[rank0]: epoch 1 acc 0.9\n")
    assert found.series["acc"].steps[0] == 1
    assert [note.code for note in found.notes] == []


def test_what_processes_without_a_rank_print_under_one_name_is_left_out_and_told() -> None:
    found = scan_text("(Worker pid=10) epoch 1 loss 0.5 acc 0.1\n(Worker pid=11) epoch 1 loss 0.6\n")
    assert set(found.series) == {"acc"}
    assert [note.message for note in found.notes if "several processes" in note.message] != []


def test_a_rank_that_was_set_is_no_process() -> None:
    assert set(scan_text("rank=10 rmse=0.9\nLoRA rank: 16, loss 0.5\n").series) == {"rmse", "loss"}


@pytest.mark.parametrize(
    "heading", ["Validation", "=== Validation ===", "--- validating ---", "Validation set", "[Val]"]
)
def test_a_split_that_stands_alone_in_a_line_names_the_lines_below_until_the_next_epoch(heading: str) -> None:
    block = "Epoch {0}\nloss: 0.{0}\nacc: 0.7\n{1}\nloss: 0.{0}5\nacc: 0.6\n"
    series = scan_text("".join(block.format(epoch, heading) for epoch in (1, 2, 3))).series
    assert list(series["loss"].values) == [0.1, 0.2, 0.3]
    assert list(series["val_loss"].values) == [0.15, 0.25, 0.35]
    assert list(series["val_acc"].values) == [0.6] * 3


def test_an_epoch_below_a_split_that_stands_alone_belongs_to_the_training() -> None:
    series = scan_text("Evaluation\naccuracy: 0.1\nEpoch 1 accuracy: 0.5\nEpoch 2 accuracy: 0.6\n").series
    assert {name: list(points.values) for name, points in series.items()} == {
        "eval_accuracy": [0.1],
        "accuracy": [0.5, 0.6],
    }


def test_a_block_below_a_split_that_stands_alone_ends_with_its_indented_lines() -> None:
    series = scan_text("Test results\n  accuracy: 0.9\n  loss: 0.3\nDone with loss: 0.2\n").series
    assert {name: list(points.values) for name, points in series.items()} == {
        "test_accuracy": [0.9],
        "test_loss": [0.3],
        "loss": [0.2],
    }


def test_the_name_of_a_file_gives_no_value() -> None:
    text = "Epoch 1 val_loss: 0.45678\nSaved '/x/epoch=1-val_loss=0.46.ckpt'\nSaved acc=0.9/model_f1=0.3.pt f1: 0.25\n"
    found = scan_text(text)
    assert {name: list(points.values) for name, points in found.series.items()} == {"val_loss": [0.45678], "f1": [0.25]}
    assert found.results == {"f1": 0.25}


@pytest.mark.parametrize(
    "line",
    ["=> loaded checkpoint (epoch 5, best_acc 0.88)", "Resuming from epoch 5, best_acc 0.88", "target_acc: 0.95"],
)
def test_what_another_training_left_or_what_is_aimed_at_is_no_value_of_this_one(line: str) -> None:
    series = scan_text(f"{line}\nEpoch 6 acc: 0.5\n").series
    assert {name: list(points.steps) for name, points in series.items()} == {"acc": [6]}


def test_a_table_of_trials_is_left_out() -> None:
    rows = "| Trial name | iter | loss |\n|---|---|---|\n| a_00 | 1 | 1.5 |\n| a_01 | 2 | 1.3 |\n"
    found = scan_text(rows)
    assert not found.series
    assert "trial_name" in found.notes[0].message


_BOX = """\
┏━━━━━━━┳━━━━━━━━━┳━━━━━━━━━━┓
┃       ┃         ┃ Validat… ┃
┃ Epoch ┃ Loss    ┃ Loss     ┃
┡━━━━━━━╇━━━━━━━━━╇━━━━━━━━━━┩
│ 1     │ 0.12345 │ 0.2      │
│       │ 678     │          │
│ 2     │ 0.1     │ 0.3      │
│       │ 7       │          │
└───────┴─────────┴──────────┘
"""


def test_a_name_that_a_box_cut_off_is_not_read_and_a_number_that_it_wrapped_is_whole() -> None:
    found = scan_text(_BOX)
    assert {name: list(points.values) for name, points in found.series.items()} == {"Loss": [0.12345678, 0.1]}
    assert any("cut off" in note.message for note in found.notes)


@pytest.mark.parametrize("filler", [" ", "\t", "-", "_", "(", "is "])
def test_a_line_that_is_filled_up_is_read_in_no_time(filler: str) -> None:
    """What a bar writes over is blanked to the width of the screen; tried from each blank anew that took minutes."""
    line = f"epoch loss: 1.5{filler * (1_900 // len(filler))}x 2.5"
    metrics = LineMetrics(Sources())
    began = time.thread_time()
    metrics.feed(line, 0.0)
    assert time.thread_time() - began < 1.0


@pytest.mark.parametrize(
    "line",
    [
        "0:\tlearn: 1" + " " * 1_900 + "x",
        "loss step 1: 1" + " " * 1_900 + "x",
        "acc of class" + " " * 1_900 + "!",
        "acc on test: 1" + " " * 1_900 + "x",
        "loss: 1" + ",1" * 900 + "x",
        "{" + "\"'" * 500 + '\\"' * 450 + ",",
        "|" + " loss |" * 150_000,
        "loss  " * 150_000,
        ": " + "|" * 1_000_000,
    ],
    ids=lambda line: line[:12],
)
def test_a_line_made_to_hold_up_the_reader_is_read_in_no_time(line: str) -> None:
    lines = [line, line.replace("x", "y"), "1 " + line]
    metrics = LineMetrics(Sources())
    began = time.thread_time()
    for each in lines:
        metrics.feed(each, 0.0)
    assert time.thread_time() - began < 0.4


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (freeform.read_catboost, "0:\tlearn: 1" + " " * 40_000 + "x"),
        (rows.has_unclear_comma, "1" + ",1" * 20_000 + "x"),
        (freeform.read_sentence, "loss step 1: 1" + " " * 40_000 + "x"),
        (freeform.read_sentence, "acc of class" + " " * 40_000 + "!"),
        (lambda text: objects.Objects().begin(text), "{" + '"' + '\\"' * 20_000),
    ],
    ids=["catboost", "comma", "step", "class", "quotes"],
)
def test_the_time_of_a_pattern_grows_with_the_text_and_not_with_its_square(pattern, text):
    began = time.thread_time()
    pattern(text)
    assert time.thread_time() - began < 0.2


def test_values_before_the_line_that_closes_their_epoch_belong_to_it() -> None:
    found = scan_text(
        "Elbo loss: 4.5\n[iteration 1] loss: 3\n[epoch 0] train loss: 2\n"
        "Elbo loss: 3.5\n[iteration 21] loss: 1.5\n[epoch 1] train loss: 1"
    )
    assert {tuple(series.steps) for series in found.series.values()} == {(0.0, 1.0)}
    assert found.series["loss"].values == (3.0, 1.5)
    assert found.notes == ()


def test_a_bar_before_the_line_of_its_epoch_belongs_to_it() -> None:
    text = "".join(
        f"100%|████| 9/9 [00:01, loss=0.{9 - epoch}]\nEpoch {epoch}: val_acc 0.{epoch}\n" for epoch in (1, 2, 3)
    )
    found = scan_text(text)
    assert found.series["loss"] == Series((1.0, 2.0, 3.0), (0.0,) * 3, (0.8, 0.7, 0.6))


@pytest.mark.parametrize(("first", "steps"), [(1, (0.0, 1.0, 2.0)), (0, (-1.0, 0.0, 1.0))])
@pytest.mark.parametrize("line", ["Epoch {}", "Epoch {} loss: 0.5"])
def test_a_value_from_before_the_training_comes_before_its_epochs(line: str, first: int, steps: tuple[float]) -> None:
    epochs = [f"{line.format(first + number)}\nval_acc: 0.{number}" for number in range(2)]
    assert scan_text("\n".join(["val_acc: 0.7", *epochs])).series["val_acc"].steps == steps


def test_steps_within_epochs_are_no_restart_of_them() -> None:
    lines = ["step 100 loss: 4", "step 200 loss: 3", "epoch 1 val_acc: 0.5", "step 300 loss: 2", "epoch 2 val_acc: 0.7"]
    assert scan_text("\n".join(lines)).series["loss"] == Series((1.0, 2.0), (0.0, 0.0), (3.0, 2.0))
    assert scan_text("\n".join(lines[:3])).series["loss"].steps == (100.0, 200.0)


def test_a_footnote_is_no_step_and_a_list_of_epochs_no_new_training() -> None:
    assert codes(scan_text("llf: 3.5\n[1] Standard errors are robust.\nllf: 2.5")) == ["stdout.no-epoch"]
    history = '[\n  {"epoch": 0, "acc": 0.5},\n  {"epoch": 1, "acc": 0.75}\n]'
    found = scan_text(f"epoch 0 loss: 2\nepoch 1 loss: 1\n{history}")
    assert found.series["acc"].steps == (0.0, 1.0)
    assert found.notes == ()


def test_the_row_after_the_epochs_of_each_table_is_one_further() -> None:
    table = "| epoch | val_acc |\n|---|---|\n| 1 | 0.5 |\n| 2 | 0.6 |\n| eval | 0.7 |\n"
    found = scan_text(f"{table}\n{table}")
    assert found.series["val_acc"].steps == (1.0, 2.0, 3.0, 1.0, 2.0, 3.0)


def test_epochs_of_a_loop_that_printed_no_metric_are_none_that_began_again() -> None:
    looked = [f"Epoch: {epoch} | Batch index: 0 | Batch size: 128" for epoch in (1, 2)]
    found = scan_text("\n".join([*looked, *(f"Epoch: {epoch:03}/010 | Cost: {3 - epoch}.5" for epoch in (1, 2))]))
    assert list(found.series["cost"].values) == [2.5, 1.5]
    assert found.notes == ()


def test_a_result_that_was_printed_with_two_values_is_told() -> None:
    epochs = [f"Epoch: {epoch}/2 | Loss: 0.{9 - epoch}" for epoch in (1, 2)]
    found = scan_text("\n".join([*epochs, "Test accuracy 86.33%", "Test accuracy: 86.66%"]))
    assert found.results["test_accuracy"] == pytest.approx(0.8666)
    (note,) = found.notes
    assert "'test_accuracy' was printed with another value after the last epoch" in note.message
    assert scan_text("\n".join([*epochs, "Test accuracy 86.33%", "Test accuracy: 86.33%"])).notes == ()


FOLDS = "\n".join(
    f"Epoch {epoch}\n"
    + "\n".join(f"For fold: {fold} Validation set: Average loss: 0.{epoch}{fold}" for fold in range(1, 4))
    for epoch in (1, 2)
)


def test_several_values_in_each_epoch_are_told_where_the_last_is_that_of_one_fold() -> None:
    found = scan_text(FOLDS)
    assert list(found.series["val_loss"].values) == [0.13, 0.23]
    (note,) = [note for note in found.notes if note.code == "stdout.several"]
    assert "'val_loss' was printed with several values in one epoch" in note.message


@pytest.mark.parametrize("text", [FOLDS.replace("Validation set: Average", "train"), FOLDS.partition("Epoch 2")[0]])
def test_losses_of_batches_and_a_single_epoch_are_no_such_values(text: str) -> None:
    assert "stdout.several" not in codes(scan_text(text))
