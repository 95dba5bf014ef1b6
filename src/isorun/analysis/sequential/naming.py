"""Naming: a decision on A and B told with the names of the two sides and of what was counted."""

from __future__ import annotations

import re
from dataclasses import replace

from isorun.analysis.sequential.decision import Decision, Verdict

__all__ = ["named"]

_WINNERS = {Verdict.A_BETTER: 0, Verdict.B_BETTER: 1}
_COUNTED_AS_RUNS = frozenset({"run", "row", "repeat", "unit"})


def named(decision: Decision, a: str, b: str, noun: str = "run") -> Decision:
    """The same decision, its reason in words of the sides; noun: what was counted, such as a seed.

    Only what the rule itself wrote is reworded, in one pass, before any name stands in it: a side may be called
    "B", or "ViT-B".
    """
    names = (a, b)
    reason = decision.why.removeprefix(str(decision.verdict)) if decision.verdict in _WINNERS else decision.why
    if noun not in _COUNTED_AS_RUNS:
        reason = re.sub(r"\b(\d+) runs? (a side|of A)\b", rf"\1 {noun}s \2", reason, count=1)
    reason = re.sub(r"\b[AB]\b", lambda side: names["AB".index(side[0])], reason)
    winner = f"{names[_WINNERS[decision.verdict]]} is better" if decision.verdict in _WINNERS else ""
    return replace(decision, why=f"{winner}{reason}")
