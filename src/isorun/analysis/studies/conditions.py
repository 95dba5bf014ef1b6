"""Conditions of a study: what a reader has to know before trusting its numbers.

Each check is one function that yields conditions. Those of GROUP_CHECKS look at the finished runs of one group: are
they what they claim to be, independent at `default` and identical at the other levels? Those of STUDY_CHECKS look at
the whole study. That is the order they are shown in. Codes are stable, so that scripts can rely on them.
"""

from __future__ import annotations

import json
import math
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from isorun.analysis.evidence import Condition, first_of, some
from isorun.analysis.evidence.judged import (
    JudgedMetric,
    MetricKind,
    direction_conditions,
    how_to_declare,
    is_bookkeeping,
    kind_of,
)
from isorun.analysis.evidence.provenance import SOURCES, changed_facts, distinct, effective, files_of
from isorun.analysis.evidence.run_units import (
    FINAL_WEIGHTS,
    INITIAL_WEIGHTS,
    DigestCount,
    IdenticalRuns,
    Merge,
    RunUnits,
    identical_runs,
    own_seeds,
    run_units,
)
from isorun.analysis.evidence.shared_files import shared_file_conditions
from isorun.analysis.studies.group_result import GroupKey, GroupResult, JudgedRun, SelectionResult
from isorun.analysis.studies.selection import FINAL, selections_of
from isorun.analysis.studies.study_metrics import judged_metrics, logged_metrics
from isorun.errors import known_names
from isorun.sources.freeform import plain
from isorun.study.cells import Level
from isorun.study.design import Study
from isorun.study.records import RunRecord

__all__ = [
    "FEWEST_RUNS",
    "GROUP_CHECKS",
    "NO_STREAMS",
    "StudyFacts",
    "independent_draws",
    "study_conditions",
    "told_at_once",
    "why_merged",
]

_OPEN_ENDS_TOLD: Final = 3
_ANSWERS_TOLD: Final = 3
_PACKAGES_TOLD: Final = 5
_GENERATOR, _SETTING = "generator-seeded", "setting-answered"
_OFFERED, _RELIED = "files.offered", "files.relied"
_NOT_READ: Final = (".left-out", ".unread", ".not-taken", ".no-metrics", ".bad-line", ".no-header", "source-failed")
_NOT_READ_TOLD: Final = 2
_SOME_NOT_READ: Final = frozenset(
    ["stdout.values-left-out", "stdout.replaced", "stdout.after-end", "files.not-a-number"]
)
_VALUES: Final = "values of "
_PLACES_TOLD: Final = 3
_WORKING_COPY: Final = "."
"""As a study names it among versions of the code."""
_EXAMPLE_BEFORE, _EXAMPLE_LENGTH = 40, 100


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
        )


def _not_independent(key: GroupKey, records: Sequence[RunRecord], units: RunUnits) -> Iterator[Condition]:
    """Draws that were to be independent and are not; the code says which: whole runs, or seeds."""
    if not units.merges or _streams_asked(records) == ["none"]:
        return
    count, evidence = units.count, why_merged(records, units)
    next_step = independent_draws(records)
    if key.level is Level.DEFAULT:
        message = f"the default runs are not independent: {evidence}; {some(len(records), 'run')} count as {count}"
        yield Condition("default-not-independent", message, next_step)
    else:
        message = f"{some(units.planned, 'seed')} did not make {units.planned} different draws: {evidence}; "
        yield Condition("seed-without-effect", f"{message}they count as {count}", next_step)


def _streams_asked(records: Sequence[RunRecord]) -> list[str]:
    """The random streams that were asked to follow the seed, as it was said; none where nothing was asked."""
    asked = str((records[0].cell.environment_content if records else {}).get("switches", {}).get("streams", ""))
    if not asked:
        return []
    from isorun.worker.frameworks.switches import StreamRequest  # most environments ask for nothing

    return StreamRequest.of(asked).words.split("+")


def why_merged(records: Sequence[RunRecord], units: RunUnits) -> str:
    """How many of the runs are one draw, and by what that is known."""
    largest = max(Counter(units.unit.values()).values())
    told = f"{largest} of {some(len(records), 'run')} {units.merges[0]}"
    return f"{told} ({_told(records)})" if units.merges[0] is Merge.OWN_SEED else told


def _told(records: Sequence[RunRecord]) -> str:
    first = next(seeded for record in records for seeded in (*own_seeds(record), *record.seeded))
    return f"{first.call}({first.value})" + (f" at {first.where}" if first.where else "")


def independent_draws(records: Sequence[RunRecord]) -> str:
    """How to get draws that are: by the training's own option where it has one, else by taking its seeds over.

    Where random streams are told apart, `{seed}` is the kept one and constants are taken over already.
    """
    if _streams_asked(records):
        return (
            "look at where the training draws (isorun report; streams-unclassified names lines): what belongs to no "
            'stream that was asked for follows no seed, and streams = "all" is everything that is seen'
        )
    if not any(record.seeded for record in records):
        return "let the training draw anew in every run (or read its seed from ISORUN_SEED), then run again"
    options = {str(effective(record).get("seed_option") or "") for record in records} - {""}
    taken = (
        "isorun run again with --take-seeds (take_seeds = true in a study file), which gives every run its own seeds"
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
            independent_draws(records),
        )


