"""Tables printed over several lines: a heading names the columns or the metrics, and rows follow.

A table of epochs is read when one of its columns counts epochs, steps or rounds: as fastai, skorch, scikit-learn,
spaCy and Ultralytics print it, as a pandas or Polars frame, in Markdown, or in a box. A cell belongs to the name it
stands under: a printed frame has a column of indices with no name over it, so that counting cells is one column off.
Its rows may be sorted by a metric, best first: their order is that of the epochs, not that of the lines.
A mark beside a number or after the last column ("0.81*", "saved") is no value; a row that does not fit the heading is
left out, and told.
Other tables are read where each row is one metric: Lightning's list after `test`, "metric | value", the boxes of
Stable-Baselines3, the classes and averages of scikit-learn's classification report, the row "all" of Ultralytics; and
where each row is a split of the data.

A table in a box with metrics alone and a single row of numbers is what its heading says, once its end is seen.
A table whose rows are models, folds or seeds gives nothing: which of them is the result is for the reader to say. Runs
that stand one below the other, only the first row of each named, follow each other as trainings do.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from isorun.sources.rows import (
    SPLITS,
    UNCLEAR_COMMA,
    VOCABULARY,
    LeftOut,
    MetricValue,
    Row,
    has_unclear_comma,
    is_metric,
    is_never,
    name_of,
    read_number,
    word_set,
)

__all__ = ["CLASS_REPORT", "Tables", "may_head_a_table"]

CLASS_REPORT: Final = "classification report"
_RULE = re.compile(r"^[\s\-=+|:─━═┄┈┆┏┓┡┩┳╇┃│┗┛┴└┘├┤┼┬╰╯╭╮╒╤╕╞╪╡╘╧╛┌┐║╔╗╚╝╠╣╦╩╬╟╢╶╴╷╵]*$")
_BORDER = re.compile(r"[│┃┆|║]")
_PHRASE = re.compile(r"\S+(?: \S+)*")
_WORD = re.compile(r"\S+")
_COUNT = re.compile(r"^([0-9]{1,9})(?:/[0-9]{1,9})?$")
_COLUMN = re.compile(r"^[A-Za-z_][\w@./\-]*$")
_CLOCK_WORD = re.compile(r"\b(?:epochs?|step|global_step|iter|iterations?|round|gen|generation)\b", re.IGNORECASE)
_STARTS = frozenset(["epoc", "Epoc", "EPOC", "iter", "Iter", "ITER", "E   ", "clas", "Clas", "metr", "Metr", "prec"])
_CLOCKS = word_set("epoch iter iteration iterations step global_step round gen generation")
_FIRST_ONLY_CLOCKS = frozenset(["e"])
_SPLIT_COLUMNS = word_set("split phase set mode subset")
_OTHER_ROWS = word_set("seed fold trial run model name task dataset experiment method config configuration variant")
_AFTER_TRAINING = frozenset(["eval", "test", "final"])
_NO_VALUE = frozenset(["", "-", "--", "---", "—", "–", "n/a", "na", "none", "null", "...", "…", ".", "?", "x"])
_IMPORT = re.compile(r"^\s*(?:from \S+ )?import \S")
_STARTS_WITH_A_DIGIT = re.compile(r"(?<![\w.])[-+.]?\d")
_NUMBER_FIRST = re.compile(r"[-+]?\.?\d[\d.]*,?\s")  # "Epoch     0, train loss 1.57": a value, and no name of a column
_MARKS = "*†‡"
_DOES_NOT_FIT = "a row of its table does not fit the heading"
_NAME_IS_CUT = "its name in the heading is cut off"
_MOST_LINES_OF_NAMES = 8
_NO_NUMBER = "a cell of its table is no number"


def may_head_a_table(line: str) -> bool:
    """Whether a line is worth a look as the heading of a table: cheap, since it is asked for nearly every line."""
    if line.lstrip(" |█┃│║")[:4] in _STARTS or " metric" in line or _is_section(line):
        return True
    return ":" not in line and "=" not in line and _CLOCK_WORD.search(line) is not None


@dataclass(frozen=True, slots=True)
class _Cell:
    """A piece of a line, and the characters of the line that it takes up."""

    text: str
    start: int
    end: int

    def meets(self, other: _Cell) -> bool:
        return self.start < other.end and other.start < self.end


@dataclass(frozen=True, slots=True)
class _Heading:
    """The columns of a table of epochs. boxed: borders part the cells. delimiter: what does so otherwise, "" for gaps.

    clock, split: which column counts and which names the split of the data (-1 without one). doubled: names that two
    columns have, so that nothing says which is meant.
    """

    cells: tuple[_Cell, ...]
    names: tuple[str, ...]
    clock: int
    split: int
    boxed: bool
    delimiter: str = ""
    doubled: frozenset[str] = frozenset()


@dataclass(slots=True)
class _Runs:
    """A table whose rows are those of several runs. first: its first row, kept until it is known how they stand."""

    column: int
    first: Row | None = None
    are_in_order: bool = False


class Tables:
    """Remembers the heading of the table that the output is in, if it is in one. headings: how many there have been."""

    def __init__(self) -> None:
        self._heading: _Heading | None = None
        self._runs: _Runs | None = None
        self._lists = _MetricLists()
        self._box = _SectionedBox()
        self._classes: list[str] = []
        self._before = ""
        self._above: list[str] = []
        self._unread: list[str] = []
        self._by_split = _SplitRows()
        self._columns: list[str] = []
        self._lone: list[MetricValue] = []
        self._lone_line = ""
        self._in_rows = False
        self._in_heading = False
        self._row_above: list[_Cell] = []
        self.headings = 0

    @property
    def is_waiting(self) -> bool:
        """Whether what the next line says depends on the lines just above it; a heading of columns holds on."""
        is_open = self._unread or self._lone or self._classes
        return bool(is_open or self._lists.open or self._box.open or self._by_split.open)

    @property
    def open(self) -> bool:
        """Whether the next line may be a row."""
        return bool(self._heading or self._classes or self._lists.open or self._box.open or self._by_split.open)

    def remember(self, line: str) -> None:
        """Keep a line without metrics: it may name the columns of a frame whose index is named in the line below."""
        self._before = line
        is_of_a_box = _BORDER.search(line) is not None and not _RULE.match(line)
        self._above = [*self._above, line][-_MOST_LINES_OF_NAMES:] if is_of_a_box else []
        if not line.strip() or _RULE.match(line) or (self._unread and line.strip().lower() in _SPLIT_COLUMNS):
            return
        self._unread = _metric_columns(line) if "  " in line or _BORDER.search(line) else []
        self._columns = [cell.text for cell in _boxed_cells(line)] if self._unread and _BORDER.search(line) else []
        self._by_split.begin(line if self._unread else "")

    def forget(self) -> None:
        """A line with numbers that is no row came between."""
        self._before = ""
        self._above = []
        self._in_rows = False

    def names_a_split(self, line: str) -> bool:
        """Whether a line is a row of a split in a table that has rows for them."""
        return self._by_split.open and _texts(line)[:1] != [] and _texts(line)[0].lower() in SPLITS

    @property
    def has_unread(self) -> bool:
        """Whether the line above headed a table that is not read."""
        return bool(self._unread)

    def first_row(self, line: str) -> Row:
        """What the first row of a table without epochs gives: nothing yet if it may be the only one."""
        names, self._unread = self._unread, []
        self._lone, self._lone_line = _values_in(self._columns, line), f"{' | '.join(self._columns)}: {line.strip()}"
        return Row(table=True) if self._lone else Row(left_out=_without_epochs(names))

    @property
    def has_lone_row(self) -> bool:
        """Whether there was one row until now in a table without epochs."""
        return bool(self._lone)

    def after_lone_row(self, line: str, evaluated: str = "") -> Row | None:
        """The values of the only row, if the table ends with this line; None while it goes on.

        evaluated: what the table is said to be about, where that is not boxes.
        """
        if line.strip() and _RULE.match(line):
            return None
        values, self._lone = self._lone, []
        if _BORDER.search(line) and _STARTS_WITH_A_DIGIT.search(line):
            names = [value.name for value in values if is_metric(value.name)]
            return Row(left_out=_without_epochs(names), lines=self._lone_line)
        prefix = "" if evaluated in ("", "bbox") else f"{evaluated}_"
        return Row([value._replace(name=prefix + value.name) for value in values], lines=self._lone_line)

    def read(self, line: str) -> Row | None:
        """The row this line is, an empty row for a heading or a rule, None when the line is no part of a table."""
        if _BOXED.match(line.strip()) and _DASHES.match(self._before):
            self._box.begin()
        for part in (self._lists.read, self._box.read, self._class_line, self._split_line):
            if (row := part(line)) is not None:
                return row
        in_heading, self._in_heading = self._in_heading, False
        if in_heading and self._heading is not None and (whole := _with_line_below(self._heading, line)) is not None:
            return self._begin(whole)
        heading = _with_lines_above(_heading_of(line), self._above) or _heading_over_index(line, self._before)
        if heading is not None:
            self._unread = []
            self.headings += 1
            return self._begin(heading)
        if self._heading is None:
            return None
        if _RULE.match(line) and line.strip():
            self._row_above = []
            return Row(table=True)
        if _metric_columns(line):
            self._heading = None
            self.headings += 1
            return None
        return self._row_of(self._heading, line)

    def _row_of(self, heading: _Heading, line: str) -> Row | None:
        """The row; one that does not fit is told as left out if it comes right after others, or with a row's form."""
        row = _row_under(heading, _texts_under(heading, line), self.headings)
        if heading.boxed and self._runs is None:
            cells = _boxed_cells(line)
            if row is None and (whole := _goes_on_in(self._row_above, cells, heading.clock)):
                row, cells = _row_under(heading, [cell.text for cell in whole], self.headings), whole
            self._row_above = cells if row is not None else []
        if row is not None and self._runs is not None:
            return self._row_of_run(heading, self._runs, row, line)
        was_in_rows, self._in_rows = self._in_rows, row is not None
        if row is None and was_in_rows and _looks_like_a_row(line):
            self._in_rows = True
            left_out = [LeftOut(name, _DOES_NOT_FIT) for name in heading.names if is_metric(name)]
            return Row(table=self.headings, left_out=left_out)
        return row

    def _row_of_run(self, heading: _Heading, runs: _Runs, row: Row, line: str) -> Row:
        """A row of a table of several runs: they stand one after the other if only the first row of each is named."""
        is_named = bool(_texts_under(heading, line)[runs.column])
        if runs.are_in_order:
            row.restarts = is_named
        elif not is_named:
            runs.are_in_order, row.above = True, runs.first
        elif runs.first is None:
            runs.first = row
            return Row(table=True)
        else:
            self._heading = None
            return self._left_out(heading, heading.names[runs.column])
        return row

    @staticmethod
    def _left_out(heading: _Heading, other: str) -> Row:
        why = f"the rows of its table differ by {other}, not only by epoch"
        return Row(table=True, left_out=[LeftOut(name, why) for name in heading.names if is_metric(name)])

    def _begin(self, heading: _Heading) -> Row:
        self._in_rows = self._in_heading = True
        self._row_above = []
        others = [name for name in heading.names if _names_other_rows(name)]
        self._runs = None
        if heading.boxed and [name.lower() for name in others] == ["run"]:
            self._runs, others = _Runs(heading.names.index(others[0])), []
        if not others:
            self._heading = heading
            why = "two columns of its table have this name"
            return Row(table=True, left_out=[LeftOut(name, why) for name in sorted(heading.doubled)])
        self._heading = None
        return self._left_out(heading, others[0])

    def _split_line(self, line: str) -> Row | None:
        """The row of a split of the data; then the table is read after all."""
        row = self._by_split.read(line)
        if row is not None and row.values:
            self._unread = []
        return row

    def _class_line(self, line: str) -> Row | None:
        """The row "all" of a table of classes; its heading ends in a bar ("classes top1_acc: 100% ━━━")."""
        if "lass" in line and (heading := _CLASSES.match(line)):
            names = (heading["names"] or heading["bare"]).replace(":", "-")
            self._classes = ["class", *_grouped(names.split())]
            return Row(table=True)
        cells = line.split() if self._classes else []
        if cells[:1] != ["all"]:
            return None
        names, self._classes = self._classes, []
        numbers = {name: read_number(cell) for name, cell in zip(reversed(names), reversed(cells), strict=False)}
        found = {name: value for name, value in numbers.items() if value is not None and is_metric(name)}
        return Row([MetricValue(name, value, "table column") for name, value in reversed(found.items())])


