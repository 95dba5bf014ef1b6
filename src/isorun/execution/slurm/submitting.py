"""From jobs that need the same to an array in SLURM's queue."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from isorun.execution import Job, Resources
from isorun.execution.slurm.commands import ControllerSilent, QueueFull, Slurm, SubmissionRefused
from isorun.execution.slurm.ledger import Ledger, Submission, carried
from isorun.execution.slurm.settings import SlurmSettings

__all__ = ["Submitter"]


class Submitter:
    """Writes a submission into the ledger and calls sbatch. bad_nodes: those on which no run could begin."""

    def __init__(self, slurm: Slurm, settings: SlurmSettings, ledger: Ledger) -> None:
        self.bad_nodes: set[str] = set()
        self._slurm = slurm
        self._settings = settings
        self._ledger = ledger

    def submitted(self, jobs: Sequence[Job]) -> Submission:
        """The submission of these jobs. Its number is empty where SLURM's answer was lost: its token will tell.

        QueueFull or SubmissionRefused where SLURM says no; then nothing is left of it.
        """
        resources, settings = jobs[0].resources, self._settings
        content = {
            "gpus": settings.gpus_of(resources),
            "cpus": settings.cpus_of(resources),
            "prelude": settings.prelude,
        }
        submission = self._ledger.write(jobs, content, carried(os.environ))
        words = [settings.python or sys.executable, str(submission.folder)]
        try:
            number = self._slurm.submit(self._options(submission, resources), submission.folder / "batch.sh", words)
        except ControllerSilent:
            return submission
        except (QueueFull, SubmissionRefused):
            self._ledger.forget(submission)
            raise
        submission.queued(number)
        return submission

    def _options(self, submission: Submission, resources: Resources) -> list[str]:
        throttle = f"%{self._settings.throttle}" if self._settings.throttle else ""
        return [
            f"--job-name={submission.name}",
            f"--comment=isorun {submission.token}",
            f"--array=0-{len(submission.runs) - 1}{throttle}",
            f"--output={submission.folder}/log-%a.txt",
            "--open-mode=append",
            "--chdir=/",
            "--requeue",
            *([f"--exclude={','.join(sorted(self.bad_nodes))}"] if self.bad_nodes else []),
            *self._settings.options(resources),
        ]
