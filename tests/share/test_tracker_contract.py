"""Every tracker keeps the promises of its family, on files that real tools left."""

import math

import pytest
from kept_runs import known, last_values, unpacked

from isorun.share.trackers import Chosen
from isorun.share.trackers.mlflow import Mlflow
from isorun.share.trackers.optuna import Optuna
from isorun.share.trackers.tables import CsvTables, ParquetTables
from isorun.share.trackers.tensorboard import TensorBoard
from isorun.share.trackers.trackio import Trackio
from isorun.share.trackers.wandb import Wandb
from isorun.testing.tracker_contract import TrackerContract, told_runs


class TestMlflowDatabase(TrackerContract):
    def leave(self, folder):
        path = unpacked("mlflow/mlflow.db.gz", folder)
        return Mlflow(f"sqlite:///{path}"), last_values(odd=-math.inf)


class TestMlflowFolder(TrackerContract):
    def leave(self, folder):
        return Mlflow(str(unpacked("mlflow/mlruns.tar.gz", folder))), last_values(odd=-math.inf)


class TestWandb(TrackerContract):
    def leave(self, folder):
        return Wandb(str(unpacked("wandb", folder))), last_values(odd=-math.inf)

    def to_write(self, folder):
        return Wandb(str(folder / "written"))


class TestTensorBoard(TrackerContract):
    def leave(self, folder):
        path = unpacked("tensorboard", folder) / "runs"
        single = {
            name: {metric: float(math.ldexp(round(math.ldexp(value, 30)), -30)) for metric, value in metrics.items()}
            for name, metrics in last_values().items()
        }
        return TensorBoard(str(path)), single


class TestOptunaDatabase(TrackerContract):
    def leave(self, folder):
        path = unpacked("optuna/s.db.gz", folder)
        return Optuna(f"sqlite:///{path}"), self.expected()

    def chosen(self):
        return Chosen((known.EXPERIMENT,))

    def expected(self):
        return {f"trial-{number}": {"value": known.test_acc(*run)} for number, run in enumerate(known.RUNS)}


class TestOptunaJournal(TestOptunaDatabase):
    def leave(self, folder):
        return Optuna(str(unpacked("optuna/journal.jsonl", folder))), self.expected()


class TestTrackioDatabase(TrackerContract):
    def leave(self, folder):
        return Trackio(str(unpacked("trackio/digits.db.gz", folder))), last_values(odd=-math.inf)


class TestTrackioParquet(TrackerContract):
    def leave(self, folder):
        pytest.importorskip("pyarrow")
        unpacked("trackio/digits_configs.parquet", folder)
        return Trackio(str(unpacked("trackio/digits.parquet", folder))), last_values(odd=-math.inf)


class TestCsv(TrackerContract):
    kind = CsvTables

    def leave(self, folder):
        tracker = self.kind(str(folder / "told"))
        tracker.write(told_runs(), self.chosen())
        return tracker, {"first run": {"val_acc": 2 / 3, "test_acc": 0.9}, "second": {"val_acc": 0.25}}

    def to_write(self, folder):
        return self.kind(str(folder / "written"))


class TestParquet(TestCsv):
    kind = ParquetTables

    def leave(self, folder):
        pytest.importorskip("pyarrow")
        return super().leave(folder)
