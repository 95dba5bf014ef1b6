"""Do CPU and GPU order the seeds alike, and is it dropout's masks that decide it?

The code of the paper leaves the masks to the device, so that a change of device is also a change of random numbers.
Here every seed is trained four times: on both sides with masks that both share, and on both sides with their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from isorun.analysis.agreements.agreement import FEWEST_SEEDS, agreement, tau_difference_interval, tau_interval
from isorun.report import UNKNOWN, Column, Table, count, fixed
from isorun.zoo.studies.tacl18.design import OWN_MASKS
from isorun.zoo.studies.tacl18.published import AGREEMENTS
from isorun.zoo.studies.tacl18.seeds import SeedRuns

__all__ = ["MaskAgreement", "MaskEffect", "mask_effects", "mask_sentences", "mask_table"]

_METRIC: Final = "AP"
_BARELY: Final = 0.05
"""An interval that ends closer to no difference than this is said to do so."""


@dataclass(frozen=True, slots=True)
class MaskAgreement:
    """Kendall's tau of the seeds' order between two sides. same_masks, same_side: what the two have in common.

    interval: 95 %; None below eight seeds.
    """

    a: str
    b: str
    same_masks: bool
    same_side: bool
    n: int
    tau: float | None
    interval: tuple[float, float] | None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "a": self.a,
            "b": self.b,
            "same_masks": self.same_masks,
            "same_side": self.same_side,
            "n": self.n,
            "tau": self.tau,
            "tau_ci95": self.interval and list(self.interval),
        }


@dataclass(frozen=True, slots=True)
class MaskEffect:
    """One data set: the agreements, and by how much tau falls from shared masks to own ones between the two sides."""

    data: str
    agreements: tuple[MaskAgreement, ...]
    published: float | None
    fall: float | None
    fall_interval: tuple[float, float] | None
    sides: SeedRuns

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, with every run."""
        runs = {
            side: [{"seed": seed, "ap": run.ap, "rr": run.rr} for seed, run in found.items()]
            for side, found in self.sides.sides.items()
        }
        return {
            "data": self.data,
            "agreements": [item.to_json() for item in self.agreements],
            "published_tau": self.published,
            "fall": self.fall,
            "fall_ci95": self.fall_interval and list(self.fall_interval),
            "sides": runs,
        }


def mask_effects(found: Sequence[SeedRuns]) -> tuple[MaskEffect, ...]:
    """For every data set with all four sides; the published tau is of own masks on CPU and GPU."""
    return tuple(effect for item in found if (effect := _effect(item)) is not None)


def _effect(item: SeedRuns) -> MaskEffect | None:
    shared = [side for side in item.sides if not side.endswith(OWN_MASKS)]
    own = [f"{side}{OWN_MASKS}" for side in shared]
    if len(shared) != 2 or not all(side in item.sides for side in own):
        return None
    pairs = ((shared[0], shared[1]), (own[0], own[1]), *zip(shared, own, strict=True))
    found = tuple(_agreement(item, a, b) for a, b in pairs)
    fall = None if found[0].tau is None or found[1].tau is None else found[0].tau - found[1].tau
    seeds = item.shared(*shared, *own)
    lists = [(item.values(a, _METRIC, seeds), item.values(b, _METRIC, seeds)) for a, b in pairs[:2]]
    interval = tau_difference_interval(lists[0], lists[1]) if len(seeds) >= FEWEST_SEEDS else None
    printed = AGREEMENTS.get(item.data, {}).get("kendall", {}).get(("AP CPU", "AP GPU"))
    return MaskEffect(item.data, found, printed, fall, interval, item)


def _agreement(item: SeedRuns, a: str, b: str) -> MaskAgreement:
    seeds = item.shared(a, b)
    first, second = (item.values(side, _METRIC, seeds) for side in (a, b))
    tau = agreement(first, second).kendall.estimate if len(seeds) > 2 else None
    interval = None if tau is None else tau_interval(first, second)
    same_side = a.removesuffix(OWN_MASKS) == b.removesuffix(OWN_MASKS)
    return MaskAgreement(a, b, not a.endswith(OWN_MASKS) and not same_side, same_side, len(seeds), tau, interval)


def mask_sentences(found: Sequence[MaskEffect]) -> Iterator[str]:
    """Whether the masks explain the gap between our tau and the published one."""
    for item in found:
        shared, own = item.agreements[:2]
        if item.fall is None or item.fall_interval is None:
            yield f"{item.data}: {count(shared.n, 'seed')}, too few to judge what the masks do."
            continue
        yield (
            f"{item.data}: {shared.a} and {shared.b} order {shared.n} seeds by AP with a tau of {_tau(shared)} when "
            f"masks are shared, {_tau(own)} when each device draws its own{_beside(item.published)}; the difference of "
            f"{fixed(item.fall, 2)} {_span(item.fall_interval)} {_cause(item)}."
        )


def _cause(item: MaskEffect) -> str:
    if item.fall_interval is None or item.fall_interval[0] <= 0.0 <= item.fall_interval[1]:
        return "cannot be told from none: the masks are not shown to be the cause"
    if item.fall_interval[1] < 0.0:
        return "goes the other way: the masks are not the cause"
    own, barely = item.agreements[1], "barely " if item.fall_interval[0] < _BARELY else ""
    if item.published is None or own.interval is None:
        return f"is {barely}more than none: the masks are a cause"
    if own.interval[0] <= item.published <= own.interval[1]:
        return f"is {barely}more than none: the masks are a cause, and own masks agree with the published tau"
    return f"is {barely}more than none: the masks are a cause, but not the whole of the gap"


def _beside(published: float | None) -> str:
    return "" if published is None else f" (published: {published:.2f})"


def mask_table(found: Sequence[MaskEffect]) -> Table:
    """A row for each pair of sides."""
    columns = (
        *(Column(title, key=True) for title in ("data", "first", "second", "masks", "arithmetic")),
        *(Column(title) for title in ("seeds", "tau of AP", "95 % interval", "published")),
    )
    rows = [row for item in found for row in _rows(item)]
    notes = (
        "Intervals leave out one seed at a time (jackknife). The paper's devices each drew their own masks.",
        *(
            f"{item.data}: from shared to own masks tau falls by {fixed(item.fall, 2)} {_span(item.fall_interval)}."
            for item in found
            if item.fall is not None
        ),
    )
    return Table("masks", "Who draws dropout's masks? (ours; the paper has none)", columns, tuple(rows), notes)


def _rows(item: MaskEffect) -> Iterator[tuple[str, ...]]:
    for one in item.agreements:
        is_papers = not one.same_masks and not one.same_side and item.published is not None
        masks, arithmetic = ("same" if same else "other" for same in (one.same_masks, one.same_side))
        numbers = (str(one.n), fixed(one.tau, 2), _span(one.interval))
        yield (item.data, one.a, one.b, masks, arithmetic, *numbers, fixed(item.published, 2) if is_papers else UNKNOWN)


def _tau(one: MaskAgreement) -> str:
    return f"{fixed(one.tau, 2)} {_span(one.interval)}"


def _span(interval: tuple[float, float] | None) -> str:
    return UNKNOWN if interval is None else f"[{interval[0]:.2f}, {interval[1]:.2f}]"
