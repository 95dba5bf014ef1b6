"""The price of determinism: steps that are taken one after the other, and sets of them.

A set of steps is priced as a whole: the same training with these steps taken, beside the training as it is, in pairs
that ran shortly after one another. `priced_runs.py` has the runs made so far, `choice.py` says which are next and which
set is recommended, `price.py` what they tell, and `conditions.py` what weakens that; all are functions of the runs, so
that work that was interrupted goes on from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from isorun.analysis.evidence.provenance import effective
from isorun.study.records import RunRecord
from isorun.worker import frameworks
from isorun.worker.frameworks.switches import AUTOTUNE
from isorun.worker.levels import THREAD_COUNTS

__all__ = [
    "AS_IT_IS",
    "LADDER",
    "SEED",
    "LadderStep",
    "Names",
    "NotApplicable",
    "applicable",
    "rungs",
]

SEED: Final = "seed"
Names = tuple[str, ...]
AS_IT_IS: Final[Names] = ()


class LadderStep(NamedTuple):
    """One step. switch: whose answer says whether it can be taken here; held: the answers that have taken it already.

    switches, variables: what asks for it.
    """

    name: str
    switch: str = ""
    held: tuple[str, ...] = ()
    switches: Mapping[str, str] = {}
    variables: Mapping[str, str] = {}
    nobody: str = ""


_THREADS: Final = (*THREAD_COUNTS, *(name for one in frameworks.every() for name in one.thread_variables))
_NO_DEVICE: Final = "no library of it has started a GPU"
# The order is that in which they are taken: what costs least, as a rule, first.
LADDER: Final = (
    LadderStep(SEED),
    LadderStep(
        "deterministic kernels",
        "kernels",
        ("deterministic",),
        {"kernels": "deterministic"},
        nobody="no library of it has kernels to choose from here",
    ),
    LadderStep("no autotune", AUTOTUNE, ("on", "off"), {AUTOTUNE: "on"}, nobody=_NO_DEVICE),
    LadderStep("no TF32", "tf32", ("off",), {"tf32": "off"}, nobody=_NO_DEVICE),
    LadderStep(
        "one thread",
        "threads",
        ("1",),
        variables=dict.fromkeys(_THREADS, "1"),
        nobody="no library of it says how many threads it has",
    ),
    LadderStep("one CPU path", "cpu", (), nobody="no library of it says which instructions it uses"),
)


@dataclass(frozen=True, slots=True)
class NotApplicable:
    """A step that is not measured, and why."""

    name: str
    why: str

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"name": self.name, "why": self.why}


def applicable(first: RunRecord, path: Mapping[str, str]) -> tuple[Names, tuple[NotApplicable, ...]]:
    """The steps that can be taken, as the libraries of a run of the training as it is answer; and the others.

    path: the switches that ask for one CPU path on this machine.
    """
    answers = effective(first).get("switches") or {}
    taken, left = [], []
    for step in LADDER:
        heard = {who: str(items[step.switch]) for who, items in answers.items() if step.switch in items}
        held = (path.get("cpu", ""),) if step.switch == "cpu" and "mkl" not in path else step.held
        if not step.switch or any(value not in held for value in heard.values()):
            taken.append(step.name)
        elif heard:
            has = ", ".join(f"{who} has {step.switch} = {value}" for who, value in heard.items())
            left.append(NotApplicable(step.name, f"it is so already: {has}"))
        else:
            left.append(NotApplicable(step.name, step.nobody))
    return tuple(taken), tuple(left)


def rungs(taken: Names) -> tuple[Names, ...]:
    """The ladder: nothing, the first step, the first two, …"""
    return tuple(taken[:length] for length in range(len(taken) + 1))