class _SplitRows:
    """A table with a row for each split of the data: its columns are metrics, rows begin with "train" or "val"."""

    def __init__(self) -> None:
        self._columns: list[str] = []

    @property
    def open(self) -> bool:
        return bool(self._columns)

    def begin(self, heading: str) -> None:
        """Remember the names of columns; "" for a line that has none."""
        self._columns = _texts(heading) if heading else []

    def read(self, line: str) -> Row | None:
        """The row; an empty one for a rule or the name of an index, None for any other line, which ends the table."""
        if not self._columns or _RULE.match(line) or line.strip().lower() in _SPLIT_COLUMNS:
            return Row(table=True) if self._columns and line.strip() else None
        cells = _texts(line)
        has_name = self._columns[0].lower() in _SPLIT_COLUMNS
        names = self._columns[has_name:]
        numbers = [read_number(cell) for cell in cells[1:]]
        if not cells or cells[0].lower() not in SPLITS or len(numbers) != len(names) or None in numbers:
            self._columns = []
            return None
        split = SPLITS[cells[0].lower()]
        pairs = [(name_of([split, *name.split()]), value) for name, value in zip(names, numbers, strict=True)]
        return Row(
            [MetricValue(name, value, "table row") for name, value in pairs if value is not None and is_metric(name)]
        )


