"""Stores that earlier versions made are read for ever: one of each schema and record version lies in `kept`."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest

from isorun.errors import StoreDamaged, StoreTooNew
from isorun.store import STUDIES
from isorun.store.folder import FolderStore
from isorun.study.records import RunRecord, RunState
from isorun.testing.made_records import content, make_cell, make_record

KEPT = Path(__file__).parent / "kept"
STORES = sorted(folder.name for folder in KEPT.iterdir())


def unpacked(name: str, place: Path) -> Path:
    """A copy of a kept store that can be written to."""
    shutil.copytree(KEPT / name, place, ignore=shutil.ignore_patterns("*.gz"))
    (place / "store.sqlite").write_bytes(gzip.decompress((KEPT / name / "store.sqlite.gz").read_bytes()))
    return place


def expected(name: str) -> list[RunRecord]:
    return [
        RunRecord.from_json(item)
        for item in json.loads(gzip.decompress((KEPT / name / "expected.json.gz").read_bytes()))
    ]


@pytest.mark.parametrize("name", STORES)
def test_a_kept_store_is_read_and_goes_on(name: str, tmp_path: Path):
    records = expected(name)
    assert len(records) >= 8
    with FolderStore(unpacked(name, tmp_path / "store")) as store:
        assert [content(record) for record in store.records()] == [content(record) for record in records]
        assert store.finished() == {record.cell.id for record in records if record.state is RunState.FINISHED}
        for record in records:
            store.finish(record)  # the same again is nothing, also in today's version
        store.finish(make_record(make_cell(1000)))
        (study,) = store.documents(STUDIES).names()
        assert store.documents(STUDIES).read(study)["approaches"]
        assert store.notes() == ()
    with FolderStore(tmp_path / "store") as store:
        assert len(store.records()) == len(records) + 1


def test_a_changed_value_in_a_kept_store_of_schema_1_is_found_when_it_is_migrated(tmp_path: Path):
    folder = unpacked("schema-1-record-1", tmp_path / "store")
    data = (folder / "store.sqlite").read_bytes()
    assert data.count(b'"accuracy":0.375') == 1
    (folder / "store.sqlite").write_bytes(data.replace(b'"accuracy":0.375', b'"accuracy":0.975'))
    with FolderStore(folder) as store:
        with pytest.raises(StoreDamaged, match=make_cell(3).id):
            store.records()
        assert len(store.records([make_cell(2).id])) == 1


def test_a_record_of_a_newer_version_is_refused():
    with pytest.raises(StoreTooNew, match="record version 3"):
        RunRecord.from_json({**make_record().to_json(), "record": 3})
