"""What was computed once is shown to many, and is given up for what is used more."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from isorun.registry import EVERYTHING
from isorun.serving.kept import Kept, ShownStudies
from isorun.serving.shelves import shelves_of


def test_fifty_who_ask_at_once_cost_one():
    kept, made, began = Kept(10), [], threading.Barrier(50)

    def make():
        made.append(1)
        return "answer"

    def ask(_):
        began.wait()
        return kept.of("key", make)

    with ThreadPoolExecutor(50) as pool:
        assert set(pool.map(ask, range(50))) == {"answer"}
    assert len(made) == 1


def test_those_used_last_stay():
    kept = Kept(3)
    for key in (1, 2, 3, 1, 4):
        kept.of(key, lambda key=key: key)
    made = []
    for key in (1, 3, 4, 2):
        kept.of(key, lambda key=key: made.append(key))
    assert made == [2]
    assert len(kept) == 3


def test_together_they_weigh_no_more_than_they_may():
    kept = Kept(100, len)
    for number in range(50):
        kept.of(number, lambda: b"x" * 30)
    assert len(kept) == 3
    kept.of("too heavy", lambda: b"x" * 101)
    assert len(kept) == 3


def test_what_fails_is_asked_again():
    kept = Kept(3)
    with pytest.raises(ZeroDivisionError):
        kept.of("key", lambda: 1 / 0)
    assert kept.of("key", lambda: 5) == 5


def test_a_study_is_analysed_once_for_each_revision(shown_places, monkeypatch):
    shown, asked = ShownStudies(shelves_of(shown_places[:1])), []
    from isorun.serving import kept

    monkeypatch.setattr(kept, "_analysed", lambda *_: asked.append(1) or "analysed")
    shelf = shown.shelves[0].name
    for _ in range(3):
        assert shown.analysed(shelf, "optimizers", EVERYTHING) == "analysed"
    assert len(asked) == 1
