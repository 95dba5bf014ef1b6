"""JAX has no global generator: the training makes its keys itself."""

from __future__ import annotations

from types import ModuleType

from ..recorder import Recorder
from ..settings import Settings


def prepare(jax: ModuleType, settings: Settings, recorder: Recorder) -> None:  # noqa: ARG001  one shape for all
    """Tell the reader that the seed reaches JAX only through the training's own code."""
    if settings.seed is not None and not settings.takes_seeds:
        recorder.note("jax-keys", "JAX has no global seed: make keys from the environment variable ISORUN_SEED")
