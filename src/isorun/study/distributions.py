"""Distributions that configs are drawn from.

A draw depends on nothing but the seed, the config's name, the parameter's name and the draw's number, so that adding
a parameter or more draws changes none of those already made. Python's own generator is used because its stream is
guaranteed not to change between versions.
"""

from __future__ import annotations

import hashlib
import math
import random
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from isorun.study.cells import ConfigValue

__all__ = ["KINDS", "Distribution"]


def _uniform(generator: random.Random, low: float, high: float) -> float:
    return low + (high - low) * generator.random()


def _normal(generator: random.Random, mean: float, sd: float) -> float:
    return statistics.NormalDist(mean, sd).inv_cdf(_open_unit(generator))


def _log_uniform(generator: random.Random, low: float, high: float) -> float:
    drawn = math.exp(_uniform(generator, math.log(low), math.log(high)))
    return min(max(drawn, low), high)


def _integer(generator: random.Random, low: float, high: float) -> int:
    return generator.randint(int(low), int(high))


def _open_unit(generator: random.Random) -> float:
    drawn = generator.random()
    return drawn if drawn > 0.0 else _open_unit(generator)


KINDS: Final[Mapping[str, Callable[[random.Random, float, float], ConfigValue]]] = {
    "uniform": _uniform,
    "normal": _normal,
    "log-uniform": _log_uniform,
    "integer": _integer,
}


@dataclass(frozen=True, slots=True)
class Distribution:
    """A kind with its two numbers: low and high (integers include both ends), or mean and sd for `normal`.

    `choice` has its options instead.
    """

    kind: str
    first: float = 0.0
    second: float = 0.0
    options: tuple[ConfigValue, ...] = ()

    def draw(self, seed: int, config: str, parameter: str, number: int) -> ConfigValue:
        """The value of one draw."""
        key = f"{seed}/{config}/{parameter}/{number}".encode()
        generator = random.Random(int.from_bytes(hashlib.sha256(key).digest()[:8], "big"))
        if self.kind == "choice":
            return self.options[generator.randrange(len(self.options))]
        return KINDS[self.kind](generator, self.first, self.second)
