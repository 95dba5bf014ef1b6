"""What a check does not compare, and what it says of it.

The very same runs, other data, groups that only one side has; and the commands and settings that a change is about.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final

from isorun.analysis.checks import CheckedSide
from isorun.analysis.checks.sides import GroupName
from isorun.analysis.evidence import Condition, first_of, some
from isorun.analysis.evidence.provenance import requested
from isorun.analysis.studies.foreign_runs import Foreign
from isorun.errors import InputError
from isorun.study.records import RunRecord

__all__ = [
    "commands",
    "data_conditions",
    "is_data",
    "nothing_matches",
    "other_data",
    "read_files_of",
    "refuse_same_runs",
    "same_runs",
    "without_baseline",
]

_SETTINGS: Final = frozenset((".py", ".toml", ".yaml", ".yml", ".json", ".ini", ".cfg", ".conf", ".txt", ".md", ".sh"))
"""Files that a training reads and that a change may well be about; all others are data."""


def refuse_same_runs(records: Sequence[RunRecord], baseline: Iterable[RunRecord], place: str) -> None:
    """A store that was copied from the baseline's has its runs: nothing would be run, and nothing ever found."""
    same = same_runs(records, baseline)
    if same:
        raise InputError(
            f"the runs that are checked are the baseline's own ({some(len(same), 'run')} of {place})",
            found=f"{first_of(same, 3, ', ')}: recorded once, and in both",
            hint="name other runs as the baseline"
            if Foreign.of(records) is Foreign.TRACKER
            else "a new --store FOLDER makes runs of the code as it is now",
        )


def same_runs(records: Iterable[RunRecord], baseline: Iterable[RunRecord]) -> list[str]:
    """The ids of the runs that both sides hold, as a package and the store that it was made of do."""
    theirs = set(map(_recorded_as, baseline))
    return [record.run_id for record in records if _recorded_as(record) in theirs]


def _recorded_as(record: RunRecord) -> tuple[str, str, str]:
    """What two recordings of one run have in common, and two runs have not.

    Rows of tables have no time: two tables may both have a seed 1 of a group, and then it is the results that tell.
    """
    return record.run_id, record.started_at, "" if record.started_at else repr(sorted(record.results.items()))


def other_data(new: Iterable[RunRecord], old: Iterable[RunRecord]) -> list[str]:
    """Data files that both sides read, and of which they had no version in common."""
    mine, theirs = _data_files(new), _data_files(old)
    return sorted(path for path in mine if path in theirs and not mine[path] & theirs[path])


def _data_files(records: Iterable[RunRecord]) -> dict[str, set[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for record in records:
        for path, digest in read_files_of(record):
            if is_data(path):
                found[path].add(digest)
    return dict(found)


def read_files_of(record: RunRecord) -> Iterator[tuple[str, str]]:
    """What a run was given or read, with digests; the size of a file that was too large for one."""
    asked = requested(record)
    for item in (*asked.get("read_files", ()), *asked.get("given_files", ())):
        path = item.get("path")
        if isinstance(path, str):
            yield path, str(item.get("sha256") or f"{item.get('size')} bytes")


def is_data(path: str) -> bool:
    """Whether a file is none that a change may well be about."""
    return PurePosixPath(path).suffix.lower() not in _SETTINGS


def data_conditions(new: Iterable[RunRecord], old: Iterable[RunRecord]) -> Iterator[Condition]:
    """That the data differ, where it is judged all the same."""
    differing = other_data(new, old)
    if differing:
        message = f"the two sides were trained on different data ({first_of(differing, 4, ', ')})"
        yield Condition(
            "other-data", f"{message}: the change and the data cannot be told apart", "make the baseline again"
        )


def without_baseline(
    new: Mapping[GroupName, CheckedSide], old: Mapping[GroupName, CheckedSide], place: str
) -> Iterator[Condition]:
    """Groups that only one side has: they are in no verdict."""
    added = [name.label for name in new if name not in old]
    gone = [name.label for name in old if name not in new]
    if added:
        message = f"{place} has no run of {first_of(added, 4, ', ')}, which is not judged"
        yield Condition("no-baseline", message, "make the baseline again when this is merged", tuple(added))
    if gone:
        message = f"the study has no run of {first_of(gone, 4, ', ')}, which the baseline has"
        yield Condition("group-gone", message, "where=… (--where) if that is meant", tuple(gone))


def nothing_matches(new: Iterable[GroupName], old: Iterable[GroupName], place: str) -> InputError:
    """What to say where no group is on both sides."""
    mine, theirs = list(new), list(old)
    levels = {name.level for name in mine}, {name.level for name in theirs}
    rest = [{(name.approach, name.config, name.environment) for name in side} for side in (mine, theirs)]
    apart = "the levels differ" if rest[0] & rest[1] and not levels[0] & levels[1] else "no group is the same"
    return InputError(
        f"nothing of the study can be held against the baseline {place}: {apart}",
        found=f"{'; '.join(sorted(name.label for name in mine))} here",
        allowed=f"what the baseline has: {'; '.join(sorted(name.label for name in theirs)) or 'nothing'}",
        hint="declare the same approaches, configs, environments and levels, or make the baseline again",
    )


def commands(records: Iterable[RunRecord]) -> dict[str, set[str]]:
    """The commands and settings of each approach and config."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for record in records:
        cell = record.cell
        words = (*cell.command, *(f"{name}={value}" for name, value in sorted(cell.config_values.items())))
        found[" ".join(part for part in (cell.approach, cell.config) if part != "default")].add(shlex.join(words))
    return dict(found)
