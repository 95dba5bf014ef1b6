"""Show which metrics would be read from a training's output, before anything relies on them.

isorun scan train.log
python train.py | isorun scan -
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from isorun import cli
from isorun.errors import InputError, harmless

__all__ = ["declare", "execute"]


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    parser.add_argument("log", metavar="LOG", help="a file with what a training printed; - for standard input")
    parser.add_argument("--pattern", dest="patterns", action="append", default=[], metavar="REGEX", help="your own")
    cli.declare_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Read the text and list the metrics found in it, and what was left out and why."""
    from isorun.analysis.evidence.judged import judged_column
    from isorun.sources import describe
    from isorun.sources.lines import scan_text
    from isorun.study.parsing import sources

    found = scan_text(_read(options.log), sources({"patterns": options.patterns}, "--pattern"))
    metrics = {name: judged_column(name) for name in found.series}
    if options.json:
        cli.print_json(
            {
                "metrics": {
                    name: {
                        "values": len(series.values),
                        "origin": found.origins[name],
                        "line": found.examples[name],
                        "direction": metrics[name].direction or None,
                        "direction_from": metrics[name].direction_from or None,
                    }
                    for name, series in found.series.items()
                },
                "notes": [note.message for note in found.notes],
            }
        )
        return 0
    names = ", ".join(sorted(found.series)) or "none"
    print(f"{len(found.series)} metric{'s' if len(found.series) != 1 else ''} found: {harmless(names)}")
    for line in describe(found, {name: metric.direction or "unknown" for name, metric in metrics.items()}):
        print(harmless(line))
    for number, note in enumerate(found.notes, start=1):
        print(harmless(f"{number}. {note.message}"))
    if not found.series:
        print("next: isorun scan --pattern '(?P<val_acc>[\\d.]+)' LOG, or isorun.log(…) in the training")
    return 0


def _read(name: str) -> str:
    if name == "-":
        return sys.stdin.buffer.read().decode("utf-8", "replace")
    try:
        return Path(name).read_bytes().decode("utf-8", "replace")
    except OSError as error:
        raise InputError(f"{name} cannot be read: {error.strerror}", hint="- reads standard input") from None
