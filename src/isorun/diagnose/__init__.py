"""Training problems: the story of one training, what detectors find in it, and its symptoms.

A `Trace` is made from a record, from a watcher or from an engine's trial. `examine` asks every detector; each is a file
in `detectors/`, and other distributions bring more (entry-point group `isorun.detectors`). Nothing here trains, reads
files or prints.
"""

from __future__ import annotations

import abc
import importlib
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, NamedTuple, Self

from isorun.analysis import Told
from isorun.errors import PluginError
from isorun.study.records import RunRecord, number_from_json
from isorun.worker.watching import TOLD

__all__ = [
    "KINDS",
    "LARGER_RATE",
    "NOT_TOLD",
    "NOT_WATCHED",
    "AbstractDetector",
    "Curve",
    "Diagnosis",
    "Examination",
    "Problem",
    "Symptoms",
    "Trace",
    "WatchedRow",
    "all_detectors",
    "examine",
    "symptoms_of",
]

KINDS: Final = (
    *("exploding-weights", "wrong-loss", "unnormalised-data", "exploding-gradient", "vanishing-gradient"),
    *("dying-relu", "saturated-activation", "slow-convergence", "oscillation", "overfitting"),
)
"""The problems that isorun's own detectors find, causes before what they cause; a file each, by the same name."""

_LEARNED_ACCURACY: Final = 0.6
_LEARNED_RISE: Final = 0.2
_LEARNED_LOSS_SHARE: Final = 0.5
_FEWEST_EPOCHS: Final = 3
_MOST_EPOCHS: Final = 1000
_STEPS_AN_EPOCH: Final = 4
_WIDEST_GAP: Final = 20


class Curve(NamedTuple):
    """One metric over a training: equally long epochs and values."""

    epochs: tuple[float, ...] = ()
    values: tuple[float, ...] = ()

    @property
    def changes(self) -> tuple[float, ...]:
        """From each value to the next."""
        return tuple(after - before for before, after in itertools.pairwise(self.values))

    @property
    def finite(self) -> tuple[float, ...]:
        """The values that are numbers."""
        return tuple(value for value in self.values if math.isfinite(value))


_NOT_TOLD: Final = Curve()


@dataclass(frozen=True, slots=True)
class WatchedRow:
    """One row of a watcher: what a training looked like inside at one step (docs/design/repair.md lists the fields).

    Lists have an entry a layer, input first; one that was not watched is NaN. A row without a sample has no layers.
    """

    step: int
    epoch: float | None
    seconds: float
    layers: tuple[str, ...] = ()
    gradient: tuple[float, ...] = ()
    weight: tuple[float, ...] = ()
    update: tuple[float, ...] = ()
    zero: tuple[float, ...] = ()
    saturated: Mapping[str, float] = field(default_factory=dict)
    dead: Mapping[str, float] = field(default_factory=dict)
    finite: bool = True
    inputs: Mapping[str, float] = field(default_factory=dict)
    output: Mapping[str, Any] = field(default_factory=dict)
    architecture: str = ""
    told: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """The row as the worker wrote it. What is not of the right kind is left out: a training may write anything."""
        return cls(
            step=row["step"] if isinstance(row.get("step"), int) else 0,
            epoch=None if row.get("epoch") is None else _number(row["epoch"], math.nan),
            seconds=_number(row.get("seconds"), 0.0),
            layers=tuple(map(str, _list(row.get("layers")))),
            gradient=_numbers(row.get("gradient")),
            weight=_numbers(row.get("weight")),
            update=_numbers(row.get("update")),
            zero=_numbers(row.get("zero")),
            saturated=_by_name(row.get("saturated")),
            dead=_by_name(row.get("dead")),
            inputs=_by_name(row.get("inputs")),
            finite=row.get("finite", True) is not False,
            output=row["output"] if isinstance(row.get("output"), Mapping) else {},
            architecture=str(row.get("architecture") or ""),
            told={name: _number(row[name], math.nan) for name in TOLD if row.get(name) is not None},
        )


