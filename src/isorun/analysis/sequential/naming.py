"""Naming: a decision on A and B told with the names of the two sides and of what was counted."""

from __future__ import annotations

import re
from dataclasses import replace

from isorun.analysis.sequential.decision import Decision, Verdict

__all__ = ["named"]

_CLAIMS = {Verdict.A_BETTER: 0, Verdict.B_BETTER: 1}


def named(decision: Decision, a: str, b: str, noun: str = "run") -> Decision:
    """The same decision, its reason in words of the sides; noun: what was counted, such as a seed."""
    names, why = (a, b), decision.why
    if decision.verdict in _CLAIMS:
        why = f"{names[_CLAIMS[decision.verdict]]} is better{why.removeprefix(str(decision.verdict))}"
    if noun not in {"run", "row", "repeat", "unit"}:
        why = re.sub(r"\b(\d+) runs? (a side|of A)\b", rf"\1 {noun}s \2", why, count=1)
    # One pass, so that a side that is itself called B is not renamed again.
    why = re.sub(r"\b[AB]\b", lambda found: names["AB".index(found[0])], why)
    return replace(decision, why=why)
