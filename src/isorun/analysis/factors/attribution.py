"""Attribution: from the runs of a study with factors to what each of its factors did."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from isorun.analysis.agreements.agreement import Agreement
from isorun.analysis.evidence import Condition, some, voided
from isorun.analysis.evidence.judged import DIRECTION_CODES, JudgedMetric, MetricKind, kind_of
from isorun.analysis.evidence.provenance import effective
from isorun.analysis.evidence.units import FEWEST_UNITS, REPEAT, Counting, unit_labels, units_of
from isorun.analysis.factors import ALPHA, FactorEffect, FactorEffects, HeldFixed, Interaction, VarianceSources
from isorun.analysis.factors.beside import ValueDigests, missing_cells, packages_beside, seed_changes, value_digests
from isorun.analysis.factors.contrasts import (
    PAIRED,
    RunValues,
    UnitDifference,
    UnitValues,
    Weights,
    aliased,
    crossed_shares,
    interaction_weights,
    main_weights,
    neighbours,
    variance_ratio,
)
from isorun.analysis.factors.items import question_values
from isorun.analysis.factors.rankings import Flips, Scores, factor_flips, ranking_agreements
from isorun.analysis.measurements import Group, Measurements, read_table
from isorun.analysis.mixed.hypotheses import variance_shares
from isorun.analysis.mixed.model import mixed_model
from isorun.analysis.mixed.result import VarianceShare
from isorun.analysis.samples import FloatArray, adjusted
from isorun.analysis.studies.group_conditions import NO_STREAMS
from isorun.analysis.studies.group_result import GroupResult
from isorun.analysis.studies.study_result import UNIT, StudyResult, StudySides, run_table, study_sides
from isorun.errors import InputError
from isorun.study.cells import Level
from isorun.study.factors import BASELINE, FULL, ONE_AT_A_TIME, FactorDesign
from isorun.study.records import RunRecord
from isorun.worker.frameworks.switches import StreamRequest

__all__ = ["QUESTION", "FactorQuestion", "attributed"]

QUESTION: Final = "question"
STREAMS: Final = "streams"
_NO_BASELINE: Final = "no run of the baseline finished"
_OTHER_SPREAD: Final = 3.0
"""By so many times must sds differ, beyond what chance does, to be told."""
_BETWEEN: Final = frozenset({"sides-differ-in-code"})


@dataclass(frozen=True, slots=True)
class FactorQuestion:
    """What is asked, and of what. table: a row a run, as a selection sees it. records: the finished ones, by run id.

    steps: run id to the epoch that it is judged at. unit: what the user wants counted, None for what is usual.
    """

    design: FactorDesign
    result: StudyResult
    table: Measurements
    records: Mapping[str, RunRecord]
    metric: JudgedMetric
    counting: Counting
    steps: Mapping[str, float | None]
    unit: str | None = None
    drop_missing: bool = False

    @classmethod
    def of_study(
        cls,
        design: FactorDesign,
        result: StudyResult,
        records: Iterable[RunRecord],
        metric: JudgedMetric,
        *,
        table: Measurements | None = None,
        counting: Counting | None = None,
        selection: str | None = None,
        unit: str | None = None,
        drop_missing: bool = False,
    ) -> FactorQuestion:
        """What is asked of a study. table, counting: of all its runs, by the units of its records, unless given."""
        chosen = result.selections[0].name if selection is None else selection
        judged = [run for group in result.groups for run in group.selection(chosen).runs]
        return cls(
            design,
            result,
            read_table(run_table(result, selection)) if table is None else table,
            {record.run_id: record for record in records},
            metric,
            counting or Counting(UNIT, study_sides(result, "environment", (), None).noun, recorded=True),
            {run.run_id: run.selected.step for run in judged},
            unit,
            drop_missing,
        )

    @property
    def varied(self) -> list[tuple[str, str, str]]:
        """Factor, value and the baseline's value, for every value that is not the baseline's."""
        base = self.design.baseline
        named = ((name, value) for name, factor in self.design.factors.items() for value in factor.values)
        return [(name, value, base[name]) for name, value in named if value != base[name]]

    def weights(self, factor: str, value: str, against: str, present: Container[str]) -> Weights:
        """How the points are weighed for the effect of one value. present: the points that have runs.

        In a full design an environment that never ran takes only itself and its partner: the effect is then that at
        the values of the other factors where both ran. A fraction has no partners to leave out.
        """
        between = self.between(factor, value, against)
        if self.design.design == ONE_AT_A_TIME:
            [(low, high)] = between
            return {high: 1.0, low: -1.0}
        both = [point for pair in between if all(point in present for point in pair) for point in pair]
        points = self._only(both) if self.design.design == FULL and both else self.design.points
        return main_weights(points, factor, value, against)

    def interaction_weights(
        self, first: tuple[str, str, str], second: tuple[str, str, str], present: Container[str]
    ) -> Weights:
        """How the points are weighed for the interaction of two values, where all four of a square ran."""
        (a, *values_a), (b, *values_b) = first, second
        squares: defaultdict[tuple[tuple[str, str], ...], list[str]] = defaultdict(list)
        for point, values in self.design.points.items():
            if values[a] in values_a and values[b] in values_b:
                squares[tuple((name, own) for name, own in values.items() if name not in {a, b})].append(point)
        whole = [point for square in squares.values() if all(one in present for one in square) for point in square]
        points = self._only(whole) if self.design.design == FULL and whole else self.design.points
        return interaction_weights(points, first, second)

    def _only(self, points: Collection[str]) -> dict[str, Mapping[str, str]]:
        return {point: values for point, values in self.design.points.items() if point in points}

    def between(self, factor: str, value: str, against: str) -> list[tuple[str, str]]:
        """The points that differ in this factor alone."""
        return list(neighbours(self.design.points, factor, value, against))


@dataclass(frozen=True, slots=True)
class _Part:
    """The runs of one approach, config and level."""

    held: HeldFixed
    units: UnitValues
    records: Mapping[str, Sequence[RunRecord]]
    values: Mapping[str, Mapping[str, float]]
    groups: Mapping[str, GroupResult]
    draws: Mapping[str, Mapping[str, frozenset[str]]]
    alone: Mapping[str, Sequence[float]]

    @property
    def present(self) -> list[str]:
        """The points that have a value of a finished run."""
        return [point for point, values in self.values.items() if values]

    def first_seeds(self, points: Iterable[str]) -> dict[str, str]:
        """Each seed with the first one that is the same draw at one of these points: seeds without effect are one."""
        first: dict[str, str] = {}
        for point in points:
            met: dict[str, str] = {}
            for seed, units in self.draws.get(point, {}).items():
                own = first.setdefault(seed, seed)
                for unit in units:
                    other = first[met.setdefault(unit, seed)]
                    if other != own:
                        first = {name: other if rep == own else rep for name, rep in first.items()}
                        own = other
        return first


def attributed(asked: FactorQuestion) -> FactorEffects:
    """What each factor did."""
    parts = list(_parts(asked))
    found = [_effect(asked, part, *varied) for part in parts for varied in asked.varied]
    effects, interactions = _corrected(
        [effect for effect, _ in found], [item for part in parts for item in _interactions(asked, part)]
    )
    return FactorEffects(
        study=asked.result.study,
        metric=asked.metric,
        design=asked.design.design,
        baseline=dict(asked.design.baseline),
        noun=QUESTION if asked.unit == QUESTION else asked.counting.noun,
        effects=effects,
        interactions=interactions,
        shares=tuple(_shares(asked, part) for part in parts),
        flips=tuple(_flips(asked, parts)),
        agreements=tuple(_agreements(parts)),
        digests=tuple(_digests(asked, parts)),
        conditions=tuple(
            _merged([*(one for _, own in found for one in own), *_unknown_repeats(asked, effects)], asked.result)
        ),
        notes=tuple(_notes(asked, effects)),
    )


def _parts(asked: FactorQuestion) -> Iterator[_Part]:
    groups = asked.table.groups(
        asked.metric.name, ("approach", "config", "level", "environment"), drop_missing=asked.drop_missing
    )
    keyed: defaultdict[HeldFixed, dict[str, Group]] = defaultdict(dict)
    for group in groups:
        labels = group.labels
        if labels["environment"] in asked.design.points:
            keyed[HeldFixed(labels["approach"], labels["config"], labels["level"])][labels["environment"]] = group
    runs, seeds = asked.table.labels("run"), asked.table.labels("seed")
    for held, by_point in keyed.items():
        records = {
            point: [asked.records[runs[row]] for row in group.values.rows.tolist()] for point, group in by_point.items()
        }
        values = {
            point: _by_seed(seeds, group.values.rows.tolist(), group.values.finite.tolist())
            for point, group in by_point.items()
        }
        paired = Level(held.level).fixes_seed and asked.counting.noun != REPEAT
        yield _Part(
            held,
            _units(asked, by_point, records, paired=paired),
            records,
            values,
            _of_study(asked, held),
            draws=_draws(asked, by_point) if paired else {},
            alone={} if paired else _alone(asked, by_point),
        )


def _draws(asked: FactorQuestion, groups: Mapping[str, Group]) -> dict[str, dict[str, frozenset[str]]]:
    """By point and seed the units whose runs stand there: seeds that took no effect share them."""
    seeds = asked.table.labels("seed")
    units = unit_labels(asked.table, asked.counting.column or "seed")
    found: dict[str, dict[str, frozenset[str]]] = {}
    for point, group in groups.items():
        of_point: defaultdict[str, set[str]] = defaultdict(set)
        for row in group.values.rows.tolist():
            of_point[seeds[row]].add(units[row])
        found[point] = {seed: frozenset(own) for seed, own in of_point.items()}
    return found


def _alone(asked: FactorQuestion, groups: Mapping[str, Group]) -> dict[str, list[float]]:
    """The value of each unit by point, where nothing pairs them."""
    return {
        point: units_of(asked.table, group.values, asked.counting).values.tolist()
        for point, group in groups.items()
        if group.values.finite.size
    }


def _by_seed(seeds: Sequence[str], rows: Sequence[int], values: Sequence[float]) -> dict[str, float]:
    """The mean of each seed."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    for row, value in zip(rows, values, strict=True):
        found[seeds[row]].append(value)
    return {seed: float(np.mean(runs)) for seed, runs in found.items()}