@dataclass(frozen=True, slots=True)
class Trace:
    """The story of one training: what it told epoch by epoch, what was watched inside, how it ended.

    parameters: its setting of hyper-parameters. state: as a record has it; empty where it is not known. clock: what the
    places of the curves count, "epoch" or "step".
    """

    name: str = ""
    loss: Curve = _NOT_TOLD
    accuracy: Curve = _NOT_TOLD
    val_loss: Curve = _NOT_TOLD
    val_accuracy: Curve = _NOT_TOLD
    rows: tuple[WatchedRow, ...] = ()
    state: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = math.nan
    clock: str = "epoch"

    @classmethod
    def of_record(cls, record: RunRecord) -> Self:
        """The trace of a recorded run: its series, however the training calls them, and its watched rows."""
        curves = _condensed({name: _curve(record, names) for name, names in TOLD.items()})
        return cls._told_by(
            curves,
            record.watched,
            name=record.run_id,
            state=str(record.state),
            parameters=dict(record.cell.config_values),
            seconds=record.wall_seconds,
            clock="step" if _counts_steps(curves.values(), record.watched) else "epoch",
        )

    @classmethod
    def of_rows(
        cls,
        rows: Iterable[Mapping[str, Any]],
        *,
        name: str = "",
        curves: Mapping[str, Sequence[float]] | None = None,
        parameters: Mapping[str, Any] | None = None,
        state: str = "",
    ) -> Self:
        """The trace of a watcher's rows (`watcher.rows`), or of an engine's trial.

        curves: values epoch by epoch by any name that trainings use ("loss", "val_acc", …); where one is missing, what
        the rows were told stands for it.
        """
        given = curves or {}
        found = {
            told: Curve(tuple(map(float, range(len(given[name])))), tuple(float(value) for value in given[name]))
            for told, names in TOLD.items()
            for name in [next((name for name in names if name in given), "")]
            if name
        }
        return cls._told_by(found, rows, name=name, state=state, parameters=parameters or {})

    @classmethod
    def _told_by(cls, curves: Mapping[str, Curve], rows: Iterable[Any], **about: Any) -> Self:
        """A curve that is empty is made of what the rows were told."""
        watched = _in_epochs([WatchedRow.from_row(row) for row in rows if isinstance(row, Mapping)])
        told: dict[str, Any] = {name: _told_curve(watched, name) for name in TOLD}
        return cls(**{**told, **{name: curve for name, curve in curves.items() if curve.values}}, rows=watched, **about)

    @property
    def points(self) -> str:
        """What the points of a curve are called."""
        return "epochs" if self.clock == "epoch" else "logged values"

    @property
    def samples(self) -> tuple[WatchedRow, ...]:
        """The rows that hold a sample of the inside."""
        return tuple(row for row in self.rows if row.layers)

    @property
    def judged(self) -> Curve:
        """The accuracy to judge convergence by: on the training's own data where it was told, else on held-out data."""
        return self.accuracy if len(self.accuracy.values) >= 2 else self.val_accuracy

    @property
    def best_accuracy(self) -> float:
        """The largest accuracy, on the training's or on held-out data; NaN where none was told."""
        return max((*self.accuracy.finite, *self.val_accuracy.finite), default=math.nan)

    @property
    def learns(self) -> bool:
        """AUTOTRAINER's gate: whether the training converges, so that nothing seen inside it is a problem.

        An accuracy of 0.6, or one that has risen by 0.2; without an accuracy a loss that fell to half of its start.
        """
        if self.judged.values:
            first = next(iter(self.judged.finite), math.nan)
            return self.best_accuracy >= _LEARNED_ACCURACY or self.best_accuracy - first >= _LEARNED_RISE
        loss = self.loss.values or self.val_loss.values
        if len(loss) < 2 or not all(map(math.isfinite, loss)):
            return False
        return 0.0 <= loss[-1] < _LEARNED_LOSS_SHARE * loss[0]


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a training: since which epoch, the evidence as a sentence with its numbers, what to try.

    epoch: a step, where the trace counts steps.
    """

    kind: str
    epoch: float | None
    evidence: str
    remedies: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"kind": self.kind, "epoch": self.epoch, "evidence": self.evidence, "remedies": list(self.remedies)}


class Symptoms(NamedTuple):
    """A-C-G-W of a training. Each is `unknown` where nothing tells it."""

    architecture: str = "unknown"
    convergence: str = "unknown"
    gradient: str = "unknown"
    weight: str = "unknown"


NOT_WATCHED: Final = "it was not watched: isorun.watch(model) in the training"
LARGER_RATE: Final = "a learning rate ten times as large"
_SMALLER_RATE: Final = ("smaller learning rate", "learning rate a tenth")
NOT_TOLD: Final = "no loss or accuracy by epoch: isorun.log(epoch=…, loss=…, accuracy=…)"


class AbstractDetector(abc.ABC):
    """Finds one kind of problem in a trace.

    Promises:
    - The same trace gives the same answer; nothing is read, written or trained.
    - No trace makes it raise: any list may be empty, any number NaN.
    - `lacks` says what it would need where it cannot tell; then `examine` is not asked.
    - The evidence is a sentence with the numbers it rests on.
    """

    kind: ClassVar[str] = ""
    remedies: ClassVar[tuple[str, ...]] = ()

    @abc.abstractmethod
    def lacks(self, trace: Trace) -> str:
        """What is missing in the trace to look for this problem, in words; empty where nothing is."""

    @abc.abstractmethod
    def examine(self, trace: Trace) -> Problem | None:
        """The problem, or None."""

    def lacks_samples(self, trace: Trace) -> str:
        """What a detector lacks that looks inside a training and must know whether it converges."""
        if not trace.samples:
            return NOT_WATCHED
        told = (trace.loss, trace.accuracy, trace.val_loss, trace.val_accuracy)
        return "" if any(len(curve.values) >= 2 for curve in told) else NOT_TOLD

    def found(self, epoch: float | None, evidence: str) -> Problem:
        """A problem of this detector's kind."""
        return Problem(self.kind, epoch, evidence, self.remedies)


