"""NumPy's global generator."""

from __future__ import annotations

from types import ModuleType

from ..recorder import Recorder
from ..selfseeding import watch_calls
from ..settings import Settings


def prepare(numpy_random: ModuleType, settings: Settings, recorder: Recorder) -> None:
    """Seed it as the level says (NumPy takes 32 bits), and notice when the training does."""
    if settings.seed is not None:
        numpy_random.seed(settings.seed % 2**32)
    elif settings.warm:
        numpy_random.seed()
    if not settings.takes_seeds:
        watch_calls(numpy_random, "seed", "numpy.random.seed", recorder)
