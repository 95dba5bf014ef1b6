"""Runs that a tracker kept and isorun did not make, as parts of a study: their cells, and how the study keeps them.

The cells of such a study are no product of approaches, configs and seeds: each is what one run of the tracker was. Its
id is made from what the tracker knows the run by and from nothing else, so that the same run is the same cell in every
store, whatever its approach and config are called and whichever runs were imported before it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from isorun.errors import StudyError
from isorun.study.cells import Cell, ConfigValue, Level, is_cell_id
from isorun.study.parsing import as_list, as_mapping, as_text, as_whole

__all__ = ["IMPORTED", "ImportedRun", "ImportedRuns", "imported_cell_id", "imported_runs"]

IMPORTED: Final = "imported"
"""The first word of the command of such a cell, and how its runs were launched."""
_KEYS: Final = ("run", "cell", "content", "approach", "config", "level", "seed", "repeat")


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """One run of a tracker. run: what the tracker knows it by. content: a digest of all that was read of it.

    seed: where a parameter says it; such a run is at level `fixed-seed`, any other at `default`.
    """

    run: tuple[str, ...]
    cell: str
    content: str
    approach: str
    config: str
    seed: int | None
    repeat: int

    @property
    def level(self) -> Level:
        """What is known to be fixed."""
        return Level.DEFAULT if self.seed is None else Level.FIXED_SEED

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        values = (list(self.run), self.cell, self.content, self.approach, self.config)
        return dict(zip(_KEYS, (*values, str(self.level), self.seed, self.repeat), strict=True))


@dataclass(frozen=True, slots=True)
class ImportedRuns:
    """All runs of a study that come from one tracker. configs: what each sets, by its name.

    settings: how the runs were told apart, which a second import repeats.
    """

    tracker: str
    runs: tuple[ImportedRun, ...]
    configs: Mapping[str, Mapping[str, ConfigValue]]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def cell_of(self, run: ImportedRun) -> Cell:
        """The cell of one of them."""
        return Cell(
            approach=run.approach,
            command=(IMPORTED, self.tracker, *run.run),
            config=run.config,
            config_values=self.configs.get(run.config, {}),
            environment="default",
            environment_content={},
            level=run.level,
            seed=run.seed,
            repeat=run.repeat,
            known_as=run.cell,
        )

    def cells(self) -> tuple[Cell, ...]:
        """The cells of all."""
        return tuple(map(self.cell_of, self.runs))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, which `imported_runs` reads."""
        return {
            "tracker": self.tracker,
            "settings": dict(self.settings),
            "configs": {name: dict(values) for name, values in self.configs.items()},
            "runs": [run.to_json() for run in self.runs],
        }


def imported_cell_id(tracker: str, run: Sequence[str], grown: str = "") -> str:
    """The id of the cell of this run. grown: the digest of one that went on after it was imported as finished."""
    known_by = json.dumps([IMPORTED, tracker, *run, *([grown] if grown else [])])
    return hashlib.sha256(known_by.encode()).hexdigest()[:16]


def imported_runs(document: Any) -> ImportedRuns:
    """What `to_json` wrote; StudyError where it is something else."""
    table = as_mapping(document, IMPORTED)
    configs = as_mapping(table.get("configs", {}), "imported.configs")
    return ImportedRuns(
        tracker=as_text(table.get("tracker"), "imported.tracker"),
        runs=tuple(map(_run, as_list(table.get("runs"), "imported.runs", "a list of runs"))),
        configs={name: dict(as_mapping(values, f"imported.configs.{name}")) for name, values in configs.items()},
        settings=dict(as_mapping(table.get("settings", {}), "imported.settings")),
    )


def _run(item: Any) -> ImportedRun:
    table = as_mapping(item, "imported.runs")
    missing = [key for key in _KEYS if key not in table]
    if missing:
        raise StudyError(f"imported.runs: a run lacks {missing[0]!r}")
    run, seed = table["run"], table["seed"]
    texts = {key: as_text(table[key], f"imported.runs.{key}") for key in ("cell", "content", "approach", "config")}
    if not is_cell_id(texts["cell"]):
        raise StudyError(
            "imported.runs: that is no id of a cell", found=f"{texts['cell']!r:.60}", allowed="16 hex digits"
        )
    return ImportedRun(
        run=tuple(as_text(part, "imported.runs.run") for part in as_list(run, "imported.runs.run", "a list of texts")),
        **texts,
        seed=seed if seed is None else as_whole(seed, "imported.runs.seed", 0, 2**63 - 1),
        repeat=as_whole(table["repeat"], "imported.runs.repeat", 0, 2**62),
    )