def _same_start(key: GroupKey, records: Sequence[RunRecord], units: RunUnits) -> Iterator[Condition]:
    """Equal initial weights where draws were to differ: pretrained weights are, and so is a seed that was not seen."""
    started = {units.unit[record.run_id]: record.digests.get(INITIAL_WEIGHTS) for record in records}
    known = [digest for digest in started.values() if digest]
    asked = _streams_asked(records)
    if asked and not set(asked) & {"all", "weights"}:
        return  # kept on purpose
    if units.merges or len(known) < 2 or len(set(known)) == len(known):
        return
    largest = max(Counter(known).values())
    default = key.level is Level.DEFAULT
    what = f"{largest} of {some(len(known), 'run')}" if default else f"{largest} of {some(len(known), 'seed')}"
    yield Condition(
        "default-not-independent" if default else "seed-without-effect",
        f"{what} started from the same weights: unless these are pretrained, the training sets a seed of its own",
        independent_draws(records)
        if asked
        else "read the seed from {seed} or ISORUN_SEED in the training, or isorun run --take-seeds; then run again",
        (key.label,),
    )


def _deterministic_differs(key: GroupKey, records: Sequence[RunRecord], _units: RunUnits) -> Iterator[Condition]:
    if not key.level.fixes_kernels:
        return
    watched = [record for record in records if not any(note.code == "no-worker" for note in record.notes)]
    for same in identical_runs(watched):  # where no worker was, nothing was fixed, and that is said
        runs = [record for record in watched if record.cell.seed == same.seed]
        differing = _first_differing(same) or _differing_values(runs)
        if differing is not None:
            yield Condition(
                "deterministic-differs",
                f"identical runs with seed {same.seed} gave {differing.distinct} different {_spoken(differing.name)} "
                f"in {some(differing.runs, 'run')}{_seen_open(runs)}",
                "look for threads, data workers, time, files that the training reads (/dev/urandom among them) and "
                "programs that it starts, which isorun does not see; notes of the runs name more",
            )


def _seen_open(records: Sequence[RunRecord]) -> str:
    """What the workers saw that the level does not hold."""
    seen = dict.fromkeys(str(item) for record in records for item in effective(record).get("open") or ())
    seen |= dict.fromkeys(_changing_seeds(records))
    if not seen:
        return " although every factor that isorun can see is fixed"
    return f"; seen open: {first_of(seen, _OPEN_ENDS_TOLD)}"


def _changing_seeds(records: Sequence[RunRecord]) -> Iterator[str]:
    """Calls that fixed a seed, but not the same in runs that were to be identical: the time, or a process number."""
    values: dict[tuple[str, str], set[tuple[str, ...]]] = {}
    for record in records:
        of_run: dict[tuple[str, str], tuple[str, ...]] = {}
        for seeded in record.seeded:
            if not seeded.replaced:
                place = (seeded.call, seeded.where)
                of_run[place] = (*of_run.get(place, ()), seeded.value)
        for place, given in of_run.items():
            values.setdefault(place, set()).add(given)
    for (call, where), given_in_runs in values.items():
        if len(given_in_runs) > 1:
            yield f"{call}{f' at {where}' if where else ''} was given different seeds"


def _first_differing(same: IdenticalRuns) -> DigestCount | None:
    return next((count for count in same.digests if count.distinct > 1), None)


def _differing_values(records: Sequence[RunRecord]) -> DigestCount | None:
    """The first metric whose last values differ: trainings without a digest of their weights have nothing else."""
    names = sorted({name for record in records for name in (*record.results, *record.series)})
    judging = [name for name in names if kind_of(name) is not MetricKind.OTHER]
    for name in judging or [name for name in names if not is_bookkeeping(name)]:
        values = [value for record in records if (value := _last_value(record, name)) is not None]
        sets = Counter(map(repr, values))
        if len(sets) > 1:
            return DigestCount(f"{_VALUES}{name}", len(values), len(sets), max(sets.values()))
    return None


def _last_value(record: RunRecord, name: str) -> float | None:
    if name in record.results:
        return record.results[name]
    return record.series[name].values[-1] if name in record.series and len(record.series[name].values) else None


def _spoken(digest: str) -> str:
    if digest.startswith(_VALUES):
        return digest
    return {INITIAL_WEIGHTS: "initial weights", FINAL_WEIGHTS: "final weights"}.get(digest, f"digests of {digest}")


def _no_identical_runs(key: GroupKey, records: Sequence[RunRecord], _units: RunUnits) -> Iterator[Condition]:
    seeds = {record.cell.seed for record in records}
    if key.level.fixes_seed and 1 < len(records) == len(seeds):
        yield Condition(
            "no-identical-runs",
            f"each of {some(len(seeds), 'seed')} ran once, so the spread is that of seeds, not of identical runs",
            "set repeats to 8 or more in the study and run again: finished runs are kept",
        )


