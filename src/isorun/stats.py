"""The statistics as functions: lists and arrays in, frozen results out. `isorun.compare` and the like take tables.

Two approaches: brunner_munzel, mann_whitney, wilcoxon_signed_rank, welch, paired_t, effect_size, hodges_lehmann,
    probability_of_improvement, single_run_reversal; levene, fligner, f_test of their spreads
By name: almost_stochastic_order, bayesian_signed_rank, bayesian_correlated_t
One group: spread, sd_interval, pooled_sd, interquartile_mean, outliers, sd_bootstrap_interval
Seeds and repeats: nested_variance, nested_disagreement
Classes and examples: class_gaps, correctness, noise_shares
Many approaches: compare_many, kruskal, friedman, aggregate, rank_intervals, improvement_across_tasks,
    performance_profile, expected_best_of_k, expected_best_curve; adjusted p
Order: agreement, agreements of every pair, tau_interval, tau_difference_interval, rank_changes, supported_digits
Verdicts and planning: decide, next_action, against_stored looks; power_of, runs_needed, detectable_difference
Models: mixed_model, variance_shares, hypotheses, joint_test

Each loads when it is first used. Paths below `isorun.analysis`, where they are, are not public and may change.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from isorun import showing
from isorun.errors import checked

if TYPE_CHECKING:
    from isorun.analysis.agreements.agreement import agreement, agreements, tau_difference_interval, tau_interval
    from isorun.analysis.agreements.shared_runs import rank_changes, supported_digits
    from isorun.analysis.leaderboards.across_tasks import (
        expected_best_curve,
        expected_best_of_k,
        improvement_across_tasks,
        performance_profile,
    )
    from isorun.analysis.leaderboards.aggregate import aggregate, rank_intervals
    from isorun.analysis.leaderboards.compare_many import compare_many, friedman, kruskal
    from isorun.analysis.leaderboards.resampling import sd_bootstrap_interval
    from isorun.analysis.mixed.checks import joint_test
    from isorun.analysis.mixed.hypotheses import hypotheses, variance_shares
    from isorun.analysis.mixed.model import mixed_model
    from isorun.analysis.pairwise import (
        brunner_munzel,
        f_test,
        fligner,
        levene,
        mann_whitney,
        paired_t,
        welch,
        wilcoxon_signed_rank,
    )
    from isorun.analysis.pairwise.by_name import (
        almost_stochastic_order,
        bayesian_correlated_t,
        bayesian_signed_rank,
    )
    from isorun.analysis.pairwise.effects import (
        effect_size,
        hodges_lehmann,
        probability_of_improvement,
        single_run_reversal,
    )
    from isorun.analysis.planning.power import detectable_difference, power_of, runs_needed
    from isorun.analysis.samples import Pairs, adjusted
    from isorun.analysis.sequential import against_stored, next_action
    from isorun.analysis.sequential.verdict import decide
    from isorun.analysis.spreads import interquartile_mean, outliers, pooled_sd, sd_interval, spread
    from isorun.analysis.spreads.class_gaps import class_gaps
    from isorun.analysis.spreads.nested import nested_disagreement, nested_variance
    from isorun.analysis.spreads.noise import correctness, noise_shares

_HOMES: Final = {
    "agreements.agreement": ("agreement", "agreements", "tau_difference_interval", "tau_interval"),
    "agreements.shared_runs": ("rank_changes", "supported_digits"),
    "leaderboards.across_tasks": (
        "expected_best_curve",
        "expected_best_of_k",
        "improvement_across_tasks",
        "performance_profile",
    ),
    "leaderboards.aggregate": ("aggregate", "rank_intervals"),
    "leaderboards.compare_many": ("compare_many", "friedman", "kruskal"),
    "leaderboards.resampling": ("sd_bootstrap_interval",),
    "mixed.checks": ("joint_test",),
    "mixed.hypotheses": ("hypotheses", "variance_shares"),
    "mixed.model": ("mixed_model",),
    "pairwise": (
        "brunner_munzel",
        "f_test",
        "fligner",
        "levene",
        "mann_whitney",
        "paired_t",
        "welch",
        "wilcoxon_signed_rank",
    ),
    "pairwise.by_name": ("almost_stochastic_order", "bayesian_correlated_t", "bayesian_signed_rank"),
    "pairwise.effects": ("effect_size", "hodges_lehmann", "probability_of_improvement", "single_run_reversal"),
    "planning.power": ("detectable_difference", "power_of", "runs_needed"),
    "samples": ("Pairs", "adjusted"),
    "sequential": ("against_stored", "next_action"),
    "sequential.verdict": ("decide",),
    "spreads.class_gaps": ("class_gaps",),
    "spreads.nested": ("nested_disagreement", "nested_variance"),
    "spreads": ("interquartile_mean", "outliers", "pooled_sd", "sd_interval", "spread"),
    "spreads.noise": ("correctness", "noise_shares"),
}
_HOME: Final = {name: f"isorun.analysis.{home}" for home, names in _HOMES.items() for name in names}

__all__ = [
    "Pairs",
    "adjusted",
    "against_stored",
    "aggregate",
    "agreement",
    "agreements",
    "almost_stochastic_order",
    "bayesian_correlated_t",
    "bayesian_signed_rank",
    "brunner_munzel",
    "class_gaps",
    "compare_many",
    "correctness",
    "decide",
    "detectable_difference",
    "effect_size",
    "expected_best_curve",
    "expected_best_of_k",
    "f_test",
    "fligner",
    "friedman",
    "hodges_lehmann",
    "hypotheses",
    "improvement_across_tasks",
    "interquartile_mean",
    "joint_test",
    "kruskal",
    "levene",
    "mann_whitney",
    "mixed_model",
    "nested_disagreement",
    "nested_variance",
    "next_action",
    "noise_shares",
    "outliers",
    "paired_t",
    "performance_profile",
    "pooled_sd",
    "power_of",
    "probability_of_improvement",
    "rank_changes",
    "rank_intervals",
    "runs_needed",
    "sd_bootstrap_interval",
    "sd_interval",
    "single_run_reversal",
    "spread",
    "supported_digits",
    "tau_difference_interval",
    "tau_interval",
    "variance_shares",
    "welch",
    "wilcoxon_signed_rank",
]

showing.install()


def __getattr__(name: str) -> Any:
    if name in _HOME:
        found = getattr(importlib.import_module(_HOME[name]), name)
        if not isinstance(found, type):
            found = globals()[name] = checked(found, __name__)
        return found
    raise AttributeError(f"isorun.stats has no {name!r}; it has: {', '.join(__all__)}")


def __dir__() -> list[str]:
    return list(__all__)
