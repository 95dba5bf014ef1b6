"""What the runs of a study come from, for whoever wants to have them again: facts, and how many runs each holds for."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from isorun.analysis.evidence import first_of
from isorun.analysis.evidence.provenance import effective, files_of, made, requested
from isorun.analysis.evidence.surroundings import (
    SHORT,
    computing_words,
    image_words,
    machine_words,
    seed_words,
    software_words,
)
from isorun.study.imported import IMPORTED
from isorun.study.records import RunRecord
from isorun.worker.redaction import redacted_argv, without_secrets

__all__ = ["ProvenanceFact", "study_provenance"]

_SEEDS_TOLD: Final = 10
_FILES_TOLD: Final = 6
_VALUES_TOLD: Final = 8
"""So many different values of one fact are told; the rest is counted."""


@dataclass(frozen=True, slots=True)
class ProvenanceFact:
    """One fact. of: the approach, where there are several. runs: how many finished runs it holds for."""

    what: str
    value: str
    runs: int
    of: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"what": self.what, "of": self.of or None, "value": self.value, "runs": self.runs}


def study_provenance(finished: Sequence[RunRecord]) -> tuple[ProvenanceFact, ...]:
    """Machine, system, software, code, commands, data, seeds and dates of the finished runs, in this order."""
    if not finished:
        return ()
    return (
        *_counted("machine", finished, _machine),
        *_counted("made by", finished, _executor),
        *_counted("system", finished, _system),
        *_counted("software", finished, _software),
        *_counted("computed with", finished, _computing),
        *_counted("code", finished, _code),
        *_of_approaches("command", finished, _command),
        *_of_approaches("files known by hash", finished, _files),
        *_seeds(finished),
        ProvenanceFact("made", _dates(finished), len(finished)),
    )


def _counted(
    what: str, records: Iterable[RunRecord], words: Callable[[RunRecord], str], of: str = ""
) -> Iterator[ProvenanceFact]:
    counts = Counter(without_secrets(text) for record in records if (text := words(record)))
    for value, runs in counts.most_common(_VALUES_TOLD):
        yield ProvenanceFact(what, value, runs, of)
    rest = counts.most_common()[_VALUES_TOLD:]
    if rest:
        yield ProvenanceFact(what, f"{len(rest)} more", sum(runs for _, runs in rest), of)


def _of_approaches(
    what: str, records: Sequence[RunRecord], words: Callable[[RunRecord], str]
) -> Iterator[ProvenanceFact]:
    approaches: dict[str, list[RunRecord]] = {}
    for record in records:  # once: there may be as many approaches as runs
        approaches.setdefault(record.cell.approach, []).append(record)
    for approach, own in approaches.items():
        yield from _counted(what, own, words, approach if len(approaches) > 1 else "")


def _machine(record: RunRecord) -> str:
    words = next(machine_words(effective(record)), "").removeprefix("on ")
    host = str(record.where.get("host", ""))
    return f"{host}: {words}" if host else words


def _executor(record: RunRecord) -> str:
    """Told where runs were not made by the command itself on its own machine."""
    return str(record.where.get("executor", ""))


def _system(record: RunRecord) -> str:
    return ", ".join((*list(machine_words(effective(record)))[1:], *image_words(made(record))))


def _software(record: RunRecord) -> str:
    return "; ".join(software_words(effective(record))).removeprefix("with ")


def _computing(record: RunRecord) -> str:
    return "; ".join(computing_words(effective(record), requested(record)))


def _code(record: RunRecord) -> str:
    commit = str(record.code.get("commit") or "")
    if not commit:
        return "no commit: no git repository was found"
    return f"commit {commit[:SHORT]}{' with changes that are not committed' if record.code.get('dirty') else ''}"


def _command(record: RunRecord) -> str:
    if record.cell.command[:1] == (IMPORTED,):
        return f"not known: imported from {record.cell.command[1]}"  # the rest is what the tracker knows the run by
    return shlex.join(redacted_argv(record.cell.command, {}))


def _files(record: RunRecord) -> str:
    told = [f"{path} (sha256 {digest[:SHORT]})" for path, digest in sorted(dict(files_of(record)).items())]
    return first_of(told, _FILES_TOLD, ", ") if told else ""


def _seeds(finished: Sequence[RunRecord]) -> Iterator[ProvenanceFact]:
    """The seeds of each level, and those that trainings fix by themselves."""
    for level in dict.fromkeys(record.cell.level for record in finished):
        runs = [record for record in finished if record.cell.level == level]
        if level.fixes_seed:
            seeds = sorted({str(record.seed_used) for record in runs}, key=lambda seed: (len(seed), seed))
            yield ProvenanceFact(f"seeds at {level}", first_of(seeds, _SEEDS_TOLD, ", "), len(runs))
        else:
            yield from _counted(f"seeds at {level}", runs, seed_words)


def _dates(finished: Sequence[RunRecord]) -> str:
    """From the first start to the last end, in UTC; what is no date is left out."""
    begun = [(begin, record.wall_seconds) for record in finished if (begin := _date(record.started_at)) is not None]
    if not begun:
        return "not known when"
    first = min(begin for begin, _ in begun)
    last = max(begin + timedelta(seconds=seconds) for begin, seconds in begun)
    return f"{first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC"


def _date(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
