"""Were the runs of a group what they claim to be: independent at `default`, identical at the other levels?

Each rule looks at the finished runs of one group.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from isorun.analysis.evidence.condition import Condition, some
from isorun.analysis.studies.group_result import GroupKey
from isorun.analysis.studies.identical import FINAL_WEIGHTS, INITIAL_WEIGHTS, DigestCount, IdenticalRuns, identical_runs
from isorun.study.levels import Level
from isorun.study.records import RunRecord

__all__ = ["CONDITION_RULES"]


def _hook_never_started(key: GroupKey, records: Sequence[RunRecord]) -> Iterator[Condition]:
    silent = [record for record in records if any(note.code == "no-worker" for note in record.notes)]
    if silent:
        consequence = (
            "nothing but environment variables was fixed" if key.level.fixes_seed else "little is known of them"
        )
        yield Condition(
            "hook-never-started",
            f"in {len(silent)} of {some(len(records), 'run')} no Python process loaded isorun's worker: {consequence}",
            "start Python without -I, -E or -S, and do not clear PYTHONPATH; then run again",
            (key.label,),
        )


def _default_not_independent(key: GroupKey, records: Sequence[RunRecord]) -> Iterator[Condition]:
    evidence = _seed_fixed_by_script(records) or _equal_weights(records) if key.level is Level.DEFAULT else ""
    if evidence:
        yield Condition(
            "default-not-independent",
            f"the default runs are not independent: {evidence}, so their spread is too small",
            "take the fixed seed out of the training (or read it from ISORUN_SEED), then run again",
            (key.label,),
        )


def _seed_fixed_by_script(records: Sequence[RunRecord]) -> str:
    seeded = [record.seeded[0] for record in records if record.seeded]
    if not seeded:
        return ""
    first = seeded[0]
    where = f"{first.call}({first.value})" + (f" at {first.where}" if first.where else "")
    return f"{len(seeded)} of {some(len(records), 'run')} fixed a seed themselves ({where})"


def _equal_weights(records: Sequence[RunRecord]) -> str:
    together = identical_runs(records)[0]
    for name, words in ((INITIAL_WEIGHTS, "started from"), (FINAL_WEIGHTS, "ended with")):
        count = together.digest(name)
        if count is not None and count.distinct < count.runs:
            return f"{count.largest_set} of {some(count.runs, 'run')} {words} the same weights"
    return ""


def _seed_without_effect(key: GroupKey, records: Sequence[RunRecord]) -> Iterator[Condition]:
    by_seed = {record.cell.seed: record.digests.get(INITIAL_WEIGHTS) for record in records}
    if key.level.fixes_seed and len(by_seed) > 1 and len(set(by_seed.values())) == 1 and None not in by_seed.values():
        yield Condition(
            "seed-without-effect",
            f"{len(by_seed)} different seeds all gave the same initial weights: the training sets a seed of its own",
            "read the seed from {seed} or ISORUN_SEED in the training, then run again",
            (key.label,),
        )


def _deterministic_differs(key: GroupKey, records: Sequence[RunRecord]) -> Iterator[Condition]:
    if not key.level.fixes_kernels:
        return
    for same in identical_runs(records):
        differing = _first_differing(same)
        if differing is not None:
            yield Condition(
                "deterministic-differs",
                f"identical runs with seed {same.seed} gave {differing.distinct} different {_spoken(differing.name)} "
                f"in {some(differing.runs, 'run')} although every known factor is fixed",
                "look for threads, data workers, time or files that the training reads; notes of the runs name more",
                (key.label,),
            )


def _first_differing(same: IdenticalRuns) -> DigestCount | None:
    return next((count for count in same.digests if count.distinct > 1), None)


def _spoken(digest: str) -> str:
    return {INITIAL_WEIGHTS: "initial weights", FINAL_WEIGHTS: "final weights"}.get(digest, f"digests of {digest}")


def _no_identical_runs(key: GroupKey, records: Sequence[RunRecord]) -> Iterator[Condition]:
    seeds = {record.cell.seed for record in records}
    if key.level.fixes_seed and 1 < len(records) == len(seeds):
        yield Condition(
            "no-identical-runs",
            f"each of {some(len(seeds), 'seed')} ran once, so the spread is that of seeds, not of identical runs",
            "set repeats to 8 or more in the study and run again: finished runs are kept",
            (key.label,),
        )


def _threads_differ(key: GroupKey, records: Sequence[RunRecord]) -> Iterator[Condition]:
    changed = _changed(records, lambda name: "threads" in name or name == "affinity")
    if changed:
        yield Condition(
            "threads-differ",
            f"the runs did not use the same number of threads or CPUs ({changed}): that alone changes results",
            "set threads in the study's environment, and run again in a new store",
            (key.label,),
        )


def _machine_differs(key: GroupKey, records: Sequence[RunRecord]) -> Iterator[Condition]:
    changed = _changed(records, lambda name: name in {"model", "vector", "cpu_capability", "devices", "version"})
    if changed:
        yield Condition(
            "machine-differs",
            f"the runs did not have the same processor, device or library version ({changed})",
            "make one environment for each in the study, so that their runs are not mixed",
            (key.label,),
        )


def _changed(records: Sequence[RunRecord], wanted: Callable[[str], bool]) -> str:
    """Which of the wanted effective facts differ between the runs, with up to three of their values."""
    facts = [_facts(record, wanted) for record in records if _effective(record)]
    names = dict.fromkeys(name for fact in facts for name in fact)
    found = {name: _distinct(fact.get(name) for fact in facts) for name in names}
    return "; ".join(f"{name} {' / '.join(values[:3])}" for name, values in found.items() if len(values) > 1)


def _facts(record: RunRecord, wanted: Callable[[str], bool]) -> dict[str, Any]:
    parts = ((part, facts) for part, facts in _effective(record).items() if isinstance(facts, Mapping))
    return {f"{part}.{name}": value for part, facts in parts for name, value in facts.items() if wanted(name)}


def _code_differs(key: GroupKey, records: Sequence[RunRecord]) -> Iterator[Condition]:
    found = _distinct(dict(record.code) for record in records if record.code)
    if len(found) > 1:
        yield Condition(
            "code-differs",
            f"the runs come from {len(found)} versions of the code ({_changed_keys(records)} differ)",
            "run the study again in a new store, or report the versions apart",
            (key.label,),
        )


def _changed_keys(records: Sequence[RunRecord]) -> str:
    keys = dict.fromkeys(name for record in records for name in record.code)
    return ", ".join(name for name in keys if len(_distinct(record.code.get(name) for record in records)) > 1)


def _launch_mixed(key: GroupKey, records: Sequence[RunRecord]) -> Iterator[Condition]:
    modes = sorted({record.launch for record in records})
    if len(modes) > 1:
        yield Condition(
            "launch-mixed",
            f"the runs were launched in different ways ({', '.join(modes)})",
            "use one launch mode for the whole study",
            (key.label,),
        )


def _effective(record: RunRecord) -> Mapping[str, Any]:
    effective = record.environment.get("effective")
    return effective if isinstance(effective, Mapping) else {}


def _distinct(values: Iterable[Any]) -> list[str]:
    """The different values as JSON, in the order they were met."""
    return list(dict.fromkeys(json.dumps(value, sort_keys=True, default=str) for value in values))


CONDITION_RULES: Final[Sequence[Callable[[GroupKey, Sequence[RunRecord]], Iterator[Condition]]]] = (
    _hook_never_started,
    _default_not_independent,
    _seed_without_effect,
    _deterministic_differs,
    _no_identical_runs,
    _threads_differ,
    _machine_differs,
    _code_differs,
    _launch_mixed,
)
