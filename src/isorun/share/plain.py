"""The runs of a study or package as plain tables, for those who have no isorun; and such tables as a package.

    runs.csv      a row a run: run, approach, config, environment, level, seed, repeat, state, times, config.NAME,
                  result.NAME and digest.NAME
    points.csv    a row a point: run, metric, step, seconds, value
    study.json    the design
    README.txt    what is what

Numbers are written so that they read back exactly; with Parquet (`isorun[tables]`) they are numbers.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from isorun.errors import InputError, MissingExtra
from isorun.session import Store
from isorun.share.code import Code
from isorun.share.keys import signer
from isorun.share.packing import Content, PackedStudy, check_license, package_name, write_package
from isorun.study.cells import Cell, Level, cells_of
from isorun.study.design import Study, document_without_secrets, study_from_document
from isorun.study.imported import IMPORTED
from isorun.study.records import RunRecord, RunState, Series, canonical_json

__all__ = ["Written", "packed_from", "write_plain"]

_FIELDS: Final = ("state", "exit_code", "seed_used", "started_at", "wall_seconds", "cpu_seconds", "peak_memory_bytes")
_CELL: Final = ("approach", "config", "environment", "level", "seed", "repeat")
_POINTS: Final = ("run", "metric", "step", "seconds", "value")
_DESIGN: Final = "study.json"
_SAME_RUN: Final = "in both tables the column run, with the same names"
_TABLE: Final = "a table"
"""What runs were imported from, of which nothing but their rows is known: nobody can make more of them."""
_README: Final = """\
{runs} runs of the study {study}, written by isorun pack --plain.

runs.{kind}    a row a run: config.NAME are its hyper-parameters, result.NAME its final values, digest.NAME its digests
points.{kind}  a row a point of a series: the run, the metric, the step or epoch, seconds since the run began, the value
study.json  the design that the runs belong to

