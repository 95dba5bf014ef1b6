"""Bootstrap aggregates against rliable, and `compare` on a large table.

2 approaches x 10 runs x 26 tasks, 50,000 stratified bootstrap repetitions. rliable runs in its own environment, with
the pins under which it can be imported. Both draw percentile intervals; the default interval here, for few runs, is a
formula and needs no draws. Its probability of improvement takes about ten minutes at 50,000 repetitions:
it is measured at 1,000, and the times of one repetition are compared.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from isorun.analysis.comparison import compare
from isorun.analysis.leaderboards.across_tasks import improvement_across_tasks
from isorun.analysis.leaderboards.aggregate import aggregate
from peers import peer_environment

_PINS: Final = ("rliable==1.2.0", "arch==7.2.0", "numpy==2.2.6", "scipy==1.15.3", "pandas==2.3.3")
_REPETITIONS: Final = 50_000
_PEER_IMPROVEMENT_REPETITIONS: Final = 1_000
_RLIABLE: Final = """
import json, sys, time
import numpy as np
from rliable import library, metrics
scores = {name: np.array(runs) for name, runs in json.load(open(sys.argv[1])).items()}
started = time.perf_counter()
points, limits = library.get_interval_estimates(
    scores, lambda runs: np.array([metrics.aggregate_iqm(runs)]), reps=int(sys.argv[2]))
iqm = time.perf_counter() - started
started = time.perf_counter()
better, _ = library.get_interval_estimates(
    {"a,b": (scores["a"], scores["b"])}, metrics.probability_of_improvement, reps=int(sys.argv[3]))
improvement = time.perf_counter() - started
print(json.dumps({"iqm_seconds": iqm, "improvement_seconds": improvement, "iqm": float(points["a"][0]),
    "iqm_limits": limits["a"].ravel().tolist(), "improvement": float(better["a,b"])}))
"""


def measure() -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    scores = {"a": rng.normal(0.6, 0.3, (10, 26)), "b": rng.normal(0.5, 0.3, (10, 26))}
    peer = _rliable(scores)
    iqm = _fastest(
        lambda: [
            aggregate(runs, np.random.default_rng(1), interval="percentile", repetitions=_REPETITIONS)
            for runs in scores.values()
        ]
    )
    improvement = _fastest(
        lambda: improvement_across_tasks(
            scores["a"], scores["b"], np.random.default_rng(1), interval="percentile", repetitions=_REPETITIONS
        )
    )
    per_repetition = peer["improvement_seconds"] / _PEER_IMPROVEMENT_REPETITIONS
    return [
        _agreement(scores, peer),
        _ratio("interquartile mean, 50,000 repetitions", peer["iqm_seconds"], iqm, 30.0),
        _ratio("probability of improvement", per_repetition * _REPETITIONS, improvement, 500.0),
        _compare_large_table(),
    ]


def _rliable(scores: dict[str, np.ndarray[Any, Any]]) -> dict[str, Any]:
    interpreter = peer_environment("rliable", _PINS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scores.json"
        path.write_text(json.dumps({name: runs.tolist() for name, runs in scores.items()}))
        arguments = [str(path), str(_REPETITIONS), str(_PEER_IMPROVEMENT_REPETITIONS)]
        done = subprocess.run(
            [str(interpreter), "-c", _RLIABLE, *arguments], check=True, capture_output=True, text=True
        )
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def _fastest(work: Callable[[], object], times: int = 7) -> float:
    """The fastest of a few: other work on the machine only ever adds time."""
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return min(taken)


def _ratio(name: str, peer_seconds: float, own_seconds: float, target: float) -> dict[str, Any]:
    ratio = peer_seconds / own_seconds
    return {
        "name": f"{name}, against rliable",
        "measured": ratio,
        "target": target,
        "unit": "times faster",
        "ok": ratio >= target,
        "detail": f"{own_seconds:.3f} s against {peer_seconds:.1f} s for {_REPETITIONS:,} repetitions",
    }


def _agreement(scores: dict[str, np.ndarray[Any, Any]], peer: dict[str, Any]) -> dict[str, Any]:
    """Both must have computed the same thing before their times are compared."""
    own = aggregate(scores["a"], np.random.default_rng(1), interval="percentile", repetitions=_REPETITIONS)
    better = improvement_across_tasks(scores["a"], scores["b"], np.random.default_rng(1), repetitions=1000)
    assert own.ci95 is not None
    apart = max(
        abs(own.estimate - peer["iqm"]),
        abs(better.estimate - peer["improvement"]),
        *(abs(mine - theirs) for mine, theirs in zip(own.ci95, peer["iqm_limits"], strict=True)),
    )
    return {
        "name": "largest difference between isorun's and rliable's estimates and limits",
        "measured": apart,
        "target": 0.002,
        "unit": "score",
        "ok": apart <= 0.002,
        "detail": "estimates are equal; limits differ by the draws",
    }


def _compare_large_table() -> dict[str, Any]:
    rng = np.random.default_rng(2)
    rows = (
        f"{'new' if row % 2 else 'base'},{row // 2},{value!r}\n"
        for row, value in enumerate(rng.normal(size=50_000).tolist())
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.csv"
        path.write_text("setting,seed,value\n" + "".join(rows))
        seconds = _fastest(lambda: compare(path, value="value", by="setting", a="base", b="new", pair="seed"))
    return {
        "name": "compare on a CSV file of 50,000 runs",
        "measured": seconds,
        "target": 1.0,
        "unit": "s",
        "ok": seconds <= 1.0,
        "detail": "reading, all tests and intervals, pairs and the verdict",
    }


if __name__ == "__main__":
    for row in measure():
        print(row)
