"""Imports: nothing is lost, nothing is doubled, and what is not known is said."""

import json
import os
import shlex
import shutil
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress

import pytest
from kept_runs import unpacked

import isorun
from isorun.errors import InputError, StudyError
from isorun.session import open_store
from isorun.share import exporting, importing
from isorun.share.exporting import export_runs
from isorun.share.foreign_records import tracked_of
from isorun.share.importing import import_runs
from isorun.share.telling_apart import ToldApart, seed_parameter
from isorun.share.trackers import Chosen, TrackedRun, WrittenRuns, opened_tracker
from isorun.share.trackers.mlflow import Mlflow
from isorun.share.trackers.own_packages import asked_of_package
from isorun.store import STUDIES
from isorun.store.folder import FolderStore
from isorun.study.records import RunState
from isorun.testing.made_records import make_record
from isorun.testing.memory_store import MemoryStore
from isorun.workflow import analyse_runs, records, session_of

PLACES = {
    "mlflow": "mlflow/mlflow.db.gz",
    "wandb": "wandb",
    "tensorboard": "tensorboard",
    "optuna": "optuna/s.db.gz",
    "trackio": "trackio/digits.db.gz",
}


@pytest.fixture
def database(tmp_path):
    return unpacked("mlflow/mlflow.db.gz", tmp_path)


@pytest.fixture
def store(tmp_path):
    return str(tmp_path / "store")


def imported(database, store, **options):
    return import_runs(f"mlflow:sqlite:///{database}", store=store, experiments=["digits"], **options)


def asked(database, sql, *values):
    with closing(sqlite3.connect(database)) as opened, opened:
        return opened.execute(sql, values).fetchall()


@pytest.mark.parametrize("tracker", PLACES)
def test_a_record_gives_back_the_very_run_that_was_imported(tracker, tmp_path, store):
    """Every value, parameter, tag and time, through the store and back."""
    place = f"{tracker}:{unpacked(PLACES[tracker], tmp_path)}"
    before = {
        run.key: run for run in opened_tracker(place).read(Chosen(("digits",) if tracker != "tensorboard" else ()))
    }
    import_runs(place, store=store, name="kept", experiments=("digits",) if tracker != "tensorboard" else ())
    again = {run.key: run for run in (tracked_of(record, "kept") for record in records("kept", store=store))}
    assert set(again) == set(before)
    for key, run in before.items():
        assert again[key].content() == run.content(), key


def test_a_second_import_doubles_nothing(database, store):
    first = imported(database, store)
    ids = {record.run_id for record in records("digits", store=store)}
    second = imported(database, store)
    assert (first.new, second.new, second.known, second.updated, second.grown) == (6, 0, 6, 0, [])
    assert {record.run_id for record in records("digits", store=store)} == ids


def test_new_runs_are_added_those_that_ended_taken_and_those_that_grew_told(database, store):
    imported(database, store)
    runs = dict(asked(database, "SELECT name, run_uuid FROM runs"))
    asked(database, "UPDATE runs SET status = 'FINISHED', end_time = start_time + 5000 WHERE name = 'going'")
    asked(database, "INSERT INTO metrics VALUES ('val_acc', 0.75, 1, ?, 1, 0)", runs["going"])
    asked(database, "INSERT INTO metrics VALUES ('val_acc', 0.9375, 1, ?, 3, 0)", runs["cnn-1"])
    columns = ", ".join(
        row[1] for row in asked(database, "PRAGMA table_info(runs)") if row[1] not in ("run_uuid", "name")
    )
    asked(
        database,
        f"INSERT INTO runs (run_uuid, name, {columns}) SELECT 'new', 'new', {columns} FROM runs WHERE name = 'cnn-2'",
    )
    done = imported(database, store)
    assert (done.new, done.known, done.updated, done.grown) == (1, 4, 1, ["cnn-1"])
    assert "runs-grew" in [condition.code for condition in done.conditions]
    found = {record.environment["imported"]["name"]: record for record in records("digits", store=store)}
    assert found["going"].state is RunState.FINISHED
    assert found["going"].attempt == 2
    assert len(found["cnn-1"].series["val_acc"].values) == 3
    done = imported(database, store, update=True)
    assert (done.updated, done.grown) == (1, [])
    found = {record.environment["imported"]["name"]: record for record in records("digits", store=store)}
    assert found["cnn-1"].series["val_acc"].values[-1] == 0.9375
    assert len([record for record in records("digits", store=store) if record.state is RunState.FINISHED]) == 6
    with open_store(store) as kept:  # what was recorded stays
        olds = [one for one in kept.records() if one.environment["imported"]["name"] == "cnn-1"]
        assert sorted(len(one.series["val_acc"].values) for one in olds) == [3, 4]


