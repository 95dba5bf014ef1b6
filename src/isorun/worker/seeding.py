"""Seeds and settings of the training's own: noticed, taken over, or answered with those of the run.

Three things may happen where a training starts a stream of random numbers:
- It gives a constant. That is told; where seeds are taken over it is replaced by a number that follows the run's seed.
  The replacement is a function of the run's seed, the kind of generator and the constant, so streams that were equal
  stay equal and different ones different, in whatever process, thread or order the calls are made. The line of a call
  is recorded and takes no part: a constant that stands at two lines to make one split twice must still make it twice.
- It gives none, and asks for fresh entropy. At the levels that fix the seed it gets a number that follows the run's
  seed, the kind of generator, the process, and how many of its kind were made there before.
- It is the worker itself that seeds: nothing happens (`suspended`).
"""

from __future__ import annotations

import functools
import gc
import operator
import os
import sys
import threading
from contextlib import contextmanager
from types import FrameType, ModuleType
from typing import Any, Callable, Iterator, Mapping, NamedTuple

from . import recorder as recording
from .recorder import Recorder, shortened
from .usercode import ISORUN, STANDARD_LIBRARY, is_library_file, is_users_file

# `Random(1)` makes its calls in this file; who called that is asked for.
_RANDOM = STANDARD_LIBRARY + "random.py"
_PASSED_OVER = (ISORUN, _RANDOM, "<frozen")
_IMPORT_SYSTEM = "<frozen importlib"
# A wider number that a library passes on was drawn from another generator, which follows the run's seed already.
_WIDE = 2**32
_MOST_REMEMBERED = 65_536
_NUMBERS_OF_RANKS = ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
_MOST_RANKS_TOLD = 8


class Caller(NamedTuple):
    """Who made a call.

    where: file:line of the nearest caller that is the user's own code; the nearest library line where there is none.
    library: the library file that made the call, whoever asked for it; empty where the user's code did. importing:
    while it was imported, so nobody asked.
    """

    where: str
    library: str
    importing: bool


def calling() -> Caller:
    """Who made the call that is being carried out."""
    library, place, importing = "", "", False
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  `traceback.walk_stack` differs between versions
    while frame is not None:
        file = frame.f_code.co_filename
        if is_users_file(file) or (frame.f_globals.get("__name__") == "__main__" and not file.startswith(ISORUN)):
            return Caller(f"{file}:{frame.f_lineno}", library, importing)
        importing = importing or file.startswith(_IMPORT_SYSTEM)
        if not library and not file.startswith(_PASSED_OVER):
            library, place = file, f"{file}:{frame.f_lineno}"
        frame = frame.f_back
    return Caller(place, library or "<nobody>", importing)


def watch_calls(module: ModuleType, function: str, call: str, recorder: Recorder) -> None:
    """Record calls of `module.function` with a value; the function itself is called unchanged."""
    original: Callable[..., Any] = getattr(module, function)

    @functools.wraps(original)
    def watched(*args: Any, **kwargs: Any) -> Any:
        value = args[0] if args else next(iter(kwargs.values()), None)
        if value is not None:
            recorder.seeded(call, shown_seed(value), calling().where)
        return original(*args, **kwargs)

    setattr(module, function, watched)


def watch_entropy(recorder: Recorder) -> None:
    """Remember as left open which lines of the training draw on the system's entropy, also by `secrets` or `uuid`.

    No level answers that: names of temporary files and keys must not be the same in two runs.
    """

    def watched(original: Callable[..., bytes], named: str) -> Callable[..., bytes]:
        @functools.wraps(original)
        def drawn(*args: Any, **kwargs: Any) -> bytes:
            caller = calling()
            is_own_line = not caller.library or not caller.where.startswith(caller.library)
            if is_own_line and not caller.importing:
                drawn_by = os.path.basename(caller.library)[:-3] or named  # noqa: PTH119
                recorder.left_open(f"{drawn_by} at {caller.where} drew on the system's entropy")
            return original(*args, **kwargs)

        return drawn

    os.urandom = watched(os.urandom, "os.urandom or random.SystemRandom")
    os.getrandom = watched(os.getrandom, "os.getrandom")
    random = sys.modules.get("random")
    if random is not None:  # it has taken the function by its name
        random._urandom = os.urandom  # type: ignore[attr-defined]  # noqa: SLF001