def _threads_differ(_key: GroupKey, records: Sequence[RunRecord], _units: RunUnits) -> Iterator[Condition]:
    changed = changed_facts(records, lambda name: "threads" in name or name == "affinity")
    if changed:
        yield Condition(
            "threads-differ",
            f"the runs did not use the same number of threads or CPUs ({changed}): that alone changes results",
            "set threads in the study's environment, and run again in a new store",
        )


NO_STREAMS: Final = Condition(
    "factor-without-effect",
    "random streams were asked for, and nothing that the training draws with can be parted",
    "leave the factor out: docs/factors.md says whose generators can be parted",
)
"""Of no value of the factor in particular."""


def _factor_without_effect(_key: GroupKey, records: Sequence[RunRecord], _units: RunUnits) -> Iterator[Condition]:
    """Requests that libraries clamped or ignored: a value that is not what the training had is no value of a factor."""
    content = records[0].cell.environment_content if records else {}
    if not (content.get("switches") or content.get("threads") or content.get("env")):
        return
    from isorun.worker.frameworks import switches  # most environments ask for nothing

    asked, told = switches.asked_of(content), dict[str, None]()
    for record in records:
        if any(note.code == "no-worker" for note in record.notes):
            continue  # nobody was there to ask, and that is said
        found = effective(record)
        for name, others in switches.without_effect(asked, found.get("switches") or {}).items():
            if name == "streams" and not others:
                yield NO_STREAMS  # of every value, so told once
                continue
            has = ", ".join(f"{who} has {value}" for who, value in others.items())
            why = f"did not come about: {has}" if has else "nothing that the training loaded answers to it"
            told[f"{name} = {asked[name]} was asked for, and {why}"] = None
        model = str(found.get("cpu", {}).get("model", ""))
        for name, maker in switches.ONLY_ON.items():
            if name in content.get("env", {}) and model and maker not in model:
                told[f"{name} was set, which works on processors of {maker} alone, and this is {model}"] = None
    next_step = "leave that value out, or choose one that the libraries and the machine here have"
    yield from (Condition("factor-without-effect", message, next_step) for message in told)


def _streams_unclassified(_key: GroupKey, records: Sequence[RunRecord], _units: RunUnits) -> Iterator[Condition]:
    """Draws that could be told to no random stream: the run where they were most is told, with their lines."""
    if not _streams_asked(records):
        return
    told = [found for record in records if (found := effective(record).get("streams"))]
    most = max(told, key=lambda found: found["draws"]["other"], default=None)
    if most is not None and most["draws"]["other"]:
        every = sum(most["draws"].values())
        lines = [f"{one['draws']:,} by {one['where']}" for one in most["unclassified"]]
        places = first_of(lines, 2 * _PLACES_TOLD, ", ")  # those of the most draws, and the first
        kept = "follow the seed like all others" if "other" in most["follow"] else "keep the baseline's seed"
        yield Condition(
            "streams-unclassified",
            f"{most['draws']['other']:,} of {every:,} draws of a run could be told to no random stream, and {kept}: "
            f"{places}",
            "make the draw in a function whose name says what it is for (augment, init_weights, get_batch), or vary "
            'them by themselves: streams = "other"',
        )
    unseen = sorted({name for found in told for name in found["out_of_sight"]})
    if unseen:
        yield Condition(
            "streams-out-of-sight",
            f"numbers were drawn where no draw is seen, such as in compiled code or by a function that a library keeps "
            f"for itself, and follow no seed of the run's: {', '.join(unseen)}",
            "run without compiled code and captured graphs, and give libraries a random_state",
        )


def _machine_differs(_key: GroupKey, records: Sequence[RunRecord], _units: RunUnits) -> Iterator[Condition]:
    changed = changed_facts(records, lambda name: name in {"model", "vector", "cpu_capability", "devices", "version"})
    if changed:
        yield Condition(
            "machine-differs",
            f"the runs did not have the same processor, device or library version ({changed})",
            "make one environment for each in the study, so that their runs are not mixed",
        )


def _packages_differ(_key: GroupKey, records: Sequence[RunRecord], _units: RunUnits) -> Iterator[Condition]:
    """Packages that the trainings imported: the same command finds others when another environment is active."""
    found = distinct(record.environment.get("effective", {}).get("packages", {}) for record in records)
    seen: dict[str, dict[str, None]] = {}
    for packages in map(json.loads, found):
        for name, version in packages.items():
            seen.setdefault(name, {})[str(version)] = None
    changed = [f"{name} {' and '.join(versions)}" for name, versions in sorted(seen.items()) if len(versions) > 1]
    if changed:
        yield Condition(
            "packages-differ",
            f"the runs did not import the same versions of packages ({first_of(changed, _PACKAGES_TOLD, ', ')})",
            "name the interpreter of each in the study (python, or --python), so that their runs are not mixed",
        )


def _input_differs(_key: GroupKey, records: Sequence[RunRecord], _units: RunUnits) -> Iterator[Condition]:
    read = [record.environment.get("requested", {}).get("stdin") for record in records]
    found = distinct(identity["sha256"] if identity else None for identity in read)
    if len(found) > 1:
        yield Condition(
            "input-differs",
            f"the runs read {len(found)} different standard inputs, no input being one of them where some read none",
            "run each input in a --store of its own: the input is not part of what tells cells apart",
        )


