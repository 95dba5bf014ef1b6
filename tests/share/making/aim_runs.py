"""python aim_runs.py FOLDER: the known runs by Aim."""

import os
import sys

import known_runs as known
from aim import Run, Text

os.chdir(sys.argv[1])
for model, seed in known.RUNS:
    run = Run(repo=".", experiment=known.EXPERIMENT, log_system_params=False, system_tracking_interval=None)
    run.name = known.name(model, seed)
    run["hparams"] = known.params(model, seed)
    run.add_tag("vision")
    for epoch, row in enumerate(known.rows(model, seed)):
        for name, value in row.items():
            run.track(value, name=name, step=epoch)
    run.track(known.test_acc(model, seed), name="test_acc", step=0)
    run.track(known.ODD[0], name="odd", step=0)
    run.track(1.0, name="loss", step=0, context={"subset": "val"})
    run.track(Text("words"), name="text", step=0)
    run.close()
