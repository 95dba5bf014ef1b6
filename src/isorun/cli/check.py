"""Is a change worse than its baseline by more than a margin? For CI.

isorun check study.toml --baseline .isorun-main --margin 0.5
isorun check study.toml --baseline main.csv --margin 0.5 --markdown comment.md
isorun check study.toml --baseline main.isorun --margin 0.5
isorun check study.toml --baseline postgresql://lab/isorun --no-run --json

Runs what is missing of the study, then holds each of its groups against the same group of the baseline. Both claims,
worse and not worse, err in at most 5 % of checks; in between it is undecided, and says about how many more runs would
settle it. The margin is in points for accuracies, else in the metric's own numbers. The baseline is a store, a
package, a study file, the name of a kept study, or a table of runs. Exits with 3 when it is worse, 1 when runs failed,
else 0; --strict exits with 3 as well where nothing is shown.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from isorun import cli
from isorun.errors import InputError, UsageError

if TYPE_CHECKING:
    from isorun.analysis.checks import Check

__all__ = ["declare", "execute"]


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    parser.add_argument("study", metavar="STUDY", help="a study file, or the name of an earlier study")
    about = (
        "what it is held against: a store (folder or URL), a package, a study file, the name of a kept study, or a "
        "table of runs"
    )
    parser.add_argument("--baseline", required=True, metavar="BASELINE", help=about)
    about = "the study that is meant, where the baseline keeps it under another name"
    parser.add_argument("--baseline-study", metavar="NAME", help=about)
    parser.add_argument(
        "--margin", type=float, default=0.0, metavar="X", help="a drop that does not matter (default: 0)"
    )
    about = "points: hundredths of a share or of a percentage; metric: its own numbers (default: points for accuracies)"
    parser.add_argument("--margin-unit", choices=("points", "metric"), help=about)
    parser.add_argument("--metric", metavar="NAME[:lower|:higher]", help="what is judged (default: the study's first)")
    parser.add_argument("--direction", choices=("higher", "lower"), help="which is better (default: as the study says)")
    parser.add_argument(
        "--where", action="append", default=[], metavar="FACTOR=LABEL", help="only groups with this label"
    )
    parser.add_argument("--selection", metavar="NAME", help="which epoch runs are judged at (default: its first)")
    about = "hold the same seeds against each other (default: where both sides have the same ones)"
    parser.add_argument("--pair", action=argparse.BooleanOptionalAction, default=None, help=about)
    parser.add_argument("--alpha", type=float, default=0.05, metavar="P", help="error rate of a claim (default: 0.05)")
    parser.add_argument("--other-data", action="store_true", help="judge although the data differ from the baseline's")
    parser.add_argument("--no-run", action="store_true", help="run nothing: judge what is recorded")
    parser.add_argument("--strict", action="store_true", help="exit with 3 unless it is shown not to be worse")
    parser.add_argument("--markdown", metavar="FILE", help="write the comment for a pull request")
    about = "add that comment to the summary of a GitHub step ($GITHUB_STEP_SUMMARY)"
    parser.add_argument("--step-summary", action="store_true", help=about)
    parser.add_argument("-j", "--jobs", type=int, metavar="N", help=cli.JOBS_HELP)
    parser.add_argument("--launch", choices=("auto", "warm", "fresh"), default="auto", help="warm: fork from a server")
    cli.declare_isolate(parser)
    cli.declare_session(parser)
    cli.declare_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Run, judge, and print."""
    from isorun import workflow
    from isorun.checking import check
    from isorun.cli.progress import Progress
    from isorun.showing import view_of

    if options.metric:
        options.metric, direction = cli.named_metric(options.metric)
        options.direction = direction or options.direction
    summary = _summary_file(options)
    with workflow.opened(options.study, options.store) as (loaded, store), Progress(loaded, sys.stderr) as progress:
        result = check(
            cli.with_policy(loaded, options),
            options.baseline,
            margin=options.margin,
            margin_unit=options.margin_unit,
            metric=options.metric,
            direction=options.direction,
            where=cli.where(options),
            selection=options.selection,
            pair=options.pair,
            alpha=options.alpha,
            run=not options.no_run,
            other_data=options.other_data,
            baseline_study=options.baseline_study,
            observer=progress,
            command=_typed(options),
            **{**cli.session_options(options), "store": store},
        )
    _write_comment(result, options.markdown, summary)
    cli.answer(result, view_of, options)
    return result.exit_code(strict=options.strict)


def _typed(options: argparse.Namespace) -> str:
    """The command that repeats the check, without what it only writes."""
    import shlex

    words = ["isorun", "check", options.study, "--baseline", options.baseline, "--margin", f"{options.margin:g}"]
    for name in ("margin_unit", "metric", "direction", "selection", "baseline_study", "store"):
        if getattr(options, name):
            words += [f"--{name.replace('_', '-')}", getattr(options, name)]
    words += [word for text in options.where for word in ("--where", text)]
    words += [] if options.pair is None else ["--pair" if options.pair else "--no-pair"]
    words += [f"--{name.replace('_', '-')}" for name in ("other_data", "no_run", "strict") if getattr(options, name)]
    words += [] if options.alpha == 0.05 else ["--alpha", f"{options.alpha:g}"]
    return shlex.join(words)


def _summary_file(options: argparse.Namespace) -> str:
    """Where GitHub reads a step's summary from; refused before hours of runs where there is no such place."""
    if not options.step_summary:
        return ""
    place = os.environ.get("GITHUB_STEP_SUMMARY", "")
    if not place:
        raise UsageError("--step-summary is for a step of GitHub Actions", found="GITHUB_STEP_SUMMARY is not set")
    return place


def _write_comment(result: Check, markdown: str | None, summary: str) -> None:
    """The comment as a file of its own, and at the end of what the step's summary holds already."""
    from isorun.report.checks import check_comment

    if markdown:
        cli.write_file(markdown, check_comment(result), "markdown")
    if summary:
        try:
            with Path(summary).open("a", encoding="utf-8") as kept:
                kept.write(check_comment(result))
        except OSError as error:
            raise InputError(f"{summary!r} cannot be written: {error.strerror or error}") from None
