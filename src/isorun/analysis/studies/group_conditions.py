"""Conditions of one group of a study: are its runs what they claim to be?

Each check looks at the finished runs of a group: did they draw independently at `default`, are they identical at the
other levels, and were they made alike (threads, machine, packages, input, code)? What a run noted of itself is told
once for all runs that did. GROUP_CHECKS stand in the order they are shown in.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from isorun.analysis.evidence import SEED_FROM_PARAMETER, UNITS_UNKNOWN, Condition, first_of, some
from isorun.analysis.evidence.judged import MetricKind, is_bookkeeping, kind_of
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
)
from isorun.analysis.studies.foreign_runs import Foreign, more_repeats
from isorun.analysis.studies.group_result import GroupKey
from isorun.study.cells import Level
from isorun.study.imported import IMPORTED
from isorun.study.records import RunRecord, Seeded

__all__ = ["AT_ONCE", "GROUP_CHECKS", "NO_STREAMS", "independent_draws", "why_merged"]

GroupCheck = Callable[[GroupKey, Sequence[RunRecord], RunUnits], Iterator[Condition]]

_OPEN_ENDS_TOLD: Final = 3
_ANSWERS_TOLD: Final = 3
_PACKAGES_TOLD: Final = 5
_GENERATOR, _SETTING = "generator-seeded", "setting-answered"
_VALUES: Final = "values of "
_PLACES_TOLD: Final = 3
_WORKING_COPY: Final = "."
"""As a study names it among versions of the code."""


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


def _imported(_key: GroupKey, records: Sequence[RunRecord], _units: RunUnits) -> Iterator[Condition]:
    """Runs of a tracker: what they drew is not known, or only by what a parameter is called."""
    foreign = [record for record in records if record.launch == IMPORTED]
    trackers = " and ".join(sorted({record.cell.command[1] for record in foreign}))
    unseeded = [record for record in foreign if record.cell.seed is None]
    if unseeded:
        yield Condition(
            UNITS_UNKNOWN,
            f"the runs were imported from {trackers}, which tells no seed: what was drawn independently is not known, "
            "each run counts as one unit, and an error rate holds only if each drew anew",
            "isorun import … --seed PARAMETER --name NAME, where a parameter has the seed",
        )
    if len(unseeded) < len(foreign):
        yield Condition(
            SEED_FROM_PARAMETER,
            f"the runs were imported from {trackers}, and their seeds are what a parameter says: that the training "
            "used them is not known",
            "isorun import … --seed none --name NAME, where the parameter is something else",
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
    return _shown_seed(next(seeded for record in records for seeded in (*own_seeds(record), *record.seeded)))


def _shown_seed(seeded: Seeded) -> str:
    return seeded.shown + (f" at {seeded.where}" if seeded.where else "")


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
    if units.merges or key.level is not Level.DEFAULT:
        return
    told, fixed = _shared_constant(records, was_seen=True)
    if told is not None:
        message = (
            f"the default runs share a part of their randomness: {fixed} of {some(len(records), 'run')} fixed a "
            f"seed themselves ({_shown_seed(told)}), so their spread may be too small"
        )
    else:
        told, fixed = _shared_constant(records, was_seen=False)
        if told is None:
            return
        message = (
            f"the default runs may share a part of their randomness: a line in the source of {fixed} of "
            f"{some(len(records), 'run')} fixes a seed ({_shown_seed(told)}), and whether it ran was not seen; where "
            "it did, their spread may be too small"
        )
    yield Condition("default-not-independent", message, independent_draws(records))


def _shared_constant(records: Sequence[RunRecord], *, was_seen: bool) -> tuple[Seeded | None, int]:
    """A constant that runs share, and how many have any: of calls that were seen, or of lines that were only read."""
    constants = [
        {(one.call, one.value): one for one in record.seeded if not one.replaced and one.was_seen is was_seen}
        for record in records
    ]
    having = Counter(drawn for of_run in constants for drawn in of_run)
    # A seed that each run gives another value, such as one made of the time, is no shared part.
    shared = {drawn for drawn, runs in having.items() if runs > 1 or len(records) == 1}
    fixed = [of_run for of_run in constants if not shared.isdisjoint(of_run)]
    return next((one for of_run in fixed for drawn, one in of_run.items() if drawn in shared), None), len(fixed)


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
                f"{_about_threads(runs)}data workers, time, files that the training reads (/dev/urandom among them) "
                "and programs that it starts, which isorun does not see; notes of the runs name more",
            )


def _about_threads(records: Sequence[RunRecord]) -> str:
    """Threads that write to one place, as XGBoost's shotgun does, are ruled out by having one."""
    asked = [record.environment.get("requested", {}) for record in records]
    if all((item.get("threads") or item.get("cpus")) == 1 for item in asked):
        return "look for "
    return "try one thread (--threads 1 and a new --store, threads = 1 in the study); look for "


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
            more_repeats(Foreign.OWN),
        )


def _threads_differ(_key: GroupKey, records: Sequence[RunRecord], _units: RunUnits) -> Iterator[Condition]:
    changed = changed_facts(records, lambda name: "threads" in name or name == "affinity")
    if changed:
        yield Condition(
            "threads-differ",
            f"the runs did not use the same number of threads or CPUs ({changed}): that alone changes results",
            "set threads in the study's environment, and run again in a new store",
        )


