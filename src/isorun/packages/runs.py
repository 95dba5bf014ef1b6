"""Records as lines of JSON and columns of numbers, in blocks; and back.

A block has up to 1,000 runs. Its lines (`runs/00000.jsonl.bz2`) say all but the numbers of series, which lie beside
them (`runs/00000.numbers`). What many runs share is a line of its own (`shared.jsonl.bz2`), and runs name it by its
number.
Of a run there is one line with its fields, empty ones left out, then one for every prediction and every row that was
watched. docs/packages.md describes each member.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from isorun.errors import PackageError, StoreError, StoreTooNew
from isorun.packages import Budget, refused
from isorun.packages.canonical import canonical_bytes, memory_of_line, read_canonical, read_lines
from isorun.packages.columns import Cursor, packed, unpacked
from isorun.packages.kinds import check_cell, check_kinds, check_told
from isorun.store.rows import joined_document, shared_cell, split_document
from isorun.study.cells import Cell, IdenticalCells
from isorun.study.records import RECORD_VERSION, Numbers, RunRecord, Series, canonical_json

__all__ = ["MOST_RUNS", "Block", "BlockWriter", "SharedReader", "SharedWriter"]

MOST_RUNS: Final = 1_000
_MOST_POINTS: Final = 2**20
_PIECE: Final = 4 * 2**20
_SHARED_FROM: Final = 120
_AT_ONCE: Final = 2**17
_CHECKED_FROM: Final = 2**18
_FINEST: Final = -40
_WIDEST: Final = 2**16 - 1
_LATEST: Final = 2.0**62
_FIELDS: Final = ("environment", "code", "sources")
_APART: Final = ("cell", "series", "predictions", "watched", "environment", "code", "origins")
_REQUIRED: Final = {"exit_code": None, "signal": "", "reason": "", "launch": "", "seed_used": None, "started_at": ""}
"""Fields of a record that have no default and may be empty."""
_UNREADABLE: Final = (ArithmeticError, AttributeError, LookupError, RecursionError, StoreError, TypeError, ValueError)
_Array = npt.NDArray[Any]
_Ticks = tuple[int, int, _Array]


class SharedWriter:
    """What many runs share, each once, as lines in the order in which runs first name them."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._known: dict[tuple[object, ...], tuple[object, int]] = {}

    def refer(self, text: str) -> int:
        """The number of the line with this JSON."""
        return self._numbers.setdefault(text, len(self._numbers))

    def refer_to(self, value: Mapping[str, Any], *, split: bool = False) -> int:
        """The number of the line for a value; one of the same parts is not looked at again."""
        key = (split, *((name, id(part) if isinstance(part, dict | list) else part) for name, part in value.items()))
        if key not in self._known:
            text = split_document(value, self.refer)[0] if split else canonical_json(value)
            self._known[key] = (value, self.refer(text))
        return self._known[key][1]

    def refer_to_cell(self, cell: Cell) -> int:
        """The number of the line with all of a cell but its seed and repeat."""
        parts = (cell.command, cell.config_values, cell.environment_content)
        names = (cell.approach, cell.config, cell.environment, cell.level, cell.withheld, cell.known_as)
        key = (*map(id, parts), *names, cell.take_seeds)
        if key not in self._known:
            self._known[key] = (parts, self.refer(canonical_json(shared_cell(cell))))
        return self._known[key][1]

    def lines(self) -> Iterator[bytes]:
        """All lines."""
        for text in self._numbers:
            yield _line_of(text.encode("ascii"), "what runs share")


