"""Jobs of a hydra sweep: what each logs is told with the job it belongs to."""

import pytest

from isorun.execution.worker_events import read_run_folder

# As hydra 1.3 has them: launchers take `run_job` from the module, and a single run's job has no number.
HYDRA = """
class Missing(Exception): pass
class Job:
    def __init__(self, number, overrides): self._number, self.override_dirname = number, overrides
    @property
    def num(self):
        if self._number is None: raise Missing
        return self._number
class Config:
    def __init__(self, number, overrides):
        self.hydra = type("H", (), {"job": Job(number, overrides)})()
def run_job(task_function, config, job_dir_key, job_subdir_key, hydra_context, configure_logging=True):
    return task_function(float((config.hydra.job.override_dirname or "=0").split("=")[-1]))
"""
SWEEP = """
import sys, isorun
from hydra.core.utils import Config, run_job
def train(lr):
    for epoch in (1, 2): isorun.log(epoch=epoch, acc=1 - lr)
    isorun.log(epoch=3, step=1, acc=1.0, per_class={"cat": lr})
    isorun.result(test_acc=lr, predictions={"test": [int(lr * 4)]}, labels={"test": [1]})
for number, overrides in %s:
    config = Config(number, overrides)
    run_job(hydra_context=None, task_function=train, config=config, job_dir_key="", job_subdir_key="")
"""


@pytest.fixture
def sweep(train, tmp_path):
    (tmp_path / "hydra" / "core").mkdir(parents=True)
    for folder in ("hydra", "hydra/core"):
        (tmp_path / folder / "__init__.py").touch()
    (tmp_path / "hydra" / "core" / "utils.py").write_text(HYDRA)

    def run(*jobs):
        (tmp_path / "t.py").write_text(SWEEP % (jobs,))
        trained = train("t.py")
        assert trained.returncode == 0, trained.stderr
        return read_run_folder(trained.folder)

    return run


def test_each_job_has_series_and_results_of_its_own(sweep):
    log = sweep((0, "lr=0.25"), (1, "lr=0.5"))
    assert {name: list(series.values) for name, series in log.series.items()} == {
        "acc@lr=0.25": [0.75, 0.75, 1.0],
        "accuracy@lr=0.25[cat]": [0.25],
        "acc@lr=0.5": [0.5, 0.5, 1.0],
        "accuracy@lr=0.5[cat]": [0.5],
    }
    assert log.results == {"test_acc@lr=0.25": 0.25, "test_acc@lr=0.5": 0.5}
    jobs = ("test@lr=0.25", "test@lr=0.5")
    assert [one.name for one in log.predictions] == [name for job in jobs for name in (job, f"{job}.labels")]
    assert [note.code for note in log.notes] == ["several-trainings"]


@pytest.mark.parametrize("job", [(None, "lr=0.25"), (0, "lr=0.25")], ids=["a single run", "a sweep of one job"])
def test_the_only_job_is_the_training(sweep, job):
    log = sweep(job)
    assert (set(log.series), set(log.results), log.notes) == ({"acc", "accuracy[cat]"}, {"test_acc"}, [])
    assert [one.name for one in log.predictions] == ["test", "test.labels"]


@pytest.mark.parametrize(
    ("one", "other", "names"),
    [
        ("lr=0.25", "lr=0.25", ["lr=0.25", "lr=0.25#1"]),
        (f"data={'x' * 130},lr=0.25", f"data={'x' * 130},lr=0.5", [f"data={'x' * 115}#0", f"data={'x' * 115}#1"]),
    ],
    ids=["the same again", "longer than a name"],
)
def test_jobs_of_one_name_are_two_trainings(sweep, one, other, names):
    log = sweep((0, one), (1, other))
    values = [float(overrides.split("=")[-1]) for overrides in (one, other)]
    assert log.results == {f"test_acc@{name}": value for name, value in zip(names, values, strict=True)}
    assert [note.code for note in log.notes] == ["several-trainings"]


def test_a_real_sweep_whose_names_leave_a_key_out_is_told_apart(train, tmp_path):
    pytest.importorskip("hydra")
    (tmp_path / "t.py").write_text(
        "import hydra, isorun\n"
        "@hydra.main(version_base=None)\n"
        "def main(cfg): isorun.log(epoch=1, acc=float(cfg.seed))\n"
        "main()\n"
    )
    trained = train("t.py", "-m", "+lr=0.1", "+seed=1,2", "hydra.job.config.override_dirname.exclude_keys=[seed]")
    assert trained.returncode == 0, trained.stderr
    series = read_run_folder(trained.folder).series
    assert {name: list(one.values) for name, one in series.items()} == {"acc@+lr=0.1#0": [1.0], "acc@+lr=0.1#1": [2.0]}


def test_a_real_sweep_is_told_apart(train, tmp_path):
    pytest.importorskip("hydra")
    (tmp_path / "t.py").write_text(
        "import hydra, isorun\n"
        "@hydra.main(version_base=None)\n"
        "def main(cfg): isorun.log(epoch=1, acc=float(cfg.lr))\n"
        "main()\n"
    )
    trained = train("t.py", "-m", "+lr=0.1,0.2")
    assert trained.returncode == 0, trained.stderr
    log = read_run_folder(trained.folder)
    assert sorted(log.series) == ["acc@+lr=0.1", "acc@+lr=0.2"]