def shown_seed(value: Any) -> str:
    """How a seed is told: a whole number of whatever library as a plain one."""
    number = whole_number(value)
    return shortened(value) if number is None else str(number)


def whole_number(value: Any) -> int | None:
    """A number that can stand for an index, of whatever library; None for all else."""
    try:
        return operator.index(value)
    except Exception:  # a traced array of JAX raises errors of its own
        return None


class Kind(NamedTuple):
    """A family of generators in which equal constants start equal streams.

    constant: the same for all ways to write a seed that start one stream; None for what is no constant (a generator,
    fresh entropy) or would be refused.
    """

    name: str
    constant: Callable[[Any], Any]


def replacement(run_seed: int, kind: str, constant: Any) -> int:
    """What a constant is replaced by: 31 bits, which every library takes."""
    from hashlib import sha256  # every child Python starts a worker, and few take seeds over

    text = "\0".join((str(run_seed), kind, repr(constant)))
    return int.from_bytes(sha256(text.encode("utf-8", "backslashreplace")).digest()[:4], "big") >> 1


class SeedTaker:
    """Replaces constants, or answers requests for fresh entropy, in one process, and tells the record.

    takes_constants, answers_fresh: which of the two.
    """

    def __init__(self, run_seed: int, recorder: Recorder, *, takes_constants: bool, answers_fresh: bool) -> None:
        self.folder = recorder.folder
        self.takes_constants = takes_constants
        self._answers_fresh = answers_fresh
        self._run_seed = run_seed
        self._recorder = recorder
        self._given: dict[Any, Any] = {}
        self._places: set[str] = set()
        self._passed_on: set[str] = set()
        self._lock = threading.Lock()
        self._made: dict[tuple[str, str], int] = {}
        self._forks: tuple[int, ...] = ()
        if answers_fresh:
            os.register_at_fork(after_in_child=self._become_child)

    def take(self, kind: Kind, call: str, value: Any) -> Any:
        """What to seed with instead of `value`; itself where it is no constant, or the run's own seed."""
        original = self._original(value)
        constant = kind.constant(original)
        if constant is None:
            return value
        caller = calling()
        if caller.importing or (caller.library and _is_wide(constant)):
            return value
        new = self._replaced(kind, constant, original)
        self._places.add(caller.where)
        if caller.library:
            self._passed_on.add(shown_seed(original))
        self._recorder.seeded(call, shown_seed(original), caller.where, str(new))
        return new

    def fresh(self, kind: Kind, call: str) -> int | None:
        """What to seed with instead of fresh entropy; None where it stays fresh.

        Python's own library draws names of temporary files and the like, which must not be the same in two runs. What
        a library makes while it is imported is its own, and a fork server has made it already.
        """
        if not self._answers_fresh:
            return None
        caller = calling()
        if caller.library.startswith(STANDARD_LIBRARY) and not is_library_file(caller.library):
            return None
        if caller.importing:
            self._recorder.left_open(f"{caller.library} made a generator without a seed while it was imported")
            return None
        thread = threading.current_thread()
        name = "" if thread is threading.main_thread() else thread.name
        with self._lock:
            number = self._made.get((kind.name, name), 0)
            self._made[kind.name, name] = number + 1
        new = replacement(self._run_seed, kind.name, ("fresh", *self._process(), name, number))
        self._recorder.note_at(
            "generator-seeded", (call, caller.where), f"{call} at {caller.where} had no seed and was given {new}"
        )
        return new

    def _process(self) -> tuple[Any, ...]:
        """What tells this process from the others of the run, the same in every run of one command."""
        if self._recorder.is_main_process:
            return self._forks
        name = _name_among_processes()
        arguments = () if name else tuple(word.replace(str(self.folder), "") for word in sys.argv)
        return (*self._forks, self._recorder.rank, *name, *arguments)

    def seed_of_process(self, seed: int) -> int:
        """What generators of the whole process start from: the run's seed, but in ranks after the first and in pools.

        Each of those has a number of its own, as it would have fresh entropy of its own. Programs that the training
        starts otherwise keep the run's seed: the one that trains may be started by a wrapper.
        """
        if self._recorder.is_main_process and self._forks:
            return replacement(seed, "process", self._forks)
        name = () if self._recorder.is_main_process else _name_among_processes()
        if self._recorder.rank or name or self._forks:
            return replacement(seed, "process", (*self._forks, self._recorder.rank, *name))
        self._tell_ranks(seed)
        return seed

    def _tell_ranks(self, seed: int) -> None:
        """The first rank tells what the others start from: most of them have nothing else to say, and leave no file."""
        sizes = (os.environ.get(name, "") for name in _NUMBERS_OF_RANKS)
        ranks = range(1, min(_MOST_RANKS_TOLD, max((int(size) for size in sizes if size.isdigit()), default=0)))
        if ranks:
            told = ", ".join(f"{rank} from {replacement(seed, 'process', (rank,))}" for rank in ranks)
            self._recorder.note("process-seeded", f"generators of other ranks start from seeds of their own: {told}")

    def _become_child(self) -> None:
        """After a fork: the same requests must not give what the parent, or another of its children, gets."""
        self._forks = (*self._forks, self._recorder.forks)
        self._made, self._lock = {}, threading.Lock()

    def _original(self, value: Any) -> Any:
        """The constant behind a number that was handed out here and now comes back, as `torch.initial_seed()` does."""
        number = whole_number(value)
        return self._given.get(number, value) if number is not None else value

    def _replaced(self, kind: Kind, constant: Any, original: Any) -> int:
        if constant in (self._run_seed, self._run_seed % _WIDE):
            return int(constant)  # the training was given the run's seed and uses it
        new = replacement(self._run_seed, kind.name, constant)
        if len(self._given) < _MOST_REMEMBERED:
            self._given[new] = original
        return new

    def took(self, value: str, places: set[str], *, passed_on: bool) -> bool:
        """Whether a constant in the source was replaced: at one of these lines, or by a library it was passed to."""
        return not places.isdisjoint(self._places) or (passed_on and value in self._passed_on)


