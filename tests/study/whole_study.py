"""A study file that uses every table, as people write it."""

FULL = """
name = "digits"
repeats = 3
seeds = [1, 7]
levels = ["default", "fixed-seed"]

[approaches.lenet]
command = "python train.py --lr {config.lr} --seed {seed} --out {run_dir}"

[approaches.deep]
command = ["python", "train.py", "--deep", "--lr", "{config.lr}"]
configs = ["fast"]

[configs.fast]
lr = 0.1

[configs.drawn]
draws = 4
lr = { log-uniform = [1e-4, 1e-1] }

[environments.one-thread]
threads = 1
env = { OMP_NUM_THREADS = 1, MODE = "a" }

[metrics.test_acc]
direction = "higher"
chance = 0.1

[selections.best-loss]
metric = "val_loss"
direction = "lower"

[sources]
files = ["metrics.csv"]

[policy]
time_limit = "10m"
on_failure = "fail-fast"
retries = 2
"""
