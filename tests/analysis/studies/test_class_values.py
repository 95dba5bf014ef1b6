"""Per-class values, wherever the run left them."""

import pytest

from isorun.analysis.studies.class_values import PickedRow, class_values, classes_picked, group_votes
from isorun.study.records import Series
from record_builder import make_record, make_series, packed


def at_step(step):
    return PickedRow(Series([step], [step], [0.0]), 0)


def test_series_of_classes_are_read_at_the_epoch():
    run = make_record(series={"test_acc[0]": make_series([0.1, 0.2]), "test_acc[9]": make_series([0.8, 0.9])})
    assert class_values(run, "test_acc", at_step(2.0)) == {"0": 0.2, "9": 0.9}


def test_final_classes_stand_in_where_epochs_were_not_logged():
    run = make_record(per_class={"test_acc": {"cat": 0.5, "dog": 0.7}})
    found, _ = classes_picked(run, "test_acc", at_step(3.0))
    assert found == {"cat": 0.5, "dog": 0.7}


def test_classes_under_the_only_other_accuracy_are_taken():
    run = make_record(per_class={"accuracy": {"cat": 0.5}, "f1": {"cat": 0.1}})
    assert class_values(run, "test_acc", None) == {"cat": 0.5}
    assert class_values(run, "test_loss", None) == {}


def test_two_other_accuracies_are_not_guessed_between():
    run = make_record(per_class={"accuracy": {"cat": 0.5}, "val_acc": {"cat": 0.4}})
    assert class_values(run, "test_acc", None) == {}


def test_predictions_and_labels_are_counted_the_last_class_too():
    predictions = (packed([0, 1, 1, 2, 2, 2]), packed([0, 0, 1, 2, 2, 1], name="test.labels"))
    assert class_values(make_record(predictions=predictions), "test_acc", None) == {"0": 0.5, "1": 0.5, "2": 1.0}


def test_predictions_of_the_epoch_win_over_those_of_the_end():
    labels = packed([0, 1], name="test.labels")
    run = make_record(predictions=(packed([1, 1]), packed([0, 1], step=4.0), labels))
    there, at_the_end = (classes_picked(run, "test_acc", at_step(step))[0] for step in (4.0, 5.0))
    assert there == {"0": 1.0, "1": 1.0}
    assert at_the_end == {"0": 0.0, "1": 1.0}


def test_predictions_without_labels_say_nothing():
    assert class_values(make_record(predictions=(packed([0, 1]),)), "test_acc", None) == {}


def of_two_splits():
    """Validation first, as a training has it; by their labels all of it is wrong, and all of the test set right."""
    kept = {"val": [1, 1], "val.labels": [0, 0], "test": [1, 0], "test.labels": [1, 0]}
    return make_record(predictions=tuple(packed(answers, name=name) for name, answers in kept.items()))


@pytest.mark.parametrize(
    ("metric", "classes"),
    [
        ("test_acc", {"0": 1.0, "1": 1.0}),
        ("val_acc", {"0": 0.0}),
        ("train_acc", {}),  # of other examples
        ("eval_acc", {}),  # a Trainer's own word, beside which it has a test set
        ("accuracy", {}),  # of either
    ],
)
def test_classes_are_those_of_the_split_that_the_metric_names(metric, classes):
    assert class_values(of_two_splits(), metric, None) == classes


def test_what_runs_answered_on_another_split_tells_no_noise_of_a_metric():
    runs = [of_two_splits(), of_two_splits()]
    assert group_votes(runs, {}, "test_acc")[1].tolist() == [1, 0]
    assert group_votes(runs, {}, "val_acc")[1].tolist() == [0, 0]
    assert group_votes(runs, {}, "train_acc") is None


def test_classes_of_another_split_are_not_taken_for_a_metric():
    run = make_record(per_class={"test_acc": {"cat": 0.5}})
    assert (class_values(run, "val_acc", None), class_values(run, "acc", None)) == ({}, {"cat": 0.5})


def test_of_several_heads_the_one_that_the_metric_names_is_taken():
    kept = {"shape": [0], "shape.labels": [0], "colour": [1], "colour.labels": [0]}
    run = make_record(predictions=tuple(packed(answers, name=name) for name, answers in kept.items()))
    assert class_values(run, "shape_acc", None) == {"0": 1.0}
    assert class_values(run, "acc", None) == {}


def test_what_was_predicted_last_is_that_of_the_end():
    first, last = (
        (packed(answers), packed(labels, name="test.labels")) for answers, labels in (([0], [1]), ([2], [2]))
    )
    assert class_values(make_record(predictions=(*first, *last)), "test_acc", None) == {"2": 1.0}


def test_predictions_of_a_job_are_of_its_metrics_alone():
    kept = {"test@lr=1": [0], "test@lr=1.labels": [0], "test@lr=2": [1], "test@lr=2.labels": [0]}
    run = make_record(predictions=tuple(packed(answers, name=name) for name, answers in kept.items()))
    assert class_values(run, "test_acc@lr=1", None) == {"0": 1.0}
    assert class_values(run, "test_acc@lr=2", None) == {"0": 0.0}


def test_predictions_of_epochs_that_began_again_are_not_guessed_between():
    labels = packed([0, 1], name="test.labels")
    run = make_record(predictions=(packed([1, 1], step=1.0), packed([0, 1], step=1.0), labels))
    assert class_values(run, "test_acc", at_step(1.0)) == {}


def test_classes_of_the_end_are_told_where_an_earlier_epoch_is_judged():
    steps = make_series([0.1, 0.2, 0.3])
    ended = make_record(series={"test_acc": steps}, per_class={"test_acc": {"cat": 0.5}})
    logged = make_record(series={"test_acc": steps, "test_acc[cat]": steps}, per_class={"test_acc": {"cat": 0.5}})
    assert classes_picked(ended, "test_acc", PickedRow(steps, 1)) == ({"cat": 0.5}, True)
    assert classes_picked(ended, "test_acc", PickedRow(steps, 2)) == ({"cat": 0.5}, False), "its last epoch is its end"
    assert classes_picked(logged, "test_acc", PickedRow(steps, 1)) == ({"cat": 0.2}, False)
    assert classes_picked(make_record(), "test_loss", PickedRow(steps, 1)) == ({}, False)