def _units(
    asked: FactorQuestion,
    groups: Mapping[str, Group],
    records: Mapping[str, Sequence[RunRecord]],
    *,
    paired: bool,
) -> UnitValues:
    if asked.unit == QUESTION:
        return question_values(records, asked.metric, asked.steps)
    return RunValues(asked.table, groups, asked.counting, paired)


def _of_study(asked: FactorQuestion, held: HeldFixed) -> dict[str, GroupResult]:
    """The groups of the study by point."""
    return {
        group.key.environment: group
        for group in asked.result.groups
        if (group.key.approach, group.key.config, str(group.key.level)) == (held.approach, held.config, held.level)
        and group.finished
    }


def _effect(
    asked: FactorQuestion, part: _Part, factor: str, value: str, against: str
) -> tuple[FactorEffect, tuple[Condition, ...]]:
    """The effect, and what is known against it."""
    weights, between = asked.weights(factor, value, against, part.present), asked.between(factor, value, against)
    tested = part.units.tested(weights)
    first = part.first_seeds(point for pair in between for point in pair)
    changes = seed_changes(part.records, part.values, between, {seed for seed, one in first.items() if seed == one})
    name = f"{factor}={value}"
    known = (
        *missing_cells(name, part.held.label, tested, [one for one in asked.design.points if one not in part.present]),
        *packages_beside(part.records, between, asked.design.factors[factor], value),
        *_too_few(asked, part, tested, weights, name),
        *_skewed(name, tested),
        *(_unequal(name, tested) if factor != STREAMS else ()),
        *(_one_kept_draw() if factor == STREAMS and tested.p is not None else ()),
        *_against(asked, part, weights),
    )
    reason = voided(known)
    effect = FactorEffect(
        factor,
        value,
        against,
        part.held,
        tested,
        changes,
        why_not=_without_runs(asked, part, tested, (factor, value, against))
        or ("" if reason is None else reason.message),
        came_about=not any(_is_without_effect(one, asked, part, factor, value) for one in known),
    )
    return effect, known


