"""Keras 3: generators of its own; its `set_random_seed` calls those of Python, NumPy and the backend."""

from __future__ import annotations

from types import ModuleType

from .. import takeover


def take_seeds(keras: ModuleType) -> None:
    """Replace constants given to a SeedGenerator, as layers make one of their `seed`; Keras 2 has none."""
    generator = getattr(getattr(keras, "random", None), "SeedGenerator", None)
    if generator is not None:
        kind = takeover.Kind("keras", takeover.whole_number)
        takeover.take_calls(generator, "__init__", "keras.random.SeedGenerator", kind, position=1)
