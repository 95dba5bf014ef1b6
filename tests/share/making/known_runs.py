"""The runs that every tracker is told, so that what is read of it is known: numbers that no rounding leaves alone."""

import math

EXPERIMENT = "digits"
EPOCHS = 3
RUNS = [(model, seed) for model in ("cnn", "mlp") for seed in (1, 2)]


def params(model, seed):
    return {"model": model, "seed": seed, "lr": 0.1, "note": "α and β"}


def name(model, seed):
    return f"{model}-{seed}"


def rows(model, seed):
    """A row an epoch."""
    worse = 0.125 if model == "mlp" else 0.0
    return [
        {"val_loss": 1 / (3 * epoch + seed) + worse, "val_acc": (epoch + seed) / 7 - worse} for epoch in range(EPOCHS)
    ]


def test_acc(model, seed):
    return 0.9 + seed / 300 - (0.1 if model == "mlp" else 0.0)


ODD = [math.nan, math.inf, -math.inf]
