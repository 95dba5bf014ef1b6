"""Nodes of a Ray cluster that let no run begin: they joined without the study's folder, or their disk is full.

One bad node is no reason to end a study. It is left out for a while, and its runs are made elsewhere. When every node
refuses, and again after that where runs had begun before, somebody has to do something.
"""

from __future__ import annotations

import time
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

__all__ = ["Refusals"]

_OUT_SECONDS: Final = 60.0
_ROUNDS: Final = 3


@dataclass(slots=True)
class _Refusal:
    rounds: int
    at: float


class Refusals:
    """What the nodes refused since a run last ended on them, by their ids; the empty one is for Ray itself.

    some_run_began: whether it is known that runs can begin on this cluster at all.
    """

    def __init__(self) -> None:
        self.some_run_began = False
        self._of: dict[str, _Refusal] = {}

    def note(self, node: str, sent_at: float) -> None:
        """The node refused a run that was sent then. Those sent before it last refused are of the same round."""
        known = self._of.setdefault(node, _Refusal(0, 0.0))
        known.rounds += not known.rounds or sent_at > known.at
        known.at = time.monotonic()

    def forget(self, node: str) -> None:
        """A run ended there."""
        self.some_run_began = True
        for name in (node, ""):
            self._of.pop(name, None)

    def by_all(self, nodes: AbstractSet[str]) -> bool:
        """Whether each of these nodes refuses runs, or Ray itself: at once before the first run, else repeatedly."""
        enough = _ROUNDS if self.some_run_began else 1
        every = {name for name, known in self._of.items() if known.rounds >= enough}
        return "" in every or bool(nodes and nodes <= every)

    def kept_out(self, nodes: AbstractSet[str]) -> tuple[str, ...]:
        """Those that refused a short while ago, unless these nodes are all among them."""
        since = time.monotonic() - _OUT_SECONDS
        out = {name for name, known in self._of.items() if name and known.at >= since}
        return tuple(sorted(out)) if nodes - out else ()
