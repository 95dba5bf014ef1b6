"""Everything that the records say, computed once, before any of it is shown.

With the paper's test inside one setting: a paired Wilcoxon signed rank test over the questions of the test set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from isorun.analysis.agreements.agreement import Agreement
from isorun.analysis.agreements.shared_runs import SupportedDigits
from isorun.analysis.pairwise import wilcoxon_signed_rank
from isorun.errors import IsorunError
from isorun.study.records import Predictions, RunRecord
from isorun.zoo.data.answers import load_answers
from isorun.zoo.data.presence import at_hand, require
from isorun.zoo.paper import Request, last_attempts
from isorun.zoo.studies.tacl18.design import PARTS, study_names
from isorun.zoo.studies.tacl18.masks import MaskEffect, mask_effects
from isorun.zoo.studies.tacl18.measured import (
    Effect,
    Setting,
    lost_runs,
    runs_of,
    setting_effects,
    settings,
    used_made_data,
)
from isorun.zoo.studies.tacl18.published import DEVICES, MATH_LIBRARIES, THREADS, Score
from isorun.zoo.studies.tacl18.ranking import Effectiveness, Judgements, effectiveness, judgements
from isorun.zoo.studies.tacl18.seeds import (
    Change,
    Rounding,
    SeedRuns,
    changes,
    published_roundings,
    seed_agreements,
    seed_digits,
    seed_effects,
    seed_roundings,
    seed_runs,
)
from isorun.zoo.studies.tacl18.tables import Baseline, Version, baselines, version_rows
from isorun.zoo.studies.tacl18.versions import FrameworkVersions, framework_versions

__all__ = ["Findings", "QuestionTest", "find", "question_note", "question_tests"]

QuestionTest = Mapping[str, float | None]
"""p by metric; None where no question differs."""


def question_tests(found: Sequence[Setting]) -> dict[Setting, QuestionTest]:
    """The p of AP and RR of each setting against the first one of its data set.

    Runs keep the score of every test pair, so this needs the labels only. Left out where the data are not at hand, or
    where a run left no scores.
    """
    tests: dict[Setting, QuestionTest] = {}
    for data in dict.fromkeys(setting.data for setting in found):
        judged = [(item, _effectiveness(item)) for item in found if item.data == data]
        scored = [(item, values) for item, values in judged if values is not None]
        for item, values in scored[1:] if judged and judged[0][1] is not None else ():
            tests[item] = _test(values, scored[0][1])
    return tests


def question_note(tests: Mapping[Setting, QuestionTest]) -> str:
    """One sentence on all of them, empty without any."""
    ps = [p for test in tests.values() for p in test.values() if p is not None]
    if not tests:
        return ""
    if not ps:
        return "No question has another AP or RR than in the first row."
    sure = sum(p < 0.05 for p in ps)
    told = f"{sure} of {len(ps)} tests have p < 0.05" if sure else f"the smallest p of {len(ps)} tests is {min(ps):.2g}"
    return f"Paired Wilcoxon tests over the questions, against the first row, not corrected for their number: {told}."


def _test(values: Effectiveness, first: Effectiveness) -> QuestionTest:
    return {
        "AP": wilcoxon_signed_rank(np.asarray(values.ap - first.ap)).p,
        "RR": wilcoxon_signed_rank(np.asarray(values.rr - first.rr)).p,
    }


def _effectiveness(setting: Setting) -> Effectiveness | None:
    """Of the first of the identical runs."""
    run = setting.runs[0]
    name = run.test_set.partition("-")[0]
    judged = _judgements(run.test_set, require(name)) if name and at_hand(name) else None
    scores = None if run.predictions is None else _unpacked(run.predictions)
    if judged is None or scores is None or scores.shape != judged.label.shape:
        return None
    return effectiveness(judged, scores)


@cache
def _judgements(test_set: str, folder: Path) -> Judgements | None:
    try:
        pairs = load_answers(test_set, "train", folder).test.pairs
    except IsorunError:
        return None
    return judgements([pair.qid for pair in pairs], [pair.label for pair in pairs])


def _unpacked(packed: Predictions) -> Any | None:
    """The scores; None for anything but one float a pair. Never more bytes than the shape tells."""
    if packed.kind != "score" or packed.dtype != "float32" or len(packed.shape) != 1:
        return None
    try:
        raw = packed.unpacked()
    except ValueError:
        return None
    return np.frombuffer(raw, dtype="<f4") if len(raw) == packed.size else None


_PUBLISHED: Final[Mapping[str, Mapping[Any, Mapping[str, Score]]]] = {
    "threads": THREADS,
    "cpu-paths": MATH_LIBRARIES,
    "devices": DEVICES,
}
_FACTORS: Final = {"threads": "threads", "cpu-paths": "CPU path", "devices": "device"}


@dataclass(frozen=True, slots=True)
class Findings:
    """begun: the parts that have any run. lost: runs without scores; finished: how many have them.

    settings and tests: by part, those with one seed.
    changes: for each data set of the seeds, the change of AP and RR from side to side; empty where there is one side.
    """

    begun: tuple[str, ...]
    made_data: bool
    finished: int
    lost: tuple[RunRecord, ...]
    baselines: tuple[Baseline, ...]
    versions: tuple[Version, ...]
    settings: Mapping[str, tuple[Setting, ...]]
    tests: Mapping[str, Mapping[Setting, QuestionTest]]
    seeds: tuple[SeedRuns, ...]
    agreements: Mapping[str, tuple[Agreement, ...]]
    changes: tuple[tuple[Change, ...], ...]
    effects: tuple[Effect, ...]
    roundings: tuple[Rounding, ...]
    digits: Mapping[tuple[str, str, str], SupportedDigits]
    masks: tuple[MaskEffect, ...] = ()
    frameworks: FrameworkVersions | None = None

    @property
    def sides(self) -> tuple[str, str | None]:
        """The sides of the seeds; the second is None where there is none."""
        pairs = [item.pair_of_sides for item in self.seeds]
        both = next((pair for pair in pairs if pair is not None), None)
        return both if both is not None else ("CPU", None)

    @property
    def seeds_everywhere(self) -> int:
        """How many seeds the data set and side with the fewest has."""
        return min((len(runs) for item in self.seeds for runs in item.sides.values()), default=0)

    @property
    def side_names(self) -> frozenset[str]:
        """All sides on which anything was run with the model."""
        named = {item.side for items in self.settings.values() for item in items}
        return frozenset(named | {side for item in self.seeds for side in item.sides})


def find(records: Mapping[str, Sequence[RunRecord]], request: Request) -> Findings:
    """What the records of all studies of a scale say, by study name."""
    scale = request.scale
    names = {part: study_names(part, scale) for part in PARTS}
    parts = {part: last_attempts(item for name in names[part] for item in records.get(name, ())) for part in PARTS}
    every = [record for found in parts.values() for record in found]
    lost = lost_runs(every)
    by_part = {part: settings(runs_of(parts[part])) for part in _PUBLISHED}
    seeds = seed_runs(runs_of(parts["seeds"]))
    return Findings(
        begun=tuple(part for part in PARTS if parts[part]),
        made_data=used_made_data(every),
        finished=len(every) - len(lost),
        lost=lost,
        baselines=baselines(parts["baseline"]),
        versions=version_rows(runs_of(parts["data"])),
        settings=by_part,
        tests={part: question_tests(items) for part, items in by_part.items()},
        seeds=seeds,
        agreements={item.data: seed_agreements(item) for item in seeds},
        changes=tuple(changes(item) for item in seeds),
        effects=(*_setting_effects(by_part), *seed_effects(seeds)),
        roundings=(*published_roundings(), *seed_roundings(seeds)),
        digits=seed_digits(seeds),
        masks=mask_effects(seed_runs(runs_of(parts["masks"]))),
        frameworks=framework_versions(request, records),
    )


def _setting_effects(found: Mapping[str, Sequence[Setting]]) -> Iterator[Effect]:
    for part, items in found.items():
        yield from setting_effects(_FACTORS[part], items, _PUBLISHED[part].values())
