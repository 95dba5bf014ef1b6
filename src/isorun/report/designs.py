"""A study as it is declared, and what became of its runs: for who works in a notebook."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from isorun.report import UNKNOWN, Column, Listing, Table, View, count, without_constant_columns
from isorun.study.cells import GROUP_FACTORS
from isorun.study.design import Study, document_without_secrets
from isorun.study.records import RunRecord, RunState

if TYPE_CHECKING:
    from isorun.analysis.evidence import Condition

__all__ = ["outcome_view", "study_design_view"]

_MOST_COUNTED: Final = 20_000
_MOST_SHOWN: Final = 12
_REASONS_SHOWN: Final = 5


def study_design_view(study: Study) -> View:
    """The parts of the design, a row each; secrets are left out as they are in records."""
    rows = [(part, name, said) for part, name, said in _parts(study)]
    columns = (Column("part", key=True), Column("name", key=True), Column("what it is", key=True))
    return View((_declared(study),), (Table("design", "the design", columns, tuple(rows)),))


def _declared(study: Study) -> str:
    many = len(study.approaches)
    parts = [
        f"{many} approaches" if many > 1 else "1 approach",
        count(len(study.configs), "config"),
        count(len(study.environments), "environment"),
        count(len(study.levels), "level"),
        count(len(study.seeds), "seed"),
        count(study.repeats, "repeat"),
    ]
    if study.searches:
        return f"{study.name}: a search proposes its runs as it goes; {', '.join(parts)}."
    runs = _number_of_runs(study)
    counted = f"{count(runs, 'run')} of " if runs else ""
    return f"{study.name}: {counted}{', '.join(parts)}."


def _number_of_runs(study: Study) -> int:
    """How many runs it declares; 0 where it would take long to count them."""
    from isorun.study.cells import cells_of  # noqa: PLC0415 - a design of many cells is not expanded

    draws = sum(config.draws for config in study.configs.values()) or 1
    most = len(study.approaches) * draws * len(study.environments) * len(study.levels)
    return len(cells_of(study)) if most * len(study.seeds) * study.repeats <= _MOST_COUNTED else 0


def _parts(study: Study) -> Iterator[tuple[str, str, str]]:
    document = document_without_secrets(study)
    for name, approach in islice(document["approaches"].items(), _MOST_SHOWN):
        command = approach.get("command")
        yield "approach", name, shlex.join(command) if command else f"function {approach.get('function', '')}"
    for name, config in islice(study.configs.items(), _MOST_SHOWN):
        drawn = [f"{item} drawn" for item in config.distributions]
        said = ", ".join([*(f"{item} = {value}" for item, value in config.values.items()), *drawn])
        if said:
            yield "config", name, said
    for name, environment in islice(study.environments.items(), _MOST_SHOWN):
        facts = [
            environment.kind,
            environment.python,
            f"threads = {environment.threads}" if environment.threads else "",
        ]
        facts += [f"{item} = {value}" for item, value in environment.switches.items()]
        facts += [f"{item}={value}" for item, value in document["environments"][name]["env"].items()]
        said = ", ".join(filter(None, facts))
        if said:
            yield "environment", name, said
    yield "levels", "", ", ".join(map(str, study.levels))
    yield "seeds", "", ", ".join(map(str, study.seeds[:_MOST_SHOWN])) + (", …" if study.seeds[_MOST_SHOWN:] else "")
    for name, metric in study.metrics.items():
        yield "metric", name, f"{metric.direction} is better" if metric.direction else "which way is better is not said"


def outcome_view(counted: str, records: Sequence[RunRecord], conditions: Sequence[Condition]) -> View:
    """How the runs of each group ended; why those ended that did not finish."""
    failed = [record for record in records if record.state is not RunState.FINISHED]
    reasons = Counter(f"{record.cell.label}: {record.state}, {record.reason}" for record in failed)
    items = [f"{reason}{f' ({times} times)' if times > 1 else ''}" for reason, times in reasons.items()]
    more = [f"and {len(items) - _REASONS_SHOWN} more"] if len(items) > _REASONS_SHOWN else []
    listing = Listing("What did not finish:", (*items[:_REASONS_SHOWN], *more))
    tables = (_groups(records),) if records else ()
    return View((f"{counted}.",), tables, tuple(conditions), listings=(listing,) if items else ())


def _groups(records: Sequence[RunRecord]) -> Table:
    groups: dict[tuple[str, ...], list[RunRecord]] = {}
    for record in records:
        groups.setdefault(tuple(map(str, record.cell.group)), []).append(record)
    columns = (*(Column(name, key=True) for name in GROUP_FACTORS), *map(Column, ("finished", "not", "seconds a run")))
    rows = tuple((*group, *_ended(of_group)) for group, of_group in groups.items())
    return without_constant_columns(Table("ended", "how the runs ended", columns, rows), GROUP_FACTORS)


def _ended(records: Sequence[RunRecord]) -> tuple[str, str, str]:
    finished = [record for record in records if record.state is RunState.FINISHED]
    seconds = f"{sum(record.wall_seconds for record in finished) / len(finished):.1f}" if finished else UNKNOWN
    return str(len(finished)), str(len(records) - len(finished)), seconds
