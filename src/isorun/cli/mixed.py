"""Where the variance comes from: a mixed model with random intercepts and slopes, tested as R does.

isorun mixed runs.csv "accuracy ~ experiment + (1|seed) + (1|repeat)"
isorun mixed runs.csv "accuracy ~ model + lr + (1 + lr|seed)" --adjust dunnett --control base
isorun mixed runs.csv "accuracy ~ experiment + (1|seed) + (1|repeat)" --hypotheses --rerun A=B
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from isorun import cli
from isorun.errors import UsageError

if TYPE_CHECKING:
    from isorun.analysis.mixed.hypotheses import Hypotheses
    from isorun.analysis.mixed.result import MixedResult

__all__ = ["declare", "execute"]


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    cli.declare_table(parser, judges=False)
    parser.add_argument("formula", metavar="FORMULA", help='such as "accuracy ~ experiment + (1|seed) + (1|repeat)"')
    parser.add_argument("--ml", action="store_true", help="maximum likelihood instead of REML")
    parser.add_argument(
        "--ddf", choices=("satterthwaite", "kenward-roger"), default="satterthwaite", help="of F tests and differences"
    )
    parser.add_argument(
        "--adjust",
        default="holm",
        metavar="METHOD",
        help="of the differences' p and intervals: tukey, dunnett, holm, bonferroni, bh or none (default: holm)",
    )
    parser.add_argument("--control", metavar="LABEL", help="compare with this level alone (dunnett, holm, …)")
    parser.add_argument("--hypotheses", action="store_true", help="judge repeats (H1), seeds (H2) and reruns (H3)")
    parser.add_argument("--seed-term", default="seed", metavar="GROUP", help="the random effect of seeds")
    parser.add_argument("--repeat-term", default="repeat", metavar="GROUP", help="the random effect of repeats")
    parser.add_argument(
        "--rerun", action="append", default=[], metavar="A=B", help="levels that are reruns of each other, for H3"
    )
    cli.declare_figure(parser, "every source's share of the variance")


def execute(options: argparse.Namespace) -> int:
    """Fit, test and print."""
    from isorun.analysis.mixed.hypotheses import variance_shares
    from isorun.questions import mixed_model
    from isorun.report.mixed_models import mixed_view

    result = mixed_model(
        cli.load_results(options),
        options.formula,
        where=cli.where(options),
        reml=not options.ml,
        ddf=options.ddf,
        adjust=options.adjust,
        control=options.control,
        drop_missing=options.drop_missing,
    )
    shares = variance_shares(result) if result.random else ()
    judged = _hypotheses(result, options) if options.hypotheses else None
    if options.figure and shares:
        from isorun.report.figures.effects import shares_figure
        from isorun.report.figures.files import save_figure

        save_figure(shares_figure(shares), options.figure)
    if options.json:
        cli.print_json(_json(result, shares, judged))
    else:
        cli.show(mixed_view(result, shares, judged))
    return 0


def _hypotheses(result: MixedResult, options: argparse.Namespace) -> Hypotheses:
    from isorun.analysis.mixed.hypotheses import hypotheses

    groups = {effect.group for effect in result.random}
    reruns = [text.partition("=") for text in options.rerun]
    if any(not sign for _, sign, _ in reruns):
        raise UsageError("--rerun needs A=B, the labels of two levels", found=", ".join(options.rerun))
    return hypotheses(
        result,
        repeat=options.repeat_term if options.repeat_term in groups else None,
        seed=options.seed_term if options.seed_term in groups else None,
        reruns=[(a, b) for a, _, b in reruns],
    )


def _json(result: MixedResult, shares: Any, judged: Hypotheses | None) -> dict[str, Any]:
    from dataclasses import asdict

    from isorun.analysis.mixed.checks import drawn_in

    further = {
        **asdict(drawn_in(result)),
        "variance_shares": [asdict(item) for item in shares],
    }
    return {**result.to_json(), **further, **({"hypotheses": asdict(judged)} if judged else {})}
