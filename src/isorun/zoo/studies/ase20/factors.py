"""Which algorithmic factor the variance comes from: each varied alone, all together, and none.

With one factor varied, the other generators keep one base seed, so that a share holds for that base. The interval of a
ratio of two variances is that of the F law, for normal values. A factor is named as the largest only where the runs can
tell it from the others: by the F test at 0.05 (for normal values), the largest against the next. With more than two
factors that errs less often than 0.05 still: the largest has to beat each of the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from scipy.special import fdtri

from isorun.analysis.pairwise import f_test
from isorun.analysis.spreads import Spread, spread
from isorun.analysis.studies.conditions import FEWEST_RUNS
from isorun.analysis.studies.group_result import GroupResult
from isorun.report import UNKNOWN, Column, Table, p_value, percentage, significant
from isorun.zoo.studies.ase20.design import ALL_FACTORS, FACTOR_LEVEL, METRIC, NO_FACTOR
from isorun.zoo.studies.ase20.measured import PartResult
from isorun.zoo.studies.ase20.tables import POINTS, spread_cells
from isorun.zoo.studies.ase20.training.recipes import FACTORS

__all__ = [
    "CONFIDENCE",
    "SELECTION",
    "FactorArm",
    "FactorLead",
    "FactorShares",
    "arm_group",
    "factor_lead",
    "factor_shares",
    "factor_table",
    "lead_sentence",
]

CONFIDENCE: Final = 0.90
SELECTION: Final = "best-loss"


@dataclass(frozen=True, slots=True)
class FactorArm:
    """The runs in which one factor was varied (or all, or none).

    values: the accuracies, as fractions; runs: whose they are.
    share: of the variance with all varied, less what is left with none varied; None where that is not known.
    """

    name: str
    values: tuple[float, ...]
    spread: Spread
    weak: int
    share: float | None
    interval: tuple[float, float] | None
    runs: tuple[str, ...] = ()

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
                "values": list(arm.values),
                "runs": list(arm.runs),
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
    spreads = {arm: spread(found.values()) for arm, found in values.items()}
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


def _values(group: GroupResult | None) -> dict[str, float]:
    """Run to its accuracy."""
    if group is None:
        return {}
    judged = group.selection(SELECTION)
    values = zip(judged.run_ids(METRIC), judged.values(METRIC), strict=True)
    return {run: value for run, value in values if math.isfinite(value)}


def _weak(group: GroupResult | None) -> tuple[str, ...]:
    return group.selection(SELECTION).weak_runs if group else ()


def _arm(name: str, found: Mapping[str, float], spreads: Mapping[str, Spread], weak: int) -> FactorArm:
    own, everything = spreads[name], spreads[ALL_FACTORS]
    values, runs = tuple(found.values()), tuple(found)
    if name == ALL_FACTORS or own.sd is None or not everything.sd:
        return FactorArm(name, values, own, weak, None, None, runs)
    floor = 0.0 if name == NO_FACTOR else _noise_share(spreads)
    ratio = (own.sd / everything.sd) ** 2
    low, high = _ratio_interval(ratio, own.n - 1, everything.n - 1)
    interval = max(low - floor, 0.0), max(high - floor, 0.0)
    return FactorArm(name, values, own, weak, ratio - floor, interval, runs)


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


_LEVEL: Final = 0.05


@dataclass(frozen=True, slots=True)
class FactorLead:
    """The factor with the largest variance and those that it cannot be told from, largest first.

    following: the factor with the next largest variance. p: of the F test between the two.
    """

    largest: FactorArm
    following: FactorArm
    p: float
    alike: tuple[FactorArm, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON. largest: null where factors cannot be told apart."""
        return {
            "largest": None if self.alike else self.largest.name,
            "not_told_apart": [arm.name for arm in (self.largest, *self.alike)] if self.alike else [],
            "f_test_p": self.p,
        }


def factor_lead(shares: FactorShares) -> FactorLead | None:
    """None where a factor has too few runs, where nothing varies, and where there is no second factor."""
    arms = sorted(shares.factors, key=lambda arm: arm.variance or 0.0, reverse=True)
    if len(arms) < 2 or min(arm.spread.n for arm in arms) < FEWEST_RUNS or not arms[0].variance:
        return None
    largest, *others = arms
    alike = tuple(arm for arm in others if _p(largest, arm) >= _LEVEL)
    return FactorLead(largest, others[0], _p(largest, others[0]), alike)


