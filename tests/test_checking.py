"""Checking without processes: what is run first, what a baseline may be, and what is refused."""

import csv
import random
from contextlib import closing
from dataclasses import replace

import pytest

import isorun
import isorun.showing
from isorun.analysis.checks import CheckVerdict
from isorun.baselines import open_runs
from isorun.checking import CheckQuestion, check, check_runs
from isorun.errors import InputError, StoreMissing
from isorun.report.checks import check_comment
from isorun.study.design import Study
from isorun.testing.instant_executor import Computed, InstantExecutor
from isorun.testing.memory_store import MemoryStore
from isorun.workflow import records, run

isorun.showing.install()


def small(**changes):
    given = {
        "approaches": {"net": "python train.py 0"},
        "repeats": 8,
        "metrics": {"test_acc": {"direction": "higher"}},
    }
    return Study("small", **(given | changes))


def trained(shift=0.0, salt="", name="test_acc", broken=()):
    """A training whose accuracy is 90 % and a bit; broken: repeats that fail."""

    def compute(job):
        if job.cell.repeat in broken:
            raise RuntimeError("no such file")
        drawn = random.Random(f"{salt} {job.cell.approach} {job.cell.level} {job.cell.seed} {job.cell.repeat}")
        return Computed({name: drawn.gauss(0.9 - shift, 0.004)})

    return compute


def made(study=None, store=None, compute=None):
    """A store with the runs of the study."""
    store = MemoryStore() if store is None else store
    with closing(InstantExecutor(compute or trained(salt="main"))) as executor:
        run(study or small(), store=store, executor=executor, keep_study=True)
    return store


def checked(baseline, study=None, compute=None, **options):
    with closing(InstantExecutor(compute or trained(salt="branch"))) as executor:
        return check(study or small(), baseline, **{"store": MemoryStore(), "executor": executor, **options})


def test_a_regression_is_found_and_a_harmless_change_passes():
    baseline = made()
    worse = checked(baseline, compute=trained(0.05), margin=0.5)
    assert (worse.verdict, worse.exit_code()) == (CheckVerdict.WORSE, 3)
    same = checked(baseline, margin=1.0)
    assert (same.verdict, same.exit_code()) == (CheckVerdict.NOT_WORSE, 0)


def test_what_is_missing_is_run_first_and_only_that():
    store, counted = MemoryStore(), []

    def compute(job):
        counted.append(job)
        return trained(salt="branch")(job)

    baseline = made()
    checked(baseline, compute=compute, store=store, margin=1.0)
    checked(baseline, compute=compute, store=store, margin=1.0)
    assert len(counted) == 8


def test_without_run_it_judges_what_is_recorded_and_says_what_is_missing():
    store = made(small(repeats=6), compute=trained(salt="branch"))
    result = check(small(), made(), store=store, run=False, margin=1.0)
    assert result.groups[0].new.units == 6
    assert "2 of 8 runs of small are missing" in next(c.message for c in result.conditions if c.code == "runs-missing")


def test_a_margin_is_in_points_for_accuracies_and_in_the_metrics_numbers_for_all_else():
    baseline = made()
    assert checked(baseline, margin=0.5).margin.size == pytest.approx(0.005)
    assert checked(baseline, margin=0.5).margin.words == "0.5 points"
    assert checked(baseline, margin=0.5, margin_unit="metric").margin.size == 0.5
    loss = small(metrics={"val_loss": {"direction": "lower"}})
    other = made(loss, compute=trained(name="val_loss", salt="main"))
    result = checked(other, loss, compute=trained(name="val_loss"), margin=0.1)
    assert (result.margin.size, result.margin.words) == (0.1, "0.1")
    with pytest.raises(InputError, match="neither"):
        checked(other, loss, compute=trained(name="val_loss"), margin=0.1, margin_unit="points")


def test_runs_of_the_baseline_itself_are_refused():
    baseline = made()
    with pytest.raises(InputError, match="baseline's own"):
        checked(baseline, store=baseline)


def test_another_metric_direction_level_and_name_are_refused_before_a_run():
    def never(job):
        raise AssertionError("nothing is to be run")

    baseline = made()
    wrong = [
        (small(metrics={"val_loss": {"direction": "lower"}}), "no run left the metric 'val_loss'"),
        (small(metrics={"test_acc": {"direction": "lower"}}), "lower is better here, and higher in the baseline"),
        (small(levels=["deterministic"]), "the levels differ"),
        (small(approaches={"other": "python train.py"}), "no group is the same"),
        (Study("else", approaches={"net": "python train.py 0"}), "keeps no study 'else'"),
    ]
    for study, why in wrong:
        with pytest.raises(InputError, match=why):
            checked(baseline, study, compute=never)


def test_another_scale_is_refused():
    percent = made(compute=lambda job: Computed({"test_acc": 90.0 + job.cell.repeat / 10}))
    with pytest.raises(InputError, match="not on the same scale"):
        checked(percent)


