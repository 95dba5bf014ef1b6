"""A whole study, from records to its result."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from isorun.analysis.studies.selection import last_words
from isorun.analysis.studies.study_result import analyse_study
from isorun.errors import NothingRecorded
from isorun.study.cells import Level
from isorun.study.design import Approach, Metric
from isorun.study.records import RunState
from record_builder import make_cell, make_record, make_series, make_study, packed, trained_records, with_results


@pytest.fixture(scope="module")
def study():
    return make_study()


@pytest.fixture(scope="module")
def result(study):
    return analyse_study(study, trained_records(study, weak=2))


def test_groups_come_in_the_order_of_the_study(result):
    assert [group.key.level for group in result.groups] == list(Level)
    assert [group.finished for group in result.groups] == [8, 8, 8]
    assert [group.planned for group in result.groups] == [8, 8, 8]


def test_both_rules_are_judged(result):
    assert [rule.name for rule in result.selections] == ["best-loss", "best-accuracy"]
    assert all(len(group.selections) == 2 for group in result.groups)


def test_weak_runs_are_flagged_and_left_out_of_the_second_view(result):
    judged = result.groups[0].selections[0]
    assert len(judged.weak_runs) == 2
    assert judged.every.metrics["test_acc"].overall.n == 8
    assert judged.without_weak.metrics["test_acc"].overall.n == 6
    assert judged.without_weak.seconds.n == 6
    assert all(spread.n == 6 for spread in judged.without_weak.metrics["test_acc"].classes.values())
    assert result.groups[1].selections[0].without_weak is None


def test_all_classes_are_there_the_last_one_too(result):
    classes = result.groups[0].selections[0].every.metrics["test_acc"].classes
    assert list(classes) == [str(number) for number in range(10)]


def test_the_class_that_varies_most_is_named(result):
    spreads = result.groups[1].selections[0].every.metrics["test_acc"]
    largest = max(spreads.classes.values(), key=lambda item: item.max_difference)
    assert spreads.classes[spreads.largest_class] == largest


def test_distinct_weights_are_counted_within_identical_runs(result):
    counted = [
        [(count.name, count.runs, count.distinct) for count in group.identical[0].digests] for group in result.groups
    ]
    assert counted == [
        [("weights.initial", 8, 8), ("weights.final", 8, 8)],
        [("weights.initial", 8, 1), ("weights.final", 8, 8)],
        [("weights.initial", 8, 1), ("weights.final", 8, 1)],
    ]


def test_several_seeds_are_counted_apart():
    study = make_study(seeds=(1, 2), levels=(Level.DETERMINISTIC,), repeats=3)
    (group,) = analyse_study(study, trained_records(study)).groups
    assert [(same.seed, same.runs, same.digests[1].distinct) for same in group.identical] == [(1, 3, 1), (2, 3, 1)]


def test_the_spread_within_seeds_is_told_from_that_between_them():
    study = make_study(seeds=(1, 2), levels=(Level.FIXED_SEED,), repeats=2, metrics={"loss": Metric("loss", "lower")})
    values = {(1, 0): 1.0, (1, 1): 1.2, (2, 0): 5.0, (2, 1): 5.2}
    records = [
        make_record(make_cell(Level.FIXED_SEED, repeat, seed=seed), results={"loss": value})
        for (seed, repeat), value in values.items()
    ]
    rule = analyse_study(study, records).groups[0].selections[0]
    assert rule.within_seed_sd("loss") == pytest.approx(0.2 / math.sqrt(2))
    assert rule.every.metrics["loss"].overall.sd > 2


def test_levels_are_compared_by_levenes_test(study):
    default, fixed = [0.91, 0.95, 0.97, 0.99], [0.950, 0.951, 0.952, 0.953]
    records = with_results(default) + with_results(fixed, Level.FIXED_SEED)
    (comparison,) = analyse_study(study, records).levels
    expected = stats.levene(default, fixed)
    assert comparison.test.statistic == pytest.approx(expected.statistic)
    assert comparison.test.p == pytest.approx(expected.pvalue)
    assert (comparison.level_a, comparison.level_b) == ("default", "fixed-seed")


def test_levels_that_cannot_be_compared_say_why(study):
    records = with_results([0.9, 0.9]) + with_results([0.9, 0.9], Level.FIXED_SEED)
    (comparison,) = analyse_study(study, records).levels
    assert comparison.test is None
    assert comparison.why_not


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ("epoch 1\nTraceback (most recent call last):\n  File x\nValueError: no data\n", "ValueError: no data"),
        (
            "Traceback (most recent call last):\n  f\nXGBoostError: a: No such file\nStack trace:\n  [bt] (0) y\n\n",
            "XGBoostError: a: No such file … Stack trace:",
        ),
        (
            "Traceback (most recent call last):\nKeyError: 1\nTraceback (most recent call last):\nOSError: 2\n",
            "OSError: 2",
        ),
        ("  all of it\n  indented\n", "indented"),
        ("Traceback (most recent call last)\n  cut", "Traceback (most recent call last)"),
        ("\n", ""),
    ],
)
def test_the_error_of_a_traceback_is_told_also_where_its_message_goes_on(log, said):
    assert last_words(log) == said


def test_a_failed_run_is_counted_and_kept_out_of_the_statistics(study):
    failed = replace(
        make_record(make_cell(repeat=5), results={"test_acc": 0.1}),
        state=RunState.FAILED,
        reason="exit code 3",
        log_tail="a\nOut of memory\n",
    )
    result = analyse_study(study, [*with_results([0.9, 0.91]), failed])
    group = result.groups[0]
    assert group.selections[0].every.metrics["test_acc"].overall.n == 2
    assert result.states[RunState.FAILED] == 1
    assert (group.failed[0].reason, group.failed[0].log_end) == ("exit code 3", "Out of memory")


def test_a_failure_that_a_retry_made_good_is_told_apart(study):
    done = with_results([0.9])[0]
    failed = replace(done, state=RunState.FAILED, attempt=1, results={})
    result = analyse_study(study, [failed, replace(done, attempt=2)])
    assert result.groups[0].failed[0].finished_later


def test_no_records_at_all_is_an_error_with_the_next_command(study):
    with pytest.raises(NothingRecorded, match="isorun run"):
        analyse_study(study, [])


def test_a_study_in_which_nothing_finished_still_has_a_result(study):
    failed = replace(make_record(), state=RunState.TIMED_OUT, reason="time limit")
    result = analyse_study(study, [failed])
    assert result.primary is None
    assert result.groups[0].failed[0].state is RunState.TIMED_OUT


def test_records_of_groups_that_left_the_study_are_not_lost():
    study = make_study(approaches={"new": Approach("new", ("python", "new.py"))}, levels=(Level.DEFAULT,))
    result = analyse_study(study, with_results([0.5, 0.6]))
    assert [group.key.approach for group in result.groups] == ["new", "LeNet"]


def test_learning_curves_have_a_median_and_a_band():
    records = [
        make_record(make_cell(repeat=place), series={"test_acc": make_series([0.1 * place, 0.2 * place])})
        for place in range(5)
    ]
    (curves,) = analyse_study(make_study(levels=(Level.DEFAULT,)), records).groups[0].curves
    assert curves.steps == (1.0, 2.0)
    assert curves.median == pytest.approx((0.2, 0.4))
    assert curves.low[1] == pytest.approx(0.08)
    assert len(curves.runs) == 5


def predicting(place, predicted, labels=(0, 1, 1, 0)):
    predictions = (packed(predicted), packed(labels, name="test.labels"))
    return make_record(make_cell(repeat=place), results={"test_acc": 0.5}, predictions=predictions)


def test_predictions_tell_test_set_noise_from_training_noise():
    records = [predicting(place, [0, 1, 1, place % 2]) for place in range(4)]
    noise = analyse_study(make_study(levels=(Level.DEFAULT,)), records).groups[0].noise
    assert (noise.runs, noise.examples, noise.mean) == (4, 4, 0.875)


def test_gaps_of_classes_stand_beside_what_chance_gives():
    records = [predicting(place, [0, 1, 1, place % 2]) for place in range(4)]
    gaps = analyse_study(make_study(levels=(Level.DEFAULT,)), records).groups[0].gaps
    assert [(gap.name, gap.examples, gap.gap, gap.exceeds_chance) for gap in gaps] == [
        ("0", 2, 0.5, False),
        ("1", 2, 0.0, False),
    ]


def test_gaps_are_not_guessed_where_class_sizes_are_unknown(result):
    assert result.groups[0].gaps == ()


def test_predictions_on_different_labels_are_not_put_together():
    records = [predicting(0, [0, 1, 1, 0]), predicting(1, [0, 1, 1, 0], labels=(1, 1, 1, 0))]
    assert analyse_study(make_study(levels=(Level.DEFAULT,)), records).groups[0].noise is None


def test_classes_counted_from_predictions_give_the_chance_level():
    result = analyse_study(make_study(levels=(Level.DEFAULT,)), [predicting(place, [0, 1, 1, 0]) for place in range(3)])
    assert result.primary.chance == 0.5
    assert list(result.groups[0].selections[0].every.metrics["test_acc"].classes) == ["0", "1"]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(), min_size=1, max_size=8), st.randoms())
def test_any_values_in_any_order_give_the_same_result(values, random):
    study = make_study(levels=(Level.DEFAULT,))
    records = with_results(values)
    shuffled = list(records)
    random.shuffle(shuffled)
    one, other = (analyse_study(study, given).groups[0].selections[0].every.metrics for given in (records, shuffled))
    finite = [value for value in values if math.isfinite(value)]
    assert one["test_acc"].overall.n == len(finite)
    assert one["test_acc"].overall.excluded == len(values) - len(finite)
    assert one["test_acc"].overall.max_difference == other["test_acc"].overall.max_difference


def test_the_interval_of_the_sd_rests_on_units_and_on_what_is_no_copy_within_one_unit():
    def rests_on(seeds, repeats, level):
        study = make_study(seeds=seeds, levels=(level,), repeats=repeats)
        (group,) = analyse_study(study, trained_records(study)).groups
        return [item.overall.sd_draws for item in group.selections[0].every.metrics.values()], group.units.count

    assert rests_on((1, 2), 3, Level.FIXED_SEED) == ([2], 2)
    assert rests_on((1, 2), 3, Level.DETERMINISTIC) == ([2], 2)
    assert rests_on((1,), 3, Level.FIXED_SEED) == ([3], 1)
    assert rests_on((1,), 3, Level.DETERMINISTIC) == ([1], 1)
    assert rests_on((1,), 3, Level.DEFAULT) == ([3], 3)
