"""Seeds that are new in every run are known by their value or by their line; all others are constants."""

from __future__ import annotations

import os
import time
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun.worker import entropy
from isorun.worker.source_lines import seed_made_of

NOWHERE = "<string>:1"


@pytest.mark.parametrize("scale", [1, 10**3, 10**6, 10**9])
def test_a_time_since_the_process_began_is_the_clock(scale):
    now = time.time() * scale
    for value in (int(now), int(now) + 7, now):
        assert entropy.made_of(value, "random.seed", lambda: NOWHERE) == entropy.CLOCK
    for value in (int(now - 3600 * scale), int(now + 3600 * scale), int(now) // 1000 * 7):
        assert entropy.made_of(value, "random.seed", lambda: NOWHERE) == ""


def test_a_time_that_was_given_from_outside_is_a_constant(monkeypatch):
    now = int(time.time())
    monkeypatch.setattr("sys.argv", ["train.py", f"--seed={now}"])
    assert entropy.made_of(now, "random.seed", lambda: NOWHERE) == ""
    monkeypatch.setattr("sys.argv", ["train.py"])
    monkeypatch.setenv("SEED", str(now + 1))
    assert entropy.made_of(now + 1, "random.seed", lambda: NOWHERE) == ""


@given(st.integers(min_value=0, max_value=10**9))
def test_a_constant_that_people_write_is_a_constant(value):
    assert entropy.made_of(value, "random.seed", lambda: NOWHERE) == ""


@given(st.binary(min_size=4, max_size=16))
def test_a_number_that_entropy_gave_is_known_again(drawn):
    entropy._remember(drawn)
    for value in (int.from_bytes(drawn, "big"), int.from_bytes(drawn, "little"), int.from_bytes(drawn, "big") >> 3):
        if value >= 2**16:
            assert entropy.made_of(value, "random.seed", lambda: NOWHERE) == entropy.SYSTEM


def test_a_random_uuid_is_known_again():
    drawn = os.urandom(16)
    entropy._remember(drawn)
    assert entropy.made_of(uuid.UUID(bytes=drawn, version=4).int, "random.seed", lambda: NOWHERE) == entropy.SYSTEM


@pytest.mark.parametrize(
    ("line", "made_of"),
    [
        ("np.random.seed(int(time.time()) % 1000)", "the clock"),
        ("torch.manual_seed(time.time_ns() & 0xFFFF)", "the clock"),
        ("seed_everything(seed=datetime.now().microsecond)", "the clock"),
        ("random.seed(os.getpid())", "the process's number"),
        ("rng = np.random.default_rng(secrets.randbits(16))", "the system's entropy"),
        ("key = jax.random.key(int.from_bytes(os.urandom(2), 'big'))", "the system's entropy"),
        ("random.seed(id(object()))", "an address in memory"),
        ("random.seed(clocked + 1)", "the clock"),
        ("random.seed(args.seed or int(time.time()))", ""),
        ("random.seed(5 if fixed else int(time.time()))", ""),
        ("random.seed(maybe)", ""),
        ("random.seed(given)", ""),
        ("print(time.time(), np.random.RandomState(5).rand())", ""),
        ("random.seed(5)", ""),
        ("random.seed(5), np.random.default_rng(time.time_ns())", ""),
        ("random.seed(time.time_ns()), np.random.default_rng(5)", "the clock"),
    ],
)
def test_a_line_says_what_its_seed_is_made_of(tmp_path, line, made_of):
    script = tmp_path / "train.py"
    before = "clocked = int(time.time()) % 99\nmaybe = 5\nif late:\n    maybe = int(time.time())\n"
    script.write_text(f"{before}def f(given=time.time()):\n    given\n{line}\n")
    assert seed_made_of(str(script), 7, "seed") == made_of


CLOCKED = """
import os, random, secrets, time
import numpy as np
seed = int(time.time() * 1000) % 2**32
np.random.seed(seed); random.seed(seed)
print(np.random.rand(), random.random(), np.random.default_rng(time.time_ns()).random())
print(np.random.default_rng(seed).random(), np.random.default_rng(seed).random(), np.random.RandomState(7).rand())
print(np.random.default_rng(secrets.randbits(128)).random(), random.Random(os.getpid()).random())
"""


def test_at_the_fixed_levels_such_seeds_follow_the_runs_and_constants_stay(train, tmp_path):
    (tmp_path / "train.py").write_text(CLOCKED)
    first, again, other = (train("train.py", level="fixed-seed", seed=seed) for seed in (3, 3, 4))
    assert first.returncode == 0, first.stderr
    assert first.stdout == again.stdout
    words = first.stdout.split()
    assert words[3] == words[4]  # one seed, one stream
    assert set(words) & set(other.stdout.split()) == {words[5]}
    told = [note["message"] for note in first.of_kind("note") if note["code"] == "generator-seeded"]
    assert any(f"numpy.random.seed at {tmp_path}/train.py:5 was seeded with the clock" in message for message in told)
    assert any("train.py:8 was seeded with the system's entropy and was given" in message for message in told)
    free = train("train.py").stdout.split()
    assert set(free).isdisjoint(words[:5])
    assert free[5] == words[5]
