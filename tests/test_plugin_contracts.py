"""The contract classes serve those who write parts of their own: held over the parts of the example distribution."""

import sys
from pathlib import Path

import pytest

from isorun.study import Sources
from isorun.testing.source_contract import SourceContract
from isorun.testing.store_contract import StoreContract

sys.path.append(str(Path(__file__).parent / "plugin_distribution"))

from isorun_example.source import Gauge
from isorun_example.store import open_shelf


class TestShelf(StoreContract):
    def open(self, place, *, create=True):
        return open_shelf(f"shelf://{place}", create=create)


class TestGauge(SourceContract):
    def make_source(self):
        return Gauge(Sources(), ("pressure", "speed"))

    def leave(self, folder):
        return ["gauge pressure 1.5", "gauge speed 3", "gauge pressure 2.5", "gauge other 9"], {
            "pressure": 2.5,
            "speed": 3.0,
        }


@pytest.mark.parametrize("page", ["extending.md"])
def test_the_page_on_parts_names_what_there_is(page):
    text = (Path(__file__).parent.parent / "docs" / page).read_text()
    root = Path(__file__).parent.parent / "src"
    names = {name for name in text.replace("`", " ").split() if name.startswith("isorun.testing.")}
    assert names
    for name in names:
        module = name.rstrip(".,:)").removesuffix(".InstantExecutor").removesuffix(".MemoryStore")
        assert (root / f"{module.replace('.', '/')}.py").is_file(), name
