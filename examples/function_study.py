"""A study declared in Python: two learning rates of a tiny regression, trained by a function of this file."""

import random
import tempfile

import isorun


def train(lr: float) -> dict[str, float]:
    """Fit y = 2x by stochastic gradient descent; a returned mapping is recorded as isorun.result."""
    weight = random.gauss(0, 1)
    for epoch in range(1, 11):
        for _ in range(20):
            x = random.uniform(-1, 1)
            noise = random.gauss(0, 0.1)
            weight -= lr * 2 * (weight * x - 2 * x - noise) * x
        isorun.log(epoch=epoch, error=abs(weight - 2))
    return {"error": abs(weight - 2)}


def main() -> None:
    """Declare, run, and compare the two."""
    study = isorun.Study(
        "regression",
        approaches={"sgd": train},
        configs={"slow": {"lr": 0.05}, "fast": {"lr": 0.5}},
        repeats=6,
        metrics={"error": "lower"},
        folder=tempfile.mkdtemp(),
    )
    outcome = isorun.run(study)
    print(f"{len(outcome.records)} runs")
    comparison = isorun.compare(study, by="config", a="fast", b="slow")
    print(f"{comparison.verdict}: {comparison.decision.why}")


if __name__ == "__main__":
    main()
