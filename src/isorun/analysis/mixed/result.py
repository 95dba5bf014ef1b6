"""What a mixed model says, frozen; `to_json` has the documented keys."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal

from isorun.analysis import Told
from isorun.analysis.evidence import Condition
from isorun.analysis.mixed.fit import Fit

__all__ = [
    "AnovaRow",
    "DegreesOfFreedom",
    "Difference",
    "EffectCorrelation",
    "FixedEffect",
    "InteractionTest",
    "Mean",
    "MixedResult",
    "RandomEffect",
    "RanovaRow",
    "VarianceShare",
]

DegreesOfFreedom = Literal["satterthwaite", "kenward-roger"]


def _plain(row: Any, *, leave_out: tuple[str, ...] = ()) -> dict[str, Any]:
    """A row as JSON: its fields in order; NaN, which JSON has not, as null."""
    values = {field.name: getattr(row, field.name) for field in fields(row) if field.name not in leave_out}
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in values.items()}


@dataclass(frozen=True, slots=True)
class FixedEffect:
    """A fixed coefficient, named as R names it.

    t and se are the plain ones; Kenward and Roger's p comes from se_kenward_roger, which is never smaller but for
    rounding.
    """

    name: str
    estimate: float
    se: float
    t: float
    df_satterthwaite: float
    p_satterthwaite: float
    se_kenward_roger: float
    df_kenward_roger: float
    p_kenward_roger: float


@dataclass(frozen=True, slots=True)
class RandomEffect:
    """The variance of a random intercept, exactly 0 on the boundary, or of a slope; effect: R's name of its column."""

    group: str
    variance: float
    sd: float
    effect: str = "(Intercept)"


@dataclass(frozen=True, slots=True)
class EffectCorrelation:
    """How two random coefficients of the same group go together; NaN where one has no variance."""

    group: str
    a: str
    b: str
    correlation: float


@dataclass(frozen=True, slots=True)
class VarianceShare:
    """A term's share of the variance that the fixed effects leave, with a profile-likelihood interval."""

    group: str
    share: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class RanovaRow:
    """The likelihood-ratio test of a random effect.

    p takes the statistic as chi-square with df degrees of freedom, as lmerTest does. A variance cannot be negative, so
    under the null the statistic is zero half of the time: p_boundary takes the 50:50 mixture of chi-square(df - 1) and
    chi-square(df), which for an intercept is half of p. p is therefore conservative. group: whose effect it is.
    """

    term: str
    lrt: float
    df: int
    p: float
    p_boundary: float
    group: str = ""


@dataclass(frozen=True, slots=True)
class AnovaRow:
    """The type III F test of a fixed term."""

    term: str
    sum_sq: float
    mean_sq: float
    num_df: int
    den_df: float
    f: float
    p: float


@dataclass(frozen=True, slots=True)
class Mean:
    """The estimated mean of a level of a factor, over the other effects; NaN where empty cells leave it unknowable.

    The levels of other factors weigh the same, numbers are held at their mean. lower, upper: for this mean alone.
    """

    factor: str
    label: str
    estimate: float
    se: float
    df: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class Difference:
    """The mean difference a - b between two levels of a factor, over the other effects.

    lower, upper: leave out 0 exactly when p_adjusted is below 1 - level. estimate and everything after it are NaN where
    empty cells leave the difference unknowable.
    """

    factor: str
    a: str
    b: str
    estimate: float
    se: float
    df: float
    lower: float
    upper: float
    p: float
    p_adjusted: float


@dataclass(frozen=True, slots=True)
class InteractionTest:
    """Whether the effects of `group` are particular to each level of `factor`: the likelihood-ratio test of `term`.

    lrt, p (the boundary's): None where it cannot be tested, and why_not says why. formula: the one with the term.
    """

    factor: str
    group: str
    term: str
    lrt: float | None
    p: float | None
    formula: str
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class MixedResult(Told):
    """A fitted mixed model with its tests.

    control: the level that all others of its factor are compared with, None for every pair.
    interactions, conditions: what `checks` found, empty before.
    random and ranova are in the formula's order. random_effects: the predicted effect of every level of every group.
    notes: what the reader must know (rows or columns left out, variances at zero).
    fit: the model itself, for what is computed on demand (`variance_shares`).
    """

    told_as: ClassVar[str] = "mixed"

    formula: str
    reml: bool
    ddf: DegreesOfFreedom
    adjust: str
    control: str | None
    level: float
    rows: int
    loglik_reml: float
    loglik_ml: float
    aic: float
    fixed: tuple[FixedEffect, ...]
    random: tuple[RandomEffect, ...]
    correlations: tuple[EffectCorrelation, ...]
    residual_sd: float
    singular: bool
    ranova: tuple[RanovaRow, ...]
    anova: tuple[AnovaRow, ...]
    means: tuple[Mean, ...]
    differences: tuple[Difference, ...]
    random_effects: Mapping[str, Mapping[str, float]]
    notes: tuple[str, ...]
    fit: Fit = field(repr=False, compare=False)
    interactions: tuple[InteractionTest, ...] = ()
    conditions: tuple[Condition, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The documented keys. Levels are written `factor=level` where several factors have means or differences."""
        several = len({row.factor for row in self.means} | {row.factor for row in self.differences}) > 1
        return {
            "loglik_reml": self.loglik_reml,
            "loglik_ml": self.loglik_ml,
            "aic": self.aic,
            "fixed": [_plain(row, leave_out=("se_kenward_roger",)) for row in self.fixed],
            "random": [_plain(row) for row in self.random],
            "residual_sd": self.residual_sd,
            "singular": self.singular,
            "ranova": [_plain(row, leave_out=("p_boundary", "group")) for row in self.ranova],
            "anova": [_plain(row) for row in self.anova],
            "differences": [_difference_json(row, several) for row in self.differences],
            "means": [_mean_json(row, several) for row in self.means],
            "correlations": [_plain(row) for row in self.correlations],
            "interactions": [_plain(row) for row in self.interactions],
            "notes": list(self.notes),
            "warnings": [condition.to_json() for condition in self.conditions],
        }


def _mean_json(row: Mean, several: bool) -> dict[str, Any]:
    plain = _plain(row, leave_out=("factor",))
    return {**plain, "label": f"{row.factor}={row.label}"} if several else plain


def _difference_json(row: Difference, several: bool) -> dict[str, Any]:
    plain = _plain(row, leave_out=("factor", "df"))
    return {**plain, "a": f"{row.factor}={row.a}", "b": f"{row.factor}={row.b}"} if several else plain
