"""The SLURM executor: every run is an element of an array, submitted by sbatch and watched by squeue.

`commands.py` is SLURM, `settings.py` what is asked of it, `ledger.py` what was submitted and what the elements leave,
`element.py` what runs on a node, `endings.py` what SLURM's last word means for a run, `executor.py` the executor with
`submitting.py`, `entries.py` and `watching.py`, `standing.py` how things stand for whoever asks.

What was submitted outlives the process that submitted it: whoever leaves and comes back attaches to it.
"""

from isorun.execution.slurm.executor import SlurmExecutor

__all__ = ["SlurmExecutor"]