def _without_runs(asked: FactorQuestion, part: _Part, tested: UnitDifference, varied: tuple[str, str, str]) -> str:
    """Which side of an effect never ran; "" where both did."""
    factor, value, against = varied
    if tested.units:
        return ""
    if asked.design.design == ONE_AT_A_TIME and BASELINE not in part.present:
        return _NO_BASELINE
    ran = {asked.design.points[point][factor] for point in part.present}
    missing = [f"{factor}={one}" for one in (value, against) if one not in ran]
    if missing:
        return f"no run with {' or '.join(missing)} finished"
    if len(part.present) < len(asked.design.points):
        return "it needs environments in which no run finished"
    return "" if asked.unit == QUESTION else "no seed finished on both sides"


def _against(asked: FactorQuestion, part: _Part, weights: Weights) -> Iterator[Condition]:
    """What the study knows against a comparison of these points, but for what its factors are meant to change."""
    points, factors = asked.design.points, asked.design.factors
    varied = [name for name in factors if len({points[point][name] for point in weights}) > 1]
    meant = _BETWEEN if any(factors[name].kind == "code" for name in varied) else frozenset()
    groups = tuple(part.groups[point] for point in weights if point in part.groups)
    for condition in StudySides(asked.result, "environment", groups).conditions():
        if condition.code not in {*DIRECTION_CODES, *meant}:
            yield condition


