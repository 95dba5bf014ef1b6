"""Tables printed over several lines: a heading names the columns or the metrics, and rows follow.

Known are columns under a heading that starts with "epoch", "iter" or "E" (fastai, skorch, scikit-learn, spaCy,
Ultralytics), the row "all" under a heading that starts with "class" (Ultralytics), the boxed list of metrics that
Lightning prints after `test` and `validate`, and the boxes of names under sections of Stable-Baselines3. The rounds of
CatBoost are a table without a heading: their values have the name of a split, and which metric it is, and so which
direction is better, is not said anywhere in the output.
"""

from __future__ import annotations

import re

from isorun.sources.names import is_metric, is_never, name_of
from isorun.sources.numbers import read_number
from isorun.sources.rows import Row, Value

__all__ = ["Tables", "may_head_a_table", "read_catboost"]

_RULE = re.compile(r"^[\s\-=+|─━═┄┈┏┓┡┩┳╇┃┗┛┴└┘├┤┼┬╰╯╭╮]*$")
_CELL_BORDER = re.compile(r"[│┃|]|\s{2,}|\t")
_METRIC_LIST_HEADING = re.compile(r"\b(?:Test|Validate|Runningstage\.\w+) metric\b", re.IGNORECASE)
_EPOCH = re.compile(r"^([0-9]{1,9})(?:/[0-9]{1,9})?$")
_COLUMN = re.compile(r"^[A-Za-z_][\w@./\-]*$")
_SECTION = re.compile(r"^\|\s*(?P<section>[\w.\- ]+/)\s*\|\s*\|$")
_BOXED = re.compile(r"^\|\s+(?P<name>[\w@.\-/]+)\s*\|\s*(?P<value>\S+)\s*\|$")
_CLASSES = re.compile(r"^\s*class(?:es)?\s+(?P<names>[^:]*):", re.IGNORECASE)
_STARTS = frozenset(["epoc", "Epoc", "EPOC", "iter", "Iter", "ITER", "E   ", "clas", "Clas"])
_FIRST_COLUMNS = frozenset(["epoch", "iter", "e"])
_BOX_STEP = "time/total_timesteps"
_LONGEST_BOX = 200


def may_head_a_table(line: str) -> bool:
    """Whether a line without any number is worth a look: cheap, since it is asked for every such line."""
    start = line.lstrip(" |█")[:4]
    return start in _STARTS or " metric" in line or _is_section(line)


def _is_section(line: str) -> bool:
    return line[:2] == "| " and "/ " in line


