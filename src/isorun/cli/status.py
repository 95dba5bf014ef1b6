"""What is running now, who runs it, and how far it is; from another terminal, while isorun run is at work.

isorun status                       everything that runs in the store of this folder, and what is left of its studies
isorun status study.toml            one study: finished, failed, missing and running
isorun status study.toml --watch    again and again, until nothing runs any more
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from typing import TYPE_CHECKING, Final

from isorun import cli

if TYPE_CHECKING:
    from isorun.in_progress import Status

__all__ = ["declare", "execute"]

_SECONDS_BETWEEN: Final = 2.0


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    about = "a study file, or the name of an earlier study (default: the whole store)"
    parser.add_argument("study", nargs="?", metavar="STUDY", help=about)
    parser.add_argument("--store", metavar="FOLDER|URL", help="where records are kept (default: .isorun)")
    parser.add_argument("--watch", action="store_true", help="show it again and again until nothing runs")
    cli.declare_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Say how things stand, once or until nothing runs."""
    from isorun.in_progress import status

    shown = ""
    while True:
        told = status(options.study, store=options.store)
        text = _json(told, options) if options.json else f"{told}{_next(told, options)}"
        if text != shown:
            print(f"\x1b[H\x1b[J{text}" if options.watch and sys.stdout.isatty() else text, flush=True)
        shown = text
        if not options.watch or not told.is_at_work:
            return 0
        time.sleep(_SECONDS_BETWEEN)


def _next(told: Status, options: argparse.Namespace) -> str:
    """What carries out the cells that were left for workers, where nobody is at it."""
    if told.is_at_work or told.workers or not any(one.missing for one in told.unfinished):
        return ""
    store = f" {shlex.quote(options.store)}" if options.store else ""
    return f"\nnext: isorun worker{store} carries out what is missing, here or on any machine that has the studies"


def _json(told: Status, options: argparse.Namespace) -> str:
    """One document, or with --watch a line each time."""
    return json.dumps(told.to_json(), indent=None if options.watch else 2, ensure_ascii=False)
