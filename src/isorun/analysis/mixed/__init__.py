"""Linear mixed models with crossed and nested random intercepts: own REML and ML solver, tests as lme4 and lmerTest."""

from isorun.analysis.mixed.fit import Fit, fit_problem, prepare
from isorun.analysis.mixed.hypotheses import Hypotheses, Hypothesis, hypotheses
from isorun.analysis.mixed.model import mixed_model
from isorun.analysis.mixed.result import (
    AnovaRow,
    Difference,
    FixedEffect,
    MixedResult,
    RandomEffect,
    RanovaRow,
    VarianceShare,
)
from isorun.analysis.mixed.shares import variance_shares

__all__ = [
    "AnovaRow",
    "Difference",
    "Fit",
    "FixedEffect",
    "Hypotheses",
    "Hypothesis",
    "MixedResult",
    "RandomEffect",
    "RanovaRow",
    "VarianceShare",
    "fit_problem",
    "hypotheses",
    "mixed_model",
    "prepare",
    "variance_shares",
]
