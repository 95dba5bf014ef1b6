"""The import hook tells of an import and leaves no trace on the module."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import sys

import pytest

from isorun.worker.frameworks.base import ImportWatcher


@pytest.fixture
def watcher(tmp_path, monkeypatch):
    meta_path = list(sys.meta_path)
    modules = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))
    watcher = ImportWatcher()
    watcher.install()
    yield watcher
    sys.meta_path[:] = meta_path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def test_the_callback_comes_after_the_module_has_run_and_once(watcher, tmp_path):
    (tmp_path / "watched_a.py").write_text("value = 1\nloader_inside = __loader__\n")
    seen = []
    watcher.watch("watched_a", lambda module: seen.append(module.value))
    module = importlib.import_module("watched_a")
    assert seen == [1]
    importlib.reload(module)
    assert seen == [1]


def test_the_module_keeps_its_own_loader_and_spec(watcher, tmp_path):
    (tmp_path / "watched_b.py").write_text("inside = (__loader__, __spec__.loader)\n")
    watcher.watch("watched_b", print)
    module = importlib.import_module("watched_b")
    kinds = {type(module.__loader__), type(module.__spec__.loader), *map(type, module.inside)}
    assert kinds == {importlib.machinery.SourceFileLoader}


def test_submodules_can_be_watched(watcher, tmp_path):
    (tmp_path / "package_c").mkdir()
    (tmp_path / "package_c" / "__init__.py").write_text("")
    (tmp_path / "package_c" / "inner.py").write_text("value = 2\n")
    seen = []
    watcher.watch("package_c.inner", lambda module: seen.append(module.__name__))
    importlib.import_module("package_c")
    assert seen == []
    importlib.import_module("package_c.inner")
    assert seen == ["package_c.inner"]


def test_a_module_that_is_already_there_is_told_at_once(watcher):
    seen = []
    watcher.watch("json", seen.append)
    assert seen == [sys.modules["json"]]


def test_a_failed_import_raises_as_ever_and_the_next_one_is_still_watched(watcher, tmp_path):
    file = tmp_path / "watched_d.py"
    file.write_text("raise RuntimeError('broken')\n")
    seen = []
    watcher.watch("watched_d", lambda module: seen.append(module.value))
    with pytest.raises(RuntimeError, match="broken"):
        importlib.import_module("watched_d")
    assert seen == []
    file.write_text("value = 4  # now longer than before\n")
    importlib.invalidate_caches()
    importlib.import_module("watched_d")
    assert seen == [4]


def test_looking_for_a_watched_module_does_not_import_it(watcher, tmp_path):
    (tmp_path / "watched_e.py").write_text("value = 1\n")
    seen = []
    watcher.watch("watched_e", seen.append)
    spec = importlib.util.find_spec("watched_e")
    assert spec.loader.get_source("watched_e") == "value = 1\n"
    assert seen == []


def test_a_missing_watched_module_is_missing_as_ever(watcher):
    watcher.watch("no_such_module_anywhere", print)
    with pytest.raises(ModuleNotFoundError, match="no_such_module_anywhere"):
        importlib.import_module("no_such_module_anywhere")


def test_two_watchers_of_one_module_are_both_told(watcher, tmp_path):
    (tmp_path / "watched_twice.py").write_text("value = 1\n")
    seen = []
    other = ImportWatcher()
    other.install()
    watcher.watch("watched_twice", lambda module: seen.append(("first", module.value)))
    other.watch("watched_twice", lambda module: seen.append(("second", module.value)))
    importlib.import_module("watched_twice")
    assert sorted(seen) == [("first", 1), ("second", 1)]
