"""Whatever fails or dies in the middle of a push: a version is there with its line and its file, or nothing is."""

import os
import shutil
import signal
import sqlite3
import threading
from contextlib import closing

import pytest

from isorun.errors import RegistryError
from isorun.packages.names import parse_name, parse_wanted
from isorun.registry import blobs as blobs_room
from isorun.registry.audit import Head, append
from isorun.registry.backups import back_up
from isorun.registry.opening import Registry
from isorun.registry.verifying import verify_registry
from isorun.store.files import Files
from registries_made import package, push, viewers

NAME = "lab/a/b"
FORGED_TOKEN = """INSERT INTO tokens (hash, user_name, scopes, owners, purpose, made_at, expires_at)
    SELECT 'f', user_name, scopes, owners, purpose, made_at, expires_at FROM tokens LIMIT 1"""
SUMMARY = {"address": "sha256:" + "1" * 64, "study": "toy", "metrics": [], "environments": [], "signature": "unsigned"}


class Trusting:
    """Verifies nothing: here it is about files."""

    def check(self, path, size):
        return SUMMARY

    def close(self):
        pass


class Failing(Files):
    """The n-th operation that changes something fails, or is where the process is killed."""

    def __init__(self, at, *, kill):
        self.at, self.kill, self.count = at, kill, 0

    def _step(self):
        self.count += 1
        if self.count == self.at:
            if self.kill:
                os.kill(os.getpid(), signal.SIGKILL)
            raise OSError(28, "No space left on device")

    def create(self, path):
        self._step()
        return super().create(path)

    def write(self, descriptor, *pieces):
        self._step()
        super().write(descriptor, *(piece[: len(piece) // 2] for piece in pieces))
        self._step()
        super().write(descriptor, *(piece[len(piece) // 2 :] for piece in pieces))

    def fsync(self, descriptor):
        self._step()
        super().fsync(descriptor)

    def rename(self, source, target):
        self._step()
        super().rename(source, target)
        self._step()

    def fsync_folder(self, folder):
        self._step()
        super().fsync_folder(folder)


@pytest.fixture
def made(quick_folder):
    registry = Registry(quick_folder / "registry", checkers=Trusting())
    registry.people.set_up_token()
    ann = viewers(registry)["ann"]
    registry.close()
    return quick_folder / "registry", ann


def pushing(folder, ann, files, *, killed_in_index=False):
    """In a child: push with these files; whether it was acknowledged."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            registry = Registry(folder, checkers=Trusting())
            registry.blobs = blobs_room.Blobs(folder, files)
            if killed_in_index:
                registry.index.add = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
            push(registry, ann, NAME, package(1))
            os.write(write, b"acknowledged")
        finally:
            os._exit(1)
    os.close(write)
    said = os.read(read, 100)
    os.close(read)
    os.waitpid(child, 0)
    return said == b"acknowledged"


def looked_over(folder, ann, *, acknowledged):
    registry = Registry(folder, checkers=Trusting())
    try:
        swept = registry.sweep()
        found = verify_registry(registry)
        assert found.damage == ()
        assert found.versions == (1 if acknowledged else 0)
        left = [path for path in (folder / "blobs").rglob("*") if path.is_file() and path.name != "writing.lock"]
        assert len(left) == found.versions
        if acknowledged:
            version = registry.index.version(ann, parse_wanted(NAME))
            assert b"".join(registry.blobs.pieces(version.digest)) == package(1)
        assert push(registry, ann, NAME, package(1)).version.version == 1
        return swept
    finally:
        registry.close()


@pytest.mark.parametrize("kill", [False, True], ids=["fails", "is killed"])
def test_each_operation_that_fails_or_dies_leaves_all_or_nothing(kill, made, tmp_path):
    folder, ann = made
    outcomes = []
    for at in range(1, 40):
        copy = folder.with_name(f"copy-{at}")
        shutil.copytree(folder, copy)
        acknowledged = pushing(copy, ann, Failing(at, kill=kill))
        looked_over(copy, ann, acknowledged=acknowledged)
        outcomes.append(acknowledged)
        if acknowledged:
            break
    assert 6 <= len(outcomes) < 39
    assert outcomes[-1]


def test_a_server_that_dies_between_file_and_index_leaves_a_file_that_is_swept(made):
    folder, ann = made
    assert not pushing(folder, ann, Files(), killed_in_index=True)
    assert len(list((folder / "blobs" / "sha256").glob("*/*"))) == 1
    assert len(looked_over(folder, ann, acknowledged=False)) == 1


def test_nothing_is_swept_while_somebody_pushes(made):
    folder, _ = made
    registry = Registry(folder, checkers=Trusting())
    other = Registry(folder, checkers=Trusting())
    with registry.blobs.incoming() as part:
        part.write(b"half")
        assert other.sweep() is None
        assert part.path.exists()
    assert other.sweep() == []
    registry.close()
    other.close()


def test_two_who_push_at_once_get_two_versions(made):
    folder, ann = made
    registries = [Registry(folder, checkers=Trusting()) for _ in range(4)]
    numbers = []

    def work(place):
        numbers.append(push(registries[place], ann, NAME, package(10 + place)).version.version)

    threads = [threading.Thread(target=work, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers) == [1, 2, 3, 4]
    assert len(registries[0].index.versions(ann, parse_name(NAME))) == 4
    assert verify_registry(registries[0]).damage == ()
    for registry in registries:
        registry.close()


def test_damage_is_found(made):
    folder, ann = made
    registry = Registry(folder, checkers=Trusting())
    digest = push(registry, ann, NAME, package(1)).version.digest
    head = verify_registry(registry).head
    path = registry.blobs.path(digest)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + b"x")
    assert verify_registry(registry).damage == (f"the blob {digest} is damaged",)
    path.unlink()
    assert verify_registry(registry).damage == (f"the blob {digest} is not there",)
    assert push(registry, ann, NAME, package(1)).new is False
    assert verify_registry(registry).damage == (), "whoever has the package heals it by pushing it again"
    assert verify_registry(registry, head).damage == ()
    registry.close()


def altered(folder, *statements):
    """Change the database as somebody would who has its file and takes its triggers away."""
    with sqlite3.connect(folder / "index.sqlite") as connection:
        triggers = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for (name,) in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            connection.execute(statement)
    connection.close()


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE audit SET user_name = 'carl' WHERE line = 3", "at line 3"),
        ("UPDATE audit SET details = '{}' WHERE line = 5", "at line 5"),
        ("DELETE FROM audit WHERE line = 4", "at line 4"),
        ("UPDATE audit SET line = line + 100 WHERE line = 2", "at line 2"),
        ("DELETE FROM audit WHERE action = 'pushed'", "cut"),
        ("UPDATE versions SET pushed_by = 'carl'", "is not what the audit log says"),
        ("UPDATE versions SET address = 'sha256:2'", "is not what the audit log says"),
        ("DELETE FROM versions", "was pushed, and is not in the index"),
        ("UPDATE versions SET digest = '../../../etc/passwd'", "cannot be read"),
        ("UPDATE audit SET details = '{}' WHERE action = 'pushed'", "does not hold together"),
        ("UPDATE audit SET details = '{' WHERE action = 'pushed'", "does not hold together"),
        ("UPDATE audit SET user_name = X'ff' WHERE line = 2", "at line 2"),
        ("UPDATE users SET admin = 1 - admin", "user ann is not as the audit log says"),
        ("UPDATE users SET closed_at = 'x'", "user ann is not as the audit log says"),
        ("UPDATE tokens SET revoked_at = 'x' WHERE id = 1", "token 1 is not as the audit log says"),
        ("UPDATE tokens SET scopes = 'read push yank admin read'", "token 1 is not as the audit log says"),
        (FORGED_TOKEN, "is not as the audit log says"),
        ("UPDATE tokens SET hash = 'another' WHERE id = 1", "token 1 is not as the audit log says: another row"),
        ("UPDATE tokens SET purpose = 'browser' WHERE id = 1", "token 1 is not as the audit log says: another row"),
        ("UPDATE tokens SET hash = X'ff' WHERE id = 1", "token 1 is not as the audit log says: another row"),
        ("UPDATE versions SET summary = '{}'", f"{NAME}@1 is not as the audit log says: another row"),
        ("UPDATE versions SET replicates = address", f"{NAME}@1 is not as the audit log says: another row"),
        ("UPDATE versions SET words = 'best'", f"{NAME}@1 is not as the audit log says: another row"),
        ("UPDATE names SET public = 1", f"package {NAME} is not as the audit log says"),
        ("UPDATE versions SET yanked_at = 'x', yanked_by = 'ann', yank_reason = 'y'", f"yank {NAME}@1 is not as"),
    ],
)
def test_whoever_alters_the_index_is_found_out(made, statement, said):
    folder, ann = made
    registry = Registry(folder, checkers=Trusting())
    push(registry, ann, NAME, package(1))
    head = verify_registry(registry).head
    registry.close()
    altered(folder, statement)
    registry = Registry(folder, checkers=Trusting())
    damage = " ".join(verify_registry(registry, head).damage)
    assert said in damage
    registry.close()


def test_what_was_made_before_the_log_covered_rows_verifies_and_is_named(quick_folder, monkeypatch):
    def as_before(rows, by, action, subject, /, **details):
        append(rows, by, action, subject, **{name: said for name, said in details.items() if name != "row"})

    with monkeypatch.context() as before:
        before.setattr("isorun.registry.people.append", as_before)
        before.setattr("isorun.registry.index.append", as_before)
        registry = Registry(quick_folder / "old", checkers=Trusting())
        registry.people.set_up_token()
        ann = viewers(registry)["ann"]
        push(registry, ann, NAME, package(1))
    old = verify_registry(registry)
    assert (old.damage, old.uncovered[-1]) == ((), f"{NAME}@1")
    assert "token 1" in old.uncovered
    push(registry, ann, NAME, package(2))
    new = verify_registry(registry, old.head)
    assert (new.damage, new.uncovered) == ((), old.uncovered)
    assert new.to_json()["uncovered"] == list(old.uncovered)
    registry.close()


def test_a_log_that_was_made_anew_is_found_by_its_head_alone(made, quick_folder):
    folder, _ = made
    registry = Registry(folder, checkers=Trusting())
    other = Head(3, "a" * 64)
    assert verify_registry(registry).damage == ()
    assert "made anew" in verify_registry(registry, other).damage[0]
    registry.close()


@pytest.mark.parametrize("moment", range(1, 8))
def test_a_registry_that_is_pushed_to_meanwhile_verifies(made, monkeypatch, moment):
    folder, ann = made
    registry = Registry(folder, checkers=Trusting())
    push(registry, ann, NAME, package(1))
    read, reads = registry.database.read, []

    def read_and_pushed_to(work):
        found = read(work)
        reads.append(work)
        if len(reads) == moment:
            push(registry, ann, NAME, package(2))
        return found

    monkeypatch.setattr(registry.database, "read", read_and_pushed_to)
    assert verify_registry(registry).damage == ()
    registry.close()


def test_a_copy_is_a_registry(made, quick_folder):
    folder, ann = made
    registry = Registry(folder, checkers=Trusting())
    push(registry, ann, NAME, package(1))
    assert back_up(registry, quick_folder / "copy") == 1
    push(registry, ann, NAME, package(2))
    assert back_up(registry, quick_folder / "copy") == 1
    head = verify_registry(registry).head
    registry.close()
    copy = Registry(quick_folder / "copy", checkers=Trusting())
    assert verify_registry(copy, head) == verify_registry(copy)
    assert copy.index.version(ann, parse_wanted(NAME)).version == 2
    copy.close()


def kept_files(folder):
    return sorted(path.name for path in (folder / "blobs" / "sha256").glob("*/*"))


def test_files_that_belong_to_another_index_are_neither_swept_nor_served(made):
    folder, ann = made
    with closing(Registry(folder, checkers=Trusting())) as registry:
        push(registry, ann, NAME, package(1))
    before = kept_files(folder)
    (folder / "index.sqlite").rename(folder / "elsewhere.sqlite")
    for create in (True, False):
        with pytest.raises(RegistryError, match="knows nothing of"):
            Registry(folder, create=create, checkers=Trusting())
    assert not (folder / "index.sqlite").exists()
    assert kept_files(folder) == before != []


def test_an_index_without_users_does_not_take_over_files(made, tmp_path):
    folder, ann = made
    with closing(Registry(folder, checkers=Trusting())) as registry:
        push(registry, ann, NAME, package(1))
    Registry(tmp_path / "new", checkers=Trusting()).close()
    shutil.copy(tmp_path / "new" / "index.sqlite", folder / "index.sqlite")
    with pytest.raises(RegistryError, match="knows nothing of"):
        Registry(folder, checkers=Trusting())


def test_nothing_is_swept_where_the_index_names_none_of_the_files(made):
    folder, ann = made
    with closing(Registry(folder, checkers=Trusting())) as registry:
        push(registry, ann, NAME, package(1))
        before = kept_files(folder)
        registry.index.digests = lambda: {"0" * 64}
        with pytest.raises(RegistryError, match="nothing was swept"):
            registry.sweep()
    assert kept_files(folder) == before
