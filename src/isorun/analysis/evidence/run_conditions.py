"""Were the runs of a group what they claim to be: independent at `default`, identical at the other levels?

Each rule looks at the finished runs of one group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from isorun.analysis.evidence.condition import Condition, some
from isorun.analysis.evidence.identical import (
    FINAL_WEIGHTS,
    INITIAL_WEIGHTS,
    DigestCount,
    IdenticalRuns,
    identical_runs,
)
from isorun.analysis.evidence.provenance import changed_facts, distinct, effective
from isorun.analysis.evidence.run_units import Merge, RunUnits, own_seeds
from isorun.analysis.studies.group_result import GroupKey
from isorun.study.levels import Level
from isorun.study.records import RunRecord

__all__ = ["CONDITION_RULES"]


def _hook_never_started(key: GroupKey, records: Sequence[RunRecord], _units: RunUnits) -> Iterator[Condition]:
    silent = [record for record in records if any(note.code == "no-worker" for note in record.notes)]
    if silent:
        consequence = (
            "nothing but environment variables was fixed"
            if key.level.fixes_seed
            else "whether each drew anew is not known, and an error rate holds only if it did"
        )
        yield Condition(
            "hook-never-started",
            f"in {len(silent)} of {some(len(records), 'run')} no Python process loaded isorun's worker: {consequence}",
            "start Python without -I, -E or -S, and do not clear PYTHONPATH; then run again",
            (key.label,),
        )


def _not_independent(key: GroupKey, records: Sequence[RunRecord], units: RunUnits) -> Iterator[Condition]:
    """Draws that were to be independent and are not; the code says which: whole runs, or seeds."""
    if not units.merges:
        return
    count, evidence = units.count, _why_merged(records, units)
    next_step = _independent_draws(records)
    if key.level is Level.DEFAULT:
        message = f"the default runs are not independent: {evidence}; {some(len(records), 'run')} count as {count}"
        yield Condition("default-not-independent", message, next_step, (key.label,))
    else:
        message = f"{some(units.planned, 'seed')} did not make {units.planned} different draws: {evidence}; "
        yield Condition("seed-without-effect", f"{message}they count as {count}", next_step, (key.label,))


def _why_merged(records: Sequence[RunRecord], units: RunUnits) -> str:
    largest = max(Counter(units.unit.values()).values())
    told = f"{largest} of {some(len(records), 'run')} {units.merges[0]}"
    return f"{told} ({_told(records)})" if units.merges[0] is Merge.OWN_SEED else told


def _told(records: Sequence[RunRecord]) -> str:
    first = next(seeded for record in records for seeded in (*own_seeds(record), *record.seeded))
    return f"{first.call}({first.value})" + (f" at {first.where}" if first.where else "")


def _independent_draws(records: Sequence[RunRecord]) -> str:
    """How to get draws that are: by the training's own option where it has one, else by taking its seeds over."""
    if not any(record.seeded for record in records):
        return "let the training draw anew in every run (or read its seed from ISORUN_SEED), then run again"
    options = {str(effective(record).get("seed_option") or "") for record in records} - {""}
    taken = (
        "the same command with --take-seeds (take_seeds = true in a study file), which gives every run its own seeds"
    )
    if options:
        return f"{min(options)} {{seed}} behind the training's command; or {taken}"
    return taken


def _seed_fixed_in_part(key: GroupKey, records: Sequence[RunRecord], units: RunUnits) -> Iterator[Condition]:
    """A constant in the training that did not make runs alike: a data split, perhaps, or an order of batches."""
    seeded = [record for record in records if any(not one.replaced for one in record.seeded)]
    if seeded and not units.merges and key.level is Level.DEFAULT:
        yield Condition(
            "default-not-independent",
            f"the default runs share a part of their randomness: {len(seeded)} of {some(len(records), 'run')} fixed a "
            f"seed themselves ({_told(seeded)}), so their spread may be too small",
            _independent_draws(records),
            (key.label,),
        )


