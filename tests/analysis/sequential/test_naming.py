"""Decisions told with the names of their sides, whatever these are called."""

import numpy as np
import pytest

from isorun.analysis.sequential import Verdict, named
from isorun.analysis.sequential.verdict import decide

NAMES = ["A", "B", "ViT-B", "model A", "1 run a side", "x"]


def decided(*, better):
    rng = np.random.default_rng(3)
    a, b = rng.normal(0, 1, 10), rng.normal(5, 1, 10)
    first, second = (b, a) if better == "a" else (a, b)
    return decide(first, second, direction="higher", method="fixed")


@pytest.mark.parametrize("a", NAMES)
@pytest.mark.parametrize("b", NAMES)
@pytest.mark.parametrize("better", ["a", "b"])
def test_the_winner_stands_first_with_its_own_name(a, b, better):
    if a == b:
        return
    winner = a if better == "a" else b
    decision = decided(better=better)
    assert decision.verdict is (Verdict.A_BETTER if better == "a" else Verdict.B_BETTER)
    told = named(decision, a, b, "seed").why
    assert told.startswith(
        f"{winner} is better after 10 seeds a side: {a} is better in {100 if better == 'a' else 0} of 100"
    )


def test_what_the_answer_is_limited_to_is_said_in_the_sentence():
    assert named(decided(better="a"), "new", "old", "repeat", about="about seed 1 alone").why.endswith(
        "about seed 1 alone"
    )


def test_warnings_name_the_sides_too():
    few = named(decide([1.0, 2.0], [1.5, 2.5], direction="higher"), "new", "old", "seed")
    assert "2 seeds of new and 2 of old" in few.conditions[0].message


def test_one_unit_of_a_side_is_spoken_of_as_one():
    few = named(decide([1.0], [1.5, 2.5], direction="higher"), "new", "old", "seed")
    assert "1 seed of new and 2 of old are too few" in few.why
    unnamed = decide([1.0], [1.5, 2.5], direction="higher")
    assert "1 run of A and 2 of B are too few" in unnamed.why
