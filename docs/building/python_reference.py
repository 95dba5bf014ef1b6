"""docs/reference/python.md, from signatures and docstrings: `python docs/building/python_reference.py`."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import isorun
from isorun import stats

__all__ = ["PAGE", "markdown"]

PAGE = Path(__file__).resolve().parent.parent / "reference" / "python.md"

_INTRODUCTION = """\
# The Python reference

Every public name of `isorun` and `isorun.stats`, made from the code: `python docs/building/python_reference.py`. [In
Python](../python.md) shows how they are used; modules for parts of your own are
[listed apart](../extending.md#what-to-import).
"""
_WIDTH = 96


def markdown() -> str:
    """The whole page."""
    names = [(name, getattr(isorun, name)) for name in isorun.__all__]
    questions = [(name, value) for name, value in names if not isinstance(value, type) and callable(value)]
    results = [(name, value) for name, value in names if isinstance(value, type)]
    statistics = [(name, getattr(stats, name)) for name in stats.__all__]
    return "\n".join(
        [
            _INTRODUCTION,
            "## Questions and calls",
            *(_section("isorun", name, value) for name, value in sorted(questions)),
            "## Studies, results and errors",
            *(_section("isorun", name, value) for name, value in sorted(results)),
            "## Statistics alone",
            *(_section("isorun.stats", name, value) for name, value in sorted(statistics)),
        ]
    )


def _section(module: str, name: str, value: Any) -> str:
    text = _prose(inspect.getdoc(value) or "")
    made_by_hand = getattr(getattr(value, "__dataclass_params__", None), "init", True) is False
    if isinstance(value, type) and not made_by_hand:
        return f"### `{module}.{name}`\n\n{text}\n{_fields(value)}"
    return f"### `{module}.{name}`\n```python\n{_signature(name, value)}\n```\n\n{text}\n"


def _signature(name: str, value: Any) -> str:
    """As it would be written, an argument a line where one line is not enough."""
    signature = inspect.signature(value)
    plain = _plain(f"{name}{signature}")
    if len(plain) <= _WIDTH:
        return plain
    parts = _plain("\n".join(f"    {part}," for part in _arguments(signature)))
    returned = "" if signature.return_annotation is inspect.Signature.empty else f" -> {signature.return_annotation}"
    return f"{name}(\n{parts}\n){_plain(returned)}"


def _arguments(signature: inspect.Signature) -> Iterator[str]:
    before = None
    for argument in signature.parameters.values():
        if before is inspect.Parameter.POSITIONAL_ONLY and argument.kind is not before:
            yield "/"
        if argument.kind is inspect.Parameter.KEYWORD_ONLY and before not in {
            inspect.Parameter.KEYWORD_ONLY,
            inspect.Parameter.VAR_POSITIONAL,
        }:
            yield "*"
        yield str(argument)
        before = argument.kind


def _plain(text: str) -> str:
    """Without what only the interpreter writes: quotes around types, members of enums and addresses of objects."""
    without = re.sub(r"(: |-> )'([^']*)'", r"\1\2", text)
    without = re.sub(r"<[\w.]+: ('[^']*')>", r"\1", without)
    return re.sub(r"<(?:function|class|module) '?([\w.]+).*?>", r"\1", without)


def _prose(text: str) -> str:
    """A docstring as Markdown: what is indented is code, the rest is text in which nothing is markup by chance."""
    blocks = []
    for block in re.split(r"\n\s*\n", text):
        if all(line.startswith("    ") for line in block.splitlines()):
            blocks.append(f"```text\n{textwrap.dedent(block)}\n```")
        else:
            spans = re.split(r"(`[^`]*`)", block)
            blocks.append("".join(re.sub(r"([*<\[~])", r"\\\1", part) if part[:1] != "`" else part for part in spans))
    return "\n\n".join(blocks)


def _fields(value: type) -> str:
    if issubclass(value, enum.Enum):
        return "\n" + ", ".join(f"`{member.value}`" for member in value) + "\n"
    if not dataclasses.is_dataclass(value):
        return ""
    shown = [field for field in dataclasses.fields(value) if not field.name.startswith("_") and field.repr]
    rows = "\n".join(f"| `{field.name}` | `{_type(field)}` |" for field in shown)
    return f"\n| field | type |\n|---|---|\n{rows}\n" if shown else ""


def _type(field: dataclasses.Field[Any]) -> str:
    kind = field.type if isinstance(field.type, str) else getattr(field.type, "__name__", str(field.type))
    return kind.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(markdown(), encoding="utf-8")
    print(PAGE)
