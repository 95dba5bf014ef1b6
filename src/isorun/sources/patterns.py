r"""The user's own patterns: regular expressions whose named groups say what is what.

`(?P<val_acc>[\d.]+)` names a metric; `(?P<metric>\w+)=(?P<value>[\d.]+)` reads the name too (`name` will also do);
groups `epoch` and `step` say where the values belong.

Some expressions take exponential time. Python's matcher cannot be interrupted from another thread, so that a pattern
which backtracks without end would hang the run that it watches. Such patterns have an unbounded repetition inside a
repeated group, and are refused.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from isorun.errors import StudyError
from isorun.sources.messages import message_of, plain, without_reprs
from isorun.sources.rows import MetricValue, Row, is_never, keeps_no_prefix, read_number
from isorun.study.records import Note

__all__ = ["Patterns", "has_nested_repeat", "proposed_pattern"]

GRACE_SECONDS = 2.0
SECONDS_A_LINE = 1e-4
_NAME_GROUPS = ("metric", "name")
_CLOCK_GROUPS = ("epoch", "step")
_ALLOWED = "a regular expression with a named group for each metric, such as 'acc: (?P<val_acc>[0-9.]+)'"


@dataclass(slots=True)
class _Pattern:
    """One pattern, the processor time it has taken, and the first text it matched that was no number."""

    written: str
    compiled: re.Pattern[str]
    lines: int = 0
    spent_seconds: float = 0.0
    not_numbers: int = 0
    first_not_number: str = ""
    is_off: bool = False

    def spend(self, seconds: float) -> None:
        """Count the time of one line, and switch the pattern off when it holds up the run."""
        self.lines += 1
        self.spent_seconds += seconds
        self.is_off = self.spent_seconds > GRACE_SECONDS + SECONDS_A_LINE * self.lines


class Patterns:
    """The user's patterns, checked when built: StudyError names a pattern that cannot be used."""

    def __init__(self, written: Sequence[str]) -> None:
        self._patterns = [_Pattern(item, _checked(item)) for item in written]

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def rows(self, line: str) -> Iterator[tuple[Row, str]]:
        """What each pattern finds in the line, with the pattern as the user wrote it."""
        for pattern in self._patterns:
            if pattern.is_off:
                continue
            row = self._timed_row(pattern, line)
            if row.values or row.has_clock:
                yield row, pattern.written

    def notes(self) -> list[Note]:
        """Patterns that were switched off or matched something that is no number."""
        notes = [
            Note(
                "pattern.slow",
                f"pattern {item.written!r} took {item.spent_seconds:.1f} s for {item.lines} lines and was switched off",
            )
            for item in self._patterns
            if item.is_off
        ]
        return notes + [
            Note(
                "pattern.not-a-number",
                f"pattern {item.written!r} matched {item.not_numbers} times something that is no number, "
                f"first {item.first_not_number!r}",
            )
            for item in self._patterns
            if item.not_numbers
        ]

    def _timed_row(self, pattern: _Pattern, line: str) -> Row:
        began = time.thread_time()
        row = Row(by_user=True)
        for match in pattern.compiled.finditer(line):
            _take(match, row, pattern)
        row.settle()
        row.final = any("test" in value.name or "final" in value.name for value in row.values)
        pattern.spend(time.thread_time() - began)
        return row


