"""All data: TrecQA raw and clean with TRAIN and TRAIN-ALL, and WikiQA. Scores on different data cannot be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from isorun.analysis.spreads.spread import Spread, spread
from isorun.report.numbers import fixed
from isorun.report.tables import Column, Table
from isorun.zoo.studies.tacl18.environment_tables import DECIMALS
from isorun.zoo.studies.tacl18.measured import METRICS, Run

__all__ = ["Version", "version_rows", "version_table"]


@dataclass(frozen=True, slots=True)
class Version:
    """The scores on one version over its seeds, by metric."""

    name: str
    scores: dict[str, Spread]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        parts = {
            metric.lower(): {"n": seen.n, "mean": seen.mean, "sd": seen.sd, "min": seen.minimum, "max": seen.maximum}
            for metric, seen in self.scores.items()
        }
        return {"data": self.name, **parts}


def version_rows(runs: Sequence[Run]) -> tuple[Version, ...]:
    """The runs by version, in the order in which they come."""
    names = dict.fromkeys(run.data for run in runs)
    return tuple(
        Version(name, {metric: spread(run.value(metric) for run in runs if run.data == name) for metric in METRICS})
        for name in names
    )


def version_table(found: Sequence[Version]) -> Table:
    """A row a version."""
    columns = [Column("data", key=True), Column("seeds")]
    columns += [Column(title, group=metric) for metric in METRICS for title in ("mean", "sd", "min", "max")]
    rows = [
        (item.name, str(item.scores["AP"].n), *(text for metric in METRICS for text in _texts(item.scores[metric])))
        for item in found
    ]
    note = (
        "The paper's tables are of WikiQA and of TrecQA raw with TRAIN-ALL. "
        "Clean leaves out questions whose answers have one label only."
    )
    return Table(
        "data-versions", "Section 2.3: the model on all versions of the data", tuple(columns), tuple(rows), (note,)
    )


def _texts(seen: Spread) -> list[str]:
    return [fixed(number, DECIMALS) for number in (seen.mean, seen.sd, seen.minimum, seen.maximum)]
