"""Parts of other distributions: found by name, loaded when asked for, and no trouble to anybody else when broken."""

import pytest

from isorun import plugins
from isorun.errors import InputError, PluginError, foreign_errors

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


@pytest.fixture
def factories(installed):
    """Three factories of executors: one that works, one that raises, one that makes something else."""
    code = "def good(text): return text\ndef raising(text): raise OSError('no room')\ndef other(text): return 5\n"
    installed(
        "[isorun.executors]\n" + "".join(f"{name} = shop:{name}\n" for name in ("good", "raising", "other")), shop=code
    )


@pytest.mark.usefixtures("factories")
def test_what_a_factory_makes_is_what_was_asked_for_or_it_is_named():
    assert plugins.make(plugins.EXECUTORS, "good", str, "words") == "words"
    with pytest.raises(PluginError, match=r"the executor 'raising' cannot be opened[\s\S]*OSError: no room"):
        plugins.make(plugins.EXECUTORS, "raising", str, "words")
    with pytest.raises(PluginError, match=r"the executor 'other' cannot be used[\s\S]*int[\s\S]*a subclass of str"):
        plugins.make(plugins.EXECUTORS, "other", str, "words")


def test_the_guard_around_foreign_code_passes_what_is_isoruns_own_unless_told_otherwise():
    def refused(said):
        return PluginError("refused", found=said)

    with pytest.raises(InputError, match="ours"), foreign_errors(refused):
        raise InputError("ours")
    with pytest.raises(PluginError, match="InputError: ours"), foreign_errors(refused, but=()):
        raise InputError("ours")
    with pytest.raises(PluginError, match="refused") as raised, foreign_errors(refused):
        raise ZeroDivisionError("theirs")
    assert raised.value.found == "ZeroDivisionError: theirs"
    with pytest.raises(KeyboardInterrupt), foreign_errors(refused, but=()):
        raise KeyboardInterrupt