def _checked(written: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(written)
    except (re.error, OverflowError, RecursionError, FutureWarning) as error:
        raise StudyError(
            f"the pattern {written!r} is no regular expression", found=str(error), allowed=_ALLOWED
        ) from error
    groups = set(compiled.groupindex)
    names_a_metric = groups - {*_NAME_GROUPS, *_CLOCK_GROUPS, "value"}
    reads_a_name = "value" in groups and groups & set(_NAME_GROUPS)
    if not (names_a_metric or reads_a_name):
        found = f"the groups {sorted(groups)}" if groups else "no named group"
        raise StudyError(f"the pattern {written!r} names no metric", found=found, allowed=_ALLOWED)
    if has_nested_repeat(written):
        raise StudyError(
            f"the pattern {written!r} could take longer than the training",
            found="a repeated group that itself contains a repetition, such as (a+)+",
            allowed="repetitions inside a repeated group that give nothing back: a++ or (?>a+)",
        )
    return compiled


def _take(match: re.Match[str], row: Row, pattern: _Pattern) -> None:
    groups = {name: text for name, text in match.groupdict().items() if text is not None}
    name_group = next((name for name in _NAME_GROUPS if name in groups and "value" in groups), None)
    if name_group is not None:
        groups[groups.pop(name_group).strip()] = groups.pop("value")
    for name, text in groups.items():
        number = read_number(text)
        if number is None:
            pattern.not_numbers += 1
            pattern.first_not_number = pattern.first_not_number or text[:40]
        elif name == "epoch":
            row.epoch = number
        elif name == "step":
            row.step = number
        else:
            row.values.append(MetricValue(name, number, "group", "%" in text or "/" in text))


# The last words of a line with a decimal number after them: "Homogeneity: 0.953", "Best is trial 3 with value: 0.96."
_TOLD = re.compile(
    r"(?:^|[.,;|]\s|\s[-–]\s)\s*+(?P<label>[A-Za-z][\w '/@()-]{1,60}?)(?P<sign>\s?[:=]\s*)"
    r"(?P<number>[-+]?\d{1,20}\.\d{1,20}(?:e[-+]?\d{1,3})?)(?P<percent>\s?%)?\.?\s*$"
)
_NO_NAMES = frozenset(["is", "with", "of", "the", "a", "an", "and", "at", "for", "in", "on", "to", "trial"])
_SPECIAL = re.compile(r"([\\.^$*+?{}\[\]|()])")
_OF_SETTINGS = re.compile(
    r"(?P<indent>\s*)(?:[a-z ]{1,20} )?(?:hyper-?)?"
    r"(?:params|parameters|config|configuration|settings|arguments)\s?:\s*$",
    re.IGNORECASE,
)
_LONGEST_TOLD = 500
_MOST_WORDS = 4


def proposed_pattern(lines: Iterable[str]) -> str:
    """A pattern that reads the value of the last line that names a decimal number; "" where no line does.

    It is made from that line, so that it reads what was printed there and not just any number. What is listed under
    "Params:" was set, and is no result.
    """
    proposed = ""
    settings_at = -1
    for line in lines:
        if settings_at >= 0 and line.strip() and len(line) - len(line.lstrip()) > settings_at:
            continue
        heading = _OF_SETTINGS.match(line)
        settings_at = -1 if heading is None else len(heading["indent"])
        found = _TOLD.search(message_of(without_reprs(plain(line[:_LONGEST_TOLD]))))
        name = _group_name(found["label"]) if found is not None else ""
        if found is not None and name:
            label = re.sub(r"\d+", r"\\d+", _SPECIAL.sub(r"\\\1", found["label"] + found["sign"]))
            percent = r"\s?%" if found["percent"] else ""
            proposed = rf"{label}(?P<{name}>[-+.\de]*\d{percent})"
    return proposed


def _group_name(label: str) -> str:
    """The name of the metric that a label stands for, as a group may be called; "" where it is none."""
    words = [word for word in re.findall(r"[a-z_]\w*", label.lower()) if word not in _NO_NAMES]
    name = "_".join(words[-_MOST_WORDS:])
    is_reserved = name in {*_NAME_GROUPS, *_CLOCK_GROUPS, "value"}
    return "" if not name.isascii() or is_reserved or is_never(name) or keeps_no_prefix(name) else name


_UNIT = re.compile(
    r"""(?:(?P<open>\((?P<atomic>\?>)?)|(?P<close>\))|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.)
        (?P<endless>[*+]|\{\d*,\})?(?P<keeps>\+)?""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(slots=True)
class _Group:
    """A group that is open: whether it is atomic, and whether a repetition in it can give back what it took."""

    atomic: bool
    gives_back: bool = False


def has_nested_repeat(pattern: str) -> bool:
    """Whether a group that is repeated without bound contains an unbounded repetition that can give back."""
    groups = [_Group(atomic=False)]
    for unit in _UNIT.finditer(pattern):
        gives_back = unit["endless"] is not None and unit["keeps"] is None
        if unit["open"]:
            groups.append(_Group(atomic=unit["atomic"] is not None))
        elif unit["close"] and len(groups) > 1:
            closed = groups.pop()
            inner = closed.gives_back and not closed.atomic
            if inner and gives_back:
                return True
            groups[-1].gives_back |= inner or gives_back
        else:
            groups[-1].gives_back |= gives_back
    return False