def _without_epochs(names: list[str]) -> list[LeftOut]:
    return [LeftOut(name, "a column of a table without epochs or steps") for name in names]


def _values_in(columns: list[str], line: str) -> list[MetricValue]:
    """The values of a row of numbers alone, one for each of the columns; [] for any other row."""
    cells = [cell.text for cell in _boxed_cells(line)] if columns and _BORDER.search(line) else []
    numbers = [read_number(cell) for cell in cells]
    if len(cells) != len(columns) or len(set(columns)) < len(columns) or None in numbers:
        return []
    return [
        MetricValue(name, value, "table of one row", "%" in cell)
        for name, value, cell in zip(columns, numbers, cells, strict=True)
        if value is not None and (is_metric(name) or not is_never(name))
    ]


def _names_other_rows(name: str) -> bool:
    """Whether a column says whose row it is ("seed", "Trial name")."""
    return not (is_metric(name) or _OTHER_ROWS.isdisjoint(re.split(r"[\s_\-./]+", name.lower())))


def _texts(line: str) -> list[str]:
    """The cells of a line with borders, or the phrases of one without."""
    return [cell.text for cell in (_boxed_cells(line) if _BORDER.search(line) else _phrases(line))]


_CLASSES = re.compile(
    r"^\s*class(?:es)?\s+(?P<names>(?:[^:]|:(?=\.?\d))*+):"
    r"|^\s*class(?:es)?\s+(?P<bare>images\s[^:=|]*)$",
    re.IGNORECASE,
)


