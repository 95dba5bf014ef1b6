"""Studies declared again from the cells of stored runs: by approach, config, environment and level as they were.

So searches, drawn configs and factors need not be carried out again for their runs to be: a cell says all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from isorun.study import FUNCTION
from isorun.study.cells import Cell
from isorun.study.design import Study, kept_study

__all__ = ["approach_of", "environment_of", "study_of_cells"]


def approach_of(cell: Cell, kept: Mapping[str, Any]) -> dict[str, Any]:
    """The approach of a cell as a study file says it; how its metrics are read as the kept study has it."""
    approach = kept.get("approaches", {}).get(cell.approach, {})
    what = {"function": cell.command[1]} if cell.command[0] == FUNCTION else {"command": list(cell.command)}
    return {**what, **({"sources": approach["sources"]} if "sources" in approach else {})}


def environment_of(cell: Cell, kept: Mapping[str, Any]) -> dict[str, Any]:
    """The environment as a study file says it; what is no part of a cell (imports, memory) as the kept study has it."""
    content = {name: value for name, value in cell.environment_content.items() if value is not None}
    beside = kept.get("environments", {}).get(cell.environment, {})
    also = {name: beside[name] for name in ("preload", "memory") if beside.get(name) is not None}
    code = content.get("code")
    if isinstance(code, Mapping):
        content["code"] = {"ref": "." if code.get("diff") else code.get("commit", ""), **code}
    return {**content, **also}


def study_of_cells(
    name: str,
    cells: Iterable[Cell],
    kept: Mapping[str, Any],
    folder: Path,
    *,
    seeds: Iterable[int] = (1,),
    repeats: int = 1,
    known_as: Mapping[str, str] | None = None,
    environments: Mapping[str, Mapping[str, Any]] | None = None,
    isolate: bool = False,
) -> Study:
    """The study that has these cells, and all others of their factors. environments: those that are declared otherwise.

    kept: the document of the study that they come from, for how it is judged and carried out. isolate: runs work in
    copies of the folder, whatever the document says: it may have been asked for on the command line.
    """
    approaches: dict[str, dict[str, Any]] = {}
    configs: dict[str, dict[str, Any]] = {}
    places: dict[str, Mapping[str, Any]] = {}
    withheld: dict[str, dict[str, str]] = {}
    levels: dict[str, None] = {}
    take_seeds = False
    for cell in cells:
        approaches.setdefault(cell.approach, {**approach_of(cell, kept), "configs": []})
        if cell.config not in approaches[cell.approach]["configs"]:
            approaches[cell.approach]["configs"].append(cell.config)
        configs[cell.config] = dict(cell.config_values)
        places.setdefault(cell.environment, (environments or {}).get(cell.environment) or environment_of(cell, kept))
        levels[str(cell.level)] = None
        take_seeds = take_seeds or cell.take_seeds
        if cell.withheld:
            withheld.setdefault(cell.approach, {})[cell.environment] = cell.withheld
    document = {
        "name": name,
        "approaches": approaches,
        "configs": configs,
        "environments": places,
        "levels": list(levels),
        "seeds": list(seeds),
        "repeats": repeats,
        **({"take_seeds": True} if take_seeds else {}),
        **{key: kept[key] for key in ("metrics", "selections") if key in kept},
        "policy": {**kept.get("policy", {}), **({"isolate": True} if isolate else {})},
        **({"withheld": withheld} if withheld else {}),
        **({"known_as": dict(known_as)} if known_as else {}),
    }
    return kept_study(document, folder, name)
