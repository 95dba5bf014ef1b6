"""An environment in one sentence, and what is recorded of it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun.analysis.descriptions import description_of_machine, description_of_run
from isorun.report.environments import description_latex
from isorun.study.cells import Level
from isorun.study.records import Seeded
from record_builder import make_cell, make_record

EFFECTIVE = {
    "python": {"version": "3.11.7", "implementation": "CPython"},
    "platform": {"os": "Debian 12", "kernel": "Linux 6.1", "machine": "x86_64", "libc": "glibc 2.36"},
    "cpu": {"logical": 8, "affinity": 2, "model": "AMD  EPYC"},
    "frameworks": ["torch", "numpy"],
    "torch": {"version": "2.13.0", "threads": 2},
    "switches": {"torch": {"cpu": "avx2", "onednn": "off"}, "numpy": {"cpu": "avx2", "threads": "4"}},
    "gpu": {"devices": ["H200", "H200"], "cuda": "12.9", "cudnn": 91000, "driver": "NVRM version: x 570.86.15 Fri"},
    "libraries": [{"name": "libscipy_openblas64_-32a4b2a6.so", "sha256": "ab" * 32}],
    "packages": {"numpy": "2.4.6", "torch": "2.13.0"},
}


def described(level=Level.FIXED_SEED, requested=None, made=None, inside=EFFECTIVE, **changes):
    environment = {"effective": inside, "requested": requested or {}, **({} if made is None else {"made": made})}
    return description_of_run(make_record(make_cell(level), environment=environment, **changes))


def state(found, what):
    return next(item.state for item in found.checklist if item.what == what)


def test_the_sentence_has_all_that_a_paper_needs():
    assert described(code={}).sentence == (
        "Trained on AMD EPYC (2 of 8 CPUs used) with 2 x H200 (driver 570.86.15, cuDNN 91000, CUDA 12.9); "
        "Debian 12 (Linux 6.1, glibc 2.36); with CPython 3.11.7, torch 2.13.0, numpy 2.4.6; "
        "math libraries loaded: OpenBLAS (sha256 abababababab); threads: torch 2, numpy 4; "
        "oneDNN off, instructions up to avx2; "
        "determinism level fixed-seed (same seed; kernels and scheduling free), seed 1."
    )


def test_what_only_numpy_says_is_told_as_numpys():
    inside = {**EFFECTIVE, "frameworks": ["tensorflow", "numpy"], "switches": {"numpy": {"cpu": "avx2"}}}
    assert "instructions up to avx2 (numpy)" in described(inside=inside).sentence
    alone = {**inside, "frameworks": ["numpy"]}
    assert "instructions up to avx2;" in described(inside=alone).sentence


def test_what_was_asked_for_and_seeds_of_the_training_are_told():
    seeded = (Seeded("random.seed", "3", "train.py:1"),)
    said = described(requested={"switches": {"onednn": "off"}}, seeded=seeded).sentence
    assert "(asked for: onednn=off)" in said
    assert said.endswith("seed 1, the training's own seeds: random.seed(3).")


def test_a_seed_that_only_the_source_has_is_told_as_such():
    read = Seeded("random.Random (in source)", "5", "train.py:7")
    said = described(seeded=(Seeded("random.seed", "3", "train.py:1"), read)).sentence
    assert "the training's own seeds: random.seed(3), in its source, where nothing tells whether they ran:" in said
    assert "random.Random(5)" in said
    assert "the training's own seeds" not in described(seeded=(read,)).sentence


@pytest.mark.parametrize(
    ("code", "expected", "told"),
    [
        ({"commit": "a" * 40, "dirty": False}, "recorded", "clean"),
        ({"commit": "a" * 40, "dirty": True, "diff_sha256": "b"}, "in part", "not committed"),
        ({}, "missing", "no git repository"),
    ],
)
def test_code_versions(code, expected, told):
    found = described(code=code)
    assert state(found, "code version") == expected
    assert told in found.checklist[0].detail


def test_data_are_known_only_where_the_command_names_them():
    assert state(described(), "data") == "missing"
    given_files = [{"path": "train.csv", "sha256": "c" * 64}, {"path": "train.py", "sha256": "d" * 64}]
    found = described(requested={"given_files": given_files})
    assert state(found, "data") == "in part"
    assert "train.csv" in next(item.detail for item in found.checklist if item.what == "data")


def test_packages_are_pinned_only_where_they_were_made_for_the_study():
    assert state(described(), "packages") == "in part"
    assert state(described(requested={"packages": {"numpy": "1.26.4"}}), "packages") == "recorded", "as it once was"
    assert state(described(made={"packages": {"numpy": "1.26.4"}}), "packages") == "recorded"


def test_threads_seeds_and_levels():
    assert state(described(), "threads") == "in part"
    assert state(described(requested={"threads": 2}), "threads") == "recorded"
    assert state(described(Level.DEFAULT), "seeds") == "missing"
    assert state(described(), "seeds") == "recorded"
    assert state(described(inside={**EFFECTIVE, "open": ["torch: x is on"]}), "determinism") == "in part"
    assert state(described(inside={}), "determinism") == "missing"


def test_a_run_without_a_worker_says_what_is_missing():
    found = described(inside={})
    assert "of which nothing is recorded" in found.sentence
    assert {state(found, what) for what in ("processor", "Python", "math libraries", "packages")} == {"missing"}


def test_a_machine_has_no_training():
    found = description_of_machine(EFFECTIVE, {"jax": "0.4"}, {})
    assert found.run == ""
    assert found.sentence.startswith("Run on AMD EPYC")
    assert "determinism level" not in found.sentence
    assert {state(found, what) for what in ("data", "determinism", "seeds")} == {"missing"}


def test_latex_is_escaped():
    text = description_latex(described(inside={**EFFECTIVE, "cpu": {"model": "A_B & 100% #1"}}))
    assert r"A\_B \& 100\% \#1" in text
    assert r"\begin{tabular}" in text


def test_no_secret_is_in_the_sentence():
    token = "ghp_" + "a1B2c3D4e5" * 4
    seeded = (Seeded("random.seed", token, ""),)
    assert token not in described(seeded=seeded).sentence


JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*EFFECTIVE, "open"]), JSON))
def test_whatever_a_training_left_can_be_described(inside):
    told = described(inside=inside).to_json()
    assert json.loads(json.dumps(told)) == told
