"""How the runs of each group look: n, mean, sd with its interval, median, IQM, extremes.

isorun summarize runs.csv --value accuracy --by model,setting
isorun summarize study.toml
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from isorun import cli

if TYPE_CHECKING:
    from isorun.questions import Results

__all__ = ["declare", "execute"]


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    cli.declare_table(parser)
    parser.add_argument("--value", metavar="COLUMN", help="the column with the results (a study: its first metric)")
    parser.add_argument("--by", metavar="COLUMNS", help="columns that tell groups apart, with commas between")
    cli.declare_figure(parser, "the runs of every group as boxes and points")


def execute(options: argparse.Namespace) -> int:
    """Summarize and print."""
    from isorun.questions import summarize
    from isorun.report.summaries import summaries_view

    found = cli.load_results(options)
    summaries = summarize(
        found,
        value=options.value,
        by=options.by,
        where=cli.where(options),
        drop_missing=options.drop_missing,
        unit=options.unit,
    )
    if options.figure:
        _draw(found, options)
    cli.answer(summaries, summaries_view, options)
    return 0


def _draw(found: Results, options: argparse.Namespace) -> None:
    from isorun.questions import Asked, groups_of
    from isorun.report.figures.distributions import strip
    from isorun.report.figures.files import save_figure

    asked = Asked(options.value, where=cli.where(options), drop_missing=options.drop_missing)
    groups = groups_of(found, asked, options.by)
    save_figure(strip(groups, found.value(options.value)), options.figure)
