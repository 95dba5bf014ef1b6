"""Which metric is judged when the study names none, and when a run is weak."""

import pytest

from isorun.analysis.evidence.judged import (
    JudgedMetric,
    MetricKind,
    direction_conditions,
    is_bookkeeping,
    judged_column,
    kind_of,
)
from isorun.analysis.studies.study_metrics import judged_metrics, logged_metrics, weak_rule
from isorun.study.design import Metric
from record_builder import make_record, make_series, with_results


def chosen(*names):
    (metric,) = judged_metrics({}, [make_record(results=dict.fromkeys(names, 0.5))])
    return metric


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("val_acc", "test_acc", "test_loss"), "test_acc"),
        (("eval_accuracy", "val_acc"), "eval_accuracy"),
        (("accuracy", "val_acc"), "val_acc"),
        (("accuracy", "train_acc"), "accuracy"),
        (("test_loss", "val_f1"), "val_f1"),
        (("test_loss", "train_acc"), "test_loss"),
        (("epoch", "lr", "throughput", "foo"), "foo"),
        (("foo", "train_loss"), "train_loss"),
        (("initial_loss", "trained_loss"), "trained_loss"),
        (("initial_test_acc", "train_loss"), "train_loss"),
        (("untrained_acc", "foo"), "untrained_acc"),
        (("dummyclassifier_error", "decisiontreeclassifier_error"), "decisiontreeclassifier_error"),
        (("baseline_mae", "train_mae"), "train_mae"),
        (("s0.acc", "val_bbox_mAP"), "val_bbox_mAP"),
        (("accuracy", "val_loss"), "accuracy"),
        (("episode_reward_max", "episode_reward_mean"), "episode_reward_mean"),
        (("dice", "val_max_dice"), "dice"),
        (("mAP50", "mAP50-95", "recall"), "mAP50-95"),
        (
            ("AP@0.50/all/100", "AP@0.50:0.95/all/100", "AP@0.50:0.95/small/100", "AR@0.50:0.95/all/1"),
            "AP@0.50:0.95/all/100",
        ),
        (("bbox_mAP", "bbox_mAP_50"), "bbox_mAP"),
        (("loss_cls", "loss_mask", "total_loss"), "total_loss"),
        (("loss", "total_loss"), "loss"),
    ],
)
def test_the_metric_is_chosen_by_a_stated_order(names, expected):
    metric = chosen(*names)
    assert metric.name == expected
    assert not metric.declared
    assert "accuracies before other scores before losses" in metric.chosen_because


@pytest.mark.parametrize(
    ("metric", "direction", "told_by"),
    [
        (Metric("eval-merror", "higher"), "higher", "declared"),
        (Metric("eval-merror"), "lower", "guessed from 'merror'"),
        (Metric("test_acc"), "higher", "guessed from 'acc'"),
        (Metric("glossary"), "", ""),
    ],
)
def test_a_declared_direction_wins_over_the_name_and_an_unknown_one_stays_empty(metric, direction, told_by):
    (judged,) = judged_metrics({metric.name: metric}, with_results([0.5]))
    assert (judged.direction, judged.direction_from) == (direction, told_by)
    assert judged.declared


PPO = ("charts/SPS", "losses/approx_kl", "losses/explained_variance", "losses/policy_loss", "losses/value_loss")


def test_a_policy_is_judged_by_its_returns_and_never_by_what_its_critic_does():
    assert chosen(*PPO, "charts/episodic_return").name == "charts/episodic_return"
    assert chosen(*PPO, "success").direction == "higher"
    (condition,) = direction_conditions(chosen(*PPO))
    assert (condition.code, condition.voids) == ("direction-unknown", True)


def test_why_a_metric_was_chosen_tells_that_critics_come_last():
    last = "names that do not tell which direction is better; a policy's critic is left to the end"
    assert chosen("losses/td_loss", "losses/q_values").chosen_because.endswith(last)
    assert chosen(*PPO).chosen_because.endswith(last)
    assert "critic" not in chosen("val_loss", "other").chosen_because


@pytest.mark.parametrize("names", [("losses/td_loss", "losses/q_values"), ("losses/loss", "losses/q_values")])
def test_the_losses_of_a_network_of_action_values_say_nothing_of_its_policy(names):
    assert chosen(*names, "charts/episodic_return").name == "charts/episodic_return"
    (condition,) = direction_conditions(chosen(*names))
    assert (condition.code, condition.voids) == ("direction-unknown", True)


@pytest.mark.parametrize("names", [("explained_variance", "val_loss"), ("losses/explained_variance",)])
def test_an_explained_variance_without_a_policy_is_a_score(names):
    assert (chosen(*names).name, chosen(*names).direction) == (names[0], "higher")


def judged_beside_best(values, best):
    (judged,) = judged_metrics({}, [make_record(series={"test": make_series(values), "best": make_series(best)})])
    return judged