isorun pack --from-plain FOLDER -o NAME.isorun makes a package of these tables. What they do not hold (environments,
logs, predictions, code) is not in it then.
"""


@dataclass(frozen=True, slots=True)
class Written:
    """What was written where."""

    folder: str
    study: str
    runs: int
    points: int
    files: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        counts = {"runs": self.runs, "points": self.points}
        return {"folder": self.folder, "study": self.study, **counts, "files": list(self.files)}

    def told(self) -> str:
        """What a user reads."""
        listed = "".join(f"  {name}\n" for name in self.files)
        return f"{self.folder}: {self.runs:,} runs and {self.points:,} points of {self.study} as plain tables\n{listed}"


def write_plain(
    source: str | Path | Study | None, folder: Path, *, store: Store = None, parquet: bool = False
) -> Written:
    """Write the runs of a study or of a package as plain tables into a folder that is new or empty."""
    from isorun import workflow  # noqa: PLC0415 - the rest of this file needs none of it

    with workflow.opened(source, store) as (study, place), workflow.recorded(place, study) as kept:
        known = workflow.known_to(study, kept)
        records = kept.records([cell.id for cell in cells_of(known)])
        document = document_without_secrets(known)
    _new(folder)
    kind = "parquet" if parquet else "csv"
    points = sum(len(item.values) for record in records for item in record.series.values())
    write = _write_parquet if parquet else _write_csv
    write(folder / f"runs.{kind}", *_run_table(records))
    write(folder / f"points.{kind}", _POINTS, _point_rows(records))
    (folder / _DESIGN).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    told = _README.format(runs=f"{len(records):,}", study=study.name, kind=kind)
    (folder / "README.txt").write_text(told, encoding="utf-8")
    names = tuple(str(folder / name) for name in (f"runs.{kind}", f"points.{kind}", _DESIGN, "README.txt"))
    return Written(str(folder), study.name, len(records), points, names)


def _new(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise InputError(f"the folder {folder} is not empty", hint="name one that is new")
    except OSError as error:
        raise InputError(f"the folder {folder} cannot be made", found=error.strerror or str(error)) from None


def _run_table(records: Sequence[RunRecord]) -> tuple[tuple[str, ...], Iterator[list[Any]]]:
    configs = sorted({name for record in records for name in record.cell.config_values})
    results = sorted({name for record in records for name in record.results})
    digests = sorted({name for record in records for name in record.digests})
    named = [("config", configs), ("result", results), ("digest", digests)]
    columns = ("run", *_CELL, *_FIELDS, *(f"{kind}.{name}" for kind, names in named for name in names))

    def rows() -> Iterator[list[Any]]:
        for record in records:
            cell = [getattr(record.cell, name) for name in _CELL]
            fields = [getattr(record, name) for name in _FIELDS]
            values = [record.cell.config_values.get(name) for name in configs]
            values += [record.results.get(name) for name in results]
            values += [record.digests.get(name) for name in digests]
            yield [record.run_id, *map(_plain, (*cell, *fields)), *values]

    return columns, rows()


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, str) else value


def _point_rows(records: Iterable[RunRecord]) -> Iterator[Sequence[Any]]:
    for record in records:
        for metric, item in sorted(record.series.items()):
            for step, seconds, value in zip(item.steps, item.seconds, item.values, strict=True):
                yield record.run_id, metric, step, seconds, value


def _write_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with path.open("w", encoding="utf-8", errors="surrogatepass", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows([repr(item) if isinstance(item, float) else item for item in row] for row in rows)


def _write_parquet(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    arrow, parquet = _pyarrow()
    by_column = list(zip(*rows, strict=True)) or [() for _ in columns]
    named = {name: _one_kind(items) for name, items in zip(columns, by_column, strict=True)}
    parquet.write_table(arrow.table(named), path)


def _one_kind(items: Sequence[Any]) -> list[Any]:
    """A column of one type: whole numbers beside others are numbers, and what is mixed is text."""
    kinds = {type(item) for item in items if item is not None}
    if kinds == {int, float}:
        return [None if item is None else float(item) for item in items]
    return list(items) if len(kinds) <= 1 else [None if item is None else str(item) for item in items]


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError:
        raise MissingExtra("pyarrow", "tables", "Parquet") from None
    return pa, parquet


def packed_from(
    folder: Path,
    target: str | Path | None = None,
    *,
    key: Path | None = None,
    license_id: str = "",
    dry_run: bool = False,
) -> PackedStudy:
    """A package of plain tables in the form that `write_plain` gives them, whoever wrote them. Options as of `pack`."""
    check_license(license_id)
    signing = None if key is None else signer(key)
    rows = list(_table(folder, "runs"))
    if not rows:
        raise InputError(f"there are no runs in {folder}", allowed="runs.csv or runs.parquet with a row a run")
    points = _series(_table(folder, "points", needed=False))
    if not (folder / _DESIGN).is_file():
        rows = _counted_from_zero(_with_configs(rows))
    document = _document(folder, rows)
    study = study_from_document(document, folder, str(document.get("name") or folder.name))
    cells = {_place(cell): cell for cell in cells_of(study)}
    records = [_record(number, row, cells, points, folder) for number, row in enumerate(rows, 1)]
    records.sort(key=lambda record: (record.cell.id, record.attempt))
    if len({record.run_id for record in records}) != len(records):
        raise InputError(f"{folder}: two rows are of the same run", hint="tell them apart by seed or repeat")
    known = {str(row["run"]) for row in rows if row.get("run")} | {record.cell.id for record in records}
    if strays := [run for run in points if run not in known]:
        found = f"{len(strays):,} such runs, the first of which is {strays[0][:80]!r}"
        raise InputError(f"{folder}: points belong to runs that are not among the runs", found=found, allowed=_SAME_RUN)
    path = None if dry_run else Path(package_name(study.name) if target is None else target)
    return write_package(Content(study, records, Code(), license_id=license_id), path, signing)


def _table(folder: Path, name: str, *, needed: bool = True) -> Iterator[dict[str, Any]]:
    """The rows of a table; empty fields are left out."""
    text, packed = folder / f"{name}.csv", folder / f"{name}.parquet"
    if text.is_file():
        with text.open(encoding="utf-8-sig", newline="") as file:
            for row in csv.DictReader(file):
                if None in row or None in row.values():
                    raise InputError(f"{text}: a row has more or fewer fields than there are columns")
                yield {key: value for key, value in row.items() if value != ""}
    elif packed.is_file():
        for row in _pyarrow()[1].read_table(packed).to_pylist():
            yield {key: value for key, value in row.items() if value is not None}
    elif needed:
        raise InputError(f"there is no {text.name} in {folder}", allowed=f"{text.name} or {packed.name}")


def _series(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Series]]:
    columns: dict[tuple[str, str], tuple[list[float], list[float], list[float]]] = {}
    for row in rows:
        try:
            numbers = [float(row[name]) for name in _POINTS[2:]]
            found = columns.setdefault((str(row["run"]), str(row["metric"])), ([], [], []))
        except (KeyError, ValueError) as error:
            raise InputError("a point cannot be read", found=str(error), allowed=", ".join(_POINTS)) from None
        for column, number in zip(found, numbers, strict=True):
            column.append(number)
    series: dict[str, dict[str, Series]] = {}
    for (run, metric), numbers_of in columns.items():
        series.setdefault(run, {})[metric] = Series(*numbers_of)
    return series


def _document(folder: Path, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The design in study.json, or one that these rows belong to."""
    path = folder / _DESIGN
    if path.is_file():
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"{path} cannot be read", found=str(error)) from None
        if not isinstance(document, dict):
            raise InputError(f"{path} is no study")
        return {key: value for key, value in document.items() if key not in {"withheld", "asked", "known_as"}}
    cells = [_cell_of(row) for row in rows]
    seeds = sorted({int(cell[4]) for cell in cells if cell[4] is not None})
    configs = {cell[1]: _named(row, "config.") for row, cell in zip(rows, cells, strict=True)}
    used: dict[str, dict[str, dict[str, Any]]] = {}
    for approach, config, *_ in cells:
        used.setdefault(approach, {})[config] = configs[config]
    return {
        "name": folder.resolve().name,
        "approaches": {name: _approach(name, used[name]) for name in sorted(used)},
        "configs": configs,
        "environments": {name: {} for name in sorted({cell[2] for cell in cells})},
        "levels": sorted({cell[3] for cell in cells}, key=[str(level) for level in Level].index),
        "seeds": seeds or [1],
        "repeats": 1 + max(cell[5] for cell in cells),
        "metrics": {name: {} for name in sorted({name for row in rows for name in _named(row, "result.")})},
    }


