"""docs/reference/json.md, from what commands answer: `python docs/building/json_reference.py` (a minute).

Every command is typed with `--json` (`json_answers.py`), and each key of its answer is listed with the kind of its
value. Names that a user chose (metrics, classes, parameters) stand as `{name}`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parent))

from json_answers import answers

from isorun.cli.main import COMMANDS

__all__ = ["PAGE", "documented", "markdown", "undocumented"]

PAGE = Path(__file__).resolve().parent.parent / "reference" / "json.md"

_INTRODUCTION = """\
# The JSON reference

What `--json` prints, and `to_json()` of a result in Python gives: every key, with the kind of its value, made from
real answers by `python docs/building/json_reference.py`. Keys are stable: new ones may come, none changes its meaning.
`a[].b` is the key `b` of every entry of the list `a`, and `{name}` is a name that you chose: a metric, a class, a
parameter. A list or table in brackets was empty in these answers, or holds what a machine happens to have; what
is null in them may have a value in yours. What the numbers mean: [statistics](../statistics.md). What the keys of a
report mean has [a page of its own](../report-json.md), and so have the answers of [`check`](../ci.md),
[`factors`](../factors.md), [`price`](../price.md), [`audit`](../audit.md), [`repair`](../repair.md),
[`reproduce`](../reproduce.md), packages ([`pack`, `verify`](../packages.md)),
[`replay` and `replicate`](../replication.md), [`import` and `export`](../trackers.md), [`env`](../environments.md) and
those of [a registry](../registry.md).
"""
_KINDS: Final = {bool: "true or false", int: "whole number", float: "number", str: "text", type(None): "null"}
_NAMED: Final = frozenset(
    (
        *("metrics", "classes", "per_class", "values", "within_seed_sd", "digests", "studies", "states", "parameters"),
        *("weights", "also", "config_values", "details", "unjudged", "unexamined", "common"),
    )
)
"""Tables whose keys are names that somebody chose."""
_OPEN: Final = frozenset(("effective", "requested", "made", "environment_content", "numbers", "page", "machines"))
"""Tables that have what a machine, an environment or a paper happens to have."""
_WARNING: Final = {"code": "text", "message": "text", "next": "text", "groups": "(list)", "voids": "true or false"}

Keys = dict[str, list[str]]
"""Each key of an answer, with the kinds of its values."""


def markdown() -> str:
    """The whole page."""
    found, order = _by_name(), list(COMMANDS)
    names = sorted(found, key=lambda name: order.index(name.split()[1]))  # stable: variants stay as they were asked
    return "\n".join([_INTRODUCTION, *(_section(name, found[name]) for name in names)])


def documented() -> dict[str, set[str]]:
    """The keys that the page has of each command."""
    sections = re.split(r"^## `(.+)`$", PAGE.read_text("utf-8"), flags=re.MULTILINE)[1:]
    pairs = zip(sections[::2], sections[1::2], strict=True)
    return {name: set(re.findall(r"^\| `([^`]*)` \|", text, re.MULTILINE)) for name, text in pairs}


def undocumented() -> list[str]:
    """Keys that an answer has and the page has not, and the first parts of keys that the page has and no answer."""
    page, faults = documented(), []
    for name, told in _by_name().items():
        known, found = page.get(name, set()), _keys(told)
        faults += [f"{name}: {key} is not on the page" for key in found if not _is_known(key, found[key], known)]
        gone = {_first(key) for key in known} - {_first(key) for key in found}
        faults += [f"{name}: {key} is on the page, and in no answer" for key in sorted(gone)]
    return faults


def _is_known(key: str, kinds: Sequence[str], known: set[str]) -> bool:
    """Whether a key is on the page; of one that was empty this time, whether anything of it is."""
    empty = all(kind in ("null", "(list)", "(table)") for kind in kinds)
    below = any(other.startswith((f"{key}.", f"{key}[]")) for other in known)
    return key in known or (empty and below)


def _first(key: str) -> str:
    return re.split(r"[.\[]", key.removeprefix("[]."))[0]


def _by_name() -> dict[str, list[Any]]:
    """All answers of each command: what is empty in one may be filled in another."""
    found: dict[str, list[Any]] = {}
    for name, answer in answers():
        found.setdefault(name, []).append(answer)
    return found


def _keys(told: Sequence[Any]) -> Keys:
    kinds: Keys = {}
    for path, kind in (pair for answer in told for pair in _walk("", answer)):
        known = kinds.setdefault(path, [])
        if kind not in known:
            known.append(kind)
    return kinds


def _section(name: str, told: Sequence[Any]) -> str:
    rows = "\n".join(f"| `{path}` | {' or '.join(kind)} |" for path, kind in _keys(told).items())
    said = COMMANDS[name.split()[1]]
    whole = " A list." if isinstance(told[0], list) else ""
    ending = "" if said.endswith("?") else "."
    return f"## `{name}`\n{said[:1].upper()}{said[1:]}{ending}{whole}\n\n| key | value |\n|---|---|\n{rows}\n"


def _walk(path: str, value: Any) -> Iterator[tuple[str, str]]:
    last = path.rpartition(".")[2]
    if last in ("warnings", "conditions") and isinstance(value, list):
        yield from ((f"{path}[].{key}", kind) for key, kind in _WARNING.items())
    elif last.removesuffix("[]") in _OPEN and isinstance(value, Mapping | list):
        yield path.removesuffix("[]"), "(list)" if isinstance(value, list) else "(table)"
    elif isinstance(value, Mapping):
        yield from _of_table(path, value)
    elif isinstance(value, list):
        yield from _of_list(path, value)
    else:
        yield path, _KINDS[type(value)]


def _of_table(path: str, value: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if not value:
        yield path, "(table)"
    chosen = path == "baseline" or path.endswith(".per_class.{name}")
    named = chosen or path.rpartition(".")[2] in _NAMED
    for key, item in value.items():
        name = "{name}" if named else key
        yield from _walk(f"{path}.{name}" if path else name, item)


def _of_list(path: str, value: list[Any]) -> Iterator[tuple[str, str]]:
    if not value:
        yield path, "(list)"
    elif all(isinstance(item, int | float) and not isinstance(item, bool) for item in value) and len(value) == 2:
        yield path, "low and high"
    else:
        for item in value:
            yield from _walk(f"{path}[]", item)


if __name__ == "__main__":
    PAGE.write_text(markdown(), encoding="utf-8")
    print(PAGE)
