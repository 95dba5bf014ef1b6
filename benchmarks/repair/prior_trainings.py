"""Real trainings from which priors are counted: what does each single change of a configuration bring?

    python benchmarks/repair/prior_trainings.py OUT [--minutes 15] [--processes 12] [--data fashion-mnist cifar10 …]

A walk begins at a configuration drawn from the space, trains it twice (the difference is seed noise), then trains
changes of one parameter each, drawn at random, goes on from the best of all if it is better, and so for some rounds. So
both hopeless and good configurations are changed. Every training is watched; a line of OUT/<process>.jsonl holds its
configuration, its epochs, its symptoms and its score. `build_priors.py` counts them.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from isorun.zoo.studies.dream.space import SPACE, Value

_ROUNDS: Final = 4
_CHANGES: Final = 10
_EPOCHS: Final = 6
_TRAIN, _JUDGED = 3000, 1500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--processes", type=int, default=12)
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--data", nargs="+", default=["fashion-mnist", "cifar10", "cifar100", "digits"])
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("spawn")
    end = time.time() + 60 * options.minutes
    workers = [context.Process(target=_work, args=(options, number, end)) for number in range(options.processes)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    lines = sum(len(path.read_text().splitlines()) for path in options.out.glob("*.jsonl"))
    print(json.dumps({"trainings": lines, "minutes": options.minutes, "processes": options.processes}))


def _work(options: argparse.Namespace, number: int, end: float) -> None:
    import torch

    from isorun.zoo.data.images import load_images
    from isorun.zoo.studies.dream.training import made_material
    from isorun.zoo.training import training_device

    torch.set_num_threads(1)
    place = training_device(options.device, "priors")
    generator = np.random.default_rng([options.seed, number])
    materials = {name: made_material(load_images(name), place, _TRAIN, _JUDGED) for name in options.data}
    with (options.out / f"{number}.jsonl").open("a", encoding="utf-8") as file:
        walk = 0
        while time.time() < end:
            name = options.data[int(generator.integers(len(options.data)))]
            for line in _walk(generator, materials[name], end):
                file.write(json.dumps({"walk": f"{number}-{walk}", "data": name, **line}) + "\n")
                file.flush()
            walk += 1


def _walk(generator: np.random.Generator, material: Any, end: float) -> Iterator[dict[str, Any]]:
    at: dict[str, Value] = {name: values[int(generator.integers(len(values)))] for name, values in SPACE.items()}
    best = yield from _trained(generator, material, at, 0, None)
    for rounds in range(_ROUNDS):
        yield from _trained(generator, material, at, rounds, None)  # the same again: seed noise
        found = []
        for _ in range(_CHANGES):
            if time.time() > end:
                return
            changed = _changed(generator, at)
            score = yield from _trained(generator, material, {**at, **changed}, rounds, next(iter(changed)))
            found.append((score, {**at, **changed}))
        score, config = max(found, key=lambda pair: pair[0])
        if score > best:
            best, at = score, config


def _changed(generator: np.random.Generator, at: dict[str, Value]) -> dict[str, Value]:
    name = list(SPACE)[int(generator.integers(len(SPACE)))]
    others = [value for value in SPACE[name] if value != at[name]]
    return {name: others[int(generator.integers(len(others)))]}


def _trained(
    generator: np.random.Generator, material: Any, config: dict[str, Value], rounds: int, changed: str | None
) -> Generator[dict[str, Any], None, float]:
    """Train and give the line; the score is what this returns."""
    import torch

    import isorun
    from isorun.diagnose import Trace, symptoms_of
    from isorun.zoo.studies.dream.training import SearchedTraining

    began, epochs, failed = time.monotonic(), [], ""
    watcher = None
    try:
        training = SearchedTraining(config, material, seed=int(generator.integers(2**31)), epochs=_EPOCHS)
        watcher = isorun.watch(training.network, every=16)
        for epoch in training.epochs():
            told = {"loss": epoch.loss, "accuracy": epoch.accuracy}
            epochs.append({**told, "val_loss": epoch.val_loss, "val_accuracy": epoch.val_accuracy})
            watcher.mark(epoch=epoch.epoch, **epochs[-1])
    except (RuntimeError, torch.OutOfMemoryError) as error:
        failed = str(error).partition("\n")[0]
    if watcher is not None:
        watcher.stop()
    score = max((row["val_accuracy"] for row in epochs), default=0.0)
    symptoms = None if watcher is None else symptoms_of(Trace.of_rows(watcher.rows, parameters=config))
    yield {
        "round": rounds,
        "changed": changed,
        "config": config,
        "epochs": [{name: round(value, 5) for name, value in row.items()} for row in epochs],
        "symptoms": None if symptoms is None else symptoms._asdict(),
        "score": round(score, 5),
        "seconds": round(time.monotonic() - began, 3),
        "failed": failed,
    }
    return score


if __name__ == "__main__":
    main()
