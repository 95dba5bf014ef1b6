"""docs/reference/json.md, from what the questions answer: `python docs/building/json_reference.py`.

Every question is asked about the same few runs, and each key of its answer is listed with the kind of its value. Runs
are constants, so that the page only changes when an answer does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import isorun

__all__ = ["PAGE", "markdown"]

PAGE = Path(__file__).resolve().parent.parent / "reference" / "json.md"

_INTRODUCTION = """\
# The JSON reference

What `--json` prints, and `to_json()` of a result in Python gives: every key, with the kind of its value, made from
real answers by `python docs/building/json_reference.py`. Keys are stable: new ones may come, none changes its meaning.
`a[].b` is the key `b` of every entry of the list `a`; a list or table in brackets was empty in these answers, and what
is null in them may have a value in yours. What the numbers mean: [statistics](../statistics.md). The report of a
study has [a page of its own](../report-json.md), and so have the answers of [`check`](../ci.md),
[`factors`](../factors.md), [`price`](../price.md), [`audit`](../audit.md) and [`repair`](../repair.md).
"""
_BASE = [0.861, 0.847, 0.854, 0.844, 0.842, 0.850, 0.849, 0.859, 0.837, 0.841, 0.846, 0.843]
_NEW = [0.867, 0.851, 0.871, 0.853, 0.841, 0.866, 0.873, 0.868, 0.822, 0.847, 0.873, 0.846]
_OTHER = [0.853, 0.841, 0.858, 0.848, 0.838, 0.852, 0.851, 0.851, 0.830, 0.840, 0.852, 0.840]
_RUNS = {
    "acc": [*_BASE, *_NEW, *_OTHER],
    "model": ["base"] * 12 + ["new"] * 12 + ["other"] * 12,
    "seed": [*range(1, 13)] * 3,
}
_KINDS = {bool: "true or false", int: "whole number", float: "number", str: "text", type(None): "null"}


def markdown() -> str:
    """The whole page."""
    return "\n".join([_INTRODUCTION, *(_section(command, answer) for command, answer in _answers())])


def _answers() -> Iterator[tuple[str, Any]]:
    of: dict[str, Any] = {"value": "acc", "by": "model"}
    yield "isorun summarize", isorun.summarize(_RUNS, **of)
    yield "isorun compare", isorun.compare(_RUNS, **of, a="new", b="base", pair="seed", direction="higher")
    yield "isorun decide", isorun.decide(_NEW, _BASE, direction="higher")
    yield "isorun power", isorun.power(_BASE, difference=0.01)
    yield "isorun claim", isorun.claim(0.8, model="wrn-28-10", data="cifar100")
    yield "isorun mixed", isorun.mixed_model(_RUNS, "acc ~ model + (1|seed)")
    yield "isorun rank", isorun.rank(_RUNS, **of, direction="higher")
    yield "isorun agree", isorun.agree(_RUNS, **of, pair="seed", sides=("base", "new"))


def _section(command: str, answer: Any) -> str:
    data = json.loads(json.dumps(answer.to_json()))
    kinds: dict[str, list[str]] = {}
    for path, kind in _walk("", data):
        known = kinds.setdefault(path, [])
        if kind not in known:
            known.append(kind)
    rows = "\n".join(f"| `{path}` | {' or '.join(kind)} |" for path, kind in kinds.items())
    whole = " A list, an entry a group." if isinstance(data, list) else ""
    text = (type(answer).__doc__ or "").partition("\n")[0]
    return f"## `{command}`\n{text}{whole}\n\n| key | value |\n|---|---|\n{rows}\n"


def _walk(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        yield from _of_table(path, value)
    elif isinstance(value, list | tuple):
        yield from _of_list(path, value)
    else:
        yield path, _KINDS[type(value)]


def _of_table(path: str, value: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if not value:
        yield path, "(table)"
    for key, item in value.items():
        yield from _walk(f"{path}.{key}" if path else key, item)


def _of_list(path: str, value: list[Any] | tuple[Any, ...]) -> Iterator[tuple[str, str]]:
    if not value:
        yield path, "(list)"
    elif all(isinstance(item, int | float) for item in value) and len(value) == 2:
        yield path, "low and high"
    else:
        for item in value:
            yield from _walk(f"{path}[]", item)


if __name__ == "__main__":
    PAGE.write_text(markdown(), encoding="utf-8")
    print(PAGE)
