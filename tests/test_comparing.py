"""A study against stored runs: what enters the verdict, what is refused, and what is told."""

import copy
from dataclasses import replace

import pytest

import isorun
from isorun.analysis.evidence import Condition
from isorun.baselines import open_runs
from isorun.comparing import HowCompared, TwoSides, compare_with
from isorun.errors import InputError
from isorun.study.cells import cells_of
from isorun.study.records import RunState, Series
from isorun.testing.memory_store import MemoryStore
from record_builder import make_record

ENVIRONMENT = {
    "requested": {},
    "effective": {"cpu": {"model": "EPYC"}, "torch": {"version": "2.1", "threads": 2}},
}


def study(name="mine", **fields):
    given = {"approaches": {"net": "python train.py"}, "repeats": 8, "metrics": {"acc": {"direction": "higher"}}}
    return isorun.Study(name, **{**given, **fields})


def recorded(declared, height, *, host="here", environment=ENVIRONMENT, metric="acc", **fields):
    """A store with a run of each cell of the study."""
    store = MemoryStore()
    for number, cell in enumerate(cells_of(declared)):
        made = make_record(
            cell, results={metric: height + number / 1000}, environment=environment, where={"host": host},
            started_at=f"2026-01-01T00:{host == 'here':02}:{number:02}Z", **fields,
        )  # fmt: skip
        store.finish(made)
    store.documents("studies").write(declared.name, {"folder": ".", **document(declared)})
    return store


def document(declared):
    from isorun.study.design import document_of

    return document_of(declared)


def compared(baseline_study=None, *, mine=None, anyway=False, **fields):
    own, theirs = study(), baseline_study or study("base", approaches={"old": "python old.py"})
    held = recorded(theirs, 0.8, **{"host": "there", **fields})
    return compare_with(own, held, store=mine or recorded(own, 0.9), baseline_study=theirs.name, anyway=anyway)


def test_stored_runs_are_units_of_the_verdict():
    told = compared()
    assert (str(told.verdict), told.a.units.count, told.b.units.count) == ("A better", 8, 8)
    assert told.b.name == "old at level default (the store)"


@pytest.mark.parametrize(("part", "name", "value"), [("torch", "version", "1.9"), ("cpu", "model", "Xeon")])
def test_another_class_of_environment_is_refused_and_with_anyway_told(part, name, value):
    environment = copy.deepcopy(ENVIRONMENT)
    environment["effective"][part][name] = value
    with pytest.raises(InputError, match="environments of another class") as error:
        compared(environment=environment)
    assert f"{part}.{name}" in error.value.what
    assert "--anyway" in error.value.hint
    told = compared(environment=environment, anyway=True)
    assert str(told.verdict) == "A better"
    assert "other-environment" in {one.code for one in told.conditions}


def test_other_data_are_refused_and_with_anyway_told():
    mine = recorded(study(), 0.9, digests={"data": "aa" * 32})
    with pytest.raises(InputError, match="different data"):
        compared(mine=mine, digests={"data": "bb" * 32})
    told = compared(mine=mine, digests={"data": "bb" * 32}, anyway=True)
    assert "other-data" in {one.code for one in told.conditions}
    assert compared(mine=mine, digests={"data": "aa" * 32}).verdict == "A better"


def test_what_makes_no_sense_is_refused_whatever_is_said():
    with pytest.raises(InputError, match="no run left the metric 'acc'"):
        compared(metric="loss", anyway=True)
    lower = study("base", metrics={"acc": {"direction": "lower"}})
    with pytest.raises(InputError, match="higher is better here, and lower"):
        compared(lower, anyway=True)
    own = study()
    store = recorded(own, 0.9)
    with pytest.raises(InputError, match="the baseline's own"):
        compare_with(own, store, store=store, anyway=True)


def test_which_group_is_meant_is_asked_where_it_is_not_clear():
    two = study("base", approaches={"old": "python old.py", "older": "python older.py"})
    with pytest.raises(InputError, match="which group of the store is compared"):
        compared(two)
    held = recorded(two, 0.8, host="there")
    told = compare_with(study(), held, store=recorded(study(), 0.9), baseline_study="base", b="older")
    assert told.b.name.startswith("older at level default")
    with pytest.raises(InputError, match="no approach of the store is 'none'"):
        compare_with(study(), held, store=recorded(study(), 0.9), baseline_study="base", b="none")


