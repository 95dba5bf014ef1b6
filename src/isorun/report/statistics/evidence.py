"""What the runs behind an answer were counted as, in sentences that stand beside every verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from isorun.analysis.evidence.units import Units, counted
from isorun.report.numbers import count

__all__ = ["ROWS_COUNT", "evidence_sentences"]

ROWS_COUNT: Final = "Every row counts as an independent run; --unit COLUMN names what was drawn, if that is not so."


def evidence_sentences(sides: Mapping[str, Units]) -> list[str]:
    """How runs became units, and what that leaves the answer to be about."""
    said = {name: counted(units) for name, units in sides.items()}
    first = next(iter(sides.values()))
    sentences = [_counts(sides, said)]
    if first.noun == "row":
        sentences.append(ROWS_COUNT)
    if first.noun == "repeat":
        sentences.append(f"This is {first.about}: other seeds may say otherwise.")
    return sentences


def _counts(sides: Mapping[str, Units], said: Mapping[str, str]) -> str:
    if len(set(said.values())) == 1 and len(sides) > 1:
        text = next(iter(said.values()))
        if " count as " in text:
            return f"Evidence: {text}, on each side."
        return f"Evidence: {text} a side."
    if all(units.count == units.runs.size for units in sides.values()) and len(sides) > 4:
        total = sum(units.count for units in sides.values())
        return f"Evidence: {count(total, 'run')} of {len(sides)} sides."
    return f"Evidence: {'; '.join(f'{name}: {text}' if name else text for name, text in said.items())}."