class BlockWriter:
    """Takes records, one after another, until the block is full."""

    def __init__(self, shared: SharedWriter) -> None:
        self._shared = shared
        self._lines: list[bytes] = []
        self._unfinished: list[_Unfinished] = []
        self._waiting: list[tuple[list[Any], bytes]] = []
        self._waiting_bytes = 0
        self._steps: list[bytes] = []
        self._seconds: list[bytes] = []
        self._gaps: list[_Array] = []
        self._values: dict[str, dict[bytes, int]] = {}
        self._ranges: dict[bytes, tuple[float, float] | None] = {}
        self.runs = 0
        self.points = 0
        self._axis_points = 0
        self._predictions = 0

    @property
    def is_full(self) -> bool:
        """Whether the next record belongs into another block."""
        return self.runs >= MOST_RUNS or self.points >= _MOST_POINTS

    def add(self, record: RunRecord) -> None:
        """Take one more record."""
        line = record.told_fields(*_APART)
        cell = record.cell
        line["cell"] = [cell.id, self._shared.refer_to_cell(cell), cell.seed, cell.repeat]
        for name, value in zip(_FIELDS, (record.environment, record.code, record.origins), strict=True):
            if value:
                line[name] = self._shared.refer_to(value, split=name == "environment")
        if len(record.log_tail) >= _SHARED_FROM:
            line["log_tail"] = self._shared.refer(canonical_json(record.log_tail))
        if record.series:
            line["axes"], line["series"] = self._add_series(record.series)
        self._unfinished.append(_Unfinished(line, list(_further(record)), f"run {record.run_id}"))
        self.runs += 1
        self._predictions += sum(item.size for item in record.predictions)
        if self._waiting_bytes >= _AT_ONCE * 8:
            self.finish_lines()

    def finish_lines(self) -> None:
        """Tell the times of the runs that were added last, all at once, and write their lines."""
        with np.errstate(invalid="ignore", over="ignore"):
            ticks = list(_many_in_ticks([seconds for _, seconds in self._waiting]))
        for (axis, seconds), found in zip(self._waiting, ticks, strict=True):
            if found is None:
                self._seconds.append(seconds)
            else:
                exponent, first, gaps = found
                axis[2] = [exponent, first]
                self._gaps.append(gaps)
        for line, further, where in self._unfinished:
            self._lines += [_line_of(canonical_bytes(line), where), *(_line_of(more, where) for more in further)]
        self._unfinished, self._waiting, self._waiting_bytes = [], [], 0

    def lines(self) -> Iterator[bytes]:
        """The lines of the block, the first of which says what the others are."""
        yield canonical_bytes({"record": RECORD_VERSION, "runs": self.runs}) + b"\n"
        yield from self._lines

    def memory(self) -> tuple[int, int]:
        """What its numbers take when it is read, and what its lines tell."""
        columns = (*self._steps, *self._seconds, *(values for found in self._values.values() for values in found))
        numbers = sum(map(len, columns)) + sum(gaps.nbytes for gaps in self._gaps) + _beyond(self._axis_points)
        return numbers, sum(map(memory_of_line, self.lines())) + self._predictions

    def numbers(self) -> Iterator[bytes]:
        """The columns: steps and seconds as they are, gaps between seconds, then values metric by metric."""
        yield from packed(np.frombuffer(b"".join(self._steps), "<u8"))
        yield from packed(np.frombuffer(b"".join(self._seconds), "<u8"))
        yield from packed(np.concatenate(self._gaps) if self._gaps else np.empty(0, "<u2"))
        for metric in sorted(self._values):
            yield from packed(np.frombuffer(b"".join(self._values[metric]), "<u8"))

    def _add_series(self, series: Mapping[str, Series]) -> tuple[list[Any], dict[str, Any]]:
        axes: dict[tuple[bytes, bytes], int] = {}
        told, places = [], {}
        for metric, item in sorted(series.items()):
            axis = (_bytes(item.steps), _bytes(item.seconds))
            if axis not in axes:
                axes[axis] = len(axes)
                told.append([len(item.values), self._told_steps(axis[0]), None])
                self._axis_points += len(item.values)
                self._waiting.append((told[-1], axis[1]))
                self._waiting_bytes += len(axis[1])
            columns = self._values.setdefault(metric, {})
            values = _bytes(item.values)
            places[metric] = [axes[axis], columns.setdefault(values, len(columns))]
            self.points += len(item.values)
        return told, places

    def _told_steps(self, steps: bytes) -> list[float] | None:
        """First step and stride; None where the steps are a column."""
        if steps not in self._ranges:
            self._ranges[steps] = _range_of(np.frombuffer(steps, "<f8"))
        known = self._ranges[steps]
        if known is None:
            self._steps.append(steps)
        return None if known is None else list(known)


class _Unfinished(NamedTuple):
    """A run's line, of which the times are not told yet; the lines behind it; and what it is called."""

    line: dict[str, Any]
    further: list[bytes]
    where: str


