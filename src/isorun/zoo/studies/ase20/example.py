"""The paper's example (section 5.2): is ResNet56 better than ResNet38, and what could one run of each have claimed?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Final

from isorun.analysis.comparison import Comparison, compare
from isorun.report import UNKNOWN, Column, Table, fixed, p_value
from isorun.study.cells import Level
from isorun.zoo.studies.ase20.design import METRIC
from isorun.zoo.studies.ase20.measured import Measured
from isorun.zoo.studies.ase20.published import EXAMPLE

__all__ = ["Example", "example_at", "example_table", "examples"]

_LARGER: Final = "ResNet56"
_SMALLER: Final = "ResNet38"
_RULE: Final = "best-loss"
_LEVELS: Final = (Level.FIXED_SEED, Level.DEFAULT)


@dataclass(frozen=True, slots=True)
class Example:
    """ResNet56 (a) against ResNet38 (b) at one level, by the accuracy at the epoch of the best loss.

    better: the network with the higher mean, "" when the means are equal.
    better_worst / worse_best: the unluckiest run of the network with the higher mean and the luckiest of the other.
    """

    level: Level
    comparison: Comparison
    better: str
    better_worst: float
    worse_best: float

    @property
    def wrong_claim(self) -> float:
        """How much better the worse network could have looked in one run each; negative when it never looks better."""
        return self.worse_best - self.better_worst

    @property
    def is_papers_result(self) -> bool:
        """Whether ResNet56 is better by the U test at 5 %."""
        return self.better == _LARGER and self.comparison.mann_whitney.p < 0.05

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; values as fractions."""
        return {
            "level": str(self.level),
            "better": self.better or None,
            "better_worst": self.better_worst,
            "worse_best": self.worse_best,
            "wrong_claim": self.wrong_claim,
            "comparison": self.comparison.to_json(),
        }


def examples(groups: Sequence[Measured]) -> tuple[Example, ...]:
    """The example at the paper's level, then at default; without those where a network has no run."""
    found = (example_at(level, _values(groups, _LARGER, level), _values(groups, _SMALLER, level)) for level in _LEVELS)
    return tuple(item for item in found if item is not None)


def example_at(level: Level, larger: Sequence[float], smaller: Sequence[float]) -> Example | None:
    """The example from the accuracies of both networks; None when one has none."""
    if not larger or not smaller:
        return None
    comparison = compare(larger, smaller, a=_LARGER, b=_SMALLER)
    better, worse = (larger, smaller) if comparison.difference >= 0.0 else (smaller, larger)
    return Example(level, comparison, _better(comparison.difference), min(better), max(worse))


def _better(difference: float) -> str:
    if difference == 0.0:
        return ""
    return _LARGER if difference > 0.0 else _SMALLER


def _values(groups: Sequence[Measured], name: str, level: Level) -> list[float]:
    found = (group.group for group in groups if group.network.name == name and group.level is level)
    values = [value for group in found if group for value in group.selection(_RULE).values(METRIC)]
    return [value for value in values if math.isfinite(value)]


def example_table(found: Sequence[Example]) -> Table:
    """The example, ours at each level beside the published one."""
    ours = [_cells(item) for item in found]
    columns = (
        Column("", key=True),
        *(Column(f"ours, {item.level}") for item in found),
        Column(f"paper, {Level.FIXED_SEED}"),
    )
    rows = tuple(
        (name, *(cells[place] for cells in ours), published)
        for place, (name, published) in enumerate(zip(_ROWS, _published(), strict=True))
    )
    notes = (
        "Extreme case: one run of each is reported, of the better network its worst, of the other its best.",
        "Wrong order: share of all pairs of single runs; for the paper computed from its d, for normal runs.",
        *(f"{item.level} (A: {_LARGER}, B: {_SMALLER}): {item.comparison.decision.why}." for item in found),
    )
    return Table("example", f"Is {_LARGER} better than {_SMALLER}? (section 5.2)", columns, rows, notes)


_ROWS: Final = (
    f"mean of {_LARGER} (%)",
    f"mean of {_SMALLER} (%)",
    "difference (points)",
    "U test p",
    "Cohen's d",
    "better network",
    "its worst run (%)",
    "best run of the other (%)",
    "wrong claim possible (points)",
    "one run each: wrong order (%)",
)


def _cells(item: Example) -> tuple[str, ...]:
    comparison = item.comparison
    reversal = comparison.single_run_reversal
    return (
        fixed(100 * comparison.mean_a, 2),
        fixed(100 * comparison.mean_b, 2),
        fixed(100 * comparison.difference, 2),
        p_value(comparison.mann_whitney.p),
        fixed(comparison.effect.cohens_d, 2),
        item.better or "neither",
        fixed(100 * item.better_worst, 2),
        fixed(100 * item.worse_best, 2),
        fixed(100 * item.wrong_claim, 2) if item.wrong_claim > 0 else "none",
        UNKNOWN if reversal is None else fixed(100 * reversal, 1),
    )


def _published() -> Iterator[str]:
    yield from (f"{number:.1f}" for number in (EXAMPLE.better_mean, EXAMPLE.worse_mean, EXAMPLE.difference))
    yield from (f"< {EXAMPLE.p_below}", f"{EXAMPLE.cohens_d:.1f}", _LARGER)
    yield from (f"{number:.1f}" for number in (EXAMPLE.better_worst, EXAMPLE.worse_best, EXAMPLE.wrong_claim))
    yield f"about {100 * NormalDist().cdf(-EXAMPLE.cohens_d / math.sqrt(2)):.0f}"
