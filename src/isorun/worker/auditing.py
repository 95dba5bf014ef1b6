"""What a training is seen to do in its first steps, for `isorun audit`: then it is ended in good order.

Nothing is changed in what it computes: generators keep their seeds, settings stay. What is noted is told with the
environment, under the key `audit`: seeds and first draws of each generator in their order, generators without a seed,
operations whose sums have no order on a GPU, loaders with their workers, and the data files that were opened.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
import threading
from contextlib import suppress
from typing import Any, Callable

from . import seeding
from .fingerprint import cache_folder
from .recorder import Recorder
from .usercode import ISORUN, STANDARD_LIBRARY, is_library_file

_MOST = 100
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
        self._steps = steps
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
            "seconds": round(self._recorder.seconds, 3),
            "steps": self.steps,
            "stopped": self.stopped,
            "events": self.events,
            "moved": [family for family, (state, before) in self._states.items() if state() != before],
        }

    def stepped(self) -> None:
        """An optimizer has made a step."""
        self.steps += 1
        if self.steps >= self._steps and self.end is not None and not self._recorder.is_forked_child:
            self.stopped = f"after {self.steps} steps"
            self.end()


_sight: Sight | None = None


def told() -> dict[str, Any] | None:
    """What was seen; None where nobody asked."""
    return _sight.told() if _sight is not None else None


def begin(asked: str, recorder: Recorder, close: Callable[[], None]) -> None:
    """Look from now on. asked: seconds and steps after which the training ends. close: the worker's last work."""
    global _sight  # noqa: PLW0603  one a process
    seconds, _, steps = asked.partition(" ")
    sight = _sight = Sight(recorder, int(steps))
    seeding.activate(_Onlooker(recorder, sight))
    if not recorder.is_main_process:
        return
    own = (str(recorder.folder), str(cache_folder()))
    sys.addaudithook(functools.partial(_opened, sight, own))
    limit = float(seconds)

    def end(*signalled: Any) -> None:
        left = limit - recorder.seconds
        if signalled and left > 0.05:  # the clock of the training stands while it imports a framework
            signal.setitimer(signal.ITIMER_REAL, left)
            return
        sight.stopped = sight.stopped or f"after {limit:g} s"
        close()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):
                stream.flush()
        os._exit(0)  # whatever the training would do at its end, such as saving a model, is not part of a look

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, limit)
    sight.end = end


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
