"""Search logs made for tests, and written in both forms."""

from __future__ import annotations

import csv
import gzip
import pickle
from pathlib import Path

from isorun.zoo.data.search_logs import Epoch, LoggedSearch, LoggedTrial, SearchLogs

HISTORY = ("loss", "accuracy", "val_loss", "val_accuracy")


def made_trial(number: int, score: float, elapsed_s: float, epochs: int = 2) -> LoggedTrial:
    history = tuple(Epoch(3.0 - at / 7, 0.1 * at, 3.5 - at / 9, score * (at + 1) / epochs) for at in range(epochs))
    return LoggedTrial(number, str(number), elapsed_s, score, history)


def made_search(scores, case: str = "I", tuner: str = "greedy", seconds: float = 600.0) -> LoggedSearch:
    trials = tuple(made_trial(at, score, seconds * (at + 1)) for at, score in enumerate(scores))
    return LoggedSearch(case, tuner, "", trials)


def write_tables(folder: Path, logs: SearchLogs) -> Path:
    """The prepared form."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "trials.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            ["case", "dataset", "tuner", "trial", "key", "elapsed_s", "score", "epochs", "best_val_accuracy"]
        )
        for one in logs.searches:
            for trial in one.trials:
                row = (one.case, one.data, one.tuner, trial.number, trial.key, trial.elapsed_s, trial.score)
                writer.writerow([*row, len(trial.epochs), trial.score])
    with gzip.open(folder / "epochs.csv.gz", "wt", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["case", "tuner", "trial", "key", "epoch", *HISTORY])
        for one in logs.searches:
            for trial in one.trials:
                for at, epoch in enumerate(trial.epochs):
                    values = [getattr(epoch, name) for name in HISTORY]
                    writer.writerow([one.case, one.tuner, trial.number, trial.key, at, *values])
    with (folder / "best_so_far.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["case", "tuner", "axis", "index", "best_score"])
        for best in logs.running:
            writer.writerows((best.case, best.tuner, best.axis, at, value) for at, value in enumerate(best.values))
    return folder


def write_originals(folder: Path, logs: SearchLogs) -> Path:
    """The authors' form: their folders, keys and entries."""
    cases = {"I": "Case1-poorperformance", "II": "Case2-ineffectiveSearch"}
    for one in logs.searches:
        entries = {
            (int(trial.key) if trial.key.isdecimal() else trial.key): {
                "time": trial.elapsed_s,
                "history": {name: [getattr(epoch, name) for epoch in trial.epochs] for name in HISTORY},
                "score": trial.score,
                "hp_value": {"image_block_1/normalize": False, "learning_rate": 0.001},
            }
            for trial in one.trials
        }
        log = {
            "cur_trial": len(one.trials) - 1,
            "start_time": 1.6e9,
            **({"data": one.data} if one.data else {}),
            **entries,
        }
        place = folder / cases[one.case] / one.tuner
        place.mkdir(parents=True)
        (place / "log.pkl").write_bytes(pickle.dumps(log, 3))
    for case in {best.case for best in logs.running}:
        kept: dict = {"origin_acc": 0.1}
        for best in (best for best in logs.running if best.case == case):
            kept.setdefault(best.tuner, {"total_time": 1.0})[best.axis] = {"history": list(best.values), "best": 1.0}
        (folder / cases[case] / "search_log.pkl").write_bytes(pickle.dumps(kept, 4))
    return folder
