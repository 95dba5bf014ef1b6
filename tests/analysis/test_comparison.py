from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from isorun.analysis.comparison import FACTORS, compare
from isorun.errors import InputError
from isorun.report.comparisons import comparison_view
from isorun.study.cells import GROUP_FACTORS

KEYS = [
    *["a", "b", "n_a", "n_b", "mean_a", "mean_b", "difference", "difference_ci95", "levene", "mann_whitney"],
    *["mann_whitney_one_sided_p", "welch_p", "cohens_d", "hedges_g", "probability_of_improvement"],
    *["single_run_reversal", "wilcoxon_p", "paired_t_p", "verdict", "why"],
]
runs = st.lists(st.integers(0, 60).map(lambda right: right / 60), min_size=1, max_size=12)
TABLE = {
    "setting": ["base"] * 6 + ["new"] * 6,
    "seed": [*range(6), *range(6)],
    "value": [0.81, 0.83, 0.80, 0.84, 0.82, 0.79, 0.90, 0.91, 0.89, 0.93, 0.92, 0.88],
}


def test_the_documented_keys_come_first_in_their_order():
    data = compare(TABLE, value="value", by="setting", a="base", b="new").to_json()
    assert list(data)[: len(KEYS)] == KEYS
    assert list(data["levene"]) == ["statistic", "p"]
    assert list(data["mann_whitney"])[:2] == ["u", "p"]
    assert list(data["probability_of_improvement"]) == ["estimate", "ci95"]
    json.dumps(data, allow_nan=False)


def test_the_numbers_are_those_of_scipy():
    a, b = np.array(TABLE["value"][:6]), np.array(TABLE["value"][6:])
    data = compare(TABLE, value="value", by="setting", a="base", b="new", pair="seed").to_json()
    assert data["difference"] == pytest.approx(a.mean() - b.mean())
    assert data["mann_whitney"]["p"] == pytest.approx(stats.mannwhitneyu(a, b).pvalue)
    assert data["mann_whitney_one_sided_p"] == pytest.approx(stats.mannwhitneyu(a, b, alternative="greater").pvalue)
    assert data["welch_p"] == pytest.approx(stats.ttest_ind(a, b, equal_var=False).pvalue)
    assert data["levene"]["p"] == pytest.approx(stats.levene(a, b).pvalue)
    assert data["paired_t_p"] == pytest.approx(stats.ttest_rel(a, b).pvalue)
    assert data["wilcoxon_p"] == pytest.approx(2 / 2**6)
    assert data["pairs"] == 6


def test_a_clear_difference_gets_a_verdict_and_its_reason():
    result = compare(TABLE, value="value", by="setting", a="base", b="new")
    assert result.verdict == "B better"
    assert compare(TABLE, value="value", by="setting", a="base", b="new", direction="lower").verdict == "A better"
    assert result.to_json()["why"]


def test_two_labels_need_not_be_named():
    assert compare(TABLE, value="value", by="setting").to_json()["a"] == "base"


def test_without_pairs_the_paired_tests_are_absent():
    data = compare([1.0, 2.0, 3.0], [2.0, 3.0, 5.0]).to_json()
    assert data["wilcoxon_p"] is None
    assert data["paired_t_p"] is None
    assert compare([1.0, 2.0, 3.0], [2.0, 3.0, 5.0], paired=True).to_json()["paired_t_p"] is not None


@given(runs, runs)
@settings(max_examples=40, deadline=None)
def test_any_runs_give_json_without_nan_and_without_warnings(a, b):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = compare(a, b, paired=len(a) == len(b)).to_json()
    json.dumps(data, allow_nan=False)
    assert 0 <= data["mann_whitney"]["p"] <= 1
    if data["difference_ci95"] is not None:
        assert data["difference_ci95"][0] <= data["difference"] <= data["difference_ci95"][1]
    if data["hodges_lehmann"]["ci95"] is not None:
        assert data["hodges_lehmann"]["ci95"][0] <= data["hodges_lehmann"]["ci95"][1]
    if data["effect_size_ci95"] is not None:
        assert data["effect_size_ci95"][0] <= data["cohens_d"] + 1e-9


@given(runs, runs)
@settings(max_examples=40, deadline=None)
def test_swapping_a_and_b_flips_every_sign(a, b):
    one, other = compare(a, b).to_json(), compare(b, a).to_json()
    assert one["difference"] == -other["difference"]
    assert one["cohens_d"] == (None if other["cohens_d"] is None else pytest.approx(-other["cohens_d"]))
    assert one["hodges_lehmann"]["estimate"] == pytest.approx(-other["hodges_lehmann"]["estimate"])
    assert one["probability_of_improvement"]["estimate"] == pytest.approx(
        1 - other["probability_of_improvement"]["estimate"]
    )
    assert one["mann_whitney"]["p"] == pytest.approx(other["mann_whitney"]["p"])
    assert one["single_run_reversal"] == other["single_run_reversal"]
    swapped = {"A better": "B better", "B better": "A better"}
    assert one["verdict"] == swapped.get(other["verdict"], other["verdict"])


