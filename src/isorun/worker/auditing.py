"""What a training is seen to do in its first steps, for `isorun audit`: then it is ended in good order.

Nothing is changed in what it computes: generators keep their seeds, settings stay. What is noted is told with the
environment, under the key `audit`: seeds and first draws of each generator in their order, generators without a seed,
operations whose sums have no order on a GPU, loaders with their workers, and the data files that were opened.

Where a launcher (torchrun, accelerate) starts the training, its ranks look for themselves and end by themselves: each
has a clock of its own, ends after as many steps as the others, and is not gone before they have told what they saw.

`Work` only times it, for `isorun price`, and ends it in the same good order: looking at every operation takes time.
"""

from __future__ import annotations

import atexit
import functools
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from typing import Any, Callable

from . import frameworks, runfolder, seeding
from .fingerprint import cache_folder
from .recorder import Recorder
from .usercode import ISORUN, STANDARD_LIBRARY, is_library_file, is_users_file, main_script

_MOST = 100
# A rank that has gone breaks the sums that the others wait for: they are given so long to come to their own end.
_PATIENCE = 5.0
_LOOK_AGAIN = 0.25
# A launcher's ranks begin after it, and import their frameworks.
_LATER = 60.0
# Neither data nor a matter of the training: the interpreter, libraries, devices, and what the system is made of.
_NO_DATA = ("/proc/", "/sys/", "/dev/", "/etc/", "/usr/", "/bin/", "/lib", "/opt/", "/var/lib/", "/run/", "/snap/")
_CODE = (
    ".py",
    ".pyc",
    ".pyi",
    ".so",
    ".pth",
    ".toml",
    ".cfg",
    ".ini",
    ".yaml",
    ".yml",
    ".pem",
    ".crt",
    ".typed",
    ".ttf",
)


class Sight:
    """All that is noted, each place once, and so many places at most."""

    def __init__(self, recorder: Recorder, steps: int) -> None:
        self.events: list[dict[str, Any]] = []
        self.steps = 0
        self.stopped = ""
        self._recorder = recorder
        self.end: Callable[[], None] | None = None
        self.join: Callable[[], None] | None = None
        self._steps = steps
        self._script = main_script()
        self._reached = _Reached()
        self._known: set[tuple[str, ...]] = set()
        self._states: dict[str, tuple[Callable[[], Any], Any]] = {}
        self._thread = threading.local()

    def note(self, what: str, name: str, *, once: str = "", **more: Any) -> None:
        """Note an event with the line of the training that it came from. once: what makes it the same as another."""
        if self._recorder.is_forked_child or getattr(self._thread, "noting", False) or len(self.events) >= _MOST:
            return
        self._thread.noting = True
        try:
            caller = seeding.calling()
            key = (what, once or f"{name} {caller.where}")
            if key in self._known or caller.importing:
                return
            self._known.add(key)
            self.events.append({"what": what, "name": name, "where": caller.where, **more})
        finally:
            self._thread.noting = False

    def keep_state(self, family: str, state: Callable[[], Any]) -> None:
        """Remember how a generator of the process stands: libraries draw from it by ways that no wrapper sees."""
        self._states[family] = (state, state())

    def note_draws(self, module: Any, name: str, family: str) -> None:
        """Note the first call of a function of a module that draws from a generator of the whole process."""
        original = getattr(module, name, None)
        if original is None or isinstance(original, type):
            return

        @functools.wraps(original)
        def drawn(*args: Any, **kwargs: Any) -> Any:
            self.note("draw", f"{module.__name__}.{name}", once=family, family=family)
            return original(*args, **kwargs)

        setattr(module, name, drawn)

    def told(self) -> dict[str, Any]:
        """What goes into the record."""
        return {
            "rank": self._recorder.rank if runfolder.has_rank(os.environ) else None,
            "script": str(self._script or ""),
            "seconds": round(self._recorder.seconds, 3),
            "steps": self.steps,
            "stopped": self.stopped,
            "events": self.events,
            "reached": self._reached.told(),
            "moved": [family for family, (state, before) in self._states.items() if state() != before],
        }

    def stepped(self) -> None:
        """An optimizer has made a step: whoever does that is a training, whatever started it."""
        if self._recorder.is_forked_child:
            return
        self.steps += 1
        if self.steps == 1 and self.join is not None:
            self.join()
        if self.steps >= self._steps and self.end is not None:
            self.stopped = f"after {self.steps} steps"
            self.end()


