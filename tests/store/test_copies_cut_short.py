"""Copies between stores that are killed again and again: what is there in the end is what was copied, and no more."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from store_children import kill

from isorun.session import open_store
from isorun.store import PLANS, SEARCHES, STUDIES
from isorun.store.folder import FolderStore
from isorun.study.records import record_digest
from isorun.testing.made_records import make_cell, make_record
from typed_commands import typed

pytestmark = pytest.mark.chaos
DOCUMENTS = {STUDIES: "mlp", PLANS: "0123456789abcdef", SEARCHES: "found"}


def digests(place: str | Path) -> dict[str, bytes]:
    with open_store(str(place), create=False) as store:
        return {record.run_id: record_digest(record) for record in store.records()}


def copied_with_kills(source: object, target: object, cwd: Path, *, kills: int, seconds: float) -> int:
    """How many copies were killed before one came to its end."""
    command = [sys.executable, "-m", "isorun", "store", "copy", str(source), str(target)]
    generator, killed = random.Random(kills), 0
    for _ in range(kills):
        process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(generator.uniform(0.6, 0.6 + seconds))
        kill(process.pid)
        killed += process.wait() == -9
    done = typed("store", "copy", str(source), str(target), cwd=cwd, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return killed


@pytest.mark.parametrize(
    ("runs", "kills", "seconds"), [(60, 1, 0.5), pytest.param(10_000, 10, 6.0, marks=pytest.mark.slow)]
)
@pytest.mark.long
def test_a_copy_that_is_killed_goes_on_and_has_all_records_and_documents(
    database: str, tmp_path: Path, runs: int, kills: int, seconds: float
):
    with FolderStore(tmp_path / "a") as store:
        for number in range(runs):
            store.finish(make_record(make_cell(number), accuracy=number / 3))
        for kind, name in DOCUMENTS.items():
            store.documents(kind).write(name, {"folder": "/there", "of": kind})
    expected = digests(tmp_path / "a")
    assert len(expected) == runs
    killed = copied_with_kills(tmp_path / "a", database, tmp_path, kills=kills, seconds=seconds)
    assert digests(database) == expected
    killed += copied_with_kills(database, tmp_path / "b", tmp_path, kills=kills, seconds=seconds)
    assert digests(tmp_path / "b") == expected
    assert killed > 0
    for place in (database, str(tmp_path / "b")):
        with open_store(place) as store:
            for kind, name in DOCUMENTS.items():
                assert store.documents(kind).read(name) == {"folder": "/there", "of": kind}
        assert typed("store", "verify", "--store", place, cwd=tmp_path).returncode == 0
    with FolderStore(tmp_path / "b") as store:  # a study that lies elsewhere is the same one, another plan is not
        store.documents(STUDIES).write("mlp", {"folder": "/here", "of": STUDIES})
        store.documents(PLANS).write(DOCUMENTS[PLANS], {"of": "another"})
    done = typed("store", "copy", "b", database, cwd=tmp_path)
    assert done.returncode == 3
    assert f"plans/{DOCUMENTS[PLANS]}" in done.stdout
    assert "studies/mlp" not in done.stdout
    assert f"{runs:,} and 2 were there already" in done.stdout
