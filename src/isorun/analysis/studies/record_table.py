"""Records as a sequence, and as a table with a row a run, for pandas, Polars and everything that reads columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, overload

from isorun.analysis import Told
from isorun.errors import InputError, MissingExtra
from isorun.study.records import RunRecord

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

__all__ = ["COLUMNS", "Records"]

COLUMNS: Final = ("run", "approach", "config", "environment", "level", "seed", "repeat", "state", "seconds")


class Records(Told, Sequence[RunRecord]):
    """Every run of a study, the failed ones included: `records[0]`, or `records.to_pandas()` for all as a table.

    The table has the run's id, its factors, how it ended and how long it took; then what its config sets, as
    `config.lr`; then its metrics: the final value, else the last one logged. A metric with the name of another column
    is `metric.seed`. A cell that a run has no value for is missing.
    """

    __slots__ = ("_records",)
    told_as: ClassVar[str] = "records"

    def __init__(self, records: Iterable[RunRecord] = ()) -> None:
        self._records = _runs_among(records)

    def __len__(self) -> int:
        return len(self._records)

    @overload
    def __getitem__(self, place: int) -> RunRecord: ...
    @overload
    def __getitem__(self, place: slice) -> Records: ...
    def __getitem__(self, place: int | slice) -> RunRecord | Records:
        return Records(self._records[place]) if isinstance(place, slice) else self._records[place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and not isinstance(other, str) and self._records == tuple(other)

    __hash__ = None  # type: ignore[assignment]  # as a list: equal to other sequences, so without a hash

    def __repr__(self) -> str:
        return f"<Records: {self.counted}>"

    @property
    def counted(self) -> str:
        """How many there are of each state."""
        ended = [str(record.state) for record in self._records]
        return ", ".join(f"{ended.count(state)} {state}" for state in dict.fromkeys(ended)) or "none"

    def to_json(self) -> list[dict[str, Any]]:
        """Plain JSON, a row of the table each; numbers that JSON has no sign for are null."""
        columns = self.to_columns()
        return [dict(zip(columns, map(_finite, row), strict=True)) for row in zip(*columns.values(), strict=True)]

    def to_columns(self) -> dict[str, list[Any]]:
        """The table as columns by name; None where a run has no value."""
        rows = [_row(record) for record in self._records]
        further = [name for row in rows for name in row if name not in COLUMNS]
        settings = dict.fromkeys(name for name in further if name.startswith("config."))
        names = (*COLUMNS, *settings, *dict.fromkeys(name for name in further if name not in settings))
        return {name: [row.get(name) for row in rows] for name in names}

    def to_pandas(self) -> pd.DataFrame:
        """The table as a pandas frame."""
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtra("pandas", "tables", "records.to_pandas()") from None
        columns = self.to_columns()
        # Runs at level default have no seed, and what is missing would turn the seeds of all others into floats.
        whole = {name: pd.array(columns[name], dtype="Int64") for name in ("seed", "repeat")}
        return pd.DataFrame({**columns, **whole})

    def to_polars(self) -> pl.DataFrame:
        """The table as a Polars frame."""
        try:
            import polars as pl
        except ImportError:
            raise MissingExtra("polars", "tables", "records.to_polars()") from None
        return pl.DataFrame(self.to_columns(), strict=False, infer_schema_length=None)


def _runs_among(given: Any) -> tuple[RunRecord, ...]:
    found = tuple(given) if isinstance(given, Iterable) else (given,)
    for item in found:
        if not isinstance(item, RunRecord):
            raise InputError(
                "records are made of runs",
                found=f"{type(item).__name__} {item!r:.60}",
                allowed="a list of isorun.RunRecord",
                hint="isorun.records(study) reads those of a study",
            )
    return found


def _row(record: RunRecord) -> dict[str, Any]:
    cell = record.cell
    factors = (cell.approach, cell.config, cell.environment, str(cell.level), cell.seed, cell.repeat)
    row = dict(zip(COLUMNS, (record.run_id, *factors, str(record.state), record.wall_seconds), strict=True))
    row.update((f"config.{name}", value) for name, value in cell.config_values.items())
    last = {name: series.values[-1] for name, series in record.series.items() if len(series.values)}
    for name, value in {**last, **record.results}.items():
        row[f"metric.{name}" if name in row else name] = value
    return row


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
