"""Text from users is made fit before it reaches any report."""

from hypothesis import given
from hypothesis import strategies as st

from isorun.errors import harmless
from isorun.report import escaped


def test_white_space_becomes_a_space_and_control_characters_are_marked():
    assert harmless("a\tb\nc\x1b[31m\u202ed") == "a b c\N{REPLACEMENT CHARACTER}[31m\N{REPLACEMENT CHARACTER}d"


def test_letters_of_all_scripts_stay():
    assert harmless("Größe 学習 ± –\N{NO-BREAK SPACE}x") == "Größe 学習 ± –\N{NO-BREAK SPACE}x"


@given(st.text(st.characters(exclude_categories=())))
def test_anything_can_be_written_and_nothing_is_markup(text):
    shown = escaped(text)
    assert shown.encode("utf-8").decode("utf-8") == shown
    assert not set(shown) & set("<>\"'\x1b")
    assert len(harmless(text)) == len(text)
