"""What the statistics commands share: a table of results or a study as input."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from isorun.cli import output
from isorun.errors import UsageError

if TYPE_CHECKING:
    from isorun.questions import Results

__all__ = ["declare", "load", "where"]


def declare(parser: argparse.ArgumentParser, *, optional: bool = False, judges: bool = True) -> None:
    """The words all statistics commands understand. judges: one metric is judged by units, as all but `mixed` do."""
    about = "CSV, JSON lines, Parquet (one row a run), or a study file"
    parser.add_argument("data", nargs="?" if optional else None, metavar="DATA", help=about)
    parser.add_argument(
        "--where", action="append", default=[], metavar="COLUMN=LABEL", help="only rows with this label"
    )
    about = "for a study: the selection, which epoch runs are judged at (default: its first)"
    parser.add_argument("--selection", metavar="NAME", help=about)
    parser.add_argument("--rule", dest="selection", help=argparse.SUPPRESS)
    parser.add_argument("--store", metavar="FOLDER", help="for a study: where records are kept")
    if judges:
        about = "what is judged and which direction is better: --value and --direction in one word"
        parser.add_argument("--metric", metavar="NAME[:lower|:higher]", help=about)
        about = "what was drawn independently (default: seed if there is one, else each row; repeat: one seed's runs)"
        parser.add_argument("--unit", metavar="COLUMN", help=about)
    parser.add_argument("--drop-missing", action="store_true", help="leave out values that are not finite, and say so")
    output.declare(parser)


def load(options: argparse.Namespace) -> Results:
    """The table, or the study's runs as one; `--metric` has set value and direction then."""
    from isorun.questions import results

    if getattr(options, "metric", None):
        from isorun.cli.adhoc import named_metric

        options.value, direction = named_metric(options.metric)
        options.direction = direction or getattr(options, "direction", None)
    return results(options.data, store=options.store, selection=options.selection)


def where(options: argparse.Namespace) -> dict[str, str]:
    """The labels that rows must have."""
    pairs = [text.partition("=") for text in options.where]
    for name, sign, _ in pairs:
        if not sign:
            raise UsageError("--where needs COLUMN=LABEL", found=name)
    return {name: label for name, _, label in pairs}
