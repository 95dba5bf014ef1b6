"""Naming: a decision on A and B told with the names of the two sides and of what was counted."""

from __future__ import annotations

import re
from dataclasses import replace

from isorun.analysis.sequential.decision import Decision, Verdict

__all__ = ["named"]

_WINNERS = {Verdict.A_BETTER: 0, Verdict.B_BETTER: 1}
_COUNTED_AS_RUNS = frozenset({"run", "row", "repeat", "unit"})


def named(decision: Decision, a: str, b: str, noun: str = "run", *, about: str = "") -> Decision:
    """The same decision, its reason in words of the sides; noun: what was counted, such as a seed.

    about: what the answer is limited to, such as one seed.

    Only what the rule itself wrote is reworded, in one pass, before any name stands in it: a side may be called
    "B", or "ViT-B".
    """
    names = (a, b)

    def reworded(text: str) -> str:
        if noun not in _COUNTED_AS_RUNS:
            text = re.sub(r"\b(\d+) runs? (a side|of A)\b", rf"\1 {noun}s \2", text, count=1)
        return re.sub(r"\b[AB]\b", lambda side: names["AB".index(side[0])], text)

    claimed = decision.verdict in _WINNERS
    reason = reworded(decision.why.removeprefix(str(decision.verdict)) if claimed else decision.why)
    winner = f"{names[_WINNERS[decision.verdict]]} is better" if claimed else ""
    limited = f", {about}" if about else ""
    warnings = tuple(replace(warning, message=reworded(warning.message)) for warning in decision.warnings)
    return replace(
        decision,
        why=f"{winner}{reason}{limited}",
        estimate_of=reworded(decision.estimate_of),
        warnings=warnings,
    )
