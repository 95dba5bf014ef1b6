"""Imports drop nothing without a word: what becomes no run, and what a run has no place for, is counted and told."""

import json
import math
import sqlite3
import struct
import threading
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest
from kept_runs import unpacked

from isorun.errors import InputError
from isorun.share.importing import import_runs
from isorun.share.trackers import Chosen, opened_tracker
from isorun.share.trackers.aim import _run as run_of_aim
from isorun.workflow import records

_LARGEST = 1.7976931348623157e308


class _Answers(BaseHTTPRequestHandler):
    """MLflow's REST API, as far as an import asks; what it answers is its server's `told`."""

    def log_message(self, *_):
        pass

    def _answer(self, asked):
        what = urlsplit(self.path).path.removeprefix("/api/2.0/mlflow/")
        told = self.server.told
        if what == "experiments/search":
            found = {"experiments": [one for one in told["experiments"] if _is_seen(one, asked.get("view_type"))]}
        elif what == "runs/search":
            runs = [one for one in told["runs"] if one["info"]["experiment_id"] in asked["experiment_ids"]]
            found = {"runs": [one for one in runs if _is_seen(one["info"], asked.get("run_view_type"))]}
        elif what == "metrics/get-history":
            found = {"metrics": told["points"][asked["run_id"]][asked["metric_key"]]}
        elif what == "artifacts/list" and asked["run_id"] in told["artifacts"]:
            found = {"files": [{"path": name} for name in told["artifacts"][asked["run_id"]]]}
        else:
            self.send_response(500)
            self.end_headers()
            self.wfile.write(b'{"error_code": "INTERNAL_ERROR"}')
            return
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(found).encode())

    def do_GET(self):
        self._answer({name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()})

    def do_POST(self):
        self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))


def _is_seen(item, view):
    return view == "ALL" or item.get("lifecycle_stage") != "deleted"


def served_run(run_id, experiment="1", *, status="FINISHED", stage="active", metrics=("acc",)):
    info = {"run_id": run_id, "run_name": run_id, "experiment_id": experiment, "status": status}
    info |= {"start_time": 1000, "end_time": 2000, "lifecycle_stage": stage}
    info["artifact_uri"] = f"s3://me:hunter2@bucket/{run_id}/artifacts"
    return {"info": info, "data": {"metrics": [{"key": key} for key in metrics]}}