def _approach(name: str, configs: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """An approach that has these configs, with what they set."""
    settings = sorted({setting for values in configs.values() for setting in values})
    for config, values in configs.items():
        if lacking := [setting for setting in settings if setting not in values]:
            raise InputError(
                f"the configs of {name} do not set the same: {config!r} has no {lacking[0]}",
                allowed="of an approach each config.NAME in all of its rows, or in none",
            )
    return {"command": [IMPORTED, _TABLE, *(f"{{config.{one}}}" for one in settings)], "configs": list(configs)}


def _with_configs(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows with names of configs: where none is said, what it sets."""
    named: list[dict[str, Any]] = []
    known: dict[str, dict[str, Any]] = {}
    for row in rows:
        values = _named(row, "config.")
        config = row.get("config") or ", ".join(f"{name}={value}" for name, value in sorted(values.items()))
        if known.setdefault(config, values) != values:
            raise InputError(
                f"the config {config or 'default'!r} does not set the same in all rows",
                found=f"{known[config]} and {values}",
                hint="a name for each in the column config, or leave that column out",
            )
        named.append({**row, "config": config})
    return named


def _counted_from_zero(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows with repeats as studies count them: who counts from 1 has not left out one."""
    first = min(_cell_of(row)[5] for row in rows)
    return [{**row, "repeat": _cell_of(row)[5] - first} for row in rows]


def _cell_of(row: Mapping[str, Any]) -> tuple[str, str, str, str, int | None, int]:
    """What tells the run of a row from others."""
    try:
        seed = int(row["seed"]) if row.get("seed") is not None else None
        level = Level(row.get("level") or (Level.DEFAULT if seed is None else Level.FIXED_SEED))
        names = [str(row.get(name) or "default") for name in _CELL[1:3]]
        return str(row["approach"]), names[0], names[1], str(level), seed, int(row.get("repeat") or 0)
    except (KeyError, ValueError) as error:
        raise InputError("a row of the runs cannot be read", found=f"{error}", allowed=", ".join(_CELL)) from None


def _place(cell: Cell) -> tuple[str, str, str, str, int | None, int]:
    return cell.approach, cell.config, cell.environment, str(cell.level), cell.seed, cell.repeat


def _named(row: Mapping[str, Any], start: str) -> dict[str, Any]:
    return {name.removeprefix(start): _number(value) for name, value in row.items() if name.startswith(start)}


def _number(value: Any) -> Any:
    """A number where a text is one. `1_2` is none, though Python reads it as 12: it names two layers as well."""
    if not isinstance(value, str) or "_" in value:
        return value
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value


def _result(value: Any) -> float:
    """The number that a result is; ValueError where it is none."""
    if isinstance(found := _number(value), str):
        raise ValueError(f"{value!r} is no number")
    return float(found)


def _record(
    number: int,
    row: Mapping[str, Any],
    cells: Mapping[tuple[str, str, str, str, int | None, int], Cell],
    points: Mapping[str, Mapping[str, Series]],
    folder: Path,
) -> RunRecord:
    cell = cells.get(_cell_of(row))
    if cell is None:
        raise InputError(
            f"{folder}: row {number} of the runs belongs to no cell of the study",
            found=canonical_json(list(_cell_of(row))),
            hint="take study.json away, and a study is made that has them all",
        )
    run = str(row.get("run") or cell.id)
    attempt = run.rpartition("-")[2]
    try:
        return RunRecord(
            cell=cell,
            attempt=int(attempt) if attempt.isdecimal() and "-" in run else 1,
            state=RunState(row.get("state") or RunState.FINISHED),
            exit_code=None if row.get("exit_code") is None else int(row["exit_code"]),
            signal="",
            reason="",
            launch="",
            seed_used=None if row.get("seed_used") is None else int(row["seed_used"]),
            started_at=str(row.get("started_at") or ""),
            wall_seconds=float(row.get("wall_seconds") or 0),
            cpu_seconds=float(row.get("cpu_seconds") or 0),
            peak_memory_bytes=int(row.get("peak_memory_bytes") or 0),
            results={name: _result(value) for name, value in _named(row, "result.").items()},
            digests={name.removeprefix("digest."): str(row[name]) for name in row if name.startswith("digest.")},
            series=points.get(run, {}),
        )
    except ValueError as error:
        raise InputError(f"{folder}: row {number} of the runs cannot be read", found=str(error)) from None
