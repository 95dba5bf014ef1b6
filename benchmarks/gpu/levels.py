"""Do `deterministic` runs end with the same weights on a GPU, whatever the training sets itself?

    python benchmarks/gpu/levels.py [--runs 4] [--epochs 2] [--images 5000] [--levels deterministic fixed-seed default]

Trains a small residual network the way airbench does (half precision, channels last, label smoothing, random flips and
crops on the device) with its `torch.backends.cudnn.benchmark = True`, and once without that line, several times at each
level, each in a process of its own under the worker. Prints one JSON object: for each script and level the digests of
the initial and final weights, how many different ones there were, what the worker answered, and what it saw open.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from isorun.execution.worker_events import read_run_folder
from isorun.worker.levels import hooked_python_path, level_environment, seed_environment

_SEED: Final = 1
_SETTING: Final = "torch.backends.cudnn.benchmark = True"

_TRAINING: Final = """
import sys
import torch
from torch import nn
import torch.nn.functional as F

SETTING
epochs, amount = int(sys.argv[1]), int(sys.argv[2])
device = "cuda" if torch.cuda.is_available() else "cpu"
half = torch.float16 if device == "cuda" else torch.float32
images = torch.randn(amount, 3, 32, 32, device=device).to(half).to(memory_format=torch.channels_last)
labels = torch.randint(0, 10, (amount,), device=device)


def block(inner, outer):
    return nn.Sequential(nn.Conv2d(inner, outer, 3, padding="same", bias=False), nn.MaxPool2d(2), nn.BatchNorm2d(outer),
                         nn.GELU(), nn.Conv2d(outer, outer, 3, padding="same", bias=False), nn.BatchNorm2d(outer),
                         nn.GELU())


def augmented(batch):
    flips = (torch.rand(len(batch), device=batch.device) < 0.5).view(-1, 1, 1, 1)
    batch = torch.where(flips, batch.flip(-1), batch)
    padded = F.pad(batch, (2,) * 4, "reflect")
    x, y = torch.randint(0, 5, (2,)).tolist()
    return padded[:, :, x:x + 32, y:y + 32].contiguous(memory_format=torch.channels_last)


model = nn.Sequential(nn.Conv2d(3, 24, 2), nn.GELU(), block(24, 64), block(64, 256), block(256, 256),
                      nn.MaxPool2d(3), nn.Flatten(), nn.Linear(256, 10, bias=False))
model = model.to(device).to(half).to(memory_format=torch.channels_last)
for part in model.modules():
    if isinstance(part, nn.BatchNorm2d):
        part.float()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.85, nesterov=True, weight_decay=1e-3)
for epoch in range(epochs):
    order = torch.randperm(len(images), device=device)
    for start in range(0, amount, 500):
        chosen = order[start:start + 500]
        loss = F.cross_entropy(model(augmented(images[chosen])).float(), labels[chosen], label_smoothing=0.2)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
print("loss:", loss.item(), "on", device)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--levels", nargs="+", default=["deterministic", "fixed-seed"])
    asked = parser.parse_args()
    scripts = {"with cudnn.benchmark": _SETTING, "without": "pass"}
    found = {
        name: {level: _runs(_TRAINING.replace("SETTING", setting), level, asked) for level in asked.levels}
        for name, setting in scripts.items()
    }
    print(json.dumps(found, indent=1))


def _runs(training: str, level: str, asked: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        script = Path(name) / "train.py"
        script.write_text(training, encoding="utf-8")
        logs = [_run(script, Path(name) / str(number), level, asked) for number in range(asked.runs)]
    digests = {which: [log["digests"].get(f"weights.{which}") for log in logs] for which in ("initial", "final")}
    return {
        "distinct": {which: len(set(values)) for which, values in digests.items()},
        "digests": digests,
        "printed": [log["printed"] for log in logs],
        "notes": sorted({note for log in logs for note in log["notes"]}),
        "open": sorted({item for log in logs for item in log["open"]}),
    }


def _run(script: Path, folder: Path, level: str, asked: argparse.Namespace) -> dict[str, Any]:
    folder.mkdir()
    base = {name: value for name, value in os.environ.items() if not name.startswith("ISORUN_")}
    seed = None if level == "default" else _SEED
    env = {
        **base,
        **level_environment(level, seed, os.cpu_count(), base),
        **seed_environment(_SEED, take_seeds=False),
        "PYTHONPATH": hooked_python_path(base),
        "ISORUN_RUN_DIR": str(folder),
    }
    done = subprocess.run(
        [sys.executable, str(script), str(asked.epochs), str(asked.images)],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr[-3000:])
    log = read_run_folder(folder)
    return {
        "digests": log.digests,
        "printed": done.stdout.strip(),
        "notes": [f"{note.code}: {note.message.replace(str(script.parent), '…')}" for note in log.notes],
        "open": log.effective.get("open", []),
    }


if __name__ == "__main__":
    main()
