import itertools

import pytest

from isorun.execution import Job, Resources
from isorun.execution.local import LocalExecutor
from isorun.study import Environment
from isorun.study.cells import Cell, Level


@pytest.fixture
def make_job(tmp_path):
    """A function that makes jobs, each with a cell and, if wanted, a script and an environment of its own."""
    numbers = itertools.count(1)

    def make(
        command=("true",),
        *,
        level="default",
        seed=1,
        script=None,
        config=None,
        take_seeds=False,
        python="",
        env=None,
        preload=None,
        threads=None,
        devices=None,
        **fields,
    ):
        number = next(numbers)
        if script is not None:
            (tmp_path / f"train{number}.py").write_text(script)
            command = ("python", f"train{number}.py")
        cell = Cell(
            approach="a",
            command=tuple(command),
            config="default",
            config_values=config or {},
            environment="default",
            environment_content={},
            level=Level(level),
            seed=None if level == "default" else seed,
            repeat=number,
            take_seeds=take_seeds,
        )
        fields.setdefault("working_folder", tmp_path)
        return Job(
            cell=cell,
            attempt=1,
            command=tuple(command),
            seed=seed,
            environment=Environment("default", python, env or {}, threads, preload, devices),
            resources=Resources(threads, devices),
            **fields,
        )

    return make


@pytest.fixture
def run_folder(tmp_path):
    """Where the folder of a job is."""
    return lambda job: tmp_path / "runs" / job.run_id


@pytest.fixture
def local(tmp_path):
    """A function that makes local executors; they are closed when the test is over."""
    made = []

    def make(jobs=1, **options):
        made.append(LocalExecutor(tmp_path / "runs", jobs, **options))
        return made[-1]

    yield make
    for executor in made:
        executor.close()