def test_runs_that_the_tracker_has_no_longer_stay(database, store):
    imported(database, store)
    asked(database, "UPDATE runs SET lifecycle_stage = 'deleted' WHERE name = 'cnn-2'")
    done = imported(database, store)
    assert (done.gone, done.new, done.known) == (1, 0, 5)
    assert any("deleted" in condition.message for condition in done.conditions)
    assert len(records("digits", store=store)) == 6


@pytest.mark.parametrize("kind", ["memory", "folder"])
def test_two_imports_into_a_study_at_once_lose_nothing_of_each_other(kind, tmp_path, monkeypatch):
    """Each reads what is kept, and puts its runs beside that: for one of them it was no longer what is kept."""
    both_read = threading.Barrier(2)
    real = importing.imported_study

    def slow(*given):
        with suppress(threading.BrokenBarrierError):
            both_read.wait(0.5)
        return real(*given)

    monkeypatch.setattr(importing, "imported_study", slow)
    tables = [tmp_path / f"{run}.csv" for run in "ab"]
    for table in tables:
        table.write_text(f"run_id,experiment,lr,metrics.acc\n{table.stem},e,0.1,0.5\n")
    with MemoryStore() if kind == "memory" else FolderStore(tmp_path / "store") as store:
        with ThreadPoolExecutor(2) as pool:
            done = list(pool.map(lambda table: import_runs(f"csv:{table}", store=store, name="s"), tables))
        assert [one.new for one in done] == [1, 1]
        found = records("s", store=store)
        assert {record.environment["imported"]["run"][-1] for record in found} == {"a", "b"}
        assert {record.cell.repeat for record in found} == {0, 1}, "both are runs of one config"
        assert not store.holders()


def test_an_import_that_was_cut_short_goes_on(database, store):
    """Records come first: without the study's document they are found again, the very same."""
    imported(database, store)
    with open_store(store) as kept:
        place = kept.documents(STUDIES).place("digits")
    before = {record.run_id for record in records("digits", store=store)}
    shutil.move(place, f"{place}.aside")
    assert imported(database, store).new == 6
    assert {record.run_id for record in records("digits", store=store)} == before


def test_the_seed_of_a_parameter_counts_and_is_said(database, store):
    done = imported(database, store, approach="model")
    assert "seed-from-parameter" in [condition.code for condition in done.conditions]
    result = analyse_runs("digits", store=store)
    groups = {group.key.label: group for group in result.groups}
    assert {run.seed for run in groups["cnn at level fixed-seed"].selections[0].runs} == {1, 2}
    comparison = isorun.compare("digits", a="cnn", b="mlp", where={"level": "fixed-seed"}, store=store)
    assert comparison.a.units.noun == "seed"
    assert "Seeds are what a parameter of the imported runs says" in str(comparison)


def test_unknown_seeds_are_units_unknown_in_every_answer(database, store):
    imported(database, store, approach="model", seed="none", ignore=["seed"])
    asked_of = {"value": "test_acc", "store": store}
    answers = [
        isorun.compare("digits", a="cnn", b="mlp", by="approach", **asked_of, drop_missing=True),
        isorun.rank("digits", by="approach", **asked_of, drop_missing=True),
        isorun.summarize("digits", **asked_of, drop_missing=True),
    ]
    for answer in answers:
        assert "units-unknown" in str(answer)
    assert "Units are unknown" in str(answers[0])
    assert "Units are unknown" in str(answers[1])


