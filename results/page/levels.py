"""ase20 at the three levels, on a GPU and on two cores, and the part of docs/levels.md about it."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from page.numbers import SELECTION, conditions, load, machine, p, points, sd, share, spelled, table, two


def levels_section() -> Iterator[str]:
    result = load("ase20-gpu")
    groups = [group for group in result["numbers"]["groups"] if group["finished"]]
    finished, failed = result["runs"]["finished"], result["runs"]["failed"]
    yield "## ase20 on one GPU: the seed is not enough, deterministic kernels are"
    yield (
        f"`isorun reproduce ase20 --scale gpu -j 8 --device cuda`: {finished} runs, {spelled(failed)} failed "
        f"({machine(result)}). Scaled down: {' '.join(result['scaled_down'])} Every row is judged at the best validation loss."
    )
    yield table(
        (
            "network",
            "level",
            "runs",
            "mean (%)",
            "sd (points)",
            "largest difference (points)",
            "paper",
            "best epoch, mean",
            "different weights",
        ),
        (_level_row(result, group) for group in groups),
    )
    yield "![Test accuracy of fixed-seed runs of ResNet38 and ResNet56](figures/ase20-fixed-seed-cifar10.svg)"
    yield (
        "A best epoch next to the last one means that training was cut while it still improved: the spread of the ResNets is "
        f"that of unfinished trainings at {_accuracies(groups, 'ResNet')} % accuracy, and WRN-28-10, at "
        f"{_accuracies(groups, 'WRN')} %, had hardly begun; nothing is concluded from it. The class that differs most, with "
        "the rule under which it does:"
    )
    yield table(
        ("network", "level", "selection", "class", "difference (points)", "paper"),
        (_class_row(result, group) for group in groups if group["level"] != "deterministic"),
    )
    yield from _level_findings(result, groups)


def _level_row(result: dict[str, Any], group: dict[str, Any]) -> tuple[str, ...]:
    rule = group["selections"][SELECTION]
    values = rule["values"]
    difference = max(values) - min(values)
    paper = result["numbers"]["published"]["table_2"].get(group["level"], {}).get(group["network"])
    return (
        group["network"],
        group["level"],
        str(group["finished"]),
        points(statistics.mean(values)),
        two(sd(values)),
        two(difference),
        "–" if paper is None else f"{paper['overall']['difference']:.1f}",
        f"{rule['epochs']['mean']:.1f} of {_epochs(result, group['network'])}",
        f"{group['different_final_weights']} of {group['finished']}",
    )


def _class_row(result: dict[str, Any], group: dict[str, Any]) -> tuple[str, ...]:
    found, paper = group["per_class"], result["numbers"]["published"]["table_2"][group["level"]][group["network"]]
    published = f"{paper['per_class']['difference']:.1f}"
    return (group["network"], group["level"], found["selection"], found["class"], two(found["max_diff"]), published)


def _epochs(result: dict[str, Any], network: str) -> str:
    line = next(line for line in result["scaled_down"] if network in line.partition(":")[0])
    found = re.search(r"(\d+) of \d+ epochs", line)
    return found[1] if found else ""


def _accuracies(groups: Sequence[dict[str, Any]], name: str) -> str:
    means = [
        statistics.mean(group["selections"][SELECTION]["values"])
        for group in groups
        if group["network"].startswith(name)
    ]
    return f"{points(min(means), 0)} to {points(max(means), 0)}"


def _level_findings(result: dict[str, Any], groups: Sequence[dict[str, Any]]) -> Iterator[str]:
    findings = {item["name"]: item for item in result["numbers"]["findings"]}
    fixed = [group for group in groups if group["level"] == "fixed-seed"]
    still = [group for group in groups if group["level"] == "deterministic"]
    alike = sum(group["different_final_weights"] == 1 for group in still)
    all_differ = sum(group["different_final_weights"] == group["finished"] for group in fixed)
    yield (
        f"- **Holds:** runs with the same seed end with different weights ({all_differ} of {len(fixed)} networks, every run) "
        f"and accuracies{', and single classes differ more than the whole' if findings['3b']['seen'] else ''}."
    )
    yield (
        f"- **New:** with deterministic kernels, forced by isorun from outside, {alike} of {len(still)} networks gave one set "
        f"of weights in {still[0]['finished']} runs."
    )
    weak, levene = findings["5.1 weak"], findings["5.2 Levene"]
    yield (
        f"- **Does not hold here:** weak runs: {weak['ours']} (the paper: {weak['published']}; its learning rate is not "
        f"published, and ours is kinder). Levene's test: {levene['ours']}; among {len(fixed)} networks chance alone gives one in "
        f"{points(1 - 0.95 ** len(fixed), 0)} % of cases."
    )
    yield _example_line(result)
    yield f"- **Told by the result itself:**\n{conditions(result)}"
    yield (
        "- The accuracies of single classes, run by run, are not in this file: it was stored before they were kept. The one "
        "class that differs most is."
    )


def _example_line(result: dict[str, Any]) -> str:
    by_level = {item["level"]: item["comparison"] for item in result["numbers"]["example"]}
    said = [
        f"{level}: {points(one['mean_a'], 1)} against {points(one['mean_b'], 1)} %, p {p(one['mann_whitney']['p'])}, wrong order "
        f"in {points(one['single_run_reversal'], 0)} % of pairs of single runs"
        for level, one in ((level, by_level[level]) for level in ("default", "fixed-seed"))
    ]
    return (
        f"- **The paper's example turns against itself:** ResNet56 and ResNet38, {'; '.join(said)}. The fixed-seed runs are "
        "repeats of one seed each: they ask about two draws, not about two networks."
    )


def cpu_paragraph() -> Iterator[str]:
    result = load("ase20-cpu")
    finding = next(item for item in result["numbers"]["findings"] if item["name"] == "1")
    default = [group for group in result["numbers"]["groups"] if group["level"] == "default" and group["overall"]]
    widest = max(default, key=lambda group: group["overall"]["max_diff"])
    fixed = [group for group in result["numbers"]["groups"] if group["level"] == "fixed-seed" and group["finished"] > 1]
    alike = sum(group["different_final_weights"] == 1 for group in fixed)
    weak = sum(bool(rule["weak_runs"]) for rule in widest["selections"].values())
    left_out = len(widest["selections"][widest["overall"]["selection"]]["weak_runs"])
    runs = "a weak run" if left_out == 1 else f"{spelled(left_out)} weak runs"
    yield (
        f"On two CPU cores (`--scale cpu -j 2`, {result['runs']['finished']} runs) fixed-seed runs are bit-identical in {alike} of "
        f"{len(fixed)} groups: there the seed is enough, and findings about kernel noise need a GPU. Default runs differ by up "
        f"to {two(widest['overall']['max_diff'])} points ({widest['network']}, {widest['finished']} runs"
        f"{f', {runs} counted' if weak else ''}); {_without(finding['ours'])} when weak runs are left out."
    )


def _without(ours: str) -> str:
    return ours.partition(" (")[0]


def factors_section() -> Iterator[str]:
    result = load("ase20-gpu")
    yield "### Which factor makes the accuracy vary? (in no paper)"
    yield "One factor takes the run's seed, all others stay; deterministic kernels, so nothing else can vary. Sd in points:"
    names = ("weights", "order", "augmentation", "all", "none")
    yield table(
        ("network", "seeds", *names),
        (
            (item["network"], str(item["arms"]["all"]["n"]), *(_arm_sd(item["arms"].get(name)) for name in names))
            for item in result["numbers"]["factors"]
        ),
    )
    yield "![ResNet38: accuracy of every run by what was varied](figures/ase20-factors-resnet38.svg)"
    for item in result["numbers"]["factors"]:
        lead = item["lead"]
        told = (
            f"{lead['largest']} vary the accuracy most"
            if lead["largest"]
            else f"{' and '.join(lead['not_told_apart'])} cannot be told apart"
        )
        yield f"- {item['network']}: {told} (F test against the next, p {p(lead['f_test_p'])})."
    yield (
        "- So few seeds leave wide intervals, the shares hold for one base seed, and the ResNet38 training was cut short. "
        "WRN-28-10, the only network with dropout, was not run here: dropout's share is still open."
    )


def _arm_sd(arm: dict[str, Any] | None) -> str:
    return "–" if arm is None or arm["variance"] is None else two(math.sqrt(arm["variance"]))


def levels_part() -> tuple[str, ...]:
    """Our own measurements for docs/levels.md."""
    result, nested = load("ase20-gpu"), load("ase20-nested-gpu")
    groups = [
        item for item in result["numbers"]["groups"] if item["finished"] and item["network"] in ("LeNet5", "ResNet38")
    ]
    rows = [
        (
            group["network"],
            group["level"],
            f"{group['different_final_weights']} of {group['finished']}",
            f"{points(statistics.mean(group['selections'][SELECTION]['values']))} % ± {two(sd(group['selections'][SELECTION]['values']))}",
            two(max(group["selections"][SELECTION]["values"]) - min(group["selections"][SELECTION]["values"])),
        )
        for group in groups
    ]
    found = nested["numbers"]["nested"]
    answers = found["disagreement"]
    heads = ("network", "level", "distinct final weights", "test accuracy (mean ± sd)", "largest difference (points)")
    text = (
        f"One GPU ({machine(result)}), judged at the best validation loss, every fixed-seed row repeats of one seed; sizes and "
        "caveats are in [our results](results.md):"
    )
    tail = (
        f"The seed is not enough: of {found['network']} on {found['data']}, two runs of one seed disagree on "
        f"{share(answers['within'])} % of the test images, two runs of two seeds on {share(answers['between'])} %. On a CPU "
        "(two threads) fixed-seed runs of the digits LeNet are bit-identical, and runs with another number of threads are not; "
        "`make demo` shows the former."
    )
    return text, table(heads, rows), tail