def _code_differs(_key: GroupKey, records: Sequence[RunRecord], _units: RunUnits) -> Iterator[Condition]:
    versions = [_version(record) for record in records if record.code]
    found = distinct(versions)
    edited = _edited_files(records)
    if len(found) > 1:
        keys = dict.fromkeys(name for version in versions for name in version)
        differ = [name for name in keys if len(distinct(version.get(name) for version in versions)) > 1]
        told = first_of(edited, _PACKAGES_TOLD, ", ") or ", ".join(differ)
        message = f"the runs come from {len(found)} versions of the code ({told} differ)"
    elif edited:
        message = f"the runs were given different versions of {first_of(edited, _PACKAGES_TOLD, ', ')}"
    else:
        return
    yield Condition("code-differs", message, "run the study again in a new store, or report the versions apart")


def _working_copy_changed(_key: GroupKey, records: Sequence[RunRecord], _units: RunUnits) -> Iterator[Condition]:
    """The working copy as a version is what it was when the study was read: the cell says so."""
    declared = [(record.code, record.environment.get("requested", {}).get("code") or {}) for record in records]
    copies = [(found, named) for found, named in declared if found and named.get("ref") == _WORKING_COPY]
    others = [found for found, named in copies if _differing(found, "diff_sha256") != _differing(named, "diff")]
    if others:
        yield Condition(
            "working-copy-changed",
            f"{len(others)} of {some(len(copies), 'run')} found the working copy changed since the study was read: "
            f"they had another version than the one that they stand under",
            "leave the repository as it is while runs go on (a training may write outside of it, or to what it "
            "ignores), or commit and name the commit: code = REF",
        )


def _differing(code: Mapping[str, Any], name: str) -> tuple[Any, str]:
    return code.get("commit"), str(code.get(name) or "")


def _edited_while_running(_key: GroupKey, records: Sequence[RunRecord], _units: RunUnits) -> Iterator[Condition]:
    noted = _noted(records, "edited-while-running")
    if noted:
        yield Condition(
            "edited-while-running",
            f"in {len(noted)} of {some(len(records), 'run')} {noted[0]}",
            "leave the files alone while runs go on: code = REF gives runs a checkout of their own",
        )


def _version(record: RunRecord) -> dict[str, Any]:
    """Of which code a run is; where it told its own files, the repository around them may hold anything."""
    own = {name: value for name, value in record.code.items() if name in SOURCES}
    return own if effective(record).get("sources") and own else dict(record.code)


def _edited_files(records: Sequence[RunRecord]) -> list[str]:
    seen: dict[str, set[str]] = {}
    for record in records:
        for path, digest in files_of(record):
            seen.setdefault(path, set()).add(digest)
    return sorted(path for path, digests in seen.items() if len(digests) > 1)


def _noted(records: Sequence[RunRecord], code: str) -> list[str]:
    """What the runs with such a note say in it, one message a run."""
    first = (next((note for note in record.notes if note.code == code), None) for record in records)
    return [note.message for note in first if note is not None]


def _ended_early(_key: GroupKey, records: Sequence[RunRecord], _units: RunUnits) -> Iterator[Condition]:
    noted = _noted(records, "ended-early")
    if noted:
        yield Condition(
            "ended-early",
            f"{len(noted)} of {some(len(records), 'run')} did not come to their own end ({noted[0]})",
            "what they left is that of a shorter training; runs without `steps` are whole ones",
        )


def _launch_mixed(_key: GroupKey, records: Sequence[RunRecord], _units: RunUnits) -> Iterator[Condition]:
    modes = sorted({record.launch for record in records})
    if len(modes) > 1:
        yield Condition(
            "launch-mixed",
            f"the runs were launched in different ways ({', '.join(modes)})",
            "use one launch mode for the whole study",
        )


def _bad_return(_key: GroupKey, records: Sequence[RunRecord], _units: RunUnits) -> Iterator[Condition]:
    noted = _noted(records, "bad-return")
    if noted:
        yield Condition(
            "bad-return",
            f"what {len(noted)} of {some(len(records), 'run')} returned was not taken ({noted[0]})",
            "return the metrics by name, such as {'test_acc': 0.98}; then run again in a new --store",
        )


def _files_differ(_key: GroupKey, records: Sequence[RunRecord], _units: RunUnits) -> Iterator[Condition]:
    noted = _noted(records, "files.differs")
    if noted:
        yield Condition(
            "files-differ",
            f"in {len(noted)} of {some(len(records), 'run')} a file has other values than what was printed or "
            f"logged, which counts: {noted[0]}",
            "find out which is meant: isorun scan -- COMMAND shows both; --file PATH takes the file's",
        )


def _several_trainings(_key: GroupKey, records: Sequence[RunRecord], _units: RunUnits) -> Iterator[Condition]:
    noted = _noted(records, "several-trainings")
    if noted:
        yield Condition(
            "several-trainings",
            f"in {len(noted)} of {some(len(records), 'run')} there was more than one training: {noted[0]}",
            "make each a run of its own: without -m, or as configs of a study; or judge one of them: --metric NAME@JOB",
        )


