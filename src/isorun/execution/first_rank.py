"""Of a training of several processes, what the first rank printed: one output has the lines of all of them.

Later ranks tell which lines they printed (`worker/printing.py`); without these the output is that of the first rank.
The times of values are those that the whole output gave for the same place in the training: ranks go in step.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from isorun.sources import Found, PrintedJobs
from isorun.study import Sources
from isorun.study.records import Note, Series
from isorun.worker.printing import checksum

__all__ = ["LaterRanks", "of_first_rank"]

_LINE_ENDS: Final = re.compile(r"[\r\n]+")
_MOST_TOLD: Final = 8


@dataclass(frozen=True, slots=True)
class LaterRanks:
    """What later ranks printed: how often each line, by its checksum; more: not all of it was counted."""

    lines: Mapping[str, int]
    more: bool = False


def of_first_rank(found: Found, later: LaterRanks, log: Path, sources: Sources, *, is_whole: bool) -> Found:
    """What was found in the output, with the values of the first rank where later ones printed that metric, too.

    is_whole: the log has all that was printed. Where it has not, nobody can say which value is whose, and what several
    ranks printed is left out. A metric that later ranks alone printed stays: the last one may know what the first does
    not.
    """
    text = log.read_bytes().decode("utf-8", "replace")
    plain = replace(sources, files=(), tensorboard=(), installed={})
    left, first, others = dict(later.lines), PrintedJobs(plain), PrintedJobs(plain)
    for line in _LINE_ENDS.split(text):
        known = checksum(line)
        is_later = left.get(known, 0) > 0
        if is_later:
            left[known] -= 1
        (others if is_later else first).feed(line, 0.0)
    _, own = first.finish(log.parent, 0.0, whole=True)
    _, theirs = others.finish(log.parent, 0.0, whole=True)
    shared = sorted(name for name in own.series if name in theirs.series)
    told = ", ".join(shared[:_MOST_TOLD]) + (", …" if len(shared) > _MOST_TOLD else "")
    if not shared:
        return found
    if later.more or not is_whole:
        note = Note("stdout.left-out", f"left out: {told}: several ranks print it, and too much to tell them apart")
        return replace(found.without(set(shared)), notes=(*found.notes, note))
    note = Note("ranks-printed", f"several ranks printed {told}; kept are the values of the first one")
    beside = found.without(own.origins)
    timed = {name: _timed(series, found.series.get(name)) for name, series in own.series.items()}
    return Found(
        series={**beside.series, **timed},
        results={**beside.results, **own.results},
        origins={**beside.origins, **own.origins},
        examples={**beside.examples, **own.examples},
        notes=(*own.notes, note),
    )


def _timed(series: Series, whole: Series | None) -> Series:
    """The series with the times that the whole output had for its steps; at the end where it had none."""
    if whole is None or not len(whole.seconds):
        return series
    last = dict(zip(whole.steps, whole.seconds, strict=True))
    return Series(series.steps, [last.get(step, whole.seconds[-1]) for step in series.steps], series.values)
