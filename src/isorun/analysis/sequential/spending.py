"""Alpha spending: how much of the error rate may be used up by each information fraction.

Lan and DeMets 1983 (Biometrika 70) for the Pocock-like and O'Brien-Fleming-like functions; Kim and DeMets 1987
(Biometrika 74) for the power family. Power 1.5 lies between the two: it stops nearly as early as Pocock's and keeps
nearly all the power of O'Brien and Fleming's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from scipy import special

from isorun.errors import InputError, known_names

__all__ = ["DEFAULT_SPENDING", "SPENDING", "cumulative_error", "spending_function"]

SpendingFunction = Callable[[float, float], float]
DEFAULT_SPENDING = "power-1.5"


def _power_1_5(fraction: float, alpha: float) -> float:
    return alpha * fraction * math.sqrt(fraction)


def _pocock(fraction: float, alpha: float) -> float:
    return alpha * math.log1p((math.e - 1) * fraction)


def _obrien_fleming(fraction: float, alpha: float) -> float:
    return 2 * float(special.ndtr(special.ndtri(alpha / 2) / math.sqrt(fraction)))


SPENDING: Mapping[str, SpendingFunction] = MappingProxyType(
    {"power-1.5": _power_1_5, "pocock": _pocock, "obrien-fleming": _obrien_fleming}
)


def spending_function(name: str) -> SpendingFunction:
    """The spending function of that name."""
    if name not in SPENDING:
        raise InputError(f"there is no spending function {name!r}", found=name, allowed=known_names(name, SPENDING))
    return SPENDING[name]


def cumulative_error(name: str, fractions: Sequence[float], alpha: float) -> tuple[float, ...]:
    """The error that may have been spent by each fraction; exactly `alpha` at 1."""
    spent = spending_function(name)
    return tuple(alpha if fraction >= 1 else spent(fraction, alpha) for fraction in fractions)
