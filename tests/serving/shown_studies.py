"""Studies to show, made by isorun's own loop from an executor that computes instead of training."""

import hashlib
import math
import random
from pathlib import Path

import isorun
from isorun.share.packing import pack
from isorun.study.records import Series
from isorun.testing.instant_executor import Computed, InstantExecutor

HEIGHTS = {"adam": 0.932, "sgd": 0.915, "lion": 0.931, "lamb": 0.90}
EPOCHS = 16
OUTPUT = "epoch {}: val_loss {:.4f} test_acc {:.4f}"


def trained(job):
    """A training whose seed moves its result, and which varies a little more where its level lets it."""
    cell = job.cell
    repeat = "" if cell.level.fixes_kernels else cell.repeat
    drawn = random.Random(f"{cell.approach} {cell.config} {cell.seed} {repeat}")
    of_seed = random.Random(f"seed {cell.seed}") if cell.level.fixes_seed else drawn
    spread = 0.0015 if cell.level.fixes_seed else 0.006
    if cell.level.fixes_kernels:
        spread = 0.0
    height = HEIGHTS.get(cell.approach, 0.9) + 0.004 * of_seed.gauss(0, 1) + spread * drawn.gauss(0, 1)
    steps = [float(epoch) for epoch in range(1, EPOCHS + 1)]
    accuracies = [height - 0.4 * math.exp(-step / 3) + 0.002 * drawn.gauss(0, 1) for step in steps]
    losses = [0.2 + 2 * math.exp(-step / 4) + 0.01 * drawn.random() for step in steps]
    seconds = [1.1 * step for step in steps]
    if cell.approach == "sgd" and not cell.level.fixes_seed and cell.repeat == 1 and job.attempt == 1:
        return Computed(exit_code=1, output="Traceback (most recent call last):\nRuntimeError: CUDA out of memory")
    name = f"{cell.approach} {cell.seed} {repeat}"
    return Computed(
        results={"test_acc": accuracies[-1], "test_loss": losses[-1] + 0.05},
        series={
            "test_acc": Series(steps, seconds, accuracies),
            "val_loss": Series(steps, seconds, losses),
        },
        digests={
            "weights.initial": hashlib.sha256(f"{cell.seed or cell.repeat}".encode()).hexdigest(),
            "weights.final": hashlib.sha256(name.encode()).hexdigest(),
        },
        wall_seconds=seconds[-1] + drawn.random(),
        output="\n".join(OUTPUT.format(int(s), v, a) for s, v, a in zip(steps, losses, accuracies, strict=True)),
    )


def optimizers(folder, **changes):
    """Three optimizers at three levels; of a fourth there is one run."""
    declared = {
        "approaches": {name: f"python train.py --optimizer {name}" for name in ("adam", "sgd", "lion")},
        "levels": ["default", "fixed-seed"],
        "seeds": [1, 2, 3],
        "repeats": 2,
        "metrics": {"test_acc": "higher", "test_loss": "lower"},
        "policy": {"retries": 1},
        "folder": str(folder),
    }
    return isorun.Study(changes.pop("name", "optimizers"), **(declared | changes))


def kept(study, place, compute=trained):
    """The study carried out, and kept by its name in the store at this place."""
    isorun.run(study, store=str(place), executor=InstantExecutor(compute, 2), keep_study=True)
    return study


def single_entry(folder, repeats=6):
    """A study of many approaches of which one has a single run."""
    return optimizers(
        folder,
        name="board",
        approaches={name: f"python train.py {name}" for name in HEIGHTS},
        levels=["default"],
        seeds=[1],
        repeats=repeats,
        policy={"retries": 0},
    )


def searched(folder):
    """A study with a search."""
    space = {"lr": {"float": [1e-4, 1.0], "log": True}, "units": [8, 16, 32]}
    search = {"engine": "random", "trials": 12, "begin": 6, "prior": "none", "space": space}
    approaches = {"net": "python train.py {config.lr} {config.units}"}
    return isorun.Study("tuned", approaches=approaches, metrics={"acc": "higher"}, search=search, folder=str(folder))


def of_trial(job):
    return Computed({"acc": 1 - float(job.cell.config_values["lr"])}, wall_seconds=2.0)


def shown_store(folder: Path, seeds=3, repeats=2) -> Path:
    """A store with an ordinary study, one of many approaches, and a search."""
    (folder / "train.py").write_text("import isorun\n")
    place = folder / ".isorun"
    kept(searched(folder), place, of_trial)
    board = single_entry(folder, seeds * repeats)
    kept(board, place, _only_once)
    kept(optimizers(folder, seeds=list(range(1, seeds + 1)), repeats=repeats), place)
    return place


def _only_once(job):
    if job.cell.approach == "lamb" and job.cell.repeat:
        return Computed(exit_code=1, output="diverged")
    return trained(job)


def packed(folder: Path, place: Path) -> Path:
    """The first study as a package."""
    target = folder / "optimizers.isorun"
    pack("optimizers", target, store=str(place))
    return target