def _is_without_effect(condition: Condition, asked: FactorQuestion, part: _Part, factor: str, value: str) -> bool:
    """Whether it says that this very value did not come about: it is about all points that have it, and no others.

    Another request can fail at just these points, since the value leaves it nothing to act on; that is not about the
    value. What a variable asks for has another name than the factor.
    """
    if factor == STREAMS and condition.message == NO_STREAMS.message:
        return True
    is_variable = asked.design.factors[factor].kind == "variable"
    if condition.code != "factor-without-effect" or not (is_variable or condition.message.startswith(f"{factor} = ")):
        return False
    points = [point for point, values in asked.design.points.items() if values[factor] == value]
    labels = {part.groups[point].key.label for point in points if point in part.groups}
    return set(condition.groups) == labels


def _too_few(
    asked: FactorQuestion, part: _Part, tested: UnitDifference, weights: Weights, name: str
) -> Iterator[Condition]:
    if 0 < tested.units < FEWEST_UNITS:
        yield Condition(
            "too-few-units",
            f"from one {part.units.noun} no test is possible: what happened to it is a fact, and says nothing of "
            "others",
            f"{_more_units(asked, part, weights)}; where values by test question were kept: --unit question",
            (name,),
            voids=True,
        )


def _more_units(asked: FactorQuestion, part: _Part, weights: Weights) -> str:
    """More seeds are of use only where those that there are made draws of their own."""
    streams = {asked.design.points[point].get(STREAMS, "").partition("@")[0] for point in weights}
    if "none" in streams:
        return 'streams = "none" is one draw in all runs, as it was asked for: look at the shares of the variance'
    groups = tuple(part.groups[point] for point in weights if point in part.groups)
    drawn = [part.draws[point] for point in weights if point in part.draws]
    if any(len(draws) > 1 and len(set().union(*draws.values())) == 1 for draws in drawn):
        return StudySides(asked.result, "environment", groups).real_runs
    return f"add seeds to {asked.result.study} (seeds = [1, 2, …, 10]) and run again: finished runs are kept"


