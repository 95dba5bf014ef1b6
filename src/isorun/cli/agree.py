"""Do devices, environments or metrics put the same runs in the same order, and how many digits does the noise support?

isorun agree runs.csv --value accuracy --by device --pair seed
isorun agree runs.csv --value accuracy --by device --pair seed --a cpu --b gpu --figure change.svg
isorun agree runs.csv --value dev_f1,test_f1          two metrics of the same runs
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from isorun import cli
from isorun.errors import InputError

if TYPE_CHECKING:
    from isorun.analysis.agreements.shared_runs import AgreementTable

__all__ = ["declare", "execute"]


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    cli.declare_table(parser)
    parser.add_argument("--value", metavar="COLUMNS", help="the column with the results, or several with commas")
    parser.add_argument("--by", metavar="COLUMN", help="the column that tells devices or environments apart")
    parser.add_argument("--pair", metavar="COLUMN", help="runs with the same label here belong together (a seed)")
    parser.add_argument("--a", metavar="LABEL", help="only this one")
    parser.add_argument("--b", metavar="LABEL", help="and this one")
    parser.add_argument("--direction", choices=("higher", "lower"), help="which is better (default: as the name tells)")
    parser.add_argument(
        "--decimals", type=int, metavar="N", help="of published means (default: what the noise supports)"
    )
    cli.declare_figure(parser, "the change of every run between two sides")


def execute(options: argparse.Namespace) -> int:
    """Compare the orders and print."""
    from isorun.questions import agree
    from isorun.report.agreements import agreement_view

    result = agree(
        cli.load_results(options),
        value=options.value,
        by=options.by,
        pair=options.pair,
        sides=[side for side in (options.a, options.b) if side],
        direction=options.direction,
        decimals=options.decimals,
        where=cli.where(options),
        drop_missing=options.drop_missing,
        unit=options.unit,
    )
    if options.figure:
        _draw(result, options)
    cli.answer(result, agreement_view, options)
    return 0


def _draw(result: AgreementTable, options: argparse.Namespace) -> None:
    from isorun.report.figures.effects import paired_change
    from isorun.report.figures.files import save_figure

    if len(result.pairs) != 1:
        names = ", ".join(result.digits)
        raise InputError("the change of runs is drawn between two sides", found=names, hint="name them: --a, --b")
    shared = result.pairs[0]
    sides = shared.agreement.a, shared.agreement.b
    value = options.value or "value"
    save_figure(paired_change(shared.pairs, *sides, value, labels=shared.labels), options.figure)
