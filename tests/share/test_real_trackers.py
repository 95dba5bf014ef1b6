"""The real trackers, each in an environment of its own: what they leave today is read, and what is written they open.

ISORUN_TRACKERS names a folder of environments (mlflow, wandb, …) that are there already; others are made in .trackers.
"""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from kept_runs import HERE, known, last_values

from isorun.share.exporting import export_runs
from isorun.share.foreign_records import tracked_of
from isorun.share.importing import import_runs
from isorun.share.trackers import Chosen, opened_tracker
from isorun.testing.tracker_contract import TrackerContract, told_runs
from isorun.workflow import records

pytestmark = pytest.mark.slow

PACKAGES = {
    "mlflow": ["mlflow"],
    "wandb": ["wandb", "numpy"],
    "tensorboard": ["tensorboard", "tensorboardX"],
    "optuna": ["optuna"],
    "trackio": ["trackio", "pyarrow"],
    "aim": ["aim"],
}
PLACES = {
    "mlflow": "mlflow:sqlite:///{}/mlflow.db",
    "wandb": "wandb:{}/wandb",
    "tensorboard": "tensorboard:{}/runs",
    "optuna": "optuna:sqlite:///{}/s.db",
    "trackio": "trackio:{}/trackio/digits.db",
    "aim": "aim:{}",
}


def interpreter(tracker):
    """That of an environment which has the tracker."""
    given = os.environ.get("ISORUN_TRACKERS")
    if given:
        found = next(Path(given).glob(f"*{tracker}/bin/python"), None)
        if found:
            return str(found)
    folder = HERE.parent.parent / ".trackers" / tracker
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", *PACKAGES[tracker]], check=True)
        (folder / "complete").touch()
    return str(python)


@pytest.fixture(scope="session")
def left(tmp_path_factory):
    """A folder in which a tracker left the known runs, made once for each."""
    made = {}

    def of(tracker):
        if tracker not in made:
            folder = tmp_path_factory.mktemp(tracker)
            program = HERE / "making" / f"{tracker}_runs.py"
            env = {**os.environ, "PYTHONPATH": str(program.parent), "PYTHONDONTWRITEBYTECODE": "1"}
            subprocess.run([interpreter(tracker), str(program), str(folder)], check=True, env=env, timeout=600)
            made[tracker] = folder
        return made[tracker]

    return of


@pytest.mark.parametrize("tracker", PLACES)
def test_what_the_tracker_leaves_today_is_read_whole(tracker, left, tmp_path):
    place = PLACES[tracker].format(left(tracker))
    python = interpreter("aim") if tracker == "aim" else ""
    experiments = () if tracker == "tensorboard" else (known.EXPERIMENT,)
    runs = {run.name: run for run in opened_tracker(place).read(Chosen(experiments, python))}
    if tracker == "optuna":
        expected = {f"trial-{number}": {"value": known.test_acc(*run)} for number, run in enumerate(known.RUNS)}
    else:
        expected = last_values()
    for name, metrics in expected.items():
        last = {metric: one.values[-1] for metric, one in runs[name].series.items()} | dict(runs[name].results)
        assert {metric: last[metric] for metric in metrics} == pytest.approx(metrics, rel=1e-6)
        assert runs[name].params["model"] in ("cnn", "mlp")
    store = str(tmp_path / "store")
    done = import_runs(place, store=store, name="kept", experiments=experiments, python=python, approach="model")
    assert done.new == len(runs)
    assert import_runs(place, store=store, name="kept", experiments=experiments, python=python).known == len(runs)
    again = {run.key: run for run in (tracked_of(record, "kept") for record in records("kept", store=store))}
    for run in runs.values():
        assert again[run.key].content() == run.content()


