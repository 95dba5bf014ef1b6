"""Which of many approaches is best, over one task or many, and how firm is its place?

isorun rank runs.csv --value accuracy --by model
isorun rank runs.csv --value accuracy --by model --pair seed
isorun rank runs.csv --value score --by model --task game --figure ranks.svg --matrix wins.svg

Approaches are ranked by the mean of the middle half of their runs, with intervals by bootstrap; those with one run on
some task are not ranked. Over many tasks their scores must be comparable: normalise them first.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from isorun import cli

if TYPE_CHECKING:
    from isorun.analysis.leaderboards.leaderboard import Leaderboard
    from isorun.questions import Results

__all__ = ["declare", "execute"]


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    cli.declare_table(parser)
    parser.add_argument("--value", metavar="COLUMN", help="the column with the results (a study: its first metric)")
    parser.add_argument("--by", metavar="COLUMN", help="the column that tells the approaches apart")
    parser.add_argument("--task", metavar="COLUMN", help="the column of tasks: every approach was run on each")
    parser.add_argument("--pair", metavar="COLUMN", help="runs with the same label here belong together (a seed)")
    parser.add_argument("--direction", choices=("higher", "lower"), help="which is better (default: as the name tells)")
    parser.add_argument("--statistic", default="iqm", metavar="NAME", help="iqm, mean or median (default: iqm)")
    parser.add_argument(
        "--post-hoc",
        metavar="NAME",
        help="brunner-munzel, dunn, mann-whitney; with --task or --pair nemenyi, conover, wilcoxon",
    )
    parser.add_argument("--adjust", default="holm", metavar="METHOD", help="of p: holm, bh or none (default: holm)")
    parser.add_argument("--best-of", type=int, default=5, metavar="K", help="expected best of K runs (default: 5)")
    parser.add_argument("--repetitions", type=int, default=5000, metavar="N", help="of the bootstrap (default: 5000)")
    cli.declare_figure(parser, "mean ranks, and who cannot be told apart")
    parser.add_argument("--matrix", metavar="FILE", help="draw how often one approach beats another")
    parser.add_argument("--profiles", metavar="FILE", help="draw the share of runs above every score")


def execute(options: argparse.Namespace) -> int:
    """Rank and print."""
    from isorun.questions import rank
    from isorun.report.leaderboards import leaderboard_view

    found = cli.load_results(options)
    board = rank(
        found,
        value=options.value,
        by=options.by,
        task=options.task,
        pair=options.pair,
        where=cli.where(options),
        drop_missing=options.drop_missing,
        unit=options.unit,
        direction=options.direction,
        post_hoc=options.post_hoc,
        adjust=options.adjust,
        statistic=options.statistic,
        best_of=options.best_of,
        repetitions=options.repetitions,
    )
    _draw(found, board, options)
    cli.answer(board, leaderboard_view, options)
    return 0


def _draw(found: Results, board: Leaderboard, options: argparse.Namespace) -> None:
    from isorun.analysis.leaderboards.leaderboard import profiles
    from isorun.questions import Asked, board_of
    from isorun.report.figures.files import save_figure
    from isorun.report.figures.leaderboards import critical_difference, improvement_matrix, performance_profiles

    if options.figure:
        save_figure(critical_difference(board.compared), options.figure)
    if options.matrix:
        save_figure(improvement_matrix(board.improvements), options.matrix)
    if options.profiles:
        asked = Asked(
            options.value,
            options.by,
            cli.where(options),
            options.unit,
            options.drop_missing,
            options.pair,
            options.task,
        )
        drawn = profiles(board_of(found, asked).scores)
        save_figure(performance_profiles(drawn, found.value(options.value)), options.profiles)
