"""Simulates every decision procedure and prints its error rate, power and mean runs beside the reference table.

Normal runs, looks after every run from 5 to 30 a side, d standard deviations between A and B. The reference figures
were themselves simulated and are rounded to .001 and 0.1 runs, so a row passes within .004 of a rate and 0.1 of a
mean. The default rule, whose null is that a new run of either side wins as often as not, is held to its own targets,
with spreads of up to 1:10. Run it: `python benchmarks/sequential.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from isorun.analysis.pairwise import continuous_law
from isorun.analysis.sequential import Look, every
from isorun.analysis.sequential.rules import Rule, e_process_rule, fixed_rule, naive_rule, sequential_rule
from isorun.analysis.sequential.trace import Ends, ends, trace

COMPARISONS = 200_000
ALPHA = 0.05
RATE_TOLERANCE = 0.004
MEAN_TOLERANCE = 0.1
EFFECTS = (0.0, 0.5, 1.0, 1.7)
SCHEDULE = every(1, min_runs=5, max_runs=30)

REFERENCE: dict[str, tuple[tuple[float, float], ...]] = {
    "fixed n=30": ((0.050, 30), (0.457, 30), (0.960, 30), (1.0, 30)),
    "naive p<.05 each look": ((0.203, 26.5), (0.626, 20.2), (0.978, 10.8), (1.0, 6.3)),
    "pocock": ((0.049, 29.2), (0.343, 25.9), (0.908, 16.1), (1.0, 8.4)),
    "power-1.5": ((0.050, 29.4), (0.393, 26.1), (0.934, 16.8), (1.0, 9.4)),
    "obrien-fleming": ((0.050, 29.6), (0.428, 26.6), (0.946, 18.3), (1.0, 11.7)),
    "t e-process": ((0.017, 29.7), (0.202, 27.7), (0.819, 18.9), (1.0, 9.7)),
}
SPREADS = (1.0, 2.0, 4.0, 10.0)
MOST_FALSE_CLAIMS = 0.055
DEFAULT_POWER = {0.5: (0.37, 26.7), 1.0: (0.92, 17.5), 1.7: (0.999, 10.6)}
HOLDS_ALPHA = frozenset(REFERENCE) - {"naive p<.05 each look"}
MOST_NULL_RUNS_WITH_FUTILITY = 22.0
MOST_POWER_LOST_TO_FUTILITY = 0.01


def rules() -> dict[str, Rule]:
    spending = {
        name: sequential_rule(SCHEDULE, name, ALPHA, futility=False, test="mann-whitney")
        for name in ("pocock", "power-1.5", "obrien-fleming")
    }
    return {
        "fixed n=30": fixed_rule(Look(30, 30), ALPHA, continuous_law(30, 30)),
        "naive p<.05 each look": naive_rule(SCHEDULE, ALPHA),
        **spending,
        "t e-process": e_process_rule(SCHEDULE, ALPHA),
    }


def futile_rules() -> dict[str, Rule]:
    return {
        name: sequential_rule(SCHEDULE, name, ALPHA, futility=True, test="mann-whitney")
        for name in ("power-1.5", "pocock", "obrien-fleming")
    }


def simulate(rule: Rule, effect: float, spread: float = 1.0) -> tuple[float, float]:
    """The rate of claims and the mean runs a side; every rule sees the same simulated runs."""
    rng = np.random.default_rng([41, round(10 * effect)])
    a = rng.standard_normal((30, COMPARISONS), dtype=np.float32) + np.float32(effect)
    b = np.float32(spread) * rng.standard_normal((30, COMPARISONS), dtype=np.float32)
    return rate_and_mean(rule, ends(trace(rule, a, b)))


def rate_and_mean(rule: Rule, end: Ends) -> tuple[float, float]:
    sizes = np.array([look.n_a for look in rule.schedule])
    return float(end.decided.mean()), float(sizes[end.look].mean())


def reference_rows(measured: dict[str, list[tuple[float, float]]]) -> Iterator[dict[str, Any]]:
    for name, expected in REFERENCE.items():
        for effect, (rate, mean), (wanted, runs) in zip(EFFECTS, measured[name], expected, strict=True):
            yield _row(f"{name}, d={effect}: claims", rate, wanted, "rate", ok=_rate_ok(name, effect, rate, wanted))
            yield _row(f"{name}, d={effect}: runs a side", mean, runs, "runs", ok=mean <= runs + MEAN_TOLERANCE)


def futility_rows(
    with_futility: dict[str, list[tuple[float, float]]], without: dict[str, list[tuple[float, float]]]
) -> Iterator[dict[str, Any]]:
    for name, results in with_futility.items():
        rate, mean = results[0]
        most = MOST_NULL_RUNS_WITH_FUTILITY
        yield _row(f"{name} with futility, d=0.0: claims", rate, ALPHA, "rate", ok=rate <= ALPHA + RATE_TOLERANCE / 2)
        yield _row(f"{name} with futility, d=0.0: runs a side", mean, most, "runs", ok=mean <= most)
        for k, effect in enumerate(EFFECTS[1:], start=1):
            lost = without[name][k][0] - results[k][0]
            detail = f"power {results[k][0]:.4f}, {results[k][1]:.2f} runs a side"
            allowed = MOST_POWER_LOST_TO_FUTILITY
            yield _row(
                f"{name} with futility, d={effect}: power lost",
                lost,
                allowed,
                "rate",
                ok=lost <= allowed,
                detail=detail,
            )


def default_rows() -> Iterator[dict[str, Any]]:
    rule = sequential_rule(SCHEDULE, "power-1.5", ALPHA, futility=True)
    for spread in SPREADS:
        rate, _ = simulate(rule, 0.0, spread)
        most = MOST_FALSE_CLAIMS
        yield _row(f"default rule, spreads 1:{spread:g}, d=0.0: claims", rate, most, "rate", ok=rate <= most)
    for effect, (power, most_runs) in DEFAULT_POWER.items():
        rate, mean = simulate(rule, effect)
        yield _row(f"default rule, d={effect}: claims", rate, power, "rate", ok=rate >= power)
        yield _row(f"default rule, d={effect}: runs a side", mean, most_runs, "runs", ok=mean <= most_runs)


def measure() -> list[dict[str, Any]]:
    without = {name: [simulate(rule, effect) for effect in EFFECTS] for name, rule in rules().items()}
    with_futility = {name: [simulate(rule, effect) for effect in EFFECTS] for name, rule in futile_rules().items()}
    return [*reference_rows(without), *futility_rows(with_futility, without), *default_rows()]


def _rate_ok(name: str, effect: float, rate: float, wanted: float) -> bool:
    if effect:
        return rate >= wanted - RATE_TOLERANCE
    return rate <= ALPHA + RATE_TOLERANCE / 2 if name in HOLDS_ALPHA else abs(rate - wanted) <= 2 * RATE_TOLERANCE


def _row(name: str, measured: float, target: float, unit: str, *, ok: bool, detail: str = "") -> dict[str, Any]:
    error = f"{COMPARISONS:,} simulated comparisons"
    return {
        "name": name,
        "measured": round(measured, 4),
        "target": target,
        "unit": unit,
        "ok": ok,
        "detail": f"{detail}; {error}" if detail else error,
    }


def main() -> None:
    for row in measure():
        mark = "ok  " if row["ok"] else "MISS"
        print(f"{mark} {row['name']:<52} {row['measured']:>8} (target {row['target']}) {row['detail']}")


if __name__ == "__main__":
    main()
