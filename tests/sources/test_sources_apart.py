"""What several processes, trials, reports or layers print under one name is told apart, or left out and told."""

from __future__ import annotations

import pytest

from isorun.sources import Found
from isorun.sources.lines import scan_text
from isorun.study.design import Sources

FORMS = ["[{rank}] epoch {epoch} loss: {value}", "{rank}: epoch {epoch} loss: {value}"]
VALUES = {(0, 0): 0.9, (0, 1): 0.8, (1, 0): 0.7, (1, 1): 0.6, (2, 0): 0.5, (2, 1): 0.4}
IN_ORDER = list(VALUES)
OUT_OF_ORDER = [(0, 1), *[place for place in VALUES if place != (0, 1)]]


def printed(form: str, places: list[tuple[int, int]]) -> list[str]:
    return [form.format(epoch=epoch, rank=rank, value=VALUES[epoch, rank]) for epoch, rank in places]


def points(found: Found) -> dict[str, tuple[list[float], list[float]]]:
    return {name: (list(series.steps), list(series.values)) for name, series in found.series.items()}


def messages(found: Found, code: str) -> list[str]:
    return [note.message for note in found.notes if note.code == code]


APART = {"loss": ([0, 1, 2], [0.9, 0.7, 0.5]), "loss@rank1": ([0, 1, 2], [0.8, 0.6, 0.4])}


@pytest.mark.parametrize("form", FORMS)
def test_ranks_that_come_out_of_order_are_told_apart(form: str) -> None:
    found = scan_text("\n".join(printed(form, OUT_OF_ORDER)))
    assert points(found) == APART
    assert found.notes == ()
    assert set(found.origins) == set(found.examples) == set(APART)


@pytest.mark.parametrize("form", FORMS)
def test_ranks_before_every_line_are_told_apart_where_several_say_something_else_too(form: str) -> None:
    start = form.partition("epoch")[0]
    hello = [start.format(rank=rank) + "loading the data" for rank in (0, 1)]
    assert points(scan_text("\n".join([*hello, *printed(form, IN_ORDER)]))) == APART


@pytest.mark.parametrize("form", FORMS)
def test_what_may_be_ranks_or_batches_is_left_out_and_told(form: str) -> None:
    found = scan_text("\n".join(["val_acc: 0.5", *printed(form, IN_ORDER)]))
    assert set(found.series) == {"val_acc"}
    (message,) = messages(found, "stdout.left-out")
    assert message.startswith("left out: loss: several processes")


def test_a_last_value_of_each_rank_is_its_own() -> None:
    lines = [*printed(FORMS[0], OUT_OF_ORDER), "[0] test acc: 0.5", "[1] test acc: 0.25"]
    found = scan_text("\n".join(lines))
    assert found.results == {"test_acc": 0.5, "test_acc@rank1": 0.25}


def test_ranks_that_are_not_equally_far_are_no_restarts() -> None:
    places = [(0, 0), (1, 0), (0, 1), (1, 1), (2, 1), (2, 0)]
    found = scan_text("\n".join(printed(FORMS[0], places)))
    assert points(found) == APART
    assert messages(found, "stdout.restart") == []


@pytest.mark.parametrize(
    ("lines", "values"),
    [
        ([f"[{i}] epoch {i // 2} loss: 0.{9 - i}" for i in range(6)], [0.8, 0.6, 0.4]),  # counted on
        ([f"[{i}] epoch {i} loss: 0.{9 - i}" for i in range(3)], [0.9, 0.8, 0.7]),  # the epoch itself
        ([f"[{i}00] epoch {i // 2} loss: 0.{9 - i}" for i in range(4)], [0.8, 0.6]),  # with gaps
        ([f"[{i}] epoch {e} loss: {e}.{i:02}" for e in range(2) for i in range(30)], [0.29, 1.29]),  # too many
        (["[0] train-loss:0.5", "[1] train-loss:0.25"], [0.5, 0.25]),  # the only clock there is
    ],
)
def test_counted_lines_are_those_of_one_training(lines: list[str], values: list[float]) -> None:
    found = scan_text("\n".join(lines))
    assert [list(series.values) for series in found.series.values()] == [values]
    assert found.notes == ()


