"""Tables printed over several lines: a heading names the columns or the metrics, and rows follow.

Two kinds are known: columns under a heading that starts with "epoch" (fastai, skorch), and the boxed list of metrics
that Lightning prints after `test` and `validate`.
"""

from __future__ import annotations

import re

from isorun.execution.sources.text.names import is_metric, is_never
from isorun.execution.sources.text.numbers import read_number
from isorun.execution.sources.text.rows import Row, Value

__all__ = ["Tables", "may_head_a_table"]

_RULE = re.compile(r"^[\s\-=+|─━═┄┈┏┓┡┩┳╇┃┗┛┴└┘├┤┼┬╰╯╭╮]*$")
_CELL_BORDER = re.compile(r"[│┃|]|\s{2,}|\t")
_METRIC_LIST_HEADING = re.compile(r"\b(?:Test|Validate|Runningstage\.\w+) metric\b", re.IGNORECASE)
_EPOCH = re.compile(r"^[0-9]{1,9}$")
_COLUMN = re.compile(r"^[A-Za-z_][\w@./\-]*$")


def may_head_a_table(line: str) -> bool:
    """Whether a line without any number is worth a look: cheap, since it is asked for every such line."""
    return " metric" in line or line.lstrip(" |█")[:5].lower() == "epoch"


class Tables:
    """Remembers the heading of the table that the output is in, if it is in one."""

    def __init__(self) -> None:
        self._columns: list[str] = []
        self._in_metric_list = False

    @property
    def open(self) -> bool:
        """Whether the next line may be a row."""
        return bool(self._columns) or self._in_metric_list

    def read(self, line: str) -> Row | None:
        """The row this line is, an empty row for a heading or a rule, None when the line is no part of a table."""
        if self._in_metric_list or (" metric" in line and _METRIC_LIST_HEADING.search(line)):
            return self._metric_list_line(line)
        if self._opens_columns(line):
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

    def _opens_columns(self, line: str) -> bool:
        cells = line.replace("|", " ").replace("█", " ").split()
        heads = len(cells) >= 2 and cells[0].lower() == "epoch" and all(_COLUMN.match(cell) for cell in cells)
        if heads:
            self._columns = cells
        return heads

    def _column_row(self, line: str) -> Row | None:
        if _RULE.match(line) and line.strip():
            return Row(table=True)
        cells = line.replace("|", " ").split()
        if len(cells) < len(self._columns) or not _EPOCH.match(cells[0]):
            return None
        row = Row(table=True, epoch=float(cells[0]))
        for name, cell in zip(self._columns[1:], cells[1:], strict=False):
            value = read_number(cell)
            if value is not None and (is_metric(name) or not is_never(name)):
                row.values.append(Value(name, value, "table column"))
        return row


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in _CELL_BORDER.split(line.strip()) if cell.strip()]
