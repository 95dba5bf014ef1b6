"""What counts as one piece of evidence in a table."""

import numpy as np
import pytest

from isorun.analysis.evidence.units import (
    counted,
    counting_conditions,
    counting_of,
    listed_pairs,
    listed_units,
    names_seed,
    paired_units,
    pooled_conditions,
    refuse_value_as_unit,
    unit_conditions,
    units_of,
)
from isorun.analysis.measurements import read_table
from isorun.errors import InputError

RNG = np.random.default_rng(5)
SEEDS = np.repeat([7, 8, 9], 10)
VALUES = RNG.normal(0.9, 0.01, 30)


def units(table, asked=None, value="acc"):
    table = read_table(table)
    (group,) = table.groups(value, ())
    return units_of(table, group.values, counting_of(table, asked))


def test_thirty_runs_of_three_seeds_count_as_three():
    found = units({"seed": SEEDS, "repeat": np.tile(range(10), 3), "acc": VALUES})
    assert found.labels == ("7", "8", "9")
    assert found.values == pytest.approx(VALUES.reshape(3, 10).mean(axis=1))
    assert counted(found) == "30 runs of 3 seeds count as 3"


def test_a_column_of_the_users_own_is_a_unit():
    found = units({"fold": SEEDS, "seed": range(30), "acc": VALUES}, "fold")
    assert (found.count, found.noun) == (3, "fold")


def test_a_table_without_seeds_counts_its_rows():
    found = units({"acc": VALUES})
    assert (found.count, found.noun) == (30, "row")
    assert counted(found) == "30 runs"


def test_a_row_without_a_seed_is_a_unit_of_its_own():
    assert units({"seed": ["1", "1", "", ""], "acc": [0.1, 0.2, 0.31, 0.44]}).count == 3


def test_repeats_of_one_seed_count_when_asked_about_it_alone():
    found = units({"seed": [4] * 10, "repeat": range(10), "acc": VALUES[:10]}, "repeat")
    assert (found.count, found.noun, found.alone) == (10, "repeat", "4")


def test_repeats_of_several_seeds_are_refused_with_the_way_out():
    with pytest.raises(InputError) as refused:
        units({"seed": SEEDS, "repeat": np.tile(range(10), 3), "acc": VALUES}, "repeat")
    assert "--where seed=7" in refused.value.message()


def test_an_unknown_column_names_the_known_ones():
    with pytest.raises(InputError) as refused:
        units({"seed": SEEDS, "acc": VALUES}, "sed")
    assert "seed" in refused.value.message()


@pytest.mark.parametrize("table", [{"acc": [0.8731] * 6}, {"acc": [0.8731] * 6, "seed": range(6)}])
def test_runs_that_all_gave_the_same_number_are_one_unit(table):
    found = units(table)
    assert (found.count, found.constant) == (1, True)
    assert counted(found) == "6 runs gave the same number and count as 1"


def test_seeds_with_the_same_mean_of_different_runs_are_not_said_to_have_given_one_number():
    """As the fits of each seed on the same splits are, where the seed changes nothing."""
    found = units({"seed": [1, 1, 2, 2, 3, 3], "acc": [0.81, 0.93] * 3})
    assert (found.count, found.constant) == (1, True)
    assert counted(found) == "6 runs of 3 seeds, which all gave the same mean, count as 1"


@pytest.mark.parametrize("bound", [0.0, 1.0, 100.0])
def test_runs_that_are_all_perfect_or_all_zero_may_be_independent(bound):
    assert units({"acc": [bound] * 6}).count == 6


def test_whoever_names_the_unit_vouches_for_it():
    assert units({"acc": [0.8731] * 6}, "row").count == 6


def test_copies_in_a_table_count_once():
    found = units({"acc": np.repeat(VALUES[:3], 10)})
    assert (found.count, found.copies) == (3, 27)
    assert "count as 3" in counted(found)


def test_equal_runs_have_exactly_their_value_as_mean():
    assert units({"seed": [1, 1, 1, 2], "acc": [0.1, 0.1, 0.1, 0.7]}).values.tolist() == [0.1, 0.7]


def test_fewer_than_two_units_void_every_claim():
    sides = {"a": listed_units(np.full(6, 0.91)), "b": listed_units(VALUES[:6])}
    codes = {condition.code: condition for condition in unit_conditions(sides, next_step="run more")}
    assert codes["too-few-units"].voids
    assert codes["too-few-units"].groups == ("a",)
    assert codes["copies"].groups == ("a",)


def test_two_sound_sides_have_no_condition():
    assert unit_conditions({"a": listed_units(VALUES[:6]), "b": listed_units(VALUES[6:])}, next_step="") == ()


def test_pairs_average_repeats_and_leave_out_who_has_no_partner():
    table = read_table(
        {
            "model": ["a", "a", "a", "b", "b", "b"],
            "seed": [1, 1, 2, 2, 1, 3],
            "acc": [0.10, 0.20, 0.40, 0.45, 0.25, 0.90],
        }
    )
    first, second = (group.values for group in table.groups("acc", ("model",)))
    pairs = paired_units(table, (first, second), "seed", counting_of(table)).pairs
    assert pairs.first == pytest.approx([0.15, 0.40])
    assert pairs.second == pytest.approx([0.25, 0.45])
    assert pairs.unmatched == ("3",)


