"""Which recorded runs were drawn independently, and which are copies of one draw."""

from dataclasses import replace

import numpy as np
import pytest

from isorun.analysis.evidence.run_units import Merge, run_units
from isorun.study.cells import Level
from isorun.study.records import Seeded
from record_builder import make_cell, make_record, make_series, packed

SELF_SEEDED = (Seeded("torch.manual_seed", "1337", "train.py:3"),)


def runs(count, level=Level.DEFAULT, seeds=None, **changes):
    """Finished records of one group, each with digests of its own unless told otherwise."""
    cells = [make_cell(level, repeat, **({"seed": seeds[repeat]} if seeds else {})) for repeat in range(count)]
    return [
        replace(
            make_record(cell),
            **({"digests": {"weights.initial": f"i{place}", "weights.final": f"f{place}"}} | _of(changes, place)),
        )
        for place, cell in enumerate(cells)
    ]


def _of(changes, place):
    return {name: value(place) if callable(value) else value for name, value in changes.items()}


def test_default_runs_with_weights_of_their_own_are_units():
    found = run_units(runs(6))
    assert (found.count, found.planned, found.merges) == (6, 6, ())


def test_repeats_of_a_seed_are_one_unit_and_distinct_runs():
    found = run_units(runs(6, Level.FIXED_SEED, seeds=[1, 1, 1, 2, 2, 2]))
    assert (found.count, found.planned, found.merges) == (2, 2, ())
    assert len(set(found.distinct.values())) == 6


def test_runs_that_ended_with_the_same_weights_are_copies():
    found = run_units(runs(6, digests={"weights.initial": "i", "weights.final": "f"}))
    assert (found.count, found.merges) == (1, (Merge.WEIGHTS,))
    assert len(set(found.distinct.values())) == 1


def test_a_seed_of_the_trainings_own_makes_one_unit_whatever_kernels_do():
    """On a GPU the final weights differ although the seed is the same: repeats of one seed, not draws."""
    found = run_units(
        runs(6, seeded=SELF_SEEDED, digests=lambda place: {"weights.initial": "i", "weights.final": f"{place}"})
    )
    assert (found.count, found.merges) == (1, (Merge.OWN_SEED,))
    assert len(set(found.distinct.values())) == 6


def test_a_seed_of_the_trainings_own_overrules_the_seeds_it_is_given():
    found = run_units(runs(4, Level.FIXED_SEED, seeds=[1, 2, 3, 4], seeded=SELF_SEEDED, digests={}))
    assert (found.count, found.planned) == (1, 4)


def test_a_seed_that_the_training_was_given_is_not_its_own():
    given = run_units(
        runs(4, seeded=lambda place: (Seeded("torch.manual_seed", str(place), "train.py:3"),), digests={})
    )
    assert given.count == 4


def test_initial_weights_that_differ_show_that_more_was_drawn():
    assert run_units(runs(6, seeded=(Seeded("random.seed", "0", "data.py:1"),))).count == 6


@pytest.mark.parametrize(
    "seeded",
    [
        Seeded("numpy.random.default_rng (in source)", "0", "data.py:1"),
        Seeded("random.seed", "0", "/venv/lib/python3.11/site-packages/library/core.py:5"),
    ],
)
def test_constants_of_local_generators_and_of_libraries_fix_no_draw(seeded):
    assert run_units(runs(6, seeded=(seeded,), digests={})).count == 6


def test_runs_that_went_through_the_very_same_numbers_are_copies():
    losses = make_series([2.3021, 1.7745, 1.4012, 1.2208])
    found = run_units(runs(5, digests={}, series={"val_loss": losses}))
    assert (found.count, found.merges) == (1, (Merge.NUMBERS,))


def test_runs_that_differ_in_one_epoch_are_not_copies():
    found = run_units(
        runs(5, digests={}, series=lambda place: {"val_loss": make_series([2.3021, 1.7745 + place / 1e4, 1.4])})
    )
    assert found.count == 5


def test_clocks_do_not_hide_that_runs_are_copies():
    series = lambda place: {  # noqa: E731
        "val_loss": make_series([2.3021, 1.7745, 1.4012, 1.2208]),
        "step_time": make_series([1.0 + place, 2.0, 3.0]),
    }
    assert run_units(runs(5, digests={}, series=series)).count == 1


def test_few_digits_prove_nothing():
    assert run_units(runs(4, digests={}, results=lambda place: {"acc": [0.91, 0.92, 0.91, 0.93][place]})).count == 4


def test_a_single_number_that_never_changes_is_one_draw():
    assert run_units(runs(6, digests={}, results={"merror": 0.27556})).count == 1


def test_single_numbers_with_many_digits_that_return_are_copies():
    rng = np.random.default_rng(1)
    values = rng.normal(0.3, 0.01, 2)
    assert run_units(runs(6, digests={}, results=lambda place: {"loss": float(values[place % 2])})).count == 2


def answering(answers):
    return (packed(answers), packed([0, 1, 0, 1], "test.labels"))


@pytest.mark.parametrize(
    "told",
    [
        {"series": {"test_acc": make_series([0.5, 0.625, 0.75, 0.875, 0.9375])}},
        {"results": {"test_acc": 0.8125}},
    ],
)
@pytest.mark.parametrize(
    ("left", "value"),
    [
        ("predictions", lambda place: answering([place % 2, place // 2 % 2, place // 4, 1])),
        ("digests", lambda place: {"head": f"h{place}"}),
        ("per_class", lambda place: {"test_acc": {"cat": 0.5 + place / 16}}),
    ],
)
def test_runs_with_the_same_numbers_that_left_something_else_that_differs_are_no_copies(told, left, value):
    same = {"digests": {}, **told}
    assert run_units(runs(5, **same)).count == 1
    assert run_units(runs(5, **{**same, left: value})).count == 5
    assert run_units(runs(5, **{**same, left: value(0)})).count == 1


def test_what_only_some_runs_left_makes_no_copies_into_draws():
    told = {"digests": {}, "series": {"test_acc": make_series([0.5, 0.625, 0.75, 0.875, 0.9375])}}
    assert run_units(runs(5, predictions=lambda place: answering([1, 1, 1, 1]) if place else (), **told)).count == 1
