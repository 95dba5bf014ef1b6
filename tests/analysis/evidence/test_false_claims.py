"""How often a winner is claimed where there is none, when runs are not what they seem: by simulation."""

import numpy as np
import pytest

from isorun.questions import compare, rank

COMPARISONS = 1_000
MOST = 0.055 + 2 * (0.055 * 0.945 / COMPARISONS) ** 0.5
"""The bound, and two standard errors of the simulation."""


def nested(rng, seeds, repeats, between, within):
    """Two equal sides of so many seeds with so many repeats each."""
    seed_effects = rng.normal(0, between, (2, seeds, 1))
    values = seed_effects + rng.normal(0, within, (2, seeds, repeats))
    model, seed, _ = np.indices(values.shape)
    return {"model": model.ravel(), "seed": seed.ravel(), "acc": values.ravel()}


def copied(rng, draws, copies, *, decimals=None):
    """Two equal sides of so many draws, each written down so many times, without a word about it."""
    values = np.repeat(rng.normal(0.9, 0.01, (2, draws)), copies, axis=1)
    values = values if decimals is None else values.round(decimals)
    return {"model": np.indices(values.shape)[0].ravel(), "acc": values.ravel()}


def claims(tables):
    return np.mean([compare(table, value="acc", by="model").verdict.endswith("better") for table in tables])


@pytest.mark.slow
@pytest.mark.parametrize(("seeds", "repeats"), [(3, 10), (5, 5), (8, 4)])
@pytest.mark.parametrize("within", [1.0, 0.03])
def test_repeats_of_seeds_make_no_claims(seeds, repeats, within):
    rng = np.random.default_rng([seeds, repeats, int(100 * within)])
    assert claims(nested(rng, seeds, repeats, 1.0, within) for _ in range(COMPARISONS)) <= MOST


@pytest.mark.slow
@pytest.mark.parametrize(("draws", "copies"), [(1, 6), (3, 10), (6, 5)])
@pytest.mark.parametrize("decimals", [None, 6])
def test_copies_make_no_claims(draws, copies, decimals):
    rng = np.random.default_rng([draws, copies])
    assert claims(copied(rng, draws, copies, decimals=decimals) for _ in range(COMPARISONS)) <= MOST


@pytest.mark.slow
@pytest.mark.parametrize(("seeds", "repeats"), [(3, 10), (5, 5)])
def test_rank_tells_nobody_apart_from_an_equal(seeds, repeats):
    rng = np.random.default_rng(seeds)
    boards = (rank(nested(rng, seeds, repeats, 1.0, 1.0), value="acc", by="model") for _ in range(COMPARISONS // 2))
    sure = [board.standings[0].ranked.interval == (1, 1) for board in boards]
    assert np.mean(sure) <= 0.055 + 2 * (0.055 * 0.945 / len(sure)) ** 0.5