def test_a_list_of_numbers_is_a_baseline_of_which_nothing_else_is_known():
    told = compare_with(study(), [0.8 + k / 500 for k in range(8)], store=recorded(study(), 0.9))
    assert str(told.verdict) == "A better"
    assert "baseline-unknown" in {one.code for one in told.conditions}


def test_a_condition_of_one_side_does_not_stand_for_that_of_the_other():
    own, theirs = study(), study("base", approaches={"old": "python old.py"})
    here = Condition("runs-set-aside", "one run here was set aside", "look")
    there = Condition("runs-set-aside", "most runs there were set aside", "look", voids=True)
    mine = replace(open_runs(own, store=recorded(own, 0.9)), told=(here,))
    held = replace(open_runs(theirs, store=recorded(theirs, 0.8, host="there")), told=(there, here))
    told = TwoSides.of(mine, held, ({}, {})).compared(HowCompared())
    assert [one for one in told.conditions if one.code == "runs-set-aside"] == [here, there]
    assert str(told.verdict) == "undecided"


def test_a_selection_is_that_of_both_sides():
    curve = {"val_loss": Series([1.0, 2.0], [1.0, 2.0], [0.4, 0.5]), "acc": Series([1.0, 2.0], [1.0, 2.0], [0.3, 0.2])}
    own, theirs = study(), study("base", approaches={"old": "python old.py"})
    mine, held = recorded(own, 0.9, series=curve), recorded(theirs, 0.8, host="there")
    with pytest.raises(InputError, match="judged at different epochs") as error:
        compare_with(own, held, store=mine, baseline_study="base")
    assert "best-loss of val_loss here, final in the store" in error.value.what
    told = compare_with(own, held, store=mine, baseline_study="base", anyway=True)
    assert "other-selection" in {one.code for one in told.conditions}
    with pytest.raises(InputError, match="the store has no selection 'best-loss'"):
        compare_with(own, held, store=mine, baseline_study="base", selection="best-loss")
    with pytest.raises(InputError, match="the study mine has no selection 'best'"):
        compare_with(own, held, store=mine, baseline_study="base", selection="best")


def test_a_factor_that_runs_do_not_have_is_refused_of_every_kind_of_baseline():
    table = {"approach": ["net"] * 6, "acc": [0.8 + k / 500 for k in range(6)]}
    held = recorded(study(), 0.8, host="there")
    for baseline in (table, held, [0.8, 0.81, 0.82]):
        for wrong in ({"baseline_where": {"colour": "red"}}, {"where": {"colour": "red"}}, {"by": "seed", "b": "1"}):
            with pytest.raises(InputError, match="runs are not told apart by"):
                compare_with(study(), baseline, store=recorded(study(), 0.9), **wrong)
    with pytest.raises(InputError, match="the list has no groups"):
        compare_with(study(), [0.8, 0.81], store=recorded(study(), 0.9), baseline_where={"config": "small"})


def test_the_plain_table_of_a_package_is_a_baseline(tmp_path):
    """`isorun pack --plain` writes final values under `result.NAME`; the metric alone was looked for."""
    rows = [f"net,default,default,default,,0,{0.8 + number / 1000}" for number in range(8)]
    heading = "approach,config,environment,level,seed,repeat,result.acc"
    (tmp_path / "runs.csv").write_text("\n".join([heading, *rows]) + "\n")
    told = compare_with(study(), tmp_path / "runs.csv", store=recorded(study(), 0.9))
    assert (str(told.verdict), told.b.units.count) == ("A better", 8)
    assert round(told.b.values.mean(), 4) == 0.8035


def test_runs_that_failed_on_a_side_count_against_it():
    own, theirs = study(repeats=16), study("base", approaches={"old": "python old.py"})
    mine, held = recorded(own, 0.9), recorded(theirs, 0.8, host="there")
    assert str(compare_with(own, held, store=mine, baseline_study="base").verdict) == "A better"
    failing = MemoryStore()
    for place, record in enumerate(mine.records()):
        failing.finish(replace(record, state=RunState.FAILED, reason="exit code 1") if place % 2 else record)
    told = compare_with(own, held, store=failing, baseline_study="base")
    assert (str(told.verdict), told.a.units.count) == ("undecided", 8)
    assert "8 of 16 runs of net at level default left no result" in told.decision.why
    stopped = MemoryStore()
    for place, record in enumerate(mine.records()):
        stopped.finish(replace(record, state=RunState.INTERRUPTED) if place % 2 else record)
    assert str(compare_with(own, held, store=stopped, baseline_study="base").verdict) == "A better"


