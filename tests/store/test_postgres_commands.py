"""What people type for a store in PostgreSQL: one study from several folders, copies, and no password anywhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from postgres_server import Server

from typed_commands import typed

TRAIN = "import os\nprint('accuracy: 0.75')\n"


@pytest.mark.slow
def test_a_study_of_two_machines_and_no_password_in_what_is_shown_or_kept(postgres: Server, url: str, tmp_path: Path):
    said = []

    def isorun(place: str, *words: object, code: int = 0, **env: str) -> str:
        (tmp_path / place).mkdir(exist_ok=True)
        (tmp_path / place / "train.py").write_text(TRAIN)
        done = typed(*words, cwd=tmp_path / place, env=env)
        said.append(f"{done.stdout}{done.stderr}")
        assert done.returncode == code, said[-1]
        return done.stdout

    isorun("one", "run", "-n", "2", "--name", "both", "--store", url, "--", "python", "train.py")
    again = ("run", "-n", "3", "--name", "both", "--json", "--", "python", "train.py")
    made = json.loads(isorun("two", *again, ISORUN_STORE=url))
    assert (made["finished"], made["reused"]) == (1, 2), made
    assert "3 runs" in isorun("two", "report", "both", "--store", url)
    assert json.loads(isorun("one", "store", "verify", "--json", "--store", url))["sound_records"] == 3
    assert json.loads(isorun("two", "store", "copy", url, "here", "--json"))["records"]["copied"] == 3
    assert "0 records and 0 documents were copied" in isorun("two", "store", "copy", url, "here", "--study", "both")
    assert "3 runs" in isorun("two", "report", "both", "--store", "here")
    for action in ("repair", "share", "redact"):
        isorun("one", "store", action, "--store", url, code=2)
        assert "allowed: a store in a folder" in said[-1]
    isorun("one", "store", "copy", url, url, code=2)
    isorun("one", "report", "--store", url.replace("lab:", "lab:x"), code=1)
    assert "~/.pgpass" in said[-1]
    isorun("one", "report", url, code=1)
    kept = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    tables = ("runs", "parts", "documents", "cells", "store")
    kept += [repr(postgres.ask(f"SELECT * FROM isorun.{table}")).encode() for table in tables]
    for secret in ("ge-heim7", url.partition("lab:")[2].partition("@")[0]):
        assert [text for text in said if secret in text] == []
        assert not any(secret.encode() in data for data in kept)


def test_a_copy_that_contradicts_ends_with_3_and_names_it(url: str, tmp_path: Path):
    (tmp_path / "train.py").write_text(TRAIN)
    for store in ("a", "b"):
        assert typed("run", "--name", "x", "--store", store, "--", "python", "train.py", cwd=tmp_path).returncode == 0
    assert typed("store", "copy", "a", url, cwd=tmp_path).returncode == 0
    done = typed("store", "copy", "b", url, cwd=tmp_path)
    assert done.returncode == 3
    assert "in conflict, and left as it is there: run " in done.stdout
    assert "1 and 1 were there already" in typed("store", "copy", url, "a", cwd=tmp_path).stdout
    for words in (["copy", "a"], ["copy", "a", "b", "c"], ["verify", "--study", "x"]):
        assert typed("store", *words, cwd=tmp_path).returncode == 2
    missing = typed("store", "copy", "nowhere", "a", cwd=tmp_path)
    assert missing.returncode == 1
    assert "there is no store nowhere" in missing.stderr