def _same_start(key: GroupKey, records: Sequence[RunRecord], units: RunUnits) -> Iterator[Condition]:
    """Equal initial weights where draws were to differ: pretrained weights are, and so is a seed that was not seen."""
    started = {units.unit[record.run_id]: record.digests.get(INITIAL_WEIGHTS) for record in records}
    known = [digest for digest in started.values() if digest]
    if units.merges or len(known) < 2 or len(set(known)) == len(known):
        return
    largest = max(Counter(known).values())
    default = key.level is Level.DEFAULT
    what = f"{largest} of {some(len(known), 'run')}" if default else f"{largest} of {some(len(known), 'seed')}"
    yield Condition(
        "default-not-independent" if default else "seed-without-effect",
        f"{what} started from the same weights: unless these are pretrained, the training sets a seed of its own",
        "read the seed from {seed} or ISORUN_SEED in the training, or isorun run --take-seeds; then run again",
        (key.label,),
    )


def _deterministic_differs(key: GroupKey, records: Sequence[RunRecord], _units: RunUnits) -> Iterator[Condition]:
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


def _no_identical_runs(key: GroupKey, records: Sequence[RunRecord], _units: RunUnits) -> Iterator[Condition]:
    seeds = {record.cell.seed for record in records}
    if key.level.fixes_seed and 1 < len(records) == len(seeds):
        yield Condition(
            "no-identical-runs",
            f"each of {some(len(seeds), 'seed')} ran once, so the spread is that of seeds, not of identical runs",
            "set repeats to 8 or more in the study and run again: finished runs are kept",
            (key.label,),
        )


def _threads_differ(key: GroupKey, records: Sequence[RunRecord], _units: RunUnits) -> Iterator[Condition]:
    changed = changed_facts(records, lambda name: "threads" in name or name == "affinity")
    if changed:
        yield Condition(
            "threads-differ",
            f"the runs did not use the same number of threads or CPUs ({changed}): that alone changes results",
            "set threads in the study's environment, and run again in a new store",
            (key.label,),
        )


def _machine_differs(key: GroupKey, records: Sequence[RunRecord], _units: RunUnits) -> Iterator[Condition]:
    changed = changed_facts(records, lambda name: name in {"model", "vector", "cpu_capability", "devices", "version"})
    if changed:
        yield Condition(
            "machine-differs",
            f"the runs did not have the same processor, device or library version ({changed})",
            "make one environment for each in the study, so that their runs are not mixed",
            (key.label,),
        )


def _code_differs(key: GroupKey, records: Sequence[RunRecord], _units: RunUnits) -> Iterator[Condition]:
    found = distinct(dict(record.code) for record in records if record.code)
    if len(found) > 1:
        yield Condition(
            "code-differs",
            f"the runs come from {len(found)} versions of the code ({_changed_keys(records)} differ)",
            "run the study again in a new store, or report the versions apart",
            (key.label,),
        )


def _changed_keys(records: Sequence[RunRecord]) -> str:
    keys = dict.fromkeys(name for record in records for name in record.code)
    return ", ".join(name for name in keys if len(distinct(record.code.get(name) for record in records)) > 1)


def _launch_mixed(key: GroupKey, records: Sequence[RunRecord], _units: RunUnits) -> Iterator[Condition]:
    modes = sorted({record.launch for record in records})
    if len(modes) > 1:
        yield Condition(
            "launch-mixed",
            f"the runs were launched in different ways ({', '.join(modes)})",
            "use one launch mode for the whole study",
            (key.label,),
        )


CONDITION_RULES: Final[Sequence[Callable[[GroupKey, Sequence[RunRecord], RunUnits], Iterator[Condition]]]] = (
    _hook_never_started,
    _not_independent,
    _seed_fixed_in_part,
    _same_start,
    _deterministic_differs,
    _no_identical_runs,
    _threads_differ,
    _machine_differs,
    _code_differs,
    _launch_mixed,
)
