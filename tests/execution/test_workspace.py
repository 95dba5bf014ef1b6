"""A folder of a run's own: a copy that nothing leads out of but what is told, and of which only outputs are left."""

import errno
import os
import shutil
import sqlite3
import stat

import pytest

from isorun.errors import ExecutionError
from isorun.execution import workspace as workspaces
from isorun.execution.carrying import Workbench, Workshop, carry_out
from isorun.execution.workspace import workspace_of


@pytest.fixture
def origin(tmp_path):
    folder = tmp_path / "project"
    (folder / "package").mkdir(parents=True)
    (folder / "package" / "a.py").write_text("x = 1")
    (folder / "train.sh").write_text("#!/bin/sh\n")
    (folder / "train.sh").chmod(0o755)
    (folder / "data.bin").write_bytes(b"d" * 1000)
    (folder / ".git").mkdir()
    (folder / "env").mkdir()
    (folder / "env" / "pyvenv.cfg").touch()
    (folder / "records").mkdir()
    (folder / "records" / "store.sqlite").touch()
    (folder / "inside").symlink_to("package/a.py")
    (folder / "outside").symlink_to("../elsewhere.txt")
    (tmp_path / "elsewhere.txt").write_text("elsewhere")
    return folder


@pytest.fixture
def run_folder(tmp_path):
    folder = tmp_path / "runs" / "abc-1"
    folder.mkdir(parents=True)
    return folder


