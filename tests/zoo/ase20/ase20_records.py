"""Records of the paper's studies with accuracies that a test chooses, without training anything."""

from __future__ import annotations

import hashlib

from isorun.study.cells import Level, cells_of
from record_builder import make_record, make_series

CLASSES = 10


def record_of(cell, accuracy, *, seconds=1.0, weights=None, classes=None, loss=(2.0, 1.0)):
    """A finished run of two epochs whose second one has the best loss and the best validation accuracy.

    classes: the accuracy of every class in the second epoch; all of them `accuracy` when not given.
    """
    by_class = classes or dict.fromkeys(map(str, range(CLASSES)), accuracy)
    series = {
        "val_loss": make_series(loss, seconds),
        "val_accuracy": make_series([0.1, accuracy], seconds),
        "test_accuracy": make_series([0.1, accuracy], seconds),
        **{f"test_accuracy[{name}]": make_series([0.1, value], seconds) for name, value in by_class.items()},
    }
    initial = cell.id if cell.level is Level.DEFAULT else f"seed {cell.seed}"
    digests = {"weights.initial": hexed(initial), "weights.final": hexed(weights or cell.id)}
    return make_record(cell, series=series, digests=digests, origins=dict.fromkeys(series, "log"))


def hexed(text):
    return hashlib.sha256(text.encode()).hexdigest()


def records_of(study, accuracies, **changes):
    """A record for every cell. accuracies: (approach, level) to the accuracies of its runs, in the order of seeds."""
    used = {}
    records = []
    for cell in sorted(cells_of(study), key=lambda cell: (cell.repeat, cell.seed or 0)):
        key = (cell.approach, cell.level)
        if key not in accuracies:
            continue
        place = used.setdefault(key, 0)
        used[key] += 1
        if place < len(accuracies[key]):
            records.append(record_of(cell, accuracies[key][place], **changes))
    return records