@pytest.mark.parametrize("paired", [False, True])
@given(st.data())
@settings(max_examples=40, deadline=None)
def test_swapping_a_and_b_mirrors_the_verdict_and_keeps_what_it_would_take(paired, data):
    a = data.draw(runs)
    b = data.draw(st.lists(st.integers(-9, 9).map(float), min_size=len(a), max_size=len(a)) if paired else runs)
    there, back = (compare(*sides, paired=paired, margin=0.5) for sides in ((a, b), (b, a)))
    swapped = {"A better": "B better", "B better": "A better"}
    assert back.verdict == swapped.get(there.verdict, there.verdict)
    assert back.decision.about_more_runs == there.decision.about_more_runs
    for one, other in (
        (back.means.ci95, there.means.ci95),
        (back.decision.ci95, there.decision.ci95),
        (back.shift.ci95, there.shift.ci95),
    ):
        assert one == (None if other is None else pytest.approx((-other[1], -other[0]), abs=1e-6))


@given(runs, runs, st.sampled_from([0.25, 2.0, 1024.0]))
@settings(max_examples=30, deadline=None)
def test_scaling_a_metric_changes_no_rank_result(a, b, factor):
    """Every run is vouched for: that many runs may end at 0, 1 or 100 but not at 1,024 is not about ranks."""
    sides = ["a"] * len(a) + ["b"] * len(b)
    one, other = (
        compare({"s": sides, "v": np.array([*a, *b]) * times}, value="v", by="s", unit="row").to_json()
        for times in (1.0, factor)
    )
    for key in ("verdict", "mann_whitney", "mann_whitney_one_sided_p", "probability_of_improvement"):
        assert one[key] == other[key]


