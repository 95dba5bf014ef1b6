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
import math
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from isorun import cli
from isorun.errors import InputError, UsageError

if TYPE_CHECKING:
    from isorun.repair.diagnosis import SearchDiagnosis
    from isorun.repair.engines import AbstractEngine
    from isorun.repair.policy import RepairPolicy
    from isorun.repair.searches import Search

__all__ = ["declare", "execute"]

_ATTENDED_BY: Final = "ISORUN_ATTENDED_BY"
"""Tells a process that goes on with a search which one waits for it: it ends with that."""
_LEAST_PAUSE: Final = 1.0
_SELDOM: Final = 50
"""Looking for a trial that hangs takes at most a fiftieth of the time."""
_TIMES_THE_LONGEST: Final = 10
_ENOUGH_TIMES: Final = 3
_GRACE: Final = 5.0
"""Seconds in which an engine may end a trial that hangs by itself."""


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
        name = chosen(engine, options.study)
        if options.in_process:
            _end_with(os.environ.get(_ATTENDED_BY, ""))
            function = _function(options.objective or options.tuner, engine.function_option)
            engine.go_on(name, function, options.more, policy, again=options.requeue)
        else:
            _attend(engine, options, name, policy)
    return read_search(engine, options.study, policy.noise)


def _attend(engine: AbstractEngine, options: argparse.Namespace, name: str, policy: RepairPolicy) -> None:
    """Go on in processes of their own: a trial that ends its process, or hangs, has failed, and the search goes on."""
    left, again = options.more, options.requeue
    while left > 0:
        words = _words(options, name, left, again=again)
        began = time.time()
        child = subprocess.Popen(words, stdout=subprocess.DEVNULL, env={**os.environ, _ATTENDED_BY: str(os.getpid())})
        try:
            stalled = _wait(child, engine, name, policy)
        finally:
            child.kill()  # nothing where it has ended; else whatever ended this command ends it
            child.wait()
        if not stalled and child.returncode in (0, 3):
            return
        engine = type(engine)(options.storage)  # what was read before is old
        made = [one for one in engine.read(name).trials if one.process == child.pid and (one.started or 0) > began - 1]
        why = stalled or _ended(child.returncode)
        ended = [one for one in made if one.state == "running" and engine.give_up(name, one.number, why)]
        if not ended:
            if child.returncode > 0:
                raise SystemExit(child.returncode)  # it has said why
            raise InputError(f"the search cannot go on: no trial was running, but {why}")
        print(f"isorun: trial {ended[-1].number} has failed: {why}", file=sys.stderr)
        left, again = left - len(made), False


def _wait(child: subprocess.Popen[bytes], engine: AbstractEngine, name: str, policy: RepairPolicy) -> str:
    """Until the process ends, or a trial of it takes far longer than others did: then why it is to be ended."""
    from isorun.errors import IsorunError
    from isorun.repair.bugs import stall_limit

    pause = _LEAST_PAUSE
    while True:
        try:
            child.wait(pause)
        except subprocess.TimeoutExpired:
            began = time.monotonic()
            try:
                search = type(engine)(engine.where).read(name)
            except IsorunError:  # held by the trials themselves: it is looked at again
                continue
            limit = stall_limit(search, policy.limits, running=True) or _longest(search)
            running = [one for one in search.trials if one.state == "running" and one.process == child.pid]
            if limit is not None and any(time.time() - (one.started or math.inf) > limit + _GRACE for one in running):
                return f"stalled: it took longer than {limit:.3g} s, far longer than others did"
            pause = max(_LEAST_PAUSE, _SELDOM * (time.monotonic() - began))
        else:
            return ""


def _longest(search: Search) -> float | None:
    """Seconds that are far too long where too few trials that finished have times: by those that are over."""
    known = [one.seconds for one in search.trials if one.is_over and one.seconds]
    return _TIMES_THE_LONGEST * max(known) if len(known) >= _ENOUGH_TIMES else None


def _end_with(process: str) -> None:
    """End when the process has gone that waits for this one: else trials would go on with nobody knowing."""

    def look() -> None:
        while os.getppid() == int(process):
            time.sleep(_LEAST_PAUSE)
        os.kill(os.getpid(), signal.SIGKILL)

    if process.isdecimal() and int(process) == os.getppid():
        threading.Thread(target=look, daemon=True).start()


def _ended(code: int) -> str:
    """How a process ended in the middle of a trial."""
    if code > 0:
        return f"its process ended with exit code {code}"
    likely = ", as when memory runs out" if -code == signal.SIGKILL else ""
    return f"its process was ended by {signal.Signals(-code).name}{likely}"


def _words(options: argparse.Namespace, name: str, left: int, *, again: bool) -> list[str]:
    """The command that goes on in a process of its own."""
    given = {"--target": options.target, "--time-limit": options.time_limit, "--patience": options.patience}
    given |= {"--prior": options.prior, "--objective": options.objective, "--tuner": options.tuner}
    given |= {"--study": name if options.study else None, "--continue": left}
    words = [word for option, value in given.items() if value is not None for word in (option, str(value))]
    return [sys.executable, "-m", "isorun", "repair", options.storage, *words, "--in-process", *["--requeue"] * again]


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
    from isorun.report import html

    return html.render_view(f"{told.search.engine} study {told.search.name}", "isorun repair", told.view(figures=True))


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
