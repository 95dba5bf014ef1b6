"""AutoKeras restricted to vanilla blocks on a part of Fashion-MNIST: its strategies, and greedy repaired from trial 10.

`python -m repair.autokeras_searches search --out FILE`, in an environment that has AutoKeras (with a Keras older than
the others use: `isorun[autokeras]`). Every strategy has the same seeds and the same space: AutoKeras' own blocks of
convolutions, with fewer filters and images of 14 by 14, so that a trial takes seconds. What is repaired is the greedy
search of the same seed: its first ten trials are those of greedy. The prior knows nothing of Fashion-MNIST.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

os.environ.setdefault("KERAS_BACKEND", "torch")
os.environ["CUDA_VISIBLE_DEVICES"] = ""  # networks this small wait for a GPU longer than it computes

import numpy as np
import torch

import isorun.repair
from repair.faulty_networks import BATCH, material
from repair.kept_searches import Keeper, Line, about, arguments, interval, lines_of, row, run_all, write_rows
from run import machine

__all__ = ["ARMS", "jobs", "measure", "rows_of", "search"]

TRIALS: Final = 25
TAKEN_OVER: Final = 10
EPOCHS: Final = 5
_SEEDS: Final = 3
_DATA: Final = "fashion-mnist"
_TARGETS: Final = (0.7, 0.75)
"""Validation accuracies that a search is asked for: of 600 images, after 5 epochs with 1,500."""
ARMS: Final = ("greedy", "greedy, repaired", "bayesian", "hyperband", "random")
_REPAIRED: Final = ARMS[1]
_OPTIONS: Final[dict[str, dict[str, int]]] = {
    "bayesian": {"num_initial_points": TAKEN_OVER},
    "hyperband": {"max_epochs": EPOCHS, "hyperband_iterations": TRIALS},
}
"""What strategies need for so few trials: by default Bayesian search draws all 25 at random, and Hyperband trains none
of them for more than two of its thousand epochs."""
_CONTROLS: Final = tuple(arm for arm in ARMS if arm != _REPAIRED)


@dataclass(frozen=True)
class Job:
    """A search by a strategy, with a seed."""

    arm: str
    seed: int

    @property
    def line(self) -> Line:
        """How it is kept."""
        return {"engine": "autokeras", "data": _DATA, "seed": self.seed, "arm": self.arm}


def measure() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        keeper = Keeper(Path(folder) / "lines.jsonl", float("inf"))
        run_all(search, jobs(range(_SEEDS), ARMS, ()), keeper, len(os.sched_getaffinity(0)))
        return rows_of(lines_of([keeper.path]))


def main() -> None:
    asked = arguments(__doc__.partition("\n")[0], ARMS, ["autokeras"], _SEEDS).parse_args()
    if asked.command == "rows":
        lines = lines_of(asked.files)
        write_rows("repair.autokeras_searches", rows_of(lines), lines)
        return
    missing = jobs(range(asked.seeds), asked.arms, lines_of([asked.out]))
    run_all(search, missing, Keeper(asked.out, time.time() + asked.seconds), asked.processes)


def jobs(seeds: Iterable[int], arms: Sequence[str], lines: Iterable[Line]) -> list[Job]:
    """The searches that there are no lines of."""
    known = {about(line) for line in lines}
    return [one for seed in seeds for arm in arms if about((one := Job(arm, seed)).line) not in known]


def search(job: Job, keeper: Keeper) -> None:
    """A search of all its trials, kept with the score and the seconds of each."""
    import keras

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    keras.utils.set_random_seed(job.seed)
    began = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        trials = _searched(job, folder, keeper.check)
    told = {"scores": [one.score for one in trials], "cpu_seconds": round(time.process_time() - began, 1)}
    keeper.keep({**job.line, **told, "machine": machine()})


def _searched(job: Job, folder: str, check: Callable[[], None]) -> list[Any]:
    import autokeras
    import keras
    from keras_tuner.engine.hyperparameters import Choice

    given = autokeras.ImageInput()
    block = autokeras.ConvBlock(filters=Choice("filters", [8, 16, 32], default=16))(given)
    model = autokeras.AutoModel(
        given,
        autokeras.ClassificationHead()(block),
        tuner=_tuner(job, check),
        max_trials=TRIALS,
        directory=folder,
        project_name="search",
        seed=job.seed,
        objective="val_accuracy",
        **_OPTIONS.get(job.arm, {}),
    )
    x, y, held_x, held_y = material(_DATA, is_raw=False)
    images, held = (part.reshape(-1, 14, 14, 1) for part in (x, held_x))
    ends = keras.callbacks.EarlyStopping(patience=EPOCHS)  # with one of the user's, the best is not trained once more
    model.fit(images, y, validation_data=(held, held_y), epochs=EPOCHS, batch_size=BATCH, callbacks=[ends], verbose=0)
    return [model.tuner.oracle.trials[name] for name in model.tuner.oracle.start_order]


def _tuner(job: Job, check: Callable[[], None]) -> type:
    """The class of tuners of an arm; it gives up between two trials."""
    from isorun.repair.engines.autokeras import STRATEGIES

    prior = f"shipped, without {_DATA}"
    repaired = isorun.repair.autokeras("greedy", begin=TAKEN_OVER, prior=prior, seed=job.seed)
    base: Any = repaired if job.arm == _REPAIRED else STRATEGIES[job.arm]

    class Checked(base):  # type: ignore[misc]  # mypy does not look into AutoKeras
        def on_trial_end(self, trial: Any) -> None:
            super().on_trial_end(trial)
            # KerasTuner's Hyperband goes on with a trial only where it finds this file, and AutoKeras writes none; an
            # empty one says that the model is built, as those of AutoKeras are. Without it all that it promotes fail.
            Path(self.get_trial_dir(trial.trial_id), "build_config.json").write_text("{}")
            check()

    return Checked


def rows_of(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """What each strategy found, and how much more the repaired one did; over the seeds that all of them had."""
    found = _by_seed(lines)
    if not found:
        return []
    rows = [_own_row(arm, [one[arm] for one in found]) for arm in ARMS]
    return [*rows, *(_difference(control, found) for control in _CONTROLS)]


def _by_seed(lines: Sequence[Line]) -> list[dict[str, list[float]]]:
    seeds: dict[int, dict[str, list[float]]] = {}
    for line in lines:
        seeds.setdefault(line["seed"], {})[line["arm"]] = [score or 0.0 for score in line["scores"]]
    return [arms for _, arms in sorted(seeds.items()) if set(arms) >= set(ARMS)]


def _own_row(arm: str, searches: Sequence[list[float]]) -> dict[str, Any]:
    best = [100 * max(scores) for scores in searches]
    told = "; ".join(_reached(searches, target) for target in _TARGETS)
    detail = f"by seed {', '.join(f'{one:.1f}' for one in best)}; {told}"
    return row(f"{arm}: best in {TRIALS} trials", (statistics.fmean(best), "%"), "", detail)


def _reached(searches: Sequence[list[float]], target: float) -> str:
    at = [_first(scores, target) for scores in searches]
    reached = sum(one <= TRIALS for one in at)
    told = f"{100 * target:.0f} % in {reached} of {len(searches)} searches"
    return told + (f", median trial {statistics.median(at):g}" if 2 * reached > len(at) else "")


def _first(scores: Sequence[float], target: float) -> int:
    """In which trial a search reached a target; one more than there are where in none."""
    return next((place for place, score in enumerate(scores, start=1) if score >= target), TRIALS + 1)


def _difference(control: str, found: Sequence[dict[str, list[float]]]) -> dict[str, Any]:
    best = [100 * (max(one[_REPAIRED]) - max(one[control])) for one in found]
    mean, low, high = interval(np.array(best))
    detail = f"{len(found)} paired seeds, 95 % interval {low:+.1f} to {high:+.1f}"
    for target in _TARGETS:
        later = [_first(one[_REPAIRED], target) - _first(one[control], target) for one in found]
        told = interval(np.array(later, dtype=float))
        detail += f"; trials more to {100 * target:.0f} %: {told[0]:+.1f} ({told[1]:+.1f} to {told[2]:+.1f})"
    if control == "greedy":
        same = sum(one[_REPAIRED][:TAKEN_OVER] == one[control][:TAKEN_OVER] for one in found)
        detail += f"; the first {TAKEN_OVER} trials are the same in {same}"
    return row(f"greedy, repaired, over {control}", (mean, "points"), "≥ 0", detail, is_met=mean >= 0)


if __name__ == "__main__":
    main()