def with_files(store, study, digest, path="data/train.npz"):
    """The records of a study as if they had read a file."""
    asked = {"requested": {"read_files": [{"path": path, "sha256": digest}]}}
    return [replace(record, environment=asked) for record in records(study, store=store)]


def test_other_data_are_refused_unless_that_is_asked_for_and_settings_are_what_a_change_is_about():
    first, second = made(), made(compute=trained(salt="branch"))
    new = open_runs(with_files(second, small(), "b" * 64))
    old = open_runs(with_files(first, small(), "a" * 64))
    new = replace(new, records=tuple(replace(one, started_at="2027-01-01T00:00:00Z") for one in new.records))
    with pytest.raises(InputError, match="different data"):
        check_runs(new, old, CheckQuestion(margin=1.0))
    told = check_runs(new, old, CheckQuestion(margin=1.0, other_data=True))
    assert "other-data" in [condition.code for condition in told.conditions]
    settings = [open_runs(with_files(store, small(), sha, "conf.yaml")) for store, sha in ((second, "b"), (first, "a"))]
    result = check_runs(*settings, CheckQuestion(margin=1.0))
    assert "conf.yaml" in result.changed


def test_a_changed_command_is_told():
    result = checked(made(), small(approaches={"net": "python train.py 1"}), margin=1.0)
    assert result.changed == ("the command of net",)


def test_groups_that_one_side_lacks_are_told_and_in_no_verdict():
    baseline = made(small(approaches={"net": "python train.py 0", "old": "python old.py"}))
    result = checked(baseline, small(approaches={"net": "python train.py 0", "new": "python new.py"}), margin=1.0)
    assert [group.name for group in result.groups] == ["net at level default"]
    assert {"no-baseline", "group-gone"} <= {condition.code for condition in result.conditions}


def test_where_keeps_some_groups_and_a_wrong_word_is_named():
    baseline = made(small(levels=["default", "fixed-seed"]))
    result = checked(baseline, small(levels=["default", "fixed-seed"]), where={"level": "default"}, margin=1.0)
    assert [group.name for group in result.groups] == ["net at level default"]
    with pytest.raises(InputError, match="told apart by 'lr'"):
        checked(baseline, where={"lr": "1"})


def test_the_same_seeds_are_paired_unless_told_otherwise():
    study = small(levels=["fixed-seed"], seeds=[1, 2, 3, 4, 5, 6], repeats=1)
    baseline = made(study)
    assert checked(baseline, study, margin=1.0).groups[0].paired
    assert not checked(baseline, study, margin=1.0, pair=False).groups[0].paired
    with pytest.raises(InputError, match="no seed is fixed"):
        checked(made(), pair=True)


def test_the_same_weights_are_unchanged():
    study = small(levels=["deterministic"], repeats=2)

    def compute(job):
        return Computed({"test_acc": 0.9}, digests={"weights.final": "ab"})

    result = checked(made(study, compute=compute), study, compute=compute)
    assert result.verdict is CheckVerdict.UNCHANGED
    other = checked(made(study, compute=compute), study, compute=lambda _: Computed({"test_acc": 0.9}))
    assert other.verdict is CheckVerdict.UNDECIDED


def test_failed_runs_keep_a_check_from_passing():
    result = checked(made(), compute=trained(broken=(0, 1)), margin=2.0)
    assert (result.verdict, result.failed, result.exit_code()) == (CheckVerdict.UNDECIDED, 2, 1)
    assert "runs-failed" in [condition.code for condition in result.all_conditions]


def test_a_change_that_breaks_every_run_is_told_as_that():
    result = checked(made(), compute=trained(broken=range(8)), margin=2.0)
    assert (result.verdict, result.failed, result.exit_code()) == (CheckVerdict.UNDECIDED, 8, 1)
    assert "net at level default: 8 of 8 new runs failed" in str(result)
    assert "8 of 8 new runs failed" in check_comment(result)
    assert "| — (n = 0) | — | undecided |" in check_comment(result)
    assert result.margin.unit == "points"
    with pytest.raises(InputError, match=r"none of 8 runs of .* finished") as refused:
        checked(made(compute=trained(broken=range(8))), margin=2.0)
    assert "no such file" in refused.value.found
    with pytest.raises(InputError, match="none of 8 runs of small finished"):  # which metric would be judged is unknown
        checked(made(), study=small(metrics={}), compute=trained(broken=range(8)), margin=2.0)


def test_a_group_that_is_broken_keeps_the_others_from_passing():
    study = small(configs={"good": {}, "bad": {}})

    def compute(job):
        return trained(salt="branch", broken=range(8) if job.cell.config == "bad" else ())(job)

    result = checked(made(study), study, compute=compute, margin=2.0)
    assert [group.verdict for group in result.groups] == [CheckVerdict.NOT_WORSE, CheckVerdict.UNDECIDED]
    assert (result.verdict, result.failed, result.exit_code()) == (CheckVerdict.UNDECIDED, 8, 1)


