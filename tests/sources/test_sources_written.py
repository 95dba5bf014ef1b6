"""Files that a run wrote and nobody named: forms of real libraries, what is relied on, and files made to do harm."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import sqlite3
import struct
import time
import zlib
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isorun.sources import Found, Reading, files_written, trackers, written
from isorun.sources.written import Looked, WrittenFile, found_among, look, relied_on
from isorun.study import Sources
from isorun.study.records import Series

REAL = Path(__file__).parent / "written"
SINCE = 1_700_000_000.0
"""Before all that the fixtures say of times."""


def run_in(folder: Path, **options) -> Looked:
    return Looked(folder, folder / "run", SINCE, whole=True, **options)


def looked(folder: Path, **options) -> list[WrittenFile]:
    return look(files_written(folder, SINCE), run_in(folder, **options))


def relied(folder: Path, **options) -> Found:
    return found_among(files_written(folder, SINCE), run_in(folder, **options), Found())


def values(found: Found) -> dict[str, list[float]]:
    return {name: list(series.values) for name, series in found.series.items()}


def put(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


DIGITS = {"val_acc": [0.5, 0.6, 0.7, 0.8], "train/loss": [1.0, 0.5, 1 / 3, 0.25]}
NOTEBOOK = {"val_acc": [0.5, 0.6, 0.7], "loss": [1.0, 0.5, 0.333], "test_acc": [0.9375], "final_f1": [0.75]}
KNOWN = {
    "papermill.ipynb": NOTEBOOK,
    "nbconvert.ipynb": NOTEBOOK,
    "timm_summary.csv": {
        "train_loss": [2.3, 2.1999999999999997, 2.0999999999999996],
        "eval_loss": [2.2, 2.1, 2.0],
        "eval_top1": [10.0, 11.0, 12.0],
        "eval_top5": [50.0, 51.0, 52.0],
    },
}


@pytest.mark.parametrize("name", KNOWN)
def test_what_a_library_wrote_is_read_as_it_was_written(tmp_path, name):
    shutil.copy(REAL / name, tmp_path)
    found = relied(tmp_path)
    assert values(found) == KNOWN[name]
    assert set(found.origins.values()) == {f"file: {name}"}


@pytest.mark.parametrize("name", ["lightning_metrics.csv", "events.out.tfevents.lightning"])
def test_lightning_logs_sparse_rows_to_a_table_or_to_events(tmp_path, name):
    folder = tmp_path / "lightning_logs" / "version_4"
    folder.mkdir(parents=True)
    shutil.copy(REAL / name, folder / name.removeprefix("lightning_"))
    found = relied(tmp_path)
    assert set(found.series) == {"train_loss", "val_acc"}
    assert [len(found.series[metric].values) for metric in ("train_loss", "val_acc")] == [6, 3]
    assert "version_*" in found.notes[-1].message


def test_transformers_leaves_its_history_and_its_results(tmp_path):
    for name in ("trainer_state.json", "all_results.json"):
        shutil.copy(REAL / name, tmp_path)
    found = relied(tmp_path)
    assert {name: len(series.values) for name, series in found.series.items()} == {
        "loss": 6,
        "eval_loss": 4,
        "eval_accuracy": 4,
        "train_loss": 1,
    }
    assert set(found.origins.values()) == {"file: trainer_state.json"}
    assert found.series["train_loss"].values == (0.6924886107444763,)


def test_every_file_of_a_library_says_how_it_was_made():
    assert set(json.loads((REAL / "index.json").read_text())) == {path.name for path in REAL.iterdir()} - {"index.json"}


def test_offline_records_of_weights_and_biases(tmp_path):
    shutil.copy(REAL / "run-digits.wandb", tmp_path)
    found = relied(tmp_path)
    assert found.series["val_acc"].values == (0.5, 0.6, 0.7, 0.8, 0.9)
    assert found.series["train/loss"].steps == (0.0, 1.0, 2.0, 3.0, 4.0)
    assert found.results == {"test_acc": 0.9375}
    assert found.series["val/loss"].values == (math.inf,)
    assert "lr" not in found.series
    assert "_runtime" not in found.series


def test_files_of_mlflow_are_one_source(tmp_path):
    shutil.copytree(REAL / "mlruns", tmp_path / "mlruns")
    [file] = looked(tmp_path)
    assert file.option == "--file 'mlruns/*/*/metrics/**/*'"
    assert {name: list(file.found.series[name].values) for name in DIGITS} == DIGITS
    asked = Reading(Sources(files=(file.option.split("'")[1],))).finish(tmp_path, SINCE)[0]
    assert values(asked)["train/loss"] == DIGITS["train/loss"]


def test_keras_logs_a_table_under_any_name(tmp_path):
    shutil.copy(REAL / "keras_training.log", tmp_path / "training.log")
    assert set(relied(tmp_path).series) == {"accuracy", "loss", "val_accuracy", "val_loss"}
    assert relied(tmp_path).series["val_accuracy"].steps == (0.0, 1.0, 2.0)


def test_sparse_rows_are_counted_by_timesteps(tmp_path):
    shutil.copy(REAL / "stable_baselines3_progress.csv", tmp_path / "progress.csv")
    found = relied(tmp_path)
    assert found.series["rollout/ep_rew_mean"].steps == (64.0, 128.0, 192.0, 256.0, 320.0)
    assert found.series["train/loss"].steps == (128.0, 192.0, 256.0, 320.0)
    assert not {"time/fps", "train/learning_rate", "train/n_updates"} & set(found.series)


MLFLOW = """CREATE TABLE "metrics" ("key" VARCHAR(250) NOT NULL, value FLOAT NOT NULL, timestamp BIGINT NOT NULL,
    run_uuid VARCHAR(32) NOT NULL, step BIGINT DEFAULT '0' NOT NULL, is_nan BOOLEAN DEFAULT '0' NOT NULL,
    CONSTRAINT metric_pk PRIMARY KEY ("key", timestamp, step, run_uuid, value, is_nan))"""
TRACKIO = """CREATE TABLE metrics (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, timestamp TEXT NOT NULL,
    run_name TEXT NOT NULL, step INTEGER NOT NULL, metrics TEXT NOT NULL, log_id TEXT, space_id TEXT)"""
NOW = SINCE + 60


def mlflow_database(path: Path, *runs: str, earlier: bool = True) -> Path:
    """As MLflow 3.17.2 makes its table of metrics."""
    with sqlite3.connect(path) as database:
        database.execute(MLFLOW)
        rows = [
            ("val_acc", value, int(NOW * 1000) + n, run, n, 0) for run in runs for n, value in enumerate([0.5, 0.6])
        ]
        rows += [("nothing", 0.0, int(NOW * 1000), run, 0, 1) for run in runs]
        rows += [("val_acc", 0.1, int(SINCE * 1000) - 5_000, "old", 0, 0)] if earlier else []
        database.executemany("INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)", rows)
    database.close()
    return path


def test_a_database_of_mlflow_gives_what_was_logged_since(tmp_path):
    mlflow_database(tmp_path / "mlflow.db", "a" * 32)
    found = relied(tmp_path)
    assert found.series["val_acc"].steps == (0.0, 1.0)
    assert found.series["val_acc"].values == (0.5, 0.6)
    assert list(found.series["val_acc"].seconds) == pytest.approx([60.0, 60.001])
    assert math.isnan(found.series["nothing"].values[0])


@pytest.mark.parametrize("name", ["mlflow.db", "mlruns", "run-digits.wandb", "papermill.ipynb"])
def test_what_is_longer_than_is_read_is_not_relied_on_and_told(tmp_path, monkeypatch, name):
    """The last value that was read is not the last one."""
    for limit, most in (("MOST_ROWS", 2), ("_MOST_LINES", 5)):
        monkeypatch.setattr(trackers, limit, most)
    if name == "mlflow.db":
        mlflow_database(tmp_path / name, "a" * 32)
    elif name == "mlruns":
        shutil.copytree(REAL / name, tmp_path / name)
    else:
        shutil.copy(REAL / name, tmp_path)
    found = relied(tmp_path)
    assert not found.series
    assert any("only the first" in note.message for note in found.notes)


def test_ends_of_names_may_be_written_in_capitals(tmp_path):
    put(tmp_path, "METRICS.CSV", "epoch,val_loss\n1,0.5\n2,0.4\n")
    assert relied(tmp_path).series["val_loss"].values == (0.5, 0.4)


def test_of_more_names_than_are_read_the_rest_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(written, "_MOST_NAMES", 2)
    put(tmp_path, "metrics.csv", "epoch,val_loss,val_acc,test_acc\n1,0.5,0.6,0.7\n")
    found = relied(tmp_path)
    assert set(found.series) == {"val_loss", "val_acc"}
    assert any("left out: all but the first 2 of 3 names" in note.message for note in found.notes)


def test_files_are_opened_as_long_as_all_together_are_not_too_much(tmp_path, monkeypatch):
    text = "epoch,val_loss\n1,0.5\n2,0.4\n"
    for name in ("metrics.csv", "scores.csv", "values.csv"):
        put(tmp_path, name, text)
    monkeypatch.setattr(written, "_MOST_BYTES", {True: len(text) + 5, False: 0})
    first, second = looked(tmp_path)
    assert (first.shown, first.why_not) == ("metrics.csv", "")
    # Of what may as well be a table of data nothing is said.
    assert (second.shown, second.why_not) == ("scores.csv", "it has 0 MiB and was not opened")


def test_two_runs_in_one_database_are_left_out_and_told(tmp_path):
    mlflow_database(tmp_path / "mlflow.db", "a" * 32, "b" * 32)
    found = relied(tmp_path)
    assert not found.series
    assert any("2 runs in mlflow.db" in note.message for note in found.notes)


def test_a_database_that_is_locked_is_read_all_the_same_and_nothing_is_left_beside_it(tmp_path):
    path = mlflow_database(tmp_path / "mlflow.db", "a" * 32)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    assert relied(tmp_path).series["val_acc"].values == (0.5, 0.6)
    holder.close()
    assert [item.name for item in tmp_path.iterdir()] == ["mlflow.db"]


@pytest.mark.parametrize("as_text", [str, str.encode], ids=["text", "bytes"])
def test_a_database_of_trackio(tmp_path, as_text):
    """As trackio 0.43 makes it: JSON in bytes, NaN as a text, its times in ISO form."""
    with sqlite3.connect(tmp_path / "digits.db") as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute(TRACKIO)
        for step in range(3):
            row = as_text(json.dumps({"epoch": step, "val_acc": step / 4, "train": {"loss": 1.0}, "gone": "NaN"}))
            when = datetime.fromtimestamp(NOW + step, UTC).isoformat()
            database.execute(
                "INSERT INTO metrics (run_id, timestamp, run_name, step, metrics) VALUES ('a', ?, 'sunset-0', ?, ?)",
                (when, step, row),
            )
    database.close()
    found = relied(tmp_path)
    assert found.series["val_acc"].values == (0.0, 0.25, 0.5)
    assert found.series["train/loss"].seconds == (60.0, 61.0, 62.0)


def test_values_in_the_log_of_a_database_count(tmp_path):
    database = sqlite3.connect(tmp_path / "mlflow.db")
    database.execute("PRAGMA journal_mode = WAL")
    database.execute(MLFLOW)
    database.execute("INSERT INTO metrics VALUES ('val_acc', 0.5, ?, 'a', 0, 0)", (int(NOW * 1000),))
    database.commit()
    assert relied(tmp_path).series["val_acc"].values == (0.5,)
    database.close()


TRAINER_STATE = {
    "best_metric": 0.75,
    "epoch": 2.0,
    "global_step": 20,
    "eval_steps": 500,
    "num_train_epochs": 2,
    "total_flos": 1e9,
    "log_history": [
        {"epoch": 1.0, "loss": 0.7, "learning_rate": 1e-4, "grad_norm": 1.5, "step": 10},
        {"epoch": 1.0, "eval_loss": 0.6, "eval_accuracy": 0.5, "eval_runtime": 0.1, "step": 10},
        {"epoch": 2.0, "loss": 0.5, "learning_rate": 5e-5, "grad_norm": 1.0, "step": 20},
        {"epoch": 2.0, "eval_loss": 0.4, "eval_accuracy": 0.75, "eval_runtime": 0.1, "step": 20},
        {"epoch": 2.0, "step": 20, "train_loss": 0.6, "train_runtime": 1.0, "train_samples_per_second": 9.0},
    ],
}


def test_the_states_of_checkpoints_are_the_beginnings_of_the_last_one(tmp_path):
    part = {**TRAINER_STATE, "log_history": TRAINER_STATE["log_history"][:2]}
    put(tmp_path, "out/checkpoint-10/trainer_state.json", json.dumps(part))
    put(tmp_path, "out/checkpoint-20/trainer_state.json", json.dumps(TRAINER_STATE))
    put(tmp_path, "out/all_results.json", json.dumps({"epoch": 2.0, "eval_accuracy": 0.75, "eval_runtime": 0.1}))
    put(tmp_path, "out/config.json", json.dumps({"loss": 0.1, "accuracy": 3}))
    found = relied(tmp_path)
    assert values(found) == {
        "loss": [0.7, 0.5],
        "eval_loss": [0.6, 0.4],
        "eval_accuracy": [0.5, 0.75],
        "train_loss": [0.6],
    }
    assert found.origins["loss"] == "file: out/checkpoint-20/trainer_state.json"


def test_lists_side_by_side_are_a_history_and_one_alone_is_not(tmp_path):
    put(tmp_path, "history.json", '{"loss": [1.0, 0.5], "val_accuracy": [0.5, 0.75]}')
    put(tmp_path, "other.json", '{"score": [0.1, 0.2, 0.3], "auc": 0.9}')
    found = relied(tmp_path)
    assert values(found) == {"loss": [1.0, 0.5], "val_accuracy": [0.5, 0.75], "auc": [0.9]}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("predictions.csv", "id,score\n1,0.5\n2,0.25\n"),
        ("models.csv", "model,accuracy\na,0.5\nb,0.25\n"),
        ("predictions.jsonl", '{"id": 1, "score": 0.5}\n{"id": 2, "score": 0.25}\n'),
        ("answers.json", '[{"id": 1, "score": 0.5}, {"id": 2, "score": 0.25}]'),
        ("nested.json", '{"rows": [{"score": 0.5}, {"score": 0.25}]}'),
        ("args.json", '{"accuracy": 0.5}'),
        ("model_config.json", '{"loss": 0.5}'),
        ("data.csv", "epoch,age,height\n1,30,180\n2,31,181\n"),
        ("notes.txt", "accuracy: 0.5\n"),
        ("metrics.csv", "epoch,loss\n1,0.5\n2,0.4\n1,0.6\n2,0.3\n"),
        ("log.jsonl", '{"step": 1, "loss": 0.5}\n{"step": 2, "loss": 0.4}\n{"step": 1, "loss": 0.6}\n'),
    ],
)
def test_what_is_not_surely_a_metric_of_one_training_is_not_relied_on(tmp_path, name, text):
    put(tmp_path, name, text)
    assert not relied(tmp_path).series


def test_a_file_that_is_not_relied_on_is_offered_with_why(tmp_path):
    put(tmp_path, "metrics.csv", "epoch,loss\n1,0.5\n2,0.4\n1,0.6\n")
    [note] = relied(tmp_path).notes
    assert note.code == "files.unread"
    assert note.message.startswith("--file metrics.csv was not read")
    assert "begin again" in note.message


def test_ultralytics_pads_its_columns(tmp_path):
    head = "                  epoch,         train/box_loss,   metrics/mAP50(B),                 lr/pg0"
    put(
        tmp_path,
        "runs/detect/train3/results.csv",
        f"{head}\n   1,   1.5,   0.25,   0.01\n   2,   1.25,   0.5,   0.02\n",
    )
    [file] = looked(tmp_path)
    assert values(file.found) == {"train/box_loss": [1.5, 1.25], "metrics/mAP50(B)": [0.25, 0.5]}
    assert file.option == "--file 'runs/detect/train*/results.csv'"


def test_files_that_disagree_are_left_out_by_name(tmp_path):
    put(tmp_path, "a/results.json", '{"test_acc": 0.9, "f1": 0.5}')
    put(tmp_path, "b2/results.json", '{"test_acc": 0.8}')
    found = relied(tmp_path)
    assert values(found) == {"f1": [0.5]}
    assert "0.9 in a/results.json and 0.8 in b2/results.json" in found.notes[0].message


def test_folders_that_name_splits_stay_in_the_names(tmp_path):
    put(tmp_path, "log/train/metrics.csv", "epoch,loss\n1,0.5\n2,0.4\n")
    put(tmp_path, "log/validation/metrics.csv", "epoch,loss\n1,0.6\n2,0.5\n")
    assert values(relied(tmp_path)) == {"train/loss": [0.5, 0.4], "validation/loss": [0.6, 0.5]}


def test_folds_in_numbered_folders_are_not_taken_for_one_training(tmp_path):
    put(tmp_path, "version_0/metrics.csv", "epoch,loss\n1,0.5\n2,0.4\n")
    put(tmp_path, "version_1/metrics.csv", "epoch,loss\n1,0.6\n2,0.5\n")
    assert not relied(tmp_path).series


def test_an_option_that_would_read_several_files_is_offered_for_none_of_them(tmp_path):
    for fold, value in ((1, 0.6), (2, 0.5)):
        put(tmp_path, f"fold{fold}/metrics.csv", f"epoch,acc\n0,0.1\n1,{value}\n")
    assert [file.option for file in looked(tmp_path)] == ["--file fold1/metrics.csv", "--file fold2/metrics.csv"]


def test_a_table_whose_last_rows_cannot_be_read_is_offered_and_not_relied_on(tmp_path):
    put(tmp_path, "metrics.csv", "epoch,loss,acc\n0,0.5,0.1\n1,0.4\n2,0.3,0.4,0.9\n")
    found = relied(tmp_path)
    assert values(found) == {}
    assert "2 cells under 3 names" in next(note.message for note in found.notes if note.code == "files.offered")


def test_what_was_to_be_reached_or_set_is_no_result(tmp_path):
    put(tmp_path, "results.json", '{"target_accuracy": 0.95, "config": {"loss": 3}, "accuracy": 0.9}')
    assert values(relied(tmp_path)) == {"accuracy": [0.9]}


def test_single_precision_is_no_disagreement(tmp_path):
    exact = 0.123456789
    [single] = struct.unpack("<f", struct.pack("<f", exact))
    put(tmp_path, "a.csv", f"epoch,loss\n1,{exact!r}\n")
    put(tmp_path, "b.csv", f"epoch,loss\n1,{single!r}\n")
    assert len(relied(tmp_path).series) == 1


def test_what_others_may_have_written_is_offered_and_not_relied_on(tmp_path):
    put(tmp_path, "metrics.csv", "epoch,loss\n1,0.5\n")
    found = relied(tmp_path, is_alone=False)
    assert not found.series
    assert "--isolate" in found.notes[0].message
    put(tmp_path, "run/metrics.csv", "epoch,loss\n1,0.25\n")
    assert values(relied(tmp_path, is_alone=False)) == {"loss": [0.25]}


def test_a_file_is_named_as_its_option_finds_it_in_every_run(tmp_path):
    put(tmp_path, "run/out3/metrics.csv", "epoch,loss\n1,0.25\n")
    [file] = looked(tmp_path)
    assert (file.shown, file.option) == ("{run_dir}/out3/metrics.csv", "--file '{run_dir}/out*/metrics.csv'")
    copied = tmp_path / "run" / "out3"
    [own] = look(files_written(copied, SINCE), Looked(copied, tmp_path / "run", SINCE))
    assert (own.shown, own.option) == ("metrics.csv", "--file metrics.csv")


def printed(name: str, *numbers: float) -> Found:
    steps = tuple(map(float, range(len(numbers))))
    return Found({name: Series(steps, steps, numbers)}, {}, {name: "stdout: name: value"})


@pytest.mark.parametrize(
    ("shown", "differs"), [(0.4, False), (0.44, False), (43.5, False), (0.4349, False), (0.47, True), (0.5, False)]
)
def test_printed_values_that_no_row_of_a_file_has_are_told(tmp_path, shown, differs):
    put(tmp_path, "metrics.csv", "epoch,val/loss\n1,0.5\n2,0.43487\n")
    own = printed("val_loss", 0.9, shown)
    found = found_among(files_written(tmp_path, SINCE), run_in(tmp_path, has_metrics=True), own)
    assert not found.series
    assert ("files.differs" in {note.code for note in found.notes}) == differs
    assert found.notes[0].message == "--file metrics.csv would read val/loss 0.43487"


@pytest.mark.parametrize(("shown", "differs"), [(1234570.0, False), (1235000.0, True)])
def test_large_values_that_were_printed_with_six_digits_are_the_same(tmp_path, shown, differs):
    put(tmp_path, "metrics.csv", "epoch,val_loss\n1,2345678.0\n2,1234567.0\n")
    own = printed("val_loss", shown)
    found = found_among(files_written(tmp_path, SINCE), run_in(tmp_path, has_metrics=True), own)
    assert ("files.differs" in {note.code for note in found.notes}) == differs


def test_settled_metrics_are_named_with_their_values(tmp_path):
    put(tmp_path, "lightning_logs/version_7/metrics.csv", "epoch,step,val_acc,loss\n0,1,,0.5\n0,1,0.75,\n")
    [note] = relied(tmp_path).notes
    assert note.code == "files.relied"
    assert note.message == "--file 'lightning_logs/version_*/metrics.csv' reads loss 0.5, val_acc 0.75"


# Files made to do harm.


def wandb_log(*records: bytes) -> bytes:
    framed = (struct.pack("<IHB", zlib.crc32(one, zlib.crc32(b"\1")), len(one), 1) + one for one in records)
    return b":W&B\xe1\xbe\x00" + b"".join(framed)


def test_a_record_that_says_it_has_two_gigabytes_is_torn(tmp_path):
    length = b"\x80\x80\x80\x80\x08"  # 2**31 as a varint
    (tmp_path / "run-x.wandb").write_bytes(wandb_log(b"\x12" + length + b"x"))
    assert not relied(tmp_path).series


def test_what_comes_before_a_torn_record_is_read(tmp_path):
    whole = (REAL / "run-digits.wandb").read_bytes()
    for end in (len(whole) - 3, len(whole) // 2, 9, 5):
        (tmp_path / "run-x.wandb").write_bytes(whole[:end])
        series = relied(tmp_path).series
        seen = list(series["val_acc"].values) if "val_acc" in series else []
        assert seen == [0.5, 0.6, 0.7, 0.8, 0.9][: len(seen)]
        assert bool(seen) == (end > 100)


def test_a_record_over_several_blocks_is_put_together(tmp_path):
    item = b"\x12\x07val_acc\x82\x01\x030.5"
    long_text = b"\x12\x04text\x82\x01" + b"\xc0\xb8\x02" + b'"' + b"x" * 39_998 + b'"'
    assert len(long_text) - 11 >= 40_000 - 2
    history = b"".join(b"\x0a" + varint(len(one)) + one for one in (long_text, item))
    record = b"\x12" + varint(len(history)) + history
    room = 32_768 - 7 - 7
    parts = [(2, record[:room]), (4, record[room:])]
    framed = b"".join(
        struct.pack("<IHB", zlib.crc32(data, zlib.crc32(bytes([kind]))), len(data), kind) + data for kind, data in parts
    )
    (tmp_path / "run-x.wandb").write_bytes(b":W&B\xe1\xbe\x00" + framed)
    assert relied(tmp_path).series["val_acc"].values == (0.5,)


def varint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def test_links_pipes_and_hidden_folders_are_no_files_of_the_run(tmp_path):
    outside = tmp_path / "outside"
    put(outside, "metrics.csv", "epoch,loss\n1,0.5\n")
    folder = tmp_path / "here"
    put(folder, ".cache/metrics.csv", "epoch,loss\n1,0.5\n")
    (folder / "linked.csv").symlink_to(outside / "metrics.csv")
    (folder / "folder").symlink_to(outside)
    (folder / "round").symlink_to(folder)
    os.mkfifo(folder / "pipe.csv")
    assert files_written(folder, SINCE) == []
    assert look([folder / "linked.csv", folder / "pipe.csv", folder / "gone.csv"], run_in(folder)) == []


def test_ten_gigabytes_are_not_read(tmp_path):
    for name in ("metrics.csv", "run-x.wandb", "events.out.tfevents.1"):
        with (tmp_path / name).open("wb") as file:
            file.truncate(10 * 2**30)
    began = time.process_time()
    files = looked(tmp_path)
    assert time.process_time() - began < 1
    assert {file.shown for file in files} >= {"metrics.csv", "run-x.wandb"}
    assert all("was not opened" in file.why_not for file in files)


@pytest.mark.parametrize("name", ["a.json", "a.ipynb", "a.jsonl"])
def test_a_million_brackets_are_no_metrics(tmp_path, name):
    put(tmp_path, name, "[" * 1_000_000)
    put(tmp_path, f"b{name}", '{"a":' * 1_000_000)
    assert not relied(tmp_path).series


def test_names_that_would_act_on_a_terminal_are_not_shown(tmp_path):
    put(tmp_path, "\x1b[31mmetrics.csv", "epoch,loss,\x1b[2Jacc\n1,0.5,0.25\n")
    [file] = looked(tmp_path)
    assert file.shown == "?[31mmetrics.csv"
    assert set(file.found.series) == {"loss"}


def test_not_finite_values_are_kept_as_they_are(tmp_path):
    put(tmp_path, "results.json", '{"test_loss": NaN, "val_loss": Infinity, "acc": 1e999}')
    found = relied(tmp_path)
    assert math.isnan(found.results["test_loss"])
    assert found.results["val_loss"] == math.inf


def test_a_view_is_no_table_of_metrics(tmp_path):
    with sqlite3.connect(tmp_path / "mlflow.db") as database:
        database.execute(
            "CREATE VIEW metrics AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
            "SELECT 'acc' AS key, i AS value, 9e18 AS timestamp, 'a' AS run_uuid, i AS step, 0 AS is_nan FROM n"
        )
    database.close()
    began = time.process_time()
    assert not relied(tmp_path).series
    assert time.process_time() - began < 1


def test_what_is_no_database_gives_nothing(tmp_path):
    put(tmp_path, "a.db", "no database")
    (tmp_path / "b.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 4000)
    (tmp_path / "c.sqlite").write_bytes(b"")
    assert not relied(tmp_path).series


@pytest.mark.parametrize("suffix", [".csv", ".json", ".jsonl", ".log", ".ipynb", ".wandb", ".db"])
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=300), keeps_head=st.booleans())
def test_no_file_makes_looking_fail(tmp_path, suffix, content, keeps_head):
    heads = {".wandb": b":W&B\xe1\xbe\x00", ".db": b"SQLite format 3\0", ".ipynb": b'{"cells": [', ".json": b'{"acc": '}
    (tmp_path / f"metrics{suffix}").write_bytes((heads.get(suffix, b"") if keeps_head else b"") + content)
    found = relied(tmp_path)
    assert set(found.origins) == set(found.series)
    assert not any("Error" in note.message for note in found.notes), "read, or found to be no such file"


def test_whatever_reading_raises_no_run_fails_of_it(tmp_path, monkeypatch):
    put(tmp_path, "metrics.csv", "epoch,loss\n1,0.5\n")
    monkeypatch.setattr(written, "read_data_text", lambda *_: 1 / 0)
    [note] = relied(tmp_path).notes
    assert "ZeroDivisionError" in note.message


def test_a_damaged_database_gives_what_it_gives(tmp_path):
    whole = mlflow_database(tmp_path / "whole.db", "a" * 32).read_bytes()
    (tmp_path / "whole.db").unlink()
    for place in range(0, len(whole), 977):
        (tmp_path / "mlflow.db").write_bytes(whole[:place] + b"\xff" * 64 + whole[place + 64 :])
        found = relied(tmp_path)
        assert not any("Error" in note.message for note in found.notes)
        assert all(value in (0.5, 0.6) or math.isnan(value) for value in values(found).get("val_acc", ()))


def test_deep_and_wide_folders_are_looked_at_in_part_and_new_ones_first(tmp_path):
    deep = tmp_path
    for _ in range(40):
        deep = deep / "d"
    put(deep, "metrics.csv", "epoch,loss\n1,0.5\n")
    wide = tmp_path / "data"
    wide.mkdir()
    for number in range(300):
        (wide / f"{number}.csv").touch()
    put(tmp_path, "z/logs/metrics.csv", "epoch,loss\n1,0.25\n")
    seen = files_written(tmp_path, SINCE)
    assert deep / "metrics.csv" not in seen
    assert tmp_path / "z/logs/metrics.csv" in seen
    assert len(seen) <= 300


def test_a_file_that_goes_meanwhile_hides_none_beside_it(tmp_path, monkeypatch):
    for name in ("a.json", "b.json", "c.json"):
        put(tmp_path, name, "{}")

    def listed(place, listing=os.scandir):
        with listing(place) as entries:
            kept = sorted(entries, key=lambda entry: entry.name)
        (tmp_path / "b.json").unlink()
        return contextlib.nullcontext(kept)

    monkeypatch.setattr(os, "scandir", listed)
    assert files_written(tmp_path, SINCE) == [tmp_path / "a.json", tmp_path / "c.json"]


def test_files_from_before_the_run_are_not_its_own(tmp_path):
    old = put(tmp_path, "metrics.csv", "epoch,loss\n1,0.5\n")
    os.utime(old, (SINCE - 60, SINCE - 60))
    assert files_written(tmp_path, SINCE) == []


def test_relying_on_nothing_is_empty():
    assert relied_on([]) == Found()


def test_what_isorun_told_of_all_runs_is_not_read_as_what_one_left(tmp_path):
    path = tmp_path / "kept.log"
    lines = "epoch 1: val_acc 0.5\nepoch 2: val_acc 0.75\n"
    told = Looked(tmp_path, tmp_path / "run", 0.0, whole=True)
    path.write_text(lines)
    assert look([path], told)
    path.write_text(f"digits: 24 runs to do\n{lines}")
    assert not look([path], told)


def test_the_store_of_another_isorun_in_the_folder_is_not_read(tmp_path):
    for place in ("other-store/runs/id-1", "outputs/runs/id-1"):
        folder = tmp_path / place
        folder.mkdir(parents=True)
        (folder / "printed.json").write_text('{"values": {"val_acc": 0.5}}')
    (tmp_path / "other-store" / "claims.lock").touch()
    assert files_written(tmp_path, SINCE) == [tmp_path / "outputs/runs/id-1/printed.json"]