def test_pairs_that_repeat_the_same_two_numbers_count_once():
    table = read_table({"model": ["a"] * 6 + ["b"] * 6, "seed": [*range(6)] * 2, "acc": [0.87312] * 6 + [0.88519] * 6})
    first, second = (group.values for group in table.groups("acc", ("model",)))
    assert paired_units(table, (first, second), "seed", counting_of(table)).pairs.first.size == 1


@pytest.mark.parametrize("column", ["repeat", "job"])
def test_pairs_by_what_is_no_draw_count_the_draws(column):
    """Three seeds with ten repeats: pairs of repeats are not thirty, nor ten, pieces of evidence."""
    seeds, repeats = np.repeat([1, 2, 3], 10), np.tile(range(10), 3)
    labels = repeats if column == "repeat" else np.arange(30)
    table = read_table(
        {"model": ["a"] * 30 + ["b"] * 30, "seed": [*seeds] * 2, column: [*labels] * 2, "acc": RNG.normal(size=60)}
    )
    sides = tuple(group.values for group in table.groups("acc", ("model",)))
    pairs = paired_units(table, sides, column, counting_of(table)).pairs
    assert pairs.first.size == {"repeat": 1, "job": 3}[column]


def test_copies_of_listed_pairs_count_once():
    first, second = RNG.normal(size=10), RNG.normal(size=10)
    assert listed_pairs(np.tile(first, 3), np.tile(second, 3)).first.size == 10
    assert listed_pairs(first, second).first.size == 10


@pytest.mark.parametrize(
    "name",
    ["seed", "Seed", "random_seed", "train_seed", "config.seed", "args/seed", "modelSeed", "random_state", "seed_id"],
)
def test_columns_of_seeds_are_known_by_their_name(name):
    assert units({name: SEEDS, "acc": VALUES}).count == 3


@pytest.mark.parametrize("name", ["seedling", "proceed", "speed", "model"])
def test_other_columns_are_no_seeds(name):
    assert not names_seed(name)


def test_a_seed_is_the_same_however_it_is_written():
    assert units({"seed": ["1", "1.0", "01", " 1", "2"], "acc": VALUES[:5]}).count == 2


def test_seeds_that_are_missing_in_part_void_every_claim():
    table = read_table({"seed": ["1", "", "N/A", "2", "None"], "acc": VALUES[:5]})
    (group,) = table.groups("acc", ())
    (condition,) = counting_conditions(table, {"a": group.values}, counting_of(table))
    assert (condition.code, condition.voids) == ("seeds-missing", True)
    whole = read_table({"seed": ["", "", ""], "acc": VALUES[:3]})
    (group,) = whole.groups("acc", ())
    assert counting_conditions(whole, {"a": group.values}, counting_of(whole)) == ()


def test_rows_that_share_a_run_or_fold_are_told():
    table = read_table({"fold": [1, 1, 2, 2], "acc": VALUES[:4]})
    (group,) = table.groups("acc", ())
    (condition,) = counting_conditions(table, {"a": group.values}, counting_of(table))
    assert (condition.code, "--unit fold" in condition.next_step) == ("rows-may-repeat", True)


def test_a_result_is_no_unit():
    with pytest.raises(InputError):
        refuse_value_as_unit(counting_of(read_table({"acc": VALUES}), "acc"), "acc")


def test_runs_of_several_configs_in_one_side_are_told():
    table = read_table({"config": ["x", "y", "x", "x"], "acc": VALUES[:4], "model": ["a", "a", "b", "b"]})
    sides = {group.name: group.values for group in table.groups("acc", ("model",))}
    (condition,) = pooled_conditions(table, sides, ("config", "level"))
    assert (condition.code, condition.groups) == ("sides-pooled", ("a",))


def test_numbers_as_coarse_as_their_spread_are_told():
    coarse = {
        "a": listed_units(np.array([0.91, 0.92, 0.92, 0.91])),
        "b": listed_units(np.array([0.9, 0.91, 0.92, 0.9])),
    }
    assert [condition.code for condition in unit_conditions(coarse, next_step="")] == ["rounded-values"]


@pytest.mark.parametrize("count", [5, 10, 30])
def test_ties_between_sides_that_chance_makes_are_no_same_draws(count):
    rng = np.random.default_rng(count)
    for _ in range(100):
        for draw in (
            lambda: rng.binomial(100, 0.9, count) / 100,
            lambda: rng.normal(0.9, 0.01, count).round(4),
            lambda: rng.normal(5000, 300, count).round(-2),
            lambda: np.minimum(rng.normal(470, 40, count).round(), 500),
        ):
            sides = {name: listed_units(draw()) for name in ("a", "b")}
            assert "same-draws" not in {one.code for one in unit_conditions(sides, next_step="")}


def test_numbers_that_both_sides_hold_are_the_same_draws_although_some_are_not():
    rng = np.random.default_rng(3)
    ours = rng.normal(0.9, 0.01, 8)
    theirs = np.concatenate([ours[:4], rng.normal(0.9, 0.01, 6)])
    found = unit_conditions({"a": listed_units(ours), "b": listed_units(theirs)}, next_step="")
    assert [(one.code, one.voids, one.groups) for one in found] == [("same-draws", False, ("a", "b"))]
    assert found[0].message.startswith("4 runs of a and b gave the very same numbers")
