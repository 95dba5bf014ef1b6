"""The paper with our numbers: verdict, tables, figures, warnings, what was less, and the same for machines.

The keys of the numbers are described in docs/papers/ase20.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

from isorun.analysis.evidence import Condition
from isorun.analysis.spreads import Spread
from isorun.analysis.studies.group_result import SelectionResult
from isorun.analysis.studies.study_result import LevelComparison
from isorun.errors import DataError
from isorun.report import Table, count
from isorun.study.records import RunRecord
from isorun.zoo.data.images import load_images
from isorun.zoo.data.presence import form_of
from isorun.zoo.paper import Presentation, Request, drawn, smoke_verdict
from isorun.zoo.studies.ase20.design import METRIC, not_had, scaled_down, sentences_on_data
from isorun.zoo.studies.ase20.example import example_table
from isorun.zoo.studies.ase20.factors import FactorShares, factor_lead, factor_table, lead_sentence
from isorun.zoo.studies.ase20.figures import figures_of
from isorun.zoo.studies.ase20.findings import Finding, Findings, find, findings_table
from isorun.zoo.studies.ase20.libraries import library_sentences, library_table
from isorun.zoo.studies.ase20.measured import (
    Measured,
    PartResult,
    class_extreme,
    default_against_fixed_seed,
    distinct_weights,
    overall_extreme,
)
from isorun.zoo.studies.ase20.nested import nested_sentences, nested_tables
from isorun.zoo.studies.ase20.published import DATA_SIZES, EXAMPLE, TABLE_2, TABLE_3
from isorun.zoo.studies.ase20.tables import accuracy_tables, level_tables, table_1, time_tables

__all__ = ["merged_warnings", "presented", "to_json", "verdict"]


def presented(
    request: Request, records: Mapping[str, Sequence[RunRecord]], is_made: Callable[[str], bool]
) -> Presentation:
    """The presentation. is_made: whether data made on the spot stands in for the data set of this name."""
    found = find(request, records, is_made)
    planned, numbers = found.planned, to_json(request, found)
    at_hand = _incomplete({part.data for part in planned})
    less = (*scaled_down(planned), *sentences_on_data(planned, is_made, at_hand))
    return Presentation(
        verdict=tuple(verdict(found, request.scale, is_less=bool(less))),
        tables=tuple(_tables(found, at_hand)),
        figures=drawn(figures_of(numbers)),
        scaled_down=less,
        not_had=tuple(not_had(request.scale, planned)),
        warnings=merged_warnings(found.parts, found.groups, request.scale),
        numbers=numbers,
    )


def _incomplete(names: set[str]) -> dict[str, tuple[int, int]]:
    """The images for training and for the rest of the data sets that have fewer than the published ones."""
    found: dict[str, tuple[int, int]] = {}
    for name in sorted(names & DATA_SIZES.keys()):
        counts = _images_in_stand_in(name)
        train, *others = DATA_SIZES[name]
        if counts is not None and counts != (train, sum(others)):
            found[name] = counts
    return found


def _images_in_stand_in(name: str) -> tuple[int, int] | None:
    """None where the originals are at hand, or nothing that can be read: tables must not need the data any more."""
    form = form_of(name)
    if form is None or form.kind != "prepared":
        return None
    try:
        images = load_images(name)
    except DataError:
        return None
    return len(images.train_labels), len(images.test_labels)


def _tables(found: Findings, at_hand: Mapping[str, tuple[int, int]]) -> Iterator[Table]:
    """Those with a run in them; parts that were never begun are named in a warning."""
    groups = found.begun_groups
    if any(group.finished for group in groups):
        yield findings_table(found.findings, groups)
        yield table_1(found.begun, at_hand)
        yield from accuracy_tables(groups)
        yield from time_tables(groups)
        yield from level_tables(found.parts, groups)
    if found.examples:
        yield example_table(found.examples)
    shares = [item for item in found.shares if any(arm.spread.n for arm in item.arms)]
    if shares:
        yield factor_table(shares)
    if found.nested:
        yield from nested_tables(found.nested)
    if found.libraries:
        yield library_table(found.libraries)


_AMOUNTS: Final = {"1": "By default:", "2": "With the seed fixed:"}


def verdict(found: Findings, scale: str, *, is_less: bool) -> Iterator[str]:
    """Sentences, the most important first. is_less: whether anything is less than was published."""
    if not found.finished:
        yield "No run has finished, so nothing can be said about the paper's findings."
        return
    if scale == "smoke":
        yield from smoke_verdict(found.finished)
        return
    ours = (
        *library_sentences(found.libraries),
        *(nested_sentences(found.nested) if found.nested else ()),
        *_on_factors(found.shares),
    )
    yield from ours
    if found.begun_groups or not ours:
        yield from _on_findings(found.findings, found.finished)
    if is_less:
        yield (
            f"Scale {scale} is less than was published (see Scaled down): what is seen compares in kind, not in size."
        )


def _on_findings(found: Sequence[Finding], finished: int) -> Iterator[str]:
    judged = [item for item in found if item.seen is not None and item.name != "ours"]
    if not judged:
        yield f"{count(finished, 'run')} finished, too few of any kind to judge a finding of the paper."
        return
    seen = [item for item in judged if item.seen]
    yield f"{len(seen)} of the {len(judged)} findings that {count(finished, 'run')} can judge are seen here, too."
    by_name = {item.name: item for item in judged}
    amounts = [
        f"{words} {by_name[name].ours}; published: {by_name[name].published}"
        for name, words in _AMOUNTS.items()
        if name in by_name
    ]
    if amounts:
        yield f"Accuracy of identical runs. {'. '.join(amounts)}."
    yield from (f"Not seen: {item.claim}. Here: {item.ours}." for item in judged if not item.seen)


def _on_factors(shares: Sequence[FactorShares]) -> Iterator[str]:
    for item in shares:
        lead = factor_lead(item)
        if lead is not None:
            yield lead_sentence(item, lead)


_MEANT_FOR_FACTORS: Final = frozenset({"no-identical-runs", "seed-without-effect"})
"""Where one factor is varied, seeds are meant to run once, and weights are meant to stay the same."""
_LAUNCH: Final = (
    "runs at some levels were started fresh, at others warm: the seconds of fresh runs include importing frameworks, "
    "so compare times within a level only"
)
"""The same for all studies, whichever levels they have."""


def merged_warnings(parts: Sequence[PartResult], groups: Sequence[Measured], scale: str) -> tuple[Condition, ...]:
    """Each warning once, with all the groups it is about."""
    merged: dict[tuple[str, str], Condition] = {}
    for part in parts:
        for warning in _of_part(part, scale):
            same = merged.get((warning.code, warning.message), replace(warning, groups=()))
            merged[warning.code, warning.message] = replace(same, groups=(*same.groups, *warning.groups))
    return (*_times_shared(groups, scale), *_still_improving(groups), *merged.values())


def _times_shared(groups: Sequence[Measured], scale: str) -> Iterator[Condition]:
    shared = [group for group in groups if group.at_once > 1]
    if shared:
        most = max(group.at_once for group in shared)
        is_all = all(group.at_once > 1 for group in groups if group.finished)
        yield Condition(
            "times-shared",
            f"up to {most} runs shared a GPU: their times to convergence include waiting for each other",
            f"isorun reproduce ase20 --scale {scale} -j 1 in a new store, where times matter",
            () if is_all else tuple(group.label for group in shared),
        )


def _still_improving(groups: Sequence[Measured]) -> Iterator[Condition]:
    short = [group for group in groups if group.finished and group.is_cut_short]
    if short:
        yield Condition(
            "still-improving",
            "half of these runs or more had their best validation loss in the last epoch: what they differ by is the "
            "spread of unfinished trainings",
            "isorun reproduce ase20 --scale paper, where sizes matter",
            tuple(f"{group.label} (mean {100 * (group.mean or 0.0):.1f} %)" for group in short),
        )


def _of_part(part: PartResult, scale: str) -> Iterator[Condition]:
    if part.result is None:
        yield Condition("no-runs", "nothing was recorded for some parts", _again(scale), (part.study.name,))
        return
    for warning in part.result.conditions:
        if warning.code == "runs-failed" or warning.code in _meant(part):
            continue  # failed runs of all studies are warned of together
        if warning.code == "few-runs":
            yield replace(warning, next_step=_more(scale), groups=(part.study.name,))
        elif warning.code == "launch-differs":
            yield replace(warning, message=_LAUNCH, next_step=_fresh(scale))
        elif warning.code == "runs-missing":
            message = f"{part.study.name}: {warning.message}"
            yield replace(warning, message=message, next_step=_again(scale))
        else:
            yield replace(warning, groups=_named(part, warning.groups))


def _meant(part: PartResult) -> frozenset[str]:
    return _MEANT_FOR_FACTORS if part.planned.factors else frozenset()


def _named(part: PartResult, groups: Sequence[str]) -> tuple[str, ...]:
    """Groups of the same name in several studies told apart."""
    own = part.planned.part == part.planned.networks[0].option
    return tuple(groups) if own else tuple(f"{part.study.name}: {group}" for group in groups)


def _more(scale: str) -> str:
    return f"isorun reproduce ase20 --scale {scale} --runs 8: finished runs are kept"


def _fresh(scale: str) -> str:
    return f"isorun reproduce ase20 --scale {scale} --launch fresh in a new store, where times matter"


def _again(scale: str) -> str:
    return f"isorun reproduce ase20 --scale {scale} again: only what is missing or failed is run"


def to_json(request: Request, found: Findings) -> dict[str, Any]:
    """Plain JSON: accuracies as fractions, times in seconds, null for what is not known."""
    everything = {
        "paper": "ase20",
        "scale": request.scale,
        "device": request.device,
        "findings": [item.to_json() for item in found.findings],
        "groups": [_group(group) for group in found.groups],
        "levene": [_levene(part, item) for part, item in default_against_fixed_seed(found.parts)],
        "example": [item.to_json() for item in found.examples],
        "factors": [_factors(item) for item in found.shares],
        "nested": found.nested and found.nested.to_json(),
        "libraries": [item.to_json() for item in found.libraries],
        "published": _published(),
    }
    result: dict[str, Any] = _finite(everything)
    return result


def _group(group: Measured) -> dict[str, Any]:
    overall, per_class = overall_extreme(group.group), class_extreme(group.group)
    strong = overall_extreme(group.group, without_weak=True)
    weights = distinct_weights(group.group) if group.group else None
    return {
        "network": group.network.name,
        "parameters": group.network.parameters,
        "data": group.data,
        "level": str(group.level),
        "planned": group.planned,
        "finished": group.finished,
        "failed": len(group.group.failed) if group.group else 0,
        "gpu_runs_at_once": group.at_once,
        "epochs": group.epochs,
        "still_improving": group.is_cut_short,
        "overall": overall and {"selection": overall.selection, **_spread(overall.spread)},
        "overall_without_weak": strong and {"selection": strong.selection, **_spread(strong.spread)},
        "per_class": per_class
        and {"selection": per_class.selection, "class": per_class.class_name, **_spread(per_class.spread)},
        "selections": _selections(group),
        "different_final_weights": weights and weights[0],
    }


def _factors(shares: FactorShares) -> dict[str, Any]:
    lead = factor_lead(shares)
    return {**shares.to_json(), "lead": lead and lead.to_json()}


def _selections(group: Measured) -> dict[str, Any]:
    return {
        judged.selection.name: {
            "values": list(judged.values(METRIC)),
            "runs": list(judged.run_ids(METRIC)),
            "per_class": _class_values(judged),
            "weak_runs": list(judged.weak_runs),
            "seconds": _spread(judged.every.seconds),
            "epochs": _spread(judged.every.epochs),
        }
        for judged in (group.group.selections if group.group else ())
    }


def _class_values(judged: SelectionResult) -> dict[str, list[float | None]]:
    """Class to its accuracy in every run, in the order of the values."""
    runs = [run.selected.per_class.get(METRIC, {}) for run in judged.runs if METRIC in run.selected.values]
    return {
        name: [classes.get(name) for classes in runs] for name in dict.fromkeys(name for one in runs for name in one)
    }


def _spread(spread: Spread) -> dict[str, Any]:
    return {
        "n": spread.n,
        "mean": spread.mean,
        "sd": spread.sd,
        "sd_ci90": None if spread.sd_interval is None else list(spread.sd_interval),
        "min": spread.minimum,
        "max": spread.maximum,
        "max_diff": spread.max_difference,
        "rel_max_diff": spread.relative_difference,
        "rel_sd": spread.relative_sd,
    }


def _levene(part: PartResult, item: LevelComparison) -> dict[str, Any]:
    test = item.test.to_json() if item.test else {"statistic": None, "p": None}
    return {
        "network": item.approach,
        "data": part.planned.data,
        "selection": item.selection,
        "sd_default": item.sd_a,
        "sd_fixed_seed": item.sd_b,
        **test,
        "why_not": item.why_not or None,
    }


def _published() -> dict[str, Any]:
    """Tables 2 and 3 and the example as published: points, seconds and percent."""
    return {
        "table_2": {str(level): {name: asdict(row) for name, row in rows.items()} for level, rows in TABLE_2.items()},
        "table_3": {str(level): {name: asdict(row) for name, row in rows.items()} for level, rows in TABLE_3.items()},
        "example": asdict(EXAMPLE),
    }


def _finite(value: Any) -> Any:
    """The same without tuples, and with null for numbers that JSON has not."""
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