def _p(larger: FactorArm, smaller: FactorArm) -> float:
    """Of the F test; 0 where only one of the two varies at all."""
    p = f_test(np.array(larger.values), np.array(smaller.values)).p
    return 0.0 if p is None else p


def lead_sentence(shares: FactorShares, lead: FactorLead) -> str:
    """Which factor varies most, or which cannot be told apart; then how that compares with all of them together."""
    named = (lead.largest, *lead.alike)
    test = f"F test p {p_value(lead.p)}"
    if lead.alike:
        spreads = _joined([_sd(arm) for arm in named])
        names = _joined([arm.name for arm in named])
        first = f"{names} cannot be told apart as sources of variance (SDev {spreads} points; {test})"
    else:
        first = (
            f"{lead.largest.name} makes the accuracy vary most (SDev {_sd(lead.largest)} points; "
            f"next is {lead.following.name} with {_sd(lead.following)}, {test})"
        )
    return f"{shares.network}, one factor varied at a time: {first}{_beside_all(lead.largest, shares.together)}."


def _beside_all(arm: FactorArm, together: FactorArm) -> str:
    """How the largest factor compares with all of them; it may be larger, and few runs easily make it seem so."""
    if arm.interval is None:
        return ""
    low, high = arm.interval
    found = f"90 % interval of the ratio of variances {significant(low, 2)} to {significant(high, 2)}"
    if low <= 1.0 <= high:
        seeds = min(arm.spread.n, together.spread.n)
        compared = f"which {seeds} seeds cannot tell from {arm.name} alone"
    else:
        compared = f"{'less' if low > 1.0 else 'more'} than with {arm.name} alone"
    return f"; with all factors varied it is {_sd(together)}, {compared} ({found})"


def _sd(arm: FactorArm) -> str:
    return POINTS.difference(arm.spread.sd)


def _joined(words: list[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}"


def factor_table(shares: Sequence[FactorShares]) -> Table:
    """One row an arm, and the rest, network by network."""
    columns = (
        Column("network", key=True),
        Column("varied", key=True),
        Column("seeds"),
        Column("variance", "points²"),
        Column("SDev", group="accuracy (points)"),
        Column("(CI)", group="accuracy (points)"),
        Column("share", "%"),
        Column("90 % interval", "%"),
    )
    rows = tuple(row for item in shares for row in _rows(item))
    notes = (*_FIXED_NOTES, *_lacking(shares), *_weak_notes(shares))
    return Table("factors", "Where the variance comes from (ours; the paper has none)", columns, rows, notes)


def _rows(shares: FactorShares) -> Iterator[tuple[str, ...]]:
    yield from (_row(shares.network, arm) for arm in shares.arms)
    if shares.rest is not None:
        rest = percentage(shares.rest) if shares.rest >= 0.0 else "< 0"
        yield (shares.network, "rest", *((UNKNOWN,) * 4), rest, UNKNOWN)


def _row(network: str, arm: FactorArm) -> tuple[str, ...]:
    variance = None if arm.variance is None else 1e4 * arm.variance
    share = "100.0" if arm.name == ALL_FACTORS and arm.variance else percentage(arm.share)
    interval = UNKNOWN
    if arm.interval is not None and arm.variance:
        interval = "\N{EN DASH}".join(percentage(end) for end in arm.interval)
    _, sd, sd_interval = spread_cells(arm.spread)
    return (network, arm.name, str(arm.spread.n), significant(variance), sd, sd_interval, share, interval)


_FIXED_NOTES = (
    f"Level {FACTOR_LEVEL}, judged at {SELECTION}. Each factor draws from a generator of its own.",
    "The varied factor takes the run's seed, the others one base seed, for which the shares hold.",
    "share: variance over that with all factors varied, less what is left with none varied.",
    "Its interval is that of a ratio of variances of normal values.",
    "Above 100 %: alone the factor varied more than all together; factors may offset each other, or seeds are few.",
    "rest: 100 % less all shares, which is what factors do only together; < 0 where the shares add up to more.",
)


def _lacking(shares: Sequence[FactorShares]) -> Iterator[str]:
    for item in shares:
        missing = [name for name in FACTORS if name not in {arm.name for arm in item.arms}]
        if missing:
            yield f"{item.network} has no {' and no '.join(missing)}."


def _weak_notes(shares: Sequence[FactorShares]) -> Iterator[str]:
    for item in shares:
        for arm in item.arms:
            if arm.weak:
                runs = f"{arm.weak} of {arm.spread.n}"
                yield f"{item.network}, {arm.name}: {runs} runs are weak and count like the others."
