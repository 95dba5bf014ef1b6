"""Power and planning: the number of runs, the difference, or the chance to see it.

Questions about power: a design and a source of runs, and the search for the number that was asked for.

Power and planning: how many runs for a difference of this size, and what difference these runs could see.

Runs are simulated like the user's own where there are any, and as normal runs where not; the t tests of normal runs
need no simulation (noncentral t; the same numbers as R's `power.t.test`). A difference counts as seen when the test
claims it for the side that is truly better.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from isorun.analysis import Told
from isorun.analysis.evidence import Condition
from isorun.analysis.evidence.units import Units
from isorun.analysis.planning.power_curves import (
    PAIRED_TESTS,
    SEQUENTIAL_TESTS,
    SIMULATED_UP_TO,
    TESTS,
    AbstractRuns,
    Chance,
    Design,
    is_exact,
    power_curve,
    source_of,
)
from isorun.analysis.sequential import MOST_RUNS, spending_function
from isorun.errors import InputError, known_names

__all__ = [
    "TESTS",
    "PowerOptions",
    "PowerResult",
    "Question",
    "detectable_difference",
    "power",
    "power_of",
    "runs_needed",
]

_MOST_PLANNED = 5_000
_CURVE_POINTS = 15
_SEED = 104_729
_SMALLEST_ALPHA = 1e-9
_EFFECTS = (1e-9, 1e12)
"""Effects, in sd, that can be computed with; smaller ones no number of runs would show."""


class PowerOptions(TypedDict, total=False):
    """test: one of TESTS, "brunner-munzel" by default. sd: of normal runs, 1 by default.

    spending, min_runs, step and futility are those of the sequential rule. rng: where simulated runs come from; a
    generator of fixed seed by default.
    """

    test: str
    alpha: float
    spending: str
    min_runs: int
    step: int
    futility: bool
    sd: float | None
    rng: np.random.Generator | None


@dataclass(frozen=True, slots=True)
class PowerResult(Told):
    """A number of runs, a difference and the chance to see it; `asked` says which of the three was found.

    runs: a side, or pairs for paired tests, or at most that many a side for the sequential rule, whose `mean_runs` is
    what it takes on average. effect_size: the difference in units of `sd`, of a run or for paired tests of a
    difference. standard_error: of a simulated power; 0 where it is computed (see `source` for how).
    """

    told_as: ClassVar[str] = "power"

    asked: str
    test: str
    runs: int
    difference: float
    effect_size: float
    power: float
    alpha: float
    mean_runs: float
    sd: float
    source: str
    simulations: int
    standard_error: float
    units: Mapping[str, Units] | None = field(default=None, compare=False)
    conditions: tuple[Condition, ...] = ()
    question: Question | None = field(default=None, compare=False, repr=False)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, the fields and one sentence; what the runs count as where some were given."""
        plain = {
            name: getattr(self, name) for name in self.__slots__ if name not in {"units", "conditions", "question"}
        }
        sides = zip("ab", (self.units or {}).values(), strict=False)
        counts = {key: value for side, one in sides for key, value in _counts(side, one).items()}
        weakened = [condition.to_json() for condition in self.conditions]
        return plain | {"sentence": self.sentence} | counts | {"warnings": weakened}

    def simulated_from(self, units: Mapping[str, Units], conditions: tuple[Condition, ...]) -> PowerResult:
        """The same answer, with the evidence that the simulated runs are drawn from."""
        return replace(self, units=units, conditions=conditions)

    def curve(self) -> tuple[tuple[int, Chance], ...]:
        """The chance to see this difference with fewer and with more runs, up to twice as many."""
        if self.question is None:
            return ()
        sizes = np.unique(np.linspace(self.question.fewest, max(2 * self.runs, 10), _CURVE_POINTS).round().astype(int))
        asked = (int(runs) for runs in np.union1d(sizes, [self.runs]) if self.question.can_plan(int(runs)))
        return tuple((runs, self.question.chance(runs, self.difference)) for runs in asked)

    @property
    def sentence(self) -> str:
        """The result in plain English."""
        unit = "pairs of runs" if self.test in PAIRED_TESTS else "runs a side"
        most = f"at most {self.runs} {unit} ({self.mean_runs:.1f} on average)"
        runs = most if self.test in SEQUENTIAL_TESTS else f"{self.runs} {unit}"
        return (
            f"{runs} see a difference of {self.difference:.4g} ({self.effect_size:.2f} sd) with a chance of "
            f"{self.power:.0%} ({self.test} test at {self.alpha:.1%}, {self.source})"
        )


