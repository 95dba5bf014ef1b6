"""Random streams of real torch trainings that know nothing of isorun: one follows the seed, the others stay exactly."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.slow

TRAINING = """
import argparse, hashlib, json, random
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int)
parser.add_argument("--workers", type=int, default=0)
parser.add_argument("--generator", action="store_true")
parser.add_argument("--seed-workers", action="store_true")
options = parser.parse_args()
if options.seed is not None:
    torch.manual_seed(options.seed)
    np.random.seed(options.seed)
    random.seed(options.seed)

class Images(Dataset):
    def __init__(self):
        self.rng = np.random.default_rng(0)
    def __len__(self):
        return 48
    def __getitem__(self, index):
        drawn = [random.random(), np.random.rand(), torch.rand(1).item(), float(self.rng.random())]
        if drawn[0] < 0.5:  # a number of draws that depends on draws
            drawn.append(random.gauss(0, 1))
            torch.randn(3)
        image = (torch.arange(64.0).reshape(1, 8, 8) * index) % 5 + sum(drawn)
        return index, image, torch.tensor(drawn[:4]), index % 10

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.drop, self.out = nn.Conv2d(1, 4, 3), nn.Dropout(0.5), nn.Linear(144, 10)
        self.scale = nn.Parameter(torch.randn(1))
    def forward(self, x):
        hidden = self.drop(torch.ones(len(x), 144))
        masks.append(hidden.clone())
        noise = torch.randn_like(hidden)  # in a forward pass: belongs to dropout
        masks.append(noise)
        return self.out(F.relu(self.conv(x)).flatten(1) * hidden + 0.01 * noise) * self.scale

def sha(tensors):
    return hashlib.sha256(b"".join(t.detach().numpy().tobytes() for t in tensors)).hexdigest()[:12]

def seed_worker(_):
    seed = torch.initial_seed() % 2**32
    np.random.seed(seed)
    random.seed(seed)

masks, order, drawn = [], [], []
model = Net()
found = {"weights": sha(model.parameters())}
optimizer = torch.optim.SGD(model.parameters(), 0.01)
own = torch.Generator().manual_seed(3) if options.generator else None
loader = DataLoader(Images(), batch_size=16, shuffle=True, num_workers=options.workers, generator=own,
                    worker_init_fn=seed_worker if options.seed_workers else None)
for _ in range(2):
    for index, x, numbers, y in loader:
        order.append(index)
        drawn.append(numbers)
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
found |= {"order": sha(order), "dropout": sha(masks), "augmentation": sha(drawn)}
found["other"] = torch.randint(0, 10**9, (1,)).item()
print(json.dumps({**found, "final": sha(model.parameters())}))
"""
EACH = ("weights", "order", "dropout", "augmentation", "other")


@pytest.fixture
def fit(train, tmp_path):
    """What a training with these streams drew, by stream, and what was recorded of it."""

    def run(follow, run_seed, *words, source=TRAINING, level="fixed-seed"):
        (tmp_path / "train.py").write_text(source)
        extra = {"ISORUN_SWITCHES": f"streams={follow}", "ISORUN_RUN_SEED": str(run_seed), "OMP_NUM_THREADS": "1"}
        done = train("train.py", *words, level=level, seed=None if level == "default" else 1, extra=extra)
        assert done.returncode == 0, done.stderr
        assert not (done.folder / "worker-error.txt").exists()
        return json.loads(done.stdout), done.of_kind("environment")[0]["effective"]

    return run


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--seed", "5", "--workers", "2"),
        ("--generator", "--workers", "2", "--seed-workers"),
    ],
    ids=["plain", "seeds itself, with workers", "own generator, seeds its workers"],
)
def test_each_stream_follows_the_seed_alone(fit, words):
    kept, told = fit("none", 2, *words)
    assert fit("none", 3, *words)[0] == kept
    assert told["switches"]["torch"]["streams"] == "none"
    for stream in EACH:
        found, told = fit(stream, 2, *words)
        assert [name for name in EACH if found[name] != kept[name]] == [stream], (stream, found, kept)
        assert (found["final"] != kept["final"]) == (stream != "other")
        assert told["switches"]["torch"]["streams"] == stream
        assert told["streams"]["follow"] == [stream]
        assert told["streams"]["out_of_sight"] == []
    every, told = fit("all", 2, *words)
    assert all(every[name] != kept[name] for name in EACH)
    assert fit("all", 1, *words)[0] == kept, "the kept seed gives the same whatever follows"
    drawn = told["streams"]["draws"]
    assert (drawn["weights"], drawn["dropout"]) == (5, 12)
    assert drawn["augmentation"] > 96 * 3, "workers count, too"
    (place,) = told["streams"]["unclassified"]
    assert place["where"].startswith("torch.randint at ")
    assert place["draws"] == drawn["other"] == 1


def test_a_random_split_is_seen_and_follows_other(fit):
    source = """
