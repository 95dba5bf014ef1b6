"""What each step towards determinism costs in time and buys in variance, for this training on this machine.

isorun price -- python train.py                the whole training, many times
isorun price --steps 200 -- python train.py    each run is ended after 200 optimizer steps (torch)

The steps are: seed, deterministic kernels, no autotune, no TF32, one thread, one CPU path. Runs take turns in random
order, so that whatever else the machine does hits all steps alike. Then sets with one step less are tried: recommended
is the cheapest set, by time, whose runs of one seed are bit-identical. Typed again it goes on, and uses what was
measured, unless the code or the machine changed. Every run does what the command does, also to files. Exit code 3 when
no set gives identical runs.
"""

from __future__ import annotations

import argparse
import sys

from isorun import cli
from isorun.errors import UsageError

__all__ = ["declare", "execute"]

_STILL_DIFFERS = 3


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    parser.usage = "isorun price [options] -- COMMAND …"
    parser.set_defaults(takes_command=True)
    parser.add_argument(
        "--runs", type=int, default=6, metavar="N", help="of each set of steps (default: 6, at least 4)"
    )
    about = "for all runs; no block of them is begun that would take longer (default: 600)"
    parser.add_argument("--seconds", type=float, default=600.0, metavar="S", help=about)
    about = "end each run after N steps of an optimizer, and time the steps behind the first (default: its own end)"
    parser.add_argument("--steps", type=int, default=0, metavar="N", help=about)
    cli.declare_session(parser)
    cli.declare_command(parser)
    cli.declare_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Measure and tell; 3 where no set gives identical runs."""
    from isorun.cli.progress import Progress
    from isorun.pricing import price
    from isorun.scheduling import INTERRUPTED
    from isorun.showing import view_of

    if not options.command:
        raise UsageError("a command is needed", found="none", hint="isorun price -- python train.py")
    if options.levels:
        raise UsageError(
            "--level is what is measured: each step towards determinism is taken in turn", hint="leave it out"
        )
    study = cli.study_of([options.command], options)
    with Progress(study, sys.stderr) as progress:
        found = price(
            study,
            runs=options.runs,
            seconds=options.seconds,
            steps=options.steps,
            observer=progress,
            **cli.session_options(options),
        )
    cli.answer(found, view_of, options)
    if found.stopped == INTERRUPTED:
        return 130
    return _STILL_DIFFERS if found.recommended is None else 0
