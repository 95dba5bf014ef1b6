"""fewshot and dream, and what is not attempted of any paper."""

from __future__ import annotations

from collections.abc import Iterator

from isorun.zoo.papers import papers
from page.numbers import conditions, load, machine, points, spelled


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


def omissions_section() -> Iterator[str]:
    yield "## Not attempted"
    yield "\n".join(f"- {paper.name}, {item.sentence}" for paper in papers() for item in paper.not_attempted)
