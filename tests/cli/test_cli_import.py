"""isorun import and export, as they are typed, and mistyped."""

import gzip
import json
import os
import shutil
from pathlib import Path

import pytest

from stand_in_mlflow import interpreter_with_mlflow

KEPT = Path(__file__).parent.parent / "share" / "kept"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mlflow.db").write_bytes(gzip.decompress((KEPT / "mlflow" / "mlflow.db.gz").read_bytes()))
    shutil.copytree(KEPT / "wandb", tmp_path / "wandb")
    return tmp_path


def test_an_import_is_reported_on_by_its_name_and_goes_out_again(folder, shell):
    done = shell("import", "mlflow:sqlite:///mlflow.db", "--experiment", "digits", "--approach", "model")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("mlflow:sqlite:///mlflow.db: 6 new runs with 42 values.\n")
    assert "next: isorun report digits" in done.stdout
    assert "[seed-from-parameter]" in done.stdout
    told = json.loads(shell("import", "mlflow:sqlite:///mlflow.db", "--experiment", "digits", "--json").stdout)
    assert told["runs"] == {"new": 0, "known": 6, "updated": 0, "grown": []}
    report = shell("report", "digits")
    assert report.returncode == 0, report.stderr
    assert "cnn at level fixed-seed: test_acc" in report.stdout
    compared = shell("compare", "digits", "--a", "cnn", "--b", "mlp", "--where", "level=fixed-seed", "--by", "approach")
    assert "Seeds are what a parameter of the imported runs says" in " ".join(compared.stdout.split())
    out = shell("export", "csv", "digits", "--to", "told")
    assert out.returncode == 0, out.stderr
    assert (folder / "told" / "runs.csv").is_file()
    again = shell("export", "csv", "digits", "--to", "told")
    assert again.returncode == 1
    assert "is there already" in again.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["mlflow.db"], "isorun import mlflow:mlflow.db"),
        (["wandb"], "isorun import wandb:wandb"),
        (["mlfow:mlflow.db"], "did you mean 'mlflow'?"),
        (["mlflow:missing.db"], "missing.db is not there"),
        (["mlflow:wandb"], "there is no experiment of MLflow in wandb"),
        (["wandb:mlflow.db"], "mlflow.db is no log of W&B"),
        (["optuna:mlflow.db"], "mlflow.db is no database of Optuna"),
        (["tensorboard:wandb"], "there is no event file in wandb"),
        (["mlflow:mlflow.db", "--experiment", "digit"], "digits (2)"),
        (["mlflow:mlflow.db", "--approach", "modell"], "did you mean 'model'?"),
        (["mlflow:mlflow.db", "--name", "a b"], "not a usable name"),
        (["mlflow:postgresql://me:hidden@host/db"], "mlflow:postgresql://me:***@host/db"),
        (["mlflow:http://me:hidden@127.0.0.1:9"], "does not answer"),
        (["aim:wandb"], "there is no repository of Aim in wandb"),
    ],
)
def test_mistakes_are_told_with_what_to_do(folder, shell, words, says):
    done = shell("import", *words)
    assert done.returncode == 1
    assert says in done.stderr
    assert "hidden" not in done.stderr + done.stdout
    assert "Traceback" not in done.stderr


def test_nothing_more_of_an_imported_study_can_be_run(folder, shell):
    assert shell("import", "wandb:wandb", "--name", "tracked").returncode == 0
    for form, says in (("tensorboard", "isorun does not write"), ("mlfow", "did you mean 'mlflow'?")):
        refused = shell("export", form, "tracked")
        assert refused.returncode == 1
        assert says in refused.stderr
    missing = shell("export", "mlflow", "tracked", "--python", "/nowhere/python")
    assert missing.returncode == 1
    assert "--python /nowhere/python cannot be started" in missing.stderr


def test_a_table_of_runs_says_which_columns_are_results(folder, shell):
    (folder / "runs.csv").write_text("model,lr,acc\na,0.1,0.9\na,0.1,0.91\nb,0.1,0.8\nb,0.1,0.82\n")
    refused = shell("import", "csv:runs.csv")
    assert refused.returncode == 1
    assert "--metric acc" in refused.stderr
    done = shell("import", "csv:runs.csv", "--metric", "acc:higher", "--approach", "model")
    assert done.returncode == 0, done.stderr
    assert "4 new runs" in done.stdout
    assert shell("compare", "runs").returncode == 0


TABLE = "run,params.model,params.seed,metrics.acc,metrics.loss,status\n" + "".join(
    f"{model}{seed},{model},{seed},0.{90 + seed},0.{30 + seed},FINISHED\n" for model in "ab" for seed in range(3)
)


