"""Nothing secret is in any store: real runs of every kind of command, with the names of services that people use."""

from __future__ import annotations

import gzip
import sqlite3
import sys
import tomllib
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from git_history import history
from isorun.cli.main import main
from isorun.environments import opened_environment
from isorun.environments.container import IMAGE
from isorun.study import Environment

CASES = tomllib.loads((Path(__file__).parents[2] / "benchmarks" / "secret_cases.toml").read_text())
TRAINING = """
import os, random
for name, value in sorted(os.environ.items()):
    print(f"{name}={value}")
print(dict(os.environ))
print("loss:", random.random())
"""
STUDY = """
[approaches.t]
command = "python t.py"
[environments.set]
threads = 1
[environments.set.env]
HF_TOKEN = "study-Zq7-set-93x"
[factors]
baseline = { threads = 1, onednn = "on" }
threads = [1, 2]
onednn = ["on", "off"]
"""


def everything_in(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """All bytes below a folder, also those that are compressed."""
    for path in folder.rglob("*"):
        if not path.is_file():
            continue
        data = path.read_bytes()
        yield path, data
        if data.startswith(b"\x1f\x8b"):
            yield path, gzip.decompress(data)
        if path.name == "store.sqlite":
            with closing(sqlite3.connect(path)) as connection:
                tails = connection.execute("SELECT log_tail FROM runs").fetchall()
            yield from ((path, zlib.decompress(tail)) for (tail,) in tails if tail)


@pytest.mark.slow
def test_no_value_of_a_secret_variable_is_kept_by_any_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    names = CASES["variables"].split()
    assert len(names) > 200
    values = {name: f"v{number:03}Zq9-{name[::-1].lower()}-x7" for number, name in enumerate(names)}
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("ISORUN_CACHE", str(tmp_path / "kept" / "cache"))
    repository = history(tmp_path / "repository", ["base = 1", "base = 2"], {"t.py": TRAINING})
    monkeypatch.chdir(repository)
    (tmp_path / "repository" / "study.toml").write_text(STUDY)
    store = ["--store", str(tmp_path / "kept" / "store")]
    typed = [
        ["run", *store, "--launch", "fresh", "--", sys.executable, "t.py"],
        ["run", *store, "--launch", "warm", "--", sys.executable, "t.py"],
        ["run", *store, "--launch", "fresh", "study.toml"],
        ["price", *store, "--runs", "4", "--", sys.executable, "t.py"],
        ["bisect", *store, "--what", "bits", "c1..main", "--", sys.executable, "t.py"],
    ]
    for words in typed:
        code = main(words)
        told = capsys.readouterr()
        assert code in {0, 3}, (words, told.err)
        assert [name for name, value in values.items() if value in told.out + told.err] == []
    assert main(["audit", "--", sys.executable, "t.py"]) == 3
    (tmp_path / "repository" / "study.toml").unlink()
    held = [
        (name, str(path))
        for path, data in everything_in(tmp_path)  # wherever a command left something
        for name, value in {**values, "study": "study-Zq7-set-93x"}.items()
        if value.encode() in data
    ]
    assert held == []
    assert any(b"<redacted>" in data for _, data in everything_in(tmp_path / "kept" / "store"))


def test_what_is_kept_of_an_image_has_no_secrets_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    baked = {"PATH": "/usr/bin", "LANG": "C", "HUB_TOKEN": "baked-Zq9-x71", "NOTE": "ghp_" + "a1B2" * 9}
    image = {"Id": "ab" * 32, "Config": {"Env": [f"{name}={value}" for name, value in baked.items()]}}
    environment = opened_environment(Environment("e", kind="container", settings={"image": "made:1"}))
    kind = type(environment)
    engine = SimpleNamespace(name="podman", facts=lambda: {"version": "4.3.1"})
    monkeypatch.setattr(kind, "_engine", engine)
    monkeypatch.setattr(kind, "_found_or_pulled", lambda *_: image)
    monkeypatch.setattr(kind, "_python_inside", lambda *_: {"python": "/usr/bin/python3"})
    environment.make(tmp_path, lambda _: None)
    kept = (tmp_path / IMAGE).read_text()
    assert "baked-Zq9-x71" not in kept
    assert baked["NOTE"] not in kept
    assert '"LANG": "C"' in kept