def _lock_of_the_study(_key: GroupKey, records: Sequence[RunRecord], _units: RunUnits) -> Iterator[Condition]:
    """Versions of the code are compared with the same packages: one that was written for others may be misjudged."""
    noted = _noted(records, "lock-of-the-study")
    if noted:
        lock = records[0].cell.environment_content.get("settings", {}).get("lock", "LOCK")
        yield Condition(
            "lock-of-the-study",
            f"{noted[0]}: all versions of the code ran with the packages of the study's {lock}",
            "nothing, where the code alone is meant; to run each with its own packages: "
            f"git show REF:./{lock} > FILE, and in the study an environment for each REF with code = REF, lock = FILE",
        )


def _shared_device(_key: GroupKey, records: Sequence[RunRecord], _units: RunUnits) -> Iterator[Condition]:
    noted = _noted(records, "shared-device")
    if noted:
        yield Condition(
            "shared-device",
            f"{len(noted)} of {some(len(records), 'run')} shared a device ({noted[0]}): their times do not "
            "compare, and what is chosen by speed or free memory may have changed values",
            "lower --jobs, or give more --devices",
        )


def _checkout_changed(_key: GroupKey, records: Sequence[RunRecord], _units: RunUnits) -> Iterator[Condition]:
    """What runs did to the checkout that they worked in: it is undone before the next one begins."""
    steps = {
        "checkout-changed": "let the training write to {run_dir}, and read what it changes from there",
        "checkout-written": "let the training write to {run_dir}, which is kept; what it downloads belongs into links",
    }
    for code, next_step in steps.items():
        noted = _noted(records, code)
        if noted:
            yield Condition(code, f"{noted[0]} ({len(noted)} of {some(len(records), 'run')})", next_step)


def _training_altered(key: GroupKey, records: Sequence[RunRecord], _units: RunUnits) -> Iterator[Condition]:
    """What a level answered in the training's place: that is its work, but a reader has to know of it."""
    answered = {record.run_id: list(_answers(record)) for record in records}
    told = list(dict.fromkeys(answer for answers in answered.values() for answer in answers))
    if told:
        runs = sum(bool(answers) for answers in answered.values())
        yield Condition(
            "training-altered",
            f"the level {key.level} answered for the training in {runs} of {some(len(records), 'run')}, as it is to: "
            f"{first_of(told, _ANSWERS_TOLD)}",
            "nothing, where that is meant; level default runs the training as it is written",
        )


def _answers(record: RunRecord) -> Iterator[str]:
    """The answers as notes tell them, with file and line, but without the seed that is each run's own."""
    for note in record.notes:
        if note.code == _GENERATOR:
            generator, given, _ = note.message.rpartition(" was given ")
            yield f"{generator}{given}the run's" if given else note.message
        elif note.code == _SETTING:
            yield note.message.replace("; the level answered with", ", and is")


GROUP_CHECKS: Final[Sequence[Callable[[GroupKey, Sequence[RunRecord], RunUnits], Iterator[Condition]]]] = (
    _hook_never_started,
    _not_independent,
    _seed_fixed_in_part,
    _same_start,
    _deterministic_differs,
    _no_identical_runs,
    _factor_without_effect,
    _streams_unclassified,
    _lock_of_the_study,
    _threads_differ,
    _machine_differs,
    _packages_differ,
    _input_differs,
    _code_differs,
    _working_copy_changed,
    _edited_while_running,
    _ended_early,
    _launch_mixed,
    _shared_device,
    _bad_return,
    _several_trainings,
    _files_differ,
    _checkout_changed,
    _training_altered,
)

AT_ONCE: Final = (
    _hook_never_started,
    _factor_without_effect,
    _streams_unclassified,
    _lock_of_the_study,
    _shared_device,
    _bad_return,
    _several_trainings,
    _files_differ,
    _checkout_changed,
    _edited_while_running,
)
"""Those of runs that were just made."""

FEWEST_RUNS: Final = 5
"""Below this many runs a standard deviation says next to nothing: its 90 % interval at n = 4 is 0.6 to 2.9 times sd."""


@dataclass(frozen=True, slots=True)
class StudyFacts:
    """What the checks look at. records: the finished runs by group."""

    groups: Sequence[GroupResult]
    records: Mapping[GroupKey, Sequence[RunRecord]]
    metrics: Sequence[JudgedMetric]
    logged: Sequence[str]


def study_conditions(evidence: StudyFacts) -> tuple[Condition, ...]:
    """All conditions, those on how the runs were made first; the same one of several groups is one."""
    units = {group.key: group.units for group in evidence.groups}
    in_groups = (
        replace(condition, groups=(key.label,))
        for check in GROUP_CHECKS
        for key, records in evidence.records.items()
        if records
        for condition in check(key, records, units[key])
    )
    return (*_merged(in_groups), *(condition for check in STUDY_CHECKS for condition in check(evidence)))


