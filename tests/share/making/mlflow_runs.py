"""python mlflow_runs.py FOLDER [TRACKING_URI]: the known runs, one that failed and one that goes on, by MLflow."""

import os
import sys

import known_runs as known
import mlflow

folder = sys.argv[1]
os.chdir(folder)
mlflow.set_tracking_uri(sys.argv[2] if len(sys.argv) > 2 else "sqlite:///mlflow.db")
mlflow.set_experiment("other")
with mlflow.start_run(run_name="elsewhere"):
    mlflow.log_metric("val_acc", 0.25)
mlflow.set_experiment(known.EXPERIMENT)
for model, seed in known.RUNS:
    with mlflow.start_run(run_name=known.name(model, seed)):
        mlflow.log_params(known.params(model, seed))
        mlflow.set_tag("team", "vision")
        for epoch, row in enumerate(known.rows(model, seed)):
            mlflow.log_metrics(row, step=epoch)
        mlflow.log_metric("test_acc", known.test_acc(model, seed))
        for step, value in enumerate(known.ODD):
            mlflow.log_metric("odd", value, step=step)
        mlflow.log_text("words", "words.txt")
try:
    with mlflow.start_run(run_name="broken"):
        mlflow.log_metric("val_acc", 0.5, step=0)
        raise RuntimeError
except RuntimeError:
    pass
mlflow.start_run(run_name="going")
mlflow.log_metric("val_acc", 0.125, step=0)
sys.stdout.flush()
os._exit(0)  # as one that is killed, or goes on
