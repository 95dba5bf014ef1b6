"""The columns a formula names, checked and ready: numbers as float64, text as factors.

Nothing is dropped unless the caller says so; what cannot be used is named, counted and placed.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isorun.analysis.mixed.formula import Formula
from isorun.analysis.samples import require_moderate
from isorun.errors import InputError, known_names

__all__ = ["Factor", "Missing", "ModelColumns", "Regressor", "interaction", "levels_of", "model_columns"]

Missing = Literal["error", "drop"]


@dataclass(frozen=True, slots=True)
class Factor:
    """A column of levels: codes[i] is the place of row i's level in `levels`, which are sorted and all in use."""

    levels: tuple[str, ...]
    codes: NDArray[np.intp]


Regressor = NDArray[np.float64] | Factor


@dataclass(frozen=True, slots=True)
class ModelColumns:
    """The response, the variables of fixed and random effects by their label, the grouping factors by name (`h:g`)."""

    response: NDArray[np.float64]
    variables: Mapping[str, Regressor]
    groups: Mapping[str, Factor]
    notes: tuple[str, ...]


def model_columns(data: Mapping[str, ArrayLike], formula: Formula, missing: Missing) -> ModelColumns:
    """Check and encode the columns of `data` that `formula` uses.

    Missing are NaN, infinities, None and empty text; rows with one are an error, or dropped with a note.
    """
    if missing not in ("error", "drop"):
        raise InputError("missing rows cannot be treated so", found=repr(missing), allowed="error, drop")
    variables = tuple(dict.fromkeys((*formula.variables, *formula.slope_variables)))
    wanted = dict.fromkeys([formula.response, *(v.column for v in variables), *sum(formula.groups, ())])
    raw = {name: _cells(data, name) for name in wanted}
    _check_lengths(raw)
    kept, notes = _complete_rows(raw, missing)
    if kept is not None:
        raw = {name: cells[kept] for name, cells in raw.items()}
    for name, cells in raw.items():
        if not _is_text(cells):
            require_moderate(cells, f"column {name!r}")
    factors: dict[str, Factor] = {}
    return ModelColumns(
        response=_response(raw[formula.response], formula.response),
        variables={
            v.label: _factor_of(raw, v.column, factors) if v.forced_factor or _is_text(raw[v.column]) else raw[v.column]
            for v in variables
        },
        groups={":".join(columns): _group(raw, columns, factors) for columns in formula.groups},
        notes=notes,
    )


def interaction(first: Factor, second: Factor) -> Factor:
    """The factor of the level pairs that occur."""
    pairs = first.codes * len(second.levels) + second.codes
    values, codes = np.unique(pairs, return_inverse=True)
    names = (divmod(int(pair), len(second.levels)) for pair in values)
    return Factor(tuple(f"{first.levels[a]}:{second.levels[b]}" for a, b in names), codes)


def _group(raw: Mapping[str, NDArray[Any]], columns: Sequence[str], factors: dict[str, Factor]) -> Factor:
    group = _factor_of(raw, columns[0], factors)
    for column in columns[1:]:
        group = interaction(group, _factor_of(raw, column, factors))
    return group


def _factor_of(raw: Mapping[str, NDArray[Any]], column: str, factors: dict[str, Factor]) -> Factor:
    """Encode a column once, however often the formula uses it."""
    if column not in factors:
        factors[column] = levels_of(raw[column])
    return factors[column]


def levels_of(cells: NDArray[Any]) -> Factor:
    """Text or numbers as levels."""
    values, codes = np.unique(cells, return_inverse=True)
    return Factor(
        tuple(str(value) if values.dtype.kind == "U" else f"{value:.15g}" for value in values.tolist()), codes
    )


def _is_text(cells: NDArray[Any]) -> bool:
    return cells.dtype.kind == "U"


def _response(cells: NDArray[Any], name: str) -> NDArray[np.float64]:
    if not _is_text(cells):
        return np.asarray(cells, dtype=np.float64)
    row = next((place for place, cell in enumerate(cells.tolist()) if not _reads_as_number(cell)), 0)
    raise InputError(
        f"the response {name!r} is a text column",
        found=f"{cells[row]!s:.40} in row {row + 1}",
        allowed="numbers",
        hint="clean the column, or name another response",
    )


