"""Trainings of several processes: one record, every rank in it."""

import types

import pytest

import isorun
from isorun.analysis.environments import difference_of
from isorun.execution.worker_events import read_run_folder
from isorun.study.design import Study
from isorun.worker import ranks, recorder
from isorun.worker.recorder import Recorder

DDP = """
    import torch, torch.distributed as dist, isorun
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

    dist.init_process_group("gloo")
    drawn = torch.Generator().manual_seed(0)
    x = torch.randn(64, 4, generator=drawn)
    data = TensorDataset(x, (x[:, :1] > 0).float())
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for inputs, targets in DataLoader(data, 8, sampler=DistributedSampler(data, shuffle=False), num_workers=1):
            loss = torch.nn.functional.binary_cross_entropy_with_logits(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        isorun.log(epoch=epoch, loss=loss)
    if dist.get_rank() == 0:
        isorun.result(test_acc=((model.module(x) > 0) == (x[:, :1] > 0)).float().mean())
    dist.destroy_process_group()
"""
TORCHRUN = ("-m", "torch.distributed.run", "--standalone")


def joining(rank, size):
    """A module through which this process joins others, as torch's does."""
    module = types.ModuleType("torch.distributed.distributed_c10d")
    module.init_process_group = lambda *words: words
    module.get_rank, module.get_world_size, module.get_backend = (lambda: rank), (lambda: size), (lambda: "gloo")
    ranks.follow(module)
    return module


def joined(folder, monkeypatch, rank, size, *, logs=None):
    one = Recorder(folder)
    monkeypatch.setattr(recorder, "_active", one)
    assert joining(rank, size).init_process_group("gloo") == ("gloo",)
    if logs:
        one.log(epoch=0, **logs)
    one.finish({"kind": "end", "t": 0, "closing": 0})


def test_every_rank_that_joins_is_in_the_environment_and_the_first_one_s_values_count(tmp_path, monkeypatch):
    joined(tmp_path, monkeypatch, 1, 2, logs={"loss": 5.0})
    joined(tmp_path, monkeypatch, 0, 2, logs={"loss": 4.0})
    log = read_run_folder(tmp_path)
    assert list(log.series["loss"].values) == [4.0]
    told = log.effective["ranks"]
    assert (told["world_size"], told["backend"], [one["rank"] for one in told["each"]]) == (2, "gloo", [0, 1])
    [note] = log.notes
    assert (note.code, note.message) == ("ranks-logged", "several ranks logged loss; kept are the values of rank 0")


def test_a_rank_that_told_nothing_is_missed(tmp_path, monkeypatch):
    joined(tmp_path, monkeypatch, 0, 3, logs={"loss": 4.0})
    [note] = read_run_folder(tmp_path).notes
    assert note.code == "ranks-missing"
    assert note.message == "1 of 3 ranks told of themselves; not those of 1, 2"


def test_a_process_that_is_alone_joins_nobody(tmp_path, monkeypatch):
    joined(tmp_path, monkeypatch, 0, 1)
    assert "ranks" not in read_run_folder(tmp_path).effective
    assert not list(tmp_path.glob("events*"))


def test_a_later_rank_that_only_joined_tells_no_more_than_that(tmp_path, monkeypatch):
    one = Recorder(tmp_path)
    monkeypatch.setattr(recorder, "_active", one)
    joining(1, 2).init_process_group()
    assert one.only_joined
    one.log(epoch=0, loss=1.0)
    assert not one.only_joined


@pytest.mark.slow
def test_torchrun_gives_one_record_with_both_ranks(trained):
    record = trained(DDP, "torch", launch=(*TORCHRUN, "--nproc-per-node=2"))
    told = record.environment["effective"]["ranks"]
    assert (told["world_size"], [one["local_rank"] for one in told["each"]]) == (2, [0, 1])
    assert list(record.series["loss"].steps) == [0.0, 1.0]
    assert "weights.final" in record.digests
    assert [note.code for note in record.notes] == ["ranks-logged"]
    alone = trained(DDP, "torch", launch=(*TORCHRUN, "--nproc-per-node=1"))
    differing = {item.what: (item.first, item.second) for item in difference_of(alone, record).differences}
    assert differing["ranks.world_size"] == (None, "2")


@pytest.mark.slow
def test_the_world_size_is_a_factor_of_a_study(tmp_path):
    import sys
    import textwrap

    (tmp_path / "train.py").write_text(textwrap.dedent(DDP))
    study = Study(
        "sizes",
        approaches={"linear": [sys.executable, *TORCHRUN, "train.py"]},
        factors={"world_size": {"variable": "PET_NPROC_PER_NODE", "values": ["1", "2"]}},
        levels=["fixed-seed"],
        seeds=[1, 2],
        metrics={"test_acc": {"direction": "higher"}},
        folder=tmp_path,
    )
    outcome = isorun.run(study, store=tmp_path / "store")
    sizes = {
        record.cell.environment: record.environment["effective"].get("ranks", {}).get("world_size", 1)
        for record in outcome.records
    }
    assert sizes == {"baseline": 1, "world_size=2": 2}
    effects = isorun.factors(study, store=tmp_path / "store")
    assert [(effect.factor, effect.value) for effect in effects.effects] == [("world_size", "2")]
