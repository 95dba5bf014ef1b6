"""Figures of results of every size and with every kind of name, by a word for each."""

from itertools import combinations

import numpy as np

from isorun.analysis.comparison import compare
from isorun.analysis.leaderboards.across_tasks import performance_profile
from isorun.analysis.leaderboards.compare_many import compare_many
from isorun.analysis.mixed.result import Difference, VarianceShare
from isorun.analysis.pairwise.effects import probability_of_improvement
from isorun.analysis.samples import Pairs
from isorun.analysis.sequential.verdict import decide
from isorun.report.figures.decision_paths import sequential_path
from isorun.report.figures.distributions import ecdf, strip
from isorun.report.figures.effects import ForestRow, forest, paired_change, shares_figure
from isorun.report.figures.leaderboards import critical_difference, improvement_matrix, performance_profiles
from isorun.report.figures.searches import (
    SearchStory,
    TakenAction,
    TrialMark,
    action_gains,
    progress_by_time,
    progress_by_trial,
    symptom_strip,
)

HOSTILE = "<script>alert('x')</script>&\"$x^2$ \x1b[31m]]>"
LONG = "resnet50-with-a-name-of-forty-characters"
assert len(LONG) == 40


def names(count, kind="plain"):
    stem = {"plain": "approach", "long": LONG[:-3], "hostile": HOSTILE}[kind]
    return [f"{stem} {place:02d}" for place in range(1, count + 1)]


def groups(count, runs, kind="plain", seed=0):
    generator = np.random.default_rng(seed)
    return {
        name: generator.normal(90 + 0.4 * place, 0.6 + 0.05 * place, runs)
        for place, name in enumerate(names(count, kind))
    }


def differences(count, kind="plain"):
    generator = np.random.default_rng(2)
    return [_difference(a, b, *generator.normal(0, (1.0, 0.1))) for a, b in combinations(names(count, kind), 2)]


def _difference(a, b, estimate, extra):
    reach = 0.8 + abs(extra)
    return Difference("setting", a, b, estimate, 0.4, 20.0, estimate - reach, estimate + reach, 0.03, 0.2)


def unknowable(a, b):
    return Difference("setting", a, b, *([float("nan")] * 7))


def shares(count, kind="plain"):
    parts = np.linspace(3, 1, count + 1) ** 2
    parts /= parts.sum()
    return [
        VarianceShare(name, float(part), float(part) / 2, min(1.0, float(part) * 1.6))
        for name, part in zip([*names(count, kind), "Residual"], parts, strict=True)
    ]


def improvements(count, kind="plain", runs=15):
    return {
        (a, b): probability_of_improvement(first, second)
        for (a, first), (b, second) in combinations(groups(count, runs, kind).items(), 2)
    }


def pairs(count, seed=3):
    generator = np.random.default_rng(seed)
    first = generator.normal(70, 1.0, count)
    return Pairs(first, first + np.round(generator.normal(0.2, 0.5, count), 1), ("seed 99",) if count > 1 else ())


def decision(runs=18, shift=0.6, seed=1, **plan):
    generator = np.random.default_rng(seed)
    return decide(generator.normal(shift, 1, runs), generator.normal(0, 1, runs), direction="higher", **plan)


def profiles(count, kind="plain"):
    generator = np.random.default_rng(4)
    thresholds = np.linspace(0, 3, 31)
    return {
        name: performance_profile(generator.gamma(2 + place / 3, 0.5, (5, 4)), thresholds)
        for place, name in enumerate(names(count, kind))
    }


def _compared(count, kind="plain", **plan):
    return compare_many(groups(count, 20, kind), **plan)


