"""Every warning, and that it keeps quiet when there is nothing to warn about."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from isorun import workflow
from isorun.analysis.studies import group_conditions
from isorun.analysis.studies.conditions import told_at_once
from isorun.analysis.studies.study_result import analyse_study
from isorun.report.study_view import headline, verdict
from isorun.study.cells import Level
from isorun.study.design import Metric
from isorun.study.records import Note, RunState, Seeded, Series
from record_builder import ENVIRONMENT, make_cell, make_record, make_series, make_study, trained_records, with_results

DECLARED = {"test_acc": Metric("test_acc", "higher")}


@pytest.fixture(scope="module")
def study():
    return make_study(metrics=DECLARED)


@pytest.fixture(scope="module")
def records(study):
    return trained_records(study)


def warnings_of(study, records):
    return {warning.code: warning for warning in analyse_study(study, records).conditions}


def changed(records, level, **changes):
    """The records with one run of the level changed."""
    place = next(place for place, record in enumerate(records) if record.cell.level is level)
    return [replace(record, **changes) if at == place else record for at, record in enumerate(records)]


def test_a_sound_study_has_no_warnings(study, records):
    assert warnings_of(study, records) == {}


def seeded_itself(records, seed_of):
    """The records with a seed of the training's own in each run at default: seed_of says which, by the run's number."""
    return [
        replace(record, seeded=(Seeded("torch.manual_seed", str(seed_of(number)), "train.py:17"),))
        if record.cell.level is Level.DEFAULT
        else record
        for number, record in enumerate(records)
    ]


def test_a_seed_that_is_another_in_every_run_is_no_shared_part(study, records):
    assert warnings_of(study, seeded_itself(records, lambda number: 1_763_450_000_000 + number)) == {}


def test_a_seed_fixed_by_the_script_makes_default_runs_dependent(study, records):
    seeded = seeded_itself(records, lambda _number: 42)
    warning = warnings_of(study, seeded)["default-not-independent"]
    assert "torch.manual_seed(42) at train.py:17" in warning.message
    assert warning.groups == ("LeNet at level default",)


def test_a_seed_that_only_the_source_has_is_not_said_to_have_been_fixed(study, records):
    seeds = {
        "line": Seeded("random.Random (in source)", "5", "train.py:7"),
        "call": Seeded("random.seed", "6", "t.py:8"),
    }
    at_default = [record for record in records if record.cell.level is Level.DEFAULT]

    def message(*named):
        seeded = [replace(record, seeded=tuple(seeds[name] for name in named)) for record in at_default]
        return warnings_of(study, seeded)["default-not-independent"].message

    read = message("line")
    assert "may share a part" in read
    assert "fixes a seed (random.Random(5) at train.py:7), and whether it ran was not seen" in read
    assert "fixed a seed" not in read
    assert "8 of 8 runs fixed a seed themselves (random.seed(6) at t.py:8)" in message("line", "call")


@pytest.mark.parametrize("name", ["weights.initial", "weights.final"])
def test_equal_weights_make_default_runs_dependent(study, records, name):
    same = [
        replace(record, digests=record.digests | {name: "aa"}) if record.cell.level is Level.DEFAULT else record
        for record in records
    ]
    assert "8 of 8 runs" in warnings_of(study, same)["default-not-independent"].message


def test_seeds_that_change_nothing_are_told():
    study = make_study(levels=(Level.FIXED_SEED,), seeds=(1, 2), repeats=5, metrics=DECLARED)
    same = [replace(record, digests={"weights.initial": "aa"}) for record in trained_records(study)]
    assert "2 of 2 seeds started from the same weights" in warnings_of(study, same)["seed-without-effect"].message


def test_a_worker_that_never_started_is_told(study, records):
    silent = changed(records, Level.FIXED_SEED, notes=(Note("no-worker", "…"),))
    assert "1 of 8 runs" in warnings_of(study, silent)["hook-never-started"].message


def test_deterministic_runs_that_differ_are_told(study, records):
    differing = changed(records, Level.DETERMINISTIC, digests={"weights.initial": "aa", "weights.final": "bb"})
    assert "2 different initial weights" in warnings_of(study, differing)["deterministic-differs"].message


def test_deterministic_runs_whose_values_differ_are_told_without_a_digest_with_what_was_seen_open(study, records):
    plain = [replace(record, digests={}) for record in records]
    assert "deterministic-differs" not in warnings_of(study, plain)
    effective = ENVIRONMENT["effective"] | {"open": ["put_ has no deterministic kernel"]}
    differing = changed(plain, Level.DETERMINISTIC, results={"test_acc": 0.123}, environment={"effective": effective})
    told = warnings_of(study, differing)["deterministic-differs"]
    assert "2 different values of test_acc in 8 runs; seen open: put_ has no deterministic kernel" in told.message
    assert told.next_step.startswith("try one thread (--threads 1 and a new --store")


def test_one_thread_is_not_proposed_where_runs_had_one(study, records):
    requested = {"requested": {**ENVIRONMENT.get("requested", {}), "threads": 1}}
    alone = [replace(record, environment={**record.environment, **requested}) for record in records]
    differing = changed(alone, Level.DETERMINISTIC, digests={"weights.final": "bb"})
    assert warnings_of(study, differing)["deterministic-differs"].next_step.startswith("look for data workers")


def test_seeds_that_ran_once_are_no_identical_runs():
    study = make_study(levels=(Level.FIXED_SEED,), seeds=tuple(range(6)), repeats=1, metrics=DECLARED)
    assert "6 seeds" in warnings_of(study, trained_records(study))["no-identical-runs"].message


def test_threads_that_differ_are_told(study, records):
    effective = ENVIRONMENT["effective"] | {"torch": {"threads": 1}}
    differing = changed(records, Level.DETERMINISTIC, environment={"effective": effective})
    assert "torch.threads 1 / 2" in warnings_of(study, differing)["threads-differ"].message


def test_machines_that_differ_are_told(study, records):
    effective = ENVIRONMENT["effective"] | {"cpu": {"affinity": 2, "model": "Xeon"}}
    differing = changed(records, Level.DETERMINISTIC, environment={"effective": effective})
    assert "cpu.model" in warnings_of(study, differing)["machine-differs"].message


def test_packages_that_differ_are_told(study, records):
    old, new = ({**ENVIRONMENT["effective"], "packages": {"timm": one, "numpy": "2.0"}} for one in ("0.9", "1.0"))
    same = [replace(record, environment={"effective": old}) for record in records]
    assert "packages-differ" not in warnings_of(study, same)
    differing = changed(same, Level.DETERMINISTIC, environment={"effective": new})
    message = warnings_of(study, differing)["packages-differ"].message
    assert "timm 1.0 and 0.9" in message or "timm 0.9 and 1.0" in message
    assert "numpy" not in message


def test_a_version_that_ran_with_the_lock_of_the_study_is_told(study, records):
    noted = changed(records, Level.DEFAULT, notes=(Note("lock-of-the-study", "v1 has another req.txt"),))
    told = warnings_of(study, noted)["lock-of-the-study"]
    assert "v1 has another req.txt: all versions of the code ran with the packages of the study's" in told.message
    assert "git show REF:./" in told.next_step


def test_standard_inputs_that_differ_are_told(study, records):
    def reading(digest):
        return {**ENVIRONMENT, "requested": {"stdin": {"sha256": digest, "bytes": 4}}}

    same = [replace(record, environment=reading("aa")) for record in records]
    assert "input-differs" not in warnings_of(study, same)
    differing = changed(same, Level.DETERMINISTIC, environment=reading("bb"))
    assert "2 different standard inputs" in warnings_of(study, differing)["input-differs"].message


def test_versions_of_the_code_that_differ_are_told(study, records):
    warning = warnings_of(study, changed(records, Level.DEFAULT, code={"script": "other"}))["code-differs"]
    assert "2 versions of the code (script differ)" in warning.message


def test_the_verdict_does_not_call_runs_of_different_code_identical(study, records):
    mixed = changed(records, Level.FIXED_SEED, code={"script": "other"}, digests={"final_weights": "cc"})
    result = analyse_study(study, mixed)
    (told,) = [line for line in verdict(result) if "at level fixed-seed" in line]
    assert "the runs are of different code, so this is no spread of identical runs" in told
    assert "seed fixed, yet" not in told
    assert any("with the seed fixed (runs of different code)" in line for line in headline(result))
    assert not any("different code" in line for line in verdict(analyse_study(study, records)))


def test_files_that_runs_were_given_and_that_differ_are_told(study, records):
    def given(digest, commit):
        told = {"effective": {**ENVIRONMENT["effective"], "sources": [{"path": "t.py", "sha256": "aa"}]}}
        files = [{"path": "lr.json", "sha256": digest}, {"path": f"{commit}.txt", "sha256": commit}]
        return {**told, "requested": {"given_files": files}}

    def code(commit):
        return {"commit": commit, "sources_sha256": "bb"}

    first = [replace(record, environment=given("aa", "1"), code=code("1")) for record in records]
    same = changed(first, Level.DEFAULT, environment=given("aa", "2"), code=code("2"))
    assert "code-differs" not in warnings_of(study, same), "the commit around files that are the same"
    edited = changed(first, Level.DEFAULT, environment=given("bb", "2"), code=code("2"))
    assert "different versions of lr.json" in warnings_of(study, edited)["code-differs"].message


def test_files_that_were_edited_while_they_ran_are_told(study, records):
    noted = changed(records, Level.DEFAULT, notes=(Note("edited-while-running", "source was edited: t.py"),))
    told = warnings_of(study, noted)["edited-while-running"]
    assert "runs source was edited: t.py" in told.message
    assert "code = REF" in told.next_step


def test_a_working_copy_that_is_not_what_the_study_was_read_with_is_told(study, records):
    def made(diff, found, ref="."):
        requested = {"code": {"ref": ref, "commit": "c", **({"diff": diff} if diff else {})}}
        code = {"commit": "c", "dirty": bool(found), "diff_sha256": found}
        return {"environment": {**ENVIRONMENT, "requested": requested}, "code": code}

    for diff in ("", "dd"):
        same = [replace(record, **made(diff, diff)) for record in records]
        assert "working-copy-changed" not in warnings_of(study, same)
        moved = changed(same, Level.DEFAULT, **made(diff, "ee"))
        assert "since the study was read" in warnings_of(study, moved)["working-copy-changed"].message
        named = changed(same, Level.DEFAULT, **made(diff, "ee", "v1"))
        assert "working-copy-changed" not in warnings_of(study, named), "a checkout has notes of its own"


def test_levels_that_were_started_differently_do_not_compare_in_time(study, records):
    fresh = [replace(record, launch="fresh") if record.cell.level is Level.DEFAULT else record for record in records]
    message = warnings_of(study, fresh)["launch-differs"].message
    assert "runs at default were started fresh, those at deterministic, fixed-seed warm" in message


def test_levels_whose_start_up_is_known_compare_however_they_were_started(study, records):
    known = [replace(record, startup_seconds=0.5) for record in records]
    fresh = [replace(record, launch="fresh") if record.cell.level is Level.DEFAULT else record for record in known]
    assert "launch-differs" not in warnings_of(study, fresh)


def test_mixed_launch_modes_are_told(study, records):
    assert "fresh, warm" in warnings_of(study, changed(records, Level.DEFAULT, launch="fresh"))["launch-mixed"].message


def test_a_metric_that_no_run_logged_lists_those_that_exist():
    study = make_study(metrics={"test_ac": Metric("test_ac")}, levels=(Level.DEFAULT,))
    warning = warnings_of(study, with_results([0.5] * 8))["metric-not-logged"]
    assert "'test_ac'" in warning.message
    assert "did you mean 'test_acc'?" in warning.message


def test_no_metric_at_all_is_told():
    found = warnings_of(
        make_study(levels=(Level.DEFAULT,)), [make_record(make_cell(repeat=place)) for place in range(8)]
    )
    assert "isorun.result(" in found["no-metric"].next_step


def test_no_metric_quotes_what_was_seen_and_not_taken():
    left = Note("stdout.left-out", "left out: lr: a setting (first in 'lr 0.1')")
    not_taken = Note("stdout.not-taken", "not read as metrics: cost (first in 'cost 0.3'); name them by a pattern")
    other = Note("no-digest", "no weights")
    runs = [make_record(make_cell(repeat=place), notes=(left, other, not_taken)) for place in range(8)]
    message = warnings_of(make_study(levels=(Level.DEFAULT,)), runs)["no-metric"].message
    assert message.count("first in 'lr 0.1'") == message.count("name them by a pattern") == 1
    assert "no weights" not in message


OFFER = Note("files.offered", "--file 'logs/*/m.csv' would read val_acc 0.7, f1 0.5 (other runs worked in this folder)")


def test_no_metric_names_the_command_that_reads_what_is_there():
    runs = [make_record(make_cell(repeat=place), notes=(OFFER,)) for place in range(8)]
    command = " ".join(runs[0].cell.command)
    next_step = warnings_of(make_study(levels=(Level.DEFAULT,)), runs)["no-metric"].next_step
    assert next_step.startswith(f"isorun run --file 'logs/*/m.csv' --store NEW -- {command}, or files = [")


def test_a_declared_metric_that_only_a_file_has_is_found_there():
    study = make_study(metrics={"f1": Metric("f1", "higher")}, levels=(Level.DEFAULT,))
    runs = [replace(run, notes=(OFFER,)) for run in with_results([0.5] * 8)]
    assert "--file 'logs/*/m.csv'" in warnings_of(study, runs)["metric-not-logged"].next_step
    other = make_study(metrics={"f": Metric("f", "higher")}, levels=(Level.DEFAULT,))
    assert "--file" not in warnings_of(other, runs)["metric-not-logged"].next_step


def test_files_that_were_relied_on_are_told_once_with_their_values():
    read = Note("files.relied", "--file 'logs/*/m.csv' reads val_acc 0.7, f1 0.5")
    runs = [replace(run, notes=(read,)) for run in with_results([0.5] * 8)]
    told = warnings_of(make_study(metrics=DECLARED, levels=(Level.DEFAULT,)), runs)["metric-from-files"]
    assert told.message.endswith("'logs/*/m.csv' (val_acc 0.7, f1 0.5)")
    assert not told.voids


def test_files_with_other_values_than_were_printed_are_told(study, records):
    note = Note("files.differs", "val_acc was 0.9 at the end, and m.csv ends with 0.7")
    condition = warnings_of(study, changed(records, Level.DEFAULT, notes=(note,)))["files-differ"]
    assert "1 of 8 runs" in condition.message
    assert condition.message.endswith(note.message)


def test_what_a_level_answered_is_told_once_with_its_line(study, records):
    def notes(record):
        seed = hash(record.run_id)
        return (
            Note("generator-seeded", f"numpy.random.default_rng at train.py:3 had no seed and was given {seed}"),
            Note("setting-answered", "cudnn.benchmark was to be True at train.py:5; the level answered with False"),
        )

    altered = [
        replace(record, notes=notes(record)) if record.cell.level is Level.DETERMINISTIC else record
        for record in records
    ]
    condition = warnings_of(study, altered)["training-altered"]
    assert condition.message == (
        "the level deterministic answered for the training in 8 of 8 runs, as it is to: numpy.random.default_rng at "
        "train.py:3 had no seed and was given the run's; cudnn.benchmark was to be True at train.py:5, and is False"
    )
    assert condition.groups == ("LeNet at level deterministic",)
    assert not condition.voids


def test_only_the_first_answers_are_told(study, records):
    many = tuple(Note("setting-answered", f"threads was to be 7 at a.py:{line}") for line in range(5))
    message = warnings_of(study, changed(records, Level.DETERMINISTIC, notes=many))["training-altered"].message
    assert "1 of 8 runs" in message
    assert message.endswith("a.py:2; and 2 more")


def test_a_chosen_metric_is_told_with_the_way_to_declare_it():
    found = warnings_of(make_study(levels=(Level.DEFAULT,)), with_results([0.5] * 8))
    assert '[metrics."test_acc"]' in found["metric-chosen"].next_step
    assert "higher" not in found["metric-chosen"].message


def test_a_guessed_direction_is_told_with_the_word_that_told_it():
    study = make_study(levels=(Level.DEFAULT,), metrics={"test_acc": Metric("test_acc")})
    warning = warnings_of(study, with_results([0.5] * 8))["direction-guessed"]
    assert "guessed from 'acc'" in warning.message
    assert not warning.voids


def test_an_unknown_direction_voids_claims_while_the_spread_is_still_shown():
    study = make_study(levels=(Level.DEFAULT,), metrics={"foo": Metric("foo")})
    records = [make_record(make_cell(repeat=at), results={"foo": value}) for at, value in enumerate([1.0, 2.0] * 4)]
    result = analyse_study(study, records)
    (warning,) = [warning for warning in result.conditions if warning.code.startswith("direction")]
    assert (warning.code, warning.voids) == ("direction-unknown", True)
    assert result.groups[0].selections[0].every.metrics["foo"].overall.n == 8


def test_values_that_are_not_finite_are_named():
    study = make_study(levels=(Level.DEFAULT,), metrics=DECLARED)
    records = with_results([0.5] * 7 + [float("nan")])
    assert records[7].run_id in warnings_of(study, records)["metric-not-finite"].message


def test_few_runs_are_told():
    study = make_study(levels=(Level.DEFAULT,), repeats=4, metrics=DECLARED)
    warning = warnings_of(study, with_results([0.5, 0.6, 0.7, 0.8]))["few-runs"]
    assert warning.groups == ("LeNet at level default: 4",)


def test_runs_that_failed_or_are_missing_are_told():
    study = make_study(levels=(Level.DEFAULT,), metrics=DECLARED)
    failed = replace(make_record(make_cell(repeat=6)), state=RunState.FAILED, reason="exit code 3")
    found = warnings_of(study, [*with_results([0.1, 0.2, 0.3, 0.4, 0.5]), failed])
    assert "1 run left no result (exit code 3)" in found["runs-failed"].message
    assert "2 runs of the 8" in found["runs-missing"].message
    stopped = replace(make_record(make_cell(repeat=7)), state=RunState.INTERRUPTED, reason="stopped on request")
    found = warnings_of(study, [*with_results([0.1, 0.2, 0.3, 0.4, 0.5]), failed, stopped])
    assert "2 runs left no result (exit code 3; stopped on request)" in found["runs-failed"].message


def test_draws_that_failed_before_others_took_their_places_are_told():
    study = make_study(levels=(Level.DEFAULT,), metrics=DECLARED)
    finished = with_results([0.1, 0.2, 0.3, 0.4, 0.5])
    failed = replace(finished[0], state=RunState.FAILED, results={}, reason="exit code 3")
    again = replace(finished[0], attempt=2)
    found = warnings_of(study, [failed, again, *finished[1:]])
    assert "runs-failed" not in found
    assert found["draws-failed-before"].message.startswith("1 run failed")
    stopped = replace(failed, state=RunState.INTERRUPTED)
    assert "draws-failed-before" not in warnings_of(study, [stopped, again, *finished[1:]])


def test_a_rule_that_picks_nothing_in_some_runs_is_told(study, records):
    gone = {name: series for name, series in records[0].series.items() if name != "val_loss"}
    found = warnings_of(study, changed(records, Level.DEFAULT, series=gone))
    assert "best-loss picked no epoch in 1 run (val_loss was not logged)" in found["selection-without-epoch"].message


def test_a_group_in_which_a_rule_picks_nothing_is_told_as_that():
    """Its runs have the metric; what they lack is what their epochs are picked by."""
    study = make_study(levels=(Level.DEFAULT, Level.FIXED_SEED))
    cut = [
        replace(run, series={name: found for name, found in run.series.items() if name != "val_loss"})
        if run.cell.level is Level.FIXED_SEED
        else run
        for run in trained_records(study)
    ]
    *_, said = verdict(analyse_study(study, cut))
    assert said.endswith("8 runs finished, none with an epoch that best-loss picks (val_loss was not logged).")


def test_a_metric_that_picks_its_own_epoch_is_told():
    study = make_study(levels=(Level.DEFAULT,), metrics={"val_acc": Metric("val_acc")})
    assert "too good" in warnings_of(study, trained_records(study))["selected-on-itself"].message


def test_the_only_value_of_a_run_is_not_the_best_of_many():
    study = make_study(levels=(Level.DEFAULT,), metrics={"val_acc": Metric("val_acc")})
    once = [replace(run, series={"val_acc": make_series([0.5])}) for run in with_results([0.5] * 8)]
    assert "selected-on-itself" not in warnings_of(study, once)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("val_acc", "isorun.log(epoch=..., val_acc=...)"),
        ("val-error", 'isorun.log(epoch=..., **{"val-error": ...})'),
        ("validation/accuracy", 'isorun.log(epoch=..., **{"validation/accuracy": ...})'),
    ],
)
def test_the_line_that_is_proposed_is_python(name, call):
    study = make_study(levels=(Level.DEFAULT,), metrics={name: Metric(name)})
    series = {name: make_series([0.5, 0.25])}
    read = [replace(run, series=series, results={}, origins={name: "stdout: x"}) for run in with_results([0.5] * 8)]
    assert call in warnings_of(study, read)["metric-from-output"].next_step
    compile(call, "proposed", "eval")


def test_final_values_in_place_of_those_of_the_epoch_are_told():
    study = make_study(levels=(Level.DEFAULT,), metrics=DECLARED)
    records = [replace(run, series={"val_loss": make_series([1.0, 0.5])}) for run in with_results([0.5] * 8)]
    assert (
        "test_acc was not logged at the epoch picked by best-loss"
        in warnings_of(study, records)["final-value-used"].message
    )


def test_classes_of_the_end_in_place_of_those_of_the_epoch_are_told():
    study = make_study(levels=(Level.DEFAULT,), metrics=DECLARED)
    series = {"val_loss": make_series([1.0, 0.5, 0.7]), "test_acc": make_series([0.4, 0.6, 0.5])}
    classes = {"test_acc": {"cat": 0.5, "dog": 0.6}}
    kept_at_end = [replace(run, series=series, per_class=classes) for run in with_results([0.5] * 8)]
    told = warnings_of(study, kept_at_end)
    assert told["final-classes-used"].message == (
        "test_acc of every class was not logged at the epoch picked by best-loss: "
        "the values that classes had at the end of the run are shown"
    )
    assert "final-value-used" not in told
    logged = {**series, "test_acc[cat]": make_series([0.3, 0.5, 0.5]), "test_acc[dog]": make_series([0.5, 0.7, 0.6])}
    logged_every_epoch = [replace(run, series=logged) for run in kept_at_end]
    assert "final-classes-used" not in warnings_of(study, logged_every_epoch)


def test_metrics_read_from_the_output_are_shown_with_a_line():
    study = make_study(levels=(Level.DEFAULT,), metrics=DECLARED)
    records = [
        replace(run, origins={"test_acc": "stdout: name: value"}, log_tail="epoch 3\ntest_acc: 0.5 done\n")
        for run in with_results([0.5] * 8)
    ]
    assert '"test_acc: 0.5 done"' in warnings_of(study, records)["metric-from-output"].message


def test_where_nothing_was_read_a_pattern_from_a_printed_line_is_proposed():
    study = make_study(levels=(Level.DEFAULT,))
    records = [replace(run, results={}, log_tail="begin\nSeparation: 0.953\n") for run in with_results([0.5] * 8)]
    pattern = r"Separation: (?P<separation>[-+.\de]*\d)"
    assert f"isorun run --pattern '{pattern}'" in warnings_of(study, records)["no-metric"].next_step
    silent = [replace(run, log_tail="begin\n") for run in records]
    assert "pattern" not in warnings_of(study, silent)["no-metric"].next_step


def test_the_line_shown_is_one_of_a_run_that_gave_the_metric_and_has_a_number():
    study = make_study(levels=(Level.DEFAULT,), metrics=DECLARED)
    first, *others = with_results([0.5] * 8)
    records = [
        replace(first, results={}, log_tail="test_acc=1e-10, trial_id=3\n"),
        *(
            replace(run, origins={"test_acc": "stdout: name value"}, log_tail="w: test_acc ▁\nw: test_acc 0.5\n")
            for run in others
        ),
    ]
    found = warnings_of(study, records)
    assert 'as in "w: test_acc 0.5"' in found["metric-from-output"].message
    assert f"test_acc is missing from 1 of 8 finished runs ({first.run_id})" in found["runs-without-metric"].message


def test_the_same_warning_of_several_groups_is_one(study, records):
    mixed = [replace(record, launch="fresh") if record.cell.repeat == 0 else record for record in records]
    assert len(warnings_of(study, mixed)["launch-mixed"].groups) == 3


def test_every_warning_says_what_to_do_next(study, records):
    silent = [replace(record, notes=(Note("no-worker", ""),), launch=record.cell.id) for record in records[:9]]
    found = analyse_study(make_study(), silent).conditions
    assert len(found) >= 5
    assert all(warning.next_step and warning.message for warning in found)


def test_epochs_that_begin_again_are_told(study, records):
    again = Series((1.0, 2.0, 1.0, 2.0), (1.0, 2.0, 3.0, 4.0), (0.6, 0.9, 0.8, 0.7))
    series = {**records[0].series, "test_acc": again}
    warning = warnings_of(study, changed(records, Level.DEFAULT, series=series))["epochs-restart"]
    assert warning.message.startswith("epochs begin again in 1 of 24 runs (test_acc)")


def test_batches_that_begin_again_with_every_epoch_are_no_restart(study, records):
    batches = Series((1.0, 2.0, 1.0, 2.0), (1.0, 2.0, 3.0, 4.0), (0.6, 0.9, 0.8, 0.7))
    series = {**records[0].series, "batch_loss": batches}
    assert warnings_of(study, changed(records, Level.DEFAULT, series=series)) == {}


def test_what_a_function_returned_in_vain_is_told(study, records):
    noted = changed(records, Level.DEFAULT, notes=(Note("bad-return", "train returned float; a mapping is allowed"),))
    assert "train returned float" in warnings_of(study, noted)["bad-return"].message


def test_runs_without_a_worker_are_not_said_to_differ_though_all_is_fixed(study, records):
    silent = [
        replace(record, digests={}, results={"test_acc": place / 100}, notes=(Note("no-worker", "none"),))
        if record.cell.level is Level.DETERMINISTIC
        else record
        for place, record in enumerate(records)
    ]
    told = warnings_of(study, silent)
    assert "hook-never-started" in told
    assert "deterministic-differs" not in told


def test_values_printed_without_an_epoch_are_told(study, records):
    note = Note(
        "stdout.no-epoch", "metric 'test_acc' was printed 2 times without an epoch or step: taken for one training"
    )
    other = Note(
        "stdout.no-epoch", "metric 'loss' was printed 9 times without an epoch or step: taken for one training"
    )
    told = warnings_of(study, changed(records, Level.DEFAULT, notes=(note, other)))
    assert set(told) == {"printed-without-epoch"}
    assert "'test_acc' was printed 2 times" in told["printed-without-epoch"].message


@pytest.mark.parametrize(
    ("note", "is_told"),
    [
        (Note("stdout.values-left-out", "values of 'test_acc' were left out: a cell is no number"), True),
        (Note("stdout.values-left-out", "values of 'other' were left out: a cell is no number"), False),
        (Note("stdout.replaced", "metric 'test_acc' was printed with its epoch and again without one"), True),
        (Note("stdout.several", "metric 'test_acc' was printed with several values in one epoch or step"), True),
        (Note("files.bad-line", "m.csv, line 3: 2 cells under 3 names; 1 such line left out"), True),
        (Note("files.limit", "m.csv: only the first 1,000,000 rows were read"), True),
        (Note("files.limit", "other.csv: only the first 1,000,000 rows were read"), False),
        (Note("files.bad-line", "other.csv, line 3: 2 cells under 3 names; 1 such line left out"), False),
        (Note("files.left-out", "left out: val_acc: two columns have this name (m.csv, line 1)"), True),
    ],
)
def test_values_that_were_not_read_are_told_where_they_are_judged(study, records, note, is_told):
    noted = changed(records, Level.DEFAULT, notes=(note,), origins={"test_acc": "file: m.csv"})
    told = warnings_of(study, noted)
    assert ("values-left-out" in told) == is_told
    if is_told:
        assert note.message in told["values-left-out"].message
        assert "isorun.log(" in told["values-left-out"].next_step


def test_the_same_note_on_a_file_of_each_run_counts_the_runs_together(study, records):
    noted = [
        replace(
            record,
            notes=(Note("files.bad-line", f"runs/{record.run_id}/m.csv, line 3: 2 cells; 1 line left out"),),
            origins={"test_acc": f"file: runs/{record.run_id}/m.csv"},
        )
        for record in records[:3]
    ]
    told = warnings_of(study, [*noted, *records[3:]])["values-left-out"].message
    assert told.endswith("(3 runs)")
    assert told.count("m.csv") == 1


def test_a_seed_that_differs_between_identical_runs_is_named_as_seen_open(study, records):
    clocked = [
        replace(
            record,
            digests={"weights.final": str(place)},
            seeded=(Seeded("random.seed", str(place), "t.py:3"), Seeded("numpy.random.seed", "7", "t.py:4")),
        )
        if record.cell.level is Level.DETERMINISTIC
        else record
        for place, record in enumerate(records)
    ]
    told = warnings_of(study, clocked)["deterministic-differs"].message
    assert told.endswith("; seen open: random.seed at t.py:3 was given different seeds")


def test_runs_that_were_ended_early_are_told(study, records):
    noted = changed(records, Level.DEFAULT, notes=(Note("ended-early", "isorun ended the training after 20 steps"),))
    assert "ended the training after 20 steps" in warnings_of(study, noted)["ended-early"].message


def test_a_training_that_outlived_its_command_is_told(study, records):
    noted = changed(records, Level.DEFAULT, notes=(Note("training-outlived", "a Python process outlived the command"),))
    assert "outlived the command" in warnings_of(study, noted)["training-outlived"].message


def test_a_python_that_a_launcher_started_out_of_reach_is_told(study, records):
    noted = changed(records, Level.DEFAULT, notes=(Note("python-unreached", "Python was started (train.py) alone"),))
    assert "a Python was started (train.py)" in warnings_of(study, noted)["python-unreached"].message


def test_each_note_that_is_told_at_once_is_one_that_the_end_of_runs_looks_for(study, records):
    """A run whose notes say nothing loads no analysis, so that the codes stand in two places."""
    checks = Path(group_conditions.__file__).read_text()
    codes = re.findall(r'(?:_of_notes\(\s*|_noted\(records, )"([a-z-]+)"', checks)
    noted = replace(records[0], notes=tuple(Note(code, "as noted") for code in codes))
    assert {condition.code for condition in told_at_once(study, [noted])} == workflow._TOLD_AT_ONCE


def test_a_script_that_starts_the_one_that_trains_was_not_edited(study, records):
    def wrapped(record):
        script = next((word for word in record.cell.command if word.endswith(".py")), "launch.py")
        given = {"requested": {"given_files": [{"path": script, "sha256": "aa"}]}}
        cell = replace(record.cell, command=("python", script))
        return replace(record, cell=cell, environment={**record.environment, **given}, code={"script_sha256": "bb"})

    assert "code-differs" not in warnings_of(study, [wrapped(record) for record in records])


LOST = [0.9, 0.5, float("nan"), float("inf")]


@pytest.mark.parametrize(
    ("series", "told"),
    [
        ({"val_loss": LOST, "test_acc": [0.1, 0.5, 0.4, 0.1]}, "val_loss"),
        ({"val_loss": [0.9, 0.5, 0.6, 0.7], "test_acc": LOST}, "test_acc"),
        ({"val_loss": [0.9, 0.5, 0.6, 0.7], "train_loss": LOST, "test_acc": [0.1, 0.5, 0.4, 0.1]}, "train_loss"),
        ({"val_loss": [0.9, 0.5, 0.6, 0.7], "test_acc": [0.1, 0.5, 0.4, 0.1]}, ""),
        ({"val_loss": [float("nan"), 0.9, float("nan"), 0.5, float("nan")], "test_acc": [0.1, 0.5, 0.4, 0.1, 0.1]}, ""),
    ],
    ids=["what picks", "the result", "a training loss", "none", "epochs without validation"],
)
def test_runs_that_ended_in_nothing_after_the_epoch_they_are_judged_at_are_told(series, told):
    study = make_study(levels=(Level.DEFAULT,), metrics=DECLARED)
    records = [
        make_record(make_cell(repeat=place), series={name: make_series(values) for name, values in series.items()})
        for place in range(3)
    ]
    found = warnings_of(study, records).get("diverged-afterwards")
    assert (found is not None) == bool(told)
    if found is not None:
        assert f"3 of 3 finished runs ended with NaN or infinite values of {told}" in found.message
        assert (found.voids, len(found.groups)) == (False, 1)


def test_runs_judged_at_their_end_are_not_told_twice_that_they_diverged():
    study = make_study(levels=(Level.DEFAULT,), metrics=DECLARED)
    records = [make_record(make_cell(repeat=place), series={"test_acc": make_series(LOST)}) for place in range(3)]
    found = warnings_of(study, records)
    assert "metric-not-finite" in found
    assert "diverged-afterwards" not in found
