"""What our runs say about the claim that unreported settings move scores as much as published progress does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from isorun.analysis.agreements.agreement import Agreement
from isorun.analysis.studies.conditions import FEWEST_RUNS
from isorun.report.numbers import count, fixed
from isorun.zoo.paper import smoke_verdict
from isorun.zoo.studies.tacl18.baseline_tables import Baseline
from isorun.zoo.studies.tacl18.data_versions import Version
from isorun.zoo.studies.tacl18.effects import Effect
from isorun.zoo.studies.tacl18.environment_tables import DECIMALS
from isorun.zoo.studies.tacl18.findings import Findings
from isorun.zoo.studies.tacl18.masks import mask_sentences
from isorun.zoo.studies.tacl18.published import AGREEMENTS, SYSTEMS
from isorun.zoo.studies.tacl18.rounding import Rounding
from isorun.zoo.studies.tacl18.seeds_study import Change

__all__ = ["verdict"]


def verdict(found: Findings, scale: str, parts: Sequence[str]) -> tuple[str, ...]:
    """The whole in one sentence, then a sentence for each factor; all of it from the records and published scores."""
    hidden = tuple(_rounding_lines(found.roundings)) if "rounding" in parts else ()
    if not found.finished:
        return hidden if parts == ("rounding",) else ("There are no runs to judge yet.",)
    if scale == "smoke":
        return smoke_verdict(found.finished)
    scored = [item for item in found.effects if item.metric == "AP"]
    changes = [change for pair in found.changes for change in pair]
    lines = (*_factors(scored), *_change_lines(changes), *_order_lines(found.agreements), *mask_sentences(found.masks))
    return (*_whole(scored), *lines, *_version_lines(found.versions), *_baseline_lines(found.baselines), *hidden)


def _whole(effects: Sequence[Effect]) -> Iterator[str]:
    """The seed is the paper's largest factor; the claim stands or falls with it."""
    seeds = [item for item in effects if item.is_of_seeds and item.bar is not None]
    if not seeds:
        return
    large = [item for item in seeds if item.exceeds_most_gains]
    if len(large) == len(seeds):
        yield (
            "As published: most published gains over the best system before are below what two runs with different "
            "seeds differ by through chance (1.96 sqrt(2) sd)."
        )
    elif large:
        names = ", ".join(dict.fromkeys(f"{item.data} ({item.factor})" for item in large))
        yield f"As published in part: most published gains are below what chance makes of two seeds on {names} only."
    else:
        yield "Not as published: most published gains are above what chance makes of two seeds in these runs."


def _factors(effects: Sequence[Effect]) -> Iterator[str]:
    for item in effects:
        line = f"{item.factor}: AP on {item.data} {_moves(item)}"
        line += f" (published: {_shown(item.published)})" if item.published is not None else ""
        yield f"{line}; {_gains(item)}."


def _change_lines(changes: Sequence[Change]) -> Iterator[str]:
    for item in (change for change in changes if change.metric == "AP"):
        values = item.values
        most = max(abs(value) for value in values)
        if most == 0:
            yield f"From {item.sides[0]} to {item.sides[1]} no seed of {len(values)} changes its AP on {item.data}."
            continue
        yield (
            f"From {item.sides[0]} to {item.sides[1]} a single seed changes its AP on {item.data} by up to "
            f"{_shown(most)}; over all {len(values)} seeds the means {_difference_of_means(item)}."
        )


def _difference_of_means(item: Change) -> str:
    if item.p is None:
        return "cannot be tested"
    if len(item.values) < FEWEST_RUNS:
        return "are not judged: too few"
    return f"{'differ' if item.p < 0.05 else 'cannot be told apart'} (paired t-test, p = {item.p:.2g})"


def _order_lines(agreements: Mapping[str, Sequence[Agreement]]) -> Iterator[str]:
    """Whether both sides put the seeds in the same order, which the paper denies for CPU and GPU."""
    for data, found in agreements.items():
        for item in found:
            sides = [name.removeprefix("AP ") for name in (item.a, item.b)]
            tau = item.kendall.estimate
            if tau is None or f"AP {sides[0]}" != item.a or f"AP {sides[1]}" != item.b:
                continue
            printed = AGREEMENTS[data]["kendall"].get((item.a, item.b)) if data in AGREEMENTS else None
            theirs = "" if printed is None else f" (published: {printed:.2f})"
            shown = f"{round(tau, 2) + 0.0:.2f}{theirs}"
            yield f"{sides[0]} and {sides[1]} order the {item.n} seeds by AP on {data} with a tau of {shown}."


def _version_lines(versions: Sequence[Version]) -> Iterator[str]:
    """What the model reaches; where nothing else was run, this is all there is to say."""
    reached = [f"{_shown(item.scores['AP'].mean)} on {item.name}" for item in versions]
    if reached:
        seeds = max(item.scores["AP"].n for item in versions)
        yield f"The model reaches an AP of {', '.join(reached)} (mean over {count(seeds, 'seed')})."


def _rounding_lines(found: Sequence[Rounding]) -> Iterator[str]:
    systems = [item for item in found if item.metric == "AP" and item.source.startswith(("Table 2", "Table 3"))]
    told = [
        f"{len(item.changed)} of {item.told_apart} pairs on {item.source.partition(', ')[2]}"
        for item in systems
        if item.changed
    ]
    yield f"One decimal fewer hides the order of published systems by AP: {', '.join(told)}."


def _baseline_lines(baselines: Sequence[Baseline]) -> Iterator[str]:
    for item in baselines:
        if item.beats("AP"):
            total = len(SYSTEMS[item.data])
            yield f"The idf sum, which learns nothing, passes {item.beats('AP')} of {total} systems on {item.data}."


def _moves(item: Effect) -> str:
    settings = count(item.of, "seed") if item.is_of_seeds else f"{count(item.of, 'setting')} of one seed"
    if item.difference == 0:
        return f"is the same in {settings}"
    return f"differs by up to {_shown(item.difference)} over {settings}"


def _gains(item: Effect) -> str:
    """Published gains below what the factor moves; of seeds, below what two single runs differ by in 95 % of cases."""
    if item.smaller is None:
        return f"too few to judge {count(item.gains, 'published gain')}"
    if not item.is_of_seeds:
        return f"{item.smaller} of {item.gains} published gains are smaller"
    return f"{item.smaller} of {item.gains} published gains are below 1.96 sqrt(2) sd, {_shown(item.bar)}"


def _shown(difference: float | None) -> str:
    return "0" if difference == 0 else fixed(difference, DECIMALS)
