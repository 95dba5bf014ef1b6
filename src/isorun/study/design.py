"""The declared design of a study: what is compared, where, at which levels, how often, and how it is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isorun.study import parsing
from isorun.study.checks import as_boolean
from isorun.study.levels import Level
from isorun.study.parts import Approach, Config, Environment, Metric, Policy, Selection, Sources

__all__ = ["Approach", "Config", "Environment", "Metric", "Policy", "Selection", "Sources", "Study"]


@dataclass(frozen=True, init=False, slots=True)
class Study:
    """A declared design: approaches x configs x environments x levels x seeds x repeats.

    Every argument takes what the study file takes for the table of the same name, or the ready-made parts:

        Study("digits", approaches={"lenet": "python train.py --lr {config.lr}"},
              configs={"slow": {"lr": 0.01}}, levels=["default", "fixed-seed"], repeats=8)

    An approach may also be a module-level Python function. folder: where relative paths start and where the default
    store lies. withheld: by approach and environment, the keyed hashes of what is in no record (`document.with_key`).
    take_seeds: whether constants that the training seeds with follow the run's seed instead.
    """

    name: str
    approaches: Mapping[str, Approach]
    configs: Mapping[str, Config]
    environments: Mapping[str, Environment]
    levels: tuple[Level, ...]
    seeds: tuple[int, ...]
    repeats: int
    take_seeds: bool
    metrics: Mapping[str, Metric]
    selections: Mapping[str, Selection]
    policy: Policy
    folder: str = field(compare=False)
    withheld: Mapping[str, Mapping[str, str]] = field(compare=False, repr=False)

    def __init__(
        self,
        name: str,
        *,
        approaches: Mapping[str, Any],
        configs: Mapping[str, Any] | None = None,
        environments: Mapping[str, Any] | None = None,
        levels: Any = (Level.DEFAULT,),
        seeds: Any = (1,),
        repeats: int = 1,
        take_seeds: bool = False,
        metrics: Mapping[str, Any] | None = None,
        selections: Mapping[str, Any] | None = None,
        sources: Any = None,
        policy: Any = None,
        folder: str | Path = ".",
    ) -> None:
        default_sources = parsing.sources(sources, "sources")
        parsed = {
            "name": parsing.study_name(name),
            "approaches": parsing.approaches(approaches, default_sources, Path(folder)),
            "configs": parsing.configs(configs),
            "environments": parsing.environments(environments),
            "levels": parsing.levels(levels),
            "seeds": parsing.seeds(seeds),
            "repeats": parsing.repeats(repeats),
            "take_seeds": as_boolean(take_seeds, "take_seeds"),
            "metrics": parsing.metrics(metrics),
            "selections": parsing.selections(selections),
            "policy": parsing.policy(policy),
            "folder": str(folder),
            "withheld": {},
        }
        for key, value in parsed.items():
            object.__setattr__(self, key, value)
        parsing.check_together(self.approaches, self.configs)

    @classmethod
    def load(cls, path: str | Path) -> Study:
        """The study declared in a TOML file."""
        from isorun.study.toml import load_study  # noqa: PLC0415 - toml builds studies, so it imports this module

        return load_study(Path(path))
