"""What exactly changed the result? The effect of every factor of a study against its baseline.

isorun run factors.toml && isorun factors factors.toml
isorun factors factors.toml --where approach=lenet --figure effects.svg
isorun factors factors.toml --unit question      over test questions, where runs kept their predictions with labels

Seeds are paired with those of the baseline, and a seed counts once. Exit code 3 when a difference is told.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from isorun import cli
from isorun.errors import InputError

if TYPE_CHECKING:
    from isorun.analysis.factors import FactorEffects

__all__ = ["declare", "execute"]

_TOLD = 3


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    cli.declare_table(parser)
    parser.add_argument("--value", metavar="COLUMN", help="the metric (default: the study's first)")
    parser.add_argument("--html", metavar="FILE", help="write the answer with its figures as one page")
    cli.declare_figure(parser, "the effects with their intervals")
    parser.add_argument("--change", metavar="FILE", help="draw how the seeds change under the largest effect")


def execute(options: argparse.Namespace) -> int:
    """Attribute and print; 3 where a difference is told."""
    from isorun.questions import factors
    from isorun.report.factors import factors_view

    if options.metric:
        options.value, _ = cli.named_metric(options.metric)
    found = factors(
        options.data,
        value=options.value,
        where=cli.where(options),
        drop_missing=options.drop_missing,
        unit=options.unit,
        store=options.store,
        selection=options.selection,
    )
    _draw(found, options)
    cli.answer(found, factors_view, options)
    return _TOLD if found.difference_told else 0


def _draw(found: FactorEffects, options: argparse.Namespace) -> None:
    from isorun.report.factors import change_figure, effects_figure, factors_view
    from isorun.report.figures.files import save_figure

    if options.figure:
        save_figure(effects_figure(found), options.figure)
    if options.change:
        figure = change_figure(found)
        if figure is None:
            raise InputError("there is no change to draw", found="no seed that both sides have", hint="isorun report")
        save_figure(figure, options.change)
    if options.html:
        from isorun.report import html

        page = html.render_view(found.study, "isorun factors", factors_view(found, figures=True))
        cli.write_file(options.html, page, "html")
