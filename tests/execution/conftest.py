import itertools
from pathlib import Path

import pytest

from isorun.execution.base import Job
from isorun.study.cells import Cell
from isorun.study.levels import Level


@pytest.fixture
def make_job(tmp_path):
    """A function that makes jobs, each with a cell, a run folder and, if wanted, a script of its own."""
    numbers = itertools.count(1)

    def make(command=("true",), *, level="default", seed=1, script=None, config=None, take_seeds=False, **fields):
        number = next(numbers)
        folder = tmp_path / f"run-{number}"
        folder.mkdir()
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
        fields.setdefault("working_folder", Path(tmp_path))
        return Job(cell=cell, attempt=1, folder=folder, command=tuple(command), seed=seed, **fields)

    return make