@dataclass(frozen=True, slots=True)
class Examination:
    """What the detectors say of one training. unexamined: kind of problem to what is missing to look for it."""

    trace: Trace
    problems: tuple[Problem, ...]
    unexamined: Mapping[str, str]
    symptoms: Symptoms

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "run": self.trace.name,
            "clock": self.trace.clock,
            "problems": [problem.to_json() for problem in self.problems],
            "unexamined": dict(self.unexamined),
            "symptoms": self.symptoms._asdict(),
        }


def all_detectors() -> tuple[AbstractDetector, ...]:
    """Isorun's own detectors, then those of other distributions."""
    from isorun import plugins  # noqa: PLC0415  reading what is installed takes long

    own = [_own_detector(kind) for kind in KINDS]
    brought = [plugins.load(plugins.DETECTORS, name) for name in plugins.brought(plugins.DETECTORS)]
    for found in brought:
        if not (isinstance(found, type) and issubclass(found, AbstractDetector) and found.kind):
            raise PluginError(
                "a detector cannot be used",
                found=f"{found!r}",
                allowed="a class derived from isorun.diagnose.AbstractDetector, with a kind",
            )
    return tuple(found() for found in (*own, *brought))


def _own_detector(kind: str) -> type[AbstractDetector]:
    """The class that is named as its kind, in the file that is."""
    module = importlib.import_module(f"isorun.diagnose.detectors.{kind.replace('-', '_')}")
    found: type[AbstractDetector] = getattr(module, kind.title().replace("-", ""))
    return found


def examine(trace: Trace, asked: Iterable[AbstractDetector] | None = None) -> Examination:
    """Ask every detector, or those given."""
    problems: list[Problem] = []
    unexamined: dict[str, str] = {}
    for detector in all_detectors() if asked is None else asked:
        if missing := detector.lacks(trace):
            unexamined[detector.kind] = missing
        elif (problem := detector.examine(trace)) is not None:
            problems.append(problem)
    return Examination(trace, _agreeing(problems), unexamined, _symptoms(trace, problems, unexamined))


