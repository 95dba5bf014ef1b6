"""Writes runs with MLflow's own client: told where and which by lines of JSON, it answers with a line for each run."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

_METRICS_AT_ONCE, _OTHERS_AT_ONCE = 1_000, 100


def main() -> None:
    """Write what is told; 86 where there is no MLflow."""
    try:
        from mlflow.tracking import MlflowClient  # noqa: PLC0415 - whoever only looks at this file need not have it
    except ImportError:
        sys.exit(86)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what MLflow prints is no answer
    first = json.loads(sys.stdin.readline())
    client = MlflowClient(tracking_uri=first["place"])
    experiments: dict[str, str] = {}
    for line in sys.stdin:
        row = json.loads(line)
        if row["experiment"] not in experiments:
            known = client.get_experiment_by_name(row["experiment"])
            made = client.create_experiment(row["experiment"]) if known is None else known.experiment_id
            experiments[row["experiment"]] = made
        run_id = _write(client, experiments[row["experiment"]], row)
        answers.write(json.dumps({"run": run_id}) + "\n")
    answers.close()


def _write(client: Any, experiment: str, row: dict[str, Any]) -> str:
    from mlflow.entities import Metric, Param  # noqa: PLC0415 - as above

    run_id: str = client.create_run(
        experiment, start_time=row["start"], run_name=row["name"] or None, tags=row["tags"]
    ).info.run_id
    metrics = [Metric(name, float(value), time, step) for name, value, time, step in row["metrics"]]
    params = [Param(name, value) for name, value in row["params"].items()]
    for place in range(0, len(params), _OTHERS_AT_ONCE):
        client.log_batch(run_id, params=params[place : place + _OTHERS_AT_ONCE])
    for place in range(0, len(metrics), _METRICS_AT_ONCE):
        client.log_batch(run_id, metrics=metrics[place : place + _METRICS_AT_ONCE])
    if row["status"] != "RUNNING":
        client.set_terminated(run_id, row["status"], row["end"])
    return run_id


if __name__ == "__main__":
    main()