def test_a_metric_is_asked_for_by_its_name_and_one_that_no_run_has_is_refused(folder, shell):
    (folder / "runs.csv").write_text(TABLE)
    for wrong in ("metrics.acc", "model", "status", "nothing"):
        refused = shell("import", "csv:runs.csv", "--metric", f"{wrong}:higher")
        assert refused.returncode == 1
        assert f"'{wrong}'" in refused.stderr
        assert "acc" in refused.stderr
    assert not (folder / ".isorun").exists()
    done = shell("import", "csv:runs.csv", "--approach", "model", "--metric", "acc:higher")
    assert done.returncode == 0, done.stderr
    assert json.loads(shell("summarize", "runs", "--json").stdout)[0]["n"] == 3
    refused = shell("import", "mlflow:mlflow.db", "--experiment", "digits", "--metric", "test_ac")
    assert refused.returncode == 1
    assert "did you mean 'test_acc'?" in refused.stderr


def test_what_is_advised_of_imported_runs_can_be_done(folder, shell):
    """No study file declares them, and isorun cannot make more: what it says next is another import, or the tracker."""
    (folder / "runs.csv").write_text(f"{TABLE}z,b,7,nan,,FAILED\n")
    (folder / "one.csv").write_text("run,params.seed,metrics.acc\nr0,0,0.9\n")
    assert shell("import", "csv:runs.csv", "--approach", "model").returncode == 0
    assert shell("import", "csv:one.csv", "--name", "one").returncode == 0
    advised = []
    for words in (("report", "runs"), ("report", "one"), ("compare", "runs"), ("compare", "runs", "--metric", "loss")):
        done = shell(*words)
        advised += [part.partition("\n\n")[0] for part in f"{done.stdout}\n{done.stderr}".split("next:")[1:]]
    said = " ".join(" ".join(advised).split())
    for impossible in ("isorun run", "repeats", "in the study", "seeds =", "output.log", "isorun.log"):
        assert impossible not in said, said
    assert "isorun import … --metric acc:higher" in said
    assert shell("import", "csv:runs.csv", "--approach", "model", "--metric", "acc:higher").returncode == 0
    codes = [one["code"] for one in json.loads(shell("report", "runs", "--json").stdout)["warnings"]]
    assert not {"metric-chosen", "direction-guessed"} & set(codes)


def test_a_failed_run_of_a_tracker_is_left_to_nobody(folder, shell):
    (folder / "runs.csv").write_text(f"{TABLE}z,b,7,nan,,FAILED\n")
    (folder / "imported").write_text("#!/bin/sh\ntouch ran\n")  # a program that is called as such cells begin
    (folder / "imported").chmod(0o755)
    assert shell("import", "csv:runs.csv", "--approach", "model").returncode == 0
    for words in (("run", "runs", "--queue"), ("run", "runs", "--dry-run"), ("run", "runs")):
        refused = shell(*words)
        assert refused.returncode == 1
        assert "isorun cannot make more" in refused.stderr
    done = shell("worker", env={"PATH": f"{folder}:{os.environ['PATH']}"})
    assert "nothing was left to take" in done.stdout
    assert not (folder / "ran").exists()
    assert "left-to-tracker" in shell("worker", "--study", "runs").stdout
    assert shell("status").stdout == "this store: 6 finished, 0 running, 1 did not finish\n"


def test_a_second_export_to_mlflow_writes_no_run_twice(folder, shell):
    python = interpreter_with_mlflow(folder)
    assert shell("import", "wandb:wandb", "--name", "tracked").returncode == 0
    words = ["export", "mlflow", "tracked", "--python", python]
    first = json.loads(shell(*words, "--json").stdout)
    kept = folder / "tracked-mlflow.db"
    written = json.loads(kept.read_text())
    assert (first["runs"], first["there"]) == (len(written), 0)
    again = shell(*words)
    said = " ".join(again.stdout.split())
    assert f"0 new runs of the study tracked with 0 values; {len(written)} there already." in said
    assert json.loads(kept.read_text()) == written
    told = json.loads(shell(*words, "--json").stdout)
    assert (told["runs"], told["values"], told["there"]) == (0, 0, len(written))

    half, other, *rest = written
    half["status"] = "RUNNING"
    other["tags"] = {name: text.replace('"content"', '"of-old"') for name, text in other["tags"].items()}
    kept.write_text(json.dumps([half, other, *rest]))
    more = json.loads(shell(*words, "--json").stdout)
    assert (more["runs"], more["there"]) == (1, len(written) - 1), "one that broke off is made whole beside it"
    assert "export.beside" in [one["code"] for one in more["conditions"]]


def test_a_second_export_for_wandb_adds_what_is_new(folder, shell):
    assert shell("import", "mlflow:mlflow.db", "--experiment", "digits", "--name", "tracked").returncode == 0
    words = ["export", "wandb-offline", "tracked", "--json"]
    first = json.loads(shell(*words).stdout)
    gone, changed, *_ = sorted((folder / "tracked-wandb").iterdir())
    shutil.rmtree(gone)
    again = json.loads(shell(*words).stdout)
    assert (again["runs"], again["there"]) == (1, first["runs"] - 1)
    (log,) = changed.glob("*.wandb")
    log.write_bytes(log.read_bytes()[:-1])
    refused = shell(*words)
    assert refused.returncode == 1
    assert "is there already, and is not this run as it is now" in refused.stderr
