"""python wandb_runs.py FOLDER: the known runs, one that failed, and one that was killed, by wandb offline."""

import os
import sys

import known_runs as known

os.chdir(sys.argv[1])
os.environ.update(WANDB_MODE="offline", WANDB_SILENT="true", WANDB_CONSOLE="off")
import wandb  # noqa: E402

quiet = wandb.Settings(x_disable_stats=True, x_disable_meta=True)
for model, seed in known.RUNS:
    run = wandb.init(
        project=known.EXPERIMENT,
        name=known.name(model, seed),
        config={**known.params(model, seed), "layers": {"sizes": [3, 5], "bias": None}},
        tags=["team", "vision"],
        group="first",
        notes="free words",
        settings=quiet,
    )
    for row in known.rows(model, seed):
        run.log({**row, "text": "words", "inner": {"one": 1}})
    for value in known.ODD:
        run.log({"odd": value})
    run.summary["test_acc"] = known.test_acc(model, seed)
    run.summary["verdict"] = "good"
    run.finish()
run = wandb.init(project=known.EXPERIMENT, name="broken", settings=quiet)
run.log({"val_acc": 0.5})
run.finish(exit_code=3)
