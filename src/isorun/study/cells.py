"""Cells: the points of a study's design, each with an id derived from its content.

Because the id depends on nothing but what the cell says, a study can be resumed, extended and shared: a cell that
is unchanged in the file is the same cell, and a cell that was changed is another one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from isorun.study.levels import Level

__all__ = ["Cell", "ConfigValue"]

ConfigValue = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Cell:
    """One point of the design.

    command: the approach's argument vector, or ("function", "file.py:name"), placeholders not yet filled, and without
    values that look secret: a cell is recorded and shared.
    environment_content: what the environment sets (interpreter, env variables, threads), not only its name.
    seed: None at level `default`, where nothing is fixed and the seed given to `{seed}` is drawn anew for each run.
    take_seeds: whether constants that the training seeds with are replaced; part of the id only when they are, so that
    cells from before it was there are still the same.
    """

    approach: str
    command: tuple[str, ...]
    config: str
    config_values: Mapping[str, ConfigValue]
    environment: str
    environment_content: Mapping[str, Any]
    level: Level
    seed: int | None
    repeat: int
    take_seeds: bool = False
    id: str = field(init=False, default="")

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", self._content_id())

    def _content_id(self) -> str:
        canonical = json.dumps(self._content(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(canonical.encode()).hexdigest()[:16]

    def _content(self) -> dict[str, Any]:
        content = {
            "approach": self.approach,
            "command": list(self.command),
            "config": self.config,
            "config_values": dict(self.config_values),
            "environment": self.environment,
            "environment_content": dict(self.environment_content),
            "level": str(self.level),
            "seed": self.seed,
            "repeat": self.repeat,
        }
        return {**content, "take_seeds": True} if self.take_seeds else content

    def to_json(self) -> dict[str, Any]:
        """The cell as plain JSON, its id first."""
        return {"id": self.id, **self._content()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Cell:
        """The cell that `to_json` wrote."""
        return cls(
            approach=data["approach"],
            command=tuple(data["command"]),
            config=data["config"],
            config_values=dict(data["config_values"]),
            environment=data["environment"],
            environment_content=dict(data["environment_content"]),
            level=Level(data["level"]),
            seed=data["seed"],
            repeat=data["repeat"],
            take_seeds=data.get("take_seeds", False),
        )

    @property
    def group(self) -> tuple[str, str, str, str]:
        """What identical runs share, apart from the seed: approach, config, environment, level."""
        return (self.approach, self.config, self.environment, str(self.level))

    @property
    def label(self) -> str:
        """A short name for progress lines and log messages."""
        parts = [self.approach]
        parts += [self.config] if self.config != "default" else []
        parts += [self.environment] if self.environment != "default" else []
        parts.append(str(self.level))
        parts += [f"seed {self.seed}"] if self.seed is not None else []
        return " ".join([*parts, f"#{self.repeat}"])
