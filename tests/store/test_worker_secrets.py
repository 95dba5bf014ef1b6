"""The password of a store's URL is in nothing that a worker says, keeps or hands on, whatever goes wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from postgres_server import Server, free_port

from typed_commands import typed

WORDS = ("ge-heim7", "ge-heim7/x", "ge-heim7%2Fx")
STUDY = 'name = "toy"\nrepeats = 2\n[approaches.a]\ncommand = "sh train.sh"\n[metrics.accuracy]\ndirection = "higher"\n'
TRAIN = "env\necho accuracy: 0.5\n"
"""A training that prints all that it was handed on."""


def kept_in(folder: Path, postgres: Server) -> list[bytes]:
    tables = ("runs", "parts", "documents", "cells", "store")
    rows = [repr(postgres.ask(f"SELECT * FROM isorun.{table}")).encode() for table in tables]
    return [*rows, *(path.read_bytes() for path in folder.rglob("*") if path.is_file())]


def test_no_password_in_what_a_worker_says_or_leaves(postgres: Server, url: str, tmp_path: Path):
    (tmp_path / "train.sh").write_text(TRAIN)
    (tmp_path / "study.toml").write_text(STUDY)
    said = []

    def isorun(*words: object, code: int = 0, **env: str) -> str:
        done = typed(*words, cwd=tmp_path, env=env)
        said.append(f"{done.stdout}{done.stderr}")
        assert done.returncode == code, said[-1]
        return done.stdout

    isorun("run", "study.toml", "--store", url, "--queue")
    assert "isorun worker 'postgresql://lab:***@127.0.0.1:" in said[-1]
    made = json.loads(isorun("worker", "--json", ISORUN_STORE=url))
    assert made["finished"] == 2
    isorun("worker", url)
    isorun("status", "--store", url, "--json")
    isorun("report", "toy", "--store", url, "--json")
    isorun("run", "-n", "1", "--name", "x", "--store", url, "--", "sh", "train.sh", PGPASSWORD="ge-heim7/x")
    isorun("worker", "--study", "none", url, code=1)
    data = kept_in(tmp_path, postgres)
    assert any(b"accuracy: 0.5" in one for one in data)
    for word in WORDS:
        assert [text for text in said if word in text] == []
        assert [one[:200] for one in data if word.encode() in one] == []


@pytest.mark.parametrize(
    "given",
    [
        "postgresql://lab:ge-heim7/x@127.0.0.1:{port}/postgres",  # not escaped, so that libpq takes half for a port
        "postgresql://lab:ge-heim7%2Fx@127.0.0.1:{closed}/postgres",
        "postgresql://lab:ge-heim7@x@127.0.0.1:{port}/postgres",
        "postgresql://lab:ge-heim7%zz@127.0.0.1:{port}/postgres",
        "postgresql://lab:ge-heim7?x@127.0.0.1:{port}/postgres",
        "postgresql://lab:ge-heim7#x@127.0.0.1:{port}/postgres",
        "postgresql://lab:ge-heim7 x@127.0.0.1:{port}/postgres",
        "postgresql://127.0.0.1:{port}/postgres?user=lab&password=ge-heim7",
        "postgresql://127.0.0.1:{port}/postgres?user=lab&Password=ge-heim7",
        "postgresql://lab:ge-heim7:x@127.0.0.1:{port}/nowhere",
        "postgresql://lab:ge-heim7",
        "postgres://lab:ge-heim7@[::1/x",
    ],
)
def test_no_password_in_errors(postgres: Server, url: str, tmp_path: Path, given: str):
    assert url
    place = given.format(port=postgres.port, closed=free_port())
    for done in (
        typed("worker", place, cwd=tmp_path),
        typed("worker", cwd=tmp_path, env={"ISORUN_STORE": place}),
        typed("status", "--store", place, cwd=tmp_path),
    ):
        assert done.returncode in (1, 2)
        assert "ge-heim7" not in f"{done.stdout}{done.stderr}", done.stderr
        assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []
