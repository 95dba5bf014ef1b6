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
import importlib.util
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isorun import cli
from isorun.errors import InputError, UsageError

if TYPE_CHECKING:
    from isorun.repair.diagnosis import SearchDiagnosis
    from isorun.repair.engines import AbstractEngine
    from isorun.repair.policy import RepairPolicy
    from isorun.repair.searches import Search

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
    parser.add_argument("--html", metavar="FILE", help="also write one self-contained page")
    cli.declare_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Examine the search, go on with it where asked to, and tell."""
    from isorun.repair import is_storage, refuse_bare_path

    if not is_storage(options.storage):
        refuse_bare_path(options.storage)
        return _tell(_of_study(options), options)
    from isorun.repair.bugs import Limits
    from isorun.repair.diagnosis import diagnose
    from isorun.repair.engines import open_engine, without_password
    from isorun.repair.policy import RepairPolicy
    from isorun.repair.priors import prior_of

    limits = Limits(options.target, options.time_limit, options.patience)
    prior = prior_of(None if options.prior == "none" else options.prior)
    engine = open_engine(options.storage)
    _check(options, engine)
    with contextlib.redirect_stdout(sys.stderr):  # what engines and trainings print is no part of the answer
        search = _searched(engine, options, RepairPolicy(0, limits, prior))
    where = without_password(options.storage)
    return _tell(diagnose(search, prior, limits, where=where, steps=engine.steps(search, limits)), options)


def _searched(engine: AbstractEngine, options: argparse.Namespace, policy: RepairPolicy) -> Search:
    """The search as it stands, after the trials that were asked for."""
    from isorun.repair.engines import chosen, read_search

    if options.more is not None:
        function = _function(options.objective or options.tuner, engine.function_option)
        name = chosen(engine, options.study)
        engine.go_on(name, function, options.more, policy, again=options.requeue)
    return read_search(engine, options.study, policy.noise)


def _of_study(options: argparse.Namespace) -> SearchDiagnosis:
    """What is said of a search that isorun ran. What is asked of it here counts for more than what its study says."""
    from isorun.repair import examine

    if options.more is not None or options.requeue or options.objective or options.tuner:
        hint = f"raise its trials, then: isorun run {options.storage}"
        raise UsageError("--continue, --objective, --tuner and --requeue are for searches that others run", hint=hint)
    asked = {"target": options.target, "time_limit": options.time_limit, "patience": options.patience}
    prior = None if options.prior == "none" else options.prior
    return examine(options.storage, options.study, store=options.store, prior=prior, **asked)


def _tell(told: SearchDiagnosis, options: argparse.Namespace) -> int:
    if options.html:
        cli.write_file(options.html, _page(told))
    if options.json:
        cli.print_json(told.to_json())
    else:
        written = f"\nwritten: {options.html}\n" if options.html else ""
        cli.show_text(told.view().text(colour=cli.wants_colour(), width=cli.terminal_width()) + written)
    return 3 if told.bugs else 0


def _page(told: SearchDiagnosis) -> str:
    from isorun.repair.diagnosis import search_view
    from isorun.report import html

    return html.render_view(f"{told.search.engine} study {told.search.name}", "isorun repair", search_view(told))


def _check(options: argparse.Namespace, engine: AbstractEngine) -> None:
    """Whether the options go together, and with this engine."""
    code = engine.function_option
    named = {"--objective": options.objective, "--tuner": options.tuner}
    for name, given in named.items():
        if given and name != code:
            raise UsageError(f"{name} belongs to another engine", allowed=f"{code} FILE.py:FUNCTION")
    if options.store:
        raise UsageError("--store belongs to a study that isorun runs", found=f"{options.storage} --store")
    if engine.is_one_search and (options.study or options.requeue):
        raise UsageError(
            "--study and --requeue are for Optuna: a folder is one search, and KerasTuner tries again what was running",
            hint=f"isorun repair {shlex.quote(options.storage)}",
        )
    if ((options.requeue or named[code]) and options.more is None) or (options.more is not None and options.more < 1):
        raise UsageError(f"{code} and --requeue belong to --continue N, with N of at least 1")
    if options.more is not None and not named[code]:
        train = "train.py:objective" if code == "--objective" else "train.py:tuner"
        raise UsageError(
            "--continue needs the function that runs a trial: a storage holds no code",
            hint=f"isorun repair {shlex.quote(options.storage)} --continue {options.more} {code} {train}",
        )


def _function(text: str, option: str) -> Callable[..., Any]:
    """The function that a user names; its file is imported as `python` would."""
    file, _, name = text.rpartition(":")
    path = Path(file)
    if not file or not name.isidentifier() or path.suffix != ".py":
        raise UsageError(f"{option} is not understood", found=text, allowed="FILE.py:FUNCTION")
    if not path.is_file():
        raise InputError(f"{path} is not there", hint=f"{option} FILE.py:FUNCTION")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InputError(f"{path} cannot be imported", found=f"{type(error).__name__}: {error}") from error
    function = getattr(module, name, None)
    if not callable(function):
        functions = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise InputError(f"{path} has no function {name}", allowed=", ".join(functions) or "none")
    return function  # type: ignore[no-any-return]
