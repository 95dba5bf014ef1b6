"""Seed against kernel noise: repeats within seeds, with deterministic runs of the same seeds beside them.

At level fixed-seed the runs of one seed share initial weights and order, so that only kernels tell them apart: what
varies within seeds is kernel noise, what varies between seeds beyond it is the seed. With deterministic kernels the
seed is all that is left.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from isorun.analysis.evidence.run_units import FINAL_WEIGHTS
from isorun.analysis.spreads import Spread, spread
from isorun.analysis.spreads.nested import NestedDisagreement, NestedVariance, nested_disagreement, nested_variance
from isorun.analysis.studies.class_values import predicted_and_labels
from isorun.analysis.studies.group_result import GroupResult
from isorun.report import UNKNOWN, Column, Table, fixed, p_value
from isorun.report.figures.description import Figure
from isorun.report.figures.distributions import BoxRow, RunValue, box_figure
from isorun.study.cells import Level
from isorun.study.records import RunRecord, RunState
from isorun.zoo.studies.ase20.design import METRIC, SELECTIONS
from isorun.zoo.studies.ase20.measured import PartResult
from isorun.zoo.studies.ase20.tables import POINTS

__all__ = [
    "FEWEST_REPEATS",
    "FEWEST_SEEDS",
    "JUDGED",
    "Convergence",
    "Nested",
    "NestedRun",
    "RunsBySeed",
    "nested_figures",
    "nested_of",
    "nested_sentences",
    "nested_tables",
]

LAST: Final = "last-epoch"
JUDGED: Final = (*SELECTIONS, LAST)
FEWEST_SEEDS: Final = 5
FEWEST_REPEATS: Final = 3
"""Below these nothing is said about shares: the interval would be nearly everything there is."""


@dataclass(frozen=True, slots=True)
class NestedRun:
    """One run. accuracy and epoch: under each selection and after the last epoch.

    per_class: class to accuracy at the best validation loss.
    """

    seed: int
    repeat: int
    accuracy: Mapping[str, float]
    epoch: Mapping[str, int]
    per_class: Mapping[str, float]
    weights: str


@dataclass(frozen=True, slots=True)
class RunsBySeed:
    """All runs at one level, seed by seed."""

    level: Level
    runs: tuple[NestedRun, ...]

    @property
    def by_seed(self) -> Mapping[int, tuple[NestedRun, ...]]:
        """Seed to its runs."""
        seeds = dict.fromkeys(run.seed for run in self.runs)
        return {seed: tuple(run for run in self.runs if run.seed == seed) for seed in seeds}

    @property
    def fewest_repeats(self) -> int:
        """Runs of the seed that has the fewest."""
        return min((len(runs) for runs in self.by_seed.values()), default=0)

    @property
    def is_enough(self) -> bool:
        """Whether there are seeds and repeats enough to speak of shares."""
        return len(self.by_seed) >= FEWEST_SEEDS and self.fewest_repeats >= FEWEST_REPEATS

    @property
    def different_weights(self) -> int:
        """Different final weights, added up over the seeds."""
        return sum(len({run.weights for run in runs}) for runs in self.by_seed.values())

    def values(self, selection: str) -> list[list[float]]:
        """Accuracies under a selection, a list a seed."""
        return [[run.accuracy[selection] for run in runs] for runs in self.by_seed.values()]

    def between(self, selection: str) -> Spread:
        """The spread of the seeds' means."""
        return spread(float(np.mean(values)) for values in self.values(selection))

    def components(self, selection: str) -> NestedVariance | None:
        """Variance between and within seeds."""
        return nested_variance(self.values(selection))