def _grouped(words: list[str]) -> list[str]:
    """Names of columns, some of them in groups: "Box(P", "R", "mAP50)", "Mask(P", "R", "mAP50)".

    A name that two groups have is told apart by its group: `box_mAP50`, `mask_mAP50`.
    """
    names, group = [], ""
    for word in words:
        opened, bracket, rest = word.partition("(")
        group = opened.lower() if bracket else group
        names.append((group, (rest if bracket else word).rstrip(")")))
        group = "" if word.endswith(")") else group
    plain = [name for _, name in names]
    return [f"{group}_{name}" if group and plain.count(name) > 1 else name for group, name in names]


def _heading_of(line: str) -> _Heading | None:
    """The heading that a line is: names, one of which counts epochs, steps or rounds."""
    if ":" in line or "=" in line or (_CLOCK_WORD.search(line) is None and line.lstrip(" |█")[:2].lower() != "e "):
        return None
    boxed = _BORDER.search(line) is not None
    if not boxed and "\t" in line.strip() and "\t\t" not in line.strip():
        words = [_Cell(word.strip(), 0, 0) for word in line.strip().split("\t")]
        if (heading := _heading_from(words, boxed=False, delimiter="\t")) is not None:
            return heading
    if not boxed and "," in line and " " not in line.strip():
        return _heading_from([_Cell(word, 0, 0) for word in line.strip().split(",")], boxed=False, delimiter=",")
    cells = _boxed_cells(line) if boxed else _phrases(line.replace("█", " "))
    heading = _heading_from(cells, boxed=boxed)
    if heading is None and not boxed:
        return _heading_from(
            [_Cell(m[0], m.start(), m.end()) for m in _WORD.finditer(line)], boxed=False, only_words=True
        )
    return heading


