"""The training's own source files: what compilers and libraries leave is none of it; and the version of the code."""

from __future__ import annotations

import os
import subprocess
from hashlib import sha256
from pathlib import Path
from types import ModuleType

import pytest

from isorun.worker import usercode
from isorun.worker.seedsource import facts_of
from isorun.worker.usercode import code_version, is_users_file, users_sources

SITE = "/opt/env/lib/python3.11/site-packages"


def modules(**files: str) -> dict[str, ModuleType]:
    found = {}
    for name, file in files.items():
        module = ModuleType(name.replace("__", "."))
        module.__file__ = file
        found[module.__name__] = module
    return found


@pytest.mark.parametrize(
    "file",
    [
        "/home/me/project/train.py",
        "/home/me/editable/library/part.py",
        "/tmp/project/train.py",
        "/home/me/torch_extensions/train.py",
    ],
)
def test_what_people_write_is_theirs(file):
    assert is_users_file(file)


@pytest.mark.parametrize(
    "file",
    [
        f"{SITE}/torch/random.py",
        "<string>",
        "<ipython-input-3-abc>",
        "/tmp/torchinductor_me/ab/cabcdef.py",
        "/home/me/project/torchinductor_cache/ab/cabcdef.py",
        "/tmp/__autograph_generated_file7rx9.py",
        "/tmp/ipykernel_4711/123.py",
        str(Path(usercode.__file__)),
    ],
)
def test_what_programs_write_is_not(file):
    assert not is_users_file(file)


def sources(script: str, loaded: dict[str, ModuleType], started_in: str = "/home/me", **environ: str) -> set[str]:
    return {str(path) for path in users_sources(loaded, Path(script), Path(started_in), environ)}


def test_the_script_its_modules_and_editable_installs_count():
    loaded = modules(
        torch=f"{SITE}/torch/__init__.py", part="/home/me/p/part.py", mine="/srv/editable/mine/__init__.py"
    )
    found = sources("/home/me/p/train.py", loaded)
    assert found == {"/home/me/p/train.py", "/home/me/p/part.py", "/srv/editable/mine/__init__.py"}


def test_modules_that_a_compiler_loaded_do_not_count_wherever_they_lie():
    loaded = modules(
        torch=f"{SITE}/torch/__init__.py",
        torch___inductor__runtime__compile_tasks__cab="/home/me/p/inductor/ab/cab.py",
        generated="/tmp/tmpx3y/generated.py",
        autograph="/tmp/__autograph_generated_filex.py",
        remote="/home/me/.cache/huggingface/modules/remote.py",
        kernel="/home/me/.triton/cache/abc/kernel.py",
        cached="/home/me/p/kept/cached.py",
        native="/home/me/p/native.so",
    )
    found = sources("/home/me/p/train.py", loaded, TRITON_CACHE_DIR="/home/me/p/kept")
    assert found == {"/home/me/p/train.py"}


@pytest.mark.parametrize("started_in", ["/tmp/p", "/tmp", "/home/me"])
def test_a_project_among_temporary_files_has_its_own_and_no_others(started_in):
    loaded = modules(
        part="/tmp/p/part.py", package="/tmp/p/package/__init__.py", other="/tmp/q/other.py", beside="/tmp/beside.py"
    )
    found = sources("/tmp/p/train.py", loaded, started_in)
    assert found - {"/tmp/beside.py"} == {"/tmp/p/train.py", "/tmp/p/part.py", "/tmp/p/package/__init__.py"}
    assert ("/tmp/beside.py" in found) == (started_in == "/tmp")


def test_another_folder_for_temporary_files_is_known_by_its_variable():
    loaded = modules(made="/scratch/me/tmp/made.py")
    assert sources("/home/me/train.py", loaded, TMPDIR="/scratch/me/tmp") == {"/home/me/train.py"}
    assert "/scratch/me/tmp/made.py" in sources("/home/me/train.py", loaded)


def test_nothing_is_asked_of_a_training_without_script_or_folder():
    assert users_sources(modules(part="/srv/part.py"), None, None, {}) == [Path("/srv/part.py")]


def test_generated_modules_do_not_change_the_version_of_the_code(train, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        "import importlib.util, os, sys, tempfile, uuid\n"
        "folder = tempfile.mkdtemp(prefix='torchinductor_')\n"
        "path = os.path.join(folder, f'c{uuid.uuid4().hex}.py')\n"
        "open(path, 'w').write(f'x = {uuid.uuid4().int}\\n')\n"
        "spec = importlib.util.spec_from_file_location('made', path)\n"
        "sys.modules['made'] = module = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
    )
    versions = [train("train.py").of_kind("environment")[0]["effective"]["sources_sha256"] for _ in range(2)]
    assert versions[0] == versions[1]
    script.write_text(script.read_text() + "# another line\n")
    assert train("train.py").of_kind("environment")[0]["effective"]["sources_sha256"] != versions[0]


def told_sources(done):
    """The files that a training says it was made of, with the hash of all, its script's, and its notes."""
    effective = done.of_kind("environment")[0]["effective"]
    files = {item["path"]: item["sha256"] for item in effective["sources"]}
    notes = {note["code"]: note["message"] for note in done.of_kind("note")}
    return files, effective["sources_sha256"], effective["script"]["sha256"], notes


