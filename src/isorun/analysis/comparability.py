"""Comparability: what of two sets of runs is not alike, so that a difference between them would not be the approach's.

The metric, by which way is better and how it is written; the epoch that runs are judged at; the very same runs. Data,
by the digests of the files that both read and of what both told (`isorun.digest("data…")`); the split, by how many
examples there are and by their labels, where predictions were kept; the level; and the class of the environment:
processor, device and versions of what computes. What a side did not record cannot be held against it, and is told; so
is that nothing at all shows the data of both to be the same.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from isorun.analysis.checks.comparable import is_data, other_data, read_files_of, same_runs
from isorun.analysis.evidence import Condition, first_of, some
from isorun.analysis.evidence.judged import JudgedMetric
from isorun.analysis.evidence.provenance import Provenance
from isorun.analysis.studies.group_result import GroupResult
from isorun.study.design import Selection
from isorun.study.records import Predictions, RunRecord

__all__ = ["ComparedSide", "incomparable", "is_arguable", "unknown_to_compare", "unlike_groups", "unlike_sides"]

_ARGUABLE: Final = frozenset(("other-data", "other-split", "other-level", "other-environment", "other-selection"))
_LABELS: Final = "labels"
_TEXTS: Final = frozenset((".txt", ".json"))
"""Settings, or the data of whoever trains on texts: other contents are no reason to refuse, and are told."""
_SHOWN: Final = 4


@dataclass(frozen=True, slots=True)
class ComparedSide:
    """What says whether a group can be compared with one of another study, or with a table.

    place: where it lies, for people. direction: which way is better, as its study declares it; None where it does not.
    selection, records, provenance: None of a table.
    """

    place: str
    metric: JudgedMetric
    direction: str | None = None
    selection: Selection | None = None
    records: Sequence[RunRecord] | None = None
    provenance: Provenance | None = None


def unlike_sides(own: ComparedSide, other: ComparedSide) -> Iterator[Condition]:
    """Why two sides are not comparable, what would make no sense at all first."""
    metric = own.metric
    if {other.direction, metric.direction} == {"higher", "lower"}:
        message = f"of {metric.name} {metric.direction} is better here, and {other.direction} in {other.place}"
        yield Condition("other-direction", message, "correct the direction in the study")
    if metric.scale and other.metric.scale and metric.scale != other.metric.scale:
        found = f"a {metric.scale} here, a {other.metric.scale} in {other.place}"
        message = f"{metric.name} is not on the same scale on both sides ({found})"
        yield Condition("other-scale", message, "write it alike on both sides")
    if own.selection is not None and other.selection is not None and own.selection != other.selection:
        epochs = [f"{one.name} of {one.metric}" if one.metric else one.name for one in (own.selection, other.selection)]
        message = f"the two sides are judged at different epochs ({epochs[0]} here, {epochs[1]} in {other.place})"
        yield Condition("other-selection", message, "--selection NAME takes one that both have")
    if own.records is None or other.records is None:
        return
    same = same_runs(own.records, other.records)
    if same:
        found = (
            f"{some(len(same), 'run')} of {other.place}; {first_of(same, 3, ', ')}: recorded once, and on both sides"
        )
        message = f"the runs that are compared are the baseline's own ({found})"
        yield Condition("same-runs", message, "compare with runs that were made apart")
    if own.provenance is not None and other.provenance is not None:
        yield from incomparable(own.records, other.records, (own.provenance, other.provenance))


def is_arguable(unlike: Iterable[Condition]) -> bool:
    """Whether who asks for it may compare all the same, and is told; anything else would make no sense at all."""
    return all(one.code in _ARGUABLE for one in unlike)


def incomparable(
    new: Sequence[RunRecord], held: Sequence[RunRecord], places: tuple[Provenance, Provenance]
) -> Iterator[Condition]:
    """Why two sets of runs cannot be compared, each a condition for those who compare them all the same."""
    yield from _data(new, held)
    yield from _split(new, held)
    yield from _levels(new, held)
    yield from _classes(*places)


def unlike_groups(
    records: Iterable[RunRecord], groups: tuple[GroupResult, GroupResult], compared: Iterable[str]
) -> Iterator[Condition]:
    """What of two groups of one study is not alike, beyond the factors that they are compared in.

    Told, and nothing is refused for it: whoever declares both in one study may well compare what they are trained on.
    """
    judged = [{run.run_id for run in group.selections[0].runs} for group in groups]
    known = list(records)
    new, held = ([record for record in known if record.run_id in ids] for ids in judged)
    asked = {f"other-{factor}" for factor in compared}
    found = incomparable(new, held, (groups[0].provenance, groups[1].provenance))
    yield from (one for one in found if one.code not in asked)


def _data(new: Sequence[RunRecord], held: Sequence[RunRecord]) -> Iterator[Condition]:
    mine, theirs = _told(new), _told(held)
    digests = [name for name in mine if name in theirs and not mine[name] & theirs[name]]
    differing = [*other_data(new, held), *sorted(digests)]
    if differing:
        message = f"the two sides were trained on different data ({first_of(differing, _SHOWN, ', ')})"
        yield Condition("other-data", f"{message}: the approach and the data cannot be told apart", "use the same data")


def _told(records: Iterable[RunRecord]) -> dict[str, set[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for record in records:
        for name, digest in record.digests.items():
            if name.startswith("data"):
                found[name].add(digest)
    return dict(found)


def _split(new: Sequence[RunRecord], held: Sequence[RunRecord]) -> Iterator[Condition]:
    """Another number of examples, or other labels, of what both predicted."""
    mine, theirs = _examples(new), _examples(held)
    for name in sorted(mine):
        if name in theirs and not mine[name] & theirs[name]:
            sizes = [first_of(sorted({f"{size:,}" for size, _ in side[name]}), 2, ", ") for side in (mine, theirs)]
            what = (
                f"{sizes[0]} and {sizes[1]} examples"
                if sizes[0] != sizes[1]
                else f"other labels of {sizes[0]} examples"
            )
            message = f"the two sides were judged on different splits ({name}: {what})"
            yield Condition("other-split", message, "judge both on the same examples")


def _examples(records: Iterable[RunRecord]) -> dict[str, set[tuple[int, str]]]:
    """By name of the split: how many examples, and of labels what they are."""
    found: defaultdict[str, set[tuple[int, str]]] = defaultdict(set)
    known: dict[str, str] = {}
    for record in records:
        for item in record.predictions:
            if item.shape:
                labels = item.name.endswith(_LABELS)
                content = (known.get(item.data) or known.setdefault(item.data, _content(item))) if labels else ""
                found[item.name].add((item.shape[0], content))
    return dict(found)


def _content(item: Predictions) -> str:
    """What labels are, however they were packed; empty where they cannot be read."""
    try:
        return hashlib.sha256(item.unpacked()).hexdigest()
    except ValueError:
        return ""


def _levels(new: Sequence[RunRecord], held: Sequence[RunRecord]) -> Iterator[Condition]:
    mine, theirs = ({str(record.cell.level) for record in side} for side in (new, held))
    if mine and theirs and not mine & theirs:
        said = f"{', '.join(sorted(mine))} here, {', '.join(sorted(theirs))} in the baseline"
        message = f"the two sides were made at different levels ({said}): they do not vary by the same"
        yield Condition("other-level", message, "make the runs at the level of the baseline")


def _classes(mine: Provenance, theirs: Provenance) -> Iterator[Condition]:
    if mine.kinds and theirs.kinds and not mine.kinds & theirs.kinds:
        differing = first_of(_differing(next(iter(sorted(mine.kinds))), next(iter(sorted(theirs.kinds)))), _SHOWN, "; ")
        message = f"the two sides were made in environments of another class ({differing})"
        yield Condition(
            "other-environment", f"{message}: what these do to the result cannot be told from what is compared",
            "make the runs with the same versions on such a machine, or replicate the baseline here",
        )  # fmt: skip


def _differing(mine: str, theirs: str) -> list[str]:
    """The facts of two classes that differ, with both values."""
    a, b = json.loads(mine), json.loads(theirs)
    names = sorted({*a, *b})
    return [f"{name}: {_text(a.get(name))} and {_text(b.get(name))}" for name in names if a.get(name) != b.get(name)]


def _text(value: object) -> str:
    text = "none" if value is None else value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 40 else f"{text[:39]}…"


def _data_unknown(new: Sequence[RunRecord], held: Sequence[RunRecord], place: str) -> Iterator[Condition]:
    """That the sides may be about different tasks: nothing that they read or told shows their data to be the same."""
    mine, theirs = _files(new), _files(held)
    told = [{*_told(side), *_examples(side)} for side in (new, held)]
    texts = sorted(path for path in mine if path in theirs and _is_text(path) and not mine[path] & theirs[path])
    if texts:
        found = f"both read {first_of(texts, _SHOWN, ', ')}, with other contents"
    elif not (mine or theirs) or told[0] & told[1] or set(mine) & set(theirs) or _digests(mine) & _digests(theirs):
        return
    else:
        here, there = (first_of(sorted(side), 2, ", ") or "no file" for side in (mine, theirs))
        found = f"{here} was read here, {there} in {place}"
    message = f"whether both sides were trained and judged on the same data is not known ({found})"
    yield Condition("data-unknown", message, "see that they were; isorun.digest('data', …) in both trainings shows it")


def _files(records: Iterable[RunRecord]) -> dict[str, set[str]]:
    """What runs were given or read beside their code and settings, with digests; texts may be either."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for record in records:
        for path, digest in read_files_of(record):
            if _is_text(path) or is_data(path):
                found[path].add(digest)
    return dict(found)


def _digests(files: Mapping[str, set[str]]) -> set[str]:
    return {digest for digests in files.values() for digest in digests}


def _is_text(path: str) -> bool:
    return PurePosixPath(path).suffix.lower() in _TEXTS


def unknown_to_compare(new: Sequence[RunRecord], held: Sequence[RunRecord] | None, place: str) -> Iterator[Condition]:
    """What nobody can say: a table has neither data nor environment, and of some runs no data were seen."""
    if held is None:
        message = (
            f"of {place} nothing is known but its numbers: whether data, split and environment are the same is not"
        )
        yield Condition("baseline-unknown", message, "a package or a store of its runs knows more")
        return
    yield from _data_unknown(new, held, place)
    if not any(_told(side) or any(record.predictions for record in side) for side in (new, held)):
        return
    for name, side in (("this study", new), (place, held)):
        if not _told(side) and not any(record.predictions for record in side):
            message = (
                f"{name} tells neither digests of its data nor predictions: whether the split is the same is not known"
            )
            yield Condition(
                "split-unknown", message, "isorun.digest('data', …), or predictions= and labels= in the training"
            )
