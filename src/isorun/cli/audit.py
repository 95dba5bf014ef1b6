"""Which sources of nondeterminism a training leaves open, and how to close each.

isorun audit -- python train.py             its source, and a few real steps of it
isorun audit --static -- python train.py    its source alone; nothing is run
isorun audit --fix -- python train.py | patch -p1

The run is stopped after --seconds or --steps; until then it does what the command does, also to files. Exit code 3 when
something is open for sure, 1 when the run failed and the source shows nothing for sure.
"""

from __future__ import annotations

import argparse
import sys

from isorun import cli
from isorun.errors import UsageError

__all__ = ["declare", "execute"]

_OPEN = 3


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    parser.usage = "isorun audit [options] -- COMMAND …"
    parser.set_defaults(takes_command=True)
    parser.add_argument("--static", action="store_true", help="look at the source only, and run nothing")
    parser.add_argument("--seconds", type=float, default=20.0, metavar="S", help="stop the run then (default 20)")
    parser.add_argument("--steps", type=int, default=20, metavar="N", help="or after N optimizer steps (default 20)")
    parser.add_argument(
        "--fix", action="store_true", help="print a patch that closes what can be closed; write nothing"
    )
    cli.declare_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Look and tell; 3 where something is open for sure, 1 where the run failed and so told nothing."""
    from isorun.showing import view_of
    from isorun.workflow import audit

    if not options.command:
        raise UsageError("a command is needed", found="none", hint="isorun audit -- python train.py")
    if options.fix and options.json:
        raise UsageError("--fix prints a patch and --json prints JSON", found="both", hint="choose one of them")
    if not options.seconds > 0 or options.steps < 1:
        raise UsageError("--seconds and --steps need numbers above 0", hint="--static runs nothing")
    found = audit(options.command, static=options.static, seconds=options.seconds, steps=options.steps)
    if options.fix:
        sys.stdout.write(found.patch)
        if not found.patch:
            print("isorun audit: there is nothing that a patch could close", file=sys.stderr)
    else:
        cli.answer(found, view_of, options)
    return _OPEN if found.sure else int(found.failed)
