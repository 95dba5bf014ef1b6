"""End the runs that were left in a cluster's queue, and record them as interrupted; runs here end with Ctrl-C.

isorun stop study.toml     what SLURM has queued or runs of one study
isorun stop                of the whole store of this folder
"""

from __future__ import annotations

import argparse
import shlex

from isorun import cli
from isorun.errors import harmless, without_passwords

__all__ = ["declare", "execute"]


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    about = "a study file, or the name of an earlier study (default: the whole store)"
    parser.add_argument("study", nargs="?", metavar="STUDY", help=about)
    parser.add_argument("--store", metavar="FOLDER|URL", help="where records are kept (default: .isorun)")
    cli.declare_json(parser)


def execute(options: argparse.Namespace) -> int:
    """End them and say how many there were."""
    from isorun.stopping import stop

    told = stop(options.study, store=options.store)
    store = ["--store", without_passwords(options.store)] if options.store else []
    if options.json:
        cli.print_json(told.to_json())
    else:
        print(harmless(str(told)))
        named = "".join(f" {shlex.quote(word)}" for word in [*([options.study] if options.study else []), *store])
        if told.orphaned:
            print(f"next: isorun stop{named}, in a minute: it records them, when those claims have lapsed")
        elif told.elsewhere:
            print(f"next: isorun stop{named}, in a minute, records them where that process is gone")
        elif told.unheard:
            print(f"next: isorun status{named}")
    return 0
