"""Where seeds are taken over: each framework is wrapped in memory as soon as it is imported, and nothing on disk.

Only functions that start a stream are wrapped. What calls them (`seed_everything` of Lightning, `set_seed` of
transformers, `set_random_seed` of Keras, scikit-learn's `random_state`, flax's `Rngs`) gives each its own replacement.
"""

from __future__ import annotations

import functools
import operator
import sys
from types import ModuleType
from typing import Any, Callable

from .. import takeover
from ..hook import ImportWatcher

_BIT_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
_WORD = 2**32


@functools.lru_cache(maxsize=None)
def install() -> None:
    """Wrap what is loaded and watch for the rest, once a process; a forked child has its server's.

    Nothing is taken over before `takeover.activate`. A framework that cannot be wrapped is told then.
    """
    watcher = ImportWatcher()
    for name, take_seeds in _FRAMEWORKS.items():
        watcher.watch(name, functools.partial(_wrap, name, take_seeds))


def _wrap(name: str, take_seeds: Callable[[ModuleType], None], module: ModuleType) -> None:
    try:
        take_seeds(module)
    except Exception as error:  # a version of a framework that looks different must not stop the training
        takeover.report(f"taking over the seeds of {name}", error)


def _take_python(random: ModuleType) -> None:
    """Replace constants given to the module's generator and to generators of one's own, which `Random.seed` seeds."""
    kind = takeover.Kind("random", _python_constant)
    takeover.take_calls(random, "seed", "random.seed", kind, keyword="a")
    takeover.take_calls(random.Random, "seed", "random.Random", kind, keyword="a", position=1)


def _python_constant(value: Any) -> Any:
    """What Python makes of a seed: the size of a number, the hash of a fraction, the bytes of a text."""
    if isinstance(value, int):
        return abs(int(value))
    if isinstance(value, float):
        return hash(value) % 2**64
    if isinstance(value, (str, bytes, bytearray)):
        return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else bytes(value)
    is_refused = sys.version_info >= (3, 11)
    return None if is_refused or not hasattr(value, "__index__") else abs(operator.index(value))


def _take_numpy(numpy_random: ModuleType) -> None:
    """Replace constants given to either family of generators; within each, one constant starts one stream."""
    legacy, modern = takeover.Kind("numpy.random.RandomState", _legacy), takeover.Kind("numpy.random", _entropy)
    takeover.take_calls(numpy_random, "seed", "numpy.random.seed", legacy)
    takeover.stand_in(numpy_random.RandomState, numpy_random, _random_state(numpy_random.RandomState, legacy))
    takeover.take_calls(numpy_random, "default_rng", "numpy.random.default_rng", modern)
    takeover.stand_in_maker(numpy_random.SeedSequence, numpy_random, modern, keyword="entropy")
    for name in _BIT_GENERATORS:
        original = getattr(numpy_random, name, None)
        if original is not None:
            takeover.stand_in_maker(original, numpy_random, modern)


def _random_state(original: type, kind: takeover.Kind) -> dict[str, Any]:
    """Members of a RandomState whose seeds are taken over; NumPy pickles it as its own, whatever its class."""

    def initialise(self: Any, seed: Any = None) -> None:
        original.__init__(self, takeover.taken(kind, "numpy.random.RandomState", seed))  # type: ignore[misc]

    def reseed(self: Any, seed: Any = None) -> None:
        original.seed(self, takeover.taken(kind, "numpy.random.RandomState", seed))  # type: ignore[attr-defined]

    return {"__init__": initialise, "seed": reseed}


def _legacy(value: Any) -> Any:
    """A number of 32 bits, or several: one number alone starts another stream than a list of it."""
    number = takeover.whole_number(value)
    if number is not None:
        return number if 0 <= number < _WORD else None
    numbers = _numbers(value)
    return tuple(numbers) if numbers and all(0 <= each < _WORD for each in numbers) else None


def _entropy(value: Any) -> int | None:
    """Entropy as one number of any size: NumPy joins the words of a list and fills up with zeros."""
    number = takeover.whole_number(value)
    if number is not None:
        return number if number >= 0 else None
    joined, width = 0, 0
    numbers = _numbers(value)
    if not numbers or min(numbers) < 0:
        return None
    for each in numbers:
        joined |= each << width
        width += 32 * max(1, -(-each.bit_length() // 32))
    return joined


def _numbers(value: Any) -> list[int]:
    """The whole numbers of a list or array; none for anything else."""
    if isinstance(value, (str, bytes)) or not hasattr(value, "__len__") or not hasattr(value, "__getitem__"):
        return []
    numbers = [takeover.whole_number(each) for each in value]
    return [] if None in numbers else [number for number in numbers if number is not None]


def _take_torch(torch: ModuleType) -> None:
    """Replace constants given to the generators of all devices and to generators of one's own."""
    kind = takeover.Kind("torch", _torch_constant)
    for owner in (torch, torch.random):
        takeover.take_calls(owner, "manual_seed", "torch.manual_seed", kind)
    for device in ("cuda", "xpu", "mps"):
        for name in ("manual_seed", "manual_seed_all"):
            takeover.take_calls(getattr(torch, device, None), name, f"torch.{device}.{name}", kind)
    takeover.take_method(torch.Generator, "manual_seed", "torch.Generator.manual_seed", kind)


def _torch_constant(value: Any) -> int | None:
    number = takeover.whole_number(value)
    return number if number is not None and -(2**63) <= number < 2**64 else None


def _take_tensorflow(tensorflow: ModuleType) -> None:
    """Replace constants given to the global generator and to generators of one's own."""
    kind = takeover.Kind("tensorflow", takeover.whole_number)
    takeover.take_calls(tensorflow.random, "set_seed", "tensorflow.random.set_seed", kind)
    for former in (tensorflow.compat.v1, tensorflow.compat.v1.random):
        takeover.take_calls(former, "set_random_seed", "tensorflow.random.set_seed", kind)
    generator = tensorflow.random.Generator
    takeover.take_calls(generator, "from_seed", "tensorflow.random.Generator.from_seed", kind)


def _take_keras(keras: ModuleType) -> None:
    """Replace constants given to a SeedGenerator, as layers make one of their `seed`, or to an initializer.

    Keras 2 has no generators of its own, and its initializers are left to it.
    """
    generator = getattr(getattr(keras, "random", None), "SeedGenerator", None)
    if generator is None:
        return
    kind = takeover.Kind("keras", takeover.whole_number)
    takeover.take_calls(generator, "__init__", "keras.random.SeedGenerator", kind, position=1)
    for base in keras.initializers.RandomNormal.__mro__:
        if base.__name__ == "RandomInitializer":
            takeover.take_calls(base, "__init__", "keras.initializers", kind, position=1)


def _take_jax(jax_random: ModuleType) -> None:
    """Replace constants that keys are made of; flax and others make theirs by the same functions."""
    kind = takeover.Kind("jax", takeover.whole_number)
    for name in ("key", "PRNGKey"):
        takeover.take_calls(jax_random, name, f"jax.random.{name}", kind)


_FRAMEWORKS: dict[str, Callable[[ModuleType], None]] = {
    "random": _take_python,
    "numpy.random": _take_numpy,
    "torch": _take_torch,
    "tensorflow": _take_tensorflow,
    "keras": _take_keras,
    "jax.random": _take_jax,
}
