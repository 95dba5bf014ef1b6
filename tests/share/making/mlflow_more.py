"""python mlflow_more.py FOLDER: a new run, one that goes on now ends, and one that had finished grows."""

import os
import sys

from mlflow.tracking import MlflowClient

os.chdir(sys.argv[1])
client = MlflowClient("sqlite:///mlflow.db")
experiment = client.get_experiment_by_name("digits").experiment_id
runs = {run.info.run_name: run.info.run_id for run in client.search_runs([experiment])}
client.log_metric(runs["going"], "val_acc", 0.75, step=1)
client.set_terminated(runs["going"], "FINISHED")
client.log_metric(runs["cnn-1"], "val_acc", 0.9375, step=3)
new = client.create_run(experiment, run_name="new").info.run_id
client.log_metric(new, "val_acc", 0.5, step=0)
client.set_terminated(new, "FINISHED")
