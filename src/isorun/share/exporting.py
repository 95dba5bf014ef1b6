"""Export: the runs of a study as a tracker keeps runs, or as tables for anyone.

Runs that were imported go out as they came in; those that isorun made have their config and seed as parameters, and
what isorun knows of them (study, cell, level, state, digests) as tags. What a tracker has no place for is named.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

from isorun import showing, workflow
from isorun.analysis import Told
from isorun.analysis.evidence import Condition, first_of, some
from isorun.errors import InputError, NothingRecorded, known_names
from isorun.report import Column, Table, View
from isorun.session import Store
from isorun.share.foreign_records import tracked_of
from isorun.share.trackers import OWN, Chosen, TrackedRun, opened_tracker, shown_where
from isorun.study.design import Study
from isorun.study.records import RunRecord

__all__ = ["FORMS", "Exported", "export_runs"]

FORMS: Final = {"mlflow": "mlflow", "wandb-offline": "wandb-offline", "parquet": "parquet", "csv": "csv"}
_DEFAULT_PLACES: Final = {"mlflow": "sqlite:///{}-mlflow.db", "wandb-offline": "{}-wandb"}
_LEFT_OUT_TOLD: Final = 6


@dataclass(slots=True)
class Exported(Told):
    """What an export wrote.

    imports: the place that `isorun import` reads it from again. there: runs that were there already, and are not
    written a second time.
    """

    told_as: ClassVar[str] = "exported"

    study: str
    place: str
    runs: int
    values: int
    imports: str
    next_step: str = ""
    states: dict[str, int] = field(default_factory=dict)
    conditions: list[Condition] = field(default_factory=list)
    there: int = 0

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "study": self.study,
            "to": self.place,
            "runs": self.runs,
            "there": self.there,
            "values": self.values,
            "import": self.imports,
            "states": self.states,
            "conditions": [condition.to_json() for condition in self.conditions],
        }

    def view(self) -> View:
        """For people."""
        new = "new run" if self.there else "run"
        wrote = f"{self.place}: {some(self.runs, new)} of the study {self.study} with {self.values:,} values"
        wrote += f"; {self.there:,} there already." if self.there else "."
        rows = tuple((state, f"{count:,}") for state, count in self.states.items())
        table = Table("states", "how the runs ended", (Column("state", key=True), Column("runs")), rows)
        return View((wrote, f"next: {self.next_step}"), (table,), tuple(self.conditions))


showing.VIEWS[Exported.told_as] = Exported.view


def export_runs(
    form: str,
    study: Study | str | Path,
    *,
    to: str | None = None,
    store: Store = None,
    python: str = "",
    progress: Callable[[float, float], None] | None = None,
) -> Exported:
    """Write the runs of a study, the failed ones included; of several attempts at a cell the last.

    form: "mlflow", "wandb-offline", "parquet", "csv", or a tracker of another distribution. to: where; a new place
    named after the study when not given. python: an interpreter that has mlflow, where this one has not.
    """
    if form in OWN and form not in FORMS:
        raise InputError(f"isorun does not write what {form} keeps", allowed=known_names(form, FORMS))
    declared = workflow.load(study, store=store)
    found = workflow.records(study, store=store)
    records = _latest(found)
    if not records:
        raise NothingRecorded(f"the study {declared.name} has no run to export", hint="isorun run makes the runs")
    where = to or _DEFAULT_PLACES.get(form, "{}-" + form).format(re.sub(r"[^\w.-]+", "_", declared.name))
    tracker = opened_tracker(f"{form}:{where}")
    told: Counter[str] = Counter()
    written = tracker.write(_tracked(records, declared.name, told, progress), Chosen(python=python))
    again = f"{'wandb' if form == 'wandb-offline' else form}:{shown_where(where)}"
    done = Exported(declared.name, written.place, written.runs, written.points, again, written.next_step)
    done.there = written.there
    if written.beside:
        message = f"{some(written.beside, 'run')} stood there half written, or with other content: written again beside"
        done.conditions.append(Condition("export.beside", message, f"delete the older ones in {form}"))
    done.states = dict(Counter(str(record.state) for record in records))
    what = Counter(told) + Counter(written.left_out)
    if what:
        left = first_of((f"{item} ({some(count, 'run')})" for item, count in what.most_common()), _LEFT_OUT_TOLD)
        message = f"{form} has no place for: {left}"
        done.conditions.append(
            Condition("export.left-out", message, "they stay in the store, or where imported runs came from")
        )
    done.next_step = done.next_step or f"isorun import {shlex.quote(done.imports)} reads them again"
    return done


def _latest(records: Sequence[RunRecord]) -> list[RunRecord]:
    latest: dict[str, RunRecord] = {}
    for record in records:
        known = latest.get(record.cell.id)
        if known is None or known.attempt < record.attempt:
            latest[record.cell.id] = record
    return sorted(latest.values(), key=lambda record: (record.started_at, record.run_id))


def _tracked(
    records: Sequence[RunRecord], study: str, told: Counter[str], progress: Callable[[float, float], None] | None
) -> Iterator[TrackedRun]:
    for number, record in enumerate(records):
        run = tracked_of(record, study)
        told.update(run.left_out)
        yield run
        if progress is not None:
            progress(number + 1, len(records))
