"""Model selection after the fact."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun.analysis.studies.selection import FINAL, best_place, select, selections_of
from isorun.analysis.studies.study_metrics import judged_metrics
from isorun.study.design import Metric, Selection
from isorun.study.records import Series
from record_builder import make_record, make_series

BEST_LOSS = Selection("best-loss", "val_loss", "lower")
BEST_ACCURACY = Selection("best-accuracy", "val_acc", "higher")


def trained(**series):
    return make_record(series={name: make_series(values, 2.0) for name, values in series.items()})


def test_the_epoch_with_the_lowest_validation_loss_is_judged():
    run = trained(val_loss=[0.9, 0.4, 0.5], test_acc=[0.5, 0.8, 0.9])
    selected = select(run, BEST_LOSS, ["test_acc"])
    assert (selected.step, selected.epochs, selected.seconds) == (2.0, 2, 4.0)
    assert selected.values == {"test_acc": 0.8}
    assert not selected.at_end


def test_the_first_of_equally_good_epochs_is_taken():
    run = trained(val_acc=[0.7, 0.9, 0.9], test_acc=[0.1, 0.2, 0.3])
    assert select(run, BEST_ACCURACY, ["test_acc"]).values == {"test_acc": 0.2}


def test_nan_is_never_best():
    run = trained(val_loss=[math.nan, 0.5, math.nan], test_acc=[0.1, 0.2, 0.3])
    assert select(run, BEST_LOSS, ["test_acc"]).values == {"test_acc": 0.2}


def test_nothing_but_nan_is_said():
    selected = select(trained(val_loss=[math.nan, math.nan]), BEST_LOSS, ["test_acc"])
    assert selected.problem == "all 2 values of val_loss are NaN"
    assert selected.values == {}


def test_a_missing_validation_metric_is_said():
    assert select(trained(test_acc=[0.5]), BEST_LOSS, ["test_acc"]).problem == "val_loss was not logged"


def test_a_metric_known_only_at_the_end_stands_for_every_epoch_and_is_marked():
    run = make_record(series={"val_loss": make_series([0.9, 0.4])}, results={"test_acc": 0.93})
    selected = select(run, BEST_LOSS, ["test_acc"])
    assert selected.values == {"test_acc": 0.93}
    assert selected.at_end == {"test_acc"}


def test_a_metric_that_was_never_logged_has_no_value():
    assert select(trained(val_loss=[0.9]), BEST_LOSS, ["test_acc"]).values == {}


def test_validation_several_times_an_epoch_counts_epochs_not_values():
    series = Series((1.0, 1.0, 2.0, 2.0), (1.0, 2.0, 3.0, 4.0), (0.9, 0.8, 0.7, 0.95))
    selected = select(make_record(series={"val_loss": series}), BEST_LOSS, [])
    assert (selected.epochs, selected.seconds) == (2, 3.0)


def test_the_end_of_a_run_is_its_result_or_its_last_value():
    run = make_record(results={"test_acc": 0.9}, series={"test_acc": make_series([0.1, 0.2]), "f1": make_series([0.3])})
    selected = select(run, FINAL, ["test_acc", "f1"])
    assert selected.values == {"test_acc": 0.9, "f1": 0.3}
    assert (selected.seconds, selected.epochs) == (run.wall_seconds, 2)


def test_rules_follow_from_the_validation_metrics_that_were_logged():
    rules = selections_of({}, [trained(val_loss=[1.0], val_acc=[0.5], test_acc=[0.5], train_loss=[1.0])])
    assert rules == (BEST_LOSS, BEST_ACCURACY)


@pytest.mark.parametrize(
    ("name", "rule"),
    [("eval_loss", "best-loss"), ("validation/accuracy", "best-accuracy"), ("valLoss", "best-loss")],
)
def test_validation_metrics_are_known_by_many_names(name, rule):
    (found,) = selections_of({}, [make_record(series={name: make_series([1.0, 2.0])})])
    assert (found.name, found.metric) == (rule, name)


def test_without_validation_metrics_the_end_is_judged():
    assert selections_of({}, [trained(test_acc=[0.5], train_loss=[0.1])]) == (FINAL,)


@pytest.mark.parametrize("name", ["val_objective", "val_entropy", "val_g_loss", "val_acc_std", "eval_foo"])
def test_a_metric_of_unknown_direction_never_picks_an_epoch(name):
    assert selections_of({}, [make_record(series={name: make_series([1.0, 2.0])})]) == (FINAL,)


def test_the_loss_picks_the_epoch_even_where_a_shorter_name_is_an_error():
    (rule,) = selections_of({}, [make_record(series={name: make_series([1.0]) for name in ("val_err", "val_loss")})])
    assert rule.metric == "val_loss"


def test_errors_of_boosting_pick_by_the_lowest_value():
    (rule,) = selections_of({}, [make_record(series={"eval-merror": make_series([0.3, 0.2, 0.4])})])
    assert rule == Selection("best-loss", "eval-merror", "lower")


def test_a_declared_direction_wins_over_what_the_name_of_the_rule_s_metric_tells():
    runs = [make_record(series={"val_loss": make_series([1.0, 2.0])})]
    (rule,) = selections_of({}, runs, judged_metrics({"val_loss": Metric("val_loss", "higher")}, runs))
    assert rule.direction == "higher"


def test_declared_rules_win():
    own = Selection("mine", "val_f1", "higher")
    assert selections_of({"mine": own}, [trained(val_loss=[1.0])]) == (own,)


@given(st.lists(st.one_of(st.floats(), st.just(math.nan)), max_size=12), st.booleans())
def test_the_best_place_beats_or_ties_every_other(values, higher):
    place = best_place(values, higher_is_better=higher)
    usable = [value for value in values if not math.isnan(value)]
    if place is None:
        assert not usable
    else:
        assert values[place] == (max(usable) if higher else min(usable))
        assert values[place] not in values[:place]


def stages(*rows, metrics=("val_acc", "test_acc")):
    """A run of rows (step, seconds, value of each metric or None)."""
    columns = {
        name: [(*row[:2], row[place]) for row in rows if row[place] is not None]
        for place, name in enumerate(metrics, 2)
    }
    return make_record(series={name: Series(*zip(*column, strict=True)) for name, column in columns.items()})


def test_the_row_is_judged_where_epochs_begin_again():
    run = stages((1, 1, 0.61, 0.60), (2, 2, 0.91, 0.90), (1, 3, 0.84, 0.83), (2, 4, 0.69, 0.68))
    selected = select(run, BEST_ACCURACY, ["val_acc", "test_acc"])
    assert (selected.step, selected.epochs, selected.seconds) == (2.0, 2, 2.0)
    assert selected.values == {"val_acc": 0.91, "test_acc": 0.90}
    later = stages((1, 1, 0.61, 0.60), (2, 2, 0.71, 0.70), (1, 3, 0.94, 0.93), (2, 4, 0.69, 0.68))
    selected = select(later, BEST_ACCURACY, ["test_acc"])
    assert (selected.step, selected.epochs, selected.values) == (1.0, 3, {"test_acc": 0.93})


@pytest.mark.parametrize(
    ("steps", "epochs"),
    [
        ([1000, 2000, 3000, 4000, 5000], 5000),
        ([20], 20),
        ([0], 1),
        ([0, 1, 2], 3),
        ([0, 250, 500], 500),
        ([5, 6, 7], 7),
        ([1, 2, 3, 2, 3, 4], 6),
        ([100, 200, 100], 300),
        ([0.5, 1.0, 1.5], 1.5),
    ],
)
def test_epochs_are_what_the_training_numbers_and_not_how_many_rows_it_told(steps, epochs):
    run = stages(*((step, place, place / 10) for place, step in enumerate(steps)), metrics=("val_acc",))
    assert select(run, FINAL, ["val_acc"]).epochs == epochs


def test_a_metric_on_other_rows_is_judged_in_the_same_stage():
    run = stages(
        (1, 1, 0.6, None), (1, 2, None, 0.1), (2, 3, 0.9, None), (2, 4, None, 0.2), (3, 5, None, 0.3),
        (1, 6, 0.7, None), (2, 7, 0.8, None), (1, 8, None, 0.4), (2, 9, None, 0.5),
    )  # fmt: skip
    assert select(run, BEST_ACCURACY, ["test_acc"]).values == {"test_acc": 0.2}


def test_a_metric_logged_once_a_fold_is_judged_in_the_fold_of_the_epoch():
    run = stages(
        (1, 1, 0.5, None), (2, 2, 0.6, None), (2, 2.1, None, 0.1),
        (1, 3, 0.5, None), (2, 4, 0.9, None), (2, 4.1, None, 0.2),
        (1, 5, 0.5, None), (2, 6, 0.7, None), (2, 6.1, None, 0.3),
    )  # fmt: skip
    assert select(run, BEST_ACCURACY, ["test_acc"]).values == {"test_acc": 0.2}


def test_a_metric_of_another_stage_alone_is_the_end_value_and_marked():
    run = stages((1, 1, 0.5, None), (2, 2, 0.9, None), (1, 3, 0.5, 0.3), (2, 4, 0.6, 0.4))
    selected = select(run, BEST_ACCURACY, ["test_acc"])
    assert (selected.values, selected.at_end) == ({"test_acc": 0.4}, {"test_acc"})


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(0, 1)), min_size=1, max_size=20))
def test_what_picks_the_row_has_its_best_value_there(rows):
    run = make_record(series={"val_acc": Series(*zip(*[(s, n, v) for n, (s, v) in enumerate(rows)], strict=True))})
    assert select(run, BEST_ACCURACY, ["val_acc"]).values == {"val_acc": max(value for _, value in rows)}