def _name_among_processes() -> tuple[Any, ...]:
    """What multiprocessing calls this process, as far as it was said yet: the number comes after the name.

    joblib says the name as an argument, and imports much before it hands it on.
    """
    multiprocessing = sys.modules.get("multiprocessing.process")
    process = None if multiprocessing is None else multiprocessing.current_process()
    if process is not None and process.name != "MainProcess":
        return (process.name, *process._identity)  # noqa: SLF001
    words = getattr(sys, "argv", [])
    said = words.index("--process-name") + 1 if "--process-name" in words else len(words)
    return tuple(words[said : said + 1])


_active: SeedTaker | None = None
_thread = threading.local()
_failures: list[tuple[str, Exception]] = []


def activate(taker: SeedTaker | None) -> None:
    """From now on `taker` is asked; None for nobody."""
    global _active  # noqa: PLW0603  wrapped functions of a fork server find the run's taker here
    _active = taker
    while taker is not None and _failures:
        report(*_failures.pop())


def report(doing: str, error: Exception) -> None:
    """Write down what went wrong; in a fork server keep it for each run to write down."""
    if _active is None:
        _failures.append((doing, error))
    else:
        recording.report(_active.folder, doing, error)


def seed_of_process(seed: int) -> int:
    """What generators of the whole process are seeded with, here, where the run's seed is `seed`."""
    return seed if _active is None else _active.seed_of_process(seed)