def test_configs_are_called_by_what_differs_and_keep_their_names(database, store):
    [[run]] = asked(database, "SELECT run_uuid FROM runs WHERE name = 'mlp-2'")
    asked(database, "UPDATE params SET value = '0.5' WHERE key = 'lr' AND run_uuid = ?", run)
    done = imported(database, store)
    named = {(approach, config) for approach, config, _ in done.groups}
    assert {("digits", "lr=0.1, model=cnn"), ("digits", "lr=0.5, model=mlp"), ("digits", "no parameters")} <= named
    asked(database, "INSERT INTO params SELECT 'more', 'x', run_uuid FROM runs WHERE name = 'broken'")
    second = imported(database, store)
    assert {(approach, config) for approach, config, _ in second.groups} == named


def test_the_same_runs_may_be_told_apart_in_another_way_under_another_name(database, store):
    imported(database, store)
    with pytest.raises(InputError, match="another --approach"):
        imported(database, store, approach="model")
    assert imported(database, store, approach="model", name="by-model").new == 6
    assert imported(database, store).known == 6


def test_names_that_no_run_has_are_refused(database, store):
    for options in ({"approach": "modle"}, {"seed": "sead"}, {"ignore": ["lrr"]}):
        with pytest.raises(InputError, match="no run has a parameter"):
            imported(database, store, **options)


@pytest.mark.parametrize("content", [b"", b"model,acc\nresnet,0.9\n", bytes(5000)], ids=["empty", "a table", "zeros"])
def test_a_file_without_an_event_is_no_run_of_tensorboard(tmp_path, store, content):
    (tmp_path / "runs.csv").write_bytes(content)
    with pytest.raises(InputError, match=r"runs\.csv is no event file"):
        import_runs(f"tensorboard:{tmp_path / 'runs.csv'}", store=store)
    with open_store(store) as kept:
        assert not list(kept.run_ids())


@pytest.mark.parametrize("kind", ["tensorboard", "wandb"])
def test_a_folder_that_may_not_be_read_is_told_and_nothing_is_imported_without_it(kind, tmp_path, store, monkeypatch):
    folder = unpacked(kind, tmp_path)
    locked = next(path for path in sorted(folder.rglob("*")) if path.is_dir())
    scan = os.scandir

    def refused(place):
        if str(place) == str(locked):
            raise PermissionError(13, "Permission denied", str(place))
        return scan(place)

    monkeypatch.setattr(os, "scandir", refused)
    with pytest.raises(InputError, match="cannot be read"):
        import_runs(f"{kind}:{folder}", store=store)
    with open_store(store) as kept:
        assert not list(kept.run_ids())


def test_a_study_that_isorun_made_is_not_mixed_with_imported_runs(database, store, tmp_path):
    study = isorun.Study("digits", approaches={"a": ["true"]}, folder=tmp_path)
    from isorun.workflow import remember

    remember(study, store=store)
    with pytest.raises(InputError, match="there is a study 'digits' already"):
        imported(database, store)


def test_more_runs_of_an_imported_study_cannot_be_made(database, store):
    imported(database, store)
    from isorun.workflow import load

    with pytest.raises(StudyError, match="were imported from mlflow"):
        session_of(load("digits", store=store), store=store)


def test_secrets_in_parameters_and_tags_are_not_kept(database, store):
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
    asked(database, "UPDATE tags SET value = ? WHERE key = 'team'", secret)
    asked(database, "INSERT INTO params SELECT 'api_key', ?, run_uuid FROM runs", secret)
    imported(database, store)
    found = records("digits", store=store)
    assert all(secret not in json.dumps(record.to_json()) for record in found)
    assert any("api_key, which looks like a secret" in note.message for record in found for note in record.notes)
    with open_store(store) as kept:
        assert secret not in json.dumps(kept.documents(STUDIES).read("digits"))


