"""Searches by halves on made-up values: the culprit is found, and how often it is not is no more than promised."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isorun.analysis.sequential import boundaries
from isorun.analysis.sequential.change_search import BitSearch, ErrorShares, Likeness, ScoreSearch
from isorun.errors import InputError

LAWS = {
    "normal": (lambda rng, moved: rng.normal() + moved, 1.2),
    "heavy tails": (lambda rng, moved: rng.standard_t(2) + moved, 1.8),
    "skewed": (lambda rng, moved: rng.exponential() + moved, 1.0),
    "discrete": (lambda rng, moved: rng.binomial(20, min(0.5 + moved, 1)) / 20, 0.15),
    "coin": (lambda rng, moved: rng.random() < 0.1 + moved, 0.5),
}


@pytest.fixture(autouse=True)
def _quick_boundaries(request, monkeypatch):
    """Boundaries from fewer simulations, but where error rates are measured: there are many error rates here."""
    if "slow" in request.keywords:
        yield
        return
    monkeypatch.setitem(boundaries._PATHS, "mann-whitney", 10_000)
    monkeypatch.setitem(boundaries._PATHS, "signed-rank", 10_000)
    boundaries.boundaries.cache_clear()
    yield
    boundaries.boundaries.cache_clear()


def driven(search, draw):
    """The search, answered by a function of position and number of the draw; and how many draws it took."""
    requests = search.requests()
    made = {}
    try:
        wanted = next(requests)
        while True:
            for position, draws in wanted.items():
                have = made.setdefault(position, [])
                have += [draw(position, number) for number in range(len(have), draws)]
            wanted = requests.send({position: list(made[position][:draws]) for position, draws in wanted.items()})
    except StopIteration:
        return search, sum(map(len, made.values()))


def scores(count, draw, alpha=0.05, **options):
    return driven(ScoreSearch(count=count, shares=ErrorShares(alpha, count), **options), draw)


def stepped(rng, *culprits, size=50.0, law=None):
    """Runs of a history in which each culprit moves the result by so much. law: a draw, by how far it is moved."""
    draw = law or LAWS["normal"][0]
    return lambda position, _: float(draw(rng, size * sum(position >= culprit for culprit in culprits)))


@pytest.mark.parametrize(("count", "culprit"), [(1, 1), (2, 1), (2, 2), (31, 1), (31, 16), (31, 31), (100, 37)])
def test_a_large_change_is_found_wherever_it_is_with_few_runs(count, culprit):
    search, runs = scores(count, stepped(np.random.default_rng(count), culprit))
    assert (search.differs, search.low, search.high) == (True, culprit - 1, culprit)
    assert runs <= 7 * (2 + math.ceil(math.log2(count))) + 4 * 4
    assert search.others == []


@settings(max_examples=40, deadline=None)
@given(
    count=st.integers(1, 40),
    culprit=st.integers(1, 40),
    broken=st.sets(st.integers(1, 39), max_size=12),
    seed=st.integers(0, 10_000),
)
def test_commits_that_do_not_run_widen_the_answer_and_never_make_it_wrong(count, culprit, broken, seed):
    culprit, broken = min(culprit, count), broken - {count}
    rng = np.random.default_rng(seed)
    value = stepped(rng, culprit, law=lambda generator, moved: generator.uniform() + moved)
    search, _ = scores(count, lambda position, number: math.nan if position in broken else value(position, number))
    assert search.low < culprit <= search.high
    between = set(range(search.low + 1, search.high))
    assert between <= broken, "whatever is left between could not be run"
    assert {probe.position for probe in search.probes if probe.likeness is Likeness.FAILED} <= broken


@settings(max_examples=200, deadline=None)
@given(alpha=st.floats(0.001, 0.4), versions=st.integers(1, 5000), probes=st.integers(1, 60))
def test_however_many_probes_there_are_no_more_than_the_error_rate_is_spent(alpha, versions, probes):
    shares = ErrorShares(alpha, versions)
    levels = [shares.next() for _ in range(probes)]
    assert sum(levels) <= alpha * (1 + 1e-9)
    assert all(level > 0 for level in levels)
    assert len({round(level, 12) for level in levels[: shares.planned]}) == 1


def test_ends_that_do_not_differ_end_the_search_before_any_probe():
    search, _ = scores(16, stepped(np.random.default_rng(3)))
    assert (search.differs, search.probes) == (False, [])
    assert search.ended in {"hopeless", "exhausted"}


def test_ends_that_differ_by_less_than_the_margin_are_equivalent():
    rng = np.random.default_rng(4)
    search, _ = scores(4, lambda position, _: rng.normal(0, 0.01) + 0.02 * (position == 4), margin=1.0)
    assert (search.differs, search.ended) == (False, "equivalent")


def test_values_that_never_vary_decide_as_others_do():
    search, _ = scores(20, lambda position, _: 0.5 if position < 7 else 0.25)
    assert (search.low, search.high) == (6, 7)
    same, _ = scores(20, lambda *_: 0.5)
    assert same.differs is False


def test_a_value_in_between_shows_two_changes_and_the_larger_is_followed():
    rng = np.random.default_rng(5)
    search, _ = scores(16, lambda position, _: rng.normal() + 50 * (position >= 5) + 200 * (position >= 11))
    assert (search.low, search.high) == (10, 11)
    (other,) = search.others
    assert other[0] < 5 <= other[1]
    assert Likeness.NEITHER in {probe.likeness for probe in search.probes}


def test_a_second_change_that_no_probe_fell_between_is_noticed_at_the_end():
    """Both lie in the upper quarter, so that halving passes over the one on its way to the other."""
    rng = np.random.default_rng(6)
    search, _ = scores(16, lambda position, _: rng.normal() + 50 * (position >= 13) + 50 * (position >= 15))
    found = search.high
    assert found in {13, 15}
    assert any(low < ({13, 15} - {found}).pop() <= high for low, high in search.others)


def test_a_history_that_goes_back_and_forth_gives_a_commit_that_differs_from_its_neighbour():
    rng = np.random.default_rng(7)
    bad = {3, 4, 5, 9, 12, 13, 14, 15, 16}
    search, _ = scores(16, lambda position, _: rng.normal() + 50 * (position in bad))
    assert search.high - search.low == 1
    assert (search.low in bad, search.high in bad) == (False, True)


def test_what_cannot_be_told_within_the_budget_leaves_a_range_after_two_tries():
    rng = np.random.default_rng(1)
    search, runs = scores(
        64, lambda position, _: rng.normal() + (9 if position == 64 else 4.5 * (position > 0)), max_runs=6
    )
    undecided = [probe for probe in search.probes if probe.likeness is Likeness.UNDECIDED]
    assert len(undecided) <= 2
    assert search.high - search.low >= 1
    assert runs <= 6 * (2 + len(search.probes))
    blurred, _ = scores(64, lambda position, _: rng.normal() + 1.5 * (position / 64), max_runs=12, alpha=0.3)
    if blurred.differs:
        assert blurred.high - blurred.low > 1


def test_a_run_that_fails_now_and_then_is_left_out_and_another_is_made():
    rng = np.random.default_rng(8)
    value = stepped(rng, 5)
    search, _ = scores(8, lambda position, number: math.nan if number == 2 else value(position, number))
    assert (search.low, search.high) == (4, 5)


@pytest.mark.parametrize("end", [0, 8])
def test_an_end_that_does_not_run_is_named(end):
    value = stepped(np.random.default_rng(9), 5)
    search, runs = scores(8, lambda position, number: math.nan if position == end else value(position, number))
    assert (search.broken, search.differs) == (end, None)
    assert runs < 20


def test_pairs_see_a_small_step_under_a_large_spread_of_seeds():
    seeds = np.random.default_rng(10).normal(0, 10, size=200)
    rng = np.random.default_rng(11)

    def draw(position, number):
        return seeds[number] + rng.normal(0, 0.01) + 0.2 * (position >= 13)

    paired, _ = scores(16, draw, paired=True)
    assert (paired.low, paired.high) == (12, 13)
    assert scores(16, draw)[0].differs is False


def test_looks_in_batches_say_what_looks_one_by_one_say():
    for seed in range(12):
        single, runs = scores(20, stepped(np.random.default_rng(seed), 7, size=1e9))
        batched, more = scores(20, stepped(np.random.default_rng(seed), 7, size=1e9), at_once=4)
        assert (single.low, single.high) == (batched.low, batched.high) == (6, 7)
        assert runs <= more


def test_a_budget_that_allows_no_claim_is_refused_before_any_run():
    with pytest.raises(InputError, match="too few"):
        ScoreSearch(count=900, shares=ErrorShares(0.001, 900), max_runs=5).check()


def test_the_difference_of_two_places_comes_with_an_interval():
    search, _ = scores(8, stepped(np.random.default_rng(12), 3, size=20.0))
    difference, interval = search.difference(0, 8)
    assert interval[0] < 20 < interval[1]
    assert interval[0] < difference < interval[1]
    assert search.difference(0, 0) is None


def bits(count, draw):
    return driven(BitSearch(count=count), draw)


@pytest.mark.parametrize("culprit", [1, 9, 16])
def test_bits_take_one_run_a_commit_and_both_sides_of_what_is_found_four_more(culprit):
    search, runs = bits(16, lambda position, _: "new" if position >= culprit else "old")
    assert (search.low, search.high) == (culprit - 1, culprit)
    assert runs == 4 + 4 + 8 + (culprit in {1, 16})


@pytest.mark.parametrize("often", [0.2, 0.5])
def test_bits_that_differ_by_chance_name_no_place(often):
    rng, named, unsteady = np.random.default_rng(3), 0, 0
    for _ in range(500):
        search, _ = bits(16, lambda *_: bool(rng.random() < often))
        unsteady += search.unsteady is not None
        named += bool(search.differs) and search.unsteady is None
    assert named <= 500 * BitSearch.chance + 4  # 1 in 256 at most
    assert unsteady > 250


def test_of_several_changes_of_bits_the_first_is_looked_for_and_the_others_are_told():
    search, _ = bits(16, lambda position, _: f"{(position >= 3) + (position >= 12)}")
    assert (search.low, search.high) == (2, 3)
    assert search.others[0] == (8, 16)


def test_an_end_whose_bits_change_from_run_to_run_is_named():
    search, _ = bits(16, lambda position, number: f"{number}" if position == 16 else "old")
    assert (search.unsteady, search.differs) == (16, None)
    search, _ = bits(16, lambda position, number: f"{number}" if position == 8 else str(position >= 4))
    assert search.unsteady == 8
    assert search.low < 4 <= search.high


def test_equal_bits_are_no_difference_and_commits_that_do_not_run_are_passed_over():
    assert bits(16, lambda *_: "old")[0].differs is False
    search, _ = bits(16, lambda position, _: None if position in {7, 8} else str(position >= 8))
    assert (search.low, search.high) == (6, 9)


ALPHA = 0.05


def outcomes(law, effect, histories, culprits=1, **options):
    """How many searches in random histories were right, left a range, were wrong, or saw no difference."""
    rng = np.random.default_rng(20_260)
    counts = {"right": 0, "range": 0, "wrong": 0, "none": 0, "runs": 0, "others": 0}
    for _ in range(histories):
        count = int(rng.integers(2, 65))
        positions = sorted(rng.choice(np.arange(1, count + 1), size=min(culprits, count), replace=False))
        search, runs = scores(count, stepped(rng, *positions, size=effect, law=law), alpha=ALPHA, **options)
        holds = any(search.low < position <= search.high for position in positions)
        kind = "none" if not search.differs else "wrong" if not holds else "range"
        counts["right" if kind == "range" and search.high - search.low == 1 else kind] += 1
        counts["runs"] += runs
        counts["others"] += bool(search.others)
    return counts


def promised(histories):
    """As many wrong answers as the error rate allows, and chance on top of it."""
    return ALPHA * histories + 3 * math.sqrt(ALPHA * (1 - ALPHA) * histories)


def test_few_searches_are_wrong():
    found = outcomes(LAWS["normal"][0], 2.0, 40)
    assert found["wrong"] <= promised(40)
    assert found["right"] >= 30


@pytest.mark.slow
@pytest.mark.parametrize("size", [0.6, 1.0, 1.7])
@pytest.mark.parametrize("name", LAWS)
def test_no_more_searches_are_wrong_than_promised_whatever_the_law(name, size):
    law, effect = LAWS[name]
    found = outcomes(law, effect * size, 400)
    print(name, size, found)
    assert found["wrong"] <= promised(400), found


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_a_range_without_a_change_is_taken_for_one_with_no_more_often_than_promised(name):
    found = outcomes(LAWS[name][0], 0.0, 400, culprits=0)
    print(name, found)
    assert 400 - found["none"] <= promised(400), found


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_of_two_changes_one_is_found(name):
    law, effect = LAWS[name]
    found = outcomes(law, effect * 1.5, 300, culprits=2)
    print(name, found)
    assert found["wrong"] <= promised(300), found


@pytest.mark.slow
def test_pairs_hold_the_error_rate():
    found = outcomes(LAWS["normal"][0], 1.5, 300, paired=True)
    print(found)
    assert found["wrong"] <= promised(300), found
