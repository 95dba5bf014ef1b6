"""Levels add variables, and never replace the user's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun.study.cells import Level
from isorun.worker import levels

AVX2 = frozenset({"avx2"})
NAMES = st.sampled_from(["OMP_NUM_THREADS", "MKL_CBWR", "PYTHONHASHSEED", "CUBLAS_WORKSPACE_CONFIG", "OTHER"])


def test_the_worker_knows_the_levels_of_a_study():
    assert tuple(levels.LEVELS) == tuple(map(str, Level))


def test_default_sets_nothing_but_its_name():
    assert levels.level_environment("default", 5, 4, {}) == {"ISORUN_LEVEL": "default"}


def test_fixed_seed_sets_the_seed_and_one_hash_seed_for_all():
    added = [levels.level_environment("fixed-seed", seed, 4, {}) for seed in (1, 2)]
    assert [item["ISORUN_SEED"] for item in added] == ["1", "2"]
    assert [item["PYTHONHASHSEED"] for item in added] == ["0", "0"]
    assert set(added[0]) == {"ISORUN_LEVEL", "ISORUN_SEED", "PYTHONHASHSEED"}


def test_deterministic_fixes_kernels_threads_and_cpu_path():
    added = levels.level_environment("deterministic", 1, 3, {}, cpu_flags=AVX2)
    assert added["OMP_NUM_THREADS"] == added["MKL_NUM_THREADS"] == added["OPENBLAS_NUM_THREADS"] == "3"
    assert added["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
    assert added["MKL_CBWR"] == "AVX2,STRICT"
    assert added["ATEN_CPU_CAPABILITY"] == "avx2"


@pytest.mark.parametrize(
    ("base", "count"),
    [
        ({"OMP_NUM_THREADS": "1"}, "1"),
        ({"MKL_NUM_THREADS": "2"}, "2"),
        ({"OPENBLAS_NUM_THREADS": "4"}, "4"),
        ({"OMP_NUM_THREADS": "4,2"}, "4"),
        ({"OMP_NUM_THREADS": "all", "MKL_NUM_THREADS": "2"}, "2"),
        ({"OMP_NUM_THREADS": "0"}, "3"),
    ],
)
def test_a_number_of_threads_from_outside_is_given_to_all_libraries(base, count):
    names = {"OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"}
    added = levels.level_environment("deterministic", 1, 3, base, cpu_flags=AVX2)
    assert {name: added.get(name) for name in names - set(base)} == dict.fromkeys(names - set(base), count)
    assert not set(added) & set(base)


def test_without_avx2_the_path_is_the_compatible_one():
    added = levels.level_environment("deterministic", 1, 3, {}, cpu_flags=frozenset())
    assert added["MKL_CBWR"] == "COMPATIBLE"
    assert "ATEN_CPU_CAPABILITY" not in added


def test_xla_flags_are_added_to_those_of_the_user_once():
    one = levels.level_environment("deterministic", 1, 3, {"XLA_FLAGS": "--a=1"}, cpu_flags=AVX2)
    assert one["XLA_FLAGS"] == "--a=1 --xla_gpu_deterministic_ops=true"
    again = levels.level_environment("deterministic", 1, 3, one, cpu_flags=AVX2)
    assert "XLA_FLAGS" not in again


@given(st.dictionaries(NAMES, st.text(max_size=5)), st.sampled_from(levels.LEVELS), st.integers(0, 2**40))
def test_what_the_user_sets_stays(base, level, seed):
    added = levels.level_environment(level, seed, 2, base, cpu_flags=AVX2)
    assert not set(added) & set(base)


@pytest.mark.parametrize(("level", "seed"), [("fixed-seed", None), ("no-such-level", 1)])
def test_a_broken_contract_is_an_error(level, seed):
    with pytest.raises(ValueError, match="allowed are default, fixed-seed, deterministic"):
        levels.level_environment(level, seed, 1, {})


def test_the_hook_leads_the_python_path():
    site = str(levels.site_folder())
    assert levels.hooked_python_path({}) == site
    assert levels.hooked_python_path({"PYTHONPATH": "/a:/b"}) == f"{site}:/a:/b"


def test_no_variable_of_isorun_is_passed_on_to_trainings_that_it_starts():
    named = {value for value in vars(levels).values() if isinstance(value, str) and value.startswith("ISORUN_")}
    assert levels.AUDIT in named
    assert named <= set(levels.OWN_VARIABLES)