@pytest.mark.parametrize(
    ("values", "best", "direction"),
    [
        ([0.6, 0.5, 0.7], [0.6, 0.5, 0.5], "lower"),
        ([0.6, 0.5, 0.7], [0.6, 0.6, 0.7], "higher"),
        ([0.6, 0.5, 0.7], [0.6, 0.45, 0.4], "lower"),  # better rounds were not printed
        ([0.6, 0.6], [0.6, 0.6], ""),
        ([0.6, 0.5, 0.7], [0.6, 0.5, 0.55], ""),
        ([0.6, float("nan")], [0.6, 0.6], ""),
    ],
)
def test_a_name_that_tells_nothing_has_the_direction_of_what_the_training_calls_best(values, best, direction):
    judged = judged_beside_best(values, best)
    assert (judged.name, judged.direction) == ("test", direction)
    (condition,) = direction_conditions(judged)
    assert condition.voids is not bool(direction)
    if direction:
        assert f"that {direction} test is better is seen from what the training calls best" in condition.message


def test_a_column_of_a_table_is_directed_in_the_same_way():
    assert judged_column("test_err1").direction_from == "guessed from 'err'"
    assert judged_column("test_err1", "higher") == JudgedMetric("test_err1", "higher", "")
    assert judged_column("column").direction == ""


def test_a_guess_is_told_with_the_word_that_told_it_and_how_to_declare_it():
    (condition,) = direction_conditions(judged_column("eval-merror"))
    assert condition.code == "direction-guessed"
    assert not condition.voids
    assert condition.message == "that lower eval-merror is better is guessed from 'merror' in its name, not declared"
    assert "--metric eval-merror:lower" in condition.next_step
    assert '[metrics."eval-merror"] direction = "lower"' in condition.next_step


def test_an_unknown_direction_voids_every_claim():
    (condition,) = direction_conditions(judged_column("entropy"))
    assert (condition.code, condition.voids) == ("direction-unknown", True)
    assert "--metric entropy:lower (or higher)" in condition.next_step


def test_a_declared_direction_needs_no_condition():
    assert direction_conditions(judged_column("entropy", "lower")) == ()


def test_counters_and_clocks_are_no_results():
    assert is_bookkeeping("epoch")
    assert is_bookkeeping("train_runtime")
    assert not is_bookkeeping("val_loss")
    assert judged_metrics({}, [make_record(results={"epoch": 3.0, "lr": 0.1})]) == ()


def test_kinds_are_told_apart():
    assert [kind_of(name) for name in ("valAcc", "f1", "nll", "foo")] == [
        MetricKind.ACCURACY,
        MetricKind.SCORE,
        MetricKind.LOSS,
        MetricKind.OTHER,
    ]


def test_declared_metrics_stay_in_their_order_and_need_no_reason():
    metrics = judged_metrics({"f1": Metric("f1"), "test_acc": Metric("test_acc", chance=0.1)}, with_results([0.5]))
    assert [metric.name for metric in metrics] == ["f1", "test_acc"]
    assert all(metric.declared for metric in metrics)
    assert (metrics[1].chance, metrics[1].chance_from) == (0.1, "declared")


@pytest.mark.parametrize(
    ("values", "scale"), [([0.5, 1.0], "fraction"), ([55.0, 97.0], "percent"), ([140.0], ""), ([-0.5], "")]
)
def test_the_scale_of_an_accuracy_is_read_from_its_values(values, scale):
    assert judged_metrics({}, with_results(values))[0].scale == scale


def test_chance_follows_from_the_number_of_classes():
    per_class = {"test_acc": {str(name): 0.5 for name in range(4)}}
    (metric,) = judged_metrics({}, [make_record(results={"test_acc": 0.5}, per_class=per_class)])
    assert (metric.chance, metric.chance_from) == (0.25, "4 classes")


def test_per_class_series_are_no_metrics_of_their_own():
    run = make_record(series={"test_acc": make_series([0.5]), "test_acc[0]": make_series([0.5])})
    assert logged_metrics([run]) == ("test_acc",)


def judged(chance, **changes):
    (metric,) = judged_metrics({"test_acc": Metric("test_acc", chance=chance, **changes)}, with_results([0.5]))
    return metric


def test_a_run_is_weak_below_twenty_percent_with_ten_classes_as_in_the_paper():
    rule = weak_rule(judged(0.1))
    assert [rule.is_weak(value) for value in (0.086, 0.099, 0.106, 0.197, 0.2, 0.878)] == [True] * 4 + [False] * 2


def test_twice_chance_does_not_condemn_every_model_of_two_classes():
    rule = weak_rule(judged(0.5))
    assert rule.below == pytest.approx(0.5 + 0.5 / 9)
    assert not rule.is_weak(0.9)


def test_many_classes_have_their_bound_at_twice_chance():
    assert weak_rule(judged(0.01)).below == 0.02


def test_no_run_is_weak_when_chance_is_unknown_and_the_rule_says_how_to_declare_it():
    rule = weak_rule(judged(None))
    assert not rule.is_weak(0.0)
    assert "metrics.test_acc.chance" in rule.reason


def test_no_run_is_weak_by_a_metric_of_unknown_direction_and_the_rule_says_what_is_missing():
    (metric,) = judged_metrics({"foo": Metric("foo", chance=0.1)}, with_results([0.5]))
    rule = weak_rule(metric)
    assert (rule.below, metric.perfect) == (None, None)
    assert "direction unknown: give --metric foo:lower or higher" in rule.reason


def test_losses_have_no_weak_runs():
    assert weak_rule(judged(2.3, direction="lower")).below is None


def test_a_missing_value_is_not_weak():
    assert not weak_rule(judged(0.1)).is_weak(float("nan"))
