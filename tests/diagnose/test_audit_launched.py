"""Trainings that a launcher starts: each rank is looked at, and what they saw is told once."""

import importlib.util
import json
import subprocess
import sys

import pytest

from isorun.diagnose.audit import examine_source, read_program
from isorun.diagnose.audit.findings import Sure
from isorun.diagnose.audit.seen import Seen, hold_all, those_that_trained
from isorun.workflow import audit

# As torchrun does: one process a rank, with its number in the environment, and an end as good as theirs.
LAUNCHER = """
import os, subprocess, sys
ranks = [
    subprocess.Popen([sys.executable, *sys.argv[1:]], env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2"})
    for rank in range(2)
]
sys.exit(max(abs(rank.wait()) for rank in ranks))
"""
RANKED = "import os, random, time\nif os.environ['RANK'] == '1':\n    random.random()\ntime.sleep(60)\n"


def told(rank, script, events=(), *, stopped="after 20 steps", steps=20):
    look = {"rank": rank, "script": str(script), "steps": steps, "seconds": 1.0, "stopped": stopped}
    return {"audit": {**look, "events": list(events), "moved": []}}


def draw_at(script, line):
    return {"what": "draw", "name": "random.random", "family": "random", "where": f"{script}:{line}"}


@pytest.fixture
def ranked(tmp_path):
    """The program, and where its script lies."""
    script = tmp_path / "train.py"
    script.write_text(RANKED)
    return read_program(["python", "train.py"], tmp_path, {}), script


def test_a_finding_of_one_rank_says_so(ranked):
    program, script = ranked
    looks = [told(0, script), told(1, script, [draw_at(script, 3)])]
    kept, withdrawn = hold_all(examine_source(program), [Seen.of(program, look, 0.0) for look in looks])
    [finding] = [item for item in kept if item.kind == "unseeded-generator"]
    assert (finding.sure, finding.ranks) == (Sure.HIGH, (1,))
    assert finding.why.endswith("(in rank 1 of 2)")
    assert finding.to_json()["ranks"] == [1]
    assert withdrawn == ()


def test_a_finding_of_all_ranks_is_told_once_and_names_none(ranked):
    program, script = ranked
    looks = [told(rank, script, [draw_at(script, 3)]) for rank in (0, 1)]
    kept, _ = hold_all(examine_source(program), [Seen.of(program, look, 0.0) for look in looks])
    [finding] = [item for item in kept if item.kind == "unseeded-generator"]
    assert finding.ranks == ()
    assert "rank" not in finding.why
    assert "ranks" not in finding.to_json()


def test_what_one_rank_withdraws_and_another_keeps_is_kept(ranked):
    program, script = ranked
    looks = [told(0, script, stopped=""), told(1, script, [draw_at(script, 3)], stopped="")]
    kept, withdrawn = hold_all(examine_source(program), [Seen.of(program, look, 0.0) for look in looks])
    assert [item.ranks for item in kept if item.kind == "unseeded-generator"] == [(1,)]
    assert withdrawn == ()
    kept, withdrawn = hold_all(examine_source(program), [Seen.of(program, looks[0], 0.0)] * 2)
    assert [item.finding.kind for item in withdrawn] == ["unseeded-generator"]
    assert kept == ()


def test_launchers_and_helpers_are_no_ranks(ranked, tmp_path):
    program, script = ranked
    launcher, helper = told(None, "/bin/torchrun", steps=0), told(None, tmp_path / "prepare.py", steps=0)
    unranked, spawned = told(None, script, steps=0), told(None, "", steps=3)
    ranks = [told(1, script), told(0, script)]
    assert those_that_trained([launcher, helper, *ranks], program) == ranks[::-1]
    assert those_that_trained([launcher, unranked], program) == [unranked]
    assert those_that_trained([launcher, spawned], program) == [spawned]
    assert those_that_trained([launcher, helper], program) == []


def test_ranks_that_a_launcher_starts_are_looked_at(tmp_path):
    (tmp_path / "launcher.py").write_text(LAUNCHER)
    (tmp_path / "train.py").write_text(RANKED)
    found = audit([sys.executable, "launcher.py", "train.py"], seconds=3, folder=tmp_path)
    assert "2 ranks" in found.ran
    assert "stopped after 3 s" in found.ran
    assert found.effective["audit"]["rank"] == 0


def test_a_program_that_starts_itself_anew_is_not_killed_by_the_clock_of_the_look(tmp_path):
    again = "import os, sys, time\nif 'AGAIN' not in os.environ:\n    os.environ['AGAIN'] = '1'\n"
    again += (
        "    os.execv(sys.executable, [sys.executable, *sys.argv])\nimport random\nrandom.random()\ntime.sleep(60)\n"
    )
    (tmp_path / "train.py").write_text(again)
    found = audit([sys.executable, "train.py"], seconds=2, folder=tmp_path)
    assert "stopped after 2 s" in found.ran
    assert [item.kind for item in found.sure] == ["unseeded-generator"]


DISTRIBUTED = """
import random
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
if dist.get_rank() == 1:
    random.random()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
while True:
    optimizer.zero_grad()
    model(torch.randn(8, 4)).sum().backward()
    optimizer.step()
"""


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
@pytest.mark.parametrize("limit", [["--steps", "5"], ["--seconds", "12", "--steps", "1000000"]])
def test_ranks_of_torchrun_are_looked_at_and_end_together(tmp_path, limit):
    (tmp_path / "train.py").write_text(DISTRIBUTED)
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "train.py"]
    command = [sys.executable, "-m", "isorun", "audit", *limit, "--json", "--", *launch]
    told = json.loads(subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout)
    assert told["run"].startswith("a run of it (2 ranks, ")
    sure = {item["line"]: item.get("ranks") for item in told["findings"] if item["sure"] == "high"}
    assert sure == {8: [1], 9: None}