def _one_kept_draw() -> Iterator[Condition]:
    """Random streams are about spread: a mean over runs that share one draw of a stream is about that draw."""
    yield Condition(
        "one-kept-draw",
        "random streams that do not follow the seed have one draw in all runs, so that a difference of means is about "
        "that draw, and not about streams",
        'look at the shares of the variance; other draws are kept by other seeds (streams = "weights@7")',
        voids=True,
    )


def _skewed(name: str, tested: UnitDifference) -> Iterator[Condition]:
    """A mean that goes one way because of few large differences, while most go the other."""
    if tested.test != PAIRED or tested.p is None or tested.p >= 0.05:
        return
    if float(np.sign(tested.per_unit).mean()) * (tested.difference or 0.0) <= 0.0:
        yield Condition(
            "skewed-differences",
            f"{name}: few large differences go one way, many small ones the other, and the test takes them for "
            "symmetric",
            "look at the seeds one by one (--json, --figure), or add more",
            voids=True,
        )


def _unequal(name: str, tested: UnitDifference) -> Iterator[Condition]:
    """Another spread is another law, and Student's test relies on what it does not know: that it is symmetric."""
    if tested.test != PAIRED or tested.p is None or tested.p >= ALPHA or tested.units < 3 or not tested.low.std() > 0:
        return
    ratio, lower, upper = variance_ratio(tested.high, tested.low)
    if ratio > _OTHER_SPREAD**2 and lower > 1.0:
        by = "more"
    elif ratio < _OTHER_SPREAD**-2 and upper < 1.0:
        by = "less"
    else:
        return
    times = ratio**0.5 if by == "more" else ratio**-0.5
    yield Condition(
        "unequal-spreads",
        f"{name}: values spread {times:.0f} times {by} than the baseline's, so not only their mean differs; where the "
        "wider ones have a long tail, the test claims a difference of means too often",
        "look at the seeds one by one (--json, --figure), or add more: with many seeds the tail matters less",
    )


def _corrected(
    effects: Sequence[FactorEffect], found: Sequence[Interaction]
) -> tuple[tuple[FactorEffect, ...], tuple[Interaction, ...]]:
    """Holm's p over all effects and interactions that could be tested: one verdict, so one error rate for all of it.

    Interactions that no design tells apart are one test.
    """
    first = [item for number, item in enumerate(found) if not _told_before(item, found[:number])]
    tested = [*(effect.tested for effect in effects), *(item.tested for item in first)]
    adjusted_p = adjusted(np.array([np.nan if one.p is None else one.p for one in tested], dtype=np.float64), "holm")
    corrected = [None if np.isnan(p) else float(p) for p in adjusted_p]
    own = tuple(replace(effect, p_corrected=p) for effect, p in zip(effects, corrected, strict=False))
    by_identity = dict(zip(map(_identity, first), corrected[len(effects) :], strict=True))
    return own, tuple(_corrected_interactions(found, by_identity))


def _corrected_interactions(
    found: Sequence[Interaction], corrected: Mapping[tuple[HeldFixed, str], float | None]
) -> Iterator[Interaction]:
    for item in found:
        alike = next(
            key for key in (_identity(item), *((item.held, name) for name in item.aliases)) if key in corrected
        )
        yield replace(item, p_corrected=corrected[alike])


def _identity(item: Interaction) -> tuple[HeldFixed, str]:
    return item.held, item.name


def _told_before(item: Interaction, earlier: Sequence[Interaction]) -> bool:
    return any(other.held == item.held and other.name in item.aliases for other in earlier)


def _interactions(asked: FactorQuestion, part: _Part) -> Iterator[Interaction]:
    """Every two values of different factors, in a factorial design."""
    if asked.design.design == ONE_AT_A_TIME:
        return
    pairs = [(a, b) for a, b in itertools.combinations(asked.varied, 2) if a[0] != b[0]]
    weights = {_crossed(a, b): asked.interaction_weights(a, b, part.present) for a, b in pairs}
    aliases = aliased(weights) if asked.design.resolution else {}
    for a, b in pairs:
        name = _crossed(a, b)
        reason = voided(tuple(_against(asked, part, weights[name])))
        tested = part.units.tested(weights[name])
        yield Interaction(
            (a[0], b[0]),
            (a[1], b[1]),
            part.held,
            tested,
            aliases=aliases.get(name, ()),
            why_not="" if reason is None else reason.message,
        )