@dataclass(frozen=True, slots=True)
class Convergence:
    """Whether the trainings had stopped improving: means over all runs, epoch by epoch."""

    val_loss: tuple[float, ...]
    val_accuracy: tuple[float, ...]
    test_accuracy: tuple[float, ...]

    @property
    def epochs(self) -> int:
        """How many epochs every run had."""
        return len(self.val_loss)

    @property
    def late_gain(self) -> float | None:
        """By how much the last third of the epochs raised the mean validation accuracy; None below three epochs."""
        before = self.val_accuracy[: -(self.epochs // 3) or None]
        return self.val_accuracy[-1] - before[-1] if self.epochs >= 3 else None


@dataclass(frozen=True, slots=True)
class Nested:
    """The whole design. deterministic: None where none was run. disagreement: of answers after the last epoch."""

    network: str
    data: str
    fixed: RunsBySeed
    deterministic: RunsBySeed | None
    disagreement: NestedDisagreement | None
    convergence: Convergence

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, with every run."""
        return {
            "network": self.network,
            "data": self.data,
            "fixed_seed": _level_json(self.fixed),
            "deterministic": self.deterministic and _level_json(self.deterministic),
            "disagreement": self.disagreement and self.disagreement.to_json(),
            "convergence": {
                "epochs": self.convergence.epochs,
                "val_loss": list(self.convergence.val_loss),
                "val_accuracy": list(self.convergence.val_accuracy),
                "test_accuracy": list(self.convergence.test_accuracy),
                "late_gain": self.convergence.late_gain,
            },
        }


def nested_of(parts: Sequence[PartResult], records: Mapping[str, Sequence[RunRecord]]) -> Nested | None:
    """From the parts with repeats within seeds; None where none of them has a run at level fixed-seed."""
    nested = [part for part in parts if part.planned.nested and part.result]
    levels = {item.level: (part, item) for part in nested for item in _levels(part, records)}
    if Level.FIXED_SEED not in levels:
        return None
    part, fixed = levels[Level.FIXED_SEED]
    finished = _finished(records.get(part.planned.name, ()))
    return Nested(
        part.planned.networks[0].name,
        part.planned.data,
        fixed,
        levels[Level.DETERMINISTIC][1] if Level.DETERMINISTIC in levels else None,
        _disagreement(finished),
        _convergence(finished),
    )


def _levels(part: PartResult, records: Mapping[str, Sequence[RunRecord]]) -> list[RunsBySeed]:
    groups = part.result.groups if part.result else ()
    finished = _finished(records.get(part.planned.name, ()))
    return [RunsBySeed(group.key.level, _runs(group, finished)) for group in groups if group.finished]


def _runs(group: GroupResult, records: Sequence[RunRecord]) -> tuple[NestedRun, ...]:
    by_id = {record.run_id: record for record in records}
    judged = {one.selection.name: {run.run_id: run for run in one.runs} for one in group.selections}
    ids = [run for run in by_id if all(METRIC in _values(found, run) for found in judged.values())]
    return tuple(
        NestedRun(
            seed=by_id[name].cell.seed or 0,
            repeat=by_id[name].cell.repeat,
            accuracy={
                **{selection: found[name].selected.values[METRIC] for selection, found in judged.items()},
                LAST: by_id[name].series[METRIC].values[-1],
            },
            epoch={
                **{selection: int(found[name].selected.epochs or 0) for selection, found in judged.items()},
                LAST: len(by_id[name].series[METRIC].values),
            },
            per_class=judged[JUDGED[0]][name].selected.per_class.get(METRIC, {}),
            weights=by_id[name].digests.get(FINAL_WEIGHTS, ""),
        )
        for name in sorted(ids, key=lambda name: (by_id[name].cell.seed or 0, by_id[name].cell.repeat))
    )


def _values(found: Mapping[str, Any], run: str) -> Mapping[str, float]:
    return found[run].selected.values if run in found else {}


def _finished(records: Sequence[RunRecord]) -> list[RunRecord]:
    return [record for record in records if record.state is RunState.FINISHED]


def _disagreement(records: Sequence[RunRecord]) -> NestedDisagreement | None:
    found = [(record.cell.seed, predicted_and_labels(record, None)) for record in records]
    answers = [(seed, pair[0]) for seed, pair in found if pair is not None]
    if len({len(rows) for _, rows in answers}) != 1:
        return None
    return nested_disagreement(np.array([rows for _, rows in answers]), [seed for seed, _ in answers])


def _convergence(records: Sequence[RunRecord]) -> Convergence:
    names = ("val_loss", "val_accuracy", METRIC)
    series = [[record.series[name].values for record in records if name in record.series] for name in names]
    shortest = min((len(values) for found in series for values in found), default=0)
    means = [
        tuple(float(np.mean([values[epoch] for values in found])) for epoch in range(shortest)) for found in series
    ]
    return Convergence(*means)


def _level_json(found: RunsBySeed) -> dict[str, Any]:
    components = {selection: found.components(selection) for selection in JUDGED}
    between = {selection: found.between(selection) for selection in JUDGED}
    return {
        "seeds": len(found.by_seed),
        "runs": len(found.runs),
        "different_final_weights": found.different_weights,
        "components": {selection: item and item.to_json() for selection, item in components.items()},
        "seed_means": {
            selection: {"mean": item.mean, "sd": item.sd, "sd_ci90": item.sd_interval}
            for selection, item in between.items()
        },
        "values": [
            {
                "seed": run.seed,
                "repeat": run.repeat,
                **{
                    selection: {"test_accuracy": run.accuracy[selection], "epoch": run.epoch[selection]}
                    for selection in run.accuracy
                },
                "per_class": dict(run.per_class),
                "weights": run.weights[:16],
            }
            for run in found.runs
        ],
    }


_RULE: Final = "best-loss"


def nested_sentences(nested: Nested) -> Iterator[str]:
    """What may be claimed; nothing below the least numbers of seeds and repeats."""
    shares = _share_sentence(nested.network, nested.data, nested.fixed)
    if not shares:
        return
    yield shares
    components = nested.fixed.components(_RULE)
    if components is None or components.within == 0.0:
        return
    found = nested.disagreement
    if found is not None and found.ratio is not None:
        yield (
            f"Two runs of one seed give another answer on {_share(found.within)} % of the test images, two runs of two "
            f"seeds on {_share(found.between)} %: {_share(found.ratio)} % as many (95 % interval "
            f"{_span(found.ratio_interval)} %)."
        )
    if nested.deterministic is not None:
        yield _deterministic(nested, nested.deterministic)


def _share_sentence(network: str, data: str, found: RunsBySeed) -> str:
    """Kernel noise against the seed; empty below the least numbers of seeds and repeats."""
    components = found.components(_RULE)
    if not found.is_enough or components is None or components.within_share is None:
        return ""
    seeds, runs = len(found.by_seed), len(found.runs)
    if components.within == 0.0:
        return f"{network}, {runs} runs of {seeds} seeds: repeats of a seed do not differ: no kernel noise."
    return (
        f"{network} on {data}, {runs} runs of {seeds} seeds: {_share(components.within_share)} % of the "
        f"variance of the accuracy is kernel noise within seeds (95 % interval "
        f"{_span(components.within_share_interval)} %), {_share(components.share)} % is the seed."
    )


def _deterministic(nested: Nested, found: RunsBySeed) -> str:
    alike = sum(len({run.weights for run in runs}) == 1 for runs in found.by_seed.values())
    spreads = " and ".join(
        f"{POINTS.difference(item.sd)} ({words})"
        for item, words in (
            (found.between(_RULE), "deterministic, between seeds"),
            (spread(value for values in nested.fixed.values(_RULE) for value in values), "fixed-seed, all runs"),
        )
    )
    seeds = len(found.by_seed)
    return (
        f"With deterministic kernels the runs of {alike} of {seeds} seeds are the same bit for bit; sd over seeds and "
        f"runs: {spreads} points."
    )


def nested_tables(nested: Nested) -> Iterator[Table]:
    """Shares, seeds, epochs."""
    yield _share_table(nested)
    yield _seed_table(nested)
    yield _epoch_table(nested)


def _share_table(nested: Nested) -> Table:
    columns = (
        Column("selection", key=True),
        Column("seeds"),
        Column("runs"),
        Column("mean", "%"),
        *(Column(title, group="sd (points)") for title in ("all runs", "seed", "kernels")),
        Column("kernels", "%", "share of the variance"),
        Column("95 % interval", "%", "share of the variance"),
        Column("F", group="do seeds differ?"),
        Column("p", group="do seeds differ?"),
    )
    notes = (
        "kernels: between runs of one seed, which only kernels tell apart. seed: what seeds differ by beyond that.",
        "Components by the analysis of variance; a seed's below 0 counts as 0. Intervals: exact F, for normal values.",
        *_disagreement_note(nested),
        *_too_few(nested),
    )
    title = f"Seed against kernel noise: {nested.network} on {nested.data} (ours; the paper has none)"
    return Table("nested", title, columns, tuple(_share_row(nested, selection) for selection in JUDGED), notes)


def _share_row(nested: Nested, selection: str) -> tuple[str, ...]:
    every = spread(value for values in nested.fixed.values(selection) for value in values)
    found = nested.fixed.components(selection)
    head = (selection, str(len(nested.fixed.by_seed)), str(every.n), POINTS.value(every.mean, every.sd))
    if found is None:
        return (*head, POINTS.difference(every.sd), *((UNKNOWN,) * 6))
    deviations = (POINTS.difference(math.sqrt(part), every.sd) for part in (found.between, found.within))
    shares = (_share(found.within_share), _span(found.within_share_interval))
    return (*head, POINTS.difference(every.sd), *deviations, *shares, fixed(found.f, 2), p_value(found.p))


def _disagreement_note(nested: Nested) -> Iterator[str]:
    found = nested.disagreement
    if found is not None and found.ratio is not None:
        yield (
            f"Answers after the last epoch: two runs of one seed differ on {_share(found.within)} % of "
            f"{found.examples:,} test images, of two on {_share(found.between)} %; ratio {_share(found.ratio)} %, "
            f"95 % interval {_span(found.ratio_interval)} % (jackknife over seeds)."
        )


def _too_few(nested: Nested) -> Iterator[str]:
    if not nested.fixed.is_enough:
        yield "Too few seeds or repeats to judge: nothing is claimed from this table."


def _seed_table(nested: Nested) -> Table:
    columns = (
        Column("seed", key=True),
        *(
            Column(title, group="fixed-seed")
            for title in ("runs", "weights", "mean (%)", "sd (points)", "lowest", "highest")
        ),
        *(Column(title, group="deterministic") for title in ("runs", "weights", "accuracy (%)")),
    )
    rows = tuple(_seed_row(nested, seed) for seed in nested.fixed.by_seed)
    note = f"Judged at {_RULE}. weights: how many different ones; 1: bit for bit the same."
    return Table("nested-seeds", "Repeats within seeds, seed by seed", columns, rows, (note,))


def _seed_row(nested: Nested, seed: int) -> tuple[str, ...]:
    runs = nested.fixed.by_seed[seed]
    beside = nested.deterministic.by_seed.get(seed, ()) if nested.deterministic else ()
    seen, still = (spread(run.accuracy[_RULE] for run in found) for found in (runs, beside))
    return (
        str(seed),
        *_counts(runs),
        POINTS.value(seen.mean, seen.sd),
        POINTS.difference(seen.sd),
        *(POINTS.value(value, seen.sd) for value in (seen.minimum, seen.maximum)),
        *_counts(beside),
        POINTS.value(still.mean, still.sd),
    )


def _counts(runs: tuple[NestedRun, ...]) -> tuple[str, str]:
    return str(len(runs)), str(len({run.weights for run in runs})) if runs else UNKNOWN


def _epoch_table(nested: Nested) -> Table:
    columns = (Column("epoch"), Column("val loss"), Column("val accuracy (%)"), Column("test accuracy (%)"))
    found = nested.convergence
    rows = tuple(
        (str(epoch), fixed(loss, 4), fixed(100 * val, 2), fixed(100 * test, 2))
        for epoch, (loss, val, test) in enumerate(
            zip(found.val_loss, found.val_accuracy, found.test_accuracy, strict=True), start=1
        )
    )
    return Table("nested-epochs", "Had training stopped improving?", columns, rows, tuple(_epoch_notes(nested)))


def _epoch_notes(nested: Nested) -> Iterator[str]:
    yield f"Means over {len(nested.fixed.runs)} fixed-seed runs."
    gain = nested.convergence.late_gain
    if gain is not None:
        yield f"The last third of the epochs changed the mean validation accuracy by {100 * gain:+.2f} points."
    picked = [run.epoch[_RULE] for run in nested.fixed.runs]
    if picked:
        among = f"median {float(np.median(picked)):g}, from {min(picked)} to {max(picked)}"
        yield f"Epoch of the best validation loss: {among} of {nested.convergence.epochs}."


def nested_figures(nested: Mapping[str, Any]) -> Iterator[Figure]:
    """The accuracy of every fixed-seed run, a row a seed, from the numbers."""
    network, data = nested["network"], nested["data"]
    fixed_seed = _runs_from_json(nested["fixed_seed"])
    rows = [
        BoxRow(f"seed {seed}", spread(run.accuracy[_RULE] for run in runs), _dots(runs), 0)
        for seed, runs in fixed_seed.by_seed.items()
    ]
    title = f"{network} on {data}: test accuracy of every fixed-seed run, by seed"
    sentence = _share_sentence(network, data, fixed_seed) or "Too few seeds or repeats to judge."
    figure = box_figure("nested", title, "test accuracy (%)", rows, sentence, factor=100.0)
    if figure is not None:
        yield figure


def _runs_from_json(told: Mapping[str, Any]) -> RunsBySeed:
    runs = (
        NestedRun(
            run["seed"],
            run["repeat"],
            {selection: run[selection]["test_accuracy"] for selection in JUDGED},
            {selection: run[selection]["epoch"] for selection in JUDGED},
            run["per_class"],
            run["weights"],
        )
        for run in told["values"]
    )
    return RunsBySeed(Level.FIXED_SEED, tuple(runs))


def _dots(runs: tuple[NestedRun, ...]) -> tuple[RunValue, ...]:
    return tuple(RunValue(f"{run.seed}/{run.repeat}", run.accuracy[_RULE]) for run in runs)


def _share(ratio: float | None) -> str:
    """A share as percent, one decimal below 10 %."""
    return UNKNOWN if ratio is None else fixed(100.0 * ratio, 1 if abs(ratio) < 0.1 else 0)


def _span(interval: tuple[float, float] | None) -> str:
    return UNKNOWN if interval is None else " to ".join(_share(end) for end in interval)
