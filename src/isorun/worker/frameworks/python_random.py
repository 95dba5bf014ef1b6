"""Python's own generator."""

from __future__ import annotations

from types import ModuleType

from ..recorder import Recorder
from ..selfseeding import watch_calls
from ..settings import Settings


def prepare(random: ModuleType, settings: Settings, recorder: Recorder) -> None:
    """Seed it as the level says, and notice when the training does."""
    if settings.seed is not None:
        random.seed(settings.seed)
    elif settings.warm:
        random.seed()  # a forked child would otherwise share its parent's stream with all its siblings
    if not settings.takes_seeds:
        watch_calls(random, "seed", "random.seed", recorder)
