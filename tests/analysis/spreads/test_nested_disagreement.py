"""Disagreement within and between groups: known answers and simulated coverage."""

import numpy as np
import pytest

from isorun.analysis.spreads.nested import nested_disagreement


def test_pairs_within_and_between_groups_are_counted_by_hand():
    answers = np.array([[1, 1, 1, 1], [1, 1, 1, 2], [2, 2, 1, 1], [2, 2, 1, 2]])
    found = nested_disagreement(answers, ["a", "a", "b", "b"])
    # within: 1 of 4 in both groups; between: 2, 3, 3, 2 of 4
    assert (found.within, found.between) == (0.25, 0.625)
    assert found.ratio == pytest.approx(0.4)
    assert found.ratio_interval is None  # two groups leave no pair when one is left out


def test_identical_repeats_do_not_disagree_and_identical_runs_have_no_ratio():
    answers = np.array([[1, 2], [1, 2], [2, 2], [2, 2]])
    assert nested_disagreement(answers, [1, 1, 2, 2]).ratio == 0.0
    assert nested_disagreement(np.ones((4, 3), dtype=int), [1, 1, 2, 2]).ratio is None


@pytest.mark.parametrize("groups", [[1, 1, 1], [1, 2, 3]])
def test_one_group_or_no_repeats_give_no_answer(groups):
    assert nested_disagreement(np.eye(3, dtype=int), groups) is None


def answered(generator, seeds, share, margin):
    """Answers of 6 runs a seed; an example flips where its margin is small against what seed and run add to it."""
    by_seed = generator.normal(size=(seeds, 1, margin.size)) * np.sqrt(share)
    by_run = generator.normal(size=(seeds, 6, margin.size)) * np.sqrt(1 - share)
    return (margin + 0.3 * (by_seed + by_run) > 0).astype(int).reshape(seeds * 6, -1)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_the_interval_covers_the_ratio_in_about_95_of_100_studies(share):
    generator = np.random.default_rng(11)
    margin = generator.normal(size=400) * 1.5
    truth = nested_disagreement(answered(generator, 150, share, margin), np.repeat(np.arange(150), 6)).ratio
    intervals = [
        nested_disagreement(answered(generator, 8, share, margin), np.repeat(np.arange(8), 6)).ratio_interval
        for _ in range(600)
    ]
    assert 0.925 <= np.mean([low <= truth <= high for low, high in intervals]) <= 0.98
