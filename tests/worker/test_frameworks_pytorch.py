"""torch trainings without a line of isorun: seeds, deterministic kernels and digests of the weights."""

from __future__ import annotations

import gc
import time
from weakref import ref

import pytest
import torch
from worker_trainings import read_run

from isorun.worker import recorder
from isorun.worker.arrays import digest
from isorun.worker.frameworks import base, pytorch
from isorun.worker.recorder import Recorder

CNN = """
import random, sys, hashlib
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

WORKERS = int(sys.argv[1]) if len(sys.argv) > 1 else 0

def fit():
    x, y = torch.randn(96, 1, 8, 8), torch.randint(0, 10, (96,))
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Dropout(0.2), nn.Linear(288, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    data = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True, num_workers=WORKERS)
    for _ in range(2):
        for a, b in data:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(a), b).backward()
            optimizer.step()
    sha = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters()))
    print(sha.hexdigest(), random.random(), np.random.rand(), torch.rand(1).item())

if __name__ == "__main__":
    fit()
"""


@pytest.mark.long
def test_a_training_is_seeded_and_digested_without_a_change_to_it(train, tmp_path):
    (tmp_path / "train.py").write_text(CNN)
    first = train("train.py", level="fixed-seed", seed=3)
    again = train("train.py", "2", level="fixed-seed", seed=3)
    other = train("train.py", level="deterministic", seed=4)
    assert first.returncode == 0, first.stderr
    assert first.stdout == again.stdout
    assert first.digest("weights.initial") == again.digest("weights.initial") != other.digest("weights.initial")
    assert first.digest("weights.final") == again.digest("weights.final") != other.digest("weights.final")
    assert first.digest("weights.initial") != first.digest("weights.final")
    assert first.of_kind("seeded") == []
    effective = other.of_kind("environment")[0]["effective"]
    assert effective["torch"]["deterministic_algorithms"]
    assert effective["torch"]["threads"] == 1
    assert effective["torch"]["cpu_capability"] in ("AVX2", "DEFAULT")
    assert not effective["torch"]["cudnn_benchmark"]
    assert any(library["name"] == "libtorch_cpu.so" for library in effective["libraries"])
    for trained in (first, again, other):
        assert [note for note in trained.of_kind("note") if note["code"] == "no-digest"] == []
        assert not (trained.folder / "worker-error.txt").exists()
        assert not trained.run.others


@pytest.mark.long
def test_a_seed_given_to_torch_is_told_and_nondeterministic_operations_are_noted(train, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        "import torch\n\ntorch.manual_seed(77)\n"
        "torch.zeros(4).put_(torch.tensor([0, 0]), torch.tensor([1.0, 2.0]))\nprint('done')\n"
    )
    trained = train(str(script), level="deterministic", seed=1)
    assert trained.stdout == "done\n", trained.stderr
    (seeded,) = trained.of_kind("seeded")
    assert (seeded["call"], seeded["value"], seeded["where"]) == ("torch.manual_seed", "77", f"{script}:3")
    (note,) = (note for note in trained.of_kind("note") if note["code"] != "no-digest")
    assert note["code"] == "nondeterministic-operation"
    assert "put_" in note["message"]


def watched(tmp_path) -> tuple[pytorch.TorchWatch, Recorder]:
    recording = Recorder(tmp_path)
    recording.begin()
    return pytorch.TorchWatch(torch, recording), recording


def optimizer(seed: int) -> torch.optim.Optimizer:
    torch.manual_seed(seed)
    return torch.optim.SGD(torch.nn.Linear(3, 2).parameters(), lr=0.1)


def names(tmp_path) -> list[str]:
    return [event["name"] for event in read_run(tmp_path).main if event["kind"] == "digest"]


def test_a_training_that_digests_by_itself_is_left_alone(tmp_path):
    watch, recording = watched(tmp_path)
    one = optimizer(0)
    watch._before_step(one, (), {})
    recording.result(acc=1, weights=[torch.ones(1)])
    watch.finish()
    assert names(tmp_path) == ["weights.initial", "weights.final"]


def test_two_optimizers_are_both_in_the_final_digest(tmp_path):
    watch, _ = watched(tmp_path)
    one, two = optimizer(0), optimizer(1)
    for step in (one, two, one, two):
        watch._before_step(step, (), {})
    watch.finish()
    assert names(tmp_path) == ["weights.initial", "weights.final"]
    (tmp_path / "b").mkdir()
    changed, _ = watched(tmp_path / "b")
    two.param_groups[0]["params"][0].data[0, 0] += 1
    for step in (one, two):
        changed._before_step(step, (), {})
    changed.finish()
    values = [
        [event["value"] for event in read_run(folder).main if event["kind"] == "digest"]
        for folder in (tmp_path, tmp_path / "b")
    ]
    assert values[0][0] == values[1][0]
    assert values[0][1] != values[1][1]


