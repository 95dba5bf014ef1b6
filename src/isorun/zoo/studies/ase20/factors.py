"""Which algorithmic factor the variance comes from: each varied alone, all together, and none.

With one factor varied, the other generators keep one base seed, so that a share holds for that base. The interval of a
ratio of two variances is that of the F law, for normal values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from scipy.special import fdtri

from isorun.analysis.spreads.spread import Spread, spread
from isorun.analysis.studies.group_result import GroupResult
from isorun.report.numbers import UNKNOWN, percentage, significant
from isorun.report.tables import Column, Table
from isorun.zoo.studies.ase20.cells import spread_cells
from isorun.zoo.studies.ase20.design import ALL_FACTORS, FACTOR_LEVEL, METRIC, NO_FACTOR
from isorun.zoo.studies.ase20.measured import PartResult
from isorun.zoo.studies.ase20.networks import FACTORS

__all__ = ["CONFIDENCE", "FactorArm", "FactorShares", "arm_group", "factor_shares", "factor_table"]

CONFIDENCE: Final = 0.90
_RULE: Final = "best-loss"
_REST: Final = "together only (rest)"


@dataclass(frozen=True, slots=True)
class FactorArm:
    """The runs in which one factor was varied (or all, or none).

    share: of the variance with all varied, less what is left with none varied; None where that is not known.
    """

    name: str
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
    def largest(self) -> FactorArm | None:
        """The factor with the largest share."""
        known = [arm for arm in self.arms if arm.name in FACTORS and arm.share is not None]
        return max(known, key=lambda arm: arm.share or 0.0, default=None)

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
    spreads = {arm: _spread(group) for arm, group in groups.items()}
    return FactorShares(
        network=part.planned.networks[0].name,
        data=part.planned.data,
        arms=tuple(_arm(arm, spreads, len(_weak(group))) for arm, group in groups.items()),
        rest=_rest(spreads),
    )


def arm_group(part: PartResult, arm: str) -> GroupResult | None:
    """The group of runs in which this was varied."""
    groups = part.result.groups if part.result else ()
    return next((group for group in groups if group.key.approach == arm), None)


def _spread(group: GroupResult | None) -> Spread:
    values = group.rule(_RULE).values(METRIC) if group else ()
    return spread(value for value in values if math.isfinite(value))


def _weak(group: GroupResult | None) -> tuple[str, ...]:
    return group.rule(_RULE).weak_runs if group else ()


def _arm(name: str, spreads: Mapping[str, Spread], weak: int) -> FactorArm:
    own, everything = spreads[name], spreads[ALL_FACTORS]
    if name == ALL_FACTORS or own.sd is None or not everything.sd:
        return FactorArm(name, own, weak, None, None)
    floor = 0.0 if name == NO_FACTOR else _noise_share(spreads)
    ratio = (own.sd / everything.sd) ** 2
    low, high = _ratio_interval(ratio, own.n - 1, everything.n - 1)
    return FactorArm(name, own, weak, ratio - floor, (max(low - floor, 0.0), max(high - floor, 0.0)))


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


def factor_table(shares: Sequence[FactorShares]) -> Table:
    """One row an arm, and the rest, network by network."""
    columns = (
        Column("network", key=True),
        Column("varied", key=True),
        Column("seeds"),
        Column("variance", "points²"),
        Column("Diff", "", "test accuracy (points)"),
        Column("SDev", "", "test accuracy (points)"),
        Column("(CI)", "", "test accuracy (points)"),
        Column("share", "%"),
        Column("90 % interval", "%"),
    )
    rows = tuple(row for item in shares for row in _rows(item))
    return Table("factors", "Where the variance comes from (ours; the paper has none)", columns, rows, _notes(shares))


def _rows(shares: FactorShares) -> Sequence[tuple[str, ...]]:
    rows = [_row(shares.network, arm) for arm in shares.arms]
    return [*rows, (shares.network, _REST, *((UNKNOWN,) * 5), percentage(shares.rest), UNKNOWN)]


def _row(network: str, arm: FactorArm) -> tuple[str, ...]:
    variance = None if arm.variance is None else 1e4 * arm.variance
    share = "100.0" if arm.name == ALL_FACTORS and arm.variance else percentage(arm.share)
    interval = UNKNOWN
    if arm.interval is not None and arm.variance:
        interval = "\N{EN DASH}".join(percentage(end) for end in arm.interval)
    return (
        network,
        arm.name,
        str(arm.spread.n),
        significant(variance),
        *spread_cells(arm.spread),
        share,
        interval,
    )


def _notes(shares: Sequence[FactorShares]) -> tuple[str, ...]:
    lacking = (
        f"{item.network} has no {' and no '.join(missing)}."
        for item in shares
        if (missing := [name for name in FACTORS if name not in {arm.name for arm in item.arms}])
    )
    weak = (
        f"{item.network}, {arm.name}: {arm.weak} of {arm.spread.n} runs are weak and count like the others."
        for item in shares
        for arm in item.arms
        if arm.weak
    )
    return (
        f"Level {FACTOR_LEVEL}, judged at {_RULE}. Each factor draws from a generator of its own.",
        "The varied factor takes the run's seed, the others one base seed, for which the shares hold.",
        "share: of the variance with all factors varied; its interval: that of a ratio of variances of normal values.",
        "Rest: what factors do only together; below 0 when single factors vary more than all of them.",
        *lacking,
        *weak,
    )
