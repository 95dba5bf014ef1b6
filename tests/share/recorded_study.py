"""A study with runs in its store, without training anything."""

import hashlib

from isorun.store.folder import FolderStore
from isorun.study.cells import cells_of
from isorun.study.design import load_study
from isorun.testing.made_records import make_record

TRAIN = "import isorun\nisorun.result(accuracy=0.9)\n"
STUDY = """
name = "digits"
levels = ["default", "fixed-seed"]
repeats = 4
[approaches.small]
command = "python train.py --width 8"
[approaches.large]
command = "python train.py --width 64"
[metrics.accuracy]
direction = "higher"
"""


def recorded_study(folder, study=STUDY, train=TRAIN, **fields):
    """The file of a study in this folder whose runs are in the store beside it."""
    (folder / "train.py").write_text(train)
    (folder / "study.toml").write_text(study)
    declared = load_study(folder / "study.toml")
    source = {"path": "train.py", "sha256": hashlib.sha256(train.encode()).hexdigest()}
    data = {"path": "data/train.csv", "sha256": "ab" * 32}
    environment = {
        "requested": {"given_files": [source], "read_files": [data]},
        "effective": {
            "sources": [source],
            "packages": {"numpy": "2.1.0", "scikit_learn": "1.5+local"},
            "python": {"version": "3.11.7", "implementation": "CPython", "executable": "/opt/python"},
            "platform": {"os": "Debian GNU/Linux 12", "kernel": "Linux 6.1"},
        },
    }
    with FolderStore(folder / ".isorun") as store:
        for number, cell in enumerate(cells_of(declared, store.key)):
            accuracy = 0.9 + 0.001 * (number * 7 % 5) + (0.05 if cell.approach == "large" else 0.0)
            given = {
                "code": {},
                "environment": environment,
                "where": {"host": "lab1", "folder": "/home/ann/x"},
            } | fields
            store.finish(make_record(cell, accuracy=accuracy, points=6, **given))
    return folder / "study.toml"
