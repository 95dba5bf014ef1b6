"""Factors: what exactly changed the result? The effect of each value against the baseline, and what is known beside it.

`attribution.py` makes the result from a study's runs; `contrasts.py` says how differences are tested, `items.py` how
over test questions, `rankings.py` what happens to the order of approaches, `beside.py` what records tell of seeds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from isorun.analysis import Told
from isorun.analysis.agreements.agreement import Agreement
from isorun.analysis.evidence import Condition
from isorun.analysis.evidence.judged import JudgedMetric
from isorun.analysis.factors.beside import SeedChanges, ValueDigests
from isorun.analysis.factors.contrasts import UnitDifference
from isorun.analysis.factors.rankings import Flips
from isorun.analysis.mixed.result import VarianceShare
from isorun.analysis.samples import mean_of

__all__ = ["ALPHA", "FactorEffect", "FactorEffects", "HeldFixed", "Interaction", "VarianceSources"]

ALPHA: Final = 0.05


@dataclass(frozen=True, slots=True)
class HeldFixed:
    """What is the same on both sides of an effect."""

    approach: str
    config: str
    level: str

    @property
    def label(self) -> str:
        """For sentences, where a study has several."""
        config = "" if self.config == "default" else f" {self.config}"
        return f"{self.approach}{config} at level {self.level}"

    def to_json(self) -> dict[str, str]:
        """Plain JSON."""
        return {"approach": self.approach, "config": self.config, "level": self.level}


@dataclass(frozen=True, slots=True)
class FactorEffect:
    """A value of a factor against the baseline's; in a factorial design over all values of the other factors.

    p_corrected: by Holm over all effects and interactions of the study that could be tested. why_not: why nothing is
    claimed whatever p says, "" where a claim may be made. came_about: False where the libraries did not do what the
    value asks for.
    """

    factor: str
    value: str
    baseline: str
    held: HeldFixed
    tested: UnitDifference
    changes: SeedChanges
    p_corrected: float | None = None
    why_not: str = ""
    came_about: bool = True

    @property
    def name(self) -> str:
        """Factor and value."""
        return f"{self.factor}={self.value}"

    @property
    def is_claimed(self) -> bool:
        """Whether a difference is claimed: one that is no chance, at an error rate of 5 % over all effects."""
        return not self.why_not and self.p_corrected is not None and self.p_corrected < ALPHA

    def to_json(self) -> dict[str, Any]:
        """Plain JSON: the documented keys first, further ones after them."""
        return {
            "factor": self.factor,
            "value": self.value,
            **_numbers(self.tested, self.p_corrected),
            "baseline": self.baseline,
            "mean_baseline": _mean(self.tested.low),
            "mean": _mean(self.tested.high),
            "test": self.tested.test or None,
            "told": self.is_claimed,
            "why_not": self.why_not,
            "came_about": self.came_about,
            **self.held.to_json(),
            "changes": self.changes.to_json(),
        }


@dataclass(frozen=True, slots=True)
class Interaction:
    """By how much more a value of one factor moves the result where another factor has its value.

    factors, values: two each. aliases: other interactions that this design does not tell from this one.
    """

    factors: tuple[str, str]
    values: tuple[str, str]
    held: HeldFixed
    tested: UnitDifference
    p_corrected: float | None = None
    aliases: tuple[str, ...] = ()
    why_not: str = ""

    @property
    def name(self) -> str:
        """Both values."""
        return " x ".join(f"{factor}={value}" for factor, value in zip(self.factors, self.values, strict=True))

    @property
    def is_claimed(self) -> bool:
        """Whether it is claimed that the two do not add up."""
        return not self.why_not and self.p_corrected is not None and self.p_corrected < ALPHA

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "factors": list(self.factors),
            "values": list(self.values),
            **_numbers(self.tested, self.p_corrected),
            "aliases": list(self.aliases),
            "told": self.is_claimed,
            **self.held.to_json(),
        }


def _numbers(tested: UnitDifference, p_corrected: float | None) -> dict[str, Any]:
    return {
        "difference": tested.difference,
        "interval95": None if tested.interval95 is None else list(tested.interval95),
        "p": tested.p,
        "p_corrected": p_corrected,
        "units": tested.units,
    }


def _mean(values: Any) -> float | None:
    return mean_of(values) if values.size else None


@dataclass(frozen=True, slots=True)
class VarianceSources:
    """Where the variance among all these runs comes from; why_not: why that could not be said.

    unknown: sources whose share is not known, each with why.
    """

    held: HeldFixed
    shares: tuple[VarianceShare, ...]
    why_not: str = ""
    unknown: tuple[tuple[str, str], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; the share of a source of which it is not known is null."""
        rows = [
            *(_share(row.group, row.share, [row.lower, row.upper]) for row in self.shares),
            *(_share(source, None, None, why_not) for source, why_not in self.unknown),
        ]
        return {**self.held.to_json(), "sources": rows, "why_not": self.why_not}


def _share(source: str, share: float | None, interval95: list[float] | None, why_not: str = "") -> dict[str, Any]:
    return {"source": source, "share": share, "interval95": interval95, "why_not": why_not}


@dataclass(frozen=True, slots=True)
class FactorEffects(Told):
    """What changed the result, as far as the runs of a study tell.

    baseline: the value of each factor. noun: what a unit is. agreements: of the rankings of approaches, each with what
    is held fixed ("" where nothing varies). digests: of the final weights, by value.
    """

    told_as: ClassVar[str] = "factors"

    study: str
    metric: JudgedMetric
    design: str
    baseline: Mapping[str, str]
    noun: str
    effects: tuple[FactorEffect, ...]
    interactions: tuple[Interaction, ...]
    shares: tuple[VarianceSources, ...]
    flips: tuple[Flips, ...]
    agreements: tuple[tuple[str, Agreement], ...]
    digests: tuple[ValueDigests, ...]
    conditions: tuple[Condition, ...]
    notes: tuple[str, ...]

    @property
    def moving(self) -> tuple[FactorEffect, ...]:
        """The effects that are claimed, the largest first."""
        claimed = [effect for effect in self.effects if effect.is_claimed]
        return tuple(sorted(claimed, key=lambda effect: -abs(effect.tested.difference or 0.0)))

    @property
    def difference_told(self) -> bool:
        """Whether a difference or an interaction is claimed."""
        return bool(self.moving) or any(item.is_claimed for item in self.interactions)

    @property
    def verdict(self) -> str:
        """The verdict in a word or two."""
        factors = ", ".join(dict.fromkeys(effect.factor for effect in self.moving))
        return f"moved by {factors}" if factors else ("interaction" if self.difference_told else "undecided")

    def to_json(self) -> dict[str, Any]:
        """Plain JSON: the documented keys first, further ones after them."""
        return {
            "baseline": dict(self.baseline),
            "effects": [effect.to_json() for effect in self.effects],
            "interactions": [item.to_json() for item in self.interactions],
            "shares": [item.to_json() for item in self.shares],
            "flips": [item.to_json() for item in self.flips],
            "verdict": self.verdict,
            "study": self.study,
            "metric": self.metric.name,
            "design": self.design,
            "unit": self.noun,
            "agreements": [{"held": held, **item.to_json()} for held, item in self.agreements],
            "digests": [item.to_json() for item in self.digests],
            "notes": list(self.notes),
            "warnings": [condition.to_json() for condition in self.conditions],
        }
