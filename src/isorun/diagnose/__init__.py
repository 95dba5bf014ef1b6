"""Training problems: the story of one training, what detectors find in it, and its symptoms.

A `Trace` is made from a record, from a watcher or from an engine's trial. `examine` asks every detector; each is a file
in `detectors/`, and other distributions bring more (entry-point group `isorun.detectors`). Symptoms, on which
searches rest, are told by isorun's own alone. Nothing here trains, reads files or prints.
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
from isorun.errors import PluginError, foreign_errors
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
    "examine",
    "own_detectors",
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
_LEARNING_LOSS_SHARE: Final = 0.8
_LEARNING_FALL: Final = 0.05
_LARGEST_SHARE: Final = 1.001
_LARGEST_PERCENT: Final = 100.1
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

    @property
    def fall(self) -> float:
        """How far it came down from its start at its best; 0 where it tells nothing."""
        return self.finite[0] - min(self.finite) if self.finite else 0.0

    @property
    def is_signed(self) -> bool:
        """Whether it has negative values, as logarithms of densities have: then a share of a value says nothing."""
        return min(self.finite, default=0.0) < 0.0


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
    places of the curves count, "epoch" or "step". watch_ended: why watching ended before the training did.
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
    watch_ended: str = ""

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
            watch_ended=next((note.message for note in record.notes if note.code == "watch-ended"), ""),
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
        watch_ended: str = "",
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
        about = {"name": name, "state": state, "parameters": parameters or {}, "watch_ended": watch_ended}
        return cls._told_by(found, rows, **about)

    @classmethod
    def _told_by(cls, curves: Mapping[str, Curve], rows: Iterable[Any], **about: Any) -> Self:
        """A curve that is empty is made of what the rows were told."""
        watched = _in_epochs([WatchedRow.from_row(row) for row in rows if isinstance(row, Mapping)])
        told = {name: _told_curve(watched, name) for name in TOLD}
        told |= {name: curve for name, curve in curves.items() if curve.values}
        return cls(**_in_shares(told), rows=watched, **about)

    @property
    def points(self) -> str:
        """What the points of a curve are called."""
        return "epochs" if self.clock == "epoch" else "logged values"

    @property
    def samples(self) -> tuple[WatchedRow, ...]:
        """The rows that hold a sample of the inside."""
        return tuple(row for row in self.rows if row.layers)

    @property
    def unwatched(self) -> str:
        """Why the inside is not known, where it is not."""
        return f"watching it ended early ({self.watch_ended})" if self.watch_ended else NOT_WATCHED

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

        An accuracy of 0.6, or one that has risen by 0.2; without an accuracy a loss that fell to half of its start, or
        by a fifth and still falls by a twentieth in the second half: where nothing is known but the mean, it stays.
        """
        if self.judged.values:
            first = next(iter(self.judged.finite), math.nan)
            return self.best_accuracy >= _LEARNED_ACCURACY or self.best_accuracy - first >= _LEARNED_RISE
        loss = self.loss.values or self.val_loss.values
        if len(loss) < 2 or not all(map(math.isfinite, loss)):
            return False
        still_falls = 0.0 <= loss[-1] <= (1 - _LEARNING_FALL) * loss[len(loss) // 2]
        return 0.0 <= loss[-1] < (_LEARNING_LOSS_SHARE if still_falls else _LEARNED_LOSS_SHARE) * loss[0]


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
            return trace.unwatched
        told = (trace.loss, trace.accuracy, trace.val_loss, trace.val_accuracy)
        return "" if any(len(curve.values) >= 2 for curve in told) else NOT_TOLD

    def found(self, epoch: float | None, evidence: str) -> Problem:
        """A problem of this detector's kind."""
        return Problem(self.kind, epoch, evidence, self.remedies)


@dataclass(frozen=True, slots=True)
class Examination:
    """What the detectors say of one training. unexamined: kind of problem to what is missing to look for it.

    failed: those of the unexamined whose detector, which another distribution brings, is broken.
    """

    trace: Trace
    problems: tuple[Problem, ...]
    unexamined: Mapping[str, str]
    symptoms: Symptoms
    failed: frozenset[str] = frozenset()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "run": self.trace.name,
            "clock": self.trace.clock,
            "problems": [problem.to_json() for problem in self.problems],
            "unexamined": dict(self.unexamined),
            "symptoms": self.symptoms._asdict(),
        }


def own_detectors() -> tuple[AbstractDetector, ...]:
    """Isorun's own detectors, in the order of KINDS."""
    return tuple(_own_detector(kind)() for kind in KINDS)


def _own_detector(kind: str) -> type[AbstractDetector]:
    """The class that is named as its kind, in the file that is."""
    module = importlib.import_module(f"isorun.diagnose.detectors.{kind.replace('-', '_')}")
    found: type[AbstractDetector] = getattr(module, kind.title().replace("-", ""))
    return found


def examine(trace: Trace, asked: Iterable[AbstractDetector] | None = None) -> Examination:
    """Ask every detector, isorun's own first, or those given.

    One that another distribution brings and that fails is no reason to say nothing: it is named among the unexamined.
    """
    problems, unexamined = _told_by_all(trace, own_detectors() if asked is None else asked)
    symptoms = _symptoms(trace, problems, unexamined)  # by isorun's own, whatever kinds others call theirs
    failed: dict[str, str] = {}
    if asked is None:
        more, lacking, failed = _told_by_brought(trace)
        problems, unexamined = [*problems, *more], {**unexamined, **lacking, **failed}
    return Examination(trace, _agreeing(problems), unexamined, symptoms, frozenset(failed))


