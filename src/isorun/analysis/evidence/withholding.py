"""Withholding: a claim whose error rate does not hold is not made, in the verdict and not only in a footnote.

Nor is a claim that rests on a guess made without saying so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from isorun.analysis.evidence.condition import Condition, voided
from isorun.analysis.sequential.decision import Decision, Verdict

__all__ = ["withheld"]


def withheld(decision: Decision, conditions: Sequence[Condition]) -> Decision:
    """The decision with the guess it rests on, or "undecided" with the condition that voids its error rate."""
    reason = voided(conditions)
    if reason is None:
        guessed = next((item for item in conditions if item.code == "direction-guessed"), None)
        return replace(decision, why=f"{decision.why} ({guessed.message})") if guessed else decision
    return replace(
        decision,
        verdict=Verdict.UNDECIDED,
        why=f"{Verdict.UNDECIDED}: {reason.message}; next: {reason.next_step}",
        about_more_runs=None,
        chance=None,
        warnings=(),
    )
