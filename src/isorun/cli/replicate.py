"""A package's runs again, here: repeated, replicated, reproduced, not, or undecided.

isorun replicate resnet56.isorun -n 5                     5 runs of each group again
isorun replicate resnet56.isorun -n 5 --code clone        the code is a commit of this repository
isorun replicate resnet56.isorun -n 8 --margin 0.5        equivalent: within 0.5 points
isorun replicate resnet56.isorun -n 5 --max-runs 30       look after every run; stop as soon as it is clear

Puts the package's code into a new folder, sees that its packages and data are there, and runs its command, which is
shown first: it may come from anybody. Stored seeds are run again and their bits compared; where bits differ or cannot
be had, new draws are held against the stored ones with a margin. What was replaced (machine, packages, device, data)
is said and decides the word. The same words go on where it was stopped. Exits with 3 when the result does not hold, 1
when runs failed or something cannot be had, else 0.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from typing import TYPE_CHECKING

from isorun import cli
from isorun.cli.replay import ask_first, declare_places

if TYPE_CHECKING:
    from isorun.share.replicating import ReplicationPlan

__all__ = ["declare", "execute"]


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    parser.add_argument("package", metavar="PACKAGE", help="a package, as isorun pack wrote it")
    about = "runs of each group: stored seeds whose bits are asked for, and new draws (default: 5)"
    parser.add_argument("-n", "--runs", type=int, default=5, metavar="N", help=about)
    about = "look after every run from -n on, up to so many, and stop as soon as it is clear"
    parser.add_argument("--max-runs", type=int, metavar="N", help=about)
    about = "a difference that does not matter (default: 2 standard deviations of the stored runs)"
    parser.add_argument("--margin", type=float, metavar="X", help=about)
    about = "points: hundredths of a share or of a percentage; metric: its own numbers (default: points for accuracies)"
    parser.add_argument("--margin-unit", choices=("points", "metric"), help=about)
    parser.add_argument("--metric", metavar="NAME", help="what is judged (default: the study's first)")
    about = "only groups with this label (approach, config, environment or level)"
    parser.add_argument("--where", action="append", default=[], metavar="FACTOR=LABEL", help=about)
    parser.add_argument("--selection", metavar="NAME", help="which epoch runs are judged at (default: its first)")
    parser.add_argument("--alpha", type=float, default=0.05, metavar="P", help="error rate of a claim (default: 0.05)")
    declare_places(parser)
    parser.add_argument("--store", metavar="FOLDER|URL", help="where the new runs are kept (default: in the folder)")
    parser.add_argument("-j", "--jobs", type=int, default=1, metavar="N", help="runs at a time, each on its own CPUs")
    parser.add_argument("--yes", action="store_true", help="run the package's command without being asked")
    cli.declare_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Show what would run, run it, and tell."""
    from isorun.cli.progress import Progress
    from isorun.share.replicating import replicate
    from isorun.showing import view_of

    def confirm(plan: ReplicationPlan) -> None:
        ask_first(plan.lines(), options)

    result = replicate(
        options.package,
        runs=options.runs,
        max_runs=options.max_runs,
        margin=options.margin,
        margin_unit=options.margin_unit,
        metric=options.metric,
        where=cli.where(options),
        selection=options.selection,
        alpha=options.alpha,
        code=options.code,
        data=options.data,
        folder=options.folder,
        store=options.store,
        python=options.python,
        anyway=options.anyway,
        jobs=options.jobs,
        confirm=confirm,
        watch=lambda study: Progress(study, sys.stderr),
        command=_typed(options),
    )
    cli.answer(result, view_of, options)
    return result.exit_code()


def _typed(options: argparse.Namespace) -> str:
    """The command that repeats it."""
    words = ["isorun", "replicate", options.package, "-n", str(options.runs)]
    for name in ("max_runs", "margin", "margin_unit", "metric", "selection", "code", "folder", "store", "python"):
        if getattr(options, name) is not None:
            words += [f"--{name.replace('_', '-')}", str(getattr(options, name))]
    words += [word for name in ("where", "data") for text in getattr(options, name) for word in (f"--{name}", text)]
    words += [] if options.alpha == 0.05 else ["--alpha", f"{options.alpha:g}"]
    return shlex.join([*words, *(["--anyway"] if options.anyway else [])])
