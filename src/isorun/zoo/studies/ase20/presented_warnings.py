"""The warnings of all studies as one list, with next steps for somebody who typed `isorun reproduce`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from isorun.analysis.evidence.condition import Condition
from isorun.zoo.studies.ase20.measured import Measured, PartResult

__all__ = ["merged_warnings"]

_MEANT_FOR_FACTORS: Final = frozenset({"no-identical-runs", "seed-without-effect"})
"""Where one factor is varied, seeds are meant to run once, and weights are meant to stay the same."""
_LAUNCH: Final = (
    "runs at some levels were started fresh, at others warm: the seconds of fresh runs include importing frameworks, "
    "so compare times within a level only"
)
"""The same for all studies, whichever levels they have."""


def merged_warnings(parts: Sequence[PartResult], groups: Sequence[Measured], scale: str) -> tuple[Condition, ...]:
    """Each warning once, with all the groups it is about."""
    merged: dict[tuple[str, str], Condition] = {}
    for part in parts:
        for warning in _of_part(part, scale):
            same = merged.get((warning.code, warning.message), replace(warning, groups=()))
            merged[warning.code, warning.message] = replace(same, groups=(*same.groups, *warning.groups))
    return (*_times_shared(groups, scale), *_still_improving(groups), *merged.values())


def _times_shared(groups: Sequence[Measured], scale: str) -> Iterator[Condition]:
    shared = [group for group in groups if group.at_once > 1]
    if shared:
        most = max(group.at_once for group in shared)
        is_all = all(group.at_once > 1 for group in groups if group.finished)
        yield Condition(
            "times-shared",
            f"up to {most} runs shared a GPU: their times to convergence include waiting for each other",
            f"isorun reproduce ase20 --scale {scale} -j 1 in a new store, where times matter",
            () if is_all else tuple(group.label for group in shared),
        )


def _still_improving(groups: Sequence[Measured]) -> Iterator[Condition]:
    short = [group for group in groups if group.finished and group.is_cut_short]
    if short:
        yield Condition(
            "still-improving",
            "half of these runs or more had their best validation loss in the last epoch: what they differ by is the "
            "spread of unfinished trainings",
            "isorun reproduce ase20 --scale paper, where sizes matter",
            tuple(f"{group.label} (mean {100 * (group.mean or 0.0):.1f} %)" for group in short),
        )


def _of_part(part: PartResult, scale: str) -> Iterator[Condition]:
    if part.result is None:
        yield Condition("no-runs", "nothing was recorded for some parts", _again(scale), (part.study.name,))
        return
    for warning in part.result.conditions:
        if warning.code == "runs-failed" or warning.code in _meant(part):
            continue  # failed runs of all studies are warned of together
        if warning.code == "few-runs":
            yield replace(warning, next_step=_more(scale), groups=(part.study.name,))
        elif warning.code == "launch-differs":
            yield replace(warning, message=_LAUNCH, next_step=_fresh(scale))
        elif warning.code == "runs-missing":
            message = f"{part.study.name}: {warning.message}"
            yield replace(warning, message=message, next_step=_again(scale))
        else:
            yield replace(warning, groups=_named(part, warning.groups))


def _meant(part: PartResult) -> frozenset[str]:
    return _MEANT_FOR_FACTORS if part.planned.factors else frozenset()


def _named(part: PartResult, groups: Sequence[str]) -> tuple[str, ...]:
    """Groups of the same name in several studies told apart."""
    own = part.planned.part == part.planned.networks[0].option
    return tuple(groups) if own else tuple(f"{part.study.name}: {group}" for group in groups)


def _more(scale: str) -> str:
    return f"isorun reproduce ase20 --scale {scale} --runs 8: finished runs are kept"


def _fresh(scale: str) -> str:
    return f"isorun reproduce ase20 --scale {scale} --launch fresh in a new store, where times matter"


def _again(scale: str) -> str:
    return f"isorun reproduce ase20 --scale {scale} again: only what is missing or failed is run"
