"""Searches made for tests: a space with every kind of parameter, and trials on it."""

import math

import numpy as np

from isorun.repair.searches import Parameter, Search, Trial

LR = Parameter("lr", "float", low=1e-5, high=1.0, log=True)
DROPOUT = Parameter("dropout", "float", low=0.0, high=0.6)
LAYERS = Parameter("n_layers", "int", low=1, high=4, step=1)
UNITS = Parameter("units", "int", low=16, high=512, log=True, step=1)
ACTIVATION = Parameter("activation", "category", choices=("relu", "tanh", "sigmoid"))
SPACE = (LR, DROPOUT, LAYERS, UNITS, ACTIVATION)
OPERATIONS = tuple(Parameter(f"op{place}", "category", choices=("a", "b", "c", "d")) for place in range(4))


def drawn(parameter, rng):
    if parameter.kind == "category":
        return parameter.choices[int(rng.integers(len(parameter.choices)))]
    if parameter.log:
        return parameter.valid(10 ** rng.uniform(math.log10(parameter.low), math.log10(parameter.high)))
    return parameter.valid(rng.uniform(parameter.low, parameter.high))


def configuration(rng, space=SPACE):
    return {parameter.name: drawn(parameter, rng) for parameter in space}


def search(trials, space=SPACE, direction="higher", **more):
    return Search("made", "search", direction, tuple(space), tuple(trials), **more)


def of_scores(scores, rng=None, space=SPACE, **more):
    """A search with these scores, each trial a configuration of its own; None is a failed trial."""
    rng = rng or np.random.default_rng(0)
    trials = [
        Trial(
            number,
            "failed" if score is None else "finished",
            score,
            configuration(rng, space),
            seconds=10.0,
            started=10.0 * number,
        )
        for number, score in enumerate(scores)
    ]
    return search(trials, space, **more)
