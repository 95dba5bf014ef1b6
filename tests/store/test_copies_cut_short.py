"""Copies between stores that are killed again and again: what is there in the end is what was copied, and no more."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from store_children import kill

from isorun.errors import StoreError
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


def recorded(place: object) -> int:
    """How many runs a store has; none where there is no store yet."""
    try:
        with open_store(str(place), create=False) as store:
            return len(store.run_ids())
    except StoreError:
        return 0


def copied_with_kills(source: object, target: object, cwd: Path, *, runs: int, kills: int) -> int:
    """How many copies were killed with a part of the runs in the target, before one came to its end.

    Each is killed when it has brought so many, not after so many seconds: how fast a machine copies is not known here.
    """
    command = [sys.executable, "-m", "isorun", "store", "copy", str(source), str(target)]
    cut_short = 0
    for least in sorted(random.Random(kills).sample(range(1, runs // 2), kills)):
        process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and recorded(target) < least:
            time.sleep(0.002)
        kill(process.pid)
        cut_short += process.wait() == -signal.SIGKILL and 0 < recorded(target) < runs
    done = typed("store", "copy", str(source), str(target), cwd=cwd, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return cut_short


@pytest.mark.parametrize(("runs", "kills"), [(300, 2), pytest.param(10_000, 10, marks=pytest.mark.slow)])
@pytest.mark.long
def test_a_copy_that_is_killed_goes_on_and_has_all_records_and_documents(
    database: str, tmp_path: Path, runs: int, kills: int
):
    with FolderStore(tmp_path / "a") as store:
        for number in range(runs):
            store.finish(make_record(make_cell(number), accuracy=number / 3))
        for kind, name in DOCUMENTS.items():
            store.documents(kind).write(name, {"folder": "/there", "of": kind})
    expected = digests(tmp_path / "a")
    assert len(expected) == runs
    for source, target in ((tmp_path / "a", database), (database, tmp_path / "b")):
        assert copied_with_kills(source, target, tmp_path, runs=runs, kills=kills) > 0
        assert digests(target) == expected
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
