"""Real studies whose processes are killed with SIGKILL at random moments, and then resumed."""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from oracle import KEEPER, PARENT, SERVER, TRAIN, TRAINING, Invocation, Oracle, Workplace, kill, seconds_until_gone

pytestmark = pytest.mark.chaos

SEED = int(os.environ.get("ISORUN_CHAOS_SEED") or random.SystemRandom().randrange(2**32))
KILLS = int(os.environ.get("ISORUN_CHAOS_KILLS", "16"))  # in each of four studies
LEAST_MISSING = 8
PATIENCE_SECONDS = 30.0
GONE_SECONDS = 5.0  # on a machine that does much else; half of the times must be within a second

two_cpus = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two runs at once need two CPUs")


@dataclass
class Killer:
    """Starts a study again and again, and kills one of its processes at a random moment."""

    oracle: Oracle
    options: tuple[object, ...]
    generator: random.Random
    roles: tuple[str, ...]
    killed: dict[str, int] = field(default_factory=dict)
    seconds_gone: list[float] = field(default_factory=list)

    @property
    def kills(self) -> int:
        return sum(self.killed.values())

    def round(self, most: int) -> None:
        """One invocation, disturbed until it ends or is killed itself."""
        invocation = self.oracle.workplace.start(*self.options)
        goal = self.kills + most
        self._wait_for_a_moment(invocation)
        while invocation.process.poll() is None and self.kills < goal:
            self._strike(invocation, self.generator.choice(self.roles))
            self._pause(0.3)
        if invocation.process.poll() is None:
            self._strike(invocation, PARENT)
        invocation.wait()
        self.seconds_gone.append(seconds_until_gone(invocation.mark, GONE_SECONDS))
        assert self.seconds_gone[-1] <= GONE_SECONDS, "processes were left behind"
        assert invocation.process.returncode in {0, 1, -9}, invocation.stderr
        self.oracle.hear(invocation)

    def _wait_for_a_moment(self, invocation: Invocation) -> None:
        """A little into its start, a training, or the time after an acknowledgement, however slow the machine is."""
        began = len(self.oracle.workplace.ledger("began"))
        signs: list[Callable[[], object]] = [
            lambda: True,
            lambda: len(self.oracle.workplace.ledger("began")) > began,
            invocation.acknowledged,
        ]
        sign = self.generator.choice(signs)
        until = time.monotonic() + PATIENCE_SECONDS
        while not sign() and invocation.process.poll() is None and time.monotonic() < until:
            time.sleep(0.005)
        self._pause(0.3)

    def _strike(self, invocation: Invocation, role: str) -> None:
        """Kill the parent, or a process of that role if one is there just now."""
        pids = [member.pid for member in invocation.family() if member.role == role]
        if role == PARENT:
            pids = [invocation.process.pid] if invocation.process.poll() is None else []
        if pids and kill(self.generator.choice(pids), invocation.mark):
            self.killed[role] = self.killed.get(role, 0) + 1

    def _pause(self, longest: float) -> None:
        time.sleep(self.generator.uniform(0.0, longest))


@pytest.mark.parametrize(
    ("launch", "jobs"),
    [
        pytest.param("fresh", 2, marks=two_cpus),
        ("warm", 1),
        pytest.param("fresh", 1, marks=pytest.mark.slow),
        pytest.param("warm", 2, marks=[two_cpus, pytest.mark.slow]),
    ],
)
@pytest.mark.long
def test_kills_at_random_moments_lose_double_and_halve_nothing(launch: str, jobs: int, tmp_path: Path):
    print(f"ISORUN_CHAOS_SEED={SEED}")
    oracle = Oracle(Workplace(tmp_path / "work", repeats=3))
    roles = (PARENT, KEEPER, TRAINING, *([SERVER] if launch == "warm" else []))
    options = ("--jobs", jobs, "--launch", launch)
    killer = Killer(oracle, options, random.Random(f"{SEED} {launch} {jobs}"), roles)
    while killer.kills < KILLS:
        if oracle.missing() < LEAST_MISSING:
            oracle.workplace.extend(2)
        killer.round(most=min(4, KILLS - killer.kills))
    print(f"{killer.killed}, the rest gone after {max(killer.seconds_gone):.2f} s at most")
    assert len(oracle.check()) > 0
    assert statistics.median(killer.seconds_gone) < 1.0
    oracle.check_completed(oracle.workplace.run(*options))
    assert "nothing was missing" in oracle.workplace.run(*options).stdout


@pytest.mark.alone
@pytest.mark.parametrize("launch", ["fresh", "warm"])
def test_when_isorun_is_killed_its_trainings_are_gone_within_two_seconds(launch: str, tmp_path: Path):
    workplace = Workplace(tmp_path)
    (tmp_path / "train.py").write_text(TRAIN.replace("time.sleep(pause)", "time.sleep(300)"))
    jobs = min(2, len(os.sched_getaffinity(0)))
    invocation = workplace.start("--launch", launch, "--jobs", jobs)
    until = time.monotonic() + PATIENCE_SECONDS
    while len(workplace.ledger("began")) < jobs:
        assert time.monotonic() < until, invocation.stderr
        time.sleep(0.01)
    roles = [member.role for member in invocation.family()]
    assert roles.count(TRAINING) == jobs
    assert (SERVER in roles) == (launch == "warm")
    assert kill(invocation.process.pid, invocation.mark)
    assert invocation.wait() == -9
    assert seconds_until_gone(invocation.mark, patience=10.0) < 2.0
    assert workplace.records() == []


@pytest.mark.parametrize("launch", ["fresh", "warm"])
@pytest.mark.long
def test_two_isoruns_share_the_work_and_the_survivor_completes_it(launch: str, tmp_path: Path):
    oracle = Oracle(Workplace(tmp_path / "work", repeats=4))
    both = [oracle.workplace.start("--launch", launch) for _ in range(2)]
    until = time.monotonic() + PATIENCE_SECONDS
    while not all(invocation.acknowledged() for invocation in both):
        assert time.monotonic() < until, [invocation.stderr for invocation in both]
        assert all(invocation.process.poll() is None for invocation in both)
        time.sleep(0.01)
    assert kill(both[0].process.pid, both[0].mark)
    survivor = both[1]
    survivor.wait()
    assert both[0].wait() == -9
    oracle.hear(both[0])
    oracle.check_completed(survivor)
    assert not both[0].acknowledged() & survivor.acknowledged()
    assert "done by another isorun" in survivor.stdout
