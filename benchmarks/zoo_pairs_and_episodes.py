"""Pairs and images a second of SM-CNN and the few-shot learners, against the PyTorch loops an ordinary user writes.

Each loop runs in a process of its own: ours inside isorun's worker (monitoring and logging as in a study), the plain
one without, with the same network and optimizer. An epoch is all of it: drawing, batches, steps, evaluation, logging,
keeping the best weights. The first does not count, of the others the fastest does. Seconds are processor time of one
thread. Few episodes are evaluated: ours embeds every image once for all of them, which would hide what a step takes.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from loop_processes import best_rate, found_in_own_process

_TARGET: Final = 1.0
_EPOCHS: Final = 6  # as many as SM-CNN's patience surely leaves it
_TURNS: Final = 2
_PAIRS: Final = {
    "SM-CNN, batches of 32 pairs": (32, "shuffled", 1024),
    "SM-CNN, one pair at a time": (1, "file", 256),
}
_FIVE_WAYS: Final = ("--ways", "5", "--shots", "5", "--queries", "5")
_EPISODES: Final = {
    "prototypical Conv-4, 5 ways": (8, ("--method", "prototypical", *_FIVE_WAYS)),
    "prototypical Conv-4, 20 ways in training": (3, ("--method", "prototypical", *_FIVE_WAYS, "--train-ways", "20")),
    "matching networks with full context embeddings, 5 ways": (8, ("--method", "matching", *_FIVE_WAYS)),
    # An auxiliary batch before every step, so that all rounds do equal work.
    "TADAM, 16 filters, 5 ways": (
        2,
        ("--method", "tadam", *_FIVE_WAYS, "--data", "cifar-fs", "--width", "16", "--aux-probability", "0.999999"),
    ),
}
LOOPS: Final = (*_PAIRS, *_EPISODES)


def measure(loops: Sequence[str] = LOOPS) -> list[dict[str, Any]]:
    return [_row(loop) for loop in loops]


def _row(loop: str) -> dict[str, Any]:
    what = "pairs" if loop in _PAIRS else "images"
    turns = [(_found("ours", loop), _found("plain", loop)) for _ in range(_TURNS)]
    ours, plain = (max(found, key=lambda one: best_rate(one, what)) for found in zip(*turns, strict=True))
    ratio = best_rate(ours, what) / best_rate(plain, what)
    return {
        "name": f"{what} a second, {loop}, on a CPU core, against a plain PyTorch loop",
        "measured": ratio,
        "target": _TARGET,
        "unit": "times as many, at least",
        "ok": ratio >= _TARGET,
        "detail": f"{ours[what]:,} {what} an epoch: plain {best_rate(plain, what):,.0f} a second, "
        f"ours {best_rate(ours, what):,.0f}",
        "ours": ours,
        "plain": plain,
    }


def _found(side: str, loop: str) -> dict[str, Any]:
    words = ("--side", side, "--loops", loop)
    return found_in_own_process(__file__, words, monitored=side == "ours", one_thread=True)


def _measured_here(side: str, loop: str) -> dict[str, Any]:
    """One loop, in this process."""
    import torch

    ended: list[float] = []
    measured = _pairs_measured if loop in _PAIRS else _images_measured
    told = measured(side, loop, lambda: ended.append(time.process_time()))
    seconds = [after - before for before, after in itertools.pairwise(ended)]
    return {**told, "side": side, "loop": loop, "torch": torch.__version__, "seconds": seconds}


def _pairs_measured(side: str, loop: str, ended: Callable[[], None]) -> dict[str, Any]:
    """Each epoch over the pairs, with `ended` after each."""
    import torch

    import isorun
    from isorun.zoo.studies.tacl18.training.loop import TrainedEpoch, train
    from isorun.zoo.studies.tacl18.training.options import Options
    from isorun.zoo.studies.tacl18.training.tensors import prepare
    from made_pairs import drawn_pairs, drawn_vectors
    from plain_pair_loop import plain_pair_epoch

    batch, order, pairs = _PAIRS[loop]
    settings = Options(seed=1, epochs=_EPOCHS, batch_size=batch, order=order)
    material = prepare(drawn_pairs(pairs), drawn_vectors, settings, torch.device("cpu")).material

    def report(epoch: TrainedEpoch) -> None:
        dev, test = epoch.dev, epoch.test
        values = {"dev_map": dev.mean_ap, "dev_mrr": dev.mean_rr, "test_map": test.mean_ap, "test_mrr": test.mean_rr}
        isorun.log(epoch=epoch.number, train_loss=epoch.train_loss, **values)
        ended()

    if side == "ours":
        train(material, settings, lambda network: isorun.digest("weights.initial", network), report)
    else:
        epoch = plain_pair_epoch(material, settings)
        for _ in range(_EPOCHS):
            epoch()
            ended()
    return {"pairs": pairs}


def _images_measured(side: str, loop: str, ended: Callable[[], None]) -> dict[str, Any]:
    """Each round of steps and evaluation, with `ended` after each."""
    import torch

    import isorun
    from isorun.zoo.studies.fewshot.training.images import load_splits
    from isorun.zoo.studies.fewshot.training.loop import Round, train
    from isorun.zoo.studies.fewshot.training.options import read_options
    from plain_episode_loop import plain_episode_round

    steps, words = _EPISODES[loop]
    length = ("--episodes", str(steps * _EPOCHS), "--eval-every", str(steps), "--eval-episodes", "1")
    options = read_options([*words, *length, "--eval-queries", "5", "--made-data", "--device", "cpu"])
    splits = load_splits(options)

    def report(done: Round) -> None:
        found = {"train_loss": done.train_loss, "val_accuracy": done.val.accuracy, "test_accuracy": done.test.accuracy}
        isorun.log(epoch=done.number, **found)
        ended()

    if side == "ours":
        train(options, splits, torch.device("cpu"), report)
    else:
        carry_out = plain_episode_round(options, splits)
        for number in range(_EPOCHS):
            carry_out(number)
            ended()
    each = options.tasks_per_batch * options.train_ways * (options.train_shots + options.queries)
    return {"images": steps * each}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--loops", nargs="+", choices=LOOPS, default=LOOPS)
    parser.add_argument("--side", choices=("ours", "plain"), help="measure this one alone, in this process")
    options = parser.parse_args()
    if options.side:
        print(json.dumps(_measured_here(options.side, options.loops[0])))
        return
    for loop in options.loops:
        row = _row(loop)
        print(f"{'ok  ' if row['ok'] else 'MISS'} {row['measured']:.2f} {row['name']}", flush=True)
        print(f"     {row['detail']}", flush=True)


if __name__ == "__main__":
    main()
