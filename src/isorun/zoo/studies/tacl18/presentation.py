"""From the records of all studies to the paper's tables and figures, the verdict, what could not be had, and JSON.

docs/papers/tacl18.md tells what each key of the JSON means.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from isorun.analysis.agreements.agreement import Agreement
from isorun.analysis.evidence import Condition, some
from isorun.analysis.studies.conditions import FEWEST_RUNS
from isorun.report import Table, count, fixed
from isorun.study.records import RunRecord, RunState
from isorun.zoo.paper import Presentation, Request, smoke_verdict
from isorun.zoo.studies.tacl18.design import SIDES, asked_parts, has_train_all, scaled_down, study_names
from isorun.zoo.studies.tacl18.figures import figures_of
from isorun.zoo.studies.tacl18.findings import Findings, QuestionTest, find, question_note
from isorun.zoo.studies.tacl18.masks import mask_sentences, mask_table
from isorun.zoo.studies.tacl18.measured import Effect, Setting
from isorun.zoo.studies.tacl18.published import AGREEMENTS, SYSTEMS
from isorun.zoo.studies.tacl18.scales import AMOUNTS, CPU_PATHS, cpu_paths
from isorun.zoo.studies.tacl18.seeds import (
    Change,
    Rounding,
    agreement_table,
    change_table,
    digits_table,
    range_table,
    rounding_table,
)
from isorun.zoo.studies.tacl18.tables import (
    DECIMALS,
    Baseline,
    Version,
    data_table,
    device_table,
    path_table,
    system_tables,
    thread_number,
    thread_table,
    version_table,
)
from isorun.zoo.studies.tacl18.versions import framework_sentences, framework_table

__all__ = ["findings_to_json", "not_had", "presented", "verdict"]


_MADE: Final = "Our numbers are of small data made on the spot; do not read them against the published ones."
_MADE_DATA: Final = "small data made on the spot, because a data set is not at hand"
_SETTING_TABLES: Final = {
    "cpu-paths": path_table,
    "threads": thread_table,
    "devices": device_table,
}


def presented(request: Request, records: Mapping[str, Sequence[RunRecord]]) -> Presentation:
    """The presentation of the parts that were asked for."""
    parts = asked_parts(request)
    found = find(records, request)
    numbers = findings_to_json(found)
    return Presentation(
        verdict=verdict(found, request.scale, parts),
        tables=tuple(_with_origin(_tables(found, parts), made_data=found.made_data)),
        figures=tuple(figures_of(numbers)),
        scaled_down=(
            *scaled_down(request.scale, found.begun or parts, request.runs, found.seeds_everywhere),
            *((_MADE_DATA,) if found.made_data else ()),
        ),
        not_had=not_had(request, parts, found, records),
        warnings=tuple(_warnings(found)),
        numbers=numbers,
    )


def _tables(found: Findings, parts: Sequence[str]) -> Iterator[Table]:
    """The tables that have a run of ours; rounding asks published scores too and needs none."""
    if found.baselines:
        yield data_table(found.baselines)
        yield from system_tables(found.baselines)
    if found.versions:
        yield version_table(found.versions)
    if found.frameworks:
        yield framework_table(found.frameworks)
    for part, build in _SETTING_TABLES.items():
        if found.settings[part]:
            yield build(found.settings[part], question_note(found.tests[part]))
    if found.seeds:
        yield range_table(found.seeds)
        yield agreement_table(found.agreements, found.sides)
    if any(found.changes):
        yield change_table([change for pair in found.changes for change in pair])
    if found.masks:
        yield mask_table(found.masks)
    if "rounding" in parts:
        yield rounding_table(found.roundings)
        if found.digits:
            yield digits_table(found.digits)


def _with_origin(tables: Iterable[Table], *, made_data: bool) -> Iterator[Table]:
    """Where made data stood in, every table says so: it may be read alone."""
    for table in tables:
        yield replace(table, notes=(*table.notes, _MADE)) if made_data else table


def _warnings(found: Findings) -> Iterator[Condition]:
    diverged = [record for record in found.lost if record.state is RunState.FINISHED]
    if diverged:
        names = sorted({record.cell.label for record in diverged})
        message = f"{some(len(diverged), 'run')} without finite scores stand in no table"
        yield Condition("lost-runs", message, "look at the losses with isorun report", tuple(names[:10]))
    strays = sorted(found.side_names - set(SIDES))
    if strays:
        message = f"runs that asked for a GPU were made without one: {'; '.join(strays)}"
        yield Condition("not-on-gpu", message, "check that torch sees the GPU")
    if found.frameworks:
        yield from found.frameworks.over_seeds["AP"].conditions


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
    lines = (*lines, *(framework_sentences(found.frameworks) if found.frameworks else ()))
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


_VERSIONS: Final = (
    "Table 4 (versions of the model's code), and PyTorch 0.1.9 to 0.2.0 in Table 5: those versions of PyTorch have no "
    "packages for today's Python. Versions of JAX stand in for Table 5, when asked for by --only versions."
)
_VECTORS: Final = "The paper's word vectors (aquaint+wiki, 50 dimensions) are not published; GloVe vectors stand in."
_LIBRARIES: Final = (
    "Table 6's libraries: one torch package is linked against one math library, so MKL cannot be exchanged for "
    "OpenBLAS; the paths that MKL, oneDNN and ATen offer on the processor are varied instead."
)


_ON_GPU: Final = ("devices", "masks")
"""Parts that are not planned without a GPU."""


def not_had(
    request: Request, parts: Sequence[str], found: Findings, records: Mapping[str, Sequence[RunRecord]]
) -> tuple[str, ...]:
    """A sentence for each thing that is in the paper and not in our tables."""
    always = () if request.only and "versions" not in parts else (_VERSIONS,)
    vectors = (_VECTORS,) if set(found.begun) - {"baseline"} and not found.made_data else ()
    return (
        *always,
        *vectors,
        *_gpu(parts, found),
        *_machine(request.scale, found),
        *_data(request.scale, found),
        *_no_runs(request, parts, records),
    )


def _gpu(parts: Sequence[str], found: Findings) -> Iterator[str]:
    if "devices" in parts and not any(item.side == "GPU" for item in found.settings["devices"]):
        yield "Table 8: no run was made on a GPU, because the driver shows none here or --device cpu was asked for."
    if "masks" in parts and not found.masks:
        yield "Masks by device: no GPU run, and two CPU paths draw the same masks."
    if found.seeds and not any("GPU" in item.sides for item in found.seeds):
        yield "The GPU side of Figure 2, Table 9 and Figure 3: a second CPU path (oneDNN off) stands in its place."


def _machine(scale: str, found: Findings) -> Iterator[str]:
    if "cpu-paths" in found.begun:
        yield _LIBRARIES
        had = {item.environment for item in found.settings["cpu-paths"]}
        missing = [path.name for path in CPU_PATHS if path not in cpu_paths() and path.name not in had]
        if missing:
            yield f"CPU paths that this processor has not: {', '.join(missing)}."
    counts = [thread_number(item.environment) for item in found.settings["threads"]]
    if counts and max(counts) < AMOUNTS[scale].threads:
        yield f"Table 7 beyond {max(counts)} threads: the runs could use no more CPUs."


def _data(scale: str, found: Findings) -> Iterator[str]:
    if not found.versions or any("TRAIN-ALL" in version.name for version in found.versions):
        return
    if scale in {"smoke", "cpu"}:
        yield f"TRAIN-ALL of TrecQA: too long for scale {scale}."
    elif not has_train_all():
        yield "TRAIN-ALL of TrecQA is not in the data folder (isorun data get trecqa brings it)."


def _no_runs(request: Request, parts: Sequence[str], records: Mapping[str, Sequence[RunRecord]]) -> Iterator[str]:
    """Parts that were not begun, by name; a part of which one study was begun, by its other study."""
    missing = []
    for part in (part for part in parts if part not in _ON_GPU):
        names = study_names(part, request.scale)
        empty = [name for name in names if not records.get(name)]
        missing += [part] if names and len(empty) == len(names) else empty
    if missing:
        yield f"No runs yet of: {', '.join(missing)} (isorun reproduce tacl18 --scale {request.scale} makes them)."


def findings_to_json(found: Findings) -> dict[str, Any]:
    """Everything, whether or not its part was asked for; empty lists where there are no runs."""
    return {
        "made_data": found.made_data,
        "runs": found.finished,
        "lost_runs": len(found.lost),
        "baseline": [item.to_json() for item in found.baselines],
        "data": [item.to_json() for item in found.versions],
        **{
            part: [_setting(item, found.tests[part].get(item)) for item in items]
            for part, items in found.settings.items()
        },
        "effects": [item.to_json() for item in found.effects],
        "versions": found.frameworks and found.frameworks.to_json(),
        "seeds": [item.to_json() for item in found.seeds],
        "agreements": {data: [item.to_json() for item in items] for data, items in found.agreements.items()},
        "masks": [item.to_json() for item in found.masks],
        "changes": [change.to_json() for pair in found.changes for change in pair],
        "rounding": [item.to_json() for item in found.roundings],
        "digits": [
            {"data": data, "side": side, "metric": metric, **digits.to_json()}
            for (data, side, metric), digits in found.digits.items()
        ],
    }


def _setting(item: Setting, test: QuestionTest | None) -> dict[str, Any]:
    return {
        "data": item.data,
        "side": item.side,
        "environment": item.environment,
        "runs": len(item.runs),
        "ap": list(item.values("AP")),
        "rr": list(item.values("RR")),
        "threads_used": sorted({run.threads for run in item.runs if run.threads is not None}),
        "hardware": item.runs[0].hardware,
        "weights": len(item.weights),
        "initial_weights": len({run.initial for run in item.runs if run.initial}),
        "wilcoxon_p_ap": None if test is None else test["AP"],
        "wilcoxon_p_rr": None if test is None else test["RR"],
    }
