"""Runs that isorun did not make: of a tracker, or rows of a table. What to do next is another thing than for its own.

isorun cannot make more of them, and no study file declares them: `isorun import` and `isorun pack --from-plain` do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Final

from isorun.analysis.evidence import Condition
from isorun.analysis.evidence.judged import JudgedMetric, how_to_declare
from isorun.study.imported import IMPORTED
from isorun.study.records import RunRecord

__all__ = ["Foreign", "more_repeats", "more_runs", "steps_for_such_runs"]


class Foreign(StrEnum):
    """Who made the runs of a study."""

    OWN = ""
    TRACKER = "tracker"
    TABLE = "table"

    @classmethod
    def of(cls, records: Sequence[RunRecord]) -> Foreign:
        """Of a tracker or a table where all of them are."""
        if records and all(record.launch == IMPORTED for record in records):
            return cls.TRACKER
        if records and all(record.cell.command[:1] == (IMPORTED,) for record in records):
            return cls.TABLE
        return cls.OWN


_MORE: Final = {
    Foreign.TRACKER: "make more runs with the tracker, then isorun import again: only what is new is taken",
    Foreign.TABLE: "add rows to the table, then isorun pack --from-plain again",
}
_ANOTHER_METRIC: Final = "judge another metric: isorun import … --metric NAME"
_APART: Final = "isorun import … --approach PARAMETER --name NAME tells them apart where a parameter or tag does"
_OF_TRACKERS: Final = {
    **dict.fromkeys(("few-runs", "no-identical-runs", "runs-missing", "too-few-units"), _MORE[Foreign.TRACKER]),
    **dict.fromkeys(
        ("default-not-independent", "seed-without-effect"), f"draw anew in every run; {_MORE[Foreign.TRACKER]}"
    ),
    **dict.fromkeys(
        ("runs-failed", "runs-without-metric", "metric-not-finite", "diverged-afterwards", "weak-runs"),
        "look at these runs in the tracker",
    ),
    **dict.fromkeys(("code-differs", "machine-differs", "made-in-several-places"), _APART),
    **dict.fromkeys(
        ("sides-differ-in-code", "sides-differ-in-machine", "sides-differ-in-host", "sides-differ-in-device"),
        f"make both sides alike with the tracker, then isorun import again; {_APART}",
    ),
    "metric-not-logged": "name one that they have: isorun import … --metric NAME",
    "no-metric": "log a number with the tracker, then isorun import again",
    "final-value-used": f"log it every epoch, or {_ANOTHER_METRIC}",
    "final-classes-used": "log the classes every epoch, or judge runs at their end",
    "selected-on-itself": f"log a value on data that picks nothing, or {_ANOTHER_METRIC}",
    "selection-without-epoch": f"log it every epoch, or {_ANOTHER_METRIC}",
    "epochs-restart": f"make each fold or stage a run of its own in the tracker, or {_ANOTHER_METRIC}",
}
_OF_TABLES: Final = {
    **dict.fromkeys(("few-runs", "no-identical-runs", "too-few-units"), _MORE[Foreign.TABLE]),
    **dict.fromkeys(
        ("runs-failed", "runs-without-metric", "metric-not-finite", "diverged-afterwards"),
        "look at these rows of the table",
    ),
}
_STEPS: Final[Mapping[Foreign, Mapping[str, str]]] = {Foreign.TRACKER: _OF_TRACKERS, Foreign.TABLE: _OF_TABLES}


def more_runs(foreign: Foreign, own: str) -> str:
    """How there get to be more runs. own: for runs that isorun makes."""
    return _MORE.get(foreign, own)


def more_repeats(foreign: Foreign) -> str:
    """How seeds get to have run more than once."""
    return more_runs(foreign, "set repeats to 8 or more in the study and run again: finished runs are kept")


def steps_for_such_runs(
    conditions: Iterable[Condition], foreign: Foreign, metrics: Sequence[JudgedMetric] = ()
) -> tuple[Condition, ...]:
    """The conditions with what can be done about such runs; those of isorun's own as they are.

    Nobody declared how many rows a table should have: none is missing.
    """
    steps = _STEPS.get(foreign)
    if steps is None:
        return tuple(conditions)
    imports = metrics if foreign is Foreign.TRACKER else ()
    declared = {how_to_declare(metric): _declared_again(metric) for metric in imports}
    return tuple(
        replace(one, next_step=steps.get(one.code) or _exchanged(one.next_step, declared))
        for one in conditions
        if foreign is not Foreign.TABLE or one.code != "runs-missing"
    )


def _declared_again(metric: JudgedMetric) -> str:
    other = "" if metric.direction else " (or higher)"
    return f"isorun import … --metric {metric.name}:{metric.direction or 'lower'}{other}"


def _exchanged(step: str, declared: Mapping[str, str]) -> str:
    for own, foreign in declared.items():
        step = step.replace(own, foreign)
    return step