@pytest.fixture
def mlflow_server():
    """A server of MLflow with runs of every kind; its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    point = {"timestamp": 1500, "step": 0}
    server.told = {
        "experiments": [
            {"experiment_id": "1", "name": "kept", "lifecycle_stage": "active"},
            {"experiment_id": "2", "name": "gone", "lifecycle_stage": "deleted"},
        ],
        "runs": [
            served_run("whole", metrics=("acc", "odd")),
            served_run("bare", metrics=()),
            served_run("failed", status="FAILED"),
            served_run("going", status="RUNNING"),
            served_run("deleted", stage="deleted"),
            served_run("beside", "2", stage="deleted"),
        ],
        "points": {
            **{name: {"acc": [{**point, "value": 0.5}]} for name in ("failed", "going", "deleted", "beside")},
            "whole": {
                "acc": [{**point, "value": value} for value in (0.5, "NaN", _LARGEST, -_LARGEST, "Infinity")],
                "odd": [{**point, "value": "high"}, {**point, "value": True}],
            },
        },
        "artifacts": {name: [] for name in ("bare", "failed", "deleted", "beside")} | {"whole": ["model", "log.txt"]},
    }
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"mlflow:http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_what_a_server_has_and_an_import_does_not_take_is_counted_and_told(mlflow_server, tmp_path):
    store = str(tmp_path / "store")
    done = import_runs(mlflow_server, store=store)
    told = done.to_json()
    assert told["not_taken"] == {"runs that were deleted in MLflow": 2}
    assert told["states"] == {"finished": 2, "failed": 1, "still running": 1}
    assert told["without_values"] == 1
    assert told["left_out"] == {
        "the artifact log.txt": 1,
        "the artifact model": 1,
        "a value of the metric odd that is no number": 1,
        "its artifacts, which the server does not list (500)": 1,
    }
    shown = str(done)
    for words in (
        "--deleted takes them, too",
        "the artifact model (1 run)",
        "1 run without any metric",
        "in no figure",
    ):
        assert words in " ".join(shown.split())
    whole = next(one for one in records("kept", store=store) if one.environment["imported"]["name"] == "whole")
    assert list(map(repr, whole.series["acc"].values)) == ["0.5", "nan", "inf", "-inf", "inf"]
    assert whole.environment["imported"]["artifacts_at"] == "s3://me:***@bucket/whole/artifacts"
    assert "hunter2" not in f"{shown}{told}{[record.to_json() for record in records('kept', store=store)]}"


def test_deleted_runs_are_taken_where_it_is_asked(mlflow_server, tmp_path):
    done = import_runs(mlflow_server, store=str(tmp_path / "store"), name="all", deleted=True)
    assert (done.new, done.not_taken) == (6, {})
    deleted = [
        record.environment["imported"]["name"]
        for record in records("all", store=str(tmp_path / "store"))
        if record.environment["imported"]["tags"].get("mlflow.lifecycleStage") == "deleted"
    ]
    assert sorted(deleted) == ["beside", "deleted"]
    assert all("--deleted" in one.next_step for one in done.conditions if one.code == "units-unknown")
    with pytest.raises(InputError, match="optuna has no deleted runs"):
        import_runs("optuna:s.db", deleted=True)


def test_an_answer_that_is_none_of_mlflow_is_no_traceback(mlflow_server, tmp_path, monkeypatch):
    from isorun.share.trackers import mlflow_server as module

    monkeypatch.setattr(module, "_whole", lambda _: int("soon"))
    with pytest.raises(InputError, match="tells of a run in a way that MLflow does not"):
        import_runs(mlflow_server, store=str(tmp_path / "store"))


def asked(database, sql, *values):
    with closing(sqlite3.connect(database)) as opened, opened:
        return opened.execute(sql, values).fetchall()


def test_what_a_database_of_mlflow_has_beside_runs_is_told(tmp_path):
    database = unpacked("mlflow/mlflow.db.gz", tmp_path)
    asked(database, "UPDATE runs SET artifact_uri = 's3://bucket/' || run_uuid || '/artifacts'")
    asked(database, "UPDATE experiments SET lifecycle_stage = 'deleted' WHERE name <> 'digits'")
    [[others]] = asked(database, "SELECT count(*) FROM runs WHERE experiment_id <> 2")
    [[deleted]] = asked(database, "SELECT count(*) FROM runs WHERE experiment_id = 2 AND lifecycle_stage = 'deleted'")
    columns = "request_id, experiment_id, timestamp_ms, status"
    asked(database, f"INSERT INTO trace_info ({columns}) VALUES ('t', 2, 1, 'OK')")
    done = import_runs(f"mlflow:{database}", store=str(tmp_path / "store"), name="kept")
    assert done.not_taken == {"runs that were deleted in MLflow": others + deleted, "traces of MLflow's": 1}
    [where] = [what for what in done.left_out if "its artifacts, if it has any (s3:" in what]
    assert done.left_out[where] == done.new
    assert all(
        one.environment["imported"]["artifacts_at"].startswith("s3://")
        for one in records("kept", store=str(tmp_path / "store"))
    )


def test_deleted_experiments_and_damaged_runs_of_a_folder_are_told(tmp_path):
    folder = unpacked("mlflow/mlruns.tar.gz", tmp_path)
    tracker = opened_tracker(f"mlflow:{folder}")
    whole = list(tracker.read(Chosen()))
    before = sum(tracker.not_taken.values())
    experiment = next(path for path in folder.iterdir() if (path / "meta.yaml").is_file() and path.name != "0")
    inside = sum((path / "meta.yaml").is_file() for path in experiment.iterdir() if path.is_dir())
    (folder / ".trash").mkdir(exist_ok=True)
    experiment.rename(folder / ".trash" / experiment.name)
    other = next(path for path in folder.iterdir() if (path / "meta.yaml").is_file())
    (other / "0123" / "metrics").mkdir(parents=True)
    tracker = opened_tracker(f"mlflow:{folder}")
    left = list(tracker.read(Chosen()))
    assert len(left) < len(whole)
    assert tracker.not_taken["runs that were deleted in MLflow"] >= inside
    assert tracker.not_taken["folders of runs without a meta.yaml that names one"] == 1
    tracker = opened_tracker(f"mlflow:{folder}")
    assert len(list(tracker.read(Chosen(deleted=True)))) == len(whole) + before


def message(*parts):
    """A message of protocol buffers: fields of bytes, texts and numbers."""
    out = b""
    for number, value in parts:
        data = value.encode() if isinstance(value, str) else value
        out += varint(number << 3 | 2) + varint(len(data)) + data
    return out


def varint(number):
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + varint(number >> 7)


def test_what_wandb_keeps_beside_numbers_is_told(tmp_path):
    from isorun.share.trackers.wandb_writing import _Log

    def item(name, value):
        return message((1, name), (16, value if isinstance(value, bytes) else json.dumps(value)))

    log = _Log()
    log.add(message((17, message((1, "r"), (3, "p"), (4, message((1, item("wide", b"9" * (1 << 20) + b"9"))))))))
    log.add(message((2, message((1, item("_own", 0.5)), (1, item("_step", 0)), (1, item("odd", [1]))))))
    image = {"_type": "image-file", "path": "x.png"}
    log.add(message((3, message((1, item("table", [1, 2])), (1, item("picture", image)), (1, item("_own", 0.5))))))
    log.add(message((10, message((1, "beware")))))
    log.add(message((18, b"")))
    path = tmp_path / "run-r.wandb"
    path.write_bytes(log.data())
    [run] = opened_tracker(f"wandb:{path}").read(Chosen())
    assert set(run.series) == {"_own"}
    assert dict(run.params) == {}
    assert set(run.left_out) == {
        "the value of wide, which has more than 1 MiB",
        "a list logged as odd",
        "a list in the summary as table",
        "a image-file in the summary as picture",
        "alerts",
    }


def test_an_event_with_scalars_and_others_tells_of_the_others(tmp_path):
    """TensorFlow's merged summaries hold histograms and scalars in one event."""
    from isorun.share.trackers.tensorboard import _Reading
    from isorun.sources.tensorboard import Record, masked_crc32c

    scalar = message((1, "acc")) + bytes([2 << 3 | 5]) + struct.pack("<f", 0.5)
    summary = message((1, scalar), (1, message((1, "weights"), (5, b""))))
    event = bytes([1 << 3 | 1]) + struct.pack("<d", 1.0) + message((5, summary), (4, b"graph"))
    reading = _Reading(tmp_path, tmp_path)
    reading._take_event(Record(0, event, masked_crc32c(event)), "")
    run = reading.run()
    assert list(run.series["acc"].values) == [0.5]
    assert set(run.left_out) == {"a value that is no scalar logged as weights", "the graph of the model"}


