"""What the worker knows of a framework, and how it learns that one was imported.

A framework is a file in this folder, or a class in one of a family, and a line in `__init__`. The line says what has to
be known before the file is loaded: its name and the modules that belong to it. All else is said in the file, once: the
variables it reads, how its seeds and levels are set, what took effect, what a fork server may import ahead, which calls
seed it, which of its settings a level answers, and how weights are found and digested.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
import weakref
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, AbstractSet, Any, Callable, ClassVar, FrozenSet, Mapping, Sequence

if TYPE_CHECKING:
    from ..auditing import Sight
    from ..levels import Settings
    from ..recorder import Recorder
    from ..streams import Streams
    from ..watching import Watcher

Hash = Callable[[bytes], None]

# Libraries of NVIDIA's that frameworks compute with on its devices: a pattern, for `Framework.libraries`.
NVIDIA = r"cudnn|cublas|cudart|libcuda\b|cusparse|cusolver|cufft|nccl"


class Watch:
    """What looks after a framework from its import to the end of the training."""

    def finish(self) -> None:
        """Record what can only be known at the end, such as the final weights."""

    def seed_set(self) -> int | None:
        """The seed that the training gave by itself to the generator this watch looks at; None for none."""
        return None


class InTurns:
    """All that is trained, one after another or in turns, in the order of first steps.

    The last two that came are held, and of those before whatever goes on training. What does not is known by its
    digest of when the next but one came, so that memory is not kept; after so many digests no more are taken.

    arrays: what is digested of one. first: an array of it, by which two are seen to train the same. rest: is called
    with one that is let go.
    """

    _MOST_DIGESTS = 32

    def __init__(
        self,
        arrays: Callable[[Any], Any],
        first: Callable[[Any], Any] = lambda one: one,
        rest: Callable[[Any], None] = lambda _: None,
    ) -> None:
        self._arrays = arrays
        self._first = first
        self._rest = rest
        self._known: dict[int, tuple[Any, int]] = {}
        self._held: dict[int, tuple[Any, Any]] = {}
        self._ids: set[int] = set()
        self._digests: dict[int, Any] = {}
        self._lock = threading.Lock()  # threads may each train a model

    def holds(self, key: Any) -> bool:
        """Whether it is known that this trains."""
        return id(key) in self._ids

    def comes(self, key: Any, one: Any) -> None:
        """It is about to be trained. key: what tells it from others; it takes weak references."""
        with self._lock:
            seen, number = self._known.get(id(key), (None, -1))
            if seen is None or seen() is not key:
                number = 1 + max([*self._held, *self._digests], default=-1)
                self._known[id(key)] = (weakref.ref(key), number)
                for before in sorted(self._held)[:-1]:
                    self._let_go(before, one)
            self._digests.pop(number, None)
            self._held[number] = (key, one)
            self._ids.add(id(key))

    def _let_go(self, number: int, newest: Any) -> None:
        key, one = self._held.pop(number)
        self._ids.discard(id(key))
        others = [newest, *(other for _, other in self._held.values())]
        is_trained_on = any(self._first(other) is self._first(one) for other in others)
        if len(self._digests) < self._MOST_DIGESTS and not is_trained_on:
            self._digests[number] = digest_or_error(self._arrays(one))
        self._rest(one)

    def told(self) -> list[Any]:
        """What is to be digested, in the order of first steps."""
        kept = {number: self._arrays(one) for number, (_, one) in self._held.items()}
        return [one for _, one in sorted({**self._digests, **kept}.items())]


def digest_or_error(things: Any) -> Any:
    """The digest; where there is none what says why, and so nothing has a digest that this is a part of."""
    from .. import arrays, recorder  # which stand on this room

    try:
        return arrays.digest(things, recorder.MAX_DIGEST_BYTES)
    except Exception as error:  # any framework may raise anything here
        return error


class Framework:
    """One framework. Every member may stay as it is here: then there is nothing of its kind to say.

    name: that of its line. `prepare` is called after the import of each of the modules that the line names as watched.
    """

    name = ""

    # Packages that survive a fork after their import (they start no threads and open no device), and modules that are
    # imported ahead with them because they would otherwise be imported at the first training step.
    safe_to_preload: tuple[str, ...] = ()
    preload: tuple[str, ...] = ()

    # Calls that seed a generator of the whole process, and those whose seeds a watch sees without the source's help.
    global_seed_calls: tuple[str, ...] = ()
    watched_seed_call = ""

    # Whether trainings draw from generators of its own, beside those of Python and NumPy.
    has_generators = False

    # Last part of a called name to what it is told as: with a constant first argument it makes a fixed generator.
    # native: beginnings of names that draw their random numbers in code of their own, where no call is seen.
    seeding_names: ClassVar[Mapping[str, str]] = {}
    native: tuple[str, ...] = ()

    # Why a run has no digest of the weights, if it has none; empty for what has no weights.
    undigested = ""

    # Variables of its own that say how many threads it has, that of a single operation first; those of libraries below
    # it are not its own.
    thread_variables: tuple[str, ...] = ()

    # Variables that change what it computes and not whether that repeats: a training that sets one is told so.
    told_variables: tuple[str, ...] = ()

    # Traces on disk: loaded libraries worth a hash (a pattern), and Python that a compiler writes as it goes.
    libraries = ""
    generated_files: tuple[str, ...] = ()
    generated_folders: tuple[str, ...] = ()
    cache_folders: tuple[str, ...] = ()
    cache_variables: tuple[str, ...] = ()

    def variables(self, cpu_flags: FrozenSet[str]) -> dict[str, str]:  # noqa: ARG002  for those that need them
        """Variables that `deterministic` sets where the user's environment does not."""
        return {}

    def is_as_strict(self, name: str, value: str) -> bool:  # noqa: ARG002
        """Whether another value of one of these variables, or flags, fixes as much as the level's own."""
        return False

    def flags(self, base_env: Mapping[str, str]) -> dict[str, str]:  # noqa: ARG002
        """Variables that `deterministic` adds to what the user's environment has in them."""
        return {}

    def switch_variables(self, asked: Mapping[str, str]) -> dict[str, str]:  # noqa: ARG002
        """Variables of its own that ask it for switches (`switches.SWITCHES`), before the training starts."""
        return {}

    def switch(self, module: ModuleType, asked: Mapping[str, str]) -> None:
        """Set, right after the import, the switches that no variable asks it for."""

    def answers(self, module: ModuleType) -> dict[str, str]:  # noqa: ARG002
        """The switches as it has them now, in the words of `switches.SWITCHES`; those it knows nothing of left out."""
        return {}

    def take_seeds(self, name: str, module: ModuleType) -> None:
        """Wrap, in memory, the functions of a watched module that start a stream of random numbers."""

    def prepare(self, name: str, module: ModuleType, settings: Settings, recorder: Recorder) -> Watch | None:
        """Set what the level says, right after a watched module was imported."""

    def follow_steps(self, module: ModuleType, stepped: Callable[[], None]) -> None:
        """Tell each step that an optimizer of this framework has made, where it can be seen from outside."""

    def settle(self, module: ModuleType) -> None:
        """Wait until its devices have done what they were given; a clock that is read before is early."""

    def part_streams(self, name: str, module: ModuleType, streams: Streams) -> None:
        """Let every draw from a generator of the process come from one of its stream, after `prepare`."""

    def look(self, name: str, module: ModuleType, sight: Sight) -> None:
        """Let an audit see what the training draws and which operations it calls, and change nothing."""

    def effective(self, module: ModuleType) -> dict[str, Any] | None:  # noqa: ARG002
        """How it computes, as it says itself; None where there is nothing to ask."""
        return None

    def devices(self, module: ModuleType) -> dict[str, Any]:  # noqa: ARG002
        """The accelerators it has started, with their libraries."""
        return {}

    def left_open(self, module: ModuleType) -> list[str]:  # noqa: ARG002
        """What `deterministic` does not hold in it, as far as can be seen at the end of the training."""
        return []

    def constant_seed(self, called: str) -> str | None:
        """What a call in the training's source is told as if it is given a constant; None if it seeds nothing."""
        return self.seeding_names.get(called.rpartition(".")[2])

    def children(self, value: Any) -> dict[Any, Any] | None:  # noqa: ARG002
        """The parts of a model that hold its weights, by name; None for what is no model of this framework."""
        return None

    def array(self, value: Any) -> Any | None:  # noqa: ARG002
        """A NumPy array of an array of this framework's own; None for anything else."""
        return None

    def probe(self, module: ModuleType, model: Any, watcher: Watcher) -> Any | None:  # noqa: ARG002
        """What looks into a model of this framework for a watcher (`stop`, `halt`); None for what is no such model."""
        return None

    def hash_array(self, update: Hash, name: str, value: Any) -> bool:  # noqa: ARG002
        """Hash type, shape and bits of an array of this framework; False for what is none."""
        return False


