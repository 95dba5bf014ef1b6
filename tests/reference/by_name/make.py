"""Makes by_name.json: what baycomp and deepsig say about small samples.

In an environment of its own: pip install baycomp==1.0.3 deepsig==1.2.8; then: python make.py
"""

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
from baycomp import SignedRankTest, two_on_single
from deepsig import aso
from deepsig.aso import compute_violation_ratio

rng = np.random.default_rng(20260701)
PAIRS = {
    "seeds": (np.round(rng.normal(0.91, 0.01, 12), 4), np.round(rng.normal(0.90, 0.01, 12), 4)),
    # whole numbers: baycomp ties differences of shares or not by the accidents of floating point
    "tied": (rng.integers(80, 92, 10) * 1.0, rng.integers(79, 88, 10) * 1.0),
    "far": (np.round(rng.normal(2.0, 0.5, 8), 3), np.round(rng.normal(0.0, 0.5, 8), 3)),
    "folds": (np.round(rng.normal(0.75, 0.03, 20), 4), np.round(rng.normal(0.74, 0.03, 20), 4)),
}
ROPES = {"seeds": (0.0, 0.01), "tied": (0.0, 1.0, 3.0), "far": (0.0, 0.5, 2.0), "folds": (0.0, 0.01)}
SAMPLES = {
    "five": (rng.normal(1.2, 1, 5), rng.normal(0, 1, 5)),
    "unequal": (rng.normal(1.2, 2, 10), rng.normal(0, 1, 30)),
    "tied": (rng.binomial(50, 0.9, 12) / 50, rng.binomial(50, 0.88, 9) / 50),
    "behind": (rng.normal(0, 1, 7), rng.normal(0.4, 1, 9)),
    "ahead": (rng.normal(9, 1, 6), rng.normal(0, 1, 6)),
}


def bayes(a, b, rope):
    """baycomp's left side is its first argument: A is given as the second."""
    whole = SignedRankTest(b, a, rope, nsamples=200_000, random_state=1).probs(with_rope=rope > 0)
    return {
        "rope": rope,
        "signed_rank": list(map(float, whole)),
        "folds_10": list(map(float, two_on_single(b, a, rope, runs=len(a) // 10))) if len(a) % 10 == 0 else None,
        "one_run": list(map(float, two_on_single(b, a, rope, runs=1))),
    }


def order(a, b):
    eps = [float(aso(a, b, seed=seed * 10_000, show_progress=False)) for seed in range(1, 6)]
    ratio = float(compute_violation_ratio(a, b, dt=0.005))
    return {
        "a": a.tolist(),
        "b": b.tolist(),
        "violation": ratio,
        "eps_min": float(np.mean(eps)),
        "sd": float(np.std(eps)),
    }


made = {
    "made_by": {name: version(name) for name in ("baycomp", "deepsig", "numpy", "scipy")},
    "bayes": {
        name: {"a": a.tolist(), "b": b.tolist(), "answers": [bayes(a, b, rope) for rope in ROPES[name]]}
        for name, (a, b) in PAIRS.items()
    },
    "aso": {name: order(a, b) for name, (a, b) in SAMPLES.items()},
}
(Path(__file__).parent / "by_name.json").write_text(json.dumps(made, indent=1) + "\n")
