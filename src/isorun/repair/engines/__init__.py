"""Engines: how a search is read, and how the next trial is proposed. A file an engine, public APIs only."""

from typing import Final

KERAS_TUNER_NEEDS: Final = frozenset({"keras_tuner", "keras", "six"})
"""Modules without which KerasTuner cannot be imported; the last one it does not declare."""