def event_file(path, *values, torn=()):
    """Events with one scalar each, as TensorFlow frames them. torn: those whose checksum is wrong."""
    from isorun.sources.tensorboard import masked_crc32c

    data = b""
    for step, value in enumerate(values, start=1):
        scalar = message((1, "acc")) + bytes([2 << 3 | 5]) + struct.pack("<f", value)
        event = (
            bytes([1 << 3 | 1]) + struct.pack("<d", step) + bytes([2 << 3, step]) + message((5, message((1, scalar))))
        )
        length = struct.pack("<Q", len(event))
        check = masked_crc32c(event) + (step in torn)
        data += length + struct.pack("<I", masked_crc32c(length)) + event + struct.pack("<I", check)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def test_splits_of_tensorboard_side_by_side_are_one_run(tmp_path):
    for run in ("a", "b"):
        event_file(tmp_path / run / "train" / "events.out.tfevents.1.host", 0.5, 0.75)
        event_file(tmp_path / run / "validation" / "events.out.tfevents.1.host", 0.25)
    runs = list(opened_tracker(f"tensorboard:{tmp_path}").read(Chosen()))
    values = [{name: list(series.values) for name, series in run.series.items()} for run in runs]
    assert [run.name for run in runs] == ["a", "b"]
    assert values == [{"train/acc": [0.5, 0.75], "validation/acc": [0.25]}] * 2


def test_nothing_is_read_from_the_first_event_on_whose_checksum_is_wrong(tmp_path):
    event_file(tmp_path / "a" / "events.out.tfevents.1.host", 0.5, 0.75, 0.875, torn=[2])
    [run] = opened_tracker(f"tensorboard:{tmp_path}").read(Chosen())
    assert list(run.series["acc"].values) == [0.5]
    assert "the checksum of a record is wrong" in run.left_out[0]


