"""The command line as people type it: processes in a folder of their own."""

from dataclasses import dataclass

import pytest

from typed_commands import typed

TRAIN = """
import random, sys, time
import isorun
for epoch in range(1, 4):
    isorun.log(epoch=epoch, val_loss=1 / epoch, val_acc=random.random(), test_acc=random.random())
isorun.result(test_acc=0.5 + random.random() / 10)
"""
STUDY = """
levels = ["default", "fixed-seed"]
repeats = 3
[approaches.toy]
command = "python train.py"
[metrics.test_acc]
direction = "higher"
"""


@dataclass
class Shell:
    """A folder and the commands typed in it."""

    folder: object

    def __call__(self, *words, env=None, **options):
        return typed(*words, cwd=self.folder, env={"COLUMNS": "80", **(env or {})}, **options)

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return self.folder / name


@pytest.fixture
def shell(tmp_path):
    return Shell(tmp_path)


@pytest.fixture
def toy(shell):
    shell.write("train.py", TRAIN)
    shell.write("study.toml", STUDY)
    return shell


@pytest.fixture
def here(request, tmp_path, monkeypatch):
    """The folder this process works in, with the module's TRAINING in it as t.py."""
    (tmp_path / "t.py").write_text(request.module.TRAINING)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ISORUN_STORE", raising=False)
    return tmp_path
