"""Studies declared again from the cells of stored runs: by approach, config, environment and level as they were.

So searches, drawn configs and factors need not be carried out again for their runs to be: a cell says all of it. Cells
of a stranger may say different things under one name, of which one is taken: `as_declared` says what is run then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from isorun.study import FUNCTION
from isorun.study.cells import Cell, ConfigValue
from isorun.study.design import Study, kept_study

__all__ = ["approach_of", "as_declared", "environment_of", "study_of_cells"]


def approach_of(name: str, command: Sequence[str], kept: Mapping[str, Any]) -> dict[str, Any]:
    """An approach with this command as a study file says it; how its metrics are read as the kept study has it."""
    approach = kept.get("approaches", {}).get(name, {})
    what = {"function": command[1]} if command[0] == FUNCTION else {"command": list(command)}
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


def as_declared(cells: Iterable[Cell]) -> list[Cell]:
    """Of each approach and config a cell as the study of all these cells runs it.

    What is taken for a name goes with what is taken for the others: a command and values that no cell has together may
    come together there.
    """
    cells = list(cells)
    commands, values = _commands_of(cells), _values_of(cells)
    pairs = {(cell.approach, cell.config): cell for cell in cells}
    return [
        replace(cell, command=commands[approach], config_values=values[config])
        for (approach, config), cell in pairs.items()
    ]


def _commands_of(cells: Iterable[Cell]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for cell in cells:
        found.setdefault(cell.approach, cell.command)
    return found


def _values_of(cells: Iterable[Cell]) -> dict[str, Mapping[str, ConfigValue]]:
    return {cell.config: cell.config_values for cell in cells}


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
    cells = list(cells)
    commands, values = _commands_of(cells), _values_of(cells)
    approaches = {one: {**approach_of(one, said, kept), "configs": []} for one, said in commands.items()}
    places: dict[str, Mapping[str, Any]] = {}
    withheld: dict[str, dict[str, str]] = {}
    levels: dict[str, None] = {}
    take_seeds = False
    for cell in cells:
        if cell.config not in approaches[cell.approach]["configs"]:
            approaches[cell.approach]["configs"].append(cell.config)
        places.setdefault(cell.environment, (environments or {}).get(cell.environment) or environment_of(cell, kept))
        levels[str(cell.level)] = None
        take_seeds = take_seeds or cell.take_seeds
        if cell.withheld:
            withheld.setdefault(cell.approach, {})[cell.environment] = cell.withheld
    document = {
        "name": name,
        "approaches": approaches,
        "configs": {one: dict(said) for one, said in values.items()},
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