def threads_named(name: str) -> int:
    """How many threads of this process a library has started under the name: what it has, whatever it was asked for."""
    found = 0
    for place in Path("/proc/self/task").glob("*/comm"):
        with contextlib.suppress(OSError):  # a thread may end while it is looked at
            found += place.read_text(encoding="utf-8", errors="replace").strip() == name
    return found


def framed(update: Hash, *parts: str) -> None:
    """Hash each part with its length, so that no two sequences of parts look alike."""
    encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
    update(b"".join([b"%d:%b" % (len(part), part) for part in encoded]))


AfterImport = Callable[[ModuleType], None]


class ImportWatcher:
    """Leads `sys.meta_path` and lets the other finders find; a watched module gets a callback after it has run.

    The module keeps its own loader and spec: ours is gone before the module's first line. An import that fails does
    not count, so the next attempt is watched again. (The base classes of `importlib.abc` are left out: importing them
    takes longer than all the rest of the worker.)

    packages, spent: `spent(seconds, of the processor)` is called for each import of a module of these packages that is
    no part of another such import.
    """

    def __init__(
        self, packages: AbstractSet[str] = frozenset(), spent: Callable[[float, float], None] | None = None
    ) -> None:
        self._callbacks: dict[str, AfterImport] = {}
        self._searching: set[str] = set()
        self._packages = packages
        self._spent = spent
        self._thread = threading.local()

    def watch(self, name: str, callback: AfterImport) -> None:
        """Call `callback(module)` after `name` is imported; at once if it already is."""
        if name in sys.modules:
            callback(sys.modules[name])
            return
        self._callbacks[name] = callback

    def install(self) -> None:
        """Lead the path of finders."""
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec that the other finders give, its loader wrapped, for a watched or timed module only."""
        if fullname not in self._callbacks and not self._begins_import(fullname):
            return None
        if fullname in self._searching:
            return None  # another watcher may lead the path, too, and ask this one while this one asks it
        self._searching.add(fullname)
        try:
            spec = self._spec_of_others(fullname, path, target)
        finally:
            self._searching.discard(fullname)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _NotifyingLoader(spec.loader, self)  # type: ignore[assignment]
        return spec

    def _begins_import(self, fullname: str) -> bool:
        return fullname.partition(".")[0] in self._packages and not getattr(self._thread, "importing", False)

    def _spec_of_others(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(fullname, path, target) if find and finder is not self else None
            if spec is not None:
                return spec
        return None

    def execute(self, module: ModuleType, run: Callable[[ModuleType], None]) -> None:
        """Run a module, count the time if this is where an import of a framework begins, and tell."""
        if self._begins_import(module.__name__):
            self._thread.importing = True
            began, computed = time.monotonic(), time.process_time()
            try:
                run(module)
            finally:
                self._thread.importing = False
                if self._spent is not None:
                    self._spent(time.monotonic() - began, time.process_time() - computed)
        else:
            run(module)
        callback = self._callbacks.pop(module.__name__, None)
        if callback is not None:
            callback(module)


class _NotifyingLoader:
    """Stands in for a loader until the module runs; everything else is the original's."""

    def __init__(self, original: Any, watcher: ImportWatcher) -> None:
        self._original = original
        self._watcher = watcher

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """As the original does."""
        module: ModuleType | None = self._original.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Put the original back, run the module, and tell."""
        module.__loader__ = self._original
        if module.__spec__ is not None:
            module.__spec__.loader = self._original
        self._watcher.execute(module, self._original.exec_module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)