class TestMlflowWritten(TrackerContract):
    """By MLflow's own client, in its environment."""

    loses_time = True

    def leave(self, folder):
        tracker = self.to_write(folder)
        tracker.write(iter(told_runs()), self.chosen())
        return tracker, {"first run": {"val_acc": 2 / 3, "test_acc": 0.9}}

    def to_write(self, folder):
        return opened_tracker(f"mlflow:sqlite:///{folder}/mlflow.db")

    def chosen(self):
        return Chosen(python=interpreter("mlflow"))


def test_mlflow_opens_what_was_exported(left, tmp_path):
    """Its own client finds the runs with the same metrics."""
    store = str(tmp_path / "store")
    import_runs(PLACES["wandb"].format(left("wandb")), store=store)
    done = export_runs("mlflow", "digits", to=f"sqlite:///{tmp_path}/m.db", store=store, python=interpreter("mlflow"))
    asked = (
        "import sys, json; from mlflow.tracking import MlflowClient as C; c = C(sys.argv[1]); "
        "e = c.get_experiment_by_name('digits').experiment_id; "
        "print(json.dumps({r.info.run_name: r.data.metrics.get('val_acc') for r in c.search_runs([e])}))"
    )
    command = [interpreter("mlflow"), "-c", asked, f"sqlite:///{tmp_path}/m.db"]
    told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert done.runs == len(told) == 5
    again = export_runs("mlflow", "digits", to=f"sqlite:///{tmp_path}/m.db", store=store, python=interpreter("mlflow"))
    assert (again.runs, again.there) == (0, 5)
    assert json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout) == told
    for model, seed in known.RUNS:
        assert told[known.name(model, seed)] == known.rows(model, seed)[-1]["val_acc"]


def test_a_running_server_gives_what_its_database_holds(left):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    python, database = interpreter("mlflow"), left("mlflow") / "mlflow.db"
    words = ["server", "--backend-store-uri", f"sqlite:///{database}", "--port", str(port), "--workers", "1"]
    server = subprocess.Popen([python, "-m", "mlflow", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(240):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
                    break
            except OSError:
                time.sleep(0.5)
        served = {run.key: run for run in opened_tracker(f"mlflow:http://127.0.0.1:{port}").read(Chosen(("digits",)))}
        read = {run.key: run for run in opened_tracker(f"mlflow:{database}").read(Chosen(("digits",)))}
        assert set(served) == set(read)
        for key, run in read.items():
            assert dict(served[key].params) == dict(run.params)
            assert (served[key].started, served[key].ended, served[key].state) == (run.started, run.ended, run.state)
            for metric in ("val_acc", "val_loss", "test_acc"):
                if metric in run.series:
                    assert served[key].series[metric].values == run.series[metric].values
                    assert served[key].series[metric].times == run.series[metric].times
    finally:
        server.terminate()
        server.wait(30)


def test_wandb_finds_what_was_exported(left, tmp_path):
    """Its own messages are parsed from the log, and its sync lists every run."""
    store = str(tmp_path / "store")
    import_runs(PLACES["mlflow"].format(left("mlflow")), store=store, experiments=["digits"])
    export_runs("wandb-offline", "digits", to=str(tmp_path / "wandb"), store=store)
    logs = sorted((tmp_path / "wandb").glob("*/*.wandb"))
    listed = subprocess.run(
        [interpreter("wandb"), "-m", "wandb", "sync", "--dry-run", "."],
        cwd=tmp_path / "wandb",
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert all(log.name in listed.stdout + listed.stderr for log in logs)
    from isorun.sources.trackers import wandb_records

    parse = (
        "import sys; from wandb.proto.wandb_internal_pb2 import Record; record = Record(); "
        "record.ParseFromString(bytes.fromhex(sys.argv[1])); print(record.run.project, record.run.display_name)"
    )
    with logs[0].open("rb") as file:
        file.read(7)
        run = list(wandb_records(file))[1]
    told = subprocess.run([interpreter("wandb"), "-c", parse, run.hex()], check=True, capture_output=True, text=True)
    assert told.stdout.startswith("digits ")
