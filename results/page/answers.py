"""tacl18: masks by device, seeds, CPU paths."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from isorun.zoo.studies.tacl18.measured import chance_difference, claimed_gains
from isorun.zoo.studies.tacl18.published import AGREEMENTS, RANGES
from page.numbers import bracket, conditions, load, machine, p, sd, spelled, table


def masks_section() -> Iterator[str]:
    result = load("tacl18-masks-gpu")
    effects = result["numbers"]["masks"]
    runs = sum(len(side) for item in effects for side in item["sides"].values())
    seeds = effects[0]["agreements"][0]["n"]
    found = "; ".join(f"{item['data']}: {_fall(item)}" for item in effects)
    yield f"## Dropout masks drawn by each device: does agreement about the seeds' order fall? {found}"
    yield (
        f"`isorun reproduce tacl18 --scale gpu --only masks`: {seeds} of the paper's seeds on CPU and GPU, with masks that both "
        f"share and with each device's own, as in the paper's code; {runs} runs ({machine(result)}). Kendall's tau of "
        "the seeds' order by AP:"
    )
    rows = [
        (
            item["data"],
            one["a"],
            one["b"],
            "same" if one["same_masks"] else "other",
            "same" if one["same_side"] else "other",
            str(one["n"]),
            f"{one['tau']:.2f}",
            bracket(one["tau_ci95"]),
            _published_tau(item, one),
        )
        for item in effects
        for one in item["agreements"]
    ]
    yield table(("data", "first", "second", "masks", "arithmetic", "seeds", "tau", "95 % interval", "paper"), rows)
    for item in effects:
        shared, own = item["agreements"][:2]
        yield (
            f"- {item['data']}: from shared to own masks tau falls from {shared['tau']:.2f} to {own['tau']:.2f}, by "
            f"{item['fall']:.2f} (95 % interval {bracket(item['fall_ci95'])}). {_cause(item)}"
        )
        yield _masks_alone(item)
        yield _same_as_before(item)
    if result["warnings"]:
        yield f"- **Told by the result itself:**\n{conditions(result)}"


def _fall(item: dict[str, Any]) -> str:
    """Whether agreement fell, for the heading: a fall whose interval holds zero is none that was seen."""
    shared, own = item["agreements"][:2]
    if item["fall_ci95"][0] <= 0.0:
        return "no fall is seen"
    return f"from {shared['tau']:.2f} to {own['tau']:.2f} (paper: {item['published_tau']:.2f})"


def _published_tau(item: dict[str, Any], one: dict[str, Any]) -> str:
    return "–" if one["same_masks"] or one["same_side"] else f"{item['published_tau']:.2f}"


def _cause(item: dict[str, Any]) -> str:
    low, high = item["fall_ci95"]
    own = item["agreements"][1]["tau_ci95"]
    within = own[0] <= item["published_tau"] <= own[1]
    beside = "lies within" if within else "lies outside"
    if low <= 0.0 <= high:
        return f"That cannot be told from none; the published {item['published_tau']:.2f} {beside} the interval of own masks."
    close = ", barely" if min(abs(low), abs(high)) < 0.05 else ""
    return (
        f"The interval leaves out zero{close}: masks are a cause of the gap; the published {item['published_tau']:.2f} {beside} "
        "the interval of own masks."
    )


def _masks_alone(item: dict[str, Any]) -> str:
    alone = [one for one in item["agreements"] if one["same_side"]]
    taus = " and ".join(f"{one['tau']:.2f} ({one['a']})" for one in alone)
    return f"- {item['data']}, other masks on the same device, where the arithmetic is the same: tau {taus}."


def _same_as_before(item: dict[str, Any]) -> str:
    """The runs with shared masks are the trainings of the section on seeds, made again on another machine."""
    before = next(other for other in load("tacl18-gpu")["numbers"]["seeds"] if other["data"] == item["data"])
    said = []
    for side, runs in before["sides"].items():
        again = {run["seed"]: run["ap"] for run in item["sides"][side]}
        same = sum(again.get(run["seed"]) == run["ap"] for run in runs)
        said.append(f"{same} of {len(runs)} on the {side}")
    return f"- {item['data']}, shared masks: the trainings of the section on seeds, made again; the same AP for {' and '.join(said)} (`tacl18-gpu.json`)."


def seeds_section() -> Iterator[str]:
    result = load("tacl18-gpu")
    numbers = result["numbers"]
    rows = [_seed_row(item["data"], side, runs) for item in numbers["seeds"] for side, runs in item["sides"].items()]
    most = all(2 * below > gains for below, gains in (map(int, row[6].split(" of ")) for row in rows))
    is_most = "most" if most else "not most"
    yield f"## tacl18: {is_most} published gains are smaller than what chance makes of two seeds"
    yield (
        "`isorun reproduce tacl18 --scale gpu --runs 50 --only seeds --only devices`: "
        f"{result['runs']['finished']} runs, {spelled(result['runs']['failed'])} failed ({machine(result)}). Equal initial "
        "weights, order and dropout masks on CPU and GPU, so that only the arithmetic differs."
    )
    yield table(
        (
            "data",
            "side",
            "seeds",
            "AP, mean",
            "sd",
            "two runs differ by chance up to (1.96 √2 sd)",
            "published gains below that",
            "range",
            "range in the paper",
        ),
        rows,
    )
    yield "![AP over the seeds on CPU and GPU](figures/tacl18-seeds.svg)"
    yield "![The same seeds of TrecQA on CPU and GPU](figures/tacl18-cpu-to-gpu-trecqa.svg)"
    yield (
        f"- **{'Holds' if most else 'Does not hold'}:** {is_most} published gains over the best system before are below the bar. It "
        "is the difference that two single runs exceed in one case of twenty, which does not grow with the number of seeds, as "
        "a range does."
    )
    changes = [item for item in numbers["changes"] if item["metric"] == "AP"]
    moved = "; ".join(
        f"{item['data']}: one seed by up to {max(abs(item['min']), abs(item['max'])):.3f}, the means by {abs(item['mean']):.4f} "
        f"(paired t, p {p(item['paired_t_p'])})"
        for item in changes
    )
    yield f"- **Holds:** from CPU to GPU single seeds change much while the means do not. {moved}."
    yield (
        f"- **Differs:** tau of the seeds' order between CPU and GPU is {' and '.join(_taus(numbers))}; the section on masks "
        "above tests the reason."
    )
    yield f"- **Falls short:** {' '.join(result['not_had'])} {'; '.join(result['scaled_down'])}."
    yield from _cpu_paths()


def _seed_row(data: str, side: str, runs: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    values = [run["ap"] for run in runs]
    bar, gains = chance_difference(values), claimed_gains(data, "AP")
    below = sum(gain < (bar or 0.0) for gain in gains)
    paper = RANGES.get((data, side))
    return (
        data,
        side,
        str(len(values)),
        f"{statistics.mean(values):.3f}",
        f"{sd(values):.4f}",
        f"{bar:.3f}",
        f"{below} of {len(gains)}",
        f"{max(values) - min(values):.3f}",
        "–" if paper is None else f"{paper.value('AP'):.3f}",
    )


def _taus(numbers: dict[str, Any]) -> Iterator[str]:
    for data, found in numbers["agreements"].items():
        one = next(item for item in found if (item["a"], item["b"]) == ("AP CPU", "AP GPU"))
        published = AGREEMENTS[data]["kendall"]["AP CPU", "AP GPU"]
        yield f"{one['kendall']['estimate']:.2f} on {data} (paper: {published:.2f})"


def _cpu_paths() -> Iterator[str]:
    result = load("tacl18-cpu")
    numbers = result["numbers"]
    said = []
    for data in ("TrecQA", "WikiQA"):
        effect = next(
            item
            for item in numbers["effects"]
            if (item["factor"], item["data"], item["metric"]) == ("CPU path", data, "AP")
        )
        said.append(f"{effect['difference']:.4f} on {data} (paper, between libraries: {effect['published']:.4f})")
    paths = [item for item in numbers["cpu-paths"] if item["data"] == "TrecQA"]
    yield (
        f"On two CPU cores (`--scale cpu --only threads --only cpu-paths`, {result['runs']['finished']} runs of one seed): "
        f"{spelled(len(paths))} math paths of the same processor and the same wheel move AP by {' and '.join(said)}."
    )