def test_what_is_not_comparable_stands_in_the_sentence_of_whoever_compares_it_anyway():
    mine = recorded(study(), 0.9, digests={"data": "aa" * 32})
    told = compared(mine=mine, digests={"data": "bb" * 32}, anyway=True)
    assert "(compared although the two sides were trained on different data (data)" in told.decision.why
    assert "compared although" in told.to_json()["why"]
    assert "compared although" not in compared(mine=mine, digests={"data": "aa" * 32}).decision.why


def test_the_same_draws_on_both_sides_are_told():
    own, theirs = study(), study("base", approaches={"old": "python old.py"})
    mine, held = recorded(own, 0.91234567), recorded(theirs, 0.91234567, host="there")
    told = compare_with(own, held, store=mine, baseline_study="base", margin=0.1)
    assert "8 runs of net at level default and old at level default" in told.conditions[-1].message
    assert "same-draws" in {one.code for one in told.conditions}
    assert "same-draws" not in {one.code for one in compared().conditions}


def table(*rows, columns):
    return dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True))


def against(baseline, **options):
    own = study()
    return compare_with(own, baseline, store=recorded(own, 0.9), **options)


def test_a_table_as_baseline_keeps_its_runs_apart_from_what_they_count_as():
    told = against(table(*((s, 0.7 + s / 50 + k / 500) for s in range(6) for k in range(5)), columns=("seed", "acc")))
    assert (told.b.units.runs.size, told.b.units.count) == (30, 6)
    assert told.b.runs.min() == pytest.approx(0.7)
    assert "30 runs of 6 independent draws count as 6" in str(told)


def test_copies_in_a_table_as_baseline_are_told():
    told = against(table(*((0.71234567 + k / 7919,) for k in range(6) for _ in range(4)), columns=("acc",)))
    assert (told.b.units.runs.size, told.b.units.count) == (24, 6)
    assert "copies" in {one.code for one in told.conditions}
    told = against([0.71234567 + k / 7919 for k in range(6) for _ in range(4)])
    assert (told.b.units.runs.size, told.b.units.count) == (24, 6)


def test_what_a_table_leaves_open_says_of_it_as_baseline_what_it_says_of_it_alone():
    half = table(*((str(s) if s % 2 else "", 0.7 + s / 1000) for s in range(12)), columns=("seed", "acc"))
    told = against(half)
    assert (str(told.verdict), [one.code for one in told.conditions if one.voids]) == ("undecided", ["seeds-missing"])
    folds = table(*((s % 4, 0.7 + s / 1000) for s in range(12)), columns=("fold", "acc"))
    assert "rows-may-repeat" in {one.code for one in against(folds).conditions}
    models = table(*((("resnet", "vgg")[s % 2], 0.7 + s / 1000) for s in range(12)), columns=("model", "acc"))
    pooled = next(one for one in against(models).conditions if one.code == "sides-pooled")
    assert "'model'" in pooled.message


def test_values_that_are_not_finite_in_a_table_as_baseline_can_be_left_out():
    rows = table(*((0.7 + s / 1000 if s % 3 else float("nan"),) for s in range(12)), columns=("acc",))
    with pytest.raises(InputError, match="not finite"):
        against(rows)
    told = against(rows, drop_missing=True)
    assert (str(told.verdict), told.b.units.count, told.b.dropped) == ("A better", 8, 4)


def test_units_of_two_kinds_are_called_by_neither():
    seeds = {"levels": ["fixed-seed"], "seeds": [1, 2, 3, 4], "repeats": 1}
    held = recorded(study("base", approaches={"old": "python old.py"}, **seeds), 0.8, host="there")
    for own, noun in ((study(), "unit"), (study(**seeds), "seed")):
        told = compare_with(own, held, store=recorded(own, 0.9), baseline_study="base", anyway=True)
        assert (told.a.units.noun, told.b.units.noun) == (noun, noun)


def test_a_study_without_runs_is_no_baseline():
    held = recorded(study("base", approaches={"old": "python old.py"}), 0.8)
    with pytest.raises(InputError, match="has no run of the study 'other'"):
        open_runs(study("other", approaches={"x": "python x.py"}), store=held)