def _ranks_differ(_key: GroupKey, records: Sequence[RunRecord], _units: RunUnits) -> Iterator[Condition]:
    told = [effective(record).get("ranks") for record in records if effective(record)]
    sizes = sorted({ranks["world_size"] if isinstance(ranks, Mapping) else 1 for ranks in told})
    if len(sizes) > 1:
        yield Condition(
            "ranks-differ",
            f"the runs did not train in the same number of processes ({', '.join(map(str, sizes))}): batches and sums "
            "of gradients are others",
            "make one environment or config for each number, so that their runs are not mixed",
        )
    missed = [note.message for record in records for note in record.notes if note.code == "ranks-missing"]
    if missed:
        yield Condition(
            "ranks-missing",
            f"{missed[0]} ({some(len(missed), 'run')})",
            "let every rank see the run's folder: a store that all machines share",
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


def _of_notes(code: str, sentence: str, next_step: str, told_as: str = "") -> GroupCheck:
    """The check for runs that have a note of this code.

    sentence: what is said of them. `{runs}` is how many of all there are, `{note}` what the first of them noted.
    told_as: the code of the condition, where it is not the note's.
    """

    def check(_key: GroupKey, records: Sequence[RunRecord], _units: RunUnits) -> Iterator[Condition]:
        noted = _noted(records, code)
        if noted:
            runs = f"{len(noted)} of {some(len(records), 'run')}"
            yield Condition(told_as or code, sentence.format(runs=runs, note=noted[0]), next_step)

    return check


_edited_while_running = _of_notes(
    "edited-while-running",
    "in {runs} {note}",
    "leave the files alone while runs go on: code = REF gives runs a checkout of their own",
)
_ended_early = _of_notes(
    "ended-early",
    "{runs} did not come to their own end ({note})",
    "what they left is that of a shorter training; runs without `steps` are whole ones",
)
_python_unreached = _of_notes(
    "python-unreached",
    "in {runs} a {note}: nothing that isorun fixes or records reaches it, whatever the level",
    "hand PYTHONPATH, PYTHONHASHSEED and ISORUN_* on (tox: pass_env), and run again in a new --store",
)
_training_outlived = _of_notes(
    "training-outlived",
    "in {runs} {note}; what it had not done by then is missing",
    "let the command wait for what it begins: wait at the end of a script, setsid --wait; then a new --store",
)
_shared_device = _of_notes(
    "shared-device",
    "{runs} shared a device ({note}): their times do not compare, and what is chosen by speed or free memory may have "
    "changed values",
    "lower --jobs, or give more --devices",
)
_bad_return = _of_notes(
    "bad-return",
    "what {runs} returned was not taken ({note})",
    "return the metrics by name, such as {'test_acc': 0.98}; then run again in a new --store",
)
_several_trainings = _of_notes(
    "several-trainings",
    "in {runs} there was more than one training: {note}",
    "make each a run of its own: without -m, or as configs of a study; or judge one of them: --metric NAME@JOB",
)
_several_processes = _of_notes(
    "several-processes",
    "in {runs} {note}; which process that is may be chance",
    "log in one process alone, or in each under a name of its own: isorun.log(**{f'test_acc/{fold}': ...})",
)
_files_differ = _of_notes(
    "files.differs",
    "in {runs} a file has other values than what was printed or logged, which counts: {note}",
    "find out which is meant: isorun scan -- COMMAND shows both; --file PATH takes the file's",
    told_as="files-differ",
)
_isolation_left = _of_notes(
    "isolation-left",
    "in {runs} {note}",
    "look at the originals; let the training write to {run_dir}, or to files that it makes itself",
)
# What runs did to the checkout that they worked in: it is undone before the next one begins.
_checkout_changed = _of_notes(
    "checkout-changed",
    "{note} ({runs})",
    "let the training write to {run_dir}, and read what it changes from there",
)
_checkout_written = _of_notes(
    "checkout-written",
    "{note} ({runs})",
    "let the training write to {run_dir}, which is kept; what it downloads belongs into links",
)


def _launch_mixed(_key: GroupKey, records: Sequence[RunRecord], _units: RunUnits) -> Iterator[Condition]:
    modes = sorted({record.launch for record in records})
    if len(modes) > 1:
        yield Condition(
            "launch-mixed",
            f"the runs were launched in different ways ({', '.join(modes)})",
            "use one launch mode for the whole study",
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


GROUP_CHECKS: Final[Sequence[GroupCheck]] = (
    _imported,
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
    _ranks_differ,
    _machine_differs,
    _packages_differ,
    _input_differs,
    _code_differs,
    _working_copy_changed,
    _edited_while_running,
    _ended_early,
    _training_outlived,
    _python_unreached,
    _launch_mixed,
    _shared_device,
    _bad_return,
    _several_trainings,
    _several_processes,
    _files_differ,
    _isolation_left,
    _checkout_changed,
    _checkout_written,
    _training_altered,
)

AT_ONCE: Final[Sequence[GroupCheck]] = (
    _hook_never_started,
    _factor_without_effect,
    _streams_unclassified,
    _lock_of_the_study,
    _shared_device,
    _bad_return,
    _several_trainings,
    _several_processes,
    _files_differ,
    _isolation_left,
    _checkout_changed,
    _checkout_written,
    _edited_while_running,
    _training_outlived,
    _python_unreached,
)
"""Those of runs that were just made: whoever started them can still change it."""