def test_trials_of_deleted_studies_and_half_written_lines_are_told(tmp_path):
    journal = unpacked("optuna/journal.jsonl", tmp_path)
    with journal.open("a") as file:
        file.write(json.dumps({"op_code": 1, "worker_id": "w", "study_id": 0}) + "\n" + '{"op_code": 4, "wor')
    tracker = opened_tracker(f"optuna:{journal}")
    list(tracker.read(Chosen()))
    assert tracker.not_taken["studies that were deleted in Optuna"] == 1
    assert tracker.not_taken["lines of the journal that are not whole yet"] == 1


def test_what_trackio_keeps_beside_metrics_is_told(tmp_path):
    database = unpacked("trackio/digits.db.gz", tmp_path)
    [[run_id, name]] = asked(database, "SELECT run_id, run_name FROM configs LIMIT 1")
    columns = "(run_id, timestamp, run_name, metrics)"
    for _ in range(2):
        asked(database, f"INSERT INTO system_metrics {columns} VALUES (?, '2026-01-01', ?, '{{}}')", run_id, name)
    asked(
        database,
        "INSERT INTO metrics (run_id, timestamp, run_name, step, metrics) VALUES (?, '2026-01-01', ?, 9, '{torn')",
        run_id,
        name,
    )
    [run] = [run for run in opened_tracker(f"trackio:{database}").read(Chosen()) if run.key[1] == run_id]
    assert {"system metrics (2 times)", "a row that is no JSON"} <= set(run.left_out)


def test_what_aim_holds_that_is_no_number_is_told():
    run = run_of_aim(
        {
            "run": "a",
            "experiment": "e",
            "name": "n",
            "active": False,
            "archived": True,
            "created": 1.0,
            "ended": 2.0,
            "params": {"hparams": {"lr": 1}, "__system_params": {}},
            "tags": [],
            "description": "",
            "series": [["acc", [0, 1], [1.0, 2.0], [0.5, "high"]], ["odd", [0], [1.0], [None]]],
            "left_out": [],
        }
    )
    assert list(run.series) == ["acc"]
    assert run.left_out == (
        "a value of acc that is no number",
        "a value of odd that is no number",
        "what Aim itself noted as __system_params",
    )
    assert run.tags == {"aim.archived": "true"}


def test_tables_tell_of_values_without_a_run_of_unknown_states_and_of_times_that_are_none(tmp_path):
    folder = tmp_path / "told"
    folder.mkdir()
    (folder / "runs.csv").write_text(
        "run_id,experiment,status,start_time,metrics.acc\na,e,Weird,yesterday,0.5\nb,e,SUCCESS\n"
    )
    (folder / "metrics.csv").write_text("run_id,metric,step,value\na,acc,0,0.5\nz,acc,0,0.5\nz,acc,1,0.5\n")
    tracker = opened_tracker(f"csv:{folder}")
    first, second = tracker.read(Chosen())
    assert tracker.not_taken == {"values of runs that runs.csv has no row of": 2}
    assert first.left_out == ("what start_time holds, which is no time",)
    assert (first.state, str(second.state)) == (None, "finished")
    assert any("the state 'weird' of 1 run is none that is known" in note for note in tracker.notes)
    assert "lines of runs.csv with fewer cells than the header: 1; these cells are empty" in tracker.notes


def test_the_index_of_a_frame_is_no_parameter(tmp_path):
    """pandas writes it as a first column without a name, unless it is told not to."""
    (tmp_path / "runs.csv").write_text(",model,metrics.acc\n0,a,0.5\n1,a,0.75\n")
    tracker = opened_tracker(f"csv:{tmp_path / 'runs.csv'}")
    assert [dict(run.params) for run in tracker.read(Chosen())] == [{"model": "a"}, {"model": "a"}]
    assert "runs.csv has a column without a name, such as the index of a frame: it is left out" in tracker.notes
    (tmp_path / "wide.csv").write_text("model,metrics.acc\na,0.5,more\n")
    with pytest.raises(InputError, match="more cells than the header"):
        list(opened_tracker(f"csv:{tmp_path / 'wide.csv'}").read(Chosen()))


def test_values_that_are_no_numbers_stay_in_their_place(tmp_path):
    """NaN and infinities of a table are values, and no run is dropped for them."""
    (tmp_path / "runs.csv").write_text("run_id,metrics.acc\na,nan\nb,inf\nc,high\n")
    a, b, c = opened_tracker(f"csv:{tmp_path / 'runs.csv'}").read(Chosen())
    assert math.isnan(a.results["acc"])
    assert b.results["acc"] == math.inf
    assert (dict(c.results), c.left_out) == ({}, ("what acc holds, which is no number",))