def _heading_from(cells: list[_Cell], *, boxed: bool, delimiter: str = "", only_words: bool = False) -> _Heading | None:
    texts = [cell.text for cell in cells]
    lowered = [text.lower() for text in texts]
    at = next((place for place, text in enumerate(lowered) if text in _CLOCKS), -1)
    at = 0 if at < 0 and lowered[:1] and lowered[0] in _FIRST_ONLY_CLOCKS else at
    if (
        at < 0
        or len([text for text in texts if text]) < 2
        or any(read_number(text.strip("[]()")) is not None or _NUMBER_FIRST.match(text) for text in texts)
    ):
        return None
    if only_words and not (at == 0 and lowered[0] == "epoch" and all(_COLUMN.match(text) for text in texts)):
        return None
    has_phrases = any(" " in text for text in texts)
    names = tuple(name_of(text.split()) if has_phrases and text else text for text in texts)
    has_metric = any(is_metric(name) for name in names)
    certain = has_metric or (at == 0 and lowered[0] == "epoch" and not only_words and len(texts) >= 3)
    split = next((place for place, text in enumerate(lowered) if text in _SPLIT_COLUMNS), -1)
    doubled = frozenset(name for name in names if names.count(name) > 1 and is_metric(name))
    return _Heading(tuple(cells), names, at, split, boxed, delimiter, doubled) if certain else None


def _with_lines_above(heading: _Heading | None, above: list[str]) -> _Heading | None:
    """The heading of a box with the words that stand over its own: long names take several lines."""
    if heading is None or not heading.boxed or not above or any(map(_STARTS_WITH_A_DIGIT.search, above)):
        return heading
    starts = [cell.start for cell in heading.cells]
    lines = [cells for cells in map(_boxed_cells, above) if [cell.start for cell in cells] == starts]
    return _heading_from(_stacked([*lines, list(heading.cells)]), boxed=True) or heading


def _with_line_below(heading: _Heading, line: str) -> _Heading | None:
    """The heading of a box with the words of the line below it, where the epoch has none; None for other lines."""
    if not heading.boxed or not _BORDER.search(line) or _STARTS_WITH_A_DIGIT.search(line):
        return None
    cells = _boxed_cells(line)
    if [cell.start for cell in cells] != [cell.start for cell in heading.cells] or cells[heading.clock].text:
        return None
    return (
        _heading_from(_stacked([list(heading.cells), cells]), boxed=True) if any(cell.text for cell in cells) else None
    )


def _stacked(lines: list[list[_Cell]]) -> list[_Cell]:
    """The cells of lines whose borders are at the same places, each with the words of all lines.

    A word that fills its cell goes on below it, unless it is a whole one ("Validat", "ion").
    """
    cells = []
    for column in zip(*lines, strict=True):
        name = column[0].text
        for upper, below in pairwise(column):
            last = name.rpartition(" ")[2]
            is_whole = last.lower() in VOCABULARY or is_metric(last) or len(upper.text) < upper.end - upper.start - 2
            name = f"{name} {below.text}".strip() if is_whole else name + below.text
        cells.append(_Cell(name, column[0].start, column[0].end))
    return cells


def _goes_on_in(upper: list[_Cell], lower: list[_Cell], clock: int) -> list[_Cell]:
    """A row whose cells were too narrow for their numbers: the rest of them stands below; [] for any other line."""
    if [cell.start for cell in upper] != [cell.start for cell in lower] or not upper or lower[clock].text:
        return []
    pairs = list(zip(upper, lower, strict=True))
    if any(other.text and len(one.text) < one.end - one.start - 2 for one, other in pairs):
        return []
    return [_Cell(one.text + other.text, one.start, one.end) for one, other in pairs]