def _reads_as_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _cells(data: Mapping[str, ArrayLike], name: str) -> NDArray[Any]:
    """A column as float64 or as text; missing cells become NaN or empty text."""
    if name not in data:
        raise InputError(f"there is no column {name!r}", allowed=known_names(name, data))
    given = data[name]
    if isinstance(given, list | tuple):
        return _mixed_cells(list(given), name)
    cells = np.asarray(given)
    if cells.ndim != 1:
        raise InputError(f"column {name!r} is not one-dimensional", found=f"shape {cells.shape}")
    if cells.dtype.kind in "fiu":
        return cells.astype(np.float64)
    return cells if cells.dtype.kind == "U" else _mixed_cells(cells.tolist(), name)


def _mixed_cells(cells: list[Any], name: str) -> NDArray[Any]:
    """Lists, booleans and Python objects: all numbers or all text, or an error; NumPy would make text of a mixture."""
    gone = [cell is None or (isinstance(cell, float) and math.isnan(cell)) for cell in cells]
    text = [isinstance(cell, str | bytes | bool | np.bool_) for cell in cells]
    if any(text) and not all(t or g for t, g in zip(text, gone, strict=True)):
        row = next(i for i, (t, g) in enumerate(zip(text, gone, strict=True)) if not t and not g)
        first = next(i for i, t in enumerate(text) if t)
        raise InputError(
            f"column {name!r} mixes text and numbers",
            found=f"{cells[first]!r} in row {first + 1}, {cells[row]!r} in row {row + 1}",
            allowed="only numbers, or only text",
        )
    if any(text):
        return np.array(["" if g else str(cell) for cell, g in zip(cells, gone, strict=True)], dtype=np.str_)
    wrong = [i for i, (cell, g) in enumerate(zip(cells, gone, strict=True)) if not g and not _is_number(cell)]
    if wrong:
        found = f"{type(cells[wrong[0]]).__name__} in row {wrong[0] + 1}"
        raise InputError(f"column {name!r} holds something else", found=found, allowed="numbers or text")
    return np.array([math.nan if g else float(cell) for cell, g in zip(cells, gone, strict=True)], dtype=np.float64)


def _is_number(cell: object) -> bool:
    return isinstance(cell, numbers.Real)


def _check_lengths(raw: Mapping[str, NDArray[Any]]) -> None:
    lengths = {name: len(cells) for name, cells in raw.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name} has {length} rows" for name, length in lengths.items())
        raise InputError("the columns are not equally long", found=found)
    if not any(lengths.values()):
        raise InputError("the table has no rows")


def _complete_rows(
    raw: Mapping[str, NDArray[Any]], missing: Missing
) -> tuple[NDArray[np.intp] | None, tuple[str, ...]]:
    """The rows to keep (None: all of them), and the notes that say what was dropped."""
    gaps = {name: (cells == "") if _is_text(cells) else ~np.isfinite(cells) for name, cells in raw.items()}
    gaps = {name: gap for name, gap in gaps.items() if gap.any()}
    if not gaps:
        return None, ()
    counts = "; ".join(_describe_gap(name, raw[name], gap) for name, gap in gaps.items())
    if missing == "error":
        raise InputError(
            "the table has missing or infinite values",
            found=counts,
            allowed="finite numbers and non-empty text in every column of the formula",
            hint="find out why; drop_missing (--drop-missing) leaves these rows out and says how many",
        )
    incomplete = np.logical_or.reduce(list(gaps.values()))
    if incomplete.all():
        raise InputError("every row has a missing or infinite value", found=counts)
    return np.flatnonzero(~incomplete), (f"dropped {int(incomplete.sum())} of {len(incomplete)} rows: {counts}",)


def _describe_gap(name: str, cells: NDArray[Any], gap: NDArray[np.bool_]) -> str:
    rows = np.flatnonzero(gap)
    shown = ", ".join(str(row + 1) for row in rows[:3]) + (", …" if len(rows) > 3 else "")
    infinite = 0 if _is_text(cells) else int(np.isinf(cells).sum())
    kinds = [f"{len(rows) - infinite} missing"] if len(rows) > infinite else []
    kinds += [f"{infinite} infinite"] if infinite else []
    return f"{name}: {' and '.join(kinds)} (row {shown})"
