"""For all tests: this folder is importable, and neither a slow machine nor a shell that ignores signals fails them."""

import gc
import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from isorun import plugins

settings.register_profile("isorun", deadline=None, print_blob=True)
settings.load_profile("isorun")

# Started in the background (nohup, some CI systems), Python ignores Ctrl-C or the terminal's end, and so would all
# children of the tests.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# A command's `python` is the one in PATH: here the one that has what the tests need, as in an activated environment.
os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"

gc.disable()


def pytest_collection_finish():
    """What was collected, ten thousand tests and all that they import, stays: no search for garbage looks at it again.

    Each search took a second else, and KerasTuner makes two a trial.
    """
    gc.enable()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """`installed(entry_points, module=text)`: an installed distribution named shelf that brings these modules."""
    made = []

    def install(entry_points, **modules):
        for name, text in modules.items():
            (tmp_path / f"{name}.py").write_text(text)
            made.append(name)
        info = tmp_path / "shelf-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shelf\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(entry_points)
        monkeypatch.syspath_prepend(tmp_path)
        plugins.brought.cache_clear()

    yield install
    plugins.brought.cache_clear()
    for name in made:
        sys.modules.pop(name, None)
