"""What exactly changed the result: the effects of factors in sentences, tables and figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from isorun.analysis.factors import ALPHA, FactorEffect, FactorEffects, Interaction
from isorun.analysis.factors.contrasts import UnitDifference
from isorun.analysis.factors.rankings import Flips
from isorun.analysis.samples import Interval, Pairs, mean_of
from isorun.report import (
    UNKNOWN,
    Column,
    Listing,
    NumberStyle,
    Table,
    View,
    count,
    fixed,
    p_value,
    percentage,
    style_for,
    whole,
    without_constant_columns,
)
from isorun.report.figures.description import Figure
from isorun.report.figures.effects import ForestRow, forest, paired_change
from isorun.study.factors import ONE_AT_A_TIME

__all__ = ["change_figure", "effects_figure", "factors_view"]

_HELD: Final = ("approach", "config", "level")
_MOST_TOLD: Final = 4
_STREAM_NOTES: Final = (
    "Variance over seeds with one random stream following the seed, by that of the same seeds with all (streams=all).",
    "Shares need not add up to 100 %: what streams do only together is in none of them, and each has an error.",
)


def factors_view(result: FactorEffects, *, figures: bool = False) -> View:
    """Which factor moves the result and by how much, which do not as far as can be told, then all numbers."""
    tables = (
        _effects(result),
        _interactions(result),
        _shares(result),
        _flips(result),
        _orders(result),
        _digests(result),
    )
    drawn = (effects_figure(result), change_figure(result)) if figures and result.effects else ()
    return View(
        tuple(_sentences(result)),
        tuple(table for table in tables if table.rows),
        result.conditions,
        tuple(figure for figure in drawn if figure is not None),
        (Listing("what to know", result.notes),) if result.notes else (),
    )


def effects_figure(result: FactorEffects) -> Figure:
    """Every effect with its interval, against no difference."""
    style = style_for(result.metric.scale)
    rows = [
        ForestRow(
            _named(result, effect),
            _scaled(effect.tested.difference, style),
            _ends(effect.tested, style),
            effect.p_corrected,
        )
        for effect in result.effects
    ]
    unit = f" ({style.difference_unit})" if style.difference_unit else ""
    label = f"difference of {result.metric.name} from the baseline{unit}"
    return forest(rows, label, name="factor-effects")


def change_figure(result: FactorEffects) -> Figure | None:
    """How every unit changes under the largest effect of those that are told, else of all; None without pairs."""
    paired = [effect for effect in result.moving or result.effects if effect.tested.per_unit.size]
    if not paired:
        return None
    effect = max(paired, key=lambda one: abs(one.tested.difference or 0.0))
    style = style_for(result.metric.scale)
    pairs = Pairs(effect.tested.low * style.factor, effect.tested.high * style.factor)
    against = f"{effect.factor}={effect.baseline}"
    unit = f" ({style.unit})" if style.unit else ""
    title = f"{result.metric.name} of the same {result.noun}s under {against} and {effect.name}"
    return paired_change(pairs, against, effect.name, f"{result.metric.name}{unit}", name="factor-change", title=title)


def _scaled(value: float | None, style: NumberStyle) -> float | None:
    return None if value is None else value * style.factor


def _ends(tested: UnitDifference, style: NumberStyle) -> Interval | None:
    ends = tested.interval95
    return None if ends is None else (ends[0] * style.factor, ends[1] * style.factor)


def _sentences(result: FactorEffects) -> Iterator[str]:
    yield from _moved(result)
    yield from _not_moved(result)
    yield from _facts(result)
    yield from _streams(result)
    yield from _added(result)
    yield from _turned(result)


def _moved(result: FactorEffects) -> Iterator[str]:
    metric, moving = result.metric.name, result.moving
    if not moving:
        yield f"{_undecided(result)}{_unknown(result)}."
        return
    factors = list(dict.fromkeys(effect.factor for effect in moving))
    tests = sum(effect.tested.p is not None for effect in result.effects)
    corrected = f" after correction for {tests} tests" if tests > 1 else ""
    for place, effect in enumerate(moving[:_MOST_TOLD]):
        lead = f"{metric} is moved by {_listed(factors)}: " if place == 0 else ""
        yield (
            f"{lead}{_named(result, effect)} against {effect.baseline} changes {'it' if lead else metric} by "
            f"{_difference(result, effect.tested)} (95 % interval {_interval(result, effect.tested)}; "
            f"p {_equals(effect.p_corrected)}{corrected}; {count(effect.tested.units, result.noun)})."
        )
    if len(moving) > _MOST_TOLD:
        yield f"And {len(moving) - _MOST_TOLD} more differences are told: see the table."
    if unknown := _unknown(result):
        yield f"{unknown[2].upper()}{unknown[3:]}."


def _undecided(result: FactorEffects) -> str:
    metric = result.metric.name
    tested = [effect for effect in result.effects if effect.tested.p is not None]
    withheld = next((effect for effect in tested if effect.why_not and _is_small(effect.p_corrected)), None)
    if withheld is not None:
        return f"Undecided: {_named(result, withheld)} differs, but no claim is made: {withheld.why_not}"
    units = max((effect.tested.units for effect in result.effects), default=0)
    if not units:
        return f"Undecided: there is nothing to compare by {metric}"
    if units == 1:
        return (
            f"Undecided: from one {result.noun} no test is possible. What happened to it is told below as a fact; "
            f"whether {metric} moves in general is not known"
        )
    if not any(effect.changes.values for effect in result.effects) and not tested:
        return (
            f"Undecided: no factor changed {metric} in any of {count(units, result.noun)}, so there is nothing to test"
        )
    return f"Undecided: no factor is told to move {metric}, as far as {count(units, result.noun)} can tell"


def _unknown(result: FactorEffects) -> str:
    """The values that could not be held against the baseline, and which side never ran: part of the verdict."""
    by_reason: dict[str, list[str]] = {}
    for effect in result.effects:
        if not effect.tested.units and effect.why_not:
            by_reason.setdefault(effect.why_not, []).append(_named(result, effect))
    reasons = (f"of {_listed(names)} nothing is known: {reason}" for reason, names in by_reason.items())
    return "".join(f"; {text}" for text in reasons)


def _is_small(p: float | None) -> bool:
    return p is not None and p < ALPHA


def _not_moved(result: FactorEffects) -> Iterator[str]:
    """What could still be hidden in effects that are not told."""
    style = style_for(result.metric.scale)
    open_ones = [
        effect
        for effect in result.effects
        if not effect.is_claimed and effect.came_about and effect.tested.interval95 and not effect.why_not
    ]
    bounds = [
        f"{_named(result, effect)}: {style.difference(max(map(abs, effect.tested.interval95)))}"
        for effect in open_ones
        if effect.tested.interval95
    ]
    if bounds:
        unit = f" in {style.difference_unit}" if style.difference_unit else ""
        lead = f"Not told from the baseline; the largest difference{unit} that the interval leaves open"
        yield f"{lead}: {'; '.join(bounds)}."


def _facts(result: FactorEffects) -> Iterator[str]:
    """What happened to the seeds that ran, whatever it says about others."""
    missed = [_named(result, effect) for effect in result.effects if not effect.came_about]
    if missed:
        yield f"Not come about as asked, so that its numbers are about something else: {_listed(missed)}."
    if len({effect.held for effect in result.effects}) > 1 and any(effect.tested.p for effect in result.effects):
        if any(effect.changes.pairs for effect in result.effects):
            yield "What happened to single seeds is in the columns moved and weights."
        return
    by_fact: dict[str, list[str]] = {}
    for effect in result.effects:
        if effect.came_about and effect.changes.pairs:
            by_fact.setdefault(_fact(result, effect), []).append(_named(result, effect))
    for fact, names in by_fact.items():
        yield f"{_listed(names)}: {fact}."


def _fact(result: FactorEffects, effect: FactorEffect) -> str:
    changes, metric, style = effect.changes, result.metric.name, style_for(result.metric.scale)
    alone = f" (of identical runs {changes.identical_changed} of {changes.identical} differ)" if changes.alone else ""
    if not changes.values and not changes.weights_changed:
        bits = ", and the same final weights" if changes.weights else ""
        known = "" if changes.weights else "; final weights are not known"
        return f"the same {metric}{bits} for {_every(result, changes.pairs)}{known}"
    weights = (
        f"; other final weights for {_of(result, changes.weights_changed, changes.weights)}{alone}"
        if changes.weights
        else ""
    )
    if not changes.values:
        return f"the same {metric} for {_every(result, changes.pairs)}{weights}"
    if changes.pairs == 1:
        return f"another {metric} for the one {_pairs(result, 1)} ({_difference(result, effect.tested)}){weights}"
    largest = style.difference_with_unit(style.difference(changes.largest))
    return f"another {metric} for {_of(result, changes.values, changes.pairs)}, by up to {largest}{weights}"


def _every(result: FactorEffects, pairs: int) -> str:
    return f"the one {_pairs(result, 1)}" if pairs == 1 else f"all {pairs} {_pairs(result, pairs)}"


def _of(result: FactorEffects, some: int, every: int) -> str:
    return _every(result, 1) if some == every == 1 else f"{some} of {every} {_pairs(result, every)}"


def _pairs(result: FactorEffects, number: int) -> str:
    """What is compared: in a factorial design a seed is there at every value of the other factors."""
    one, many = ("seed", "seeds") if result.design == ONE_AT_A_TIME else ("pair of runs", "pairs of runs")
    return one if number == 1 else many


def _streams(result: FactorEffects) -> Iterator[str]:
    """How much of the variance over seeds each random stream makes by itself."""
    for item in result.shares:
        alone = [row for row in item.shares if row.group.startswith("streams=")]
        if alone:
            parts = (
                f"{_stream(row.group)} {percentage(row.share)} % ({percentage(row.lower)} to {percentage(row.upper)} %)"
                for row in sorted(alone, key=lambda row: -row.share)
            )
            held = f"{item.held.label}: " if len(result.shares) > 1 else ""
            yield (
                f"{held}Of the variance of {result.metric.name} over seeds when all random streams follow the seed, "
                f"each alone makes: {', '.join(parts)} (95 % intervals, values taken as normal)."
            )
        elif item.why_not and "streams" in result.baseline and not item.unknown:
            yield f"How much of the variance each random stream makes is not known: {item.why_not}."
        for source, why_not in item.unknown:
            yield f"How much of it {_stream(source)} makes is not known: {why_not}."


def _stream(source: str) -> str:
    words = source.partition("=")[2]
    return "run-to-run noise (streams = none)" if words == "none" else words


def _added(result: FactorEffects) -> Iterator[str]:
    if not result.interactions:
        return
    claimed = [item for item in result.interactions if item.is_claimed]
    for item in claimed[:_MOST_TOLD]:
        others = f" (or of {', '.join(item.aliases)}, which this design does not tell from it)" if item.aliases else ""
        yield (
            f"The effects of {_named(result, item)} do not add up: together they change {result.metric.name} by "
            f"{_difference(result, item.tested)} more than the sum of what each does alone{others} "
            f"(95 % interval {_interval(result, item.tested)}; p {_equals(item.p_corrected)})."
        )
    tested = sum(item.tested.p is not None for item in result.interactions)
    if not claimed:
        none = f"none of {count(tested, 'interaction')} is told" if tested else "no interaction could be tested"
        yield f"Whether effects add up is not known: {none}."


def _turned(result: FactorEffects) -> Iterator[str]:
    """The factor that turns most orders of approaches, beside what seeds do."""
    known = [flip for flip in result.flips if flip.share is not None]
    if not known:
        return
    worst = max(known, key=lambda flip: flip.share or 0.0)
    beside = "" if worst.seeds_share is None else f"; another seed alone does so in {percentage(worst.seeds_share)} %"
    yield (
        f"{worst.factor}={worst.value} alone turns the order of two approaches in {percentage(worst.share)} % of "
        f"{count(worst.compared, 'pair')} of single runs with the same seed{beside}."
    )


def _named(result: FactorEffects, item: FactorEffect | Interaction) -> str:
    """With what tells its runs from others, where a study has several approaches, configs or levels."""
    varying = [name for name in _HELD if len({getattr(effect.held, name) for effect in result.effects}) > 1]
    return f"{item.name} ({', '.join(getattr(item.held, name) for name in varying)})" if varying else item.name


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _equals(p: float | None) -> str:
    text = p_value(p)
    return text if text.startswith("<") else f"= {text}"


def _precision(tested: UnitDifference) -> float | None:
    """What sets the decimals: about the standard error."""
    ends = tested.interval95
    return None if ends is None or ends[0] == ends[1] else (ends[1] - ends[0]) / 4.0


def _signed(result: FactorEffects, value: float | None, tested: UnitDifference) -> str:
    precision = _precision(tested)
    # An end near zero has the digits that show it, instead of a power of ten.
    digits = min(precision, abs(value)) if precision and value else precision
    text = style_for(result.metric.scale).difference(value, digits)
    return f"+{text}" if value is not None and value > 0.0 else text


def _difference(result: FactorEffects, tested: UnitDifference) -> str:
    return style_for(result.metric.scale).difference_with_unit(_signed(result, tested.difference, tested))


def _interval(result: FactorEffects, tested: UnitDifference) -> str:
    ends = tested.interval95
    return UNKNOWN if ends is None else " to ".join(_signed(result, end, tested) for end in ends)


def _effects(result: FactorEffects) -> Table:
    style = style_for(result.metric.scale)
    table = Table(
        name="effects",
        title=f"{result.metric.name}: each value against the baseline ({_baseline(result)})",
        columns=(
            *(Column(title, key=True) for title in (*_HELD, "value")),
            Column("baseline", style.unit),
            Column("here", style.unit),
            Column("difference", style.difference_sign),
            *(Column(title) for title in ("95 % interval", "p", "corrected", f"{result.noun}s", "moved", "weights")),
        ),
        rows=tuple(_effect_row(result, effect) for effect in result.effects),
        notes=(
            "Interval and p: each effect for itself. Corrected: p by Holm over all that could be tested.",
            f"Moved, weights: seeds whose value, whose weights are others than in the baseline.{_identical(result)}",
        ),
    )
    return without_constant_columns(table, _HELD)


def _identical(result: FactorEffects) -> str:
    """What identical runs do by themselves, which moved and weights are to be read beside."""
    for condition in result.conditions:
        if condition.code == "identical-runs-unknown":
            where = f" ({'; '.join(condition.groups)})" if condition.groups else ""
            return f" Whether identical runs agree is not known{where}: they are no evidence about a factor."
    differing = [effect.changes for effect in result.effects if effect.changes.alone]
    if not differing:
        return ""
    most = max(differing, key=lambda changes: changes.identical_changed / changes.identical)
    return f" Of identical runs (same seed, same environment) {most.identical_changed} of {most.identical} differ."


def _baseline(result: FactorEffects) -> str:
    return ", ".join(f"{factor}={value}" for factor, value in result.baseline.items())


def _effect_row(result: FactorEffects, effect: FactorEffect) -> tuple[str, ...]:
    tested, changes, style = effect.tested, effect.changes, style_for(result.metric.scale)
    means = [mean_of(side) if side.size else None for side in (tested.low, tested.high)]
    return (
        effect.held.approach,
        effect.held.config,
        effect.held.level,
        effect.name if effect.came_about else f"{effect.name} (not come about)",
        *(style.value(mean, _precision(tested)) for mean in means),
        *_tested_cells(result, tested, effect.p_corrected),
        f"{changes.values} of {changes.pairs}" if changes.pairs else UNKNOWN,
        f"{changes.weights_changed} of {changes.weights}" if changes.weights else UNKNOWN,
    )


def _tested_cells(result: FactorEffects, tested: UnitDifference, corrected: float | None) -> tuple[str, ...]:
    numbers = (_signed(result, tested.difference, tested), _interval(result, tested))
    return (*numbers, p_value(tested.p), p_value(corrected), whole(tested.units))


def _interactions(result: FactorEffects) -> Table:
    style = style_for(result.metric.scale)
    table = Table(
        name="interactions",
        title="do effects add up?",
        columns=(
            *(Column(title, key=True) for title in (*_HELD, "both")),
            Column("more than the sum", style.difference_sign),
            *(Column(title) for title in ("95 % interval", "p", "corrected", f"{result.noun}s")),
            Column("not told from", key=True),
        ),
        rows=tuple(
            (
                item.held.approach,
                item.held.config,
                item.held.level,
                item.name,
                *_tested_cells(result, item.tested, item.p_corrected),
                "; ".join(item.aliases),
            )
            for item in result.interactions
        ),
        notes=("More than the sum: by how much the difference of the one changes where the other has its value.",),
    )
    return without_constant_columns(table, (*_HELD, "not told from"))


def _shares(result: FactorEffects) -> Table:
    rows = [
        (
            item.held.approach,
            item.held.config,
            item.held.level,
            row.group,
            *map(percentage, (row.share, row.lower, row.upper)),
        )
        for item in result.shares
        for row in item.shares
    ]
    held = [(item, source) for item in result.shares for source, _ in item.unknown]
    rows += [(item.held.approach, item.held.config, item.held.level, source, *(UNKNOWN,) * 3) for item, source in held]
    table = Table(
        name="shares",
        title="where the variance among these runs comes from",
        columns=(
            *(Column(title, key=True) for title in (*_HELD, "source")),
            *(Column(title, "%") for title in ("share", "lower", "upper")),
        ),
        rows=tuple(rows),
        notes=_STREAM_NOTES
        if any(row.group.startswith("streams=") for item in result.shares for row in item.shares)
        else (
            "Of a factor with two values one difference is all that is known, so that its interval is wide.",
            "Rest: what a seed does in one environment and not in another, and repeats.",
        ),
    )
    return without_constant_columns(table, _HELD)


def _flips(result: FactorEffects) -> Table:
    table = Table(
        name="flips",
        title="does it turn the order of approaches?",
        columns=(
            *(Column(title, key=True) for title in ("config", "level", "value")),
            *(Column(title, unit, "factor alone") for title, unit in (("turned", "%"), ("pairs", ""))),
            *(Column(title, unit, "seed alone") for title, unit in (("turned", "%"), ("pairs", ""))),
            Column("means turned"),
        ),
        rows=tuple(_flip_row(flip) for flip in result.flips),
        notes=(
            "Of two approaches in single runs: their order is the opposite one after only that was changed.",
            "Pairs share runs, so no test is made.",
        ),
    )
    return without_constant_columns(table, ("config", "level"))


def _flip_row(flip: Flips) -> tuple[str, ...]:
    return (
        flip.config,
        flip.level,
        f"{flip.factor}={flip.value}",
        percentage(flip.share),
        whole(flip.compared),
        percentage(flip.seeds_share),
        whole(flip.seeds_compared),
        f"{flip.means_turned} of {flip.pairs}",
    )


def _orders(result: FactorEffects) -> Table:
    titles = ("approaches", "Kendall's tau", "p", "Spearman's rho", "p of rho")
    rows = [
        (
            held,
            item.b,
            whole(item.n),
            *(cell for found in (item.kendall, item.spearman) for cell in (fixed(found.estimate, 2), p_value(found.p))),
        )
        for held, item in result.agreements
    ]
    table = Table(
        name="rankings",
        title="do environments rank the approaches as the baseline does?",
        columns=(Column("held", key=True), Column("environment", key=True), *(Column(title) for title in titles)),
        rows=tuple(rows),
    )
    return without_constant_columns(table, ("held",))


def _digests(result: FactorEffects) -> Table:
    rows = tuple(
        (
            f"{item.factor}={item.value}",
            *map(whole, (item.runs, item.seeds, item.distinct)),
            whole(item.most_of_one_seed),
        )
        for item in result.digests
    )
    return Table(
        name="digests",
        title="how many different final weights came out",
        columns=(
            Column("value", key=True),
            *(Column(title) for title in ("runs", "seeds", "different", "of one seed")),
        ),
        rows=rows,
        folded=all(item.most_of_one_seed <= 1 for item in result.digests),
        notes=("Of one seed: the most that identical runs of one seed gave.",),
    )