def _merged(warnings: Iterable[Condition]) -> Iterable[Condition]:
    merged: dict[tuple[str, str], Condition] = {}
    for warning in warnings:
        same = merged.get((warning.code, warning.message), replace(warning, groups=()))
        merged[warning.code, warning.message] = replace(same, groups=(*same.groups, *warning.groups))
    return merged.values()


def told_at_once(study: Study, records: Sequence[RunRecord]) -> tuple[Condition, ...]:
    """What runs that were just made say of themselves, for whoever started them and can still change it."""
    groups: dict[GroupKey, list[RunRecord]] = {}
    for record in records:
        groups.setdefault(GroupKey.of(record), []).append(record)
    noted = (
        replace(condition, groups=(key.label,))
        for check in AT_ONCE
        for key, made in groups.items()
        for condition in check(key, made, run_units(made))
    )
    metrics = judged_metrics(study.metrics, records)
    picking = {selection.metric for selection in selections_of(study.selections, records, metrics)}
    restarts = _restarts(records, {*picking, *(metric.name for metric in metrics)})
    shared = shared_file_conditions(records)
    return (*shared, *_merged(noted), *(_not_logged(metrics, logged_metrics(records)) if records else ()), *restarts)


def _runs_failed(evidence: StudyFacts) -> Iterator[Condition]:
    failed = [run for group in evidence.groups for run in group.failed if not run.finished_later]
    if failed:
        yield Condition(
            "runs-failed",
            f"{some(len(failed), 'run')} left no result ({failed[0].reason or failed[0].state}); "
            "the tables show only those that finished",
            "isorun run with the same study: only what is missing or failed is run",
        )


def _runs_missing(evidence: StudyFacts) -> Iterator[Condition]:
    missing = sum(max(group.planned - sum(group.states.values()), 0) for group in evidence.groups)
    if missing:
        planned = sum(group.planned for group in evidence.groups)
        yield Condition(
            "runs-missing",
            f"{some(missing, 'run')} of the {planned} in the study have not been made yet",
            "isorun run with the same study: only what is missing is run",
        )


def _files_shared(evidence: StudyFacts) -> Iterator[Condition]:
    yield from shared_file_conditions([record for records in evidence.records.values() for record in records])


def _launch_differs(evidence: StudyFacts) -> Iterator[Condition]:
    """Seconds count from the end of start-up. Where nobody knows when that was, fresh and warm runs do not compare."""
    unknown = {
        key: [record for record in records if record.startup_seconds is None]
        for key, records in evidence.records.items()
    }
    modes = {key: {record.launch for record in records} for key, records in unknown.items() if records}
    fresh = sorted({str(key.level) for key, used in modes.items() if used == {"fresh"}})
    warm = sorted({str(key.level) for key, used in modes.items() if used == {"warm"}})
    if fresh and warm:
        yield Condition(
            "launch-differs",
            f"runs at {', '.join(fresh)} were started fresh, those at {', '.join(warm)} warm: the seconds of fresh "
            "runs include importing frameworks, so compare times within a level only",
            "isorun run with a new --store, where times matter: start-up is then recorded apart",
        )


def _metric_not_logged(evidence: StudyFacts) -> Iterator[Condition]:
    finished = any(evidence.records.values())
    for condition in _not_logged(evidence.metrics if finished else (), evidence.logged):
        name = next((one.name for one in evidence.metrics if f"metric {one.name!r};" in condition.message), "")
        how = _how_to_read(evidence, name) if name else ""
        yield replace(condition, next_step=f"a file of the runs has it: {how}") if how else condition
    if finished and not evidence.metrics:
        yield Condition(
            "no-metric",
            f"no run logged a metric, so there is nothing to judge by{_what_was_not_read(evidence)}",
            _how_to_read(evidence)
            or "isorun.result(test_acc=...) in the training, or print lines such as 'test_acc: 0.98'",
        )


def _how_to_read(evidence: StudyFacts, metric: str = "") -> str:
    """The command that reads what lies in files of the runs; empty where nothing does, or nothing of this metric."""
    for record in (record for records in evidence.records.values() for record in records):
        for note in record.notes:
            option, would, values = note.message.partition(" would read ")
            if note.code == _OFFERED and would and (not metric or f", {metric} " in f", {values} "):
                return _read_by(option, record.cell.command)
    return ""


def _read_by(option: str, command: Sequence[str]) -> str:
    """How a file is named: before a command, and in a study file."""
    [_, pattern] = shlex.split(option)
    in_a_study = f"files = [{json.dumps(pattern, ensure_ascii=False)}] under [sources] in a study file"
    if command[:1] == ("function",):
        return in_a_study
    return f"isorun run {option} --store NEW -- {shlex.join(command)}, or {in_a_study}"


def _not_logged(metrics: Sequence[JudgedMetric], logged: Sequence[str]) -> Iterator[Condition]:
    for metric in metrics:
        if metric.name not in logged:
            yield Condition(
                "metric-not-logged",
                f"no run logged the metric {metric.name!r}; logged were: {known_names(metric.name, logged)}",
                f"name one that was logged (--metric, or [metrics.…] in the study file), or log it: "
                f"isorun.result({metric.name}=...)",
            )