def _told_by_all(trace: Trace, detectors: Iterable[AbstractDetector]) -> tuple[list[Problem], dict[str, str]]:
    """The problems, and what is missing to look for others."""
    problems: list[Problem] = []
    lacking: dict[str, str] = {}
    for detector in detectors:
        if missing := detector.lacks(trace):
            lacking[detector.kind] = missing
        elif (problem := detector.examine(trace)) is not None:
            problems.append(problem)
    return problems, lacking


def _told_by_brought(trace: Trace) -> tuple[list[Problem], dict[str, str], dict[str, str]]:
    """What detectors of other distributions say: problems, what is missing to look for others, and which failed."""
    from isorun import plugins  # noqa: PLC0415  reading what is installed takes long

    problems: list[Problem] = []
    lacking: dict[str, str] = {}
    failed: dict[str, str] = {}
    for name in plugins.brought(plugins.DETECTORS):
        try:
            found, missing = _told_by_one(trace, name, plugins.load(plugins.DETECTORS, name))
        except PluginError as error:
            failed[_no_own_kind(name, name)] = ": ".join(filter(None, (error.what, error.found)))
        else:
            problems += found
            lacking |= {_no_own_kind(kind, name): why for kind, why in missing.items()}
    return problems, lacking, failed


def _told_by_one(trace: Trace, name: str, detector: Any) -> tuple[list[Problem], dict[str, str]]:
    """What a detector of another distribution says; PluginError for whatever is wrong with it."""
    with foreign_errors(lambda said: PluginError(f"the detector {name!r} failed", found=said), but=()):
        if not (isinstance(detector, type) and issubclass(detector, AbstractDetector)):
            raise TypeError(f"{detector!r} is no class derived from isorun.diagnose.AbstractDetector")
        if not detector.kind:
            raise TypeError(f"{detector!r} has no kind")
        problems, lacking = _told_by_all(trace, [detector()])
        _refuse_others(problems, Problem)
        _refuse_others(lacking.values(), str)
    return problems, lacking


def _refuse_others(told: Iterable[object], kind: type) -> None:
    """A detector may answer anything; what is neither a problem nor words is an error of its own."""
    for one in told:
        if not isinstance(one, kind):
            raise TypeError(f"it answers {type(one).__name__} instead of {kind.__name__}")


def _no_own_kind(kind: str, name: str) -> str:
    """Where a brought detector calls itself as one of isorun's own: that one has looked."""
    return f"{kind} (by the detector {name!r})" if kind in KINDS else kind


def _agreeing(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """With one advice on the learning rate: what explodes, swings or dies gets nowhere for that it is too large."""
    smaller = any(word in advice for one in problems for advice in one.remedies for word in _SMALLER_RATE)
    if not smaller:
        return tuple(problems)
    return tuple(
        replace(one, remedies=tuple(advice for advice in one.remedies if advice != LARGER_RATE)) for one in problems
    )


def symptoms_of(trace: Trace) -> Symptoms:
    """A-C-G-W: architecture, convergence, gradient, weight. Isorun's own detectors tell it."""
    return _symptoms(trace, *_told_by_all(trace, own_detectors()))


def _symptoms(trace: Trace, problems: Sequence[Problem], unexamined: Mapping[str, str]) -> Symptoms:
    kinds = {problem.kind for problem in problems}

    def first(**names: str) -> str:
        """The name of the first problem that was found; unknown where none of them was looked for."""
        found = next((name for name, kind in names.items() if kind in kinds), "")
        looked = any(kind not in unexamined for kind in names.values())
        return found or ("normal" if looked else "unknown")

    convergence = first(slow="slow-convergence", oscillating="oscillation")
    went_to_pieces = not all(map(math.isfinite, trace.loss.values or trace.val_loss.values))
    if convergence == "normal" and went_to_pieces and not trace.learns:
        convergence = "unknown"  # no detector judges a loss that is no number, so nobody says that it converged
    return Symptoms(
        architecture=_architecture(trace),
        convergence=convergence,
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
        """The kinds that were looked for in no run, and what was missing; and whose detector failed in any."""
        asked = [item.unexamined for item in self.examinations]
        nowhere = {kind: why for kind, why in (asked[0] if asked else {}).items() if all(kind in one for one in asked)}
        told = ((item, kind, why) for item in self.examinations for kind, why in item.unexamined.items())
        return nowhere | {kind: why for item, kind, why in told if kind in item.failed}

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


def _in_shares(curves: Mapping[str, Curve]) -> dict[str, Any]:
    """Accuracies as shares of 1, also where they were told in percent, and not at all where they are neither.

    One that exceeds 1 anywhere is in percent, and so is the one beside it, unless as it stands it is the closer one.
    Rewards and counts, which are negative or exceed 100, are no accuracies by whatever name.
    """
    found: dict[str, Any] = dict(curves)
    accuracies = {name: curves[name] for name in ("accuracy", "val_accuracy") if name in curves}
    largest = {name: max(curve.finite, default=0.0) for name, curve in accuracies.items()}
    most = max(largest.values(), default=0.0)
    for name, curve in accuracies.items():
        own = largest[name]
        if curve.is_signed or most > _LARGEST_PERCENT:
            found[name] = _NOT_TOLD
        elif most > _LARGEST_SHARE and abs(own - most) <= abs(100.0 * own - most):
            found[name] = Curve(curve.epochs, tuple(value / 100.0 for value in curve.values))
    return found


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
