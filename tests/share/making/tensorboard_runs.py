"""python tensorboard_runs.py FOLDER: the known runs by tensorboardX, each in a folder of its own."""

import os
import sys

import known_runs as known
from tensorboardX import SummaryWriter

os.chdir(sys.argv[1])
for model, seed in known.RUNS:
    with SummaryWriter(f"runs/{known.name(model, seed)}") as writer:
        for epoch, row in enumerate(known.rows(model, seed)):
            for name, value in row.items():
                writer.add_scalar(name, value, epoch)
        writer.add_scalar("test_acc", known.test_acc(model, seed), known.EPOCHS)
        for step, value in enumerate(known.ODD):
            writer.add_scalar("odd", value, step)
        writer.add_text("words", "free words", 0)
        writer.add_hparams(known.params(model, seed), {"hparam/acc": 0.5}, name="hparams")
