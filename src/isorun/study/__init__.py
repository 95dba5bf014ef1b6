"""A study: a declared design, its cells, and the records of its runs. Here are the parts that one is declared from.

Approaches, configs, environments, metrics, selections, sources of metrics, and the policy.
"""

from __future__ import annotations

import hashlib
import math
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from isorun.study.cells import ConfigValue
from isorun.worker.redaction import RECORDED_VARIABLES, REDACTED, names_secret

__all__ = [
    "FUNCTION",
    "KINDS",
    "Approach",
    "Config",
    "Distribution",
    "Environment",
    "Metric",
    "Policy",
    "Selection",
    "Sources",
    "is_withheld",
    "recordable",
]

FUNCTION: Final = "function"
_HASHED: Final = re.compile(rf"<sha256:[0-9a-f]{{16}}>|{re.escape(REDACTED)}(?:~[0-9a-f]{{4}})?")
"""What stands for a variable that is not recorded, or was taken out again."""


def _uniform(generator: random.Random, low: float, high: float) -> float:
    return low + (high - low) * generator.random()


def _normal(generator: random.Random, mean: float, sd: float) -> float:
    import statistics  # noqa: PLC0415  few studies draw from it, and it takes long to load

    return statistics.NormalDist(mean, sd).inv_cdf(_open_unit(generator))


def _log_uniform(generator: random.Random, low: float, high: float) -> float:
    drawn = math.exp(_uniform(generator, math.log(low), math.log(high)))
    return min(max(drawn, low), high)


def _integer(generator: random.Random, low: float, high: float) -> int:
    return generator.randint(int(low), int(high))


def _open_unit(generator: random.Random) -> float:
    drawn = generator.random()
    return drawn if drawn > 0.0 else _open_unit(generator)


KINDS: Final[Mapping[str, Callable[[random.Random, float, float], ConfigValue]]] = {
    "uniform": _uniform,
    "normal": _normal,
    "log-uniform": _log_uniform,
    "integer": _integer,
}


@dataclass(frozen=True, slots=True)
class Distribution:
    """A kind with its two numbers: low and high (integers include both ends), or mean and sd for `normal`.

    `choice` has its options instead.
    """

    kind: str
    first: float = 0.0
    second: float = 0.0
    options: tuple[ConfigValue, ...] = ()

    def draw(self, seed: int, config: str, parameter: str, number: int) -> ConfigValue:
        """The value of one draw."""
        key = f"{seed}/{config}/{parameter}/{number}".encode()
        generator = random.Random(int.from_bytes(hashlib.sha256(key).digest()[:8], "big"))
        if self.kind == "choice":
            return self.options[generator.randrange(len(self.options))]
        return KINDS[self.kind](generator, self.first, self.second)


def recordable(name: str, value: str) -> str:
    """What may be recorded of a variable; what was recorded of one stays as it is."""
    if name in RECORDED_VARIABLES or _HASHED.fullmatch(value):
        return value
    hashed = hashlib.sha256(value.encode(errors="surrogateescape")).hexdigest()[:16]
    return REDACTED if names_secret(name) else f"<sha256:{hashed}>"