def _heading_over_index(line: str, before: str) -> _Heading | None:
    """The heading of a frame whose index counts the epochs: the columns' names, and below them the index's."""
    name = line.strip()
    if name.lower() not in _CLOCKS or not before[:1].isspace() or _BORDER.search(before) or ":" in before:
        return None
    start = line.index(name)
    return _heading_from([_Cell(name, start, start + len(name)), *_phrases(before)], boxed=False)


def _metric_columns(line: str) -> list[str]:
    """The metrics that a line names as columns: two or more names with gaps or borders between them, and no number.

    A warning quotes the line of source that it is about: "  from sentence_transformers.losses import CosineLoss".
    """
    if _STARTS_WITH_A_DIGIT.search(line) or _IMPORT.match(line):
        return []
    cells = _boxed_cells(line) if _BORDER.search(line) else _phrases(line)
    names = [cell.text.replace(" ", "_") for cell in cells if cell.text]
    if len(names) + line[:1].isspace() < 2 or not all(map(_COLUMN.match, names)):
        return []
    return [name for name in names if is_metric(name)]


def _row_under(heading: _Heading, texts: list[str], table: int) -> Row | None:
    count = _COUNT.match(texts[heading.clock]) if texts else None
    is_last = heading.boxed and bool(texts) and texts[heading.clock].lower() in _AFTER_TRAINING
    if count is None and not is_last:
        return None
    row = Row(table=table, epoch=float(count[1]) if count else None, final=is_last)
    prefix = SPLITS.get(texts[heading.split].lower(), "") if heading.split >= 0 else ""
    if heading.split >= 0 and not prefix:
        return None
    for place, name in enumerate(heading.names):
        if place in (heading.clock, heading.split) or name in heading.doubled:
            continue
        if "…" in name:
            row.left_out.append(LeftOut(name, _NAME_IS_CUT))
            continue
        value = read_number(texts[place].rstrip(":"))
        if value is not None and name and (is_metric(name) or not is_never(name)):
            row.values.append(MetricValue(f"{prefix}_{name}" if prefix else name, value, "table column"))
        elif value is None and (why := _why_not(name, texts[place])):
            row.left_out.append(LeftOut(f"{prefix}_{name}" if prefix else name, why))
    return row


def _why_not(name: str, text: str) -> str:
    """Why what stands under a name is not read; "" where no value was meant."""
    if has_unclear_comma(text):
        return UNCLEAR_COMMA
    return _NO_NUMBER if is_metric(name) and text.lower() not in _NO_VALUE else ""


def _texts_under(heading: _Heading, line: str) -> list[str]:
    """What stands under each name, "" where nothing does; [] when the line is no row of this table."""
    if heading.boxed:
        cells = [cell.text for cell in _boxed_cells(line)] if _BORDER.search(line) else []
        return _without_marks(_fitting(cells, heading), line)
    if heading.delimiter and (heading.delimiter in line or heading.delimiter == ","):
        cells = [cell.strip() for cell in line.strip("\r\n ").split(heading.delimiter)]
        if texts := _fitting(cells, heading):
            return _without_marks(texts, line)
        if heading.delimiter == ",":
            return []
    words = [_Cell(match[0], match.start(), match.end()) for match in _WORD.finditer(line)]
    aligned = [] if heading.delimiter else _aligned(heading, words)
    return _without_marks(aligned or _counted(heading, words), line)


def _fitting(cells: list[str], heading: _Heading) -> list[str]:
    """The cells under the names: as many as these, or more where only a mark without a name follows the last.

    A row of whole numbers alone is then left out: its commas may be decimal ("1,0,9,*").
    """
    columns = len(heading.cells)
    if len(cells) == columns:
        return cells
    is_clear = heading.delimiter != "," or any("." in cell for cell in cells[:columns])
    return cells[:columns] if len(cells) > columns and is_clear and all(map(_is_mark, cells[columns:])) else []


def _is_mark(text: str) -> bool:
    """Whether a text beside a row says something about it, and is no value itself."""
    return not any(character.isdigit() for character in text) and read_number(text) is None