def _crossed(a: tuple[str, str, str], b: tuple[str, str, str]) -> str:
    return f"{a[0]}={a[1]} x {b[0]}={b[1]}"


def _share_rows(part: _Part) -> Iterator[tuple[str, str, float]]:
    """Point, seed and value: the mean of each draw, or every unit for itself where nothing pairs them."""
    for point, values in part.alone.items():
        yield from ((point, "", value) for value in values)
    if part.alone:
        return
    first = part.first_seeds(part.values)
    for point, by_seed in part.values.items():
        drawn: defaultdict[str, list[float]] = defaultdict(list)
        for seed, value in by_seed.items():
            drawn[first.get(seed, seed)].append(value)
        yield from ((point, seed, float(np.mean(values))) for seed, values in drawn.items())


def _shares(asked: FactorQuestion, part: _Part) -> VarianceSources:
    """Shares of the variance, from one value a unit and environment: every factor and the seeds are random effects."""
    if STREAMS in asked.design.factors:
        return _stream_shares(asked, part)
    rows = list(_share_rows(part))
    seeds = [seed for _, seed, _ in rows]
    columns = {f"f{number}": name for number, name in enumerate(asked.design.factors)}
    table = {
        "y": np.array([value for *_, value in rows], dtype=np.float64),
        **{
            column: np.array([asked.design.points[point][name] for point, *_ in rows], dtype=object)
            for column, name in columns.items()
        },
        "s": np.array([f"seed {seed}" for seed in seeds], dtype=object),
    }
    columns |= {"s": "seed"}
    varying = [column for column in columns if len(set(table[column].tolist())) > 1]
    try:
        fit = mixed_model(table, "y ~ 1" + "".join(f" + (1|{column})" for column in varying))
        found = variance_shares(fit)
    except InputError as error:
        return VarianceSources(part.held, (), str(error).splitlines()[0])
    crossed = crossed_shares(table["y"], {column: table[column].tolist() for column in varying})
    if crossed is not None:
        found = tuple(_within(row, *crossed[row.group if row.group in varying else ""]) for row in found)
    return VarianceSources(part.held, tuple(replace(row, group=columns.get(row.group, "rest")) for row in found))


def _within(row: VarianceShare, lower: float, upper: float) -> VarianceShare:
    return replace(row, lower=min(lower, row.share), upper=max(upper, row.share))


def _stream_shares(asked: FactorQuestion, part: _Part) -> VarianceSources:
    """The variance over seeds that each random stream makes alone, as a share of what all make together.

    A factor of the other kind has one effect on all seeds; a stream decides which seeds differ at all.
    """
    others = {name: value for name, value in asked.design.baseline.items() if name != STREAMS}
    held = {point: values for point, values in asked.design.points.items() if others.items() <= values.items()}
    by_words = {
        StreamRequest.of(values[STREAMS]).words: point for point, values in held.items() if point in part.values
    }
    whole = part.values[by_words.pop("all")] if "all" in by_words else {}
    if not whole:
        return VarianceSources(part.held, (), 'shares are of the variance at streams = "all", which is not there')
    shares, unknown = [], []
    noise = part.values[by_words["none"]] if "none" in by_words else {}
    for words, point in by_words.items():
        alone, together = _of_both(part.values[point], whole)
        if alone.size < 3 or not together.std() > 0 or (words == "none" and not alone.std() > 0):
            continue
        of_noise = "" if words == "none" else _like_noise(part.values[point], noise)
        why_not = _out_of_reach(part.records.get(point, ())) or of_noise
        if why_not:
            unknown.append((f"{STREAMS}={words}", why_not))
        else:
            shares.append(VarianceShare(f"{STREAMS}={words}", *variance_ratio(alone, together)))
    known = shares or unknown
    return VarianceSources(
        part.held, tuple(shares), "" if known else "it takes three seeds that differ", tuple(unknown)
    )


