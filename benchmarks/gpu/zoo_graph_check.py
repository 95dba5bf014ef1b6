"""On a GPU: does the captured step train bit by bit as the same step without a graph, and does it repeat itself?

`python benchmarks/gpu/zoo_graph_check.py`, with isorun on the path. Deterministic kernels are asked for, so every
difference would be the graph's: a warm-up that trained, a mask drawn twice, a learning rate that was not seen.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from typing import Final

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch

from isorun.zoo.studies.ase20.train import prepared
from isorun.zoo.studies.ase20.training.options import parsed

_CASES: Final = (
    ("lenet1", "mnist", 1000, 0),
    ("lenet5", "mnist", 1000, 0),
    ("resnet38", "cifar10", 200, 0),
    ("resnet56", "cifar10", 200, 0),
    ("wrn-28-10", "cifar100", 200, 32),
)


def trained(network: str, data: str, images: int, batch: int, *words: str) -> tuple[str, list[str]]:
    """A hash of the weights and running means after three epochs, and what the training had to note."""
    common = ["--network", network, "--data", data, "--made-data", "--device", "cuda", "--seed", "7"]
    sizes = ["--train-images", str(images), "--test-images", "100", "--batch", str(batch), "--epochs", "3"]
    model, _, training = prepared(parsed([*common, *sizes, *words]))
    for found in training.epochs():
        last = found
    state = [tensor for _, tensor in sorted(model.state_dict().items())]
    digest = hashlib.sha256(b"".join(tensor.detach().cpu().numpy().tobytes() for tensor in state)).hexdigest()
    return f"{digest[:16]} loss {last.train_loss:.6f}", training.notes


def main() -> int:
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.deterministic = True
    wrong = 0
    for case in _CASES:
        began = time.perf_counter()
        graph, notes = trained(*case)
        again, _ = trained(*case)
        eager, _ = trained(*case, "--no-graph")
        ok = graph == again == eager and not notes
        wrong += not ok
        print(f"{'ok' if ok else 'WRONG'} {case[0]}: graph {graph}, again {again}, without {eager} {notes}", end="")
        print(f" ({time.perf_counter() - began:.1f} s)", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
