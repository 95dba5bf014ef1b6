"""Seeds taken over: a constant that the training gives to a generator is replaced by one that follows the run's seed.

What replaces it is a function of three things: the run's seed, the kind of generator it is given to, and the constant.
So streams that were equal stay equal and different ones different, in whatever process, thread or order the calls are
made. The line of a call is recorded and takes no part: a constant that stands at two lines to make one split twice
must still make it twice, and a comment above a line must not change what a seed gives.
"""

from __future__ import annotations

import functools
import gc
import operator
import threading
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Callable, Iterator, Mapping, NamedTuple

from . import trouble
from .recorder import Recorder
from .selfseeding import calling, shown_seed

# A wider number that a library passes on was drawn from another generator, which follows the run's seed already.
_WIDE = 2**32
_MOST_REMEMBERED = 65_536

Constant = Callable[[Any], Any]


class Kind(NamedTuple):
    """A family of generators in which equal constants start equal streams.

    constant: the same for all ways to write a seed that start one stream; None for what is no constant (a generator,
    fresh entropy) or would be refused.
    """

    name: str
    constant: Constant


def replacement(run_seed: int, kind: str, constant: Any) -> int:
    """What a constant is replaced by: 31 bits, which every library takes."""
    from hashlib import sha256  # every child Python starts a worker, and few take seeds over

    text = "\0".join((str(run_seed), kind, repr(constant)))
    return int.from_bytes(sha256(text.encode("utf-8", "backslashreplace")).digest()[:4], "big") >> 1


def whole_number(value: Any) -> int | None:
    """A number that can stand for an index, of whatever library; None for all else."""
    try:
        return operator.index(value)
    except Exception:  # a traced array of JAX raises errors of its own
        return None


class SeedTaker:
    """Replaces constants in one process, and tells the record."""

    def __init__(self, run_seed: int, recorder: Recorder) -> None:
        self.folder = recorder.folder
        self._run_seed = run_seed
        self._recorder = recorder
        self._given: dict[Any, Any] = {}
        self._places: set[str] = set()
        self._passed_on: set[str] = set()

    def take(self, kind: Kind, call: str, value: Any) -> Any:
        """What to seed with instead of `value`; itself where it is no constant, or the run's own seed."""
        original = self._original(value)
        constant = kind.constant(original)
        if constant is None:
            return value
        caller = calling()
        if caller.importing or (caller.by_library and _is_wide(constant)):
            return value
        new = self._replaced(kind, constant, original)
        self._places.add(caller.where)
        if caller.by_library:
            self._passed_on.add(shown_seed(original))
        self._recorder.seeded(call, shown_seed(original), caller.where, str(new))
        return new

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
        trouble.report(_active.folder, doing, error)


def taken(kind: Kind, call: str, value: Any) -> Any:
    """What to seed with instead of `value`; called where a generator is seeded."""
    taker = _active
    if taker is None or value is None or getattr(_thread, "suspended", False):
        return value
    try:
        return taker.take(kind, call, value)
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


def take_calls(owner: Any, name: str, call: str, kind: Kind, *, keyword: str = "seed", position: int = 0) -> None:
    """Replace the seed in calls of `owner.name`, which a module or class has; nothing where it has not.

    keyword, position: where the seed stands among the arguments.
    """
    original: Callable[..., Any] | None = getattr(owner, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def seeded(*args: Any, **kwargs: Any) -> Any:
        given, named = with_seed_taken(kind, call, args, kwargs, keyword=keyword, position=position)
        with suspended():
            return original(*given, **named)

    is_class_method = isinstance(owner, type) and getattr(original, "__self__", None) is owner
    setattr(owner, name, staticmethod(seeded) if is_class_method else seeded)


def with_seed_taken(
    kind: Kind, call: str, args: tuple[Any, ...], kwargs: dict[str, Any], *, keyword: str = "seed", position: int = 0
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call with the seed among them replaced."""
    if len(args) > position:
        new = taken(kind, call, args[position])
        return (*args[:position], new, *args[position + 1 :]), kwargs
    return args, {**kwargs, keyword: taken(kind, call, kwargs[keyword])} if keyword in kwargs else kwargs


def take_method(owner: type, name: str, call: str, kind: Kind) -> None:
    """Replace the seed in calls of a method of a type that is written in C and must stay the very type it is.

    torch's compiler knows generators by their type, so no other may stand in for it. Such a type has no setter, but its
    dictionary of methods is an ordinary one, and CPython is told of the change as its own setter would.
    """
    import ctypes

    methods = gc.get_referents(owner.__dict__)[0]
    original: Callable[..., Any] = methods[name]

    @functools.wraps(original)
    def seeded(self: Any, *args: Any, **kwargs: Any) -> Any:
        given, named = with_seed_taken(kind, call, args, kwargs)
        return original(self, *given, **named)

    methods[name] = seeded
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
            args, kwargs = with_seed_taken(kind, call, args, kwargs, keyword=keyword)
            return original(*args, **kwargs)

    def initialise(self: Any, *args: Any, **kwargs: Any) -> None:
        args, kwargs = with_seed_taken(kind, call, args, kwargs, keyword=keyword)
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
