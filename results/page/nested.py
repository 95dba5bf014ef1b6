"""Seed against kernel noise."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from typing import Any

from page.numbers import SELECTION, conditions, load, machine, p, points, sd, share, span, spelled, table, two


def nested_section() -> Iterator[str]:
    result = load("ase20-nested-gpu")
    found = result["numbers"]["nested"]
    fixed, still, answers = found["fixed_seed"], found["deterministic"], found["disagreement"]
    main = fixed["components"][SELECTION]
    seeds, runs = fixed["seeds"], fixed["runs"]
    kernel = 1 - main["between_share"]
    kernel_interval = [1 - end for end in reversed(main["between_share_ci95"])]
    stays = points(answers["ratio"], 0)
    yield f"## Seed against kernel noise: with the seed fixed, {stays} % of the disagreement between two runs stays"
    yield (
        f"`isorun reproduce ase20 --scale gpu --only nested`: {found['network']} on {found['data']}, {seeds} seeds with "
        f"{runs // seeds} repeats each at level fixed-seed, and the same seeds with deterministic kernels; {runs} and "
        f"{still['runs']} runs, {spelled(result['runs']['failed'])} failed ({machine(result)}). Runs of one seed share initial weights and order of images: "
        "only the kernels tell them apart. So what varies within seeds is kernel noise, and the seed is what is left. "
        f"Size: {' '.join(result['scaled_down'])}"
    )
    yield table(
        (
            "selection",
            "mean (%)",
            "sd of all runs (points)",
            "sd, seed",
            "sd, kernels",
            "kernels' share of the variance (%)",
            "95 % interval (%)",
            "do seeds differ? p",
        ),
        (_nested_row(fixed, rule) for rule in fixed["components"]),
    )
    yield "![Test accuracy of every fixed-seed run, a row a seed](figures/ase20-nested.svg)"
    yield (
        f"- **Of the answers:** two runs of one seed disagree on {share(answers['within'])} % of the {answers['examples']:,} "
        f"test images, two runs of two seeds on {share(answers['between'])} %: with the seed fixed, "
        f"{stays} % of the disagreement stays (95 % interval {span(answers['ratio_ci95'])} %). This is "
        "the sharper measure: it asks every image."
    )
    yield (
        f"- **Of the accuracy:** {points(kernel, 0)} % of the variance is kernel noise (95 % interval {span(kernel_interval)} "
        f"%); {spelled(seeds)} seeds cannot say it more closely."
    )
    alike = still["different_final_weights"] == still["seeds"]
    spread_still = still["seed_means"][SELECTION]
    yield (
        f"- **Deterministic kernels** gave {'one set of weights for each seed' if alike else 'NOT one set of weights a seed'} "
        f"({still['different_final_weights']} from {still['runs']} runs of {still['seeds']} seeds; fixed-seed: "
        f"{fixed['different_final_weights']} from {runs}). A single run is then repeatable, and no better known: over the "
        f"seeds the accuracy still has an sd of {two(spread_still['sd'])} points (90 % interval "
        f"{' to '.join(two(end) for end in spread_still['sd_ci90'])}); all fixed-seed runs together have "
        f"{two(sd(_values(fixed, SELECTION)))}."
    )
    yield from _nested_convergence(found)
    yield f"- **Told by the result itself:**\n{conditions(result)}" if result["warnings"] else ""


def _nested_row(level: dict[str, Any], rule: str) -> tuple[str, ...]:
    values, part = _values(level, rule), level["components"][rule]
    interval = [1 - end for end in reversed(part["between_share_ci95"])]
    return (
        rule,
        points(statistics.mean(values)),
        two(sd(values)),
        *(two(math.sqrt(part[name])) for name in ("between", "within")),
        points(1 - part["between_share"], 0),
        span(interval),
        p(part["p"]),
    )


def _values(level: dict[str, Any], rule: str) -> list[float]:
    return [run[rule]["test_accuracy"] for run in level["values"]]


def _nested_convergence(found: dict[str, Any]) -> Iterator[str]:
    course = found["convergence"]
    epochs = course["epochs"]
    picked = [run[SELECTION]["epoch"] for run in found["fixed_seed"]["values"]]
    at_end = sum(epoch == epochs for epoch in picked)
    shown = (epochs // 2, 2 * epochs // 3, epochs)
    course_text = ", ".join(f"{points(course['val_accuracy'][epoch - 1])} after {epoch}" for epoch in shown)
    yield (
        f"- **Had training stopped improving?** {epochs} epochs; mean validation accuracy {course_text}. The epoch of the "
        f"best validation loss is {statistics.median(picked):g} in the median, {min(picked)} to {max(picked)} over the runs; it is "
        f"the last one in {at_end} of {len(picked)}."
    )