def test_what_a_pattern_of_the_user_names_stays_as_the_user_named_it() -> None:
    sources = Sources(patterns=(r"\[1\] epoch (?P<epoch>\d) loss: (?P<loss>[\d.]+)",))
    found = scan_text("\n".join(printed(FORMS[0], OUT_OF_ORDER)), sources)
    assert points(found)["loss"] == ([0, 1, 2], [0.8, 0.6, 0.4])


BLOCK = """Result for PPO_CartPole_{trial}:
  date: 2024-05-01_10-00-00
  episode_reward_mean: {reward}
  info:
    learner:
      total_loss: {loss}
  config:
    loss: 3.5
  time_this_iter_s: 2.5
  training_iteration: {iteration}
  trial_id: {trial}

"""


def test_a_block_of_results_belongs_to_the_iteration_that_it_names_last() -> None:
    blocks = [BLOCK.format(trial="a", reward=20.5 * number, loss=9 - number, iteration=number) for number in (1, 2, 3)]
    found = scan_text("".join(blocks).rstrip())
    assert points(found) == {
        "episode_reward_mean": ([1, 2, 3], [20.5, 41.0, 61.5]),
        "info/learner/total_loss": ([1, 2, 3], [8, 7, 6]),
    }
    assert found.notes == ()


def test_blocks_of_several_trials_are_left_out_and_told() -> None:
    blocks = [BLOCK.format(trial=trial, reward=20.5, loss=9, iteration=1) for trial in "ab"]
    found = scan_text("".join([*blocks, "test accuracy: 0.5"]))
    assert set(found.series) == {"test_accuracy"}
    (message,) = messages(found, "stdout.left-out")
    assert "episode_reward_mean" in message
    assert "several trials print it" in message


def test_a_result_printed_without_a_heading_belongs_to_the_iteration_below_it() -> None:
    result = "episode_reward_mean: {}\nnum_healthy_workers: 2\ntraining_iteration: {}\ntrial_id: default\n"
    found = scan_text("\n".join(result.format(20.5 * number, number) for number in (1, 2, 3)))
    assert points(found) == {"episode_reward_mean": ([1, 2, 3], [20.5, 41.0, 61.5])}


REPORT = """              precision    recall  f1-score   support

           0       0.67      {}      0.66       100
           1       0.65      0.68      0.66       100

    accuracy                           {}       200
   macro avg       0.66      0.66      0.66       200

"""


def test_what_differs_between_two_classification_reports_is_left_out_and_told() -> None:
    found = scan_text(REPORT.format("0.65", "0.66") + REPORT.format("0.75", "0.76"))
    assert not {"recall[0]", "accuracy"} & set(found.series)
    assert list(found.series["precision[0]"].values) == [0.67]
    (message,) = messages(found, "stdout.left-out")
    assert message.startswith("left out: recall[0], accuracy: several classification reports")


def test_a_report_after_each_epoch_is_a_series() -> None:
    text = "".join(f"Epoch {epoch} done\n{REPORT.format(f'0.6{epoch}', f'0.7{epoch}')}" for epoch in (1, 2))
    assert points(scan_text(text))["accuracy"] == ([1, 2], [0.71, 0.72])


def test_the_losses_of_layers_have_names_of_their_own() -> None:
    found = scan_text("epoch 1 layer 1 loss: 0.5\nepoch 1 layer 2 loss: 0.6\nepoch 2 layer 1 loss: 0.4")
    assert points(found) == {"loss[layer 1]": ([1, 2], [0.5, 0.4]), "loss[layer 2]": ([1], [0.6])}


def test_layers_that_are_trained_one_after_the_other_are_no_epochs() -> None:
    found = scan_text("training layer: 0\nLoss: 3\nLoss: 2\ntraining layer: 1\nLoss: 1\ntest error: 0.5")
    assert set(found.series) == {"test_error"}
    (message,) = messages(found, "stdout.left-out")
    assert message.startswith("left out: loss: printed for several layers")


@pytest.mark.parametrize(
    "line", ["[Rank 0] step=10, skipped=0, lr=[0.001], mom=[[0.9, 0.999]]", "step: 1 optim.max_loss: 2.5"]
)
def test_what_was_set_or_skipped_is_no_metric(line: str) -> None:
    assert not scan_text(line).series
