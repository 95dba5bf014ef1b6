"""Parts of other distributions: found by name, loaded when asked for, and no trouble to anybody else when broken."""

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
def shelf(installed):
    """One part that works and two that do not."""
    installed(POINTS, shelf="good = 'the part'\n")


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