def _further(record: RunRecord) -> Iterator[bytes]:
    """The lines behind the first of a run."""
    for prediction in record.predictions:
        item = {**asdict(prediction), "shape": list(prediction.shape)}
        data = item.pop("data")
        yield canonical_bytes({"prediction": item, "data": data[:_PIECE]})
        for start in range(_PIECE, len(data), _PIECE):
            yield canonical_bytes({"data": data[start : start + _PIECE]})
    for row in record.watched:
        yield canonical_bytes({"watched": row})


def _line_of(text: bytes, where: str) -> bytes:
    """A line that every reader takes; PackageError for a long one that none would."""
    if len(text) >= _CHECKED_FROM:
        read_canonical(text, f"{where}, as a line of JSON")
    return text + b"\n"


def _bytes(values: Sequence[float]) -> bytes:
    return values.packed() if isinstance(values, Numbers) else Numbers(values).packed()


def _range_of(steps: _Array) -> tuple[float, float] | None:
    """First step and stride of steps that are exactly those of a range."""
    if not len(steps):
        return 0.0, 0.0
    first = float(steps[0]) + 0.0
    stride = float(steps[1]) - first + 0.0 if len(steps) > 1 else 0.0
    same = (
        math.isfinite(first)
        and math.isfinite(stride)
        and _range(len(steps), first, stride).tobytes() == steps.tobytes()
    )
    return (first, stride) if same else None


def _range(points: int, first: float, stride: float) -> _Array:
    with np.errstate(over="ignore", invalid="ignore"):
        found: _Array = first + stride * np.arange(points, dtype="<f8")
        return found


def _many_in_ticks(columns: Sequence[bytes]) -> Iterator[_Ticks | None]:
    """What `_in_ticks` says of each column of seconds. Most need no look of their own."""
    together = _together_in_ticks([column for column in columns if len(column) > 8])
    for column in columns:
        found = next(together) if len(column) > 8 else None
        yield found or _in_ticks(np.frombuffer(column, "<f8"))