def _what_was_not_read(evidence: StudyFacts) -> str:
    """What was seen and not taken, and why, in the words of the source that saw it."""
    notes = (note for records in evidence.records.values() for record in records for note in record.notes)
    seen = list(dict.fromkeys(note.message for note in notes if note.code.endswith(_NOT_READ)))
    return f"; {first_of(seen, _NOT_READ_TOLD)}" if seen else ""


def _from_files(evidence: StudyFacts) -> Iterator[Condition]:
    """Files that nobody named are relied on where a run printed and logged nothing; told with their values."""
    records = [record for group in evidence.records.values() for record in group]
    noted = [note.message for record in records for note in record.notes if note.code == _RELIED]
    told = list({message.partition(" reads ")[0]: message for message in noted}.values())
    if told:
        files = [f"{option.removeprefix('--file ')} ({values})" for option, _, values in map(_reads, told)]
        yield Condition(
            "metric-from-files",
            f"the runs printed and logged no metric; read from files that they wrote: {first_of(files, _PLACES_TOLD)}",
            f"check the values; to be sure, name the file: {told[0].partition(' reads ')[0]}, or log them",
        )


def _reads(message: str) -> tuple[str, str, str]:
    return message.partition(" reads ")


def _metric_chosen(evidence: StudyFacts) -> Iterator[Condition]:
    for metric in evidence.metrics:
        if not metric.declared:
            yield Condition(
                "metric-chosen",
                f"{metric.name} was chosen: {metric.chosen_because}",
                f"declare the one you mean: {how_to_declare(metric)}",
            )


def _directions(evidence: StudyFacts) -> Iterator[Condition]:
    for metric in evidence.metrics:
        yield from direction_conditions(metric)


def _few_runs(evidence: StudyFacts) -> Iterator[Condition]:
    few = [group for group in evidence.groups if group.finished < FEWEST_RUNS]
    if few:
        yield Condition(
            "few-runs",
            f"fewer than {FEWEST_RUNS} finished runs: the spread is hardly known",
            "raise repeats in the study (or -n) and run again: finished runs are kept",
            tuple(f"{group.key.label}: {group.finished}" for group in few),
        )


def _weak_runs(evidence: StudyFacts) -> Iterator[Condition]:
    weak = {
        group.key.label: len(group.selections[0].weak_runs)
        for group in evidence.groups
        if group.selections[0].weak_runs
    }
    if weak:
        yield Condition(
            "weak-runs",
            f"weak runs, which learned next to nothing: {sum(weak.values())}; they are part of every figure that does "
            "not say otherwise",
            "look at their output in the store: a training that sometimes fails is a result, too",
            tuple(weak),
        )


def _not_finite(evidence: StudyFacts) -> Iterator[Condition]:
    for metric in evidence.metrics:
        runs = {run.run_id for group in evidence.groups for run in _runs_with_gaps(group, metric.name)}
        if runs:
            named = ", ".join(sorted(runs)[:3]) + (", …" if len(runs) > 3 else "")
            yield Condition(
                "metric-not-finite",
                f"{metric.name} is NaN or infinite in {some(len(runs), 'run')} ({named}), left out of its figures",
                f"look at runs/{min(runs)}/output.log in the store",
            )


def _runs_with_gaps(group: GroupResult, metric: str) -> Iterator[JudgedRun]:
    for judged in group.selections:
        for run in judged.runs:
            if not math.isfinite(run.selected.values.get(metric, 0.0)):
                yield run


def _epochs_restart(evidence: StudyFacts) -> Iterator[Condition]:
    picking = {one.selection.metric for group in evidence.groups for one in group.selections}
    records = [record for records in evidence.records.values() for record in records]
    yield from _restarts(records, {*picking, *(metric.name for metric in evidence.metrics)})


def _without_epoch(evidence: StudyFacts) -> Iterator[Condition]:
    """Values that stand in no order but that of the lines: epochs of a training, or results of several models."""
    picking = {one.selection.metric for group in evidence.groups for one in group.selections}
    for metric in sorted({*picking, *(metric.name for metric in evidence.metrics)}):
        notes = [note for group in evidence.records.values() for record in group for note in record.notes]
        noted = [note.message for note in notes if note.code == "stdout.no-epoch" and f"{metric!r}" in note.message]
        if noted:
            yield Condition(
                "printed-without-epoch",
                f"{noted[0]}, whose last value counts unless a selection picks another ({some(len(noted), 'run')})",
                "print the epoch on the same line; of several models, print each under a name of its own",
            )