def final(folder) -> str:
    return next(event["value"] for event in read_run(folder).main if event.get("name") == "weights.final")


def test_optimizers_that_make_steps_in_turns_are_all_in_the_final_digest(tmp_path):
    for number in range(4):
        folder = tmp_path / str(number)
        folder.mkdir()
        watch, _ = watched(folder)
        all_three = [optimizer(seed) for seed in range(3)]
        for step in (*all_three, *all_three):
            watch._before_step(step, (), {})
        if number:
            all_three[number - 1].param_groups[0]["params"][0].data[0, 0] += 1
        watch.finish()
    assert len({final(tmp_path / str(number)) for number in range(4)}) == 4


def test_of_trainings_one_after_another_the_earlier_ones_are_in_the_final_digest_and_not_kept(tmp_path):
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        watch, _ = watched(folder)
        gone = []
        for seed in range(4):
            one = optimizer(seed)
            one.param_groups[0]["params"][0].data[0, 0] += number * (seed == 0)
            watch._before_step(one, (), {})
            gone.append(ref(one))
            del one
        gc.collect()
        assert [held() is None for held in gone] == [True, True, False, False]
        watch.finish()
    assert final(tmp_path / "0") != final(tmp_path / "1")


def test_an_optimizer_made_anew_for_the_same_weights_takes_no_digest_of_them(tmp_path, monkeypatch):
    watch, _ = watched(tmp_path)
    parameters = list(torch.nn.Linear(3, 2).parameters())
    monkeypatch.setattr(base, "digest_or_error", lambda _: pytest.fail("a digest was taken"))
    for _ in range(4):
        watch._before_step(torch.optim.SGD(parameters, lr=0.1), (), {})
    watch.finish()
    assert final(tmp_path) == digest([[parameters], [parameters]])


def test_what_had_no_digest_when_it_was_let_go_leaves_the_training_without_one(tmp_path):
    watch, _ = watched(tmp_path)
    freed = optimizer(0)
    freed.param_groups[0]["params"][0].data.untyped_storage().resize_(0)
    for step in (optimizer(1), freed, optimizer(2), optimizer(3)):
        watch._before_step(step, (), {})
    watch.finish()
    assert names(tmp_path) == ["weights.initial"]
    notes = [event for event in read_run(tmp_path).main if event["kind"] == "note"]
    assert "no memory of its own" in notes[0]["message"]


def test_weights_that_are_too_large_are_noted_instead(tmp_path, monkeypatch):
    monkeypatch.setattr(recorder, "MAX_DIGEST_BYTES", 10)
    watch, _ = watched(tmp_path)
    watch._before_step(optimizer(0), (), {})
    assert names(tmp_path) == []
    notes = [event["code"] for event in read_run(tmp_path).main if event["kind"] == "note"]
    assert notes == ["no-digest"]


def test_the_hook_costs_a_step_next_to_nothing(tmp_path):
    watch, _ = watched(tmp_path)
    one, two = optimizer(0), optimizer(1)
    watch._before_step(one, (), {})
    watch._before_step(two, (), {})
    best = min(_seconds_of_thousand_steps(watch, one) for _ in range(10))
    assert best / 1000 < 2e-6


def _seconds_of_thousand_steps(watch: pytorch.TorchWatch, one: torch.optim.Optimizer) -> float:
    began = time.perf_counter()
    for _ in range(1000):
        watch._before_step(one, (), {})
    return time.perf_counter() - began


@pytest.mark.slow
def test_a_compiled_training_step_is_digested_too(train, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        "import torch\nmodel = torch.nn.Linear(3, 2)\nsgd = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "step = torch.compile(sgd.step, backend='eager')\n"
        "for _ in range(3):\n    model(torch.ones(1, 3)).sum().backward()\n    step()\nprint('done')\n"
    )
    trained = train(str(script), level="fixed-seed", seed=1)
    assert trained.stdout == "done\n", trained.stderr
    assert not (trained.folder / "worker-error.txt").exists()
    assert {event["name"] for event in trained.of_kind("digest")} == {"weights.initial", "weights.final"}
