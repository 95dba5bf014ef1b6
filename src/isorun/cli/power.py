"""How many runs does a difference of this size take, and what could these runs have seen?

isorun power --effect 1.0                              runs a side for one standard deviation
isorun power --runs 10                                 the smallest difference 10 runs a side can see
isorun power --effect 1.0 --figure power.svg           how the chance grows with the runs
isorun power runs.csv --value accuracy --by setting --a base --difference 0.005 --test sequential
"""

from __future__ import annotations

import argparse

from isorun import cli
from isorun.errors import UsageError

__all__ = ["declare", "execute"]

_TESTS = "brunner-munzel (default: what compare judges by), sequential (decide), mann-whitney, welch, paired-t"


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    cli.declare_table(parser, optional=True)
    parser.add_argument("--value", metavar="COLUMN", help="the column with the results (a study: its first metric)")
    parser.add_argument("--by", metavar="COLUMNS", help="the column that tells the approaches apart")
    parser.add_argument(
        "--a", metavar="LABEL", help="the runs to simulate from (default: all, if they are of one group)"
    )
    parser.add_argument("--b", metavar="LABEL", help="the runs of the other side, when they differ in spread")
    parser.add_argument("--pair", metavar="COLUMN", help="for paired tests: runs with the same label belong together")
    parser.add_argument("--difference", type=float, metavar="X", help="to be seen, in units of the metric")
    parser.add_argument("--effect", type=float, metavar="D", help="to be seen, in standard deviations")
    parser.add_argument("--runs", type=int, metavar="N", help="runs a side")
    parser.add_argument("--power", type=float, default=0.8, metavar="P", help="chance to see it (default: 0.8)")
    parser.add_argument("--test", default="brunner-munzel", metavar="NAME", help=_TESTS)
    parser.add_argument("--alpha", type=float, default=0.05, metavar="P", help="error rate (default: 0.05)")
    parser.add_argument("--sd", type=float, metavar="X", help="of a run, when there are no runs to simulate from")
    cli.declare_figure(parser, "the chance by the number of runs")


def execute(options: argparse.Namespace) -> int:
    """Answer and print."""
    from isorun.questions import power
    from isorun.report.comparisons import power_view

    if options.runs is None and options.difference is None and options.effect is None:
        allowed = "--difference or --effect (runs needed), or --runs (what they see)"
        raise UsageError("what is asked for?", allowed=allowed)
    result = power(
        None if options.data is None else cli.load_results(options),
        value=options.value,
        by=options.by,
        a=options.a,
        b=options.b,
        pair=options.pair,
        where=cli.where(options),
        drop_missing=options.drop_missing,
        unit=options.unit,
        runs=options.runs,
        difference=options.difference,
        effect_size=options.effect,
        power=options.power,
        test=options.test,
        alpha=options.alpha,
        sd=options.sd,
    )
    if options.figure:
        from isorun.report.figures.files import save_figure
        from isorun.report.figures.power_curves import power_figure

        save_figure(power_figure(result), options.figure)
    cli.answer(result, power_view, options)
    return 0
