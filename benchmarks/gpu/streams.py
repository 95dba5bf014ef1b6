"""Does one random stream follow the seed while all others stay, and what does parting them cost? On a GPU or a CPU.

    python benchmarks/gpu/streams.py [--device cuda] [--seeds 2 3] [--epochs 2] [--images 2000] [--pairs 5]
        [--at-once 6]

Trains a small network with dropout on the device, with augmentation there and an order that is drawn there, under the
worker at level `deterministic`, with each stream following the seed alone. Prints two lines of JSON: by stream what
changed against `none` (right: that stream alone and final weights), draws by stream, whether two runs with one seed
end with the same weights, and the time of the training loop with streams parted by that without, in interleaved pairs
(wall time on a GPU, CPU time otherwise).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from isorun.execution.worker_events import read_run_folder
from isorun.worker.levels import hooked_python_path, level_environment, seed_environment

_KEPT: Final = 1
_STREAMS: Final = ("weights", "order", "dropout", "augmentation", "other")

_TRAINING: Final = """
import hashlib, json, sys, time
import torch
from torch import nn
import torch.nn.functional as F

device, epochs, amount = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
torch.manual_seed(0)
images = (torch.arange(amount * 3 * 32 * 32, device=device) % 251 / 251).reshape(amount, 3, 32, 32)
labels = torch.arange(amount, device=device) % 10


def augmented(batch):
    flips = torch.rand(len(batch), device=batch.device) < 0.5
    drawn.append(flips)
    x, y = torch.randint(0, 5, (2,)).tolist()
    batch = torch.where(flips.view(-1, 1, 1, 1), batch.flip(-1), batch)
    return F.pad(batch, (2,) * 4, "reflect")[:, :, x:x + 32, y:y + 32]


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3), nn.ReLU(),
                                    nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 36, 64), nn.ReLU())
        self.dropout, self.out = nn.Dropout(0.5), nn.Linear(64, 10)

    def forward(self, x):
        x = self.dropout(self.layers(x))
        masks.append(self.dropout(torch.ones(8, device=x.device)))
        return self.out(x)


def sha(tensors):
    return hashlib.sha256(b"".join(t.detach().cpu().numpy().tobytes() for t in tensors)).hexdigest()[:12]


orders, masks, drawn = [], [], []
with torch.device(device):
    model = Network()
found = {"weights": sha(model.parameters())}
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
began, busy = time.perf_counter(), time.process_time()
for epoch in range(epochs):
    order = torch.randperm(amount, device=device)
    orders.append(order)
    for start in range(0, amount, 64):
        chosen = order[start:start + 64]
        loss = F.cross_entropy(model(augmented(images[chosen])), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
loss.item()
seconds = time.perf_counter() - began if device != "cpu" else time.process_time() - busy
found.update(order=sha(orders), dropout=sha(masks), augmentation=sha(drawn))
found["other"] = torch.randint(0, 10**9, (1,), device=device).item()
print(json.dumps({**found, "final": sha(model.parameters()), "seconds": seconds}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seeds", type=int, nargs="+", default=[2, 3])
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--at-once", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "train.py").write_text(_TRAINING, encoding="utf-8")
        # Told as it is known: a machine that is lent for minutes may be gone before the end.
        print(json.dumps({"exact": _exact(folder, asked)}), flush=True)
        print(json.dumps({"cost": _cost(folder, asked)}), flush=True)


def _exact(folder: Path, asked: argparse.Namespace) -> dict[str, Any]:
    """What each stream alone changes, and whether a run comes out the same again; several at a time."""
    first = asked.seeds[0]
    with ThreadPoolExecutor(asked.at_once) as pool:
        kept = pool.submit(_run, folder, "none", first, asked)
        runs = {
            stream: [pool.submit(_run, folder, stream, seed, asked) for seed in (*asked.seeds, first)]
            for stream in ("none", *_STREAMS, "all")
        }
        return {stream: _told(kept.result()[0], [run.result() for run in made]) for stream, made in runs.items()}


def _told(kept: dict[str, Any], runs: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> dict[str, Any]:
    *seeds, (again, _) = runs
    return {
        "changed": [sorted(key for key in kept if key != "seconds" and run[key] != kept[key]) for run, _ in seeds],
        "same_again": again["final"] == runs[0][0]["final"],
        "draws": runs[0][1].get("draws"),
        "out_of_sight": runs[0][1].get("out_of_sight"),
    }


def _cost(folder: Path, asked: argparse.Namespace) -> dict[str, Any]:
    pairs = [
        [_run(folder, stream, asked.seeds[0], asked)[0]["seconds"] for stream in ("", "none")]
        for _ in range(asked.pairs)
    ]
    ratios = [parted / plain for plain, parted in pairs]
    return {"ratio_median": statistics.median(ratios), "ratios": ratios, "pairs": pairs} if ratios else {}


def _run(folder: Path, streams: str, seed: int, asked: argparse.Namespace) -> tuple[dict[str, Any], dict[str, Any]]:
    run = Path(tempfile.mkdtemp(dir=folder))
    base = {name: value for name, value in os.environ.items() if not name.startswith("ISORUN_")}
    env = {
        **base,
        **level_environment("deterministic", _KEPT, 1, base),
        **seed_environment(seed, take_seeds=False),
        **({"ISORUN_SWITCHES": f"streams={streams}"} if streams else {}),
        "PYTHONPATH": hooked_python_path(base),
        "ISORUN_RUN_DIR": str(run),
    }
    words = [sys.executable, str(folder / "train.py"), asked.device, str(asked.epochs), str(asked.images)]
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr[-3000:])
    return json.loads(done.stdout), read_run_folder(run).effective.get("streams") or {}


if __name__ == "__main__":
    main()
