"""How calls that start streams of random numbers are reached: functions, methods and classes are wrapped in memory.

What stands for them asks `seeding` what to seed with. A function is replaced in its module, a method of a type that is
written in C in the type's own table, and for a type that cannot be changed a class stands that passes for it.
"""

from __future__ import annotations

import functools
import gc
from types import ModuleType
from typing import Any, Callable, Mapping

from .recorder import Recorder
from .seeding import Kind, calling, shown_seed, suspended, taken


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
        given, named = with_seed_taken(kind, call, args, kwargs, keyword=keyword, position=position, may_lack=may_lack)
        with suspended():
            return original(*given, **named)

    _put(owner, name, original, seeded)


def _put(owner: Any, name: str, original: Any, seeded: Callable[..., Any]) -> None:
    """In the place of the original; one that is bound to its class already gets no class a second time."""
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

    _put(owner, name, original, seeded)


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
            with suspended():
                return original(*args, **kwargs)

    def initialise(self: Any, *args: Any, **kwargs: Any) -> None:
        args, kwargs = with_seed_taken(kind, call, args, kwargs, keyword=keyword, may_lack=True)
        with suspended():
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
