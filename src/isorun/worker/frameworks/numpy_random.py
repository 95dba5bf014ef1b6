"""NumPy's global generator, and the generators that a training builds."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from .. import takeover
from ..recorder import Recorder
from ..selfseeding import watch_calls
from ..settings import Settings

_BIT_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
_WORD = 2**32


def prepare(numpy_random: ModuleType, settings: Settings, recorder: Recorder) -> None:
    """Seed it as the level says (NumPy takes 32 bits), and notice when the training does."""
    if settings.seed is not None:
        numpy_random.seed(settings.seed % _WORD)
    elif settings.warm:
        numpy_random.seed()
    if settings.run_seed is None:
        watch_calls(numpy_random, "seed", "numpy.random.seed", recorder)


def take_seeds(numpy_random: ModuleType) -> None:
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
