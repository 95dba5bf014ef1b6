"""Is A better than B? Every test, effect and interval of two sets of runs, and a verdict.

isorun compare runs.csv --value accuracy --by setting --a base --b new
isorun compare runs.csv --value accuracy --by setting --a base --b new --pair seed
isorun compare study.toml
isorun compare study.toml --baseline resnet56.isorun       stored runs, which are not made again

The verdict is one test of all units, which holds its error rate when their number was set beforehand; to look again and
again while runs come in, use isorun decide. With --pair it is about the differences of the runs that belong together.

--baseline is a store, a package, a study, a table or registry:OWNER/PROJECT/NAME@VERSION, whose runs enter the verdict
as they are kept. What is not comparable (metric, data, split, level, class of the environment) is refused, and --anyway
turns that into a warning.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from isorun import cli
from isorun.errors import UsageError

if TYPE_CHECKING:
    from isorun.analysis.comparison import Comparison

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
    group = parser.add_argument_group("against stored runs")
    about = "runs that enter the verdict as they are kept: a store, a package, a study, a table, registry:…"
    group.add_argument("--baseline", metavar="BASELINE", help=about)
    group.add_argument(
        "--baseline-study", metavar="NAME", help="the study that is meant, where the baseline has several"
    )
    about = "the group of the baseline that is meant"
    group.add_argument("--baseline-where", action="append", default=[], metavar="FACTOR=LABEL", help=about)
    about = "compare although data, split, level or environment differ, and say so"
    group.add_argument("--anyway", action="store_true", help=about)
    cli.declare_figure(parser, "the runs of both sides as boxes and points")


def execute(options: argparse.Namespace) -> int:
    """Compare and print."""
    from isorun.report.comparisons import comparison_view

    result, metric = _against_baseline(options) if options.baseline else _compared(options)
    if options.figure:
        from isorun.report.figures.distributions import strip
        from isorun.report.figures.files import save_figure

        sides = {side.name: side.values for side in (result.a, result.b)}
        save_figure(strip(sides, metric), options.figure)
    cli.answer(result, comparison_view, options)
    return 3 if options.exit_code and result.verdict.endswith("better") else 0


def _compared(options: argparse.Namespace) -> tuple[Comparison, str]:
    """Both sides are in the data."""
    from isorun.questions import compare

    if options.anyway or options.baseline_where or options.baseline_study:
        raise UsageError("that belongs to a comparison with stored runs", hint="--baseline BASELINE names them")
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
    return result, found.value(options.value)


def _against_baseline(options: argparse.Namespace) -> tuple[Comparison, str]:
    """One side is the study, the other one is stored."""
    from isorun.analysis.comparison import Extras
    from isorun.comparing import compare_with

    if options.unit:
        raise UsageError("stored runs are counted by what was drawn", found=f"--unit {options.unit}")
    if options.metric:
        options.value, direction = cli.named_metric(options.metric)
        options.direction = direction or options.direction
    result = compare_with(
        options.data,
        options.baseline,
        value=options.value,
        by=options.by,
        a=options.a,
        b=options.b,
        where=cli.where(options),
        baseline_where=cli.labels("--baseline-where", options.baseline_where),
        baseline_study=options.baseline_study,
        pair=options.pair,
        direction=options.direction,
        drop_missing=options.drop_missing,
        margin=options.margin,
        test=options.test,
        extras=Extras(tuple(options.also), options.rope, options.correlation),
        store=options.store,
        selection=options.selection,
        anyway=options.anyway,
    )
    return result, result.metric
