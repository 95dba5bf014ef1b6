"""An executor that tosses coins instead of training: what a run leaves is drawn from its seed."""

import random

from isorun.study.records import Series
from isorun.testing.instant_executor import Computed, InstantExecutor


def open_coins(options):
    """The executor, with as many runs at a time as was asked for."""
    return InstantExecutor(_toss, options.jobs)


def _toss(job):
    generator = random.Random(job.seed)
    tosses = [generator.random() for _ in range(3)]
    return Computed({"heads": tosses[-1]}, series={"heads": Series((1.0, 2.0, 3.0), (0.1, 0.2, 0.3), tuple(tosses))})