class _Reached:
    """Which functions of the user's own files were entered: what never was is no matter of this command, so far.

    From Python 3.12 on each function is told once and costs nothing then; before it every call would be, which is not
    measured to be cheap enough, and nothing is told.
    """

    def __init__(self) -> None:
        self._codes: set[Any] = set()
        self._watching: Any = getattr(sys, "monitoring", None)
        if self._watching is None:
            return
        tool = self._watching.PROFILER_ID
        try:
            self._watching.use_tool_id(tool, "isorun")
        except ValueError:  # somebody else has it
            self._watching = None
            return
        self._watching.register_callback(tool, self._watching.events.PY_START, self._started)
        self._watching.set_events(tool, self._watching.events.PY_START)

    def _started(self, code: Any, _: int) -> Any:
        self._codes.add(code)
        return self._watching.DISABLE

    def told(self) -> dict[str, list[int]] | None:
        """The first lines of what was entered, by file; None where nobody could look."""
        if self._watching is None:
            return None
        found: dict[str, set[int]] = {}
        for code in list(self._codes):
            file = os.path.realpath(code.co_filename)
            if not code.co_filename.startswith("<") and is_users_file(file):
                found.setdefault(file, set()).add(code.co_firstlineno)
        return {file: sorted(lines) for file, lines in sorted(found.items())}


_sight: Sight | None = None


def told() -> dict[str, Any] | None:
    """What was seen; None where nobody asked."""
    return _sight.told() if _sight is not None else None


def begin(asked: str, recorder: Recorder, close: Callable[[], None]) -> None:
    """Look from now on. asked: seconds and steps after which it ends, and its script. close: the worker's last work."""
    global _sight  # noqa: PLW0603  one a process
    seconds, steps, script = [*asked.split(" ", 2), ""][:3]
    sight = _sight = Sight(recorder, int(steps))
    seeding.activate(_Onlooker(recorder, sight))
    own = (str(recorder.folder), str(cache_folder()))
    sys.addaudithook(functools.partial(_opened, sight, own))
    # A program that starts itself anew (`os.execv`) keeps the clock that rings, and loses who answers it.
    signal.setitimer(signal.ITIMER_REAL, 0)
    ending = _Ending(sight, recorder, close, float(seconds), script)
    if recorder.is_main_process or runfolder.has_rank(os.environ) or main_script() is not None:
        ending.join()
    else:  # a helper, until it trains
        sight.join = ending.join


class _Ending:
    """The end of a look in this process, at its own time."""

    def __init__(self, sight: Sight, recorder: Recorder, close: Callable[[], None], limit: float, script: str) -> None:
        self._script = script
        self._sight = sight
        self._recorder = recorder
        self._close = close
        self._limit = limit
        self._began = time.monotonic()

    def join(self) -> None:
        """Take part from now on: the clock runs, and the other processes of the run know that this one is at work."""
        self._recorder.come_forward()
        self._sight.end = self.end
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGALRM, self._rung)
            atexit.register(signal.setitimer, signal.ITIMER_REAL, 0)  # an interpreter that ends answers no signals
            signal.setitimer(signal.ITIMER_REAL, max(self._limit - self._recorder.seconds, _LOOK_AGAIN))

    def _rung(self, *_: Any) -> None:
        left = self._limit - self._recorder.seconds
        if left > 0.05:  # the clock of the training stands while it imports a framework
            signal.setitimer(signal.ITIMER_REAL, left)
        elif self._is_launcher() and time.monotonic() - self._began < self._limit + _LATER:
            signal.setitimer(signal.ITIMER_REAL, _LOOK_AGAIN)
        else:
            self.end()

    def end(self) -> None:
        """End the process, and do not pull it away from under the others."""
        self._sight.stopped = self._sight.stopped or f"after {self._limit:g} s"
        _leave(self._close, self._wait_for_others)

    def _is_launcher(self) -> bool:
        """Whether this process trains nothing itself: others do, or will, for it is not the training's script."""
        if self._sight.steps or runfolder.has_rank(os.environ):
            return False
        main = str(getattr(sys.modules.get("__main__"), "__file__", None) or "")
        is_other = bool(self._script) and os.path.realpath(main) != self._script
        return is_other or bool(self._others())

    def _others(self) -> set[int]:
        return runfolder.at_work(self._recorder.folder) - {os.getpid(), os.getppid()}

    def _wait_for_others(self) -> None:
        until = time.monotonic() + _PATIENCE
        while self._others() and time.monotonic() < until:
            time.sleep(0.02)