def _without_marks(texts: list[str], line: str) -> list[str]:
    """The texts without the marks of the best row ("*0.6", "**0.6**")."""
    if "*" not in line and "†" not in line and "‡" not in line:
        return texts
    return [text.strip(_MARKS).strip() or text for text in texts]


def _looks_like_a_row(line: str) -> bool:
    """Whether most of a line is numbers, and a whole one comes first: it counts, as those of the rows do."""
    if ":" in line or "=" in line:
        return False
    words = [word.strip(_MARKS) for word in re.split(r"[\s,;│┃┆|]+", line) if word.strip(_MARKS)]
    numbers = [word for word in words if read_number(word) is not None]
    return len(numbers) >= 2 and len(numbers) * 2 >= len(words) and _COUNT.match(words[0]) is not None


def _aligned(heading: _Heading, words: list[_Cell]) -> list[str]:
    """Each word under the one name that it meets; only an index, a whole number, may stand before the first name."""
    texts = [""] * len(heading.cells)
    for place, word in enumerate(words):
        met = [column for column, cell in enumerate(heading.cells) if word.meets(cell)]
        if not met and place == 0 and word.end <= heading.cells[0].start and word.text.isdigit():
            continue
        if not met and word.start >= heading.cells[-1].end and all(_is_mark(other.text) for other in words[place:]):
            break
        if len(met) != 1 or texts[met[0]]:
            return []
        texts[met[0]] = word.text
    return texts


def _counted(heading: _Heading, words: list[_Cell]) -> list[str]:
    """As many words as names, in their order; not where the first word stands left of all names, as an index does.

    A bar may follow the last column ("1/3  0G  0.70  4  32: 100% ━━━ 3/3").
    """
    texts = [word.text for word in words]
    columns = len(heading.cells)
    if len(texts) > columns and texts[columns - 1].endswith(":"):
        return texts[:columns]
    is_index = bool(words) and words[0].end < heading.cells[0].start
    texts = [] if is_index else _fitting(texts, heading)
    has_gap = any(is_metric(name) and _is_a_word(text) for name, text in zip(heading.names, texts, strict=False))
    return [] if has_gap else texts


def _is_a_word(text: str) -> bool:
    """Whether a text where a number belongs is neither one nor a sign that there is none: a cell before it is empty."""
    return _is_mark(text) and text.lower() not in _NO_VALUE


def _boxed_cells(line: str) -> list[_Cell]:
    """The cells between borders, blank ones too; what stands before the first and after the last border if anything."""
    cells = []
    start = 0
    for border in [*_BORDER.finditer(line), None]:
        end = border.start() if border else len(line)
        cells.append(_Cell(line[start:end].strip(), start, end))
        start = border.end() if border else end
    cells = cells[1:] if cells and not cells[0].text else cells
    return cells[:-1] if cells and not cells[-1].text else cells


def _phrases(line: str) -> list[_Cell]:
    """Words with gaps of two or more blanks between them ("Iter   Train Loss   OOB Improve")."""
    return [_Cell(match[0], match.start(), match.end()) for match in _PHRASE.finditer(line.replace("\t", "  "))]


