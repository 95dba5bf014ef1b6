"""What a process computed with, and what is kept between runs to find it out quickly."""

import json
import os
import subprocess
import sys
import types

import pytest

from isorun.worker import fingerprint
from isorun.worker.fingerprint import Cache, imported_packages


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setenv("ISORUN_CACHE", str(tmp_path / "cache"))
    return lambda name: json.loads((tmp_path / "cache" / f"{name}.json").read_text())


def distribution(folder, name, version, module):
    information = folder / f"{name}-{version}.dist-info"
    information.mkdir(parents=True)
    (information / "top_level.txt").write_text(f"{module}\n")


def test_what_another_process_keeps_meanwhile_is_seen(kept, tmp_path):
    path = str(tmp_path)
    before = Cache("facts")
    before.put(path, "first", 1)
    before.save()
    assert Cache("facts").get(path, "first") == 1
    written = "import sys; from isorun.worker.fingerprint import Cache; c = Cache('facts'); "
    written += "c.put(sys.argv[1], 'second', 2); c.save()"
    subprocess.run([sys.executable, "-c", written, path], check=True)
    assert Cache("facts").get(path, "second") == 2


def test_what_is_not_saved_stays_with_who_put_it(kept, tmp_path):
    Cache("facts").save()
    first = Cache("facts")
    first.put(str(tmp_path), "now", 1)
    first.save()
    one = Cache("facts")
    one.put(str(tmp_path), "later", 2)
    assert Cache("facts").get(str(tmp_path), "later") is None


def test_a_fork_server_looks_ahead_also_where_a_part_cannot_be_read(kept, monkeypatch):
    def unreadable():
        raise OSError("no such file")

    monkeypatch.setattr(fingerprint, "_cpu_model", unreadable)
    fingerprint.look_ahead()
    assert fingerprint.effective_environment(None)["cpu"] == {"unreadable": "OSError: no such file"}


def test_a_value_is_kept_as_long_as_its_file_is_the_same(kept, tmp_path):
    path = str(tmp_path)
    cache = Cache("facts")
    cache.put(path, "first", {"a": 1})
    cache.save()
    assert Cache("facts").get(path, "first") == {"a": 1}
    assert Cache("facts").get(path, "second") is None


def test_a_path_has_one_value_and_one_that_is_gone_has_none(kept, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    for stamp in ("first", "second"):
        cache = Cache("facts")
        for path in (tmp_path, gone):
            cache.put(str(path), stamp, stamp)
        cache.save()
    assert kept("facts") == {str(tmp_path): ["second", "second"], str(gone): ["second", "second"]}
    gone.rmdir()
    cache = Cache("facts")
    cache.put(str(tmp_path), "third", 3)
    cache.save()
    assert kept("facts") == {str(tmp_path): ["third", 3]}


@pytest.mark.parametrize("content", ["", "[]", "{", '{"PATH": 7}', '{"PATH": ["first"]}', '{"PATH|first": "old"}'])
def test_a_file_that_is_none_of_ours_costs_only_time(kept, tmp_path, content):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "facts.json").write_text(content.replace("PATH", str(tmp_path)))
    cache = Cache("facts")
    assert cache.get(str(tmp_path), "first") is None
    cache.put(str(tmp_path), "first", 1)
    cache.save()
    assert kept("facts") == {str(tmp_path): ["first", 1]}


def test_packages_are_found_by_what_was_imported_and_found_anew_when_they_change(kept, tmp_path, monkeypatch):
    site = tmp_path / "site"
    distribution(site, "Some_Package", "1.2", "json")
    distribution(site, "unused", "3", "never_imported_by_anybody")
    monkeypatch.setattr(sys, "path", [str(site)])
    assert imported_packages() == imported_packages() == {"some-package": "1.2"}
    assert list(kept("installed-modules")) == [str(site)]
    distribution(site, "another", "2", "os")
    assert imported_packages() == {"another": "2", "some-package": "1.2"}


def test_a_folder_that_changes_with_every_run_leaves_nothing_behind(kept, tmp_path, monkeypatch):
    site, training = tmp_path / "site", tmp_path / "training"
    distribution(site, "package", "1", "json")
    training.mkdir()
    monkeypatch.setattr(sys, "path", ["", str(training), str(site), str(tmp_path / "missing")])
    monkeypatch.chdir(training)
    for number in range(3):
        (training / f"checkpoint-{number}").write_text("")
        os.utime(training, ns=(number, number))
        assert imported_packages() == {"package": "1"}
    assert list(kept("installed-modules")) == [str(site)]


@pytest.mark.parametrize(("variable", "is_free"), [(None, True), ("random", True), ("1", False)])
def test_hashes_are_free_unless_a_number_fixes_them(monkeypatch, variable, is_free):
    monkeypatch.setattr(fingerprint.sys, "flags", types.SimpleNamespace(hash_randomization=1, optimize=0))
    if variable is None:
        monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    else:
        monkeypatch.setenv("PYTHONHASHSEED", variable)
    assert fingerprint._python()["hash_randomization"] is is_free


def test_what_killed_processes_left_in_the_cache_is_swept(tmp_path, monkeypatch):
    monkeypatch.setenv("ISORUN_CACHE", str(tmp_path))
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    gone, young, alive = (tmp_path / f"installed-modules.json.{pid}" for pid in (child.pid, 2**22 + 1, os.getpid()))
    for left in (gone, young, alive):
        left.write_text("{")
    for old in (gone, alive):
        os.utime(old, (1000, 1000))
    cache = fingerprint.Cache("sources-of-a-test")
    cache.put(str(tmp_path), "stamp", 1)
    cache.save()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        ["sources-of-a-test.json", young.name, alive.name]
    )
