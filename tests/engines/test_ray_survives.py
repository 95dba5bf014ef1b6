"""Nodes and heads of Ray that are killed while a study runs: every cell is finished once, and nothing is lost."""

import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from isorun.execution.keeper import processes
from isorun.session import open_store
from isorun.study.records import RunState

pytestmark = pytest.mark.engines

TRAIN = """
import os, sys, time
with open("begun.txt", "a") as file:
    file.write(f"{os.getpid()} {os.environ['ISORUN_RUN_DIR']}\\n")
time.sleep(float(sys.argv[2]))
while os.path.exists("held"):
    time.sleep(0.05)
print(f"test_acc: {int(sys.argv[1]) / 1000}")
"""
STUDY = """
name = "killed"
levels = ["fixed-seed"]
seeds = {seeds}
[approaches.a]
command = "python train.py {{seed}} {seconds}"
[metrics.test_acc]
direction = "higher"
"""


class Study:
    """A study that a process of its own carries out on a cluster, as somebody typed it."""

    def __init__(self, folder, cluster, seeds, seconds):
        self.folder, self.seeds = folder, seeds
        (folder / "train.py").write_text(TRAIN)
        (folder / "study.toml").write_text(STUDY.format(seeds=seeds, seconds=seconds))
        self.command = ["run", "study.toml", "--executor", f"ray:{cluster.address}?patience=900s", "--store", "st"]
        self.process = None
        self.begin()

    def begin(self):
        with (self.folder / "output.txt").open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "isorun", *self.command],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "RAY_AUTH_MODE": "disabled"},
            )

    @property
    def output(self):
        return (self.folder / "output.txt").read_text()

    def begun(self):
        file = self.folder / "begun.txt"
        return file.read_text().splitlines() if file.is_file() else []

    def wait_for(self, runs, seconds=120):
        """Until so many trainings have begun; False when the study is over before."""
        until = time.monotonic() + seconds
        while len(self.begun()) < runs:
            if self.process.poll() is not None:
                return False
            assert time.monotonic() < until, self.output
            time.sleep(0.05)
        return True

    def end(self, seconds=300):
        assert self.process.wait(seconds) == 0, self.output

    def records(self):
        with open_store(str(self.folder / "st"), create=False) as store:
            return list(store.records())

    def check(self):
        """Every cell is finished once, with its own value; every attempt that began and is no more has a record."""
        records = self.records()
        finished = Counter(record.cell.id for record in records if record.state is RunState.FINISHED)
        assert len(finished) == self.seeds, self.output
        assert set(finished.values()) == {1}
        for record in records:
            assert record.where["executor"] == "ray"
            if record.state is RunState.FINISHED:
                assert record.results["test_acc"] == record.cell.seed / 1000
            else:
                assert record.state is RunState.INTERRUPTED
                assert "Ray" in record.reason
        kept = {record.run_id for record in records}
        assert {Path(line.split()[1]).name for line in self.begun()} <= kept
        return records

    def trainings_left(self):
        living = processes()
        return [line for line in self.begun() if int(line.split()[0]) in living]


def killed_nodes(folder, cluster, kills, seeds, seconds, *, replaced):
    """Run a study while one node after the other is killed, and another one takes its place if it is to be replaced."""
    nodes = [cluster.add_node(cpus=2) for _ in range(2)]
    study = Study(folder, cluster, seeds, seconds)
    draw = random.Random(7)
    done = 0
    for _ in range(kills):
        if not study.wait_for(len(study.begun()) + 3):
            break
        time.sleep(draw.random())
        cluster.kill(nodes.pop(0))
        done += 1
        if replaced:
            nodes.append(cluster.add_node(cpus=2))
    study.end(600)
    for node in nodes:
        cluster.kill(node)
    return study, done


def killed_heads(folder, cluster, kills, seeds, seconds):
    """Run a study while the head, which is all there is, is killed and comes back at the same address."""
    study = Study(folder, cluster, seeds, seconds)
    draw = random.Random(8)
    done = 0
    for _ in range(kills):
        if not study.wait_for(len(study.begun()) + 2):
            break
        time.sleep(draw.random())
        cluster.kill(cluster.head)
        time.sleep(draw.random())
        cluster.start_head(cpus=2)
        done += 1
    study.end(600)
    return study, done


@pytest.fixture
def own_cluster(no_token):
    pytest.importorskip("ray", reason="Ray is not installed: make test-engines installs it")
    from ray_clusters import Clusters

    made = []

    def make(cpus):
        made.append(Clusters(cpus))
        return made[-1]

    yield make
    for cluster in made:
        cluster.close()


def test_a_killed_node_loses_and_doubles_nothing(tmp_path, own_cluster):
    study, kills = killed_nodes(tmp_path, own_cluster(1), 2, 20, 1.0, replaced=False)
    assert kills == 2
    assert any(not record.results for record in study.check()), "no run was lost: the kills hit nothing"
    assert study.trainings_left() == []


def test_a_killed_head_that_comes_back_loses_and_doubles_nothing(tmp_path, own_cluster):
    study, kills = killed_heads(tmp_path, own_cluster(2), 1, 8, 0.8)
    assert kills == 1
    study.check()
    assert "the connection to the Ray cluster was lost" in study.output
    assert study.trainings_left() == []


def test_a_node_that_joins_and_can_begin_nothing_ends_no_study(tmp_path, own_cluster, monkeypatch):
    cluster = own_cluster(1)
    held = tmp_path / "held"
    held.touch()  # trainings end when the new node was asked: on a busy machine they would be over before it has joined
    study = Study(tmp_path, cluster, 16, 0.1)
    assert study.wait_for(1)
    (tmp_path / "path" / "isorun").mkdir(parents=True)
    (tmp_path / "path" / "isorun" / "__init__.py").write_text("raise ImportError('not here')\n")
    with monkeypatch.context() as patched:
        patched.setenv("PYTHONPATH", str(tmp_path / "path"))
        cluster.add_node(cpus=2)
    until = time.monotonic() + 120
    while all(record.state is not RunState.INTERRUPTED for record in study.records()):
        assert time.monotonic() < until, "the node was never asked to do anything"
        time.sleep(0.2)
    held.unlink()
    study.end()
    refused = [record for record in study.check() if record.state is RunState.INTERRUPTED]
    assert all("has no isorun" in record.reason for record in refused)
    assert len(refused) <= 8, "it was asked again and again"


def carried_out(tmp_path, kills, killed):
    """Study after study, until so many were killed: on a busy machine one is over sooner. Each is as it should be."""
    done, lost = 0, 0
    while done < kills:
        folder = tmp_path / f"study-{done}"
        folder.mkdir()
        study, more = killed(folder, kills - done)
        done += more
        lost += sum(record.state is not RunState.FINISHED for record in study.check())
        assert study.trainings_left() == []
    print(f"\n{done} kills, {lost} runs lost and made again")


@pytest.mark.slow
@pytest.mark.chaos
def test_fifty_killed_nodes(tmp_path, own_cluster):
    cluster = own_cluster(1)
    carried_out(tmp_path, 50, lambda folder, kills: killed_nodes(folder, cluster, kills, 200, 1.0, replaced=True))


@pytest.mark.slow
@pytest.mark.chaos
def test_fifty_killed_heads(tmp_path, own_cluster):
    cluster = own_cluster(2)
    carried_out(tmp_path, 50, lambda folder, kills: killed_heads(folder, cluster, kills, 100, 1.0))
