"""The contract classes serve those who write parts of their own: held over the parts of the example distribution."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from isorun.diagnose import Trace, examine
from isorun.study import Sources
from isorun.testing.detector_contract import DetectorContract
from isorun.testing.executor_contract import ExecutorContract
from isorun.testing.source_contract import SourceContract
from isorun.testing.store_contract import StoreContract
from isorun.testing.tracker_contract import TrackerContract

sys.path.append(str(Path(__file__).parent / "plugin_distribution"))

from isorun_example.detector import Overlong
from isorun_example.executor import Apart
from isorun_example.source import Gauge
from isorun_example.store import open_shelf
from isorun_example.tracker import Slate


class TestShelf(StoreContract):
    def open(self, place, *, create=True):
        return open_shelf(f"shelf://{place}", create=create)


class TestApart(ExecutorContract):
    def make_executor(self, runs):
        return Apart(runs, 2)


class TestOverlong(DetectorContract):
    def detector(self):
        return Overlong()

    def test_it_finds_what_it_looks_for(self):
        falls, rises = [10.0 - place for place in range(12)], [1.0 + place for place in range(12)]
        assert Overlong().examine(Trace.of_rows([], curves={"val_loss": falls})) is None
        found = examine(Trace.of_rows([], curves={"val_loss": [2.0, *rises]}), [Overlong()])
        assert [(problem.kind, problem.epoch) for problem in found.problems] == [("overlong", 1.0)]


class TestGauge(SourceContract):
    def make_source(self):
        return Gauge(Sources(), ("pressure", "speed"))

    def leave(self, folder):
        return ["gauge pressure 1.5", "gauge speed 3", "gauge pressure 2.5", "gauge other 9"], {
            "pressure": 2.5,
            "speed": 3.0,
        }


class TestSlate(TrackerContract):
    def leave(self, folder):
        (folder / "slate.txt").write_text("a acc 0 1700000000000000 0.25\na acc 1 1700000000500000 0.5\n")
        return Slate(str(folder / "slate.txt")), {"a": {"acc": 0.5}}


DISTRIBUTION = Path(__file__).parent / "plugin_distribution"
PAGE = (Path(__file__).parent.parent / "docs" / "extending.md").read_text()
PODMAN = f"""#!{sys.executable}
import itertools, os, sys
if sys.argv[1] == "pull":
    sys.exit()
options = list(itertools.takewhile(lambda word: word.startswith("--"), sys.argv[2:]))
named = [word.removeprefix("--env=").partition("=") for word in options if word.startswith("--env=")]
told = {{name: value if sign else os.environ[name] for name, sign, value in named if sign or name in os.environ}}
os.chdir(next(word for word in options if word.startswith("--workdir=")).removeprefix("--workdir="))
image, *argv = sys.argv[2 + len(options):]
os.execvpe(argv[0], argv, {{"PATH": f"{Path(sys.executable).parent}:{os.defpath}", **told}})
"""


def examples(section):
    """The Python examples of a section of the page: those that are no contract, and those that are."""
    text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    found = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    return [[one for one in found if ("Contract)" in one) is wanted] for wanted in (False, True)]


SHOWN = {
    "store": ("A store", "from isorun_example.store import open_shelf", "comes_back_whole"),
    "executor": ("An executor", "from isorun_example.executor import open_apart as open_cluster", "ends_well"),
    "environment": ("An environment", "", ""),
    "source": ("A source of metrics", "", ""),
    "detector": ("A detector", "", ""),
    "engine": ("An engine of searches", "", ""),
    "tracker": ("A tracker", "", ""),
}


@pytest.mark.long
def test_the_examples_of_the_page_keep_their_contracts(tmp_path):
    """What is left out on the page is had from the example distribution, all of whose contract is above.

    Podman is had from here.
    """
    package = tmp_path / "our_package"
    package.mkdir()
    (package / "__init__.py").touch()
    for name, (section, has, _) in SHOWN.items():
        parts, contracts = examples(section)
        assert contracts
        shown = [one for one in parts if "tell(event_from_json" not in one]  # amid a method that is not shown
        (package / f"{name}.py").write_text("\n".join([has, *shown]))
        opened = "from isorun.session import ExecutorOptions"
        (tmp_path / f"test_{name}.py").write_text("\n".join([opened, f"from our_package.{name} import *", *contracts]))
    which = " or ".join(f"(test_{name} and {word or 'test'})" for name, (_, _, word) in SHOWN.items())
    podman = tmp_path / "bin" / "podman"
    podman.parent.mkdir()
    podman.write_text(PODMAN)
    podman.chmod(0o755)
    paths = f"{tmp_path}:{DISTRIBUTION}"
    env = {**os.environ, "PYTHONPATH": paths, "PATH": f"{podman.parent}:{os.environ['PATH']}"}
    words = ["-v", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", str(tmp_path), "-k", which]
    command = [sys.executable, "-m", "pytest", *words]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert [name for name in SHOWN if f"test_{name}.py::" not in done.stdout] == []


def test_every_module_for_parts_of_others_lists_its_names_and_has_them():
    table = PAGE.partition("\n## What to import\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1:3] for line in table.splitlines() if line.startswith("| `")]
    assert len(rows) > 10
    for modules, said in rows:
        names = {
            name
            for module in re.findall(r"`([\w.]+)`", modules)
            if module != "isorun.testing"  # whose modules are named at the top of the page
            for name in public_names(module)
        }
        assert set(re.findall(r"`(\w+)`", said)) <= names, said


def public_names(module):
    """The names that a module lists; each is there."""
    imported = importlib.import_module(module)
    assert [name for name in imported.__all__ if getattr(imported, name, None) is None] == []
    return imported.__all__


def test_the_modules_that_parts_import_are_on_the_page():
    """Those of the example distribution, which brings one of each."""
    text = "\n".join(path.read_text() for path in DISTRIBUTION.rglob("*.py"))
    listed = set(re.findall(r"`(isorun\.[\w.]+)`", PAGE.partition("\n## What to import\n")[2].partition("\n## ")[0]))
    used = set(re.findall(r"^from (isorun[\w.]*) import", text, re.MULTILINE))
    assert {name for name in used if not name.startswith("isorun.testing.")} <= {*listed, "isorun"}


@pytest.mark.parametrize("page", ["extending.md"])
def test_the_page_on_parts_names_what_there_is(page):
    text = (Path(__file__).parent.parent / "docs" / page).read_text()
    root = Path(__file__).parent.parent / "src"
    names = {name for name in text.replace("`", " ").split() if name.startswith("isorun.testing.")}
    assert names
    for name in names:
        module = name.rstrip(".,:)").removesuffix(".InstantExecutor").removesuffix(".MemoryStore")
        assert (root / f"{module.replace('.', '/')}.py").is_file(), name
