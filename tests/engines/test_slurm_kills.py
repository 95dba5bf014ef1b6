"""A study on SLURM whose node daemons, controller and isorun are killed, and whose jobs are preempted: nothing is lost,
and nothing is recorded twice.
"""

import collections
import os
import random
import time

import pytest
from slurm_study import StudyUnderFire

pytestmark = [pytest.mark.engines, pytest.mark.chaos]

FEW = pytest.param(2, 10, id="few")
MANY = pytest.param(50, 24, id="many", marks=pytest.mark.slow)
TIMES = pytest.mark.parametrize(("kills", "runs"), [FEW, MANY])
SECONDS = 6.0


def carried_out(slurm, tmp_path, kills, runs, strike, *, seconds=SECONDS):
    """Study after study, until there were so many strikes; in all of them every cell is finished once."""
    struck, sums = 0, collections.Counter()
    made = random.Random(os.environ.get("ISORUN_CHAOS_SEED", "1"))
    while struck < kills:
        folder = tmp_path / f"study-{struck}"
        folder.mkdir()
        study = StudyUnderFire(folder, runs, seconds)
        study.start("--partition", "low")
        struck += study.under_fire(kills - struck, lambda: strike(made))
        while not study.is_over:
            slurm.resume()
            study.wait_a_little()
        assert study.wait(600) == 0, study.output()
        sums.update(study.check())
    print(f"\n{struck} kills: {dict(sums)}")
    return sums


@TIMES
def test_no_run_is_lost_or_doubled_when_node_daemons_are_killed(slurm, tmp_path, kills, runs):
    def strike(made):
        node = made.choice(["n1", "n2"])
        slurm.kill(node)
        # A short absence is not noticed; after a long one the jobs are begun elsewhere, while the first still run here.
        time.sleep(made.choice([made.uniform(0.0, 4.0), made.uniform(12.0, 20.0)]))
        slurm.start(node)

    # Longer than it takes SLURM to give a node up and to begin its jobs elsewhere: the first begins live until then.
    carried_out(slurm, tmp_path, kills, runs, strike, seconds=25.0)


@TIMES
def test_no_run_is_lost_or_doubled_when_the_controller_is_killed(slurm, tmp_path, kills, runs):
    def strike(made):
        slurm.kill("controller")
        time.sleep(made.uniform(0.0, 4.0))
        slurm.start("controller")
        # Killed again before it knows its nodes it would never learn which jobs ended meanwhile, and begin no others.
        slurm.wait_until(slurm.knows_its_nodes, "the controller does not find its nodes", 120)
        slurm.resume()
        time.sleep(made.uniform(0.0, 5.0))

    carried_out(slurm, tmp_path, kills, runs, strike)


@TIMES
def test_no_run_is_lost_or_doubled_when_jobs_are_preempted(slurm, tmp_path, kills, runs):
    def strike(made):
        wide = ["--exclusive", "-N2"] if made.random() < 0.3 else ["--exclusive", "-N1"]
        number = slurm.run(
            "sbatch", "--parsable", "--partition=high", *wide, "--time=1", "--output=/dev/null", "--wrap=sleep 1"
        ).strip()
        slurm.wait_until(lambda: slurm.jobs().get(number) in {"COMPLETED", "CANCELLED"}, "it never ran", 90)

    carried_out(slurm, tmp_path, kills, runs, strike)


@TIMES
def test_no_run_is_lost_or_doubled_when_isorun_is_killed_and_comes_back(slurm, tmp_path, kills, runs):
    made, struck = random.Random(os.environ.get("ISORUN_CHAOS_SEED", "1")), 0
    while struck < kills:
        folder = tmp_path / f"study-{struck}"
        folder.mkdir()
        study = StudyUnderFire(folder, runs, SECONDS)

        def strike(study=study):
            time.sleep(made.uniform(0.0, 3.0))
            study.kill()
            study.start("--partition", "low")

        study.start("--partition", "low")
        struck += study.under_fire(kills - struck, strike, after_the_first=False)
        assert study.wait(600) == 0, study.output()
        told = study.check()
        print(f"\n{struck} kills: {told}")
        assert told["begun"] == told["trained"] == runs, "what was queued was queued again"
