"""What tells foreign runs apart: which approach and config each is of, and which parameter is the seed.

Nobody declared these runs as a study. Their approach is what they were filed under, unless a parameter, a tag or the
run's name is chosen; their config is all other parameters. A config is called by what differs between configs, and
keeps the name that it was first given.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from isorun.errors import InputError, harmless, known_names
from isorun.share.trackers import TrackedRun
from isorun.sources.objects import flattened
from isorun.study.cells import ConfigValue

__all__ = ["BY_EXPERIMENT", "BY_NAME", "NO_SEED", "ToldApart", "flat_params", "seed_parameter"]

BY_EXPERIMENT, BY_NAME = "experiment", "name"
NO_SEED: Final = "none"
_SEEDS: Final = ("seed", "random_seed", "random_state", "rng_seed", "manual_seed", "global_seed", "seed_everything")
_LARGEST_SEED: Final = 2**63
_LARGEST_EXACT_FLOAT: Final = 2.0**53
_LONGEST_NAME: Final = 60
_LONGEST_VALUE: Final = 24


def flat_params(params: Mapping[str, Any]) -> dict[str, ConfigValue]:
    """The parameters as values of a config: nested names joined by "/"; what is no text or number as JSON."""
    return {name: _value(value) for name, value in flattened(params)}


def _value(value: Any) -> ConfigValue:
    if isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return json.dumps(value, sort_keys=True, default=str)


def seed_parameter(runs: Iterable[TrackedRun]) -> str:
    """The parameter that is called a seed, and is a whole number wherever it is something; empty without one."""
    found: dict[str, bool] = {}
    for run in runs:
        for name, value in flat_params(run.params).items():
            if name.rpartition("/")[2].lower() in _SEEDS and value not in ("null", "None", ""):
                found[name] = found.get(name, True) and _whole(value) is not None
    usable = [name for name, good in found.items() if good]
    return min(usable, key=lambda name: (_SEEDS.index(name.rpartition("/")[2].lower()), len(name), name), default="")


def _whole(value: object) -> int | None:
    """The seed that a value is. 3.0 is 3: TensorBoard keeps all numbers so, and tables with gaps theirs."""
    try:
        number = int(str(value))
    except ValueError:
        number = _from_float(str(value))
    return number if 0 <= number < _LARGEST_SEED and not isinstance(value, bool) else None


def _from_float(text: str) -> int:
    """The whole number that a decimal is exactly; -1 where it is none."""
    try:
        number = float(text)
    except ValueError:
        return -1
    return int(number) if number.is_integer() and number < _LARGEST_EXACT_FLOAT else -1


@dataclass(slots=True)
class ToldApart:
    """How the runs of one study are told apart.

    by: `experiment`, `name`, or a parameter or tag, whose value is the approach. seed: the parameter with the seed,
    empty where none is used. ignored: parameters that tell no configs apart, such as folders to write to. configs:
    those that are known already, by name.
    """

    by: str = BY_EXPERIMENT
    seed: str = ""
    ignored: tuple[str, ...] = ()
    configs: dict[str, dict[str, ConfigValue]] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)

    def check(self, runs: Sequence[TrackedRun]) -> None:
        """InputError where a name is none of a parameter or a tag."""
        params = dict.fromkeys(name for run in runs for name in flat_params(run.params))
        tags = dict.fromkeys(name for run in runs for name in run.tags)
        if self.by not in (BY_EXPERIMENT, BY_NAME, *params, *tags):
            raise InputError(
                f"no run has a parameter or tag {self.by!r}",
                allowed=known_names(self.by, [BY_EXPERIMENT, BY_NAME, *params, *tags]),
                hint="--approach NAME: what tells approaches apart",
            )
        for option, names in (("--seed", [self.seed] if self.seed else []), ("--ignore", self.ignored)):
            for name in names:
                if name not in params:
                    raise InputError(
                        f"no run has a parameter {name!r}", allowed=known_names(name, params), hint=f"{option} NAME"
                    )

    def learn(self, runs: Sequence[TrackedRun]) -> None:
        """Name the configs of these runs; those that are known keep their names."""
        self._names = {_digest(values): name for name, values in self.configs.items()}
        new: dict[str, dict[str, ConfigValue]] = {}
        for run in runs:
            values = self.config_of(run)
            if (digest := _digest(values)) not in self._names:
                new[digest] = values
        varying = _varying([*self.configs.values(), *new.values()])
        for digest, values in new.items():
            name = self._free(_called(values, varying))
            self.configs[name] = values
            self._names[digest] = name

    def _free(self, name: str) -> str:
        number = 1
        while (free := name if number == 1 else f"{name} #{number}") in self.configs:
            number += 1
        return free

    def config_of(self, run: TrackedRun) -> dict[str, ConfigValue]:
        """What the config of this run sets."""
        # A parameter that happens to be called so is not what approaches are told apart by.
        chosen = {self.by} - {BY_EXPERIMENT, BY_NAME}
        aside = {self.seed, *chosen, *self.ignored}
        return {name: value for name, value in sorted(flat_params(run.params).items()) if name not in aside}

    def config_name(self, run: TrackedRun) -> str:
        """What the config of this run is called."""
        return self._names[_digest(self.config_of(run))]

    def approach_of(self, run: TrackedRun) -> str:
        """The approach of this run."""
        if self.by == BY_EXPERIMENT:
            found: object = run.experiment
        elif self.by == BY_NAME:
            found = run.name
        else:
            params = flat_params(run.params)
            found = params.get(self.by, run.tags.get(self.by, f"without {self.by}"))
        return harmless(str(found)).strip()[:100] or "unnamed"

    def seed_of(self, run: TrackedRun) -> int | None:
        """The seed of this run; None where no parameter says it."""
        return _whole(flat_params(run.params).get(self.seed)) if self.seed else None

    def unfit_seeds(self, runs: Sequence[TrackedRun]) -> list[str]:
        """What the parameter with the seed says in runs where it is no seed."""
        told = (flat_params(run.params).get(self.seed) for run in runs) if self.seed else ()
        return list(dict.fromkeys(str(value) for value in told if value is not None and _whole(value) is None))

    def alone(self, runs: Sequence[TrackedRun]) -> list[str]:
        """Parameters that have another value in every run, so that no two runs share a config."""
        if len(runs) < 3:
            return []
        values: dict[str, set[str]] = {}
        for run in runs:
            for name, value in self.config_of(run).items():
                values.setdefault(name, set()).add(repr(value))
        return [name for name, found in values.items() if len(found) == len(runs)]


def _digest(values: Mapping[str, ConfigValue]) -> str:
    return json.dumps(values, sort_keys=True)


def _varying(configs: Sequence[Mapping[str, ConfigValue]]) -> list[str]:
    """The parameters in which configs differ, or that only some have; runs that logged none say nothing about it."""
    configs = [values for values in configs if values]
    seen: dict[str, set[str]] = {}
    counts: dict[str, int] = {}
    for values in configs:
        for name, value in values.items():
            seen.setdefault(name, set()).add(repr(value))
            counts[name] = counts.get(name, 0) + 1
    return [name for name, found in seen.items() if len(found) > 1 or counts[name] < len(configs)]


def _called(values: Mapping[str, ConfigValue], varying: Sequence[str]) -> str:
    """A name of what differs: lr=0.1, depth=3."""
    ends = [name.rpartition("/")[2] for name in varying]
    parts = []
    for name, end in zip(varying, ends, strict=True):
        if name in values:
            shown = harmless(str(values[name]))
            short = shown if len(shown) <= _LONGEST_VALUE else f"{shown[: _LONGEST_VALUE - 1]}…"
            parts.append(f"{harmless(end if ends.count(end) == 1 else name)}={short}")
    whole = ", ".join(parts) or ("default" if values or not varying else "no parameters")
    return whole if len(whole) <= _LONGEST_NAME else f"{whole[: _LONGEST_NAME - 1]}…"
