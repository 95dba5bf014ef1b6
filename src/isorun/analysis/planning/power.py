"""Power and planning: how many runs for a difference of this size, and what difference these runs could see.

Runs are simulated like the user's own where there are any, and as normal runs where not; the t tests of normal runs
need no simulation (noncentral t; the same numbers as R's `power.t.test`). A difference counts as seen when the test
claims it for the side that is truly better.
"""

from __future__ import annotations

from typing import Unpack

from numpy.typing import ArrayLike

from isorun.analysis.planning.power_curves import TESTS
from isorun.analysis.planning.power_question import PowerOptions, PowerResult, Question

__all__ = ["TESTS", "PowerOptions", "PowerResult", "detectable_difference", "power", "power_of", "runs_needed"]


def power(
    a: ArrayLike | None = None,
    b: ArrayLike | None = None,
    *,
    runs: int | None = None,
    difference: float | None = None,
    effect_size: float | None = None,
    power: float = 0.8,
    **options: Unpack[PowerOptions],
) -> PowerResult:
    """Whichever of runs and difference is not given, or the power when both are; options as in `power_of`."""
    unknown_difference = difference is None and effect_size is None
    if runs is not None and not unknown_difference:
        return power_of(a, b, runs=runs, difference=difference, effect_size=effect_size, **options)
    if runs is not None:
        return detectable_difference(a, b, runs=runs, power=power, **options)
    return runs_needed(a, b, difference=difference, effect_size=effect_size, power=power, **options)


def power_of(
    a: ArrayLike | None = None,
    b: ArrayLike | None = None,
    *,
    runs: int,
    difference: float | None = None,
    effect_size: float | None = None,
    **options: Unpack[PowerOptions],
) -> PowerResult:
    """The chance to see a difference with that many runs.

    a, b: the user's own runs to simulate from; without them normal runs. difference is in units of the metric,
    effect_size in standard deviations: give one. The options are those of `PowerOptions`.
    """
    asked = Question.of(a, b, options)
    size = asked.difference(difference, effect_size)
    return asked.answer("power", asked.checked_runs(runs), size)


def runs_needed(
    a: ArrayLike | None = None,
    b: ArrayLike | None = None,
    *,
    difference: float | None = None,
    effect_size: float | None = None,
    power: float = 0.8,
    **options: Unpack[PowerOptions],
) -> PowerResult:
    """The fewest runs that see the difference with at least the given chance; arguments as in `power_of`."""
    asked = Question.of(a, b, options)
    size = asked.difference(difference, effect_size)
    target = asked.checked_power(power)
    return asked.answer("runs", asked.fewest_runs(size, target), size)


def detectable_difference(
    a: ArrayLike | None = None,
    b: ArrayLike | None = None,
    *,
    runs: int,
    power: float = 0.8,
    **options: Unpack[PowerOptions],
) -> PowerResult:
    """The smallest difference seen with at least the given chance; arguments as in `power_of`."""
    asked = Question.of(a, b, options)
    count = asked.checked_runs(runs)
    target = asked.checked_power(power)
    return asked.answer("difference", count, asked.smallest_difference(count, target))
