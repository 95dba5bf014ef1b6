"""NumPy: its global generator, the generators that are made of seeds, and the arrays that most frameworks turn into."""

from __future__ import annotations

import functools
import math
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, Callable, ClassVar, Mapping

from .. import reaching, seeding
from ..levels import Settings
from ..recorder import Recorder
from .base import Framework, Hash, framed

if TYPE_CHECKING:
    from ..auditing import Sight
    from ..streams import Streams

_NO_DRAWS = ("seed", "get_state", "set_state", "default_rng", "get_bit_generator", "set_bit_generator", "test")
_BIT_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
_WORD = 2**32
_OLD = "numpy.random.RandomState"
# The widest instructions of OpenBLAS's kernels, by the processor that they were written for.
_CORES = {
    **dict.fromkeys(("skylakex", "cooperlake", "sapphirerapids"), "avx512"),
    **dict.fromkeys(("haswell", "zen", "excavator"), "avx2"),
    **dict.fromkeys(("prescott", "core2", "penryn", "dunnington", "nehalem", "atom"), "baseline"),
}


class NumPy(Framework):
    """The array library, and those that stand on it and survive a fork as it does."""

    name = "numpy"
    safe_to_preload = ("numpy", "scipy", "pandas", "matplotlib")
    global_seed_calls = ("numpy.random.seed",)
    seeding_names: ClassVar[Mapping[str, str]] = {
        name: f"numpy.random.{name}" for name in ("default_rng", "RandomState", "SeedSequence", *_BIT_GENERATORS)
    }

    def take_seeds(self, name: str, module: ModuleType) -> None:  # noqa: ARG002
        """Reach either family of generators; within each, one constant starts one stream."""
        old, new = seeding.Kind(_OLD, legacy), seeding.Kind("numpy.random", entropy)
        reaching.take_calls(module, "seed", "numpy.random.seed", old, may_lack=True)
        reaching.stand_in(module.RandomState, module, _random_state(module.RandomState, old))
        reaching.take_calls(module, "default_rng", "numpy.random.default_rng", new, may_lack=True)
        reaching.stand_in_maker(module.SeedSequence, module, new, keyword="entropy")
        for generator in _BIT_GENERATORS:
            original = getattr(module, generator, None)
            if original is not None:
                reaching.stand_in_maker(original, module, new)
        _answer_inner_modules(new)

    def prepare(self, name: str, module: ModuleType, settings: Settings, recorder: Recorder) -> None:  # noqa: ARG002
        """Seed the global generator as the level says (NumPy takes 32 bits), and notice when the training does."""
        if settings.seed is not None:
            module.seed(settings.seed % _WORD)
            seeding.seed_processes("numpy.random.seed", lambda seed: module.seed(seed % _WORD), settings.seed)
        elif settings.warm:
            module.seed()
        if not settings.takes_seeds:
            reaching.watch_calls(module, "seed", "numpy.random.seed", recorder)

    def part_streams(self, name: str, module: ModuleType, streams: Streams) -> None:  # noqa: ARG002
        """All functions of the module draw from one RandomState; two of them have other names there."""
        from ..streams import part_functions

        module.seed(streams.request.kept_seed % _WORD)
        called = {each: each for each in dir(module) if each[0].islower() and each not in _NO_DRAWS}
        methods = {**called, "sample": "random_sample", "ranf": "random_sample"}
        state = module.RandomState
        known = {each: method for each, method in methods.items() if callable(getattr(state, method, None))}
        drawn = {each: method for each, method in known.items() if hasattr(module, each)}
        part_functions(streams, module, drawn, _OLD, lambda seed: state([seed % _WORD, seed // _WORD]))
        streams.out_of_sight.append(lambda: _drawn_unseen(module, streams))

    def answers(self, module: ModuleType) -> dict[str, str]:  # noqa: ARG002
        """What the OpenBLAS of its wheels computes with, and on how many threads; nothing where it has another."""
        return _openblas()

    def look(self, name: str, module: ModuleType, sight: Sight) -> None:  # noqa: ARG002
        """Notice the first draw from the global generator: all functions of the module but those that keep it."""
        sight.keep_state("numpy", functools.partial(_state, module.get_state))
        for function in dir(module):
            if function[0].islower() and function not in _NO_DRAWS and callable(getattr(module, function)):
                sight.note_draws(module, function, "numpy")

    def array(self, value: Any) -> Any | None:
        """Whatever says how to become an array: JAX's and TensorFlow's do."""
        numpy = sys.modules.get("numpy")
        return numpy.asarray(value) if numpy is not None and hasattr(value, "__array__") else None

    def hash_array(self, update: Hash, name: str, value: Any) -> bool:
        """Hash type, shape and bits; TypeError for an array of Python objects."""
        numpy = sys.modules.get("numpy")
        if numpy is None or not hasattr(value, "__array__"):
            return False
        array = numpy.ascontiguousarray(value)
        if array.dtype.hasobject:
            raise TypeError(f"{name or 'the array'} holds Python objects; arrays of numbers have a digest")
        shape = tuple(numpy.shape(value))
        if array.size != math.prod(shape):  # a variable that TensorFlow has yet to fill is an empty array to NumPy
            raise TypeError(f"{name or 'the array'} has no values yet; arrays of numbers have a digest")
        framed(update, name, _kind(array.dtype), str(shape))
        update(array.reshape(-1).view(numpy.uint8) if array.size else b"")
        return True


@functools.lru_cache(maxsize=64)
def _kind(dtype: Any) -> str:
    """As NumPy writes it, which takes long where a forest of trees has fields by name."""
    return str(dtype)


def _openblas() -> dict[str, str]:
    """Asked of the library that is loaded, whatever its functions are called in this build."""
    import ctypes
    from pathlib import Path

    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    paths = {line.split(maxsplit=5)[5] for line in maps if "openblas" in line and "numpy" in line and ".so" in line}
    for library in map(ctypes.CDLL, sorted(paths)):
        for before, after in (("scipy_", "64_"), ("scipy_", ""), ("", "64_"), ("", "")):
            core = getattr(library, f"{before}openblas_get_corename{after}", None)
            if core is not None:
                core.restype = ctypes.c_char_p
                path = _CORES.get(core().decode().lower(), "")
                threads = getattr(library, f"{before}openblas_get_num_threads{after}")()
                return {"threads": str(threads), **({"cpu": path} if path else {})}
    return {}


def _drawn_unseen(module: ModuleType, streams: Streams) -> str:
    """Who holds the hidden generator itself, as scikit-learn does, draws from it as it stands."""
    value = streams.value_of(_OLD)
    with seeding.suspended():
        seeded = module.RandomState(list(value) if isinstance(value, tuple) else value % _WORD)
    return "" if _state(module.get_state) == _state(seeded.get_state) else "numpy.random"


def _state(get_state: Callable[..., Any]) -> tuple[bytes, int]:
    """How the global generator stands, as something that can be compared."""
    state = get_state(legacy=True)
    return state[1].tobytes(), state[2]


def _answer_inner_modules(kind: seeding.Kind) -> None:
    """What is taken from one of NumPy's inner modules is the original; all of them ask one function for entropy."""
    inner: Any = sys.modules.get("numpy.random.bit_generator")
    original: Callable[[int], int] | None = getattr(inner, "randbits", None)
    if original is None:
        return

    @functools.wraps(original)
    def randbits(bits: int) -> int:
        answer = seeding.taken(kind, "numpy.random.SeedSequence", None)
        return original(bits) if answer is None else int(answer)

    inner.randbits = randbits


def _random_state(original: type, kind: seeding.Kind) -> dict[str, Any]:
    """Members of a RandomState whose seeds are reached; NumPy pickles it as its own, whatever its class."""

    def initialise(self: Any, seed: Any = None) -> None:
        new = seeding.taken(kind, "numpy.random.RandomState", seed)
        with seeding.suspended():
            original.__init__(self, new)  # type: ignore[misc]

    def reseed(self: Any, seed: Any = None) -> None:
        new = seeding.taken(kind, "numpy.random.RandomState", seed)
        with seeding.suspended():
            original.seed(self, new)  # type: ignore[attr-defined]

    return {"__init__": initialise, "seed": reseed}


def legacy(value: Any) -> Any:
    """A number of 32 bits, or several: one number alone starts another stream than a list of it."""
    number = seeding.whole_number(value)
    if number is not None:
        return number if 0 <= number < _WORD else None
    numbers = _numbers(value)
    return tuple(numbers) if numbers and all(0 <= each < _WORD for each in numbers) else None


def entropy(value: Any) -> int | None:
    """Entropy as one number of any size: NumPy joins the words of a list and fills up with zeros."""
    number = seeding.whole_number(value)
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
    numbers = [seeding.whole_number(each) for each in value]
    return [] if None in numbers else [number for number in numbers if number is not None]


FRAMEWORKS = (NumPy(),)
