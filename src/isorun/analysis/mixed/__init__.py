"""Linear mixed models with random intercepts and slopes: own REML and ML solver, tests as lmerTest and emmeans have."""

from isorun.analysis.mixed.checks import checked
from isorun.analysis.mixed.fit import Fit, fit_problem, prepare
from isorun.analysis.mixed.hypotheses import Hypotheses, Hypothesis, hypotheses
from isorun.analysis.mixed.interactions import interaction_tests, model_that_fits
from isorun.analysis.mixed.model import mixed_model
from isorun.analysis.mixed.result import (
    AnovaRow,
    Correlation,
    Difference,
    FixedEffect,
    InteractionTest,
    Mean,
    MixedResult,
    RandomEffect,
    RanovaRow,
    VarianceShare,
)
from isorun.analysis.mixed.shares import variance_shares

__all__ = [
    "AnovaRow",
    "Correlation",
    "Difference",
    "Fit",
    "FixedEffect",
    "Hypotheses",
    "Hypothesis",
    "InteractionTest",
    "Mean",
    "MixedResult",
    "RandomEffect",
    "RanovaRow",
    "VarianceShare",
    "checked",
    "fit_problem",
    "hypotheses",
    "interaction_tests",
    "mixed_model",
    "model_that_fits",
    "prepare",
    "variance_shares",
]
