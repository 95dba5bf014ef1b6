"""Is A better than B? Every test, effect and interval of two sets of runs, and a verdict.

isorun compare runs.csv --value accuracy --by setting --a base --b new
isorun compare runs.csv --value accuracy --by setting --a base --b new --pair seed
isorun compare study.toml

The verdict is one test of all units, which holds its error rate when their number was set beforehand; to look again and
again while runs come in, use isorun decide. With --pair it is about the differences of the runs that belong together.
"""

from __future__ import annotations

import argparse

from isorun import cli

__all__ = ["declare", "execute"]


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    cli.declare_table(parser)
    parser.add_argument("--value", metavar="COLUMN", help="the column with the results (a study: its first metric)")
    parser.add_argument("--by", metavar="COLUMNS", help="the column that tells the approaches apart")
    parser.add_argument("--a", metavar="LABEL", help="the one")
    parser.add_argument("--b", metavar="LABEL", help="the other")
    parser.add_argument("--pair", metavar="COLUMN", help="runs with the same label here belong together (a seed)")
    parser.add_argument(
        "--test", metavar="NAME", help="brunner-munzel (default: spreads may differ), mann-whitney; pairs: signed-rank"
    )
    parser.add_argument(
        "--also",
        action="append",
        default=[],
        metavar="NAME",
        help="beside the verdict: aso; of pairs bayesian-signed-rank, bayesian-correlated-t; may be repeated",
    )
    parser.add_argument("--rope", type=float, default=0.0, metavar="X", help="for --also bayesian-…: equal within this")
    parser.add_argument(
        "--correlation", type=float, default=0.0, metavar="R", help="for --also bayesian-correlated-t: 1 / folds"
    )
    parser.add_argument("--direction", choices=("higher", "lower"), help="which is better (default: as the name tells)")
    parser.add_argument(
        "--margin", type=float, metavar="X", help="a difference that does not matter: allows equivalent"
    )
    parser.add_argument(
        "--exit-code", action="store_true", help="exit with 3 when a difference was found, for use in scripts"
    )
    cli.declare_figure(parser, "the runs of both sides as boxes and points")


def execute(options: argparse.Namespace) -> int:
    """Compare and print."""
    from isorun.questions import compare
    from isorun.report.comparisons import comparison_view

    found = cli.load_results(options)
    result = compare(
        found,
        value=options.value,
        by=options.by,
        a=options.a,
        b=options.b,
        pair=options.pair,
        direction=options.direction,
        where=cli.where(options),
        drop_missing=options.drop_missing,
        unit=options.unit,
        margin=options.margin,
        test=options.test,
        also=options.also,
        rope=options.rope,
        correlation=options.correlation,
    )
    if options.figure:
        from isorun.report.figures.distributions import strip
        from isorun.report.figures.files import save_figure

        sides = {side.name: side.values for side in (result.a, result.b)}
        save_figure(strip(sides, found.value(options.value)), options.figure)
    cli.answer(result, comparison_view, options)
    return 3 if options.exit_code and result.verdict.endswith("better") else 0
