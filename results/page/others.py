"""fewshot and dream, and what is not attempted of any paper."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from isorun.zoo.papers import papers
from page.numbers import STORED, conditions, load, machine, points, spelled


def fewshot_section() -> Iterator[str]:
    result = load("fewshot-cpu")
    numbers = result["numbers"]
    yield "## fewshot on two CPU cores"
    yield (
        f"`isorun reproduce fewshot --scale cpu`: {result['runs']['finished']} runs, {spelled(result['runs']['failed'])} failed "
        f"({machine(result)}). Scaled down: {'; '.join(result['scaled_down'])}."
    )
    yield "\n".join(f"- {line}" for line in result["verdict"])
    shares = ", ".join(
        f"{item['group']} {points(item['share'], 0)} % (90 % interval {points(item['lower'], 0)} to {points(item['upper'], 0)})"
        for item in numbers["variance_shares"]
        if item["share"]
    )
    yield "![Shares of the variance: configs, seeds, repeats](figures/fewshot-shares.svg)"
    yield (
        f"On a CPU identical runs are identical, so H1 and H3 hold trivially, and a model that takes "
        f"{numbers['each_once']['runs']} runs for independent counts each of {numbers['each_once']['results']} results several "
        f"times: that alone rejects H2. With seeds nested in configs: {shares}."
    )


def dream_section() -> Iterator[str]:
    result = load("dream")
    yield "## dream: the published search logs, replayed"
    yield "\n".join(f"- {line}" for line in result["verdict"])
    yield f"Told by the result itself:\n{conditions(result)}"


_OLDER: Final = (
    "The six searches by repair among these were made by an earlier policy, and not again: since then whole "
    "configurations are drawn while nothing trains, each parameter has one draw however many values it can take, and "
    "trials in which the prior is not trusted are the engine's. Those on a GPU were made again."
)


def searches_section() -> Iterator[str]:
    """The searches of dream that were carried out, on whichever machine there is a result of."""
    for name, where in (("dream-gpu", "a GPU"), ("dream-cpu", "two CPU cores")):
        if (STORED / f"{name}.json").is_file():
            yield from _searches(load(name), where)
    yield _OLDER


def _searches(result: dict[str, Any], where: str) -> Iterator[str]:
    compared = result["numbers"]["compared"]
    methods = {name: method["label"] for name, method in compared["methods"].items()}
    parts = [f"--only {part}" for part in result["only"]]
    yield f"## dream: searches by engines, and repaired, on {where}"
    yield (
        f"`{' '.join(('isorun reproduce dream --scale', result['scale'], *parts))}`: {result['runs']['finished']:,} trainings, "
        f"{spelled(result['runs']['failed'])} failed ({machine(result)}). The paper's engines, networks and most of its data "
        f"are others: what is seen compares in kind. Scaled down: {'; '.join(result['scaled_down'])}."
    )
    yield "\n".join(f"- {line}" for line in result["verdict"])
    yield "Pairs of searches from the same initial model, best score of all trials, in points:"
    yield _table(
        (
            "asked in",
            "method",
            "against",
            "pairs",
            "won",
            "difference",
            "95 % interval",
            "p, by Holm",
            "published",
            "verdict",
        ),
        [_contrast(one, methods) for one in compared["contrasts"]],
    )
    if compared["second_searches"]:
        yield "The same search with another seed, which the paper does not have:"
        yield _table(
            ("data", "family", "method", "best of each seed (%)", "worst to best (points)"),
            [_again(one, methods) for one in compared["second_searches"]],
        )
    if result["warnings"]:
        yield f"Told by the result itself:\n{conditions(result)}"


def _contrast(one: dict[str, Any], methods: dict[str, str]) -> tuple[str, ...]:
    interval = "–" if one["ci95"] is None else " to ".join(f"{100 * end:+.2f}" for end in one["ci95"])
    published = "–" if one["published_points"] is None else f"{one['published_points']:+.2f}"
    difference = f"{100 * one['difference']:+.2f}"
    counted = (str(one["pairs"]), str(one["won"]))
    names = (one["asked_in"], methods[one["first"]], methods[one["second"]])
    p = "–" if one["p_holm"] is None else f"{one['p_holm']:.2g}"
    return (*names, *counted, difference, interval, p, published, one["verdict"])


def _again(one: dict[str, Any], methods: dict[str, str]) -> tuple[str, ...]:
    best = one["best"]
    scores = ", ".join(points(score) for score in best)
    return one["data"], one["family"], methods[one["method"]], scores, points(max(best) - min(best))


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = (head, ("---",) * len(head), *rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def omissions_section() -> Iterator[str]:
    yield "## Not attempted"
    yield "\n".join(f"- {paper.name}, {item.sentence}" for paper in papers() for item in paper.not_attempted)
