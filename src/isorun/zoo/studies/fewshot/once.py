"""H2 with each result counted once.

Where identical runs give identical results, the paper's model takes repeats and reruns of one result for independent
ones, and is surer of seeds than it may be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from isorun.zoo.studies.fewshot.hypotheses import Judgement, judge
from isorun.zoo.studies.fewshot.models import paper_model
from isorun.zoo.studies.fewshot.runs import Run, identical_settings

__all__ = ["EachOnce", "each_once"]


@dataclass(frozen=True, slots=True)
class EachOnce:
    """runs: that the paper's model was fitted to. results: how many of them are different ones. h2: by those alone."""

    runs: int
    results: int
    h2: Judgement


def each_once(runs: Sequence[Run]) -> EachOnce | None:
    """None where identical runs do differ, so that each is a result of its own, or where there are none."""
    if not identical_settings(runs).no_noise:
        return None
    kept = {run.setting: replace(run, approach=run.experiment, repeat="") for run in reversed(runs)}
    h2 = next(row for row in judge(paper_model(list(kept.values())), ()) if row.name == "H2")
    return EachOnce(len(runs), len(kept), h2)
