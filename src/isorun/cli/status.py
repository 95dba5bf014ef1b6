"""What is running now, who runs it, and how far it is; from another terminal, while isorun run is at work.

isorun status                       everything that runs in the store of this folder
isorun status study.toml            one study: finished, failed, missing and running
isorun status study.toml --watch    again and again, until nothing runs any more
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from isorun import cli
from isorun.cli import duration
from isorun.cli.progress import row_text
from isorun.errors import harmless

if TYPE_CHECKING:
    from isorun.standing import RunInProgress, Status

__all__ = ["declare", "execute"]

_SECONDS_BETWEEN: Final = 2.0


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    about = "a study file, or the name of an ad hoc study (default: the whole store)"
    parser.add_argument("study", nargs="?", metavar="STUDY", help=about)
    parser.add_argument("--store", metavar="FOLDER|URL", help="where records are kept (default: .isorun)")
    parser.add_argument("--watch", action="store_true", help="show it again and again until nothing runs")
    cli.declare_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Say how things stand, once or until nothing runs."""
    from isorun.standing import status

    shown = ""
    while True:
        told = status(options.study, store=options.store)
        text = _json(told, options) if options.json else "\n".join(_lines(told))
        if text != shown:
            print(f"\x1b[H\x1b[J{text}" if options.watch and sys.stdout.isatty() else text, flush=True)
        shown = text
        if not options.watch or not told.running:
            return 0
        time.sleep(_SECONDS_BETWEEN)


def _json(told: Status, options: argparse.Namespace) -> str:
    """One document, or with --watch a line each time."""
    return json.dumps(told.to_json(), indent=None if options.watch else 2, ensure_ascii=False)


def _lines(told: Status) -> list[str]:
    total = f" of {told.total}" if told.total is not None else ""
    counts = [f"{told.finished}{total} finished", f"{len(told.running)} running"]
    counts += [f"{told.missing} missing"] if told.missing else []
    counts += [f"{told.failed} of them failed" if told.missing else f"{told.failed} failed"] if told.failed else []
    head = f"{told.study or 'this store'}: {', '.join(counts)}"
    return [harmless(line) for line in (head, *(f"  {_line(run)}" for run in told.running))]


def _line(run: RunInProgress) -> str:
    since = datetime.fromisoformat(run.holder.since)
    for_seconds = max((datetime.now(UTC) - since).total_seconds(), 0.0)
    row = f": {row_text(run.row)}" if run.row else ""
    return f"{run.label}, for {duration(for_seconds)}, by process {run.holder.pid} on {run.holder.host}{row}"
