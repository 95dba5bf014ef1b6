"""The same run again, from its record alone: identical bit by bit, or the first thing that differs.

isorun replay 3f0c9a1b                             a run of this folder's store, by its id or the start of it
isorun replay 3f0c9a1b --store resnet56.isorun     a run of a package: its code is put into a new folder
isorun replay 3f0c9a1b --folder then               put the recorded commit into a new folder, and run there
isorun replay 3f0c9a1b --anyway                    run with what is here, and say what was replaced

Runs the recorded command with the same seed, level, environment and CPUs, then holds rows, results and digests against
the record. What cannot be had (code, data, package versions, a device) is refused, with what differs and how to get it.
The new run is kept under an id of its own, and is a run of no study. Exits with 0 when it is identical, 3 when it
differs, 1 when it cannot be had.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from isorun import cli
from isorun.errors import UsageError

__all__ = ["declare", "execute"]


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    parser.add_argument("run", metavar="RUN", help="the id of a run, or the start of it")
    about = "where the run is kept: a store or a package (default: .isorun)"
    parser.add_argument("--store", metavar="STORE|PACKAGE", help=about)
    declare_places(parser)
    about = "the store for the new run (default: that of the old one; of a package .isorun here)"
    parser.add_argument("--keep", metavar="FOLDER", help=about)
    about = "of a package: run its command without being asked; it is shown first"
    parser.add_argument("--yes", action="store_true", help=about)
    cli.declare_json(parser)


def declare_places(parser: argparse.ArgumentParser) -> None:
    """Where code, data and the interpreter are."""
    about = "where the code lies, or a clone of its repository (default: the study's folder, or the repository here)"
    parser.add_argument("--code", metavar="PATH", help=about)
    parser.add_argument("--folder", metavar="DIR", help="the new folder that the code is put into")
    about = "a folder with data that the runs read; may be repeated"
    parser.add_argument("--data", action="append", default=[], metavar="DIR", help=about)
    parser.add_argument("--python", metavar="PATH", help="the interpreter (default: the one at hand that fits best)")
    about = "run with what is here where something cannot be had as it was, and say what was replaced"
    parser.add_argument("--anyway", action="store_true", help=about)


def execute(options: argparse.Namespace) -> int:
    """Run it again and tell; 3 where it differs."""
    from isorun.cli.progress import Progress
    from isorun.share.replaying import replay
    from isorun.showing import view_of

    result = replay(
        options.run,
        store=options.store,
        code=options.code,
        folder=options.folder,
        data=options.data,
        python=options.python,
        anyway=options.anyway,
        keep=options.keep,
        confirm=lambda lines: ask_first(lines, options),
        watch=lambda study: Progress(study, sys.stderr),
    )
    cli.answer(result, view_of, options)
    return 0 if result.identical else 3


def ask_first(lines: Sequence[tuple[str, str]], options: argparse.Namespace) -> None:
    """Show what would be run, and ask on a terminal; without one --yes has to say it."""
    from isorun.errors import harmless

    width = max(len(name) for name, _ in lines)
    for name, text in lines:
        sys.stderr.write(harmless(f"{name:<{width}}  {text}") + "\n")
    if options.yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(
            "this runs the command of the package, which may come from anybody",
            found="no terminal to ask on",
            hint="look at the lines above, then the same with --yes",
        )
    sys.stderr.write("Run it? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise UsageError("nothing was run", hint="--yes runs it without being asked")
