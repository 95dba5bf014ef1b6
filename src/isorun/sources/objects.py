"""JSON objects and printed Python dictionaries, on one line or over several.

Names are kept exactly as written; nested objects are joined by "/". Nothing is evaluated. A flat dictionary is read by
a pattern that knows quoted keys and numbers; a nested one as a Python literal, and what is none gives nothing. An
object over several lines is read when it is whole: its lines alone do not say whose "loss" they hold. So is a block of
Ray Tune and RLlib ("Result for PPO_1:"): its lines are indented, and the one that names the iteration comes late.

An object may say in words what its numbers are of: "mode": "val" is the split of the data, "model": "xgb" whose they
are, and beside "label": "cat" a score is that of one prediction.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from isorun.sources.rows import (
    EPOCH,
    SEVERAL_TRIALS,
    SHOWN_NUMBER,
    SPLITS,
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
    word_set,
)

__all__ = [
    "EPOCH_KEYS",
    "OF_ONE_EXAMPLE",
    "STEP_KEYS",
    "Objects",
    "ResultBlocks",
    "cut_off_in",
    "flattened",
    "number_in",
    "pieces_of_an_object",
    "read_structured",
    "without_ordered",
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
    r"\s*(?:[\"'{}\[\](),]|[-+]?\.?\d|(?:nan|NaN|null|None|[Tt]rue|[Ff]alse|-?Infinity|np\.|tensor|OrderedDict)\b)"
)
_PIECE = re.compile(r"\s*(?P<quote>[\"'])(?P<key>[^\"']{1,200})(?P=quote)\s*:")
_DEEPEST = 8
_LONGEST_LABEL = 60
_MOST_LINES = 5_000
_MOST_CHARACTERS = 200_000
_UNREADABLE = "part of an object over several lines that is not whole"
_CUT = "part of an object that is cut off"
OF_ONE_EXAMPLE: Final = "the score of one prediction, not of the model"
_SPLIT_KEYS = word_set("mode split phase subset stage")
_WHOSE_KEYS = word_set(
    """model model_name model_type method method_name algorithm algo classifier regressor estimator learner dataset
    dataset_name task task_name class class_name category"""
)
_EXAMPLE_KEYS = word_set("label entity entity_group word token_str answer pred_class pred_label")
_SCORES_OF_ONE = word_set("score scores pred_score")
_ORDERED = "OrderedDict("
# Innermost ones first: what is within has neither brackets of its own nor tuples but the pairs.
_ORDERED_PAIRS = re.compile(r"OrderedDict\(\[(?P<pairs>(?:[^\[\]()]|\([^()]*\))*+)\]\)")
_ORDERED_MAPPING = re.compile(r"OrderedDict\((?P<mapping>\{[^()]*\})?\)")
_TUPLE = re.compile(r"\(\s*(?P<key>'[^']{1,200}'|\"[^\"]{1,200}\")\s*,\s*(?P<value>[^()]*?)\s*,?\s*\)")
_OPENED = re.compile(r"\{\s*[\"'][^\"']{1,200}[\"']\s*:")
_KEY = re.compile(r"[\"']([^\"']{1,200})[\"']\s*:")


def read_structured(line: str) -> Row | None:
    """The values of a line that ends in a JSON object or a printed dictionary; None for any other line."""
    start = line.find("{")
    text = line[start:].rstrip()
    if text.endswith("}]") and line[:start].endswith("[") and text.count("{") == 1:
        text = text[:-1]  # "[{'test_acc': 0.9}]", as Lightning's test gives it
    if start < 0 or not text.endswith("}"):
        return None
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


def without_ordered(text: str) -> str:
    """The text with the dictionaries that it shows as "OrderedDict([('loss', 0.5)])" written as plain ones."""
    if _ORDERED not in text:
        return text
    text = unwrapped(text)
    for _ in range(_DEEPEST):
        plainer = _ORDERED_MAPPING.sub(lambda found: found["mapping"] or "{}", text)
        plainer = _ORDERED_PAIRS.sub(lambda found: f"{{{_TUPLE.sub(_as_item, found['pairs'])}}}", plainer)
        if plainer == text:
            break
        text = plainer
    return text


def _as_item(pair: re.Match[str]) -> str:
    return f"{pair['key']}: {pair['value']}"


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
        if _ORDERED in line:
            return self._opens(line[line.index(_ORDERED) :])
        rest = line[start + 1 :].strip()
        if start < 0 or (rest and rest[0] not in "\"'{[") or _PIECE.match(line):
            return False
        if line.lstrip()[:1] == "[":
            start = line.index("[")
        return self._opens(line[start:])

    def _opens(self, text: str) -> bool:
        """Whether what begins here does not end here."""
        self._lines, self._depth, self._characters = [], 0, 0
        self._add(text)
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


_OF_TRIAL = re.compile(r"Result for (?P<trial>\S{1,200}):\s*$")
_LEAF = re.compile(r"(?P<indent>\s+)(?P<key>[^\s:][^:]{0,100}):(?:\s+(?P<value>\S.{0,60}))?\s*$")
_ITERATION = "training_iteration"
_SETTINGS = frozenset(["config", "hyperparameters"])


class ResultBlocks:
    """The blocks that tell of one iteration of a trial. Where there are several trials, none of them is the result."""

    def __init__(self) -> None:
        self.open = False
        self.shown = ""
        self._trial = ""
        self._are_several = False
        self._above: list[tuple[int, str]] = []
        self._numbers: dict[str, float] = {}

    def begin(self, line: str) -> bool:
        """Whether a block begins in this line; then the lines below are to be given to `take`."""
        if (found := _OF_TRIAL.match(line)) is None:
            return False
        self._are_several = self._are_several or self._trial not in ("", found["trial"])
        self.open, self._trial, self._above, self._numbers = True, found["trial"], [], {}
        self.shown = line.strip()
        return True

    def take(self, line: str) -> bool:
        """Whether the line is one of the block."""
        found = _LEAF.match(line) if len(self._numbers) < _MOST_LINES else None
        if found is None:
            return False
        indent = len(found["indent"])
        self._above = [(at, key) for at, key in self._above if at < indent]
        if found["value"] is None:
            self._above.append((indent, found["key"]))
        elif (number := number_in(found["value"].strip())) is not None:
            self._numbers["/".join([*(key for _, key in self._above), found["key"]])] = number
        return True

    def close(self) -> Row:
        """The row that the block is."""
        self.open = False
        names = [name for name in self._numbers if is_metric(name) and _SETTINGS.isdisjoint(name.split("/"))]
        if self._are_several:
            return Row(left_out=[LeftOut(name, SEVERAL_TRIALS) for name in names])
        values = [MetricValue(name, self._numbers[name], "block of results") for name in names]
        return Row(values, step=self._numbers.get(_ITERATION))


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
    rows = [_row(flattened(item), "JSON object") for item in items if isinstance(item, Mapping)]
    if len(rows) > 1:
        for row in rows:
            row.table = row.epoch is not None  # a list of epochs tells again what has been: no training begins anew
    return rows


def _parsed(text: str) -> Any:
    text = text.rstrip().rstrip(",")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _literal(without_ordered(unwrapped(text)))


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
    holds_text = is_of_one = False
    for key, raw in pairs:
        number = number_in(raw)
        if number is None:
            holds_text = True
            is_of_one = is_of_one or (isinstance(raw, str) and key.lower() in _EXAMPLE_KEYS)
            _take_words(row, key.lower(), raw)
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
    if is_of_one:
        _leave_out_scores_of_one(row)
    if holds_text and not row.values:
        row.epoch = row.step = None  # the settings of a training, which may well say "steps": 1000
    row.final = any("test" in value.name.lower() or "final" in value.name.lower() for value in row.values)
    row.settle()
    return row


def _take_words(row: Row, key: str, raw: Any) -> None:
    """Note what a text in an object says of its numbers: the split of the data that they are of, or whose they are."""
    if not isinstance(raw, str):
        return
    if key in _SPLIT_KEYS and raw.lower() in SPLITS:
        row.split = SPLITS[raw.lower()]
    elif key in _WHOSE_KEYS and 0 < len(raw) <= _LONGEST_LABEL:
        row.label = f"{row.label}/{raw}" if row.label else raw
        row.by_value = row.by_value or any(map(str.isdigit, raw))  # other lines of this shape are of others


def _leave_out_scores_of_one(row: Row) -> None:
    left = [value.name for value in row.values if value.name.lower() in _SCORES_OF_ONE]
    row.values = [value for value in row.values if value.name not in left]
    row.left_out += [LeftOut(name, OF_ONE_EXAMPLE) for name in left]
    if left and not row.values:
        row.doubtful = []
