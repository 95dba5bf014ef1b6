"""A search as data: its space, its trials, and what they showed. Read from an engine by its adapter, and frozen.

All that judges a search or proposes its next trial knows these alone, and so works, and is tested, without an engine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal

from isorun.diagnose import Symptoms

__all__ = [
    "SYMPTOMS",
    "UNKNOWN_SYMPTOMS",
    "Configuration",
    "Parameter",
    "Search",
    "State",
    "Trial",
    "Value",
    "configuration_of",
    "repeated_noise",
]

Value = str | int | float | bool | None
Configuration = tuple[tuple[str, str], ...]
State = Literal["finished", "pruned", "failed", "running", "waiting"]
SYMPTOMS: Final = Symptoms._fields
"""What a trial shows, in the order in which conditions are written: A, C, G, W."""
UNKNOWN_SYMPTOMS: Final = Symptoms()
_FEW: Final = 12
_LOG_SPAN: Final = 8.0


def configuration_of(parameters: Mapping[str, Value]) -> Configuration:
    """The parameters in a form that can be looked up and compared."""
    return tuple(sorted((name, repr(value)) for name, value in parameters.items()))


@dataclass(frozen=True, slots=True)
class Parameter:
    """One dimension of a space. step: the distance of neighbouring values; none for a continuous one."""

    name: str
    kind: Literal["category", "float", "int"]
    choices: tuple[Value, ...] = ()
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    step: float | None = None

    @property
    def size(self) -> float:
        """How many values there are; infinitely many for a continuous one."""
        if self.kind == "category":
            return len(self.choices)
        step = 1.0 if self.kind == "int" and self.step is None else self.step
        if self.low == self.high:
            return 1
        return math.inf if step is None else math.floor((self.high - self.low) / step + 1e-9) + 1

    @property
    def is_numeric(self) -> bool:
        """Whether its values are numbers, so that one is more or less than another."""
        return self.kind != "category" or all(map(_is_number, self.choices))

    @property
    def _is_log(self) -> bool:
        if self.kind != "category":
            return self.log
        positive = [float(choice) for choice in self.choices if float(choice) > 0]  # type: ignore[arg-type]
        return bool(positive) and max(positive) >= _LOG_SPAN * min(positive)

    def holds(self, value: Value) -> bool:
        """Whether the value lies within the space."""
        if self.kind == "category":
            return any(_same(value, choice) for choice in self.choices)
        return _is_number(value) and self.low <= float(value) <= self.high  # type: ignore[arg-type]

    def label(self, value: Value) -> str:
        """The value as counts know it, so that what is told of one search speaks to another.

        On a log scale the nearest half power of ten, of few whole numbers the number, of shares the tenth; otherwise
        the fifth of the range it lies in. Choices that are numbers are on a log scale where they span a factor of 8.
        """
        if not self.is_numeric or not _is_number(value):
            return str(value).strip().casefold()
        number = float(value)  # type: ignore[arg-type]
        if number > 0 and self._is_log:
            halves = round(2 * math.log10(number))
            return f"{10 ** (halves / 2):.0e}".replace("e-0", "e-").replace("e+0", "e")
        if self.kind == "category":
            return f"{number:g}"
        if self.kind == "int" and self.size <= _FEW:
            return f"{number:g}"
        if self.low >= 0 and self.high <= 1:
            return f"{round(10 * number) / 10:g}"
        fifth = min(int(5 * (number - self.low) / (self.high - self.low)), 4) if self.high > self.low else 0
        return f"{fifth + 1}/5"

    def valid(self, number: float) -> Value:
        """The value of the space that is nearest to the number."""
        number = min(max(number, self.low), self.high)
        step = 1.0 if self.kind == "int" and self.step is None else self.step
        if step is not None:
            steps = round((number - self.low) / step)
            number = self.low + min(steps, math.floor((self.high - self.low) / step + 1e-9)) * step
        return round(number) if self.kind == "int" else number


@dataclass(frozen=True, slots=True)
class Trial:
    """One configuration that was tried.

    score: as the engine holds it; none for a trial that has not finished. symptoms: A, C, G, W. origin: the trial that
    it changes, where isorun proposed it; chance: the probability to improve that was foretold then.
    """

    number: int
    state: State
    score: float | None
    parameters: Mapping[str, Value]
    seconds: float | None = None
    started: float | None = None
    symptoms: Symptoms = UNKNOWN_SYMPTOMS
    why_failed: str = ""
    proposed_by: str = ""
    origin: int | None = None
    chance: float | None = None

    @property
    def configuration(self) -> Configuration:
        """What two equal trials share."""
        return configuration_of(self.parameters)

    @property
    def has_score(self) -> bool:
        """Whether it finished with a number."""
        return self.state == "finished" and self.score is not None and math.isfinite(self.score)

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to come of it."""
        return self.state in ("finished", "pruned", "failed")


@dataclass(frozen=True)
class Search:
    """A search as it stands. direction: which scores are better. noise: sd of a score between seeds; 0: not known."""

    engine: str
    name: str
    direction: Literal["higher", "lower"]
    space: tuple[Parameter, ...]
    trials: tuple[Trial, ...]
    noise: float = 0.0
    noise_from: str = field(default="", compare=False)

    def gain(self, trial: Trial) -> float:
        """The score, so that more is better."""
        assert trial.score is not None
        return trial.score if self.direction == "higher" else -trial.score

    @cached_property
    def scored(self) -> tuple[Trial, ...]:
        """The trials that finished with a number, in order."""
        return tuple(trial for trial in self.trials if trial.has_score)

    @cached_property
    def best(self) -> Trial | None:
        """The first of the trials with the best score."""
        return max(self.scored, key=self.gain, default=None)

    @cached_property
    def improvements(self) -> tuple[Trial, ...]:
        """The trials that were better than all before them, by more than noise."""
        found: list[Trial] = []
        for trial in self.scored:
            if not found or self.gain(trial) > self.gain(found[-1]) + self.margin:
                found.append(trial)
        return tuple(found)

    @property
    def margin(self) -> float:
        """By how much a score must be better to count: the noise of a difference of two single trainings."""
        return self.noise * math.sqrt(2)

    @cached_property
    def parameters(self) -> Mapping[str, Parameter]:
        """The space by name."""
        return {parameter.name: parameter for parameter in self.space}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _same(value: Value, choice: Value) -> bool:
    return value is choice or (type(value) is type(choice) and value == choice)


def repeated_noise(trials: Sequence[Trial]) -> float:
    """The pooled standard deviation of trials that were made more than once; 0 where there are none."""
    groups: dict[Configuration, list[float]] = {}
    for trial in trials:
        if trial.has_score and trial.score is not None:
            groups.setdefault(trial.configuration, []).append(trial.score)
    squares = freedom = 0.0
    for scores in groups.values():
        mean = math.fsum(scores) / len(scores)
        squares += math.fsum((score - mean) ** 2 for score in scores)
        freedom += len(scores) - 1
    return math.sqrt(squares / freedom) if freedom else 0.0
