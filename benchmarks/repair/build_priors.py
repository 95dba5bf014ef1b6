"""Makes priors: counts of how often an edit improved a training, and how well they foretell what was held out."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from isorun.repair.actions import Edit, single_edits
from isorun.repair.priorities import Prior, PriorRow
from isorun.repair.searches import UNKNOWN_SYMPTOMS, Search, Trial
from repair.tables import TrainingTable

__all__ = ["prior_from_tables", "shuffled"]

_DRAWS: Final = 600
_BEST_OF: Final = (1, 2, 4, 8)


def prior_from_tables(tables: Iterable[TrainingTable], seed: int = 0, held_out: TrainingTable | None = None) -> Prior:
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
    prior = Prior(rows, source=source, about={"seed": seed})
    if held_out is None:
        return prior
    return Prior(rows, source, about={"seed": seed, "calibration": calibration(prior, _edits(held_out, rng))})


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


def calibration(prior: Prior, seen: Iterable[tuple[Edit, bool]]) -> list[dict[str, float]]:
    """By tenths of the foretold chance: how many edits, the mean of what was foretold, and how many improved."""
    tenths: dict[int, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for edit, improved in seen:
        chance = prior.probability(edit, UNKNOWN_SYMPTOMS)
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


def rows_as_text(rows: Sequence[PriorRow]) -> str:
    """For a look at it."""
    return "\n".join(
        f"{row.edit.meaning} {row.edit.before} → {row.edit.after}: {row.improved:g}/{row.tries:g}" for row in rows
    )