def test_a_run_that_diverged_is_counted_and_not_left_out():
    def compute(job):
        return Computed({"test_acc": float("nan")}) if job.cell.repeat < 7 else trained()(job)

    result = checked(made(), compute=compute, margin=0.5)
    assert (result.groups[0].new.units, result.groups[0].new.diverged) == (8, 7)
    assert result.verdict is CheckVerdict.WORSE


@pytest.fixture
def table(tmp_path):
    """A table of 8 runs of main, as another tool might have written it."""
    path = tmp_path / "main.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["approach", "level", "run", "test_acc"])
        rows.writerows(["net", "default", k, 0.9 + k / 1000] for k in range(8))
    return path


def test_a_table_is_a_baseline(table):
    assert checked(str(table), compute=trained(0.05), margin=0.5).verdict is CheckVerdict.WORSE
    assert checked(table, margin=2.0).verdict is CheckVerdict.NOT_WORSE
    with pytest.raises(InputError, match="no column 'val_acc'"):
        checked(table, small(metrics={"val_acc": {}}))
    with pytest.raises(InputError, match="nothing of the study"):
        checked(table, small(levels=["deterministic"]))


def test_a_table_whose_seeds_are_missing_in_part_gives_no_verdict():
    rows = {"seed": ["1", "2", "3", "4", "", "", "", ""], "test_acc": [0.95 + place / 1000 for place in range(8)]}
    result = checked(rows, margin=0.5)
    assert str(result.verdict) == "undecided"
    assert [one.code for one in result.all_conditions if one.voids] == ["seeds-missing"]


def test_a_table_without_the_column_that_tells_groups_apart_is_refused(table):
    study = small(approaches={"net": "python train.py {config.lr}"}, configs={"one": {"lr": 1}, "two": {"lr": 2}})
    with pytest.raises(InputError, match="no column config"):
        checked(table, study)
    assert checked(table, study, where={"config": "one"}, margin=2.0).verdict is CheckVerdict.NOT_WORSE


def test_a_folder_store_a_study_file_and_a_kept_name_are_baselines(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("print('test_acc', 0.9)\n")
    text = 'name = "small"\nrepeats = 8\n[approaches.net]\ncommand = "python train.py 0"\n[metrics.test_acc]\n'
    (tmp_path / "study.toml").write_text(text + 'direction = "higher"\n')
    file = isorun.Study.load("study.toml")
    made(file, store="main-store")
    assert checked("main-store", file, margin=2.0).verdict is CheckVerdict.NOT_WORSE
    made(file, store=None if (tmp_path / ".isorun").exists() else str(tmp_path / ".isorun"))
    assert checked("study.toml", file, margin=2.0, store="new-store").verdict is CheckVerdict.NOT_WORSE
    before = Study("before", approaches={"net": "python train.py 1"}, repeats=8, metrics={"test_acc": {}})
    made(before, store="new-store")
    assert checked("before", file, margin=2.0, store="new-store").verdict is CheckVerdict.NOT_WORSE
    with pytest.raises(InputError, match="folder without a store"):
        checked(str(tmp_path), file)
    with pytest.raises(InputError, match="there is no baseline 'mian'"):
        checked("mian", file)
    with pytest.raises((InputError, StoreMissing)):
        checked("nothing-here.isorun", file)


def test_the_baseline_is_read_as_it_was_declared_although_its_file_has_changed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = 'name = "small"\nrepeats = 8\n[approaches.net]\ncommand = "python train.py {}"\n[metrics.test_acc]\n'
    (tmp_path / "train.py").write_text("")
    (tmp_path / "study.toml").write_text(text.format(0) + 'direction = "higher"\n')
    with closing(InstantExecutor(trained(salt="main"))) as executor:
        run("study.toml", store="main-store", executor=executor)
    (tmp_path / "study.toml").write_text(text.format(1) + 'direction = "higher"\n')
    result = checked("main-store", "study.toml", margin=2.0, store="new-store")
    assert (result.groups[0].baseline.units, result.changed) == (8, ("the command of net",))


def test_lists_and_records_are_held_against_each_other():
    new, old = open_runs([0.8, 0.81, 0.82, 0.83, 0.84, 0.85]), open_runs([0.9, 0.91, 0.92, 0.93, 0.94, 0.95])
    result = check_runs(new, old, CheckQuestion(margin=0.01, metric="test_acc"))
    assert (result.verdict, result.margin.unit) == (CheckVerdict.WORSE, "")
    with pytest.raises(InputError, match="does not tell which direction"):
        check_runs(new, old, CheckQuestion())


def test_the_answer_tells_itself_and_has_json():
    result = checked(made(), compute=trained(0.05), margin=0.5)
    text = str(result)
    assert text.startswith("Worse: test_acc of small is worse than that of the baseline the store by more than 0.5")
    assert "net at level default: 90." in text
    data = result.to_json()
    assert (data["verdict"], data["margin"], data["margin_unit"]) == ("worse", 0.005, "points")
    assert data["groups"][0]["difference"] == pytest.approx(-0.05, abs=0.01)
