"""Is a claimed gain above the known noise of single runs, and how many runs would show it?

isorun claim --model wrn-28-10 --data cifar100 --gain 0.8      by the spreads that papers published
isorun claim --study study.toml --model new --gain 0.8         by runs of your own
isorun claim --list                                            which spreads are published, and where

A gain is in points (80.0 % to 80.8 % is 0.8) or a share (0.800 to 0.808 is 0.008), as the source has it or --unit says.
It is above the noise when two runs of the same training differ by as much in less than 5 % of pairs. A model or data
set that is not known is refused, with the nearest ones.
"""

from __future__ import annotations

import argparse

from isorun import cli
from isorun.errors import UsageError

__all__ = ["declare", "execute"]


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    parser.add_argument("--gain", metavar="X", help="the claimed gain, a number; its unit is --unit")
    parser.add_argument("--unit", choices=("points", "share"), help="of the gain (default: that of the source)")
    parser.add_argument("--model", metavar="NAME", help="what was trained; with --study the approach")
    parser.add_argument("--data", metavar="NAME", help="the data set it was trained on")
    parser.add_argument(
        "--metric", metavar="NAME", help="the metric of the gain (default: accuracy; a study: its first)"
    )
    about = "noise of this level: default (all that differs) or fixed-seed (default: default where it is known)"
    parser.add_argument("--level", metavar="LEVEL", help=about)
    about = "the gain is one of means of N runs each side (default: 1, single runs)"
    parser.add_argument("--runs", type=int, default=1, metavar="N", help=about)
    parser.add_argument("--similar", action="store_true", help="take the nearest training that is known, and say so")
    parser.add_argument("--study", metavar="NAME|FILE", help="your own runs: a study, its name, or a table of results")
    parser.add_argument(
        "--where", action="append", default=[], metavar="COLUMN=LABEL", help="with --study: only runs with this label"
    )
    parser.add_argument("--selection", metavar="NAME", help="with --study: which epoch runs are judged at")
    parser.add_argument("--store", metavar="FOLDER|URL", help="with --study: where records are kept")
    parser.add_argument("--power", type=float, default=0.8, metavar="P", help="chance to see the gain (default: 0.8)")
    parser.add_argument("--alpha", type=float, default=0.05, metavar="P", help="error rate (default: 0.05)")
    parser.add_argument("--list", action="store_true", help="list the published spreads")
    cli.declare_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Judge the gain, or list what is known."""
    if options.list:
        return _list(options)
    gain = _gain(options.gain)
    if options.model is None and options.study is None:
        hint = "isorun claim --list shows the published ones"
        raise UsageError("whose noise?", found="neither", allowed="--model with --data, or --study", hint=hint)
    for name in ("where", "selection", "store"):
        if getattr(options, name) and options.study is None:
            raise UsageError(f"--{name} belongs to --study", hint="isorun claim --study NAME …")
    if options.similar and options.study is not None:
        raise UsageError("--similar looks among published spreads, and --study takes your own", found="both")
    from isorun.claiming import claim
    from isorun.showing import view_of

    result = claim(
        gain,
        model=options.model,
        data=options.data,
        metric=options.metric,
        unit=options.unit,
        level=options.level,
        runs=options.runs,
        similar=options.similar,
        study=options.study,
        where=cli.where(options) or None,
        alpha=options.alpha,
        power=options.power,
        store=options.store,
        selection=options.selection,
    )
    cli.answer(result, view_of, options)
    return 0


def _gain(text: str | None) -> float:
    if text is None:
        raise UsageError("--gain is needed", found="none", hint="isorun claim --model NAME --data NAME --gain 0.8")
    try:
        return float(text)
    except ValueError:
        raise UsageError(
            "--gain takes a number", found=text, allowed="0.8, with --unit points or --unit share"
        ) from None


def _list(options: argparse.Namespace) -> int:
    from isorun.analysis.planning.claims import published_noise

    if options.json:
        cli.print_json({"spreads": [item.to_json() for item in published_noise()]})
        return 0
    from isorun.report.claims import spreads_view

    cli.show(spreads_view(published_noise()))
    return 0