def _values_left_out(evidence: StudyFacts) -> Iterator[Condition]:
    """Values of a judged metric that were seen and not read, or of which another one counts: a best may be missing."""
    picking = {one.selection.metric for group in evidence.groups for one in group.selections}
    names = sorted({*picking, *(metric.name for metric in evidence.metrics)} - {""})
    told: dict[str, list[str]] = {}  # by what is said, whatever the run: a file of its own has the run's id in its path
    for record in (record for records in evidence.records.values() for record in records):
        files = [record.origins.get(name, "").removeprefix("file: ") for name in names]
        for note in record.notes:
            of_a_metric = note.code in _SOME_NOT_READ and any(f"{name!r}" in note.message for name in names)
            of_a_file = note.code == "files.bad-line" and any(file and note.message.startswith(file) for file in files)
            if of_a_metric or of_a_file or note.code == "files.left-out":
                told.setdefault(note.message.replace(record.run_id, ""), []).append(note.message)
    if told:
        first = first_of([messages[0] for messages in told.values()], _NOT_READ_TOLD)
        yield Condition(
            "values-left-out",
            f"not every value was read: {first} ({some(max(map(len, told.values())), 'run')})",
            "print or write one number for each name in every row, or log it: isorun.log(epoch=..., val_acc=...)",
        )


def _restarts(records: Sequence[RunRecord], metrics: Collection[str]) -> Iterator[Condition]:
    """Runs that are several trainings by their steps: the best of all their epochs is that of one of them."""
    again = {
        record.run_id: name
        for record in records
        for name in sorted(metrics)
        if name in record.series and record.series[name].begins_again
    }
    if again:
        names = ", ".join(sorted(set(again.values())))
        yield Condition(
            "epochs-restart",
            f"epochs begin again in {len(again)} of {some(len(records), 'run')} ({names}): "
            "stages or folds are judged as one training, at the best or the last of all their epochs",
            "make each fold or stage a run of its own, or log what stands for all: isorun.result(test_acc=...)",
        )


def _unjudged(evidence: StudyFacts) -> Iterator[Condition]:
    for number, judged in enumerate(evidence.groups[0].selections if evidence.groups else ()):
        problems = [problem for group in evidence.groups for problem in group.selections[number].unjudged.values()]
        if problems:
            yield Condition(
                "selection-without-epoch",
                f"the selection {judged.selection.name} picked no epoch in {some(len(problems), 'run')} "
                f"({problems[0]}); they are missing from its rows",
                f"log {judged.selection.metric} every epoch, or change [selections.{judged.selection.name}]",
            )


def _selected_on_itself(evidence: StudyFacts) -> Iterator[Condition]:
    judged = evidence.groups[0].selections if evidence.groups else ()
    names = {metric.name for metric in evidence.metrics}
    both = [one.selection for one in judged if one.selection.metric in names]
    if both:
        yield Condition(
            "selected-on-itself",
            f"{both[0].metric} both picks the epoch and is the result: the best of many epochs is too good",
            "log a value on data that picks nothing: isorun.log(epoch=..., test_acc=...)",
        )


def _judged_at_end(evidence: StudyFacts) -> Iterator[Condition]:
    for metric in evidence.metrics:
        judged = [one for group in evidence.groups for one in group.selections if _at_end(one, metric.name)]
        names = {one.selection.name for one in judged} - {FINAL.name}
        if names:
            yield Condition(
                "final-value-used",
                f"{metric.name} was not logged at the epoch picked by {' and '.join(sorted(names))}: "
                "its value at the end of the run is shown",
                f"log it every epoch: isorun.log(epoch=..., {metric.name}=...)",
            )


def _at_end(judged: SelectionResult, metric: str) -> bool:
    return any(metric in run.selected.at_end for run in judged.runs)


def _from_output(evidence: StudyFacts) -> Iterator[Condition]:
    """Metrics read in the same way, from the same line where one is still known, are one warning."""
    judged = {metric.name for metric in evidence.metrics}
    judged |= {one.selection.metric for group in evidence.groups for one in group.selections}
    records = [record for group in evidence.records.values() for record in group]
    alike: dict[str, list[str]] = {}
    for metric in sorted(judged):
        origins = (record.origins.get(metric, "") for record in records)
        origin = next((origin for origin in origins if origin.startswith("stdout")), "")
        if origin:
            alike.setdefault(f"({origin}){_example(records, metric)}", []).append(metric)
    for where, metrics in alike.items():
        yield Condition(
            "metric-from-output",
            f"{', '.join(metrics)} read from the training's output {where}",
            f"check the values; to be sure, log them: isorun.log(epoch=..., {metrics[0]}=...), or declare a pattern",
        )


def _example(records: Sequence[RunRecord], metric: str) -> str:
    """The first line of the log that names the metric, where the kept end of the log still has one."""
    lines = (line for record in records for line in record.log_tail.splitlines() if metric in line)
    line = plain(next(lines, "")).strip()
    start = max(line.find(metric) - _EXAMPLE_BEFORE, 0)
    shown = f"{'…' if start else ''}{line[start : start + _EXAMPLE_LENGTH]}"
    return f', as in "{shown}"' if line else ""


STUDY_CHECKS: Final[Sequence[Callable[[StudyFacts], Iterator[Condition]]]] = (
    _metric_not_logged,
    _not_finite,
    _runs_failed,
    _runs_missing,
    _files_shared,
    _launch_differs,
    _few_runs,
    _weak_runs,
    _epochs_restart,
    _without_epoch,
    _values_left_out,
    _unjudged,
    _selected_on_itself,
    _judged_at_end,
    _from_output,
    _from_files,
    _metric_chosen,
    _directions,
)
