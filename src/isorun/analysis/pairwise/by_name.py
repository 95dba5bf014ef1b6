"""Analyses that are asked for by name, beside the verdict: nothing is claimed by them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np

from isorun.analysis.inputs.pairing import Pairs
from isorun.analysis.inputs.samples import FloatArray
from isorun.analysis.pairwise.almost_stochastic_order import almost_stochastic_order
from isorun.analysis.pairwise.bayesian_rope import bayesian_correlated_t, bayesian_signed_rank
from isorun.errors import InputError, known_names

__all__ = ["NAMES", "Named", "NamedQuestion", "asked_by_name"]

_SEED: Final = 27_644_437


class Named(Protocol):
    """What an analysis found: a sentence that says what it bounds and what not, and plain JSON."""

    @property
    def sentence(self) -> str:
        """The finding in words."""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""


@dataclass(frozen=True, slots=True)
class NamedQuestion:
    """Two sides, one value a unit. rope: a difference that does not matter; correlation: of the folds of one split."""

    a: str
    b: str
    first: FloatArray
    second: FloatArray
    pairs: Pairs | None
    direction: str
    rope: float = 0.0
    correlation: float = 0.0

    @property
    def differences(self) -> FloatArray:
        """Of the pairs; an error where there are none."""
        if self.pairs is None:
            raise InputError("that analysis needs pairs of runs", found="no pairs", hint="pair=… (--pair seed)")
        return self.pairs.first - self.pairs.second


def asked_by_name(names: tuple[str, ...], question: NamedQuestion) -> Mapping[str, Named]:
    """The analyses of these names; each draws from a generator of fixed seed, so that the same runs say the same."""
    for name in names:
        if name not in NAMES:
            raise InputError(f"there is no analysis {name!r}", allowed=known_names(name, NAMES))
    return {name: NAMES[name](question) for name in names}


def _signed_rank(asked: NamedQuestion) -> Named:
    generator = np.random.default_rng(_SEED)
    return bayesian_signed_rank(
        asked.differences, asked.rope, generator, direction=asked.direction, a=asked.a, b=asked.b
    )


def _correlated_t(asked: NamedQuestion) -> Named:
    return bayesian_correlated_t(
        asked.differences, asked.rope, asked.correlation, direction=asked.direction, a=asked.a, b=asked.b
    )


def _stochastic_order(asked: NamedQuestion) -> Named:
    generator = np.random.default_rng(_SEED)
    return almost_stochastic_order(
        asked.first, asked.second, generator, direction=asked.direction, a=asked.a, b=asked.b
    )


NAMES: Final[Mapping[str, Callable[[NamedQuestion], Named]]] = {
    "bayesian-signed-rank": _signed_rank,
    "bayesian-correlated-t": _correlated_t,
    "aso": _stochastic_order,
}
