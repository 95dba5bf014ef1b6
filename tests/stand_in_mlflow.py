"""A stand-in for MLflow's client, which keeps runs in one file of JSON, and an interpreter that has it.

It has what an export asks of MLflow, and no more; that MLflow itself answers so is for test_real_trackers.
"""

import sys
from pathlib import Path

_ENTITIES = """
def Metric(name, value, time, step):
    return [name, value, time, step]


def Param(name, value):
    return [name, value]
"""
_TRACKING = '''
import json
from pathlib import Path
from types import SimpleNamespace


class Page(list):
    token = None


class MlflowClient:
    def __init__(self, tracking_uri):
        self.path = Path(tracking_uri.removeprefix("sqlite:///"))
        self.runs = json.loads(self.path.read_text()) if self.path.is_file() else []

    def get_experiment_by_name(self, name):
        known = any(run["experiment"] == name for run in self.runs)
        return SimpleNamespace(experiment_id=name) if known else None

    def create_experiment(self, name):
        return name

    def create_run(self, experiment, start_time, run_name, tags):
        run = {"experiment": experiment, "run_id": f"run{len(self.runs)}", "start_time": start_time, "tags": tags}
        self.runs.append({**run, "status": "RUNNING", "metrics": []})
        self.keep()
        return SimpleNamespace(info=SimpleNamespace(run_id=run["run_id"]))

    def log_batch(self, run_id, params=(), metrics=()):
        self.runs[int(run_id[3:])]["metrics"] += metrics

    def set_terminated(self, run_id, status, end_time):
        self.runs[int(run_id[3:])]["status"] = status
        self.keep()

    def search_runs(self, experiments, max_results, page_token):
        """A run a page."""
        found = [run for run in self.runs if run["experiment"] in experiments]
        place = int(page_token or 0)
        page = Page(
            SimpleNamespace(info=SimpleNamespace(**run), data=SimpleNamespace(tags=run["tags"]))
            for run in found[place : place + 1]
        )
        page.token = str(place + 1) if place + 1 < len(found) else None
        return page

    def keep(self):
        self.path.write_text(json.dumps(self.runs))
'''


def interpreter_with_mlflow(folder: Path) -> str:
    """The path of an interpreter that finds the stand-in, for --python."""
    package = folder / "packages" / "mlflow"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "entities.py").write_text(_ENTITIES)
    (package / "tracking.py").write_text(_TRACKING)
    python = folder / "python-with-mlflow"
    python.write_text(f'#!/bin/sh\nshift\nPYTHONPATH="{package.parent}" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return str(python)