def story(trials, direction="higher", word="slow", **more):
    generator = np.random.default_rng(trials)
    states = generator.choice(["finished", "failed", "pruned", "without"], trials, p=[0.7, 0.1, 0.1, 0.1])
    states[:1], states[1:][-1:] = "finished", "running"
    marks = tuple(
        TrialMark(
            number,
            float(generator.normal(0.5, 0.1) * (1e6 if number == 3 else 1)) if state == "finished" else None,
            str(state),
            10.0 * number + 5,
            number % 3 == 2,
            {"convergence": word if number % 2 else "normal", "gradient": "vanishing"} if state == "finished" else {},
        )
        for number, state in enumerate(states)
    )
    return SearchStory(marks, direction, target=0.9, moments=((trials // 2, f"{word} since {trials // 2}"),), **more)


def taken(count, kind="plain"):
    generator = np.random.default_rng(count)
    return [
        TakenAction(
            number,
            f"{name} 0.1 → 0.01",
            0.5,
            float(generator.normal(0.5, 0.1)) if number % 5 else -1e9,
            "improved" if number % 3 else "worse",
        )
        for number, name in enumerate(names(count, kind))
    ]


EXAMPLES = {
    "search-1": lambda: progress_by_trial(story(1)),
    "search-25": lambda: progress_by_trial(story(25)),
    "search-25-lower": lambda: progress_by_trial(story(25, "lower")),
    "search-25-time": lambda: progress_by_time(story(25)),
    "search-1000-time": lambda: progress_by_time(story(1000, "lower")),
    "search-10000": lambda: progress_by_trial(story(10_000)),
    "search-hostile": lambda: progress_by_trial(story(12, word=HOSTILE)),
    "symptoms-1": lambda: symptom_strip(story(1), ("normal",)),
    "symptoms-40": lambda: symptom_strip(story(40), ("normal",)),
    "symptoms-10000": lambda: symptom_strip(story(10_000), ("normal",)),
    "symptoms-hostile": lambda: symptom_strip(story(12, word=HOSTILE), ("normal",)),
    "actions-1": lambda: action_gains(taken(1), "higher"),
    "actions-12-long": lambda: action_gains(taken(12, "long"), "lower"),
    "actions-1000": lambda: action_gains(taken(1000), "higher"),
    "actions-hostile": lambda: action_gains(taken(3, "hostile"), "higher"),
    "strip-1": lambda: strip(groups(1, 5), "accuracy (%)"),
    "strip-single-run": lambda: strip({"base": [0.5]}),
    "strip-constant": lambda: strip({"base": [2.5] * 5, "new": [2.5] * 3}, "loss"),
    "strip-12": lambda: strip(groups(12, 200), "accuracy (%)"),
    "strip-long": lambda: strip(groups(3, 20, "long"), "accuracy (%)"),
    "strip-many-runs": lambda: strip(groups(2, 5000), "accuracy (%)"),
    "strip-hostile": lambda: strip(groups(2, 8, "hostile"), HOSTILE),
    "ecdf-1": lambda: ecdf(groups(1, 1), "accuracy (%)"),
    "ecdf-3": lambda: ecdf(groups(3, 30), "accuracy (%)"),
    "ecdf-12-long": lambda: ecdf(groups(12, 200, "long"), "accuracy (%)"),
    "ecdf-14": lambda: ecdf(groups(14, 5000), "accuracy (%)"),
    "ecdf-hostile": lambda: ecdf(groups(2, 8, "hostile"), HOSTILE),
    "forest-1": lambda: forest([compare([5.0, 6, 7, 8, 9], [1.0, 2, 3, 4, 5.5], a="new", b="base")]),
    "forest-6": lambda: forest([*differences(4), unknowable("x", "y")], "difference in accuracy (points)"),
    "forest-66": lambda: forest(differences(12), "difference"),
    "forest-long": lambda: forest(differences(3, "long")),
    "forest-no-interval": lambda: forest([ForestRow("one run a side", 0.2, None)]),
    "forest-hostile": lambda: forest(differences(3, "hostile"), HOSTILE),
    "matrix-2": lambda: improvement_matrix(improvements(2)),
    "matrix-5": lambda: improvement_matrix(improvements(5)),
    "matrix-12-long": lambda: improvement_matrix(improvements(12, "long")),
    "matrix-24": lambda: improvement_matrix(improvements(24)),
    "matrix-single-runs": lambda: improvement_matrix(improvements(3, runs=1)),
    "matrix-hostile": lambda: improvement_matrix(improvements(3, "hostile")),
    "ranks-2": lambda: critical_difference(_compared(2, paired=True)),
    "ranks-5": lambda: critical_difference(_compared(5, paired=True)),
    "ranks-12-long": lambda: critical_difference(_compared(12, "long", paired=True)),
    "ranks-independent": lambda: critical_difference(_compared(6)),
    "ranks-hostile": lambda: critical_difference(_compared(3, "hostile", paired=True)),
    "shares-1": lambda: shares_figure(shares(0)),
    "shares-3": lambda: shares_figure(shares(2)),
    "shares-12-long": lambda: shares_figure(shares(11, "long")),
    "shares-hostile": lambda: shares_figure(shares(2, "hostile")),
    "paired-1": lambda: paired_change(pairs(1), "torch 2.2", "torch 2.3", "accuracy (%)"),
    "paired-10": lambda: paired_change(pairs(10), "torch 2.2", "torch 2.3", "accuracy (%)"),
    "paired-200-long": lambda: paired_change(pairs(200), f"{LONG[:-2]} A", f"{LONG[:-2]} B", "accuracy (%)"),
    "paired-hostile": lambda: paired_change(pairs(3), HOSTILE, HOSTILE, HOSTILE, labels=[HOSTILE] * 3),
    "path-open": lambda: sequential_path(decision(), "new", "base"),
    "path-claimed": lambda: sequential_path(decision(30, 1.2)),
    "path-hopeless": lambda: sequential_path(decision(24, 0.0, seed=5)),
    "path-too-few": lambda: sequential_path(decision(3)),
    "path-constant": lambda: sequential_path(decide([1.0] * 8, [1.0] * 8, direction="higher")),
    "path-e-process": lambda: sequential_path(decision(40, max_runs=None), LONG, "base"),
    "path-fixed": lambda: sequential_path(decision(method="fixed")),
    "path-few-looks": lambda: sequential_path(decision(looks=[(6, 9), (12, 18), (20, 30)])),
    "path-hostile": lambda: sequential_path(decision(), HOSTILE, HOSTILE),
    "path-infinite": lambda: sequential_path(decide([2.0] * 8, [1.0] * 8, direction="higher", max_runs=None)),
    "profiles-1": lambda: performance_profiles(profiles(1)),
    "profiles-3": lambda: performance_profiles(profiles(3), "normalised score"),
    "profiles-12-long": lambda: performance_profiles(profiles(12, "long")),
    "profiles-hostile": lambda: performance_profiles(profiles(2, "hostile"), HOSTILE),
}
"""Built on demand: each takes a moment."""
