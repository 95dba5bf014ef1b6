"""Searches whose processes are killed with SIGKILL at random moments lose no trial, and repeat none."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest
from oracle import TRAIN, Oracle, Workplace, kill, seconds_until_gone

from isorun import workflow
from isorun.repair.kept_searches import known_searches, read_searches
from isorun.study.records import RunState
from isorun.study.searches import Proposed

pytestmark = pytest.mark.chaos

SEED = int(os.environ.get("ISORUN_CHAOS_SEED") or random.SystemRandom().randrange(2**32))
KILLS = int(os.environ.get("ISORUN_CHAOS_KILLS", "16")) // 2
TRIALS = 4 * KILLS
STUDY = """
[approaches.toy]
command = "python train.py {{config.lr}} {{config.act}}"
[metrics]
token = "higher"
[search]
trials = {repeats}
engine = "random"
begin = 6
repeats = 2
[search.space]
lr = {{ float = [1e-5, 1.0], log = true }}
act = ["relu", "tanh", "elu"]
"""

two_cpus = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two runs at once need two CPUs")


class SearchWorkplace(Workplace):
    """The study is a search; `repeats` is how many trials it has."""

    def extend(self, repeats: int) -> None:
        self.repeats += repeats
        (self.folder / "train.py").write_text(TRAIN.replace("import isorun", "import isorun, sys", 1))
        self.study.write_text(STUDY.format(repeats=self.repeats))

    def proposed(self) -> tuple[Proposed, ...]:
        study = workflow.load(self.study)
        with workflow.open_store(str(self.store_folder)) as store:
            return workflow.known_to(study, store).proposed


# Two isoruns with two runs each come first: what goes wrong with fewer goes wrong with them.
@pytest.mark.parametrize(
    ("jobs", "isoruns"),
    [
        pytest.param(2, 2, marks=two_cpus),
        pytest.param(1, 1, marks=pytest.mark.slow),
        pytest.param(1, 2, marks=pytest.mark.slow),
        pytest.param(2, 1, marks=[two_cpus, pytest.mark.slow]),
    ],
)
@pytest.mark.long
def test_kills_at_random_moments_lose_and_repeat_no_trial(jobs: int, isoruns: int, tmp_path: Path):
    print(f"ISORUN_CHAOS_SEED={SEED}")
    generator = random.Random(f"{SEED} {jobs} {isoruns}")
    workplace = SearchWorkplace(tmp_path / "work", repeats=TRIALS)
    before: tuple[Proposed, ...] = ()
    for _ in range(KILLS):
        began = [workplace.start("--jobs", jobs, "--launch", "fresh") for _ in range(isoruns)]
        time.sleep(generator.uniform(0.2, 2.0))
        for one in began:
            if generator.random() < 0.7 or one is began[0]:
                kill(one.process.pid, workplace.mark)
        for one in began:
            if one.process.poll() is None:
                kill(one.process.pid, workplace.mark)
            one.wait()
            assert "Traceback" not in one.stderr, one.stderr
        seconds_until_gone(workplace.mark, 5.0)
        if workplace.store_folder.exists():
            now = workplace.proposed()
            assert now[: len(before)] == before, "what was proposed changed"
            before = now
    last = workplace.run("--jobs", jobs, "--launch", "fresh")
    assert last.process.returncode == 0, last.stderr
    check_whole(workplace, before)
    assert "nothing was missing" in workplace.run().stdout


def check_whole(workplace: SearchWorkplace, before: tuple[Proposed, ...]) -> None:
    """One finished record for each proposal, each proposal once, all trials there."""
    proposed = workplace.proposed()
    assert proposed[: len(before)] == before
    numbers = [(one.number, one.repeat) for one in proposed]
    assert len(numbers) == len(set(numbers))
    assert [number for number, repeat in numbers if repeat == 0] == list(range(TRIALS))
    records = workplace.records()
    finished = [record.cell.id for record in records if record.state is RunState.FINISHED]
    assert len(finished) == len(set(finished)) == len(proposed)
    assert {record.state for record in records} <= {RunState.FINISHED, RunState.INTERRUPTED}
    Oracle(workplace).check()
    study = workflow.load(workplace.study)
    with workflow.open_store(str(workplace.store_folder)) as store:
        (search,) = read_searches(study, store)
    assert [trial.state for trial in search.trials] == ["finished"] * TRIALS


MANY_KILLS = 30
RACED = """
levels = ["fixed-seed"]
seeds = [1, 2, 3]
[approaches.toy]
command = "python train.py {{config.lr}} {{config.act}}"
[metrics]
score = "higher"
[search]
trials = {repeats}
engine = "random"
begin = 6
repeats = 3
[search.space]
lr = {{ float = [1e-5, 1.0], log = true }}
act = ["relu", "tanh", "elu"]
"""
SCORE = "isorun.result(token=token, score=-abs(math.log10(float(sys.argv[1])) + 2) + random.gauss(0, 0.5))"


class RacedWorkplace(SearchWorkplace):
    """A search whose scores depend on its parameters and seeds alone, so that it can be made twice."""

    def extend(self, repeats: int) -> None:
        self.repeats += repeats
        training = TRAIN.replace("import isorun", "import isorun, math, sys", 1)
        (self.folder / "train.py").write_text(training.replace("isorun.result(token=token)", SCORE))
        self.study.write_text(RACED.format(repeats=self.repeats))

    def is_racing(self) -> bool:
        study = workflow.load(self.study)
        with workflow.open_store(str(self.store_folder)) as store:
            return bool(known_searches(study, store)[0].standing().wanted)


@pytest.mark.slow
def test_a_search_that_is_killed_thirty_times_also_while_it_races_proposes_what_it_would_have(tmp_path: Path):
    print(f"ISORUN_CHAOS_SEED={SEED}")
    generator = random.Random(f"{SEED} raced")
    killed, whole = (RacedWorkplace(tmp_path / name, repeats=20) for name in ("killed", "whole"))
    in_races, before = 0, ()
    for _ in range(MANY_KILLS):
        one = killed.start("--launch", "fresh")
        time.sleep(generator.uniform(0.5, 7.0))
        if one.process.poll() is None:
            kill(one.process.pid, killed.mark)
        one.wait()
        assert "Traceback" not in one.stderr, one.stderr
        seconds_until_gone(killed.mark, 5.0)
        if killed.store_folder.exists():
            now, in_races = killed.proposed(), in_races + killed.is_racing()
            assert now[: len(before)] == before, "what was proposed changed"
            before = now
    print(f"{in_races} of {MANY_KILLS} kills came while a race was open; {len(before)} trainings proposed by then")
    assert in_races
    for workplace in (killed, whole):
        done = workplace.start("--launch", "fresh")
        done.wait(300)
        assert done.process.returncode == 0, done.stderr
    assert [one.to_json() for one in killed.proposed()] == [one.to_json() for one in whole.proposed()]
    records = killed.records()
    finished = [record.cell.id for record in records if record.state is RunState.FINISHED]
    assert len(finished) == len(set(finished)) == len(killed.proposed())
    assert {record.state for record in records} <= {RunState.FINISHED, RunState.INTERRUPTED}
    Oracle(killed).check()
