"""The database file: its settings, its schema, and damage."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from isorun.errors import StoreError, StoreTooNew
from isorun.store.database import (
    Migration,
    connect,
    create_database,
    migrate,
    needs_migration,
    shipped_migrations,
)
from isorun.store.files import Files
from isorun.store.folder import FolderStore
from isorun.testing.made_records import content, make_cell, make_record

NEXT = Migration(len(shipped_migrations()) + 1, "colours", "CREATE TABLE colours (name TEXT);")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with FolderStore(tmp_path) as store:
        for number in range(3):
            store.finish(make_record(make_cell(number), points=300))
        store.pack()
    return tmp_path


def alter(folder: Path, sql: str) -> None:
    connection = sqlite3.connect(folder / "store.sqlite")
    connection.executescript(sql)
    connection.close()


def test_commits_are_synchronised_and_the_write_ahead_log_is_off(folder: Path):
    with FolderStore(folder) as store:
        settings = {
            name: store._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("synchronous", "journal_mode")
        }
        assert settings == {"synchronous": 3, "journal_mode": "delete"}
        assert store._connection.execute("PRAGMA mmap_size").fetchone() == (0,)


def test_a_newer_store_is_refused_naming_both_versions(folder: Path):
    alter(folder, "INSERT INTO migrations (number, name, checksum) VALUES (42, 'future', 'x')")
    with pytest.raises(StoreTooNew) as raised:
        FolderStore(folder)
    assert "42" in raised.value.found
    assert f"up to {len(shipped_migrations())}" in raised.value.allowed
    assert "upgrade" in raised.value.hint


def test_an_altered_migration_is_refused(folder: Path):
    alter(folder, "UPDATE migrations SET checksum = 'x' WHERE number = 1")
    with pytest.raises(StoreError, match="another schema"):
        FolderStore(folder)


def test_another_kind_of_database_is_refused_and_untouched(tmp_path: Path):
    alter(tmp_path, "CREATE TABLE mine (x); INSERT INTO mine VALUES (1);")
    before = (tmp_path / "store.sqlite").read_bytes()
    with pytest.raises(StoreError, match="is not a store of isorun"):
        FolderStore(tmp_path)
    assert (tmp_path / "store.sqlite").read_bytes() == before


def test_an_older_store_is_backed_up_and_migrated(folder: Path):
    path = folder / "store.sqlite"
    migrations = (*shipped_migrations(), NEXT)
    connection = connect(path)
    assert needs_migration(connection, path, migrations)
    migrate(connection, path, migrations)
    assert not needs_migration(connection, path, migrations)
    assert connection.execute("SELECT COUNT(*) FROM colours").fetchone() == (0,)
    connection.close()
    (backup,) = folder.glob("store.sqlite.before-*")
    kept = sqlite3.connect(backup)
    assert kept.execute("SELECT COUNT(*) FROM runs").fetchone() == (3,)
    assert kept.execute("SELECT COUNT(*) FROM sqlite_schema WHERE name = 'colours'").fetchone() == (0,)
    kept.close()


def test_a_migration_that_fails_leaves_the_store_as_it_was(folder: Path):
    path = folder / "store.sqlite"
    broken = Migration(NEXT.number, "broken", "CREATE TABLE half (x); INSERT INTO nowhere VALUES (1);")
    connection = connect(path)
    with pytest.raises(StoreError, match="migrating the store"):
        migrate(connection, path, (*shipped_migrations(), broken))
    assert connection.execute("SELECT COUNT(*) FROM sqlite_schema WHERE name = 'half'").fetchone() == (0,)
    connection.close()
    with FolderStore(folder) as store:
        assert len(store.records()) == 3


def test_migrations_are_numbered_without_gaps():
    assert [migration.number for migration in shipped_migrations()] == list(range(1, len(shipped_migrations()) + 1))


def test_an_interrupted_creation_is_done_again(tmp_path: Path):
    (tmp_path / "store.sqlite.unfinished").write_bytes(b"half a database")
    create_database(tmp_path / "store.sqlite", Files())
    with FolderStore(tmp_path) as store:
        assert store.records() == []
    assert not (tmp_path / "store.sqlite.unfinished").exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda _: b"garbage" * 1_000,
        lambda data: data[: len(data) // 2],
        lambda data: data[:100],
        lambda data: b"\0" * len(data),
        lambda data: data[:16] + b"\xff" * 84 + data[100:],
    ],
    ids=["empty", "garbage", "half", "header", "zeros", "wrong-header"],
)
def test_a_damaged_database_is_refused_and_never_overwritten(folder: Path, damage):
    path = folder / "store.sqlite"
    damaged = damage(path.read_bytes())
    path.write_bytes(damaged)
    with pytest.raises(StoreError) as raised, FolderStore(folder) as store:
        store.records()
    assert raised.value.found
    assert "isorun store repair" in raised.value.hint
    assert path.read_bytes() == damaged


def test_a_page_of_garbage_within_is_noticed_when_it_is_read(folder: Path):
    path = folder / "store.sqlite"
    data = bytearray(path.read_bytes())
    page = 16_384
    for start in range(page, len(data), page):
        data[start : start + 64] = b"\xa5" * 64
    path.write_bytes(data)
    with pytest.raises(StoreError, match="malformed") as raised, FolderStore(folder) as store:
        store.records()
    assert "isorun store repair" in raised.value.hint


def test_a_large_environment_is_kept_once_and_a_differing_member_costs_only_itself(tmp_path: Path):
    packages = {f"package-{number}": "1.2.3" for number in range(500)}
    with FolderStore(tmp_path) as store:
        for number in range(20):
            environment = {"requested": {}, "effective": {"packages": packages, "cpu": number, "pid": number}}
            store.finish(make_record(make_cell(number), environment=environment))
        store.pack()
        stored = store._connection.execute("SELECT SUM(LENGTH(content)) FROM documents").fetchone()[0]
        assert {record.environment["effective"]["pid"] for record in store.records()} == set(range(20))
        assert all(record.environment["effective"]["packages"] == packages for record in store.records())
    assert stored < len(str(packages)) + 20 * 200


def test_metrics_logged_together_share_an_axis(folder: Path):
    with FolderStore(folder) as store:
        assert store._connection.execute("SELECT COUNT(*) FROM series").fetchone() == (9,)
        assert store._connection.execute("SELECT COUNT(*) FROM axes").fetchone() == (6,)


def test_a_second_finished_record_cannot_be_inserted_even_by_hand(folder: Path):
    with FolderStore(folder) as store:
        row = store._connection.execute("SELECT * FROM runs").fetchone()
        marks = ", ".join("?" * (len(row) - 1))
        with pytest.raises(sqlite3.IntegrityError):
            store._connection.execute(f"INSERT INTO runs VALUES (NULL, {marks})", row[1:])


def test_a_record_survives_copying_between_stores(folder: Path, tmp_path: Path):
    with FolderStore(folder) as source, FolderStore(tmp_path / "copy") as target:
        for record in source.records():
            target.finish(record)
        target.pack()
        assert [content(record) for record in target.records()] == [content(record) for record in source.records()]
        for record in target.records():
            source.finish(record)
        assert source.pack() == 0