class _MetricLists:
    """Tables with a row for each metric: a list of names and values, or a classification report."""

    def __init__(self) -> None:
        self._in_list = False
        self._columns: list[str] = []

    @property
    def open(self) -> bool:
        return self._in_list or bool(self._columns)

    def read(self, line: str) -> Row | None:
        if _LIST_HEADING.search(line) or _VALUE_HEADING.match(line):
            self._in_list = True
            return Row(table=True)
        if _REPORT_HEADING.match(line):
            self._columns = line.split()
            return Row(table=True)
        if self._in_list:
            return self._list_line(line)
        return self._report_line(line) if self._columns else None

    def _list_line(self, line: str) -> Row | None:
        if _RULE.match(line):
            return Row(table=True)
        cells = [cell.strip() for cell in _BORDER.sub("  ", line).split("  ") if cell.strip()]
        value = read_number(cells[1]) if len(cells) == 2 else None
        if value is None and cells and all(map(_TYPE.match, cells)):
            return Row(table=True)
        if value is None:
            self._in_list = False
            return None
        if is_never(cells[0]) and not is_metric(cells[0]):
            return Row(table=True)
        return Row([MetricValue(cells[0], value, "table of metrics", "%" in cells[1])], final=True)

    def _report_line(self, line: str) -> Row | None:
        """A line of a classification report: of its rows the accuracy and the averages are metrics of the whole."""
        cells = line.split()
        if not cells:
            return Row(table=True)
        numbers = [number for number in map(read_number, cells) if number is not None]
        columns = len(self._columns)
        is_whole = cells[0] == "accuracy" and len(numbers) == len(cells) - 1 and len(set(numbers)) <= 2
        if is_whole and len(cells) in (3, columns + 1):
            return Row([MetricValue("accuracy", numbers[0], CLASS_REPORT)])
        if len(cells) <= columns or any(read_number(cell) is None for cell in cells[-columns:]):
            self._columns = []
            return None
        label = " ".join(cells[:-columns])
        pairs = list(zip(self._columns[:-1], map(read_number, cells[-columns:]), strict=False))
        name = f"_{cells[0]}" if cells[1:2] == ["avg"] and len(cells) == columns + 2 else f"[{label[:_LONGEST_CLASS]}]"
        return Row(
            [MetricValue(f"{column}{name}", value, CLASS_REPORT) for column, value in pairs if value is not None]
        )


_TYPE = re.compile(r"(?:str|cat|enum|bool|[fiu]\d{1,3})$")  # under the names of a Polars frame
_LIST_HEADING = re.compile(r"\b(?:Test|Validate|Runningstage\.\w+) metric\b", re.IGNORECASE)
_VALUE_HEADING = re.compile(
    r"^[\s│┃|║]*(?:metrics?|measure)\s*[│┃┆|║\s]\s*(?:values?|scores?|results?)[\s│┃|║]*$", re.IGNORECASE
)
_REPORT_HEADING = re.compile(r"^\s+precision\s+recall\s+f1-score\s+support\s*$")


_LONGEST_CLASS = 60


class _SectionedBox:
    """The boxes of reinforcement learning: names, often under sections; the rule that ends a box gives all of it."""

    def __init__(self) -> None:
        self._section = ""
        self._in_box = False
        self._values: dict[str, float] = {}
        self._lines: list[str] = []

    @property
    def open(self) -> bool:
        return self._in_box

    def begin(self) -> None:
        """A box without sections begins: its first row comes right below a rule of dashes."""
        self._in_box = True

    def read(self, line: str) -> Row | None:
        if not (self._in_box or _is_section(line)):
            return None
        self._in_box = True
        line = line.strip()
        self._lines.append(line)
        if len(self._lines) > _LONGEST_BOX:
            return self._closed()
        if (section := _SECTION.match(line)) is not None:
            self._section = section["section"]
            return Row(table=True)
        if (boxed := _BOXED.match(line)) is not None:
            value = read_number(boxed["value"])
            if value is not None:
                self._values[self._section + boxed["name"]] = value
            return Row(table=True)
        return self._closed()

    def _closed(self) -> Row:
        box, lines = self._values, " ".join(self._lines)
        self._values, self._lines, self._section, self._in_box = {}, [], "", False
        taken = {name: value for name, value in box.items() if not name.startswith("time/") and not is_never(name)}
        values = [MetricValue(name, value, "boxed table") for name, value in taken.items()]
        epoch = next((value for name, value in box.items() if name.lower() == "epoch"), None)
        return Row(values, epoch=epoch, step=box.get(_BOX_STEP), lines=lines)


_SECTION = re.compile(r"^\|\s*(?P<section>[\w.\- ]+/)\s*\|\s*\|$")
_BOXED = re.compile(r"^\|\s+(?P<name>[A-Za-z][\w@.\-/]*)\s*\|\s*(?P<value>\S+)\s*\|$")
_DASHES = re.compile(r"-{10,}\s*$")
_BOX_STEP = "time/total_timesteps"
_LONGEST_BOX = 200


def _is_section(line: str) -> bool:
    """Whether a line is a name and a slash in a box; "| epoch 1 | 200/ 2983 batches | loss 7.62" is none."""
    return line[:2] == "| " and "/ " in line and _SECTION.match(line.strip()) is not None
