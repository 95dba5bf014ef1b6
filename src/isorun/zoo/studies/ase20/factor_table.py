"""The table of factors: the spread with each varied alone, with all, and with none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from isorun.report.numbers import UNKNOWN, percentage, significant
from isorun.report.tables import Column, Table
from isorun.zoo.studies.ase20.cells import spread_cells
from isorun.zoo.studies.ase20.design import ALL_FACTORS, FACTOR_LEVEL
from isorun.zoo.studies.ase20.factors import RULE, FactorArm, FactorShares
from isorun.zoo.studies.ase20.networks import FACTORS

__all__ = ["factor_table"]


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
    notes = (*_FIXED_NOTES, *_lacking(shares), *_weak(shares))
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
    f"Level {FACTOR_LEVEL}, judged at {RULE}. Each factor draws from a generator of its own.",
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


def _weak(shares: Sequence[FactorShares]) -> Iterator[str]:
    for item in shares:
        for arm in item.arms:
            if arm.weak:
                runs = f"{arm.weak} of {arm.spread.n}"
                yield f"{item.network}, {arm.name}: {runs} runs are weak and count like the others."