def test_what_has_no_place_in_a_record_is_named(tmp_path, store):
    done = import_runs(f"wandb:{unpacked('wandb', tmp_path)}", store=store)
    [told] = [condition.message for condition in done.conditions if condition.code == "imported.left-out"]
    assert "text logged as text (4 runs)" in told
    assert any(
        "text logged as text" in note.message for record in records("digits", store=store) for note in record.notes
    )


def test_directions_that_a_tracker_knows_are_declared(tmp_path, store):
    import_runs(f"optuna:{unpacked('optuna/s.db.gz', tmp_path)}", store=store, experiments=["digits"])
    [metric] = analyse_runs("digits", store=store).metrics
    assert (metric.name, metric.direction, metric.declared) == ("value", "higher", True)


def test_records_that_isorun_made_go_out_and_come_in_again(tmp_path, store):
    script = tmp_path / "train.py"
    script.write_text(
        "import sys\nfor e in range(3): print(f'epoch: {e} val_acc: {0.5 + e / 10}')\nprint('test_acc: 0.9')\n"
    )
    study = isorun.Study(
        "made",
        approaches={"one": ["python", "train.py", "{config.lr}"]},
        configs={"slow": {"lr": 0.1}},
        repeats=2,
        folder=tmp_path,
    )
    isorun.run(study, store=store)
    for form in ("csv", "wandb-offline"):
        done = export_runs(form, study, to=str(tmp_path / form), store=store)
        assert done.runs == 2
        other = import_runs(
            done.imports, store=str(tmp_path / f"{form}-store"), name="again", approach="isorun.approach"
        )
        assert other.new == 2
        told = [tracked_of(record, "made") for record in records(study, store=store)]
        again = [tracked_of(record, "again") for record in records("again", store=str(tmp_path / f"{form}-store"))]
        assert {run.name for run in told} == {run.name for run in again}
        for run in told:
            [found] = [one for one in again if one.tags["isorun.run"] == run.tags["isorun.run"]]
            assert found.params == run.params
            assert found.tags == run.tags
            assert {name: one.values for name, one in found.series.items()} == {
                name: one.values for name, one in run.series.items()
            }
            assert {name: one.times for name, one in found.series.items()} == {
                name: one.times for name, one in run.series.items()
            }
            assert (found.started, found.ended) == (run.started, run.ended)


@pytest.mark.parametrize("began", ["", "yesterday", "2026\x1b", "2026-13-01", "0001-01-01T00:00:00+23:59", "12"])
def test_runs_that_say_anything_for_when_they_began_go_out(began):
    assert tracked_of(make_record(started_at=began), "s").name == make_record().cell.label


def test_times_survive_epochs_of_an_hour(tmp_path, store):
    """Longer than what the store keeps to the millisecond."""
    lines = ["run_id,metric,step,time,value"]
    lines += [f"a,acc,{epoch},2026-01-01T{epoch:02}:00:00.{epoch:06}+00:00,0.5" for epoch in range(20)]
    folder = tmp_path / "told"
    folder.mkdir()
    (folder / "metrics.csv").write_text("\n".join(lines) + "\n")
    (folder / "runs.csv").write_text("run_id,experiment,status\na,hours,finished\n")
    import_runs(f"csv:{folder}", store=store)
    [run] = opened_tracker(f"csv:{folder}").read(Chosen())
    [record] = records("hours", store=store)
    assert tracked_of(record, "hours").series["acc"].times == run.series["acc"].times


@pytest.mark.long
def test_many_points_of_one_run_are_taken(tmp_path, store):
    folder = tmp_path / "wide"
    folder.mkdir()
    with (folder / "metrics.csv").open("w") as file:
        file.write("run_id,metric,step,value\n")
        file.writelines(f"a,acc,{step},0.5\n" for step in range(200_000))
    (folder / "runs.csv").write_text("run_id,experiment,status\na,long,finished\n")
    done = import_runs(f"csv:{folder}", store=store)
    assert done.values == 200_000


