"""Which commit of a range changed the result? Enough runs of each to decide, by halves.

isorun bisect v1.0..main -- python train.py              a metric, by as many runs as it takes
isorun bisect v1.0..main --what bits -- python train.py  whether the same seed still ends with the same bits
isorun bisect v1.0..main --link data --dry-run -- python train.py

The ends are compared first. Then a commit is like the good end, like the bad one, or neither, which shows a second
change; one that does not run is passed over, and one that cannot be told in --max-runs runs leaves a range. Each commit
is checked out beside your folder, never in it. The error rate holds for all comparisons together. Ended and typed again
it goes on with the runs that were made. Exits with 3 when the result changed, 0 when no difference was found.
"""

from __future__ import annotations

import argparse
import sys

from isorun import cli
from isorun.errors import UsageError

__all__ = ["declare", "execute"]


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    parser.usage = "isorun bisect [options] GOOD..BAD -- COMMAND …"
    parser.add_argument("range", metavar="GOOD..BAD", help="two refs, or GOOD.. up to HEAD")
    parser.set_defaults(takes_command=True)
    about = "score: a metric (default). bits: equal digests of the same seed, or where there are none equal numbers"
    parser.add_argument("--what", choices=("score", "bits"), default="score", help=about)
    parser.add_argument("--alpha", "--error", type=float, default=0.05, metavar="P", help="error rate (default: 0.05)")
    parser.add_argument("--margin", type=float, metavar="X", help="ends that differ by less do not differ")
    parser.add_argument("--max-runs", type=int, default=30, metavar="N", help="of one commit (default: 30)")
    parser.add_argument("--pair", action="store_true", help="the same seeds for all commits; judge the differences")
    parser.add_argument("--first-parent", action="store_true", help="do not look into what merges brought in")
    about = "only commits that change this file or folder may be meant (may be repeated)"
    parser.add_argument("--paths", action="append", default=[], metavar="PATH", help=about)
    about = "data that are not in the repository: linked into each checkout (may be repeated)"
    parser.add_argument("--link", action="append", default=[], metavar="PATH", help=about)
    parser.add_argument("--dry-run", action="store_true", help="say how many commits and runs it is about; run nothing")
    parser.add_argument("-j", "--jobs", type=int, metavar="N", help=cli.JOBS_HELP)
    parser.add_argument("--launch", choices=("auto", "warm", "fresh"), default="auto", help="warm: fork from a server")
    parser.add_argument("--time-limit", metavar="SECONDS", help="for a run; 90, 15m, 2h")
    cli.declare_session(parser)
    cli.declare_command(parser)
    cli.declare_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Search, and print what changed the result."""
    if not options.command:
        raise UsageError("what trains is needed", found="no command", hint="isorun bisect GOOD..BAD -- python train.py")
    if len(options.levels or ()) > 1 or len(options.metrics or ()) > 1:
        raise UsageError("one level and one metric are bisected", hint="--level and --metric once each")
    from isorun.bisecting import bisect
    from isorun.cli.progress import Progress
    from isorun.scheduling import INTERRUPTED
    from isorun.showing import view_of

    level = {"score": "fixed-seed" if options.pair else "default", "bits": "deterministic"}[options.what]
    options.levels = options.levels or [level]
    study = cli.study_of([options.command], options)
    with Progress(study, sys.stderr) as progress:
        result = bisect(
            options.range,
            study,
            what=options.what,
            metric=cli.named_metric(options.metrics[0])[0] if options.metrics else None,
            alpha=options.alpha,
            margin=options.margin,
            max_runs=options.max_runs,
            pair=options.pair,
            first_parent=options.first_parent,
            paths=options.paths,
            links=options.link,
            observer=progress,
            dry_run=options.dry_run,
            **cli.session_options(options),
        )
    cli.answer(result, view_of, options)
    if result.stopped == INTERRUPTED:
        return 130
    return 3 if result.found else 0