import json, torch
from torch.utils.data import random_split
print(json.dumps(sorted(random_split(range(200), [150, 50])[1].indices)))
"""
    first, told = fit("other", 2, source=source)
    assert first != fit("other", 3, source=source)[0]
    assert first == fit("all", 2, source=source)[0]
    assert fit("order", 2, source=source)[0] == fit("order", 3, source=source)[0]
    assert (told["streams"]["draws"]["other"], told["streams"]["out_of_sight"]) == (1, [])


def test_weights_are_told_by_where_they_lie_and_orders_by_their_loops(fit):
    source = """
import json, random, torch
emb = torch.nn.Embedding(5, 3)
emb.weight.data.uniform_()
w = torch.empty(3).normal_().requires_grad_()
rows = torch.randperm(100)
train, test = rows[:80], rows[80:]
orders = []
for epoch in range(2):
    orders.append(torch.randperm(80).tolist())
noise = torch.empty(15).normal_()
found = {"weights": [emb.weight.sum().item(), w.sum().item()], "order": orders}
print(json.dumps({**found, "other": [test.tolist(), noise.sum().item()]}))
"""
    for stream in ("weights", "order", "other"):
        (first, told), (second, _) = (fit(stream, seed, source=source) for seed in (2, 3))
        assert [name for name in first if first[name] != second[name]] == [stream]
        assert told["streams"]["draws"] == {"weights": 3, "order": 2, "dropout": 0, "augmentation": 0, "other": 2}


def test_at_the_level_default_what_is_kept_is_kept_too(fit):
    first, second = (fit("weights", seed, level="default")[0] for seed in (2, 3))
    assert [name for name in EACH if first[name] != second[name]] == ["weights"]


def test_a_stream_that_is_asked_for_and_draws_nothing_is_not_in_the_answer(fit):
    source = "import torch\nprint('{}')\ntorch.nn.Linear(2, 2)\n"
    _, told = fit("weights+dropout", 2, source=source)
    assert told["switches"]["torch"]["streams"] == "weights"


CHECKPOINTED = """
import json
import torch
from torch.utils.checkpoint import checkpoint

def gradient(reentrant):
    torch.manual_seed(0)
    layer = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Dropout(0.5), torch.nn.Linear(64, 1))
    x = torch.ones(8, 64, requires_grad=True)
    out = layer(x) if reentrant is None else checkpoint(layer, x, use_reentrant=reentrant)
    out.sum().backward()
    return x.grad

plain = gradient(None)
state = torch.get_rng_state()
first = torch.nn.functional.dropout(torch.ones(100))
torch.set_rng_state(state)
again = torch.nn.functional.dropout(torch.ones(100))
with torch.random.fork_rng():
    torch.rand(3)
lstm = torch.nn.LSTM(4, 4, num_layers=2, dropout=0.5)
lstm(torch.ones(3, 2, 4))
query = torch.ones(1, 2, 4, 8)
torch.nn.functional.scaled_dot_product_attention(query, query, query, dropout_p=0.5)
torch.nn.TransformerEncoderLayer(8, 2)(torch.ones(3, 2, 8))
scripted = torch.jit.script(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout()))
layers = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout())
compiled = torch.compile(layers, backend="eager", fullgraph=True)
compiled(torch.ones(2, 4))
print(json.dumps({
    "checkpointed": [torch.equal(plain, gradient(reentrant)) for reentrant in (True, False)],
    "restored": torch.equal(first, again),
    "scripted": tuple(scripted(torch.ones(2, 2)).shape) == (2, 2),
}))
"""


@pytest.mark.filterwarnings("ignore")
def test_checkpointed_layers_restored_states_and_compiled_code_work_as_ever(fit):
    found, told = fit("dropout", 2, source=CHECKPOINTED)
    assert found == {"checkpointed": [True, True], "restored": True, "scripted": True}
    assert told["streams"]["draws"]["dropout"] >= 8
