"""Alpha spending: how much of the error rate may be used up by each information fraction.

Lan and DeMets 1983 (Biometrika 70) for the Pocock-like and O'Brien-Fleming-like functions; Kim and DeMets 1987
(Biometrika 74) for the power family. Power 1.5 lies between the two: it stops nearly as early as Pocock's and keeps
nearly all the power of O'Brien and Fleming's.

A plan in stages spends 80 % of its error by the end of the first and the rest in equal parts on the others, so that
going on to a later stage, if need be, was paid for before the first run. Stages of 30, 60 and 120 runs a side cost 1.5
points of power at one standard deviation within the first 30 (simulated).
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
_FIRST_STAGE = 0.8


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


def cumulative_error(
    name: str, fractions: Sequence[float], alpha: float, stage_ends: Sequence[float] = ()
) -> tuple[float, ...]:
    """The error that may have been spent by each fraction; exactly `alpha` at 1.

    stage_ends: the fractions at which the stages of the plan end, the last one 1; a single stage by default.
    """
    spent = spending_function(name)
    ends = tuple(stage_ends) or (1.0,)
    return tuple(_by_stage(fraction, alpha, ends, spent) for fraction in fractions)


def _by_stage(fraction: float, alpha: float, ends: tuple[float, ...], spent: SpendingFunction) -> float:
    """What earlier stages have spent, and the part of this stage's own share that its progress allows."""
    stage = next((k for k, end in enumerate(ends) if fraction <= end * (1 + 1e-12)), len(ends) - 1)
    before, begin = (_share(stage - 1, len(ends)), ends[stage - 1]) if stage else (0.0, 0.0)
    own = alpha * (_share(stage, len(ends)) - before)
    progress = (fraction - begin) / (ends[stage] - begin)
    return alpha * before + (own if progress >= 1 - 1e-12 else spent(progress, own))


def _share(stage: int, stages: int) -> float:
    """Of the error that may be spent by the end of the stage."""
    if stage == stages - 1:
        return 1.0
    return _FIRST_STAGE + (1 - _FIRST_STAGE) * stage / (stages - 1)