class Tables:
    """Remembers the heading of the table that the output is in, if it is in one."""

    def __init__(self) -> None:
        self._columns: list[str] = []
        self._class_columns: list[str] = []
        self._in_metric_list = False
        self._section = ""
        self._box: dict[str, float] = {}
        self._box_lines: list[str] = []

    @property
    def open(self) -> bool:
        """Whether the next line may be a row."""
        return bool(self._columns or self._class_columns or self._in_metric_list or self._section)

    def read(self, line: str) -> Row | None:
        """The row this line is, an empty row for a heading or a rule, None when the line is no part of a table."""
        if self._in_metric_list or (" metric" in line and _METRIC_LIST_HEADING.search(line)):
            return self._metric_list_line(line)
        if self._section or _is_section(line):
            return self._box_line(line.strip())
        if (row := self._class_line(line)) is not None:
            return row
        if columns := _columns_in(line):
            self._columns = columns
            return Row(table=True)
        return self._column_row(line) if self._columns else None

    def _metric_list_line(self, line: str) -> Row | None:
        if _METRIC_LIST_HEADING.search(line):
            self._in_metric_list = True
            return Row(table=True)
        if _RULE.match(line):
            return Row(table=True)
        cells = _cells(line)
        value = read_number(cells[1]) if len(cells) == 2 else None
        if value is None:
            self._in_metric_list = False
            return None
        return Row([Value(cells[0], value, "table of metrics")], final=True)

    def _box_line(self, line: str) -> Row | None:
        """A line of a box: a section, a name and its value, or the rule that ends it and gives all that was in it."""
        self._box_lines.append(line)
        if len(self._box_lines) > _LONGEST_BOX:
            return self._closed_box()
        if (section := _SECTION.match(line)) is not None:
            self._section = section["section"]
            return Row(table=True)
        if (boxed := _BOXED.match(line)) is not None:
            value = read_number(boxed["value"])
            if value is not None:
                self._box[self._section + boxed["name"]] = value
            return Row(table=True)
        return self._closed_box()

    def _closed_box(self) -> Row:
        box, lines = self._box, " ".join(self._box_lines)
        self._box, self._box_lines, self._section = {}, [], ""
        taken = {name: value for name, value in box.items() if not name.startswith("time/") and not is_never(name)}
        values = [Value(name, value, "boxed table") for name, value in taken.items()]
        return Row(values, step=box.get(_BOX_STEP), lines=lines)

    def _class_line(self, line: str) -> Row | None:
        """The row "all" of a table of classes; its heading ends in a bar ("classes top1_acc: 100% ━━━")."""
        if "lass" in line and (heading := _CLASSES.match(line)):
            self._class_columns = ["class", *heading["names"].replace("(", " ").replace(")", " ").split()]
            return Row(table=True)
        cells = line.split() if self._class_columns else []
        if cells[:1] != ["all"]:
            return None
        names, self._class_columns = self._class_columns, []
        numbers = {name: read_number(cell) for name, cell in zip(reversed(names), reversed(cells), strict=False)}
        found = {name: value for name, value in numbers.items() if value is not None and is_metric(name)}
        return Row([Value(name, value, "table column") for name, value in reversed(found.items())])

    def _column_row(self, line: str) -> Row | None:
        if _RULE.match(line) and line.strip():
            return Row(table=True)
        cells = line.replace("|", " ").split()
        epoch = _EPOCH.match(cells[0]) if cells else None
        if epoch is None or not _fills(cells, len(self._columns)):
            return None
        row = Row(table=True, epoch=float(epoch[1]))
        for name, cell in zip(self._columns[1:], cells[1:], strict=False):
            value = read_number(cell.rstrip(":"))
            if value is not None and (is_metric(name) or not is_never(name)):
                row.values.append(Value(name, value, "table column"))
        return row


def _fills(cells: list[str], columns: int) -> bool:
    """Whether the cells fill the columns; a bar may follow the last one ("1/3  0G  0.70  4  32: 100% ━━━ 3/3")."""
    return len(cells) == columns or (len(cells) > columns and cells[columns - 1].endswith(":"))


def _columns_in(line: str) -> list[str]:
    """The names in a heading: words, or phrases with gaps between them ("Iter   Train Loss   OOB Improve")."""
    bare = line.replace("|", "  ").replace("█", "  ").strip()
    words = bare.split()
    if len(words) < 2 or words[0].lower() not in _FIRST_COLUMNS or words[1][0].isdigit():
        return []
    if ":" in bare or "=" in bare or any(read_number(word.strip("[]()")) is not None for word in words):
        return []
    phrases = _cells(bare)
    if len(phrases) >= 3 and words[0] == phrases[0]:
        names = [name_of(phrase.split()) for phrase in phrases] if len(phrases) < len(words) else phrases
        return names if words[0].lower() == "epoch" or any(is_metric(name) for name in names) else []
    return words if words[0].lower() == "epoch" and all(_COLUMN.match(word) for word in words) else []


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in _CELL_BORDER.split(line.strip()) if cell.strip()]


_LINE = re.compile(r"\s*(?P<round>\d{1,9}):\t(?P<values>learn: .*?)\s*(?:total: .*)?$")
_VALUE = re.compile(r"(?P<name>learn|test\d*|best): (?P<value>\S+)")


def read_catboost(line: str) -> Row | None:
    """The values of one round; None for any other line."""
    found = _LINE.match(line)
    if found is None:
        return None
    numbers = {part["name"]: read_number(part["value"]) for part in _VALUE.finditer(found["values"])}
    values = [Value(name, value, "name: value") for name, value in numbers.items() if value is not None]
    return Row(values, step=float(found["round"]))
