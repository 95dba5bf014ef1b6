"""What is wrong with an AutoML search, why, and what to try next; and going on with it, repaired.

isorun repair sqlite:///study.db --study NAME          a finished, running or killed search
isorun repair journal:study.log --study NAME --target 0.9 --patience 20 --html search.html
isorun repair sqlite:///study.db --study NAME --continue 15 --objective train.py:objective
isorun repair keras-tuner:FOLDER                       the same for a project folder of KerasTuner
isorun repair keras-tuner:FOLDER --continue 15 --tuner train.py:tuner
isorun repair search.toml                              a search that isorun runs; isorun run goes on with it

Ends with 3 when a bug is found.
"""

from __future__ import annotations

import argparse
import contextlib
import shlex
import sys
from typing import TYPE_CHECKING, Any

from isorun import cli
from isorun.errors import UsageError

if TYPE_CHECKING:
    from isorun.repair.diagnosis import SearchDiagnosis

__all__ = ["declare", "execute"]


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    about = "where the search is kept: sqlite:///FILE, journal:FILE or another URL that Optuna understands, "
    about += "keras-tuner:FOLDER; or a study with a search that isorun ran: its file or name"
    parser.add_argument("storage", metavar="STORAGE", help=about)
    parser.add_argument("--study", metavar="NAME", help="which study, or which search of one (default: the only one)")
    parser.add_argument("--store", metavar="FOLDER", help="of a study that isorun ran: where its records are kept")
    parser.add_argument("--target", type=float, metavar="X", help="the score that the search is to reach")
    parser.add_argument("--time-limit", type=float, metavar="S", help="seconds in which it is to reach the target")
    about = "trials without an improvement that are too many (default: from the search's own pace, at least 10)"
    parser.add_argument("--patience", type=int, metavar="N", help=about)
    about = "a file with counts from other searches, shipped, or none (default: as its study says, else shipped)"
    parser.add_argument("--prior", default="usual", metavar="FILE", help=about)
    about = "go on for N trials, repaired; takes --objective or --tuner, for a storage holds no code"
    parser.add_argument("--continue", dest="more", type=int, metavar="N", help=about)
    about = "the function that runs a trial and returns its score, as in study.optimize(function)"
    parser.add_argument("--objective", metavar="FILE.py:FUNCTION", help=about)
    about = "for KerasTuner: the function that returns your tuner and a dict of what its search() is given"
    parser.add_argument("--tuner", metavar="FILE.py:FUNCTION", help=about)
    about = "with --continue: first try trials again that are marked running and whose process is gone"
    parser.add_argument("--requeue", action="store_true", help=about)
    about = "with --continue: trials run in this process, for a debugger; one that hangs or ends it is on its own"
    parser.add_argument("--in-process", action="store_true", help=about)
    parser.add_argument("--html", metavar="FILE", help="also write one self-contained page")
    cli.declare_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Examine the search, go on with it where asked to, and tell."""
    from isorun.repair import examine, go_on, is_storage, refuse_bare_path

    if is_storage(options.storage):
        _check(options)
    else:
        refuse_bare_path(options.storage)
        _check_of_study(options)
    asked: dict[str, Any] = {"target": options.target, "time_limit": options.time_limit, "patience": options.patience}
    asked["prior"] = None if options.prior == "none" else options.prior
    with contextlib.redirect_stdout(sys.stderr):  # what engines and trainings print is no part of the answer
        if options.more is None:
            told = examine(options.storage, options.study, store=options.store, **asked)
        else:
            asked |= {"requeue": options.requeue, "in_process": options.in_process}
            told = go_on(options.storage, options.more, options.objective or options.tuner, options.study, **asked)
    return _tell(told, options)


def _tell(told: SearchDiagnosis, options: argparse.Namespace) -> int:
    if options.html:
        cli.write_file(options.html, _page(told), "html")
    if options.json:
        cli.print_json(told.to_json())
    else:
        written = f"\nwritten: {options.html}\n" if options.html else ""
        cli.show_text(told.view().text(colour=cli.wants_colour(), width=cli.terminal_width()) + written)
    return 3 if told.bugs else 0


def _page(told: SearchDiagnosis) -> str:
    from isorun.report import html

    return html.render_view(f"{told.search.engine} study {told.search.name}", "isorun repair", told.view(figures=True))


def _check_of_study(options: argparse.Namespace) -> None:
    """A search that isorun runs goes on by its study. What is asked of it here counts for more than what that says."""
    if options.more is not None or options.requeue or options.objective or options.tuner:
        hint = f"raise its trials, then: isorun run {options.storage}"
        raise UsageError("--continue, --objective, --tuner and --requeue are for searches that others run", hint=hint)


def _check(options: argparse.Namespace) -> None:
    """Whether the options go together, and with the engine."""
    from isorun.repair.engines import open_engine

    engine = open_engine(options.storage)
    code = engine.function_option
    named = {"--objective": options.objective, "--tuner": options.tuner}
    for name, given in named.items():
        if given and name != code:
            raise UsageError(f"{name} belongs to another engine", allowed=f"{code} FILE.py:FUNCTION")
    if options.store:
        raise UsageError("--store belongs to a study that isorun runs", found=f"{options.storage} --store")
    if engine.is_one_search and (options.study or options.requeue):
        raise UsageError(
            f"--study and --requeue are for other engines: {engine.location} is one search, "
            f"and {engine.name} tries again what was running by itself",
            hint=f"isorun repair {shlex.quote(options.storage)}",
        )
    if ((options.requeue or options.in_process or named[code]) and options.more is None) or (
        options.more is not None and options.more < 1
    ):
        raise UsageError(f"{code} and --requeue belong to --continue N, with N of at least 1")
    if options.more is not None and not named[code]:
        train = "train.py:objective" if code == "--objective" else "train.py:tuner"
        raise UsageError(
            "--continue needs the function that runs a trial: a storage holds no code",
            hint=f"isorun repair {shlex.quote(options.storage)} --continue {options.more} {code} {train}",
        )
