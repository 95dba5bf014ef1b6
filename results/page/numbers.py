"""Stored results, and how their numbers are written on the page."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

STORED = Path(__file__).parents[1]
SELECTION = "best-loss"


def load(name: str) -> dict[str, Any]:
    """A stored result."""
    found: dict[str, Any] = json.loads((STORED / f"{name}.json").read_text())
    return found


def points(value: float, digits: int = 2) -> str:
    """A fraction in percent or points."""
    return f"{100 * value:.{digits}f}"


def two(value: float) -> str:
    """Points with two significant digits; no difference is a plain zero."""
    if not value:
        return "0"
    size = 100 * value
    return f"{size:.{max(0, 1 - math.floor(math.log10(float(f'{size:.1e}'))))}f}"


def share(value: float) -> str:
    """A share in percent."""
    return points(value, 1 if value < 0.1 else 0)


def span(interval: Sequence[float], digits: int = 0) -> str:
    """An interval of shares in percent."""
    return " to ".join(points(end, digits) for end in interval)


def bracket(interval: Sequence[float]) -> str:
    """An interval of taus."""
    return f"[{interval[0]:.2f}, {interval[1]:.2f}]"


def p(value: float) -> str:
    """A p-value."""
    return f"{value:.2g}" if value >= 0.001 else "below 0.001"


def spelled(number: int) -> str:
    """A small count as a word."""
    words = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    return words[number] if number < len(words) else str(number)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines)


def conditions(result: dict[str, Any]) -> str:
    """What the result itself warns of, as list items."""
    told = (f"`{item['code']}`: {item['message']}{_about(item['groups'])}." for item in result["warnings"])
    return "\n".join(f"  - {line}" for line in told)


def _about(groups: Sequence[str]) -> str:
    return f" ({', '.join(groups)})" if groups else ""


def machine(result: dict[str, Any]) -> str:
    """Where it was made, in a few words."""
    first = next((item for item in result["machines"] if "gpu" in item), result["machines"][0])
    on = first.get("gpu") or first["cpu"]
    return f"{on}, torch {first['torch']}, Python {first['python']}"


def sd(values: Sequence[float]) -> float:
    """The standard deviation, n - 1 in the denominator."""
    return statistics.stdev(values)