def test_the_next_commands_ask_for_the_same_runs_and_are_not_refused(database, store):
    """Without its experiment, its approach and its store the command would make another study, elsewhere."""
    asked(database, "DELETE FROM params WHERE key = 'seed'")
    told = imported(database, store, approach="model").conditions
    (next_step,) = [one.next_step for one in told if one.code == "units-unknown"]
    words = shlex.split(next_step.partition(",")[0])
    place = f"mlflow:sqlite:///{database}"
    chosen = ["--experiment", "digits", "--approach", "model", "--store", store]
    assert words == ["isorun", "import", place, *chosen, "--seed", "PARAMETER", "--name", "NAME"]
    with pytest.raises(InputError, match="another --seed"):
        imported(database, store, approach="model", seed="lr")
    by_lr = imported(database, store, approach="model", seed="lr", name="by-lr")
    (unknown,) = [one for one in by_lr.conditions if one.code == "units-unknown"]
    assert "(lr is no whole number from 0 on: 0.1" in unknown.message
    assert "--seed ANOTHER" in unknown.next_step
    assert "--seed PARAMETER" not in unknown.next_step


def test_a_parameter_called_experiment_or_name_tells_configs_apart():
    runs = [TrackedRun((str(n),), "filed", params={"experiment": str(n), "name": "x"}) for n in range(2)]
    by_experiment = ToldApart()
    by_experiment.learn(runs)
    assert [by_experiment.config_name(run) for run in runs] == ["experiment=0", "experiment=1"]
    by_parameter = ToldApart(by="model")
    assert by_parameter.config_of(TrackedRun(("1",), "filed", params={"model": "cnn", "lr": 1})) == {"lr": 1}


def test_an_export_shows_no_password(store, monkeypatch):
    monkeypatch.setattr(exporting.workflow, "load", lambda *_, **__: type("Study", (), {"name": "s"})())
    monkeypatch.setattr(exporting.workflow, "records", lambda *_, **__: [make_record()])
    monkeypatch.setattr(Mlflow, "write", lambda self, runs, _: WrittenRuns(self.place, len(list(runs)), 0))
    done = export_runs("mlflow", "s", to="http://me:hunter2@host:5000", store=store)
    assert "hunter2" not in f"{done.to_json()}{done.view()}{done.next_step}"


def test_rows_that_cannot_be_told_end_the_export_and_nobody_waits():
    def rows():
        yield {"place": "sqlite:///x.db"}
        raise ValueError("no such axis")

    with pytest.raises(ValueError, match="no such axis"):
        list(asked_of_package("mlflow", "mlflow_writing.py", arguments=[], rows=rows()))


def test_states_of_other_tools_tables_are_understood(tmp_path):
    table = tmp_path / "trials.csv"
    table.write_text("run_id,state,metrics.value\n0,COMPLETE,1\n1,PRUNED,2\n2,FAIL,3\n3,RUNNING,4\n")
    states = [run.state for run in opened_tracker(f"csv:{table}").read(Chosen())]
    assert states == [RunState.FINISHED, RunState.INTERRUPTED, RunState.FAILED, None]


@pytest.mark.parametrize("as_kept", [float, lambda seed: f"{seed}.0", str])
def test_a_seed_that_is_kept_as_a_decimal_is_a_seed(as_kept):
    """TensorBoard keeps all numbers as 64-bit floats, and a table with a gap in its column does."""
    runs = [
        TrackedRun((f"{seed}-{width}",), "e", params={"width": width, "seed": as_kept(seed)})
        for seed in (0, 3)
        for width in (8, 32)
    ]
    assert seed_parameter(runs) == "seed"
    told = ToldApart(seed="seed")
    assert [told.seed_of(run) for run in runs] == [0, 0, 3, 3]
    told.learn(runs)
    assert list(told.configs) == ["width=8", "width=32"]


@pytest.mark.parametrize("value", [0.5, "nan", "inf", -1.0, 1e300, True, "1.5"])
def test_what_is_no_whole_number_is_no_seed(value):
    assert seed_parameter([TrackedRun(("r",), "e", params={"seed": value})]) == ""