def _of_both(first: Mapping[str, float], second: Mapping[str, float]) -> tuple[FloatArray, FloatArray]:
    """The values of the seeds that are on both sides."""
    seeds = sorted(first.keys() & second.keys())
    one, other = (np.array([values[seed] for seed in seeds], dtype=np.float64) for values in (first, second))
    return one, other


def _like_noise(alone: Mapping[str, float], noise: Mapping[str, float]) -> str:
    """Why a share is none of a stream's: runs in which no stream follows the seed vary as much."""
    some, nothing = _of_both(alone, noise)
    if some.size < 3 or not nothing.std() > 0:
        return ""
    ratio, lower, upper = variance_ratio(some, nothing)
    if lower > 1.0:
        return ""
    between = " to ".join(f"{100.0 * value:.0f}" for value in (lower, upper))
    return (
        f"not told from run-to-run noise: it varies by {100.0 * ratio:.0f} % ({between} %) of the variance of runs in "
        "which no stream follows the seed"
    )


def _out_of_reach(records: Sequence[RunRecord]) -> str:
    """Why nothing is known of streams that drew nothing: what they make may be drawn where nobody can tell."""
    streams = [found for record in records if (found := effective(record).get("streams"))]
    if not streams or any(found["draws"][name] for found in streams for name in found["follow"]):
        return ""
    lost = max(found["draws"]["other"] for found in streams)
    unseen = sorted({name for found in streams for name in found["out_of_sight"]})
    where = [f"{lost:,} draws of a run were told to no stream"] if lost else []
    where += [f"numbers were drawn out of sight ({', '.join(unseen)})"] if unseen else []
    return f"no draw was told to it, and {' and '.join(where)}" if where else ""


def _flips(asked: FactorQuestion, parts: Sequence[_Part]) -> Iterator[Flips]:
    for (config, level), scores in _by_approach(parts).items():
        own = [part for part in parts if (part.held.config, part.held.level) == (config, level)]
        for factor, value, against in asked.varied:
            between = asked.between(factor, value, against)
            drawn = _drawn_once(scores, own, [point for pair in between for point in pair])
            found = factor_flips(drawn, between, factor=factor, value=value, config=config, level=level)
            if found is not None:
                yield found


def _drawn_once(scores: Scores, parts: Sequence[_Part], points: Sequence[str]) -> Scores:
    """The scores without seeds that were, in all approaches, the same draw as an earlier one."""
    firsts = [part.first_seeds(points) for part in parts]
    met: dict[tuple[str, ...], str] = {}
    for seed in dict.fromkeys(seed for first in firsts for seed in first):
        met.setdefault(tuple(first.get(seed, seed) for first in firsts), seed)
    kept = set(met.values())
    return {
        name: {
            point: {seed: value for seed, value in by_seed.items() if seed in kept or not firsts}
            for point, by_seed in of_point.items()
        }
        for name, of_point in scores.items()
    }


def _agreements(parts: Sequence[_Part]) -> Iterator[tuple[str, Agreement]]:
    by_approach = _by_approach(parts)
    for (config, level), scores in by_approach.items():
        held = "" if len(by_approach) == 1 else f"{config} at level {level}"
        yield from ((held, item) for item in ranking_agreements(scores, BASELINE))


def _by_approach(parts: Sequence[_Part]) -> dict[tuple[str, str], dict[str, Mapping[str, Mapping[str, float]]]]:
    """The values of all approaches, by config and level."""
    found: defaultdict[tuple[str, str], dict[str, Mapping[str, Mapping[str, float]]]] = defaultdict(dict)
    for part in parts:
        found[part.held.config, part.held.level][part.held.approach] = part.values
    return found