def test_files_that_are_edited_while_the_training_runs_are_known_by_what_was_loaded(train, tmp_path):
    """Edited under another inode, in place, and touched; then loaded again as they are now."""
    script = (
        "import pathlib, part, same, sys\n"
        "if len(sys.argv) > 1:\n"
        "    pathlib.Path('new.py').write_text('x = 2'); pathlib.Path('new.py').replace('part.py')\n"
        "    pathlib.Path('same.py').touch()\n"
        "    pathlib.Path('train.py').write_text('import part, same')\n"
        "import late\n"
    )
    (tmp_path / "train.py").write_text(script)
    for name in ("part", "same", "late"):
        (tmp_path / f"{name}.py").write_text("x = 1\n")
    before = told_sources(train("train.py"))
    files, everything, own, notes = told_sources(train("train.py", "edit"))
    assert (files, everything, own) == before[:3], "what was loaded is what it was"
    assert own == files["train.py"] == sha256(script.encode()).hexdigest()
    assert "edited-while-running" not in before[3]
    assert "after it was loaded: part.py, train.py; the record" in notes["edited-while-running"]
    after = told_sources(train("train.py"))
    assert after[0]["part.py"] != files["part.py"]
    assert after[1:3] != (everything, own)
    assert "edited-while-running" not in after[3]


def test_a_large_file_that_was_edited_is_not_known(tmp_path, monkeypatch):
    monkeypatch.setenv("ISORUN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(usercode, "_loaded", {})
    file = tmp_path / "large.py"
    file.write_bytes(b"#" * ((1 << 20) + 1))
    usercode.loading(str(file))
    told = usercode.sources_read(facts_of([file], tmp_path), tmp_path)
    assert usercode.tell_as_loaded(told, tmp_path) == []
    file.write_bytes(b"")
    told = usercode.sources_read(facts_of([file], tmp_path), tmp_path)
    assert usercode.tell_as_loaded(told, tmp_path) == ["large.py"]
    assert told["sources"] == [{"path": "large.py", "sha256": usercode.UNKNOWN}]


def test_what_is_no_users_is_not_kept_and_what_is_gone_stops_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(usercode, "_loaded", {})
    for path in (os.__file__, usercode.__file__, pytest.__file__, str(tmp_path / "gone.py"), "a\0b"):
        usercode.loading(path)
    assert usercode._loaded == {}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    root.mkdir()
    git(root, "init", "-q")
    (root / "train.py").write_text("print(1)\n")
    git(root, "add", "train.py")
    git(root, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "first")
    return root


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout.strip()


def test_a_clean_repository_is_its_commit(repository):
    version = code_version(repository)
    assert version == {"commit": git(repository, "rev-parse", "HEAD"), "dirty": False, "diff_sha256": ""}


def test_a_change_shows_and_its_undoing_too(repository):
    clean = code_version(repository)
    (repository / "train.py").write_text("print(2)\n")
    changed = code_version(repository)
    assert changed["dirty"]
    assert changed["commit"] == clean["commit"]
    (repository / "train.py").write_text("print(3)\n")
    assert code_version(repository)["diff_sha256"] != changed["diff_sha256"]
    (repository / "train.py").write_text("print(1)\n")
    assert code_version(repository) == clean


def test_new_source_files_count_and_results_of_runs_do_not(repository):
    clean = code_version(repository)
    (repository / "model.pt").write_bytes(b"weights")
    (repository / ".isorun").mkdir()
    (repository / ".isorun" / "study.toml").write_text("x")
    assert code_version(repository) == clean
    (repository / "model.py").write_text("x = 1\n")
    first = code_version(repository)
    (repository / "model.py").write_text("x = 2\n")
    assert first["dirty"]
    assert code_version(repository)["diff_sha256"] != first["diff_sha256"]


@pytest.mark.parametrize(
    "left",
    [
        "outputs/2024-01-01/12-00-00/.hydra/config.yaml",
        "lightning_logs/version_3/hparams.yaml",
        "wandb/run-3/files/code/train.py",
        "mlruns/0/meta.yaml",
        "torchinductor_me/ab/cab.py",
        "work_dirs/run/config.py",
    ],
)
def test_settings_and_code_that_tools_leave_do_not_count(repository, left):
    clean = code_version(repository)
    file = repository / left
    file.parent.mkdir(parents=True)
    file.write_text("x: 1\n")
    assert code_version(repository) == clean


def test_a_folder_inside_has_the_version_of_its_repository(repository):
    (repository / "inner").mkdir()
    assert code_version(repository / "inner") == code_version(repository)


def test_a_repository_that_git_is_at_work_in_is_not_taken_for_the_trainings(repository, tmp_path, monkeypatch):
    """As inside of a hook, where git names its own repository."""
    version = code_version(repository)
    (tmp_path / "other").mkdir()
    git(tmp_path / "other", "init")
    (tmp_path / "other" / "train.py").write_text("print(9)\n")
    git(tmp_path / "other", "add", ".")
    git(tmp_path / "other", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-m", "another")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "other"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "other" / ".git" / "index"))
    assert code_version(repository) == version


def test_without_a_repository_there_is_no_version(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert code_version(tmp_path) == {}
    assert code_version(tmp_path / "missing") == {}


def test_programs_named_in_the_repository_settings_are_not_run(repository):
    trap = repository / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {repository}/sprung\n")
    trap.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(trap))
    git(repository, "config", "diff.external", str(trap))
    (repository / "train.py").write_text("print(2)\n")
    assert code_version(repository)["dirty"]
    assert not (repository / "sprung").exists()


def test_a_fork_server_knows_what_none_that_it_forks_need_look_at(monkeypatch):
    loaded = modules(
        numbers=usercode.STANDARD_LIBRARY + "numbers.py",
        library=f"{SITE}/library.py",
        mine="/home/me/mine.py",
        isorun__zoo__of_a_paper=usercode.ISORUN + "zoo/of_a_paper.py",
    )
    loaded["__main__"] = loaded["numbers"]
    known = set()
    with monkeypatch.context() as patched:
        patched.setattr(usercode, "_of_server", known)
        patched.setattr(usercode.sys, "modules", loaded)
        usercode.look_ahead()
    assert known == {"numbers", "library"}
