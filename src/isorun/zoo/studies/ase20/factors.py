"""Which algorithmic factor the variance comes from: each varied alone, all together, and none.

With one factor varied, the other generators keep one base seed, so that a share holds for that base. The interval of a
ratio of two variances is that of the F law, for normal values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from scipy.special import fdtri

from isorun.analysis.spreads.spread import Spread, spread
from isorun.analysis.studies.group_result import GroupResult
from isorun.zoo.studies.ase20.design import ALL_FACTORS, METRIC, NO_FACTOR
from isorun.zoo.studies.ase20.measured import PartResult
from isorun.zoo.studies.ase20.networks import FACTORS

__all__ = ["CONFIDENCE", "RULE", "FactorArm", "FactorShares", "arm_group", "factor_shares"]

CONFIDENCE: Final = 0.90
RULE: Final = "best-loss"


@dataclass(frozen=True, slots=True)
class FactorArm:
    """The runs in which one factor was varied (or all, or none).

    values: the accuracies, as fractions.
    share: of the variance with all varied, less what is left with none varied; None where that is not known.
    """

    name: str
    values: tuple[float, ...]
    spread: Spread
    weak: int
    share: float | None
    interval: tuple[float, float] | None

    @property
    def variance(self) -> float | None:
        """The variance, of accuracies as fractions."""
        return None if self.spread.sd is None else self.spread.sd**2


@dataclass(frozen=True, slots=True)
class FactorShares:
    """All arms of one network. rest: what no factor does alone; negative when factors add up to more than all do."""

    network: str
    data: str
    arms: tuple[FactorArm, ...]
    rest: float | None

    @property
    def factors(self) -> tuple[FactorArm, ...]:
        """The arms of single factors."""
        return tuple(arm for arm in self.arms if arm.name in FACTORS)

    @property
    def together(self) -> FactorArm:
        """The arm with all factors varied."""
        return next(arm for arm in self.arms if arm.name == ALL_FACTORS)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; variances of accuracies as fractions."""
        arms = {
            arm.name: {
                "n": arm.spread.n,
                "weak": arm.weak,
                "variance": arm.variance,
                "share": arm.share,
                "share_ci90": None if arm.interval is None else list(arm.interval),
            }
            for arm in self.arms
        }
        return {"network": self.network, "data": self.data, "arms": arms, "rest": self.rest}


def factor_shares(part: PartResult) -> FactorShares:
    """The shares, from accuracies at the epoch of the best loss."""
    groups = {arm: arm_group(part, arm) for arm in part.planned.arms}
    values = {arm: _values(group) for arm, group in groups.items()}
    spreads = {arm: spread(found) for arm, found in values.items()}
    return FactorShares(
        network=part.planned.networks[0].name,
        data=part.planned.data,
        arms=tuple(_arm(arm, values[arm], spreads, len(_weak(group))) for arm, group in groups.items()),
        rest=_rest(spreads),
    )


def arm_group(part: PartResult, arm: str) -> GroupResult | None:
    """The group of runs in which this was varied."""
    groups = part.result.groups if part.result else ()
    return next((group for group in groups if group.key.approach == arm), None)


def _values(group: GroupResult | None) -> tuple[float, ...]:
    values = group.selection(RULE).values(METRIC) if group else ()
    return tuple(value for value in values if math.isfinite(value))


def _weak(group: GroupResult | None) -> tuple[str, ...]:
    return group.selection(RULE).weak_runs if group else ()


def _arm(name: str, values: tuple[float, ...], spreads: Mapping[str, Spread], weak: int) -> FactorArm:
    own, everything = spreads[name], spreads[ALL_FACTORS]
    if name == ALL_FACTORS or own.sd is None or not everything.sd:
        return FactorArm(name, values, own, weak, None, None)
    floor = 0.0 if name == NO_FACTOR else _noise_share(spreads)
    ratio = (own.sd / everything.sd) ** 2
    low, high = _ratio_interval(ratio, own.n - 1, everything.n - 1)
    return FactorArm(name, values, own, weak, ratio - floor, (max(low - floor, 0.0), max(high - floor, 0.0)))


def _noise_share(spreads: Mapping[str, Spread]) -> float:
    """What varies although no factor does, over what varies when all do; 0 where kernels are deterministic."""
    none, everything = spreads[NO_FACTOR].sd, spreads[ALL_FACTORS].sd
    return (none / everything) ** 2 if none and everything else 0.0


def _ratio_interval(ratio: float, freedom: int, freedom_all: int) -> tuple[float, float]:
    tail = (1.0 - CONFIDENCE) / 2.0
    low, high = (float(fdtri(freedom, freedom_all, level)) for level in (1.0 - tail, tail))
    return ratio / low, ratio / high


def _rest(spreads: Mapping[str, Spread]) -> float | None:
    """1 less the shares of all factors and of no factor; None where one of them is not known."""
    everything = spreads[ALL_FACTORS].sd
    factors = [spread.sd for name, spread in spreads.items() if name not in (ALL_FACTORS, NO_FACTOR)]
    if not everything or spreads[NO_FACTOR].sd is None or None in factors:
        return None
    noise = _noise_share(spreads)
    return 1.0 - noise - sum((sd / everything) ** 2 - noise for sd in factors if sd is not None)