def _agreeing(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """With one advice on the learning rate: what explodes, swings or dies gets nowhere for that it is too large."""
    smaller = any(word in advice for one in problems for advice in one.remedies for word in _SMALLER_RATE)
    if not smaller:
        return tuple(problems)
    return tuple(
        replace(one, remedies=tuple(advice for advice in one.remedies if advice != LARGER_RATE)) for one in problems
    )


def symptoms_of(trace: Trace) -> Symptoms:
    """A-C-G-W: architecture, convergence, gradient, weight."""
    return examine(trace).symptoms


def _symptoms(trace: Trace, problems: Sequence[Problem], unexamined: Mapping[str, str]) -> Symptoms:
    kinds = {problem.kind for problem in problems}

    def first(**names: str) -> str:
        """The name of the first problem that was found; unknown where none of them was looked for."""
        found = next((name for name, kind in names.items() if kind in kinds), "")
        looked = any(kind not in unexamined for kind in names.values())
        return found or ("normal" if looked else "unknown")

    return Symptoms(
        architecture=_architecture(trace),
        convergence=first(slow="slow-convergence", oscillating="oscillation"),
        gradient=first(exploding="exploding-gradient", vanishing="vanishing-gradient", dying="dying-relu"),
        weight=first(exploding="exploding-weights"),
    )


_ARCHITECTURES: Final = {
    "residual": ("resnet", "residual", "res_net"),
    "depthwise": ("xception", "depthwise", "separable"),
    "inverted-bottleneck": ("efficient", "mobilenet", "inverted"),
    "attention": ("transformer", "attention", "bert", "vit"),
    "plain": ("vanilla", "plain", "mlp", "cnn", "conv", "dense"),
}


def _architecture(trace: Trace) -> str:
    """As the model was seen to be built, else as a text among the parameters names it."""
    seen = next((row.architecture for row in trace.rows if row.architecture), "")
    texts = [str(value).lower() for value in trace.parameters.values() if isinstance(value, str)]
    named = (kind for kind, words in _ARCHITECTURES.items() if any(word in text for text in texts for word in words))
    return seen or next(named, "unknown")


@dataclass(frozen=True, slots=True)
class Diagnosis(Told):
    """What was found in the runs of a study, or in one run. `print` tells it."""

    told_as: ClassVar[str] = "diagnosis"

    subject: str
    examinations: tuple[Examination, ...]

    @property
    def problems(self) -> tuple[Problem, ...]:
        """All problems, run by run."""
        return tuple(problem for item in self.examinations for problem in item.problems)

    @property
    def common(self) -> dict[str, int]:
        """In how many runs each kind of problem is, the most frequent first."""
        kinds = [problem.kind for problem in self.problems]
        return dict(sorted(((kind, kinds.count(kind)) for kind in dict.fromkeys(kinds)), key=lambda item: -item[1]))

    @property
    def unexamined(self) -> dict[str, str]:
        """The kinds of problems that were looked for in no run, and what was missing."""
        asked = [item.unexamined for item in self.examinations]
        return {kind: why for kind, why in (asked[0] if asked else {}).items() if all(kind in item for item in asked)}

    @property
    def looked(self) -> bool:
        """Whether any kind of problem could be looked for."""
        return not set(KINDS) <= set(self.unexamined)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON: all problems, each with its run, and what is said of every run."""
        return {
            "subject": self.subject,
            "problems": [
                {"run": item.trace.name, **problem.to_json()} for item in self.examinations for problem in item.problems
            ],
            "common": self.common,
            "unexamined": self.unexamined,
            "runs": [item.to_json() for item in self.examinations],
        }


def _curve(record: RunRecord, names: Iterable[str]) -> Curve:
    series = next((record.series[name] for name in names if name in record.series), None)
    return _NOT_TOLD if series is None else Curve(tuple(series.steps), tuple(series.values))


def _counts_steps(curves: Iterable[Curve], rows: Iterable[Any]) -> bool:
    """Whether a record's places are steps, which it does not say itself.

    A watched training tells: its rows have the epochs that were logged. Else places that are far from each other, or
    more than trainings have epochs, are steps.
    """
    places = [curve.epochs for curve in curves if len(curve.epochs) > 1]
    marked = [row.get("epoch") is not None for row in rows if isinstance(row, Mapping)]
    if not places or any(marked):
        return False
    gaps = [after - before for one in places for before, after in itertools.pairwise(one) if after > before]
    return bool(marked) or max(map(max, places)) > _MOST_EPOCHS or min(gaps, default=0.0) > _WIDEST_GAP


def _condensed(curves: Mapping[str, Curve]) -> dict[str, Curve]:
    """Curves with about as many points as the training has epochs: one logged at every step becomes means of blocks.

    How many epochs there were, and which, is told by the curve with the fewest points.
    """
    known = [curve for curve in curves.values() if len(curve.values) >= _FEWEST_EPOCHS]
    fewest = min(known, key=lambda curve: len(curve.values), default=_NOT_TOLD)
    epochs = min(len(fewest.values) or _MOST_EPOCHS, _MOST_EPOCHS)
    places = fewest.epochs if len(fewest.values) == epochs else ()
    return {
        name: _blocks(curve, epochs, places) if len(curve.values) >= _STEPS_AN_EPOCH * epochs else curve
        for name, curve in curves.items()
    }


def _blocks(curve: Curve, count: int, places: Sequence[float]) -> Curve:
    """Means of so many blocks. places: where they are; none for where each of them ends."""
    size = len(curve.values)
    edges = [round(place * size / count) for place in range(count + 1)]
    parts = [slice(*edge) for edge in itertools.pairwise(edges)]
    return Curve(
        tuple(places) or tuple(curve.epochs[part][-1] for part in parts),
        tuple(math.fsum(curve.values[part]) / len(curve.values[part]) for part in parts),
    )


def _in_epochs(rows: Sequence[WatchedRow]) -> tuple[WatchedRow, ...]:
    """A sample that was taken within an epoch belongs to the one whose end was marked next."""
    found: list[WatchedRow] = []
    epoch = None
    for row in reversed(rows):
        epoch = epoch if row.epoch is None else row.epoch
        found.append(row if row.epoch == epoch else replace(row, epoch=epoch))
    return tuple(reversed(found))


def _told_curve(rows: Iterable[WatchedRow], name: str) -> Curve:
    told = [(row.epoch, row.told[name]) for row in rows if name in row.told]
    return Curve(
        tuple(float(place) if epoch is None else epoch for place, (epoch, _) in enumerate(told)),
        tuple(value for _, value in told),
    )


def _number(value: Any, otherwise: float) -> float:
    try:
        return number_from_json(value)
    except (TypeError, ValueError):
        return otherwise


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else ()


def _numbers(value: Any) -> tuple[float, ...]:
    return tuple(_number(item, math.nan) for item in _list(value))


def _by_name(value: Any) -> dict[str, float]:
    return {str(name): _number(item, math.nan) for name, item in value.items()} if isinstance(value, Mapping) else {}
