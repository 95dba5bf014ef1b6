"""The environment of a run in one sentence for a paper, and what differs between those of two runs.

isorun env describe                      this machine and the python of the PATH; nothing is trained
isorun env describe 3f0c9a1b             a run, by its id or the start of it, as isorun run --json lists them
isorun env describe 3f0c9a1b --latex     the same for a paper: a sentence and a table
isorun env diff 3f0c9a1b 77aa            what differs, the most suspicious first; exit code 3 if it can change numbers
isorun env diff 3f0c 77aa --store here/.isorun --store there/.isorun    a run from each of two stores

What isorun asked for and what libraries answered are both compared. Secrets are never shown.
"""

from __future__ import annotations

import argparse

from isorun import cli
from isorun.errors import UsageError

__all__ = ["declare", "execute"]

_DIFFERS = 3


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    parser.add_argument("action", choices=("describe", "diff"), help="what to do")
    parser.add_argument("runs", nargs="*", metavar="RUN", help="ids of runs, or the starts of ids")
    about = "where records are kept (default: .isorun); of diff a second time for the second run"
    parser.add_argument("--store", dest="stores", action="append", default=[], metavar="FOLDER|URL", help=about)
    parser.add_argument("--latex", action="store_true", help="describe: print LaTeX (booktabs)")
    about = "describe without a run: the interpreter to describe (default: python)"
    parser.add_argument("--python", metavar="PATH", help=about)
    cli.declare_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Describe, or tell differences; 3 where one can change numbers."""
    return _diff(options) if options.action == "diff" else _describe(options)


def _describe(options: argparse.Namespace) -> int:
    if len(options.runs) > 1:
        raise UsageError("describe takes one run", found=" ".join(options.runs), hint="isorun env diff RUN1 RUN2")
    if len(options.stores) > 1:
        raise UsageError("describe takes one store", found=" ".join(options.stores))
    if options.latex and options.json:
        raise UsageError("--latex prints LaTeX and --json prints JSON", found="both", hint="choose one of them")
    if options.runs and options.python:
        hint = "isorun env describe --python PATH, without a run"
        raise UsageError("a run has its own interpreter", found=f"--python {options.python}", hint=hint)
    from isorun.describing import env_describe
    from isorun.report.environments import description_latex, description_view

    store = options.stores[0] if options.stores else None
    found = env_describe(*options.runs, store=store, python=options.python)
    if options.latex:
        cli.show_text(description_latex(found))
    else:
        cli.answer(found, description_view, options)
    return 0


def _diff(options: argparse.Namespace) -> int:
    if len(options.runs) != 2 or len(options.stores) > 2:
        found = " ".join([*options.runs, *(f"--store {place}" for place in options.stores)]) or "none"
        raise UsageError(
            "diff takes two runs, and one store or two", found=found, hint="isorun run --json lists the runs of a study"
        )
    if options.latex or options.python:
        raise UsageError("--latex and --python belong to describe", hint="isorun env describe RUN --latex")
    from isorun.describing import env_diff
    from isorun.report.environments import diff_view

    first, second = options.runs
    stores = dict(zip(("store", "second_store"), options.stores, strict=False))
    told = env_diff(first, second, **stores)
    cli.answer(told, diff_view, options)
    return _DIFFERS if told.is_numeric else 0
