"""Parts of other distributions: found by name, loaded when asked for, and no trouble to anybody else when broken."""

import sys

import pytest

from isorun import plugins
from isorun.errors import PluginError

POINTS = """
[isorun.executors]
good = shelf:good
broken = shelf:missing
absent = no_such_package:anything
"""


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """An installed distribution that brings one part that works and two that do not."""
    (tmp_path / "shelf.py").write_text("good = 'the part'\n")
    info = tmp_path / "shelf-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shelf\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(tmp_path)
    plugins.brought.cache_clear()
    yield tmp_path
    plugins.brought.cache_clear()
    sys.modules.pop("shelf", None)


@pytest.mark.usefixtures("shelf")
def test_a_part_is_loaded_by_its_name():
    assert plugins.load(plugins.EXECUTORS, "good") == "the part"


@pytest.mark.usefixtures("shelf")
def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(PluginError, match=r"no executor 'god'[\s\S]*local, absent, broken, good \(did you mean 'good'"):
        plugins.load(plugins.EXECUTORS, "god", own=("local",))


@pytest.mark.usefixtures("shelf")
@pytest.mark.parametrize(("name", "why"), [("broken", "AttributeError"), ("absent", "no_such_package")])
def test_a_broken_part_is_named_with_its_distribution_and_what_it_said(name, why):
    with pytest.raises(PluginError, match=rf"'{name}' of the distribution shelf cannot be loaded[\s\S]*{why}"):
        plugins.load(plugins.EXECUTORS, name)


@pytest.mark.usefixtures("shelf")
def test_the_rest_works_beside_broken_parts():
    assert plugins.load(plugins.EXECUTORS, "good") == "the part"
    assert len(plugins.brought(plugins.EXECUTORS)) == 3


def test_nothing_installed_is_nothing_found():
    plugins.brought.cache_clear()
    assert plugins.brought("isorun.nobody") == {}