def _counts(side: str, units: Units) -> dict[str, Any]:
    return {f"n_{side}": units.runs.size, f"units_{side}": units.count, "unit": units.noun}


@dataclass(frozen=True, slots=True)
class Question:
    """A design and where its runs come from.

    Every number of runs is simulated from its own stream; those that are not simulated share one.
    """

    design: Design
    source: AbstractRuns
    seed: int

    @classmethod
    def of(cls, a: ArrayLike | None, b: ArrayLike | None, options: PowerOptions) -> Question:
        """The question that the arguments ask."""
        unknown = sorted(set(options) - set(PowerOptions.__annotations__))
        if unknown:
            allowed = known_names(unknown[0], PowerOptions.__annotations__)
            raise InputError(f"there is no option {unknown[0]!r}", found=unknown[0], allowed=allowed)
        design = _checked_design(_design(options))
        source = source_of(a, b, sd=options.get("sd"), paired=design.test in PAIRED_TESTS)
        rng = options.get("rng") or np.random.default_rng(_SEED)
        return cls(design, source, int(rng.integers(2**63)))

    @property
    def fewest(self) -> int:
        """The fewest runs that the test can work with."""
        return self.design.min_runs if self.design.test in SEQUENTIAL_TESTS else 2

    @property
    def exact(self) -> bool:
        """Whether the chance is computed from the law of the test itself."""
        return is_exact(self.design, self.source)

    def difference(self, difference: float | None, effect_size: float | None) -> float:
        """The difference in units of the metric."""
        given = [value for value in (difference, effect_size) if value is not None]
        if len(given) != 1 or not math.isfinite(given[0]) or given[0] == 0:
            raise InputError(
                "the difference to look for is not clear",
                found=f"difference {difference}, effect_size {effect_size}",
                allowed="one of the two: a finite number other than 0",
            )
        size = abs(difference) if difference is not None else abs(given[0]) * self.source.sd
        if not _EFFECTS[0] <= size / self.source.sd <= _EFFECTS[1]:
            raise InputError(
                "the difference cannot be planned for beside the spread of the runs",
                found=f"a difference of {size:.4g}, an sd of {self.source.sd:.4g}",
                allowed=f"an effect from {_EFFECTS[0]:g} to {_EFFECTS[1]:g} sd",
                hint="is the difference in units of the metric (--difference), or in sd (--effect)?",
            )
        return size

    def checked_runs(self, runs: int) -> int:
        """The number of runs, if it can be planned."""
        if not self.can_plan(runs):
            allowed = f"from {self.fewest} to {self.most}"
            raise InputError("the runs cannot be planned", found=f"{runs}", allowed=allowed)
        return runs

    @property
    def most(self) -> int:
        """The most runs that are planned."""
        return MOST_RUNS if self.design.test in SEQUENTIAL_TESTS else _MOST_PLANNED

    def can_plan(self, runs: int) -> bool:
        """Whether so many runs can be planned."""
        return self.fewest <= runs <= self.most

    def checked_power(self, power: float) -> float:
        """The power, if it can be reached."""
        alpha = self.design.alpha
        if not alpha < power < 1:
            raise InputError("the power cannot be used", found=f"{power}", allowed=f"between alpha ({alpha:g}) and 1")
        return power

    def chance(self, runs: int, difference: float) -> Chance:
        """The chance to see the difference with that many runs."""
        return power_curve(self.design, runs, self.source, self._stream(runs))(difference)

    def fewest_runs(self, difference: float, target: float) -> int:
        """Bisection between a number of runs that is too small and one that is enough.

        A simulated number is found to half a percent, which is less than the simulation itself leaves open.
        """
        most = self.most
        enough = min(most, max(self.fewest, self._guess(difference, target)))
        while self.chance(enough, difference).power < target:
            if enough == most:
                raise InputError(
                    "the difference is too small to plan for",
                    found=f"{difference:.4g}, which {most} runs do not see with a chance of {target:.0%}",
                    hint="look for a larger difference, or reduce the spread of the runs",
                )
            enough = min(most, math.ceil(1.25 * enough) + 1)
        too_few = self._too_few(enough, difference, target)
        while enough - too_few > self._closeness(enough):
            middle = (enough + too_few) // 2
            if self.chance(middle, difference).power >= target:
                enough = middle
            else:
                too_few = middle
        return enough

    def smallest_difference(self, runs: int, target: float) -> float:
        """Bisection on one curve, to a ten-thousandth of a standard deviation."""
        curve = power_curve(self.design, runs, self.source, self._stream(runs))
        low, high = 0.0, self.source.sd
        while curve(high).power < target:
            if high > 1_000 * self.source.sd:
                raise InputError(
                    "no difference can be seen with so few runs",
                    found=f"{runs} runs, {self.design.test} test at {self.design.alpha:g}",
                    hint="ask for more runs",
                )
            low, high = high, 2 * high
        while high - low > 1e-4 * self.source.sd:
            middle = (low + high) / 2
            low, high = (low, middle) if curve(middle).power >= target else (middle, high)
        return high

    def answer(self, asked: str, runs: int, difference: float) -> PowerResult:
        """The result for that many runs and that difference."""
        chance = self.chance(runs, difference)
        return PowerResult(
            asked=asked,
            test=self.design.test,
            runs=runs,
            difference=difference,
            effect_size=difference / self.source.sd,
            power=chance.power,
            alpha=self.design.alpha,
            mean_runs=chance.mean_runs,
            sd=self.source.sd,
            source=self.source.description + ("" if chance.comparisons or self.exact else ", normal approximation"),
            simulations=chance.comparisons,
            standard_error=chance.standard_error,
            question=self,
        )

    def _guess(self, difference: float, target: float) -> int:
        """The normal approximation, from which the search starts."""
        quantiles = float(special.ndtri(1 - self.design.alpha / 2) + special.ndtri(target))
        sides = 1 if self.design.test in PAIRED_TESTS else 2
        return math.ceil(sides * (quantiles * self.source.sd / difference) ** 2) + 1

    def _too_few(self, enough: int, difference: float, target: float) -> int:
        """A number of runs below `enough` that is too small, as near to it as is found quickly."""
        fewer = enough
        while fewer > self.fewest:
            fewer = max(self.fewest, int(fewer / 1.25))
            if self.chance(fewer, difference).power < target:
                return fewer
        return self.fewest - 1

    def _closeness(self, runs: int) -> int:
        return 1 if self.exact else max(1, runs // 200)

    def _stream(self, runs: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, min(runs, SIMULATED_UP_TO + 1)])


def _design(options: PowerOptions) -> Design:
    chosen = {name: value for name, value in options.items() if name not in {"sd", "rng"}}
    return Design(**chosen)  # type: ignore[arg-type]  # mypy does not narrow the remaining keys of a TypedDict


def _checked_design(design: Design) -> Design:
    if design.test not in TESTS:
        raise InputError(
            f"there is no test {design.test!r}", found=design.test, allowed=known_names(design.test, TESTS)
        )
    if not _SMALLEST_ALPHA <= design.alpha < 0.5:
        allowed = "a number between 0 and 0.5" if design.alpha >= 0.5 else f"{_SMALLEST_ALPHA:g} or more"
        raise InputError("alpha cannot be used", found=f"{design.alpha}", allowed=allowed)
    spending_function(design.spending)
    return design


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
