"""JSON objects and printed Python dictionaries, on one line or over several.

Names are kept exactly as written; nested objects are joined by "/". Nothing is evaluated. A flat dictionary is read by
a pattern that knows quoted keys and numbers; a nested one as a Python literal, and what is none gives nothing. An
object over several lines is read when it is whole: its lines alone do not say whose "loss" they hold.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from isorun.sources.rows import (
    EPOCH,
    SHOWN_NUMBER,
    STEP,
    UNCLEAR_COMMA,
    LeftOut,
    MetricValue,
    Row,
    has_unclear_comma,
    is_metric,
    is_never,
    read_number,
    unwrapped,
)

__all__ = [
    "EPOCH_KEYS",
    "STEP_KEYS",
    "Objects",
    "cut_off_in",
    "flattened",
    "number_in",
    "pieces_of_an_object",
    "read_structured",
]

EPOCH_KEYS = frozenset(["epoch", "ep"])
STEP_KEYS = frozenset(["step", "global_step", "iteration", "iter", "steps", "_step"])

_PAIR = re.compile(
    rf"""(?P<quote>['"])(?P<key>[^'"]{{1,200}})(?P=quote)\s*:\s*
        (?:(?P<mark>['"])(?P<text>[^'"]{{1,40}})(?P=mark)|(?P<number>{SHOWN_NUMBER}))(?=\s*(?:,(?!\d)|}}))""",
    re.VERBOSE,
)
_BARE_WORD = re.compile(r"(?<![\w'\"])-?(?:nan|inf|NaN|Infinity)(?![\w'\"])")
_STRINGS = {'"': re.compile(r'"(?:[^"\\]|\\.)*+"'), "'": re.compile(r"'(?:[^'\\]|\\.)*+'")}
_CONTINUES = re.compile(
    r"\s*(?:[\"'{}\[\](),]|[-+]?\.?\d|(?:nan|NaN|null|None|[Tt]rue|[Ff]alse|-?Infinity|np\.|tensor)\b)"
)
_PIECE = re.compile(r"\s*(?P<quote>[\"'])(?P<key>[^\"']{1,200})(?P=quote)\s*:")
_DEEPEST = 8
_MOST_LINES = 5_000
_MOST_CHARACTERS = 200_000
_UNREADABLE = "part of an object over several lines that is not whole"
_CUT = "part of an object that is cut off"
_OPENED = re.compile(r"\{\s*[\"'][^\"']{1,200}[\"']\s*:")
_KEY = re.compile(r"[\"']([^\"']{1,200})[\"']\s*:")


def read_structured(line: str) -> Row | None:
    """The values of a line that ends in a JSON object or a printed dictionary; None for any other line."""
    start = line.find("{")
    if start < 0 or not line.rstrip().endswith("}"):
        return None
    text = line[start:].rstrip()
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        parsed = None
    if isinstance(parsed, Mapping):
        return _with_places(_row(flattened(parsed), "JSON line"), line, start)
    text = unwrapped(text)
    if text.count("{") == 1 and "[" not in text and "(" not in text:
        pairs = ((part["key"], part["text"] or part["number"]) for part in _PAIR.finditer(text))
        return _with_places(_row(pairs, "dictionary line"), line, start)
    literal = _literal(text)
    return _row(flattened(literal), "dictionary line") if isinstance(literal, Mapping) else None


def _with_places(row: Row, line: str, start: int) -> Row:
    """The row with the places of its numbers, where the object is flat, so that every key is the name of a number."""
    if line.count("{") == 1 and "[" not in line and "(" not in line:
        for part in _PAIR.finditer(line, start):
            place = part.span("text" if part["number"] is None else "number")
            row.numbers.append(place)
            if part["number"] is not None:
                key = part["key"].lower()
                row.places[EPOCH if key in EPOCH_KEYS else STEP if key in STEP_KEYS else part["key"]] = place
    return row


def flattened(data: Mapping[Any, Any], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """The leaves of nested objects, their keys joined by "/"."""
    for key, value in data.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and depth < _DEEPEST:
            yield from flattened(value, f"{name}/", depth + 1)
        else:
            yield name, value


def number_in(value: Any) -> float | None:
    """A JSON number, or a string that holds one; booleans are none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return _as_float(value)
    return read_number(value) if isinstance(value, str) and len(value) <= 40 else None


def pieces_of_an_object(line: str) -> list[LeftOut]:
    """The name in a line such as `"loss": 0.5,`, whose object is not there; [] for other lines."""
    found = _PIECE.match(line) if line.lstrip()[:1] in ("'", '"') else None
    return [LeftOut(found["key"], _UNREADABLE)] if found else []


def cut_off_in(line: str) -> Row | None:
    """What is left out of a line with an object that opens and does not close: its last number may be half of one."""
    if line.count("{") <= line.count("}") or _OPENED.search(line) is None:
        return None
    names = dict.fromkeys(_KEY.findall(line))
    return Row(left_out=[LeftOut(name, _CUT) for name in names if is_metric(name)])


class Objects:
    """Gathers the lines of an object, from the bracket that opens it to the one that closes it; bounded."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 0
        self._characters = 0

    @property
    def open(self) -> bool:
        """Whether the next line may belong to an object."""
        return bool(self._lines)

    @property
    def shown(self) -> str:
        """The start of what was gathered, for the table of what was found."""
        return " ".join(" ".join(self._lines[:20]).split())

    def begin(self, line: str) -> bool:
        """Whether an object begins in this line; then its lines are to be given to `take`."""
        start = line.find("{") if "{" in line else line.find("[")
        rest = line[start + 1 :].strip()
        if start < 0 or (rest and rest[0] not in "\"'{[") or _PIECE.match(line):
            return False
        self._lines, self._depth, self._characters = [], 0, 0
        if line.lstrip()[:1] == "[":
            start = line.index("[")
        self._add(line[start:])
        if self._depth > 0:
            return True
        self._lines = []
        return False

    def take(self, line: str) -> list[Row] | None:
        """The rows of the object if this line ends it, [] while it goes on; None when the line is no part of it.

        An object that breaks off gives one row with what was left out; the line that broke it is then read by itself.
        """
        if not _CONTINUES.match(line) or len(self._lines) >= _MOST_LINES or self._characters > _MOST_CHARACTERS:
            return None
        self._add(line)
        if self._depth > 0:
            return []
        text = "\n".join(self._lines)
        return _rows_of(_parsed(text)) or [self._left_out()]

    def close(self) -> Row:
        """Give up what was gathered: the row says what was left out."""
        row = self._left_out()
        self._lines = []
        return row

    def clear(self) -> None:
        """Forget what was gathered, after its rows were taken."""
        self._lines = []

    def _left_out(self) -> Row:
        names = [item for line in self._lines for item in pieces_of_an_object(line)]
        return Row(left_out=[item for item in names if is_metric(item.name)])

    def _add(self, line: str) -> None:
        self._lines.append(line)
        self._characters += len(line)
        bare = _without_strings(line)
        self._depth += sum(map(bare.count, "{[(")) - sum(map(bare.count, "}])"))


def _without_strings(line: str) -> str:
    """The line without what stands in quotes. A quote that never closes is none, and so is each later one of its kind.

    Looking for the end of each of them anew would take minutes for a line of quotes.
    """
    kept, start, marks = [], 0, "\"'"
    while marks and (mark := re.compile(f"[{marks}]").search(line, start)) is not None:
        string = _STRINGS[mark[0]].match(line, mark.start())
        if string is None:
            marks = marks.replace(mark[0], "")
        kept.append(line[start : mark.end() if string is None else mark.start()])
        start = mark.end() if string is None else string.end()
    return "".join([*kept, line[start:]])


def _rows_of(parsed: Any) -> list[Row]:
    if isinstance(parsed, Mapping):
        return [_row(flattened(parsed), "JSON object")]
    items = parsed if isinstance(parsed, list) else []
    return [_row(flattened(item), "JSON object") for item in items if isinstance(item, Mapping)]


def _parsed(text: str) -> Any:
    text = text.rstrip().rstrip(",")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _literal(unwrapped(text))


def _literal(text: str) -> Any:
    """A Python literal, read without running anything; None when it is none. The parser may warn of what it reads."""
    if "\\" in text:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.literal_eval(_BARE_WORD.sub(lambda found: f"'{found[0]}'", text))
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return None


def _as_float(value: int | float) -> float | None:
    try:
        return float(value)
    except OverflowError:
        return None


def _why_not(raw: Any) -> str:
    """Why a value that was surely meant to be one is not read; "" for any other text."""
    if isinstance(raw, list) and raw:
        return "a list in an object"
    return UNCLEAR_COMMA if isinstance(raw, str) and has_unclear_comma(raw.strip()) else ""


def _row(pairs: Iterable[tuple[str, Any]], form: str) -> Row:
    row = Row()
    holds_text = False
    for key, raw in pairs:
        number = number_in(raw)
        if number is None:
            holds_text = True
            if is_metric(key) and (why := _why_not(raw)):
                row.left_out.append(LeftOut(key, why))
            continue
        last_part = key.rsplit("/", 1)[-1].lower()
        if last_part in EPOCH_KEYS:
            row.epoch = number
        elif last_part in STEP_KEYS:
            row.step = number
        elif is_metric(key):
            row.values.append(MetricValue(key, number, form))
        elif not is_never(key):
            row.doubtful.append(MetricValue(key, number, form))
    if holds_text and not row.values:
        row.epoch = row.step = None  # the settings of a training, which may well say "steps": 1000
    row.final = any("test" in value.name.lower() or "final" in value.name.lower() for value in row.values)
    row.settle()
    return row