def seed_forked(reseed: Callable[[int], Any], seed: int) -> None:
    """From now on `reseed` is called in each forked child: for libraries that take fresh entropy there by themselves.

    Their own hook comes first, if they were imported before this is called.
    """

    def seeded() -> None:
        with suspended():
            reseed(seed_of_process(seed))

    os.register_at_fork(after_in_child=seeded)


def taken(kind: Kind, call: str, value: Any, *, may_lack: bool = True) -> Any:
    """What to seed with instead of `value`; called where a generator is seeded. may_lack: None asks for entropy."""
    taker = _active
    if taker is None or getattr(_thread, "suspended", False):
        return value
    try:
        if value is None:
            return taker.fresh(kind, call) if may_lack else None
        return taker.take(kind, call, value) if taker.takes_constants else value
    except Exception as error:  # this is the border between the worker and the training
        report(f"taking over {call}", error)
        return value


@contextmanager
def suspended() -> Iterator[None]:
    """Take nothing over meanwhile: the worker seeds by itself, or a seeding function calls others."""
    before = getattr(_thread, "suspended", False)
    _thread.suspended = True
    try:
        yield
    finally:
        _thread.suspended = before


def take_calls(
    owner: Any, name: str, call: str, kind: Kind, *, keyword: str = "seed", position: int = 0, may_lack: bool = False
) -> None:
    """Replace the seed in calls of `owner.name`, which a module or class has; nothing where it has not.

    keyword, position: where the seed stands among the arguments. may_lack: without one it asks for fresh entropy.
    """
    original: Callable[..., Any] | None = getattr(owner, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def seeded(*args: Any, **kwargs: Any) -> Any:
        place = {"keyword": keyword, "position": position}
        given, named = with_seed_taken(kind, call, args, kwargs, may_lack=may_lack, **place)  # type: ignore[arg-type]
        with suspended():
            return original(*given, **named)

    is_class_method = isinstance(owner, type) and getattr(original, "__self__", None) is owner
    setattr(owner, name, staticmethod(seeded) if is_class_method else seeded)


def with_seed_taken(
    kind: Kind,
    call: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    keyword: str = "seed",
    position: int = 0,
    may_lack: bool = False,
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call with the seed among them replaced, or added where it lacked and is answered."""
    if len(args) > position:
        new = taken(kind, call, args[position], may_lack=may_lack)
        return (*args[:position], new, *args[position + 1 :]), kwargs
    if keyword in kwargs:
        return args, {**kwargs, keyword: taken(kind, call, kwargs[keyword], may_lack=may_lack)}
    answer = taken(kind, call, None, may_lack=may_lack)
    return args, kwargs if answer is None else {**kwargs, keyword: answer}


def take_fresh(owner: Any, name: str, call: str, kind: Kind, reseed: Callable[[int], Any] | None) -> None:
    """Answer calls of `owner.name`, which seed from fresh entropy and take nothing: `reseed` is called instead."""
    original: Callable[..., Any] | None = getattr(owner, name, None)
    if original is None or reseed is None:
        return

    @functools.wraps(original)
    def seeded(*args: Any, **kwargs: Any) -> Any:
        answer = taken(kind, call, None)
        if answer is None:
            return original(*args, **kwargs)
        with suspended():
            made = reseed(answer)
        return answer if call.endswith(".seed") else made

    is_class_method = isinstance(owner, type) and getattr(original, "__self__", None) is owner
    setattr(owner, name, staticmethod(seeded) if is_class_method else seeded)


def take_method(owner: type, name: str, call: str, kind: Kind) -> None:
    """Replace the seed in calls of a method of a type that is written in C and must stay the very type it is."""
    original: Callable[..., Any] = _methods(owner)[name]

    @functools.wraps(original)
    def seeded(self: Any, *args: Any, **kwargs: Any) -> Any:
        given, named = with_seed_taken(kind, call, args, kwargs)
        return original(self, *given, **named)

    _exchange(owner, name, seeded)


def take_fresh_method(owner: type, name: str, call: str, kind: Kind, reseed: str) -> None:
    """Answer calls of a method of such a type that seeds from fresh entropy, by calling its method `reseed`."""
    original: Callable[..., Any] = _methods(owner)[name]

    @functools.wraps(original)
    def seeded(self: Any) -> Any:
        answer = taken(kind, call, None)
        if answer is None:
            return original(self)
        with suspended():
            getattr(self, reseed)(answer)
        return answer

    _exchange(owner, name, seeded)


def follow_method(owner: type, name: str, told: Callable[[Any], None]) -> None:
    """Call `told` with the instance after every call of a method of such a type; nothing where it has no such."""
    original: Callable[..., Any] | None = _methods(owner).get(name)
    if original is None:
        return

    @functools.wraps(original)
    def followed(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        told(self)
        return result

    _exchange(owner, name, followed)


def _methods(owner: type) -> dict[str, Any]:
    """The table of methods of a type written in C: the type has no setter, but the table is an ordinary dictionary."""
    methods: dict[str, Any] = gc.get_referents(owner.__dict__)[0]
    return methods


def _exchange(owner: type, name: str, method: Callable[..., Any]) -> None:
    """Exchange a method in that table, and tell CPython of the change as its own setter would.

    torch's compiler knows generators by their type, so no other may stand in for it.
    """
    import ctypes

    _methods(owner)[name] = method
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(owner))


def stand_in(original: type, namespace: ModuleType, members: Mapping[str, Any]) -> None:
    """Put a class in the place of `original` in a namespace, with these members of its own.

    Types written in C cannot be changed. What is an instance or a subclass of the original is one of the stand-in.
    """
    setattr(namespace, original.__name__, _derived(original, namespace, members, _standing_for(original)))


def stand_in_maker(original: type, namespace: ModuleType, kind: Kind, keyword: str = "seed") -> None:
    """Put a class in the place of `original` that replaces the seed and makes an instance of the original itself.

    For types that are pickled by name: what is pickled here must be readable where nothing is taken over.
    """
    call = f"{namespace.__name__}.{original.__name__}"

    class Maker(_standing_for(original)):  # type: ignore[misc]
        """Makes originals; for classes that a training derives from the stand-in, an ordinary type."""

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:  # noqa: N805  a type of classes
            if cls.__bases__[0] is not original:
                return super().__call__(*args, **kwargs)
            args, kwargs = with_seed_taken(kind, call, args, kwargs, keyword=keyword, may_lack=True)
            return original(*args, **kwargs)

    def initialise(self: Any, *args: Any, **kwargs: Any) -> None:
        args, kwargs = with_seed_taken(kind, call, args, kwargs, keyword=keyword, may_lack=True)
        original.__init__(self, *args, **kwargs)  # type: ignore[misc]

    setattr(namespace, original.__name__, _derived(original, namespace, {"__init__": initialise}, Maker))


def _derived(original: type, namespace: ModuleType, members: Mapping[str, Any], kind_of_class: type) -> type:
    name = original.__name__
    known = {"__doc__": original.__doc__, "__module__": namespace.__name__, "__qualname__": name}
    made: type = kind_of_class(name, (original,), {**known, **members})
    return made


def _standing_for(original: type) -> type:
    """A type of classes: one that derives straight from `original` has all instances and subclasses of it."""

    class StandIn(type(original)):  # type: ignore[misc]
        def __instancecheck__(cls, instance: Any) -> bool:
            if cls.__bases__[0] is original:
                return isinstance(instance, original)
            return bool(super().__instancecheck__(instance))

        def __subclasscheck__(cls, subclass: type) -> bool:
            if cls.__bases__[0] is original:
                return issubclass(subclass, original)
            return bool(super().__subclasscheck__(subclass))

    return StandIn


def _is_wide(constant: Any) -> bool:
    return isinstance(constant, tuple) or (isinstance(constant, int) and constant >= _WIDE)


class Answers:
    """Settings of the training's own that are against the level, answered with the level's, and told."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def tell(self, owner: Any, name: str, told: str) -> None:
        """From now on calls of `owner.name` are told: they set what the level leaves to the training."""
        original: Callable[..., Any] | None = getattr(owner, name, None)
        if original is None:
            return

        @functools.wraps(original)
        def followed(*args: Any, **kwargs: Any) -> Any:
            if not getattr(_thread, "suspended", False):
                where = calling().where
                value = " ".join(shortened(each) for each in (*args, *kwargs.values()))
                message = f"{told} is {value} at {where}; it changes what is computed, and stays"
                self._recorder.note_at("setting-told", (told, where), message)
            with suspended():
                return original(*args, **kwargs)

        setattr(owner, name, followed)

    def answer(
        self, owner: Any, name: str, told: str, wanted: Any, left: Callable[[str], bool] = lambda _: False, **also: Any
    ) -> None:
        """From now on `owner.name(value)` sets `wanted`, whatever it is given; nothing where there is no such call.

        left: whether a call from a module is left alone. also: what else the call is given otherwise.
        """
        original: Callable[..., Any] | None = getattr(owner, name, None)
        if original is None:
            return

        @functools.wraps(original)
        def answered(value: Any, *args: Any, **kwargs: Any) -> Any:
            asked = value != wanted and not getattr(_thread, "suspended", False)
            if asked and not left(sys._getframe(1).f_globals.get("__name__", "")):  # noqa: SLF001
                where = calling().where
                message = f"{told} was to be {shortened(value)} at {where}; the level answered with {wanted}"
                self._recorder.note_at("setting-answered", (told, where), message)
                return original(wanted, **also)
            return original(value, *args, **kwargs)

        setattr(owner, name, answered)


class HeldVariables:
    """Variables of the level, held against what the training's own lines put into its environment.

    Libraries read them when they are imported or start a device, which may be later. began: the environment at the
    start, the user's variables among it, which the level leaves as they are. level: what the level asks for; asked
    when a variable that was there at the start changes, because to know it takes longer than to start. may_be: whether
    a value does what the level wants, too; counts: variables that libraries set on purpose, for processes of theirs.
    """

    def __init__(
        self,
        recorder: Recorder,
        level: Callable[[], Mapping[str, str]],
        may_be: Callable[[str, str], bool],
        counts: tuple[str, ...],
    ) -> None:
        self._recorder = recorder
        self._began = dict(os.environ)
        self._level = functools.lru_cache(maxsize=None)(level)
        self._may_be = may_be
        self._counts = counts

    def hold(self) -> None:
        """From now on. Deleting is left alone, because who empties the environment deletes until nothing is left."""
        kind: Any = type(os.environ)
        put = kind.__setitem__

        @functools.wraps(put)
        def setting(environ: Any, name: Any, value: Any) -> None:
            put(environ, name, self._answer(environ, name, value))

        kind.__setitem__ = setting

    def _answer(self, environ: Any, name: Any, value: Any) -> Any:
        try:
            before = self._began.get(name) if environ is os.environ and isinstance(value, str) else None
            if before is None or before == value or name not in self._level() or self._may_be(name, value):
                return value
            caller = calling()
            if name in self._counts and caller.library:
                return value
            wanted = f"{value} {before}".strip() if before.startswith("--") else before  # flags join those of the level
            message = f"{name} was to be {shortened(value)} at {caller.where}; the level answered with {wanted}"
            self._recorder.note_at("setting-answered", (name, caller.where), message)
        except Exception as error:  # this is the border between the worker and the training
            report(f"holding {name}", error)
            return value
        return wanted
