"""Per-class values, wherever the run left them."""

from isorun.analysis.studies.class_values import PickedRow, class_values, classes_picked
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
