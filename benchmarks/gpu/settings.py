"""Do public scripts end the same at `deterministic`, whatever they set themselves, and is it told what they set?

    python benchmarks/gpu/settings.py [--runs 3] [--steps 40] [--device cuda] [--only NAME ...]

Scripts are taken from `gpu-data/settings/OWNER+NAME/`, which is not part of this repository: checkouts of the public
repositories in the table below, unchanged (`git archive HEAD | tar -x -C gpu-data/settings/OWNER+NAME`). Data is made
where a script wants some. Each script is run several times under the worker, each in a process of its own, and ended
after so many steps of an optimizer. Prints one JSON object: for each script what it sets, what was answered and told
(with file and line), how many different final weights there were, and what the worker saw open.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from isorun.execution.worker_events import read_run_folder
from isorun.worker import levels

_FOLDER: Final = Path("gpu-data") / "settings"
_SEED: Final = 1
_IMAGES: Final = 2000


class Script(NamedTuple):
    """A public script: where it is, what is typed after it, what it sets, and what makes the data it wants.

    words: `{device}` stands for the device. needs_gpu: it cannot be told to use the CPU. imports_own: it imports
    packages of its repository, which lie beside its folder.
    """

    repository: str
    path: str
    words: str
    sets: str
    make: Callable[[Path], None] | None = None
    needs_gpu: bool = False
    imports_own: bool = False


def _tokens(folder: Path) -> None:
    import numpy as np

    (folder / "data" / "made").mkdir(parents=True, exist_ok=True)
    drawn = np.random.default_rng(0)
    for name, amount in (("train", 200_000), ("val", 20_000)):
        drawn.integers(0, 64, amount).astype(np.uint16).tofile(folder / "data" / "made" / f"{name}.bin")


def _cifar_tensors(folder: Path) -> None:
    import torch

    (folder / "cifar10").mkdir(exist_ok=True)
    drawn = torch.Generator().manual_seed(0)
    for name, amount in (("train", 50_000), ("test", 10_000)):
        images = torch.randint(0, 256, (amount, 32, 32, 3), generator=drawn, dtype=torch.uint8)
        labels = torch.randint(0, 10, (amount,), generator=drawn)
        torch.save(
            {"images": images, "labels": labels, "classes": list("abcdefghij")}, folder / "cifar10" / f"{name}.pt"
        )


def _picture_folders(folder: Path) -> None:
    import numpy as np
    from PIL import Image

    drawn = np.random.default_rng(0)
    for part in ("train", "val"):
        for number in range(_IMAGES // 20):
            path = folder / "made" / part / f"class{number % 6}" / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(drawn.integers(0, 256, (64, 64, 3), dtype=np.uint8)).save(path)


_SMALL_GPT: Final = "--dataset=made --compile=False --eval_iters=1 --n_layer=2 --n_head=2 --n_embd=64 --block_size=64"
SCRIPTS: Final = {
    "nanogpt": Script(
        "karpathy/nanoGPT",
        "train.py",
        f"{_SMALL_GPT} --batch_size=8 --gradient_accumulation_steps=1 --device={{device}}",
        "cuda.matmul.allow_tf32, cudnn.allow_tf32",
        _tokens,
    ),
    "airbench94": Script(
        "KellerJordan/cifar10-airbench",
        "legacy/airbench94.py",
        "",
        "cudnn.benchmark",
        _cifar_tensors,
        needs_gpu=True,
    ),
    "airbench94_muon": Script(
        "KellerJordan/cifar10-airbench", "airbench94_muon.py", "", "cudnn.benchmark", _cifar_tensors, needs_gpu=True
    ),
    "airbench96": Script(
        "KellerJordan/cifar10-airbench", "airbench96_faster.py", "", "cudnn.benchmark", _cifar_tensors, needs_gpu=True
    ),
    "pytorch-cifar": Script(
        "kuangliu/pytorch-cifar", "main.py", "", "cudnn.benchmark, on a GPU (wants CIFAR-10 in data/)"
    ),
    "dcgan": Script(
        "pytorch/examples",
        "dcgan/main.py",
        "--dataset fake --batchSize 16 --niter 1 --workers 0 --outf . {device}",
        "cudnn.benchmark",
    ),
    "imagenet": Script(
        "pytorch/examples",
        "imagenet/main.py",
        "--dummy --seed 1 -a resnet18 -b 32 --epochs 1 -j 0",
        "cudnn.deterministic and no benchmark: as the level has it",
        needs_gpu=True,
    ),
    "vision-classification": Script(
        "pytorch/vision",
        "references/classification/train.py",
        "--data-path made --model resnet18 -b 16 --epochs 1 -j 2 --output-dir out --device {device}",
        "cudnn.benchmark",
        _picture_folders,
    ),
    "timm": Script(
        "huggingface/pytorch-image-models",
        "train.py",
        "made --model resnet18 --num-classes 6 --img-size 64 -b 16 --epochs 1 --workers 2 --device {device}",
        "cuda.matmul.allow_tf32, cudnn.benchmark",
        _picture_folders,
    ),
    "cleanrl-ppo": Script(
        "vwxyzjn/cleanrl",
        "cleanrl/ppo.py",
        "--no-torch-deterministic --total-timesteps 2000 --num-envs 2",
        "cudnn.deterministic off",
    ),
    "cleanrl-dqn": Script(
        "vwxyzjn/cleanrl",
        "cleanrl/dqn.py",
        "--no-torch-deterministic --total-timesteps 2000 --learning-starts 100 --buffer-size 1000",
        "cudnn.deterministic off",
        imports_own=True,
    ),
}
# dcgan has a flag for a GPU; the others take the device's name.
_DEVICE_FLAGS: Final = {"dcgan": {"cuda": "--accel", "cpu": ""}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for one run")
    parser.add_argument("--only", nargs="+", choices=sorted(SCRIPTS), default=sorted(SCRIPTS))
    asked = parser.parse_args()
    found = {}
    for name in asked.only:
        found[name] = _tried(name, SCRIPTS[name], asked)
        print(name, json.dumps(found[name].get("distinct ends", found[name])), file=sys.stderr, flush=True)
    print(json.dumps(found, indent=1))


def _tried(name: str, script: Script, asked: argparse.Namespace) -> dict[str, Any]:
    checkout = _FOLDER / script.repository.replace("/", "+")
    if not (checkout / script.path).is_file():
        return {"left out": f"{checkout / script.path} is not there"}
    if script.needs_gpu and asked.device == "cpu":
        return {"left out": "it computes on a GPU only"}
    folder = checkout if script.make in (_tokens, None) else (checkout / script.path).parent
    if script.make is not None:
        script.make(folder)
    device = _DEVICE_FLAGS.get(name, {}).get(asked.device, asked.device)
    words = [str((checkout / script.path).resolve()), *script.words.format(device=device).split()]
    with tempfile.TemporaryDirectory() as kept:
        path = str(checkout.resolve()) if script.imports_own else ""
        logs = [_run(words, folder, Path(kept) / str(number), path, asked) for number in range(asked.runs)]
    ends = [log["end"] for log in logs]
    return {
        "sets": script.sets,
        "answered": sorted({note for log in logs for note in log["setting-answered"]}),
        "told": sorted({note for log in logs for note in log["setting-told"]}),
        "distinct ends": len(set(ends)) if all(ends) else f"no digest in {ends.count(None)} of {len(ends)} runs",
        "open": sorted({item for log in logs for item in log["open"]}),
        "failed": [log["failed"] for log in logs if log["failed"]][:1],
    }


def _run(words: list[str], cwd: Path, folder: Path, path: str, asked: argparse.Namespace) -> dict[str, Any]:
    folder.mkdir()
    base = {name: value for name, value in os.environ.items() if not name.startswith("ISORUN_")}
    base.update({"PYTHONPATH": path} if path else {})
    env = {
        **base,
        **levels.level_environment(levels.DETERMINISTIC, _SEED, os.cpu_count(), base),
        **levels.seed_environment(_SEED, take_seeds=False),
        **({"CUDA_VISIBLE_DEVICES": ""} if asked.device == "cpu" else {}),
        levels.STEPS: str(asked.steps),
        "PYTHONPATH": levels.hooked_python_path(base),
        "ISORUN_RUN_DIR": str(folder),
    }
    command = [sys.executable, *words]
    done = subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True, check=False, timeout=asked.timeout)
    log = read_run_folder(folder)
    notes = {
        code: [note.message.replace(f"{cwd.resolve()}/", "") for note in log.notes if note.code == code]
        for code in ("setting-answered", "setting-told")
    }
    failed = done.stderr[-1000:] if done.returncode else ""
    return {**notes, "end": log.digests.get("weights.final"), "open": log.effective.get("open", []), "failed": failed}


if __name__ == "__main__":
    main()