@given(runs, runs, st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_the_order_of_rows_changes_nothing(a, b, random):
    table = [{"s": "a", "v": v} for v in a] + [{"s": "b", "v": v} for v in b]
    shuffled = random.sample(table, len(table))
    one, other = (compare(rows, value="v", by="s", a="a", b="b").to_json() for rows in (table, shuffled))
    assert one == other


def test_means_that_are_equal_but_for_rounding_have_nothing_to_reverse():
    a, b = [0.0] * 9 + [19 / 60], [0.0] * 7 + [0.1, 0.2, 1 / 60]
    assert compare(a, b).single_run_reversal is None


def test_the_direction_turns_what_is_better():
    higher, lower = (compare([3.0, 4.0], [1.0, 2.0], direction=way).to_json() for way in ("higher", "lower"))
    assert higher["probability_of_improvement"]["estimate"] == 1.0
    assert lower["probability_of_improvement"]["estimate"] == 0.0
    assert higher["mann_whitney_one_sided_p"] == pytest.approx(1 / 6)
    assert lower["mann_whitney_one_sided_p"] == pytest.approx(1.0)
    assert higher["difference"] == lower["difference"] == 2.0


def test_constant_metrics_and_single_runs_are_answered_with_what_is_known():
    constant = compare([0.5] * 6, [0.5] * 6).to_json()
    assert constant["welch_p"] is None
    assert constant["cohens_d"] is None
    assert constant["levene"] == {"statistic": None, "p": None}
    assert constant["mann_whitney"]["p"] == 1.0
    assert constant["single_run_reversal"] is None
    assert any("same value" in note for note in constant["notes"])
    single = compare([0.5], [0.75]).to_json()
    assert single["difference_ci95"] is None
    assert single["verdict"] == "undecided"
    assert any("one run" in note for note in single["notes"])


def test_rounding_noise_is_not_taken_for_spread():
    noisy = [0.1 + 0.2, 0.3, 0.3]
    assert compare(noisy, [0.5] * 3).to_json()["welch_p"] is None


def refusal(*args, **kwargs):
    with pytest.raises(InputError) as refused:
        compare(*args, **kwargs)
    return str(refused.value)


def test_bad_input_gets_a_message_that_names_what_is_wrong():
    assert "1 NaN and 1 infinite of 3, the first at position 1" in refusal([1.0, np.nan, np.inf], [1.0])
    assert "must be numbers" in refusal(["x"], [1.0])
    assert "must be numbers" in refusal([1.0, None, "y"], [1.0])
    assert "too few" in refusal([], [1.0])
    assert "one list" in refusal([[1.0], [2.0]], [1.0])
    assert "higher or lower" in refusal([1.0], [2.0], direction="up")
    assert "too large" in refusal([1e200, 1.0], [2.0])
    assert "did you mean 'value'" in refusal(TABLE, value="valeu", by="setting")
    assert "base, new" in refusal(TABLE, value="value", by="setting", a="base", b="nwe")
    assert "did you mean 'new'" in refusal(TABLE, value="value", by="setting", a="base", b="nwe")
    assert "say which two" in refusal(TABLE, value="value", by="seed")
    assert "with itself" in refusal(TABLE, value="value", by="setting", a="new", b="new")
    assert "columns" in refusal(TABLE)
    assert "equally many" in refusal([1.0, 2.0], [1.0], paired=True)
    assert "no columns" in refusal([1.0], [2.0], pair="seed")


def test_repeats_of_a_pair_are_averaged():
    table = {**TABLE, "seed": [0, 0, *range(2, 6), *range(6)]}
    result = compare(table, value="value", by="setting", a="base", b="new", pair="seed")
    once = np.array([np.mean(TABLE["value"][:2]), *TABLE["value"][2:6]])
    others = np.array([TABLE["value"][6], *TABLE["value"][8:]])
    assert result.to_json()["pairs"] == 5
    assert result.paired.t.p == pytest.approx(stats.ttest_rel(once, others).pvalue)


def test_runs_without_a_partner_are_named_in_a_note():
    table = {**TABLE, "seed": [0, 1, 2, 3, 4, 99, *range(6)]}
    result = compare(table, value="value", by="setting", a="base", b="new", pair="seed")
    assert result.to_json()["pairs"] == 5
    assert any("2 runs have no partner" in note and "99" in note for note in result.notes)
    nobody = {**TABLE, "seed": [*range(6), *range(10, 16)]}
    assert "no runs belong together" in refusal(nobody, value="value", by="setting", pair="seed")


def test_values_left_out_are_counted_in_the_result():
    table = {"s": ["a", "a", "a", "b", "b"], "v": [1.0, 2.0, float("nan"), 3.0, 5.0]}
    assert "drop" in refusal(table, value="v", by="s")
    assert compare(table, value="v", by="s", drop_missing=True).to_json()["dropped"] == {"a": 1, "b": 0}


def test_where_selects_a_metric_before_comparing():
    table = [{"m": m, "s": s, "v": v} for m, v in (("acc", 1.0), ("loss", 9.0)) for s in "ab" for _ in range(2)]
    assert compare(table, value="v", by="s", where={"m": "acc"}).to_json()["n_a"] == 2


def test_a_large_offset_changes_no_difference_and_no_test():
    noise = np.random.default_rng(3).integers(-(2**20), 2**20, size=(2, 20)) / 2**21
    plain, shifted = (compare(*(noise + offset), paired=True) for offset in (0.0, 2.0**30))
    assert shifted.difference == pytest.approx(plain.difference, rel=1e-12)
    assert shifted.means.p == pytest.approx(plain.means.p, rel=1e-9)
    assert shifted.effect.cohens_d == pytest.approx(plain.effect.cohens_d, rel=1e-9)
    assert shifted.paired.wilcoxon.p == plain.paired.wilcoxon.p


def test_two_runs_of_a_side_give_levene_no_certainty():
    compared = compare([-4.1], [-5.3000000000000001, -4.9])
    assert compared.levene.p is None
    assert compared.levene_mean.p is None


def test_the_columns_that_say_how_a_run_was_made_begin_with_those_of_a_study():
    assert FACTORS[: len(GROUP_FACTORS)] == GROUP_FACTORS


@pytest.mark.parametrize(
    ("missing", "said"), [(1, "1 value of 'a' is not finite and was"), (2, "2 values of 'a' are not finite and were")]
)
def test_what_is_left_out_is_counted_in_good_english(missing, said):
    table = {
        "model": ["a"] * 5 + ["b"] * 5,
        "acc": [float("nan")] * missing + [0.5, 0.6, 0.7, 0.8, 0.9][missing:] + [0.4, 0.5, 0.6, 0.7, 0.8],
    }
    assert f"{said} left out" in compare(table, value="acc", by="model", drop_missing=True).notes


def test_a_paired_comparison_says_which_of_its_intervals_are_of_pairs():
    base = [0.5, 0.7, 0.6, 0.9, 0.8]
    told = compare([value + 0.01 + 0.001 * place for place, value in enumerate(base)], base, paired=True)
    (effects,) = (table for table in comparison_view(told).tables if table.name == "effects")
    assert effects.rows[0][0] == "mean of 5 differences of pairs"
    assert effects.notes == ("all but the first row leave aside which runs are pairs",)
    unpaired = compare(base, base[::-1])
    (effects,) = (table for table in comparison_view(unpaired).tables if table.name == "effects")
    assert not effects.notes
