"""Seed against kernel noise: the studies, and what is said of records with known components."""

from dataclasses import replace

import numpy as np
import pytest
from ase20_records import record_of

from isorun.analysis.spreads.nested import nested_variance
from isorun.study.cells import Level, cells_of
from isorun.zoo.paper import Request
from isorun.zoo.studies.ase20.paper import Ase20
from isorun.zoo.studies.ase20.scales import NESTED_NETWORK
from record_builder import packed

SEED_SD, KERNEL_SD = 0.004, 0.003
EXAMPLES = 200


@pytest.fixture(autouse=True)
def no_data(made_data_folder):
    """Presenting needs no data."""


def request_in(folder, scale="gpu", **changes):
    return Request(scale, folder, only=("nested",), device="cuda", recorded=True, **changes)


def accuracy(cell):
    """Seed and repeat each add their own; deterministic repeats add nothing."""
    by_seed = np.random.default_rng(cell.seed).normal() * SEED_SD
    by_repeat = np.random.default_rng((cell.seed, cell.repeat + 1)).normal() * KERNEL_SD
    return 0.9 + by_seed + (by_repeat if cell.level is Level.FIXED_SEED else 0.0)


def answers(cell):
    """A fifth of the answers go by the seed, another fifth by the run."""
    given = np.zeros(EXAMPLES, dtype=int)
    given[:40] = np.random.default_rng(cell.seed).integers(0, 2, 40)
    repeat = cell.repeat if cell.level is Level.FIXED_SEED else 0
    given[40:80] = np.random.default_rng((cell.seed, repeat)).integers(0, 2, 40)
    return packed(given), packed(np.zeros(EXAMPLES, dtype=int), name="test.labels")


def records_of(studies):
    def made(cell):
        is_deterministic = cell.level is Level.DETERMINISTIC
        weights = f"seed {cell.seed}" if is_deterministic else cell.id
        return replace(record_of(cell, accuracy(cell), weights=weights), predictions=answers(cell))

    return {study.name: [made(cell) for cell in cells_of(study)] for study in studies}


def presented(folder, **changes):
    request = request_in(folder, **changes)
    return Ase20().present(request, records_of(Ase20().studies(request)))


def test_there_are_eight_seeds_of_six_repeats_and_deterministic_runs_of_the_same_seeds(tmp_path):
    fixed, deterministic = Ase20().studies(request_in(tmp_path))
    assert (len(fixed.seeds), fixed.repeats, fixed.levels) == (8, 6, (Level.FIXED_SEED,))
    assert (len(deterministic.seeds), deterministic.repeats) == (8, 2)
    assert deterministic.seeds == fixed.seeds
    assert list(fixed.approaches) == [NESTED_NETWORK.name]


def test_runs_asked_for_are_repeats_and_two_deterministic_ones_stay(tmp_path):
    fixed, deterministic = Ase20().studies(request_in(tmp_path, runs=3))
    assert (fixed.repeats, deterministic.repeats) == (3, 2)


def test_components_are_those_of_the_values_and_every_run_is_in_the_numbers(tmp_path):
    found = presented(tmp_path).numbers["nested"]
    fixed = found["fixed_seed"]
    values = [
        [run["best-loss"]["test_accuracy"] for run in fixed["values"] if run["seed"] == seed] for seed in range(1, 9)
    ]
    expected = nested_variance(values)
    assert (fixed["seeds"], fixed["runs"], fixed["different_final_weights"]) == (8, 48, 48)
    assert fixed["components"]["best-loss"] == expected.to_json()
    assert found["deterministic"]["different_final_weights"] == 8
    assert found["deterministic"]["components"]["best-loss"]["within"] == 0.0
    assert {run["weights"] for run in fixed["values"]}.__len__() == 48


def test_answers_are_compared_within_and_between_seeds(tmp_path):
    found = presented(tmp_path).numbers["nested"]["disagreement"]
    # answers of the run differ in half of 40 cases, those of the seed in another half between seeds only
    assert found["within"] == pytest.approx(0.1, abs=0.02)
    assert found["between"] == pytest.approx(0.2, abs=0.03)
    low, high = found["ratio_ci95"]
    assert low < 0.5 < high


def test_the_verdict_has_shares_with_intervals_and_says_what_determinism_leaves(tmp_path):
    shares, disagreement, deterministic, *_ = presented(tmp_path).verdict
    assert "ResNet14 on fashion-mnist, 48 runs of 8 seeds" in shares
    assert "95 % interval" in shares
    assert "Two runs of one seed give another answer" in disagreement
    assert "the runs of 8 of 8 seeds are the same bit for bit" in deterministic


@pytest.mark.parametrize("scale", ["smoke", "gpu"])
def test_two_repeats_or_a_smoke_run_claim_nothing(scale, tmp_path):
    shown = presented(tmp_path, scale=scale, runs=2)
    assert not any("variance" in line for line in shown.verdict)
    table = next(item for item in shown.tables if item.name == "nested")
    assert any("nothing is claimed" in note for note in table.notes)


def test_the_table_shows_whether_training_had_stopped_improving(tmp_path):
    shown = presented(tmp_path)
    table = next(item for item in shown.tables if item.name == "nested-epochs")
    assert [row[0] for row in table.rows] == ["1", "2"]
    assert "median 2, from 2 to 2 of 2" in " ".join(table.notes)
    assert [figure.name for figure in shown.figures] == ["nested"]


def test_nothing_is_shown_where_only_deterministic_runs_were_made(tmp_path):
    request = request_in(tmp_path)
    studies = Ase20().studies(request)
    shown = Ase20().present(request, records_of(studies[1:]))
    assert shown.numbers["nested"] is None