def everything(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_the_copy_is_the_folder_and_what_is_no_part_of_the_training_is_linked(origin, run_folder):
    made = workspace_of(origin, run_folder)
    assert {path.name for path in made.folder.iterdir()} == {path.name for path in origin.iterdir()}
    assert sorted(made.linked) == [".git", "env", "records"]
    copy, original = made.folder / "train.sh", origin / "train.sh"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o755
    assert (copy.stat().st_mtime_ns, copy.stat().st_ino) == (original.stat().st_mtime_ns, copy.stat().st_ino)
    assert copy.stat().st_ino != original.stat().st_ino
    assert (made.folder / "inside").resolve() == made.folder / "package" / "a.py"
    assert (made.folder / "outside").read_text() == "elsewhere"


def test_nothing_is_left_where_the_run_made_nothing(origin, run_folder):
    before = everything(origin)
    made = workspace_of(origin, run_folder)
    (made.folder / "package" / "__pycache__").mkdir()
    (made.folder / "package" / "__pycache__" / "a.pyc").touch()
    assert made.close() == []
    assert everything(run_folder) == []
    assert everything(origin) == before


def test_what_the_run_made_or_changed_is_left(origin, run_folder):
    made = workspace_of(origin, run_folder)
    (made.folder / "out").mkdir()
    (made.folder / "out" / "ckpt.pt").write_text("weights")
    (made.folder / "data.bin").write_bytes(b"e" * 1000)
    made.close()
    kept = ["workspace", "workspace/data.bin", "workspace/out", "workspace/out/ckpt.pt"]
    assert everything(run_folder) == kept
    assert (origin / "data.bin").read_bytes() == b"d" * 1000


def test_large_files_are_linked_the_largest_first_and_a_change_of_the_original_is_told(origin, run_folder, monkeypatch):
    monkeypatch.setattr(workspaces, "_MOST_COPIED", 100)
    monkeypatch.setattr(workspaces.Workspace, "_cloned", lambda *_: False)
    made = workspace_of(origin, run_folder)
    assert "data.bin" in made.linked
    assert "train.sh" not in made.linked
    with (made.folder / "data.bin").open("r+b") as file:  # no worker sees it
        file.write(b"changed")
    (note,) = made.close()
    assert note.code == "isolation-left"
    assert "data.bin" in note.message


def test_of_a_folder_with_very_many_files_each_file_is_linked(origin, run_folder, monkeypatch):
    monkeypatch.setattr(workspaces, "_MOST_FILES", 20)
    (origin / "images" / "deep").mkdir(parents=True)
    for number in range(21):
        (origin / "images" / "deep" / f"{number}.png").write_text(str(number))
    made = workspace_of(origin, run_folder)
    assert "images" in made.told()["isolated"]["linked"]
    assert "images/deep/3.png" not in made.told()["isolated"]["linked"]
    assert (made.folder / "images" / "deep" / "3.png").is_symlink()
    (made.folder / "images" / "deep" / "3.png").unlink()  # as a program does that no worker sees
    (made.folder / "images" / "deep" / "4.png").rename(made.folder / "images" / "deep" / "new.png")
    shutil.rmtree(made.folder / "package")
    assert made.close() == []
    assert len(list((origin / "images" / "deep").iterdir())) == 21
    assert (origin / "images" / "deep" / "3.png").read_text() == "3"
    assert (origin / "package").is_dir()


def test_a_full_disk_is_told_and_leaves_no_half_copy(origin, run_folder, monkeypatch):
    def full(*_arguments):
        raise OSError(errno.ENOSPC, "No space left on device", "x")

    monkeypatch.setattr(workspaces.Workspace, "_cloned", lambda *_: False)
    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(ExecutionError, match="cannot have a copy") as told:
        workspace_of(origin, run_folder)
    assert "No space left" in told.value.found
    assert everything(run_folder) == []


def test_what_a_killed_attempt_left_is_tidied_by_the_next(origin, run_folder, tmp_path):
    killed = workspace_of(origin, run_folder)
    (killed.folder / "ckpt.pt").write_text("half")
    second = tmp_path / "runs" / "abc-2"
    second.mkdir()
    workspace_of(origin, second)
    assert everything(run_folder) == ["workspace", "workspace/ckpt.pt"]


def test_a_file_that_cannot_be_read_is_linked(origin, run_folder, monkeypatch):
    real = shutil.copyfile

    def copyfile(source, target):
        if str(source).endswith("data.bin"):
            raise PermissionError(errno.EACCES, "Permission denied", str(source))
        return real(source, target)

    monkeypatch.setattr(workspaces.Workspace, "_cloned", lambda *_: False)
    monkeypatch.setattr(shutil, "copyfile", copyfile)
    assert "data.bin" in workspace_of(origin, run_folder).linked


def test_a_file_that_goes_away_while_the_copy_is_made_is_no_part_of_it(origin, run_folder, monkeypatch):
    real = shutil.copyfile

    def copyfile(source, target):
        if str(source).endswith("data.bin"):
            source.unlink()
        return real(source, target)

    monkeypatch.setattr(workspaces.Workspace, "_cloned", lambda *_: False)
    monkeypatch.setattr(shutil, "copyfile", copyfile)
    made = workspace_of(origin, run_folder)
    assert not (made.folder / "data.bin").exists()
    assert (made.folder / "train.sh").exists()


LINKED = """
import os, sys
how = sys.argv[1]
if how == "in place":
    with open("big.bin", "r+b") as file: file.write(b"mine")
elif how == "appended":
    with open("big.bin", "ab") as file: file.write(b"mine")
elif how == "anew":
    with open("big.bin", "wb") as file: file.write(b"mine")
elif how == "renamed":
    with open("new", "wb") as file: file.write(b"mine")
    os.replace("new", "big.bin")
elif how == "removed":
    os.remove("big.bin")
elif how == "cut":
    os.truncate("big.bin", 2)
elif how == "a database":
    import sqlite3
    with sqlite3.connect("big.bin") as database: database.execute("create table a (b)")
print("acc: 0.5", open("big.bin", "rb").read()[:4] if os.path.exists("big.bin") else "")
"""


@pytest.mark.parametrize("how", ["in place", "appended", "anew", "renamed", "removed", "cut", "a database"])
def test_writing_to_a_linked_file_does_not_reach_the_original(make_job, tmp_path, monkeypatch, how):
    monkeypatch.setattr(workspaces, "_MOST_COPIED", 2000)
    monkeypatch.setattr(workspaces.Workspace, "_cloned", lambda *_: False)
    project = tmp_path / "project"
    project.mkdir()
    original = b"0" * 5000
    if how == "a database":
        with sqlite3.connect(project / "big.bin") as database:
            database.execute("create table first (one)")
        original = (project / "big.bin").read_bytes()
    (project / "big.bin").write_bytes(original)
    (project / "train.py").write_text(LINKED)
    record = carried_out(make_job, project, tmp_path, ("python", "train.py", how))
    assert record.state == "finished", record.log_tail
    assert record.environment["requested"]["isolated"] == {"linked": ["big.bin"]}
    assert (project / "big.bin").read_bytes() == original
    assert record.notes == ()
    left = tmp_path / "runs" / record.run_id / "workspace"
    content = {
        "in place": b"mine" + b"0" * 4996,
        "appended": b"0" * 5000 + b"mine",
        "anew": b"mine",
        "renamed": b"mine",
        "cut": b"00",
    }
    if how in content:
        assert (left / "big.bin").read_bytes() == content[how]
    assert left.exists() == (how != "removed")


def carried_out(make_job, project, tmp_path, command, **fields):
    job = make_job(command, working_folder=project, isolate=True, **fields)
    folder = tmp_path / "runs" / job.run_id
    folder.mkdir(parents=True)
    workshop = Workshop(launch=fields.pop("launch", "fresh"))
    try:
        return carry_out(job, folder, Workbench(workshop, tuple(os.sched_getaffinity(0))), lambda _event: None)
    finally:
        workshop.close()


TRAIN = """
import os, random, sys
from package import a
random.seed(3)
print("acc:", 0.5 + len(os.listdir("out")) if os.path.isdir("out") else 0.5)
os.makedirs("out")
open("out/model.txt", "w").write("x")
open("metrics.json", "w").write('{"f1": 0.25}')
"""


def test_a_run_speaks_of_its_files_as_those_of_the_working_folder(make_job, origin, tmp_path):
    (origin / "train.py").write_text(TRAIN)
    first, second = (carried_out(make_job, origin, tmp_path, ("python", "train.py")) for _ in range(2))
    assert [one.results for one in (first, second)] == [{"acc": 0.5}] * 2
    assert [one.where for one in first.seeded] == [f"{origin}/train.py:4"]
    effective = [one.environment["effective"] for one in (first, second)]
    assert [one["path"] for one in effective[0]["sources"]] == ["package/a.py", "train.py"]
    assert effective[0]["sources"] == effective[1]["sources"]
    assert effective[0]["script"] == effective[1]["script"]
    assert not (origin / "out").exists()
    left = tmp_path / "runs" / first.run_id / "workspace"
    assert everything(left) == ["metrics.json", "out", "out/model.txt"]


def test_a_program_of_the_folder_is_that_of_the_copy_and_a_failure_says_nothing_of_it(make_job, origin, tmp_path):
    (origin / "train.sh").write_text('#!/bin/sh\ncd "$(dirname "$0")" && pwd && echo made > here.txt && exit 3\n')
    record = carried_out(make_job, origin, tmp_path, ("./train.sh",))
    assert (record.state, record.exit_code) == ("failed", 3)
    assert record.log_tail == str(origin)
    assert not (origin / "here.txt").exists()
    assert (tmp_path / "runs" / record.run_id / "workspace" / "here.txt").exists()


def test_of_a_run_that_cannot_be_started_no_copy_is_left(make_job, origin, tmp_path, monkeypatch):
    def refused(*_args, **_options):
        raise ExecutionError("the interpreter went away")

    monkeypatch.setattr(Workshop, "started", refused)
    with pytest.raises(ExecutionError, match="went away"):
        carried_out(make_job, origin, tmp_path, ("python", "train.py"))
    (folder,) = (tmp_path / "runs").iterdir()
    assert not (folder / "workspace").exists()
    assert (origin / "package" / "a.py").exists()