def _digests(asked: FactorQuestion, parts: Sequence[_Part]) -> Iterator[ValueDigests]:
    records: defaultdict[str, list[RunRecord]] = defaultdict(list)
    for part in parts:
        for point, runs in part.records.items():
            records[point].extend(runs)
    for name, factor in asked.design.factors.items():
        for value in factor.values:
            points = [point for point, values in asked.design.points.items() if values[name] == value]
            if asked.design.design == ONE_AT_A_TIME and value == asked.design.baseline[name]:
                points = [BASELINE]
            found = value_digests(records, points, name, value)
            if found is not None:
                yield found


def _merged(conditions: Sequence[Condition], result: StudyResult) -> Iterator[Condition]:
    """Each condition once, with all groups that it is about; with none where it is about all of them."""
    groups: dict[tuple[str, str], dict[str, None]] = {}
    first: dict[tuple[str, str], Condition] = {}
    for condition in conditions:
        key = condition.code, condition.message
        first.setdefault(key, condition)
        groups.setdefault(key, {}).update(dict.fromkeys(condition.groups))
    every = {group.key.label for group in result.groups if group.finished}
    for key, condition in sorted(first.items(), key=lambda item: not item[1].voids):
        meant = () if set(groups[key]) >= every else tuple(groups[key])
        yield replace(condition, groups=meant)


def _held_without_repeats(effects: Sequence[FactorEffect]) -> list[HeldFixed]:
    """Where seeds moved, and nothing says whether they would have done so by themselves.

    Two environments that gave the same weights for a seed are as good as two identical runs.
    """
    found: defaultdict[HeldFixed, list[FactorEffect]] = defaultdict(list)
    for effect in effects:
        found[effect.held].append(effect)
    return [
        held
        for held, own in found.items()
        if any(one.changes.weights_changed or one.changes.values for one in own)
        and not any(one.changes.identical or one.changes.weights > one.changes.weights_changed for one in own)
    ]


def _unknown_repeats(asked: FactorQuestion, effects: Sequence[FactorEffect]) -> Iterator[Condition]:
    """Below the level `deterministic` runs of one seed may differ by themselves, as much as a factor makes them."""
    held = [one for one in _held_without_repeats(effects) if Level(one.level) is not Level.DETERMINISTIC]
    if held:
        yield Condition(
            "identical-runs-unknown",
            "no seed ran twice in one environment, so that whether identical runs agree is not known: seeds that "
            "moved, and other final weights, may be no factor's doing",
            f"add repeats = 2 to {asked.result.study} and run again: finished runs are kept",
            tuple(one.label for one in held) if len({effect.held for effect in effects}) > 1 else (),
        )


def _notes(asked: FactorQuestion, effects: Sequence[FactorEffect]) -> Iterator[str]:
    if asked.design.design == ONE_AT_A_TIME:
        yield (
            "Varied one at a time: whether the effects of two factors add up is not known; "
            'design = "full" or "fractional" asks that.'
        )
    if asked.design.resolution == 4:
        yield "The design is of resolution IV: interactions with an alias are not told from each other."
    if asked.unit == QUESTION:
        yield "Counted over test questions: what is told holds for these trained models, and not for other seeds."
        is_accuracy = kind_of(asked.metric.name) is MetricKind.ACCURACY
        if is_accuracy and any(group.answers_of_the_end for group in asked.result.groups):
            yield "Runs that kept no answers at the epoch they are judged at count with those that they ended with."
    if any(Level(held.level) is Level.DETERMINISTIC for held in _held_without_repeats(effects)):
        yield (
            "No seed ran twice in one environment, so whether identical runs end with the same weights is not known: "
            "repeats = 2 shows it."
        )
    alone = [effect.changes for effect in effects if effect.changes.alone]
    if alone:
        most = max(alone, key=lambda changes: changes.identical_changed / changes.identical)
        yield (
            f"Of identical runs {most.identical_changed} of {most.identical} ended with different weights by "
            "themselves: changed weights may be no factor's doing."
        )
    dropped = int((~np.isfinite(asked.table.numbers(asked.metric.name))).sum())
    if dropped:
        yield f"Left out, because not finite: {some(dropped, 'value')} of {asked.metric.name}."
