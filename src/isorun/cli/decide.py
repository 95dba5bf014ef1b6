"""Run more until the verdict is in, or the budget is out.

isorun decide study.toml                               the two approaches of a study
isorun decide study.toml --a base --b new --where level=default --max-runs 40
isorun decide -- python a.py --vs- python b.py         two commands, without writing a file

Looks after every run, by a sequential rank test whose error rate holds however often it looks; --method naive is the
plain test at every look, with the error rate it really has. --pair runs both sides with the same seeds, and judges
their differences. What counts is units: a seed, or at level default a run, that was drawn independently. The plan
(budget, test, error rate) is declared before the first look; what is not typed later stays as it was declared.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Final

from isorun import cli
from isorun.errors import UsageError

if TYPE_CHECKING:
    from isorun.study.design import Study

__all__ = ["declare", "execute"]

_VERSUS: Final = "--vs-"


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    parser.usage = "isorun decide [options] STUDY.toml | isorun decide [options] -- COMMAND … --vs- COMMAND …"
    parser.add_argument("data", nargs="?", metavar="STUDY", help="a study file, or the name of an earlier study")
    parser.set_defaults(takes_command=True)
    parser.add_argument("--by", metavar="FACTOR", help="approach, config, environment or level (default: what varies)")
    parser.add_argument("--a", metavar="LABEL", help="the one")
    parser.add_argument("--b", metavar="LABEL", help="the other")
    parser.add_argument(
        "--where", action="append", default=[], metavar="FACTOR=LABEL", help="keep another factor fixed"
    )
    parser.add_argument("--value", metavar="METRIC", help="the metric (default: the study's first)")
    parser.add_argument("--direction", choices=("higher", "lower"), help="which is better (default: as the study says)")
    parser.add_argument(
        "--unit", metavar="WORD", help="repeat: ask about one seed alone, whose runs then count each (default: seeds)"
    )
    parser.add_argument(
        "--pair", nargs="?", const="seed", metavar="seed", help="run both sides with the same seeds; judge differences"
    )
    parser.add_argument("--selection", metavar="NAME", help="which epoch runs are judged at (default: its first)")
    parser.add_argument(
        "--margin", type=float, metavar="X", help="a difference that does not matter: allows equivalent"
    )
    parser.add_argument(
        "--max-runs",
        type=_budget,
        metavar="N",
        help="the budget a side; 0: none; 30,60,120: stages that may be gone on to (default: 30)",
    )
    parser.add_argument(
        "--test", metavar="NAME", help="brunner-munzel (default: spreads may differ), mann-whitney; pairs: signed-rank"
    )
    parser.add_argument("--min-runs", type=int, metavar="N", help="before the first look (default: 5)")
    parser.add_argument("--method", metavar="NAME", help="sequential, e-process, naive or fixed")
    about = "power-1.5 (default), pocock or obrien-fleming"
    parser.add_argument("--spending", metavar="NAME", help=about)
    parser.add_argument("--alpha", type=float, metavar="P", help="error rate (default: 0.05)")
    parser.add_argument("--no-futility", action="store_true", help="go on even when it looks hopeless")
    parser.add_argument("-j", "--jobs", type=int, metavar="N", help=cli.JOBS_HELP)
    parser.add_argument("--launch", choices=("auto", "warm", "fresh"), default="auto", help="warm: fork from a server")
    cli.declare_isolate(parser)
    cli.declare_session(parser)
    parser.add_argument("--exit-code", action="store_true", help="exit with 3 when a difference was found")
    cli.declare_command(parser)
    cli.declare_figure(parser, "the path of the statistic between its boundaries")
    cli.declare_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Run, look, and print the verdict."""
    from isorun import workflow
    from isorun.cli.progress import Progress
    from isorun.deciding import StudyDecision, decide
    from isorun.report.comparisons import decision_view
    from isorun.scheduling import INTERRUPTED

    with (
        workflow.opened(_source(options), options.store) as (loaded, store),
        Progress(loaded, sys.stderr) as progress,
    ):
        result = decide(
            cli.with_policy(loaded, options),
            by=options.by,
            a=options.a,
            b=options.b,
            where=cli.where(options),
            value=options.value,
            direction=options.direction,
            selection=options.selection,
            unit=options.unit,
            pair=options.pair,
            observer=progress,
            margin=options.margin,
            max_runs=options.max_runs,
            test=options.test,
            min_runs=options.min_runs,
            method=options.method,
            spending=options.spending,
            alpha=options.alpha,
            futility=False if options.no_futility else None,
            keep_study=bool(options.command),
            **{**cli.session_options(options), "store": store},
        )
    assert isinstance(result, StudyDecision)
    if options.figure:
        from isorun.report.figures.decision_paths import sequential_path
        from isorun.report.figures.files import save_figure

        save_figure(sequential_path(result.decision, result.a, result.b), options.figure)
    if options.json:
        cli.print_json(result.to_json())
    else:
        cli.show(decision_view(result.decision, result.a, result.b, units=result.units, warnings=result.conditions))
    if result.stopped == INTERRUPTED:
        return 130
    return 3 if options.exit_code and str(result.decision.verdict).endswith("better") else 0


def _budget(text: str) -> int | list[int]:
    """A number of runs a side, or several: the stages of a plan, declared before its first look."""
    numbers = [int(part) for part in text.split(",") if part.strip().isdecimal()]
    if len(numbers) != text.count(",") + 1 or (len(numbers) > 1 and 0 in numbers):
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a number of runs nor several with commas: 30, or 30,60,120"
        )
    return numbers[0] if len(numbers) == 1 else numbers


def _source(options: argparse.Namespace) -> Study | str:
    """The study of two commands, or the name of one."""
    examples = "isorun decide study.toml, or isorun decide -- python a.py --vs- python b.py"
    if not cli.study_or_command(options, options.data, examples, allowed=("metrics",)):
        for text in (options.metrics or [])[:1]:
            options.value, direction = cli.named_metric(text)
            options.direction = direction or options.direction
        return str(options.data)
    words = options.command
    if words.count(_VERSUS) != 1 or words[0] == _VERSUS or words[-1] == _VERSUS:
        raise UsageError("two commands are compared", found=" ".join(words), hint=f"COMMAND … {_VERSUS} COMMAND …")
    middle = words.index(_VERSUS)
    if options.pair and not options.levels:
        options.levels = ["fixed-seed"]
    return cli.study_of([words[:middle], words[middle + 1 :]], options)
