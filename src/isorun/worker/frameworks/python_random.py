"""Python's own generator."""

from __future__ import annotations

import operator
import sys
from types import ModuleType
from typing import Any

from .. import takeover
from ..recorder import Recorder
from ..selfseeding import watch_calls
from ..settings import Settings


def prepare(random: ModuleType, settings: Settings, recorder: Recorder) -> None:
    """Seed it as the level says, and notice when the training does."""
    if settings.seed is not None:
        random.seed(settings.seed)
    elif settings.warm:
        random.seed()  # a forked child would otherwise share its parent's stream with all its siblings
    if settings.run_seed is None:
        watch_calls(random, "seed", "random.seed", recorder)


def take_seeds(random: ModuleType) -> None:
    """Replace constants given to the module's generator and to generators of one's own, which `Random.seed` seeds."""
    kind = takeover.Kind("random", _constant)
    takeover.take_calls(random, "seed", "random.seed", kind, keyword="a")
    takeover.take_calls(random.Random, "seed", "random.Random", kind, keyword="a", position=1)


def _constant(value: Any) -> Any:
    """What Python makes of a seed: the size of a number, the hash of a fraction, the bytes of a text."""
    if isinstance(value, int):
        return abs(int(value))
    if isinstance(value, float):
        return hash(value) % 2**64
    if isinstance(value, (str, bytes, bytearray)):
        return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else bytes(value)
    is_refused = sys.version_info >= (3, 11)
    return None if is_refused or not hasattr(value, "__index__") else abs(operator.index(value))
