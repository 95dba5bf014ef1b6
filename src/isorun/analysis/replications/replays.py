"""Replays: a run that was made again, held against the one that is kept: the same to the last bit, or where they part.

Rows are compared in the order in which the kept run logged them, then results, predictions and digests. What metrics
tell of the machine (seconds, memory) differs between any two runs and is left aside. Where something parts, the cause
is looked for in what the runs were made with: the environment, the code, the data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from isorun.analysis import Told
from isorun.analysis.environments import NUMERICS, FactDifference, difference_of
from isorun.analysis.evidence import Condition, some
from isorun.analysis.evidence.judged import is_of_the_machine
from isorun.analysis.evidence.run_units import FINAL_WEIGHTS, INITIAL_WEIGHTS
from isorun.study.records import RunRecord, RunState, step_text

__all__ = ["Parting", "Replay", "held_against", "partings"]

_STATE: Final = "state"
_ROW: Final = "row"
_RESULT: Final = "result"
_PREDICTIONS: Final = "predictions"
_DIGEST: Final = "digest"
_EARLY: Final = ("data", INITIAL_WEIGHTS)


@dataclass(frozen=True, slots=True)
class Parting:
    """One thing in which the numbers of two runs differ. kind: state, row, result, predictions or digest.

    step: of a row, the epoch or step that it was logged at; number: which row of its metric it is, from 1 on.
    """

    kind: str
    what: str
    stored: str | None
    now: str | None
    step: float | None = None
    number: int | None = None

    @property
    def words(self) -> str:
        """For people."""
        then, now = ("none" if value is None else value for value in (self.stored, self.now))
        values = f"{then} then, {now} now"
        if self.kind == _ROW:
            at = f" at step {step_text(self.step)}" if self.step is not None else ""
            return f"{self.what}{at} (row {self.number}): {values}"
        return f"{self.what}: {values}"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        names = ("kind", "what", "stored", "now", "step", "number")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None or name in names[:4]}


@dataclass(frozen=True, slots=True)
class Replay(Told):
    """A run that was made again. setup: what differs between the two that can change numbers, most suspicious first.

    partings: where the numbers part, in the order of the run. rows, digests, results: how many of them were compared.
    replaced: what could not be had as it was, in words. kept: where the new run is kept.
    """

    told_as: ClassVar[str] = "replay"

    run: str
    replay: str
    label: str
    setup: tuple[FactDifference, ...]
    partings: tuple[Parting, ...]
    rows: int
    digests: int
    has_weights: bool
    fixes_seed: bool
    replaced: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    kept: str = ""
    results: int = 0

    @property
    def identical(self) -> bool:
        """Whether nothing parts."""
        return not self.partings

    @property
    def first(self) -> str:
        """The first thing that differs: of what the runs were made with, else of their numbers; empty for none."""
        if self.identical:
            return ""
        return _fact_words(self.setup[0]) if self.setup else self.partings[0].words

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "identical": self.identical,
            "first_difference": self.first or None,
            "run": self.run,
            "replay": self.replay,
            "setup": [item.to_json() for item in self.setup],
            "partings": [item.to_json() for item in self.partings],
            "compared": {"rows": self.rows, "digests": self.digests, "weights": self.has_weights},
            "replaced": list(self.replaced),
            "kept": self.kept,
            "warnings": [condition.to_json() for condition in self.conditions],
        }


def _fact_words(fact: FactDifference) -> str:
    return f"{fact.what}: {fact.first or 'not recorded'} then, {fact.second or 'not recorded'} now ({fact.reason})"


def held_against(stored: RunRecord, new: RunRecord) -> Replay:
    """What a run that was made again says of the one that is kept."""
    found = difference_of(stored, new).of_kind(NUMERICS)
    known = [item for item in found if item.first is not None and item.second is not None]
    setup = (*known, *(item for item in found if item not in known))  # of what one run did not tell nothing is known
    rows = sum(len(item.values) for name, item in stored.series.items() if not is_of_the_machine(name))
    return Replay(
        stored.run_id,
        new.run_id,
        stored.cell.label,
        setup,
        tuple(partings(stored, new)),
        rows,
        len(stored.digests),
        FINAL_WEIGHTS in stored.digests and FINAL_WEIGHTS in new.digests,
        stored.cell.level.fixes_seed,
        conditions=tuple(_conditions(stored, rows)),
        results=sum(not is_of_the_machine(name) for name in stored.results),
    )


def _conditions(stored: RunRecord, rows: int) -> Iterator[Condition]:
    if FINAL_WEIGHTS not in stored.digests:
        counted = some(rows, "logged value")
        message = f"the run left no digest of its weights: {counted} and its results are all that was compared"
        step = "isorun.result(weights=model), or isorun.digest, in the training"
        yield Condition("weights-unknown", message, step)
    if not stored.cell.level.fixes_seed:
        message = "at level default no seed is fixed: that two runs differ is what is expected of them"
        yield Condition("nothing-fixed", message, "isorun replicate asks whether results are equivalent")


def partings(stored: RunRecord, new: RunRecord) -> Iterator[Parting]:
    """Where the numbers of two runs part, in the order in which the kept one logged them."""
    if new.state is not RunState.FINISHED:
        yield Parting(
            _STATE, "how it ended", str(stored.state), f"{new.state}: {new.reason}" if new.reason else new.state
        )
    yield from _values(_DIGEST, _digests(stored, early=True), _digests(new, early=True))
    for _, parting in sorted(_rows(stored, new), key=lambda found: found[0]):
        yield parting
    yield from _values(_RESULT, _numbers(stored.results), _numbers(new.results))
    yield from _values(_RESULT, _per_class(stored), _per_class(new))
    yield from _values(_PREDICTIONS, _predictions(stored), _predictions(new))
    yield from _values(_DIGEST, _digests(stored, early=False), _digests(new, early=False))


def _digests(record: RunRecord, *, early: bool) -> dict[str, str]:
    """Digests by name; early: those of data and of initial weights, which were taken before the first row."""
    return {name: text for name, text in record.digests.items() if name.startswith(_EARLY) == early}


def _rows(stored: RunRecord, new: RunRecord) -> Iterator[tuple[tuple[float, str], Parting]]:
    """Of each metric the first row that is another one, with the moment at which the kept run logged it."""
    for name in sorted({*stored.series, *new.series}):
        if is_of_the_machine(name):
            continue
        before, after = stored.series.get(name), new.series.get(name)
        old = [] if before is None else list(zip(before.steps, before.values, strict=True))
        now = [] if after is None else list(zip(after.steps, after.values, strict=True))
        place = next(
            (i for i, (a, b) in enumerate(zip(old, now, strict=False)) if not _same_row(a, b)), min(len(old), len(now))
        )
        if place == len(old) == len(now):
            continue
        moment = before.seconds[place] if before is not None and place < len(old) else float("inf")
        step = old[place][0] if place < len(old) else now[place][0]
        texts = [repr(rows[place][1]) if place < len(rows) else None for rows in (old, now)]
        yield (moment, name), Parting(_ROW, name, texts[0], texts[1], step, place + 1)


def _same_row(a: tuple[float, float], b: tuple[float, float]) -> bool:
    return all(x == y or (x != x and y != y) for x, y in zip(a, b, strict=True))  # noqa: PLR0124 - NaN is not itself


def _numbers(values: Mapping[str, float]) -> dict[str, str]:
    return {name: repr(float(value) + 0.0) for name, value in values.items() if not is_of_the_machine(name)}


def _per_class(record: RunRecord) -> dict[str, str]:
    pairs = ((f"{name}[{label}]", value) for name, items in record.per_class.items() for label, value in items.items())
    return _numbers(dict(pairs))


def _predictions(record: RunRecord) -> dict[str, str]:
    """Predictions by name and step; where epochs begin again, or the end was told twice, by their number, too."""
    found: dict[str, str] = {}
    times: Counter[str] = Counter()
    for item in record.predictions:
        name = f"predictions {item.name}{'' if item.step is None else f' at step {step_text(item.step)}'}"
        times[name] += 1
        again = f" ({times[name]})" if times[name] > 1 else ""
        found[f"{name}{again}"] = f"{item.kind} {item.dtype} {item.shape} {item.data}"
    return found


def _values(kind: str, stored: Mapping[str, str], new: Mapping[str, str]) -> Iterator[Parting]:
    for name in sorted({*stored, *new}):
        before, after = stored.get(name), new.get(name)
        if before != after:
            short = [_short(text, kind) for text in (before, after)]
            yield Parting(kind, name, short[0], short[1])


def _short(text: str | None, kind: str) -> str | None:
    if text is None or kind == _RESULT:
        return text
    return text[:12] if kind == _DIGEST else "recorded"
