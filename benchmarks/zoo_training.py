"""Images a second of the zoo's networks, against the PyTorch loop an ordinary user writes, with the same network.

Each loop runs in a process of its own: ours inside isorun's worker (monitoring and logging as in a study), the plain
one without. An epoch is all of it: batches, augmentation, steps, evaluation, logging. The first does not count, of the
others the fastest does. On a CPU, seconds are processor time of one thread.
On a GPU: `python benchmarks/zoo_training.py --device cuda --json FILE`.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from loop_processes import best_rate, found_in_own_process

_GRAPH_TARGET: Final = 1.5
_TARGET: Final = 1.0
_EPOCHS: Final = 4


class _Size(NamedTuple):
    """How much a measured epoch has. batch: 0 for the recipe's own."""

    train: int
    test: int
    batch: int = 0


_SIZES: Final = {
    "cpu": {"lenet": _Size(2048, 200), "resnet": _Size(64, 16), "wrn": _Size(8, 4, 8)},
    "cuda": {"lenet": _Size(60_000, 10_000), "resnet": _Size(6_400, 1_000), "wrn": _Size(2_560, 500)},
}
_DATA: Final = {"lenet": "mnist", "resnet": "cifar10", "wrn": "cifar100"}
NETWORKS: Final = ("lenet1", "lenet4", "lenet5", "resnet38", "resnet56", "wrn-28-10")


def measure(device: str = "cpu", networks: Sequence[str] = NETWORKS, extra: Sequence[str] = ()) -> list[dict[str, Any]]:
    return [_row(network, device, extra) for network in networks]


def _row(network: str, device: str, extra: Sequence[str]) -> dict[str, Any]:
    ours = _in_own_process("ours", network, device, extra)
    plain = _in_own_process("plain", network, device, ())
    if device == "cpu":  # cores are shared with other work: a second time, and the better of both
        ours = max(ours, _in_own_process("ours", network, device, extra), key=_rate)
        plain = max(plain, _in_own_process("plain", network, device, ()), key=_rate)
    ratio = _rate(ours) / _rate(plain)
    target = _GRAPH_TARGET if device == "cuda" and network.startswith("lenet") else _TARGET
    notes = f"; {'; '.join(ours['notes'])}" if ours["notes"] else ""
    size = f"{ours['images']:,} images in batches of {ours['batch']}"
    return {
        "name": f"images a second, {network} on {ours['device']}, against a plain PyTorch loop",
        "measured": ratio,
        "target": target,
        "unit": "times as many, at least",
        "ok": ratio >= target,
        "detail": f"{size}: plain {_rate(plain):,.0f} a second, ours {_rate(ours):,.0f}{notes}",
        "ours": ours,
        "plain": plain,
    }


def _rate(found: dict[str, Any]) -> float:
    return best_rate(found, "images")


def _in_own_process(loop: str, network: str, device: str, extra: Sequence[str]) -> dict[str, Any]:
    words = ["--loop", loop, "--networks", network, "--device", device, *extra]
    return found_in_own_process(__file__, words, monitored=loop == "ours", one_thread=device == "cpu")


def _measured_here(loop: str, network: str, device: str, extra: Sequence[str]) -> dict[str, Any]:
    """One loop, in this process."""
    import torch

    from isorun.zoo.studies.ase20.train import prepared
    from isorun.zoo.studies.ase20.training.options import parsed

    family = network.rstrip("0123456789").partition("-")[0]
    size = _SIZES[device][family]
    words = ["--network", network, "--data", _DATA[family], "--made-data", "--device", device, "--seed", "1"]
    words += ["--train-images", str(size.train), "--test-images", str(size.test), "--batch", str(size.batch)]
    options = parsed([*words, "--epochs", str(_EPOCHS), *extra])
    began = time.perf_counter()
    if loop == "plain":
        epoch, notes = _plain_loop(options), []
    else:
        _, _, training = prepared(options)
        epoch, notes = _own_loop(training), training.notes
    made = time.perf_counter() - began
    # With one thread, processor time is what the loop takes on a machine that others use, too.
    clock = time.perf_counter if device == "cuda" else time.process_time
    seconds = [_timed(epoch, number, clock) for number in range(_EPOCHS)]
    where = torch.cuda.get_device_name() if device == "cuda" else "a CPU core"
    from isorun.zoo.studies.ase20.training.recipes import RECIPES

    batch = size.batch or RECIPES[network].batch
    told = {"device": where, "torch": torch.__version__, "images": size.train, "batch": batch, "notes": notes}
    return {**told, "loop": loop, "network": network, "made": made, "first": seconds[0], "seconds": seconds[1:]}