def _leave(close: Callable[[], None], before: Callable[[], None] = lambda: None) -> None:
    """End the process: whatever the training would do at its end, such as saving a model, is not part of a look."""
    close()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    before()
    os._exit(0)


class Work:
    """How long the training's own work takes, by the clock and by the processor, and how many steps it makes.

    most: steps of an optimizer after which it is ended; 0 for a training that goes to its own end. What comes before
    the end of the first step is told apart: what prepares a training is a larger part of a short one.
    """

    def __init__(self, recorder: Recorder, most: int, close: Callable[[], None]) -> None:
        self._recorder = recorder
        self._most = most
        self._close = close
        self._steps = 0
        self._first: tuple[float, float] | None = None
        self._ended: tuple[float, float] | None = None

    def stepped(self) -> None:
        """An optimizer has made a step."""
        if self._recorder.is_forked_child:
            return
        self._steps += 1
        if self._steps == 1:
            self._first = self._now(settled=bool(self._most))
        if self._steps == self._most:
            _leave(self._close)

    def end(self) -> None:
        """The training's work is over: what follows is the worker's."""
        self._ended = self._ended or self._now(settled=True)

    def told(self) -> dict[str, Any]:
        """What goes into the record."""
        seconds, cpu = self._ended or self._now(settled=True)
        cut = bool(self._most) and self._steps >= self._most
        found: dict[str, Any] = {"seconds": seconds, "cpu_seconds": cpu, "steps": self._steps, "cut": cut}
        if self._first is not None:
            found["first_step"] = {"seconds": self._first[0], "cpu_seconds": self._first[1]}
        return found

    def _now(self, *, settled: bool) -> tuple[float, float]:
        if settled:
            for framework, module in frameworks.imported():
                with suppress(Exception):  # a device that is in trouble is the training's to tell
                    framework.settle(module)
        return self._recorder.seconds, self._recorder.cpu_seconds


class _Onlooker(seeding.SeedTaker):
    """Is asked wherever a generator is seeded, notes it, and leaves everything as it is."""

    def __init__(self, recorder: Recorder, sight: Sight) -> None:
        super().__init__(0, recorder, takes_constants=True, answers_fresh=False)
        self._sight = sight

    def take(self, kind: seeding.Kind, call: str, value: Any) -> Any:
        """The value itself."""
        self._sight.note("seed", call, value=seeding.shown_seed(value), kind=kind.name)
        return value

    def fresh(self, kind: seeding.Kind, call: str) -> None:
        """Nothing: it stays fresh."""
        caller = seeding.calling()
        if not caller.library.startswith(STANDARD_LIBRARY) or is_library_file(caller.library):
            self._sight.note("fresh", call, kind=kind.name)


def sight() -> Sight | None:
    """Who looks; None where nobody asked."""
    return _sight


def _opened(sight: Sight, own: tuple[str, ...], event: str, arguments: Any) -> None:
    """A file is opened: noted if it is read, by the training's own doing, and looks like neither code nor system."""
    if event != "open" or not isinstance(arguments[0], (str, bytes)):
        return
    mode, flags = arguments[1], arguments[2]
    written = any(letter in (mode or "r") for letter in "wax+") or (isinstance(flags, int) and flags & 3)
    if written:
        return
    path = os.path.abspath(os.fsdecode(arguments[0]))  # noqa: PTH100  `Path` opens nothing, but is slow
    if path.endswith(_CODE) or path.startswith((*_NO_DATA, *own, ISORUN, STANDARD_LIBRARY, sys.prefix)):
        return
    if not is_library_file(path) and not os.path.isdir(path) and os.path.exists(path):  # noqa: PTH110, PTH112
        sight.note("file", path, once=path)