def _together_in_ticks(columns: Sequence[bytes]) -> Iterator[_Ticks | None]:
    """The same at once for columns of two and more; None also where another tick than the first that may do does."""
    if not columns:
        return
    seconds = np.frombuffer(b"".join(columns), "<f8")
    points = np.array([len(column) // 8 for column in columns])
    ends = np.cumsum(points)
    begins = ends - points
    widest = np.maximum.reduceat(_gaps(seconds, ends), begins)
    usual = (widest > 0) & (widest < _LATEST)
    exponents = np.maximum(_FINEST, np.where(usual, np.frexp(widest / _WIDEST)[1] - 2, _FINEST))
    for _ in range(3):
        exponents += np.ldexp(widest, -exponents) > _WIDEST + 2
    scaled = seconds * np.repeat(np.ldexp(1.0, -exponents), points)
    ticks = scaled.astype(np.int64)
    gaps = _gaps(ticks, ends)
    again = (ticks * np.repeat(np.ldexp(1.0, exponents), points)).astype("<f8")
    fits = (np.minimum.reduceat(gaps, begins) >= 0) & (np.maximum.reduceat(gaps, begins) <= _WIDEST)
    fits &= np.logical_and.reduceat(again.view("<u8") == seconds.view("<u8"), begins)
    for edge in (begins, ends - 1):
        fits &= (abs(seconds[edge]) < _LATEST) & (abs(scaled[edge]) < 2.0**53)
    narrow = gaps.astype("<u2")
    for fit, exponent, begin, end in zip(*map(np.ndarray.tolist, (fits, exponents, begins, ends)), strict=True):
        yield (exponent, int(ticks[begin]), narrow[begin : end - 1]) if fit else None


def _gaps(numbers: _Array, ends: _Array) -> _Array:
    """From each number to the next; zero behind the last of a column."""
    gaps = np.zeros_like(numbers)
    np.subtract(numbers[1:], numbers[:-1], out=gaps[:-1])
    gaps[ends - 1] = 0
    return gaps


def _in_ticks(seconds: _Array) -> _Ticks | None:
    """The exponent of a tick, the first time in ticks and the gaps, where all are whole and small: in most stores."""
    if not len(seconds) or not (abs(seconds[0]) < _LATEST and abs(seconds[-1]) < _LATEST):
        return None
    widest = float((seconds[1:] - seconds[:-1]).max()) if len(seconds) > 1 else 0.0
    exponent = max(_FINEST, math.frexp(widest / _WIDEST)[1] - 2) if 0 < widest < _LATEST else _FINEST
    for tried in range(exponent, exponent + 4):
        if widest * 2.0**-tried > _WIDEST + 2:  # seen without a look at the others
            continue
        scaled = seconds * 2.0**-tried
        ticks = scaled.astype(np.int64)
        gaps = ticks[1:] - ticks[:-1]
        if abs(scaled[-1]) < 2.0**53 and (not len(gaps) or (gaps.min() >= 0 and gaps.max() <= _WIDEST)):
            same = (ticks.astype("<f8") * 2.0**tried).tobytes() == seconds.tobytes()
            return (tried, int(ticks[0]), gaps.astype("<u2")) if same and abs(scaled[0]) < 2.0**53 else None
    return None


class SharedReader:
    """What runs share, by the numbers of lines. Each is put together once."""

    def __init__(self, lines: Iterable[bytes], where: str) -> None:
        self._where = where
        self._values = list(read_lines(lines, where))
        self._environments: dict[int, Mapping[str, Any]] = {}
        self._cells: dict[int, IdenticalCells] = {}

    def value(self, number: Any) -> Any:
        """What the line says."""
        if type(number) is not int or not 0 <= number < len(self._values):
            raise refused(f"{self._where}: a run names something that is not there", repr(number)[:60])
        return self._values[number]

    def environment(self, number: Any) -> Mapping[str, Any]:
        """The environment whose large parts are lines of their own."""
        if number not in self._environments:
            self._environments[number] = joined_document(self.value(number), lambda part: (b"", self.value(part)))[1]
        return self._environments[number]

    def cell(self, told: Any) -> Cell:
        """The cell of a run, whose id is that of its content."""
        cell_id, number, seed, repeat = told
        if not (seed is None or type(seed) is int) or type(repeat) is not int:
            raise ValueError("seed and repeat are whole numbers")
        if number not in self._cells:
            first = Cell.from_json({**self.value(number), "seed": None, "repeat": 0})
            check_cell(first)
            self._cells[number] = IdenticalCells(first)
        cell = self._cells[number].cell(seed, repeat)
        if cell.id != cell_id:
            raise ValueError(f"the id of a cell is {cell.id}, and not {str(cell_id)[:60]!r}")
        return cell


_Axis = tuple[int, Any, Any]
"""Points, and what is said of steps and seconds."""


class _Told(NamedTuple):
    """A run as its lines tell it, before its numbers are read."""

    fields: dict[str, Any]
    axes: list[_Axis]
    series: dict[str, tuple[int, int]]


class Block:
    """A block whose lines and numbers were read. PackageError where they, or what is shared, do not fit together.

    Two steps: unpacking, most of the first, needs no turn of Python's, so that it can be done by another thread.
    """

    def __init__(self, lines: Iterable[bytes], numbers: Cursor, budget: Budget) -> None:
        self._where = numbers.where
        self._budget = budget
        with _blaming(self._where):
            self._told = list(_told_runs(lines, self._where))
            _refuse_long(self._told, self._where)
            self._columns = _Columns(self._told, numbers, budget)
            numbers.end()

    def records(self, shared: SharedReader) -> Iterator[RunRecord]:
        """The records, once."""
        with _blaming(self._where):
            for run in self._told:
                record = _record(run, self._columns, shared)
                self._budget.take_told(sum(item.size for item in record.predictions), self._where)
                yield record


@contextmanager
def _blaming(where: str) -> Iterator[None]:
    """PackageError for whatever is raised because the content is not what it should be."""
    try:
        yield
    except (PackageError, StoreTooNew):
        raise
    except _UNREADABLE as error:
        said = error.found if isinstance(error, StoreError) else f"{type(error).__name__}: {error}"
        raise refused(f"{where}: a run cannot be read", said[:200]) from None


def _told_runs(lines: Iterable[bytes], where: str) -> Iterator[_Told]:
    each = read_lines(lines, where)
    match next(each, None):
        case {"record": int(version), "runs": int(runs), **rest} if not rest and 0 < runs <= MOST_RUNS:
            pass
        case _:
            raise refused(f"{where}: its first line does not say what follows")
    count, fields = 0, dict[str, Any]()
    for value in itertools.chain(each, [None]):
        if value is None or "cell" in value:
            if fields:
                yield _told(fields)
            count += value is not None
            fields = {**_REQUIRED, **(value or {}), "record": version}
            fields.pop("predictions", None)
        else:
            _take_further(fields, value)
    if count != runs:
        raise refused(f"{where}: it has {count:,} runs and says that it has {runs:,}")


def _take_further(fields: dict[str, Any], value: dict[str, Any]) -> None:
    """A line behind the first of a run. Pieces of a text are put together when the run is whole."""
    match value:
        case {"prediction": dict(item), "data": str(data)} if len(value) == 2:
            fields.setdefault("predictions", []).append({**item, "data": [data]})
        case {"data": str(data)} if len(value) == 1:
            fields["predictions"][-1]["data"].append(data)
        case {"watched": dict(row)} if len(value) == 1:
            fields.setdefault("watched", []).append(row)
        case _:
            raise ValueError("a line that belongs to no run")


def _told(fields: dict[str, Any]) -> _Told:
    for item in fields.get("predictions", ()):
        item["data"] = "".join(item["data"])
    axes = []
    for points, steps, seconds in fields.pop("axes", ()):
        if type(points) is not int or points < 0:
            raise ValueError(f"an axis of {points!r:.60} points")
        axes.append((points, steps, seconds))
    series = {metric: (axis, column) for metric, (axis, column) in fields.pop("series", {}).items()}
    for axis, column in series.values():
        if type(axis) is not int or type(column) is not int or not 0 <= axis < len(axes) or column < 0:
            raise ValueError("a series without an axis or a column")
    if len({axis for axis, _ in series.values()}) != len(axes):
        raise ValueError("an axis of no series")
    return _Told(fields, axes, series)


def _refuse_long(runs: Sequence[_Told], where: str) -> None:
    """A block ends with the run that fills it, so that whoever reads one after another needs little memory."""
    points = sum(run.axes[axis][0] for run in runs[:-1] for axis, _ in run.series.values())
    if points >= _MOST_POINTS:
        raise refused(f"{where}: a block has too many points", f"{points:,} before its last run", f"{_MOST_POINTS:,}")


class _Columns:
    """The numbers of a block, handed out in the order in which its runs need them."""

    def __init__(self, runs: Sequence[_Told], numbers: Cursor, budget: Budget) -> None:
        axes = [axis for run in runs for axis in run.axes]
        budget.take_numbers(_beyond(sum(points for points, _, _ in axes)), numbers.where)
        self._steps = _column(numbers, budget, "<f8", sum(points for points, steps, _ in axes if steps is None))
        self._seconds = _column(numbers, budget, "<f8", sum(points for points, _, seconds in axes if seconds is None))
        gaps = sum(max(points - 1, 0) for points, _, seconds in axes if seconds is not None)
        self._gaps = _column(numbers, budget, "<u2", gaps)
        self._values: dict[str, list[Numbers]] = {}
        for metric, sizes in sorted(_sizes(runs).items()):
            column = _column(numbers, budget, "<f8", sum(sizes))
            ends = list(itertools.accumulate(sizes, initial=0))
            self._values[metric] = [Numbers(column[begin:end]) for begin, end in itertools.pairwise(ends)]
        self._ranges: dict[tuple[Any, ...], Numbers] = {}
        steps = map(self._told_steps, axes)
        self.axes: Iterator[tuple[Numbers, Numbers]] = zip(steps, self._told_seconds(axes), strict=True)
        """Steps and seconds of every axis of the block."""

    def values(self, metric: str, column: int, points: int) -> Numbers:
        """A column of a metric."""
        found = self._values[metric][column]
        if len(found) != points:
            raise ValueError(f"{len(found)} values of {metric!r:.60} on an axis of {points} points")
        return found

    def _told_steps(self, axis: _Axis) -> Numbers:
        """The next steps; runs of a study mostly have the same range, and then share them."""
        points, steps, _ = axis
        if steps is None:
            own, self._steps = self._steps[:points], self._steps[points:]
            return Numbers(own)
        first, stride = steps
        key = (points, float(first), float(stride))
        if key not in self._ranges:
            self._ranges[key] = Numbers(_range(*key))
        return self._ranges[key]

    def _told_seconds(self, axes: Iterable[_Axis]) -> Iterator[Numbers]:
        """The seconds of every axis; those of many are made at once."""
        for group in _groups(axes):
            ticked = [(points, *_exponent_and_tick(points, told)) for points, _, told in group if told is not None]
            made = self._from_gaps(ticked)
            for points, _, told in group:
                if told is None:
                    own, self._seconds = self._seconds[:points], self._seconds[points:]
                    yield Numbers(own)
                else:
                    yield next(made)

    def _from_gaps(self, ticked: Sequence[tuple[int, int, int]]) -> Iterator[Numbers]:
        """Seconds that are whole ticks: points, exponent of the tick and first tick of each."""
        if not ticked:
            return
        points, exponents, firsts = (np.array(column, np.int64) for column in zip(*ticked, strict=True))
        ends = np.cumsum(points)
        begins = ends - points
        ticks = np.zeros(ends[-1], np.int64)
        is_gap = np.ones(len(ticks), np.bool_)
        is_gap[begins] = False
        count = len(ticks) - len(ticked)
        ticks[is_gap], self._gaps = self._gaps[:count], self._gaps[count:]
        np.cumsum(ticks, out=ticks)
        ticks += _spread(firsts - ticks[begins], points)
        seconds = ticks.astype("<f8")
        np.ldexp(seconds, _spread(exponents, points), out=seconds)
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
            yield Numbers(seconds[begin:end])


def _beyond(points: int) -> int:
    """What steps and seconds take that are made from what is said of them, beyond those of a block that is full."""
    return 2 * 8 * max(0, points - _MOST_POINTS)


def _spread(column: _Array, points: _Array) -> _Array:
    """What is said of each axis for each of its points; as one number where it is the same for all of them."""
    return column[:1] if (column == column[0]).all() else np.repeat(column, points)


def _groups(axes: Iterable[_Axis]) -> Iterator[list[_Axis]]:
    """Axes one after another, as many as have about so many points."""
    group, size = list[_Axis](), 0
    for axis in axes:
        group.append(axis)
        size += axis[0]
        if size >= _AT_ONCE:
            yield group
            group, size = [], 0
    yield group


def _exponent_and_tick(points: int, told: Any) -> tuple[int, int]:
    exponent, tick = told
    if type(exponent) is not int or type(tick) is not int or abs(tick) > 2**53 or abs(exponent) > 2_000 or not points:
        raise ValueError("seconds that no run can have")
    return exponent, tick


def _sizes(runs: Iterable[_Told]) -> dict[str, list[int]]:
    """The lengths of the columns of every metric: a column is new where a run names the one behind the last."""
    sizes: dict[str, list[int]] = {}
    for run in runs:
        for metric, (axis, column) in sorted(run.series.items()):
            known = sizes.setdefault(metric, [])
            if column == len(known):
                known.append(run.axes[axis][0])
            elif column > len(known):
                raise ValueError(f"a column of {metric!r:.60} that comes before the one it follows")
    return sizes


def _column(numbers: Cursor, budget: Budget, dtype: str, count: int) -> _Array:
    kind = np.dtype(dtype)
    budget.take_numbers(count * kind.itemsize, numbers.where)
    whole, place = np.empty(count, f"<u{kind.itemsize}"), 0
    for chunk in unpacked(numbers, count, f"<u{kind.itemsize}"):
        whole[place : place + len(chunk)] = chunk
        place += len(chunk)
    return whole.view(kind)


def _record(run: _Told, columns: _Columns, shared: SharedReader) -> RunRecord:
    axes = list(itertools.islice(columns.axes, len(run.axes)))
    series = {
        metric: Series(*axes[axis], columns.values(metric, column, run.axes[axis][0]))
        for metric, (axis, column) in run.series.items()
    }
    fields, names = run.fields, tuple(run.fields)
    check_told(fields)
    cell = shared.cell(fields.pop("cell"))
    for name in _FIELDS:
        if name in fields:
            fields[name] = shared.environment(fields[name]) if name == "environment" else shared.value(fields[name])
    if not isinstance(fields.get("log_tail", ""), str):
        fields["log_tail"] = shared.value(fields["log_tail"])
    record = RunRecord.from_json(fields, cell=cell, series=series)
    check_kinds(record, names)
    return record