def _timed(epoch: Callable[[int], None], number: int, clock: Callable[[], float]) -> float:
    """Both loops end an epoch with numbers on the host, so the device has finished, too."""
    began = clock()
    epoch(number)
    return clock() - began


def _own_loop(training: Any) -> Callable[[int], None]:
    import isorun

    def epoch(number: int) -> None:
        found = training.train_epoch(number)
        isorun.log(
            epoch=number,
            train_loss=found.train_loss,
            val_loss=found.val_loss,
            val_accuracy=found.val_accuracy,
            test_accuracy=found.test_accuracy,
            per_class={"test_accuracy": found.class_accuracy},
        )

    return epoch


def _plain_loop(options: Any) -> Callable[[int], None]:
    """The usual loop: a DataLoader that shuffles, batches moved to the device, five lines a step."""
    import torch
    from torch.nn import functional
    from torch.utils.data import DataLoader, TensorDataset

    from isorun.zoo.data.made import made_images
    from isorun.zoo.studies.ase20.training.recipes import RECIPES

    recipe = RECIPES[options.network]
    images = made_images(options.data, train=options.train_images, test=options.test_images)
    train = TensorDataset(torch.from_numpy(images.train_images), torch.from_numpy(images.train_labels))
    test = TensorDataset(torch.from_numpy(images.test_images), torch.from_numpy(images.test_labels))
    pinned = options.device == "cuda"
    loader = DataLoader(train, batch_size=options.batch or recipe.batch, shuffle=True, pin_memory=pinned)
    test_loader = DataLoader(test, batch_size=recipe.judged_at_once, pin_memory=pinned)
    network = _plain_network(options, len(images.classes))
    if recipe.optimizer == "adam":
        optimizer = torch.optim.Adam(network.parameters(), lr=recipe.learning_rate)
    else:
        optimizer = torch.optim.SGD(
            network.parameters(), recipe.learning_rate, recipe.momentum, 0, recipe.weight_decay, recipe.nesterov
        )
    transformed = _plain_transforms(options, recipe, train.tensors[0])

    def epoch(_number: int) -> None:
        network.train()
        total = 0.0
        for batch, labels in loader:
            inputs, targets = transformed(batch.to(options.device), moving=True), labels.to(options.device)
            optimizer.zero_grad()
            loss = functional.cross_entropy(network(inputs), targets)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(labels)
        network.eval()
        right = 0
        with torch.no_grad():
            for batch, labels in test_loader:
                scores = network(transformed(batch.to(options.device), moving=False))
                right += (scores.argmax(1) == labels.to(options.device)).sum().item()

    return epoch


def _plain_network(options: Any, classes: int) -> Any:
    """The same network with torch's own dropout."""
    import torch

    from isorun.zoo.models.resnet import GeneratorDropout
    from isorun.zoo.studies.ase20.training.networks import factor_seeds, made_generators, made_network

    generators = made_generators(factor_seeds(options.seed), options.device)
    network = made_network(options.network, classes, generators, options.device, channels_last=False)
    for layer in list(network.modules()):
        for name, child in layer.named_children():
            if isinstance(child, GeneratorDropout):
                setattr(layer, name, torch.nn.Dropout(child.rate))
    return network


def _plain_transforms(options: Any, recipe: Any, train_images: Any) -> Callable[..., Any]:
    """Shifts and mirroring a batch at a time, then normalisation, on the device."""
    import torch

    from isorun.zoo.studies.ase20.training.images import drawn_moves, made_preparation

    on_host = made_preparation(recipe.normalisation, train_images, recipe.moves, channels_last=False)
    mean, scale = on_host.mean.to(options.device), on_host.scale.to(options.device)
    preparation = dataclasses.replace(on_host, mean=mean, scale=scale)

    def transformed(batch: Any, *, moving: bool) -> Any:
        if not moving or recipe.moves is None:
            return preparation.as_they_are(batch)
        drawn = drawn_moves(recipe.moves, len(batch), batch.shape[1], None).to(options.device)
        return preparation.training_batch(batch, torch.arange(len(batch), device=options.device), drawn)

    return transformed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=NETWORKS)
    parser.add_argument("--json", type=Path, help="write the rows there, too")
    parser.add_argument("--loop", choices=("ours", "plain"), help="measure this loop alone, in this process")
    options, extra = parser.parse_known_args()
    if options.loop:
        print(json.dumps(_measured_here(options.loop, options.networks[0], options.device, extra)))
        return
    rows = []
    for network in options.networks:
        rows += measure(options.device, [network], extra)
        print(f"{'ok  ' if rows[-1]['ok'] else 'MISS'} {rows[-1]['measured']:.2f} {rows[-1]['name']}", flush=True)
        print(f"     {rows[-1]['detail']}", flush=True)
        if options.json:
            options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
