"""What repeats within seeds say: shares of the variance, seed by seed, and whether training had stopped improving."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import numpy as np

from isorun.analysis.spreads.spread import spread
from isorun.report.figures.description import Figure
from isorun.report.figures.distributions import BoxRow, RunValue, box_figure
from isorun.report.numbers import UNKNOWN, fixed, p_value
from isorun.report.tables import Column, Table
from isorun.zoo.studies.ase20.cells import POINTS
from isorun.zoo.studies.ase20.nested import RULES, Nested, NestedRun, SeedRuns

__all__ = ["nested_figures", "nested_sentences", "nested_tables"]

_RULE: Final = "best-loss"


def nested_sentences(nested: Nested) -> Iterator[str]:
    """What may be claimed; nothing below the least numbers of seeds and repeats."""
    components = nested.fixed.components(_RULE)
    if not nested.is_enough or components is None or components.within_share is None:
        return
    seeds, runs = len(nested.fixed.by_seed), len(nested.fixed.runs)
    if components.within == 0.0:
        yield f"{nested.network}, {runs} runs of {seeds} seeds: repeats of a seed do not differ: no kernel noise."
        return
    yield (
        f"{nested.network} on {nested.data}, {runs} runs of {seeds} seeds: {_share(components.within_share)} % of the "
        f"variance of the accuracy is kernel noise within seeds (95 % interval "
        f"{_span(components.within_share_interval)} %), {_share(components.share)} % is the seed."
    )
    found = nested.disagreement
    if found is not None and found.ratio is not None:
        yield (
            f"Two runs of one seed give another answer on {_share(found.within)} % of the test images, two runs of two "
            f"seeds on {_share(found.between)} %: {_share(found.ratio)} % as many (95 % interval "
            f"{_span(found.ratio_interval)} %)."
        )
    if nested.deterministic is not None:
        yield _deterministic(nested, nested.deterministic)


def _deterministic(nested: Nested, found: SeedRuns) -> str:
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
        Column("judged at", key=True),
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
    return Table("nested", title, columns, tuple(_share_row(nested, rule) for rule in RULES), notes)


def _share_row(nested: Nested, rule: str) -> tuple[str, ...]:
    every = spread(value for values in nested.fixed.values(rule) for value in values)
    found = nested.fixed.components(rule)
    head = (rule, str(len(nested.fixed.by_seed)), str(every.n), POINTS.value(every.mean, every.sd))
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
    if not nested.is_enough:
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


def nested_figures(nested: Nested) -> Iterator[Figure]:
    """The accuracy of every fixed-seed run, a row a seed."""
    rows = [
        BoxRow(f"seed {seed}", spread(run.accuracy[_RULE] for run in runs), _dots(runs), 0)
        for seed, runs in nested.fixed.by_seed.items()
    ]
    title = f"{nested.network} on {nested.data}: test accuracy of every fixed-seed run, by seed"
    sentence = next(nested_sentences(nested), "Too few seeds or repeats to judge.")
    figure = box_figure("nested", title, "test accuracy (%)", rows, sentence, factor=100.0)
    if figure is not None:
        yield figure


def _dots(runs: tuple[NestedRun, ...]) -> tuple[RunValue, ...]:
    return tuple(RunValue(f"{run.seed}/{run.repeat}", run.accuracy[_RULE]) for run in runs)


def _share(ratio: float | None) -> str:
    """A share as percent, one decimal below 10 %."""
    return UNKNOWN if ratio is None else fixed(100.0 * ratio, 1 if abs(ratio) < 0.1 else 0)


def _span(interval: tuple[float, float] | None) -> str:
    return UNKNOWN if interval is None else " to ".join(_share(end) for end in interval)
