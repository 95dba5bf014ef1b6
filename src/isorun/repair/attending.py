"""Going on with a search in a process of its own, attended: what ends that process, or hangs, is a trial that failed.

The attended process finds what is asked of it in a file of a folder, and leaves word there when all of it is done. That
word alone is success: a trial may end its process with any exit code, and leave threads behind that never end.

It leads a process group of its own, which is ended as a whole: what trials start (workers that load data, programs)
must not hold the machine when they have failed. Its input is a pipe that nobody writes to: its end says that the
attendant has gone.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from isorun.errors import InputError, IsorunError, UsageError
from isorun.repair.bugs import Limits, stall_limit
from isorun.repair.engines import AbstractEngine, chosen, open_engine, read_search, without_password, written
from isorun.repair.policy import RepairPolicy
from isorun.repair.priors import prior_of
from isorun.repair.searches import Search, Trial

__all__ = ["Continuation", "attend", "named_function"]

_ASKED: Final = "asked.json"
_DONE: Final = "done.json"
_LEAST_PAUSE: Final = 1.0
_SELDOM: Final = 50
"""Looking for a trial that hangs takes at most a fiftieth of the time."""
_TIMES_THE_LONGEST: Final = 10
_ENOUGH_TIMES: Final = 3
_GRACE: Final = 5.0
"""Seconds in which an engine may end a trial that hangs by itself, and a process that is done itself."""
_FIRST_GRACE: Final = 60.0
"""Seconds for the first trial of a process, which imports, loads data and compiles, as those before need not have."""


@dataclass(frozen=True, slots=True)
class Continuation:
    """What is asked for: so many trials more of a search.

    name: of the search; None for the only one. function: FILE.py:FUNCTION, the user's. prior: as `isorun repair` takes
    it. again: first those trials whose process is gone.
    """

    where: str
    name: str | None
    function: str
    trials: int
    limits: Limits = Limits()  # noqa: RUF009 - frozen
    prior: str | None = None
    again: bool = False

    def make(self, function: Callable[..., Any] | None = None) -> None:
        """Make the trials in this process. function: what `function` names, where it is at hand."""
        engine = open_engine(self.where)
        name = chosen(engine, self.name)
        run = function or named_function(self.function, engine.function_option)
        policy = RepairPolicy(0, self.limits, prior_of(self.prior))
        with written(self.where):
            engine.go_on(name, run, self.trials, policy, again=self.again)

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Continuation:
        """What `asdict` gave."""
        return cls(**{**told, "limits": Limits(**told["limits"])})


def attend(asked: Continuation, tell: Callable[[str], None]) -> None:
    """Have the trials made by one process after another, until all were. tell: hears of trials that ended theirs."""
    wanted = replace(asked, name=chosen(open_engine(asked.where), asked.name))
    while wanted.trials > 0 and (lost := _lost_by_process(wanted)) is not None:
        number, why, made = lost
        tell(f"trial {number} has failed: {why}")
        wanted = replace(wanted, trials=wanted.trials - made, again=False)


def _lost_by_process(asked: Continuation) -> tuple[int, str, int] | None:
    """None where all was done. Else the trial that ended it, why, and how many trials the process had begun."""
    with tempfile.TemporaryDirectory(prefix="isorun-") as place:
        folder, began = Path(place), time.time()
        (folder / _ASKED).write_text(json.dumps(asdict(asked)), encoding="utf-8")
        words = [sys.executable, "-m", __name__, place]
        child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True)
        try:
            stalled = _wait(child, asked, folder / _DONE)
        finally:
            _end(child)  # whatever ended this process ends it
        if (folder / _DONE).exists():
            _heard(json.loads((folder / _DONE).read_text(encoding="utf-8")))
            return None
    return _given_up(asked, child.pid, began, stalled or _ended(child.returncode))


def _heard(done: dict[str, Any]) -> None:
    """Raise here what was refused there."""
    if error := done.get("refused"):
        kind = UsageError if done["is_usage"] else InputError
        raise kind(error[0], found=error[1], allowed=error[2], hint=error[3])


def _given_up(asked: Continuation, process: int, began: float, why: str) -> tuple[int, str, int]:
    """Write down that what was running has failed. Where nothing was, going on would only end in the same way."""
    engine = open_engine(asked.where)
    made = [
        one
        for one in read_search(engine, asked.name).trials
        if one.process == process and (one.started or 0) > began - 1
    ]
    lost = [one for one in made if one.state == "running" and engine.give_up(str(asked.name), one.number, why)]
    if not lost:
        raise InputError(
            f"the search cannot go on: {why}",
            found=_nothing_to_give_up(engine, made),
            hint="the same command with --in-process shows where it ends",
        )
    return lost[-1].number, why, len(made)


def _nothing_to_give_up(engine: AbstractEngine, made: list[Trial]) -> str:
    where = without_password(engine.where)
    if type(engine).give_up is AbstractEngine.give_up:
        return f"{engine.name} does not give trials up that were running, so that nobody can say which one failed"
    return f"{where} has no trial of that process that was running; {len(made)} had ended"


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the process, and all that its trials started: nothing where they have ended."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    if child.stdin is not None:
        child.stdin.close()


def _wait(child: subprocess.Popen[bytes], asked: Continuation, done: Path) -> str:
    """Until the process ends, or a trial of it takes far longer than others did: then why it is to be ended."""
    look_at, done_since = time.monotonic() + _LEAST_PAUSE, math.inf
    while True:
        try:
            child.wait(_LEAST_PAUSE)
        except subprocess.TimeoutExpired:
            now = time.monotonic()
            done_since = min(done_since, now) if done.exists() else math.inf
            if now - done_since > _GRACE:
                return ""  # a thread that a trial left behind keeps it
            if now < look_at or done.exists():
                continue
            if why := _stalled(child.pid, asked):
                return why
            look_at = time.monotonic() + max(_LEAST_PAUSE, _SELDOM * (time.monotonic() - now))
        else:
            return ""


def _stalled(process: int, asked: Continuation) -> str:
    """What is said where a trial of the process hangs."""
    try:
        search = read_search(open_engine(asked.where), asked.name)
    except IsorunError:  # held by the trials themselves: it is looked at again
        return ""
    limit = stall_limit(search, asked.limits, running=True) or _longest(search)
    own = [one for one in search.trials if one.process == process]
    grace = _GRACE if any(one.is_over for one in own) else _FIRST_GRACE
    running = [one for one in own if one.state == "running"]
    if limit is not None and any(time.time() - (one.started or math.inf) > limit + grace for one in running):
        return f"stalled: it took longer than {limit:.3g} s, far longer than others did"
    return ""


def _longest(search: Search) -> float | None:
    """Seconds that are far too long where too few trials that finished have times: by those that are over."""
    known = [one.seconds for one in search.trials if one.is_over and one.seconds]
    return _TIMES_THE_LONGEST * max(known) if len(known) >= _ENOUGH_TIMES else None


def _ended(code: int) -> str:
    """How a process ended in the middle of a trial."""
    if code >= 0:
        return f"its process ended with exit code {code}"
    likely = ", as when memory runs out" if -code == signal.SIGKILL else ""
    return f"its process was ended by {signal.Signals(-code).name}{likely}"


def named_function(text: str, option: str) -> Callable[..., Any]:
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


def _end_with_attendant() -> None:
    """Have this process and all that it starts ended when the attendant has gone, who holds the other end of its input.

    A process of its own waits for that, nobody's child: a trial may hang in code that lets no thread of its process
    run, or wait for its own children. A trial that asks for input gets none.
    """
    middle = os.fork()
    if middle == 0:
        if os.fork() == 0:
            os.read(0, 1)
            os.killpg(0, signal.SIGKILL)
        os._exit(0)
    os.waitpid(middle, 0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)


def _attended(folder: Path) -> None:
    """What the attended process does."""
    asked = json.loads((folder / _ASKED).read_text(encoding="utf-8"))
    _end_with_attendant()
    done: dict[str, Any] = {}
    try:
        with contextlib.redirect_stdout(sys.stderr):  # what engines and trainings print is no part of an answer
            Continuation.from_json(asked).make()
    except IsorunError as error:
        done = {"refused": [error.what, error.found, error.allowed, error.hint]}
        done["is_usage"] = isinstance(error, UsageError)
    draft = folder / f"{_DONE}.new"
    draft.write_text(json.dumps(done), encoding="utf-8")
    draft.replace(folder / _DONE)


if __name__ == "__main__":
    _attended(Path(sys.argv[1]))
