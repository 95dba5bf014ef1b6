"""Writes runs with MLflow's own client: told where and which by lines of JSON, it answers with a line for each run.

The answer says whether the run is "new", was "there" already (and is left alone), or was written "beside" one of the
same key that is half written or says something else.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

_METRICS_AT_ONCE, _OTHERS_AT_ONCE, _RUNS_AT_ONCE = 1_000, 100, 1_000
_KEPT = "isorun.kept."


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
    there: dict[str, list[dict[str, Any]]] = {}
    for line in sys.stdin:
        row = json.loads(line)
        if row["experiment"] not in experiments:
            known = client.get_experiment_by_name(row["experiment"])
            made = client.create_experiment(row["experiment"]) if known is None else known.experiment_id
            experiments[row["experiment"]] = made
            if known is not None:
                _learn(client, made, there)
        same = there.setdefault(json.dumps(row["key"]), [])
        found = next((one["run"] for one in same if _is_same(one, row)), None)
        written_as = "there" if found else "beside" if same else "new"
        run_id = found or _write(client, experiments[row["experiment"]], row)
        answers.write(json.dumps({"run": run_id, "as": written_as}) + "\n")
    answers.close()


def _learn(client: Any, experiment: str, there: dict[str, list[dict[str, Any]]]) -> None:
    """The runs that the experiment has, by the keys under which they may be told again: MLflow's own, and isorun's."""
    token = None
    while True:
        page = client.search_runs([experiment], max_results=_RUNS_AT_ONCE, page_token=token)
        for run in page:
            one = {"run": run.info.run_id, "start": run.info.start_time, "status": run.info.status}
            there.setdefault(json.dumps([run.info.run_id]), []).append(one)
            kept = _kept(run.data.tags)
            if "key" in kept:
                there.setdefault(json.dumps(kept["key"]), []).append({**one, "content": kept.get("content")})
        token = page.token
        if not token:
            return


def _kept(tags: dict[str, str]) -> dict[str, Any]:
    """What an export kept in tags, which hold a piece of it each; nothing of tags that were changed."""
    pieces = sorted((int(name[len(_KEPT) :]), text) for name, text in tags.items() if _is_piece(name))
    try:
        found = json.loads("".join(text for _, text in pieces)) if pieces else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_piece(name: str) -> bool:
    return name.startswith(_KEPT) and name[len(_KEPT) :].isdecimal()


def _is_same(one: dict[str, Any], row: dict[str, Any]) -> bool:
    """Whether the run that is there is this one: an export that broke off leaves one that never ended."""
    if one["status"] != row["status"]:
        return False
    if one.get("content") is not None:
        return bool(one["content"] == row["content"])
    return row["start"] is None or one["start"] == row["start"]


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