def is_withheld(text: str) -> bool:
    """Whether something was left out of the text when it was recorded, so that nothing can be run with it."""
    return REDACTED in text or _HASHED.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Sources:
    """Where metrics are read from besides `isorun.log`.

    stdout: read lines that look like metrics ("val_acc: 0.98"); patterns: the user's own regular expressions with
    named groups; files: JSON, JSON lines or CSV files the training writes, relative to its working folder;
    tensorboard: folders with event files; installed: sources of other distributions by name, each with its settings.
    """

    stdout: bool = True
    patterns: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    tensorboard: tuple[str, ...] = ()
    installed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, with the keys of a study file."""
        installed = {name: list(settings) for name, settings in self.installed.items()}
        return {
            "stdout": self.stdout,
            "patterns": list(self.patterns),
            "files": list(self.files),
            "tensorboard": list(self.tensorboard),
            **({"installed": installed} if installed else {}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Sources:
        """What `to_json` wrote."""
        lists = {name: tuple(data[name]) for name in ("patterns", "files", "tensorboard")}
        installed = {name: tuple(settings) for name, settings in data.get("installed", {}).items()}
        return cls(stdout=data["stdout"], **lists, installed=installed)


@dataclass(frozen=True, slots=True)
class Approach:
    """What is compared: a command, or a function given as ("function", "file.py:name")."""

    name: str
    command: tuple[str, ...]
    configs: tuple[str, ...] = ()
    sources: Sources = field(default_factory=Sources)

    @property
    def is_function(self) -> bool:
        """Whether the approach is a Python function rather than a command."""
        return self.command[0] == FUNCTION


@dataclass(frozen=True, slots=True)
class Config:
    """Hyper-parameters: fixed values, and values drawn `draws` times from declared distributions."""

    name: str
    values: Mapping[str, ConfigValue] = field(default_factory=dict)
    distributions: Mapping[str, Distribution] = field(default_factory=dict)
    draws: int = 1
    draw_seed: int = 0


@dataclass(frozen=True, slots=True)
class Environment:
    """Where it trains. `python` replaces a leading `python` of a command; `threads` fixes the CPUs a run may use.

    devices_per_run: how many devices (GPUs) a run sees. memory_bytes: what a run is declared to need. kind: what makes
    it ready (`isorun.environments`), empty for an interpreter of the machine; settings: what that kind is told, as
    plain JSON, which it checks itself. code: a version of the code that it works in (`study.code`), empty for the
    study's folder as it is. switches: how libraries are asked to compute (`worker.frameworks.switches`), by name.
    steps: the training's work is timed, and ended after so many steps of an optimizer (0: at its own end). look: it is
    only looked at, and ended when the worker is told to here; of audits alone (`only_looked_at`), no file can say it.
    """

    name: str
    python: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    threads: int | None = None
    preload: tuple[str, ...] | None = None
    devices_per_run: int | None = None
    memory_bytes: int | None = None
    kind: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    code: Mapping[str, Any] = field(default_factory=dict)
    switches: Mapping[str, str] = field(default_factory=dict)
    steps: int | None = None
    look: str = ""

    @property
    def variables(self) -> Mapping[str, str]:
        """The study's own variables, and those that ask for its switches where it does not set them itself."""
        if not self.switches:
            return self.env
        from isorun.worker.frameworks import switches  # noqa: PLC0415 - most environments have none

        return {**switches.variables(self.switches), **self.env}

    def content(self) -> dict[str, Any]:
        """What makes a cell of this environment different from others.

        Preloading only makes it faster, and memory is needed or not: neither is part of it. It is recorded with every
        run, so values of variables that are not known to be harmless are not in it: a hash tells them apart, and what
        looks like a secret by its name counts as set and nothing more. A version of the code counts by its commit,
        whatever it is called. Keys that came later are there only when set, so that cells from before them are still
        the same.
        """
        env = {name: recordable(name, value) for name, value in self.env.items()}
        later = {} if self.devices_per_run is None else {"devices_per_run": self.devices_per_run}
        version = {key: value for key, value in self.code.items() if key != "ref"}
        parts = {**self._parts(), **({"code": version} if version else {})}
        return {"python": self.python, "env": env, "threads": self.threads, **later, **parts}

    def _parts(self) -> dict[str, Any]:
        given = {
            "kind": self.kind,
            "settings": dict(self.settings),
            "code": dict(self.code),
            "switches": dict(self.switches),
            "look": self.look,
        }
        timed = {} if self.steps is None else {"steps": self.steps}
        return {**{key: value for key, value in given.items() if value}, **timed}

    def to_json(self) -> dict[str, Any]:
        """What a study file would say, secrets included; keys that are not set are left out."""
        preload = None if self.preload is None else list(self.preload)
        given = {
            "python": self.python,
            "env": dict(self.env),
            "threads": self.threads,
            "preload": preload,
            "devices_per_run": self.devices_per_run,
            "memory": self.memory_bytes,
        }
        return {**{key: value for key, value in given.items() if value is not None}, **self._parts()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Environment:
        """What `to_json` wrote, with its name."""
        preload = data.get("preload")
        return cls(
            name=data["name"],
            python=data.get("python", ""),
            env=dict(data.get("env", {})),
            threads=data.get("threads"),
            preload=None if preload is None else tuple(preload),
            devices_per_run=data.get("devices_per_run"),
            memory_bytes=data.get("memory"),
            kind=data.get("kind", ""),
            settings=dict(data.get("settings", {})),
            code=dict(data.get("code", {})),
            switches=dict(data.get("switches", {})),
            steps=data.get("steps"),
            look=data.get("look", ""),
        )


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric that is judged. direction: "higher" or "lower" is better, "" when the study does not say.

    chance: what guessing gives, if known.
    """

    name: str
    direction: str = ""
    chance: float | None = None


@dataclass(frozen=True, slots=True)
class Selection:
    """What picks the epoch a run is judged at: the best value of `metric` on the validation set."""

    name: str
    metric: str
    direction: str

    @property
    def higher_is_better(self) -> bool:
        """Whether more is better."""
        return self.direction == "higher"


@dataclass(frozen=True, slots=True)
class Policy:
    """How runs are carried out: limits, and what happens on failure ("continue" or "fail-fast").

    isolate: whether each run works in a copy of the working folder. No part of what a run is known by.
    """

    time_limit_seconds: float | None = None
    on_failure: str = "continue"
    retries: int = 0
    isolate: bool = False
