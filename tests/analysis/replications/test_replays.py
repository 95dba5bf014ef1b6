"""Two records of one run: identical, or the first thing that differs."""

from dataclasses import replace

import pytest

from isorun import showing
from isorun.analysis.replications.replays import held_against, partings
from isorun.study.cells import Level
from isorun.study.records import RunState, Series
from record_builder import make_cell, make_record, packed

showing.install()

SERIES = {
    "loss": Series((1.0, 2.0, 3.0), (1.0, 2.0, 3.0), (0.9, 0.5, 0.4)),
    "acc": Series((1.0, 2.0, 3.0), (1.5, 2.5, 3.5), (0.1, 0.2, 0.3)),
    "epoch_seconds": Series((1.0, 2.0), (1.0, 2.0), (10.0, 11.0)),
}
DIGESTS = {"weights.initial": "aa" * 32, "weights.final": "bb" * 32}
STORED = make_record(
    make_cell(Level.FIXED_SEED), series=SERIES, results={"test_acc": 0.9, "seconds": 4.0}, digests=DIGESTS
)


def changed(name, values):
    return {**SERIES, name: Series(SERIES[name].steps, SERIES[name].seconds, values)}


def first(**fields):
    return next(partings(STORED, replace(STORED, **fields)), None)


def test_a_run_is_identical_to_itself_whenever_it_was_made():
    later = {name: Series(item.steps, [9 + t for t in item.seconds], item.values) for name, item in SERIES.items()}
    again = replace(STORED, series=later, started_at="2027-01-01T00:00:00Z", wall_seconds=99.0)
    told = held_against(STORED, again)
    assert told.identical
    assert (told.rows, told.digests, told.first) == (6, 2, "")


def test_what_metrics_tell_of_the_machine_is_left_aside():
    assert first(series=changed("epoch_seconds", (10.0, 99.0)), results={"test_acc": 0.9, "seconds": 7.0}) is None


def test_the_first_row_is_the_one_that_was_logged_first():
    found = first(series={**changed("acc", (0.1, 0.25, 0.3)), "loss": changed("loss", (0.9, 0.5, 0.41))["loss"]})
    assert (found.kind, found.what, found.step, found.number) == ("row", "acc", 2.0, 2)
    assert found.words == "acc at step 2 (row 2): 0.2 then, 0.25 now"


@pytest.mark.parametrize(
    ("fields", "kind", "what"),
    [
        ({"series": {**SERIES, "loss": Series((1.0, 2.0), (1.0, 2.0), (0.9, 0.5))}}, "row", "loss"),
        ({"series": {**SERIES, "new": Series((1.0,), (1.0,), (0.9,))}}, "row", "new"),
        ({"results": {"test_acc": 0.9000000000000001}}, "result", "test_acc"),
        ({"digests": {**DIGESTS, "weights.final": "cc" * 32}}, "digest", "weights.final"),
        ({"digests": {"weights.initial": "aa" * 32}}, "digest", "weights.final"),
        ({"predictions": (packed([1, 2, 3]),)}, "predictions", "predictions test"),
        ({"per_class": {"acc": {"cat": 0.5}}}, "result", "acc[cat]"),
        ({"state": RunState.FAILED, "reason": "exit code 1"}, "state", "how it ended"),
    ],
)
def test_whatever_parts_is_found(fields, kind, what):
    found = first(**fields)
    assert (found.kind, found.what) == (kind, what)


def test_the_step_at_which_numbers_part_has_all_its_digits():
    steps = (1_234_566.0, 1_234_567.0)
    run, other = (replace(STORED, series={"loss": Series(steps, steps, values)}) for values in ((0.5, 0.4), (0.5, 0.3)))
    assert next(iter(partings(run, other))).words == "loss at step 1234567 (row 2): 0.4 then, 0.3 now"


@pytest.mark.parametrize("steps", [(1_000_000.0, 1_000_001.0), (1.0, 1.0), (None, None)])
def test_predictions_of_one_name_are_all_held_against_each_other(steps):
    run, other = (
        replace(STORED, predictions=(packed(first, step=steps[0]), packed([1], step=steps[1]))) for first in ([1], [0])
    )
    assert [one.kind for one in partings(run, other)] == ["predictions"]


def test_initial_weights_part_before_the_first_row():
    digests = {"weights.initial": "dd" * 32, "weights.final": "ee" * 32}
    found = list(partings(STORED, replace(STORED, digests=digests, series=changed("loss", (0.8, 0.5, 0.4)))))
    assert [item.what for item in found] == ["weights.initial", "loss", "weights.final"]


def test_values_that_are_no_numbers_are_themselves():
    nan = replace(STORED, series=changed("loss", (0.9, float("nan"), float("inf"))))
    assert next(partings(nan, nan), None) is None
    assert next(partings(nan, STORED)).stored == "nan"


def test_the_setup_is_named_before_the_row_where_numbers_part():
    other = {"requested": {}, "effective": {"torch": {"threads": 4}, "cpu": {"affinity": 2, "model": "EPYC"}}}
    told = held_against(STORED, replace(STORED, environment=other, results={"test_acc": 0.8, "seconds": 4.0}))
    assert told.first.startswith("torch.threads: 2 then, 4 now")
    assert told.partings[0].what == "test_acc"
    assert "Its numbers part at test_acc: 0.9 then, 0.8 now" in showing.text(told).replace("\n  ", " ")


def test_numbers_that_agree_are_identical_whatever_else_differs():
    other = {"requested": {}, "effective": {"torch": {"threads": 4}, "cpu": {"affinity": 2, "model": "EPYC"}}}
    told = held_against(STORED, replace(STORED, environment=other))
    assert told.identical
    assert "torch.threads" in showing.text(told)


def test_a_run_without_digests_and_one_that_fixed_no_seed_say_so():
    bare = make_record(results={"test_acc": 0.5})
    assert {one.code for one in held_against(bare, bare).conditions} == {"weights-unknown", "nothing-fixed"}


def test_only_weights_are_the_same_bit_by_bit():
    def said(record):
        return showing.text(held_against(record, record)).replace("\n  ", " ").splitlines()[0]

    assert said(STORED).startswith("Identical bit by bit: ")
    assert said(replace(STORED, digests={})).endswith("gave the same 6 logged values; its weights were not seen.")
    printed = make_record(results={"test_acc": 0.5})
    assert said(printed).startswith("Identical in all that was recorded: ")
    assert said(printed).endswith("gave the same 1 result; its weights were not seen.")
    assert said(make_record(results={})).endswith("could be compared: it left no number and no digest.")


def test_at_level_default_two_runs_are_expected_to_differ_and_the_sentence_says_so():
    drawn = replace(STORED, cell=make_cell(Level.DEFAULT), environment={})
    other = replace(drawn, series=changed("loss", (0.8, 0.5, 0.4)))
    assert "at level default every run draws numbers of its own" in " ".join(str(held_against(drawn, other)).split())
    fixed = held_against(
        replace(STORED, environment={}), replace(STORED, environment={}, series=changed("loss", (0.8, 0.5, 0.4)))
    )
    assert "left no trace there" in " ".join(str(fixed).split())
