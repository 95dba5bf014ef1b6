"""Repairing against TPE on the eight tables of HPOBench: 25 trials, paired seeds, the mean rank over all instances.

The prior of each table is made from the other seven.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from scipy.stats import rankdata

from repair.build_priors import prior_from_tables
from repair.searching import interval, scores_of
from repair.tables import hpobench

__all__ = ["measure"]

_SEEDS: Final = range(100)
_COMPARED: Final = ("TPE", "random", "uniform edits", "no prior", "repair", "shuffled prior")


def measure() -> list[dict[str, Any]]:
    tables = hpobench()
    found = []
    for table in tables.values():
        prior = prior_from_tables([other for other in tables.values() if other is not table])
        found.append([scores_of(strategy, table, prior, _SEEDS) for strategy in _COMPARED])
    scores = np.array(found)  # table, strategy, seed
    ranks = rankdata(-scores, axis=1)
    against = rankdata(-scores[:, [0, _COMPARED.index("repair")]], axis=1)
    mean, low, high = interval((against[:, 0] - against[:, 1]).mean(axis=0))
    rows = [
        {
            "name": "mean rank of repair, of TPE and repair",
            "measured": round(float(against[:, 1].mean()), 3),
            "unit": "",
            "target": "< 1.5",
            "ok": low > 0,
            "detail": f"TPE {against[:, 0].mean():.3f}; paired difference {mean:.3f}, "
            f"95 % interval {low:.3f} to {high:.3f} over {scores.shape[0]} tables x {scores.shape[2]} seeds",
        }
    ]
    for place, strategy in enumerate(_COMPARED):
        by_table = ", ".join(
            f"{name} {scores[at, place].mean() - scores[at, 0].mean():+.2f}" for at, name in enumerate(tables)
        )
        rows.append(
            {
                "name": f"mean rank of {strategy}, of all {len(_COMPARED)}",
                "measured": round(float(ranks[:, place].mean()), 3),
                "unit": "",
                "target": "",
                "ok": True,
                "detail": f"points over TPE: {by_table}",
            }
        )
    return rows
