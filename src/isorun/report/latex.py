"""The tables as LaTeX in the manner of booktabs, ready to be put into a paper."""

from __future__ import annotations

import itertools
import math
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from isorun.analysis.studies.study_result import StudyResult
from isorun.errors import harmless
from isorun.report import Column, Listing, Table, View
from isorun.report.study_view import study_tables, verdict

__all__ = ["PACKAGES", "breakable_text", "latex_text", "render", "render_table", "render_view"]

PACKAGES: Final = r"\usepackage[T1]{fontenc}, \usepackage{booktabs} and \usepackage{graphicx}"

_REPLACED: Final = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    '"': r"\textquotedbl{}",
    "±": r"$\pm$",
    "∞": r"$\infty$",
    "—": "---",
    "–": "--",
    "…": r"\ldots{}",
    "\N{REPLACEMENT CHARACTER}": "?",
    "\N{MINUS SIGN}": "$-$",
    "→": r"$\rightarrow$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "≈": r"$\approx$",
    "τ": r"$\tau$",
    "ρ": r"$\rho$",
    "σ": r"$\sigma$",
    "χ": r"$\chi$",
    "Δ": r"$\Delta$",
}
_JOINED: Final = frozenset("-'`,")
"""Two of them are set as one other sign: the option --lr would be printed with a dash."""
_NEVER_SET: Final = frozenset("ĦħĸĿŀŉŦŧſ")
"""Letters among the Latin ones that the fonts of T1 do not have."""
_LONG: Final = 40
"""Texts from this length on are wrapped."""
_LONGEST_PART: Final = 24
_LONGEST_HEADING: Final = 12
_TEXT_WIDTH: Final = 0.6
_MOST_LETTERS: Final = 72
"""So many letters stand beside each other in the text of an article; a wider table is continued below."""
_MOST_LINES: Final = 40
"""So many lines of a table stand below each other on a page of an article; a longer table is continued on the next."""
_FEWEST_LINES: Final = 10
_LETTERS_OF_COLUMN: Final = 45
"""In a line of one of two columns, the narrowest place that a table is made for."""
_LEAST_WIDTH: Final = 0.2
"""Of a column of long texts: its words hardly fit a narrower one."""
_BREAKS: Final = re.compile(r"(?<=[/\\._:=,;@+-])(?=\w)")


def render(result: StudyResult) -> str:
    """The verdict as an itemised list, then all tables; needs the package booktabs."""
    sentences = "\n".join(rf"  \item {breakable_text(sentence)}" for sentence in verdict(result))
    parts = [
        rf"% needs {PACKAGES}",
        f"\\begin{{itemize}}\\sloppy\n{sentences}\n\\end{{itemize}}",
        *(render_table(table) for table in study_tables(result)),
    ]
    return "\n\n".join(parts) + "\n"


def render_view(title: str, view: View) -> str:
    """What a command has to say, under a title; warnings are for those who run it, and not for a paper."""
    sentences = "\n".join(rf"  \item {breakable_text(sentence)}" for sentence in view.verdict)
    listed = (
        f"\\paragraph{{{latex_text(one.title)}}}\n\\begin{{itemize}}\\sloppy\n{_items(one)}\n\\end{{itemize}}"
        for one in view.listings
        if one.items
    )
    parts = [
        rf"% {latex_text(title)}; needs {PACKAGES}",
        *([f"\\begin{{itemize}}\\sloppy\n{sentences}\n\\end{{itemize}}"] if sentences else []),
        *(render_table(table) for table in view.tables),
        *listed,
    ]
    return "\n\n".join(parts) + "\n"


def _items(listing: Listing) -> str:
    return "\n".join(rf"  \item {breakable_text(item)}" for item in listing.items)


def render_table(table: Table) -> str:
    """A floating table with its caption above and its notes below; it fits the column that it is put into.

    A wide one is continued below with the same key columns; what is too wide for a column all the same is shrunk. One
    that is longer than a page, which no float may be, is continued in a float of its own under the same number.
    """
    if table.instead:
        return rf"{{\sloppy\paragraph{{{breakable_text(table.title)}}} {breakable_text(table.instead)}\par}}"
    table = table.first_rows()
    floats = list(_floats(table))
    return "\n\n".join(
        "\n".join(_float(table, parts, is_first=place == 0, is_last=place == len(floats) - 1))
        for place, parts in enumerate(floats)
    )


def _float(table: Table, parts: Sequence[Table], *, is_first: bool, is_last: bool) -> Iterator[str]:
    yield r"\begin{table}"
    yield r"\centering\small\sloppy"
    if is_first:
        yield rf"\caption{{{breakable_text(table.title)}}}"
        yield rf"\label{{tab:{_label(table.name)}}}"
    else:
        yield rf"\addtocounter{{table}}{{-1}}\caption{{{breakable_text(table.title)} (continued)}}"
    yield from (line for part in parts for line in _fitted(part))
    if is_last:
        yield from (rf"\par\smallskip{{\footnotesize {breakable_text(note)}}}" for note in table.notes)
    yield r"\end{table}"


def _floats(table: Table) -> Iterator[list[Table]]:
    """The parts of a table by the floats that they stand in, each with room for the notes, which stand in the last."""
    noted = sum(math.ceil(len(note) / _LETTERS_OF_COLUMN) for note in table.notes)
    most = max(_MOST_LINES - noted, _FEWEST_LINES)
    held: list[Table] = []
    used = 0
    for part in (short for wide in _parts(table) for short in _short_parts(wide, most)):
        lines = _head_lines(part) + sum(_lines_of_rows(part))
        if held and used + lines > most:
            yield held
            held, used = [], 0
        held.append(part)
        used += lines
    yield held


def _short_parts(table: Table, most: int) -> Iterator[Table]:
    """The table in parts of so many lines at the most, each with all headings and at least one row."""
    head = _head_lines(table)
    begin, used = 0, head
    for place, lines in enumerate(_lines_of_rows(table)):
        if place > begin and used + lines > most:
            yield replace(table, rows=table.rows[begin:place])
            begin, used = place, head
        used += lines
    yield replace(table, rows=table.rows[begin:])


def _head_lines(table: Table) -> int:
    headings = max((len(_heading_lines(column)) for column in table.columns), default=1)
    return headings + (1 if table.has_groups else 0) + 1  # rules and the space between parts take about a line


def _lines_of_rows(table: Table) -> list[int]:
    """How many lines each row takes, in the narrowest place that it is made for."""
    letters = [width and max(round(width * _LETTERS_OF_COLUMN), 1) for width in _text_widths(table)]
    return [
        max((math.ceil(len(cell) / width) for cell, width in zip(row, letters, strict=True) if width), default=1)
        for row in table.rows
    ]


def _parts(table: Table) -> Iterator[Table]:
    """The table in parts that are not too wide, each with all key columns."""
    widths = [_letters(table, place) for place in range(len(table.columns))]
    keys = [place for place, column in enumerate(table.columns) if column.key]
    part = list(keys)
    for place in (place for place in range(len(table.columns)) if place not in keys):
        if len(part) > len(keys) and sum(widths[one] + 2 for one in (*part, place)) > _MOST_LETTERS:
            yield _columns_of(table, part)
            part = list(keys)
        part.append(place)
    yield _columns_of(table, part)


def _letters(table: Table, place: int) -> int:
    cells = max((len(row[place]) for row in table.rows), default=0)
    return min(max(cells, *map(len, _heading_lines(table.columns[place]))), _LONG)


def _heading_lines(column: Column) -> list[str]:
    return textwrap.wrap(column.heading, _LONGEST_HEADING, break_long_words=False, break_on_hyphens=False) or [""]


def _headings(table: Table) -> str:
    """The headings, those of several words one word below the other."""
    cells = []
    for column in table.columns:
        lines = [latex_text(line) for line in _heading_lines(column)]
        side, stacked = "l" if column.key else "r", r"\\".join(lines)
        cells.append(lines[0] if len(lines) == 1 else rf"\shortstack[{side}]{{{stacked}}}")
    return " & ".join(cells) + r" \\"


def _columns_of(table: Table, places: Sequence[int]) -> Table:
    columns = tuple(table.columns[place] for place in places)
    return replace(table, columns=columns, rows=tuple(tuple(row[place] for place in places) for row in table.rows))


def _fitted(table: Table) -> Iterator[str]:
    """The tabular, shrunk to the width of the column where it is wider."""
    wrapped = _wrapped(table)
    alignment = "".join(
        width or ("l" if column.key else "r") for column, width in zip(table.columns, wrapped, strict=True)
    )
    yield rf"\sbox0{{\begin{{tabular}}{{@{{}}{alignment}@{{}}}}"
    yield r"\toprule"
    yield from _group_lines(table)
    yield _headings(table)
    yield r"\midrule"
    yield from (_row(row, wrapped) for row in table.rows)
    yield r"\bottomrule"
    yield r"\end{tabular}}"
    yield r"\ifdim\wd0>\linewidth\resizebox{\linewidth}{!}{\usebox0}\else\usebox0\fi\par\smallskip"


def _group_lines(table: Table) -> Iterator[str]:
    """Headings over several columns, each with a rule below it."""
    if not table.has_groups:
        return
    cells, rules, place = [], [], 1
    for heading, number in table.heading_groups():
        cells.append(rf"\multicolumn{{{number}}}{{c}}{{{latex_text(heading)}}}" if heading else "")
        rules += [rf"\cmidrule(lr){{{place}-{place + number - 1}}}"] if heading else []
        place += number
    yield " & ".join(cells) + r" \\"
    yield "".join(rules)


def _wrapped(table: Table) -> list[str]:
    """The alignment of the columns that hold long texts; "" for the others."""
    return [rf"p{{{width:.2f}\linewidth}}" if width else "" for width in _text_widths(table)]


def _text_widths(table: Table) -> list[float]:
    """The parts of the line that columns of long texts have, most of it together; 0 for the others."""
    lengths = [
        max((len(row[place]) for row in table.rows), default=0) if column.key else 0
        for place, column in enumerate(table.columns)
    ]
    total = sum(length for length in lengths if length > _LONG)
    return [max(_TEXT_WIDTH * length / total, _LEAST_WIDTH) if length > _LONG else 0.0 for length in lengths]


def _row(cells: Sequence[str], wrapped: Sequence[str] = ()) -> str:
    texts = [
        rf"\raggedright {breakable_text(cell)}" if place < len(wrapped) and wrapped[place] else latex_text(cell)
        for place, cell in enumerate(cells)
    ]
    return " & ".join(texts) + (r" \tabularnewline" if any(wrapped) else r" \\")


def breakable_text(text: str) -> str:
    """A text that may break within paths and other long words, too."""
    return " ".join(map(_breakable_word, text.split()))


def _breakable_word(word: str) -> str:
    if len(word) <= _LONGEST_PART:
        return latex_text(word)
    parts = (
        part[begin : begin + _LONGEST_PART]
        for part in _BREAKS.split(word)
        for begin in range(0, len(part), _LONGEST_PART)
    )
    return r"\allowbreak{}".join(map(latex_text, parts))


def latex_text(text: str) -> str:
    """User text with every character replaced that LaTeX would act on, or that its fonts do not have."""
    plain = " ".join(harmless(text).split())
    apart = ("{}" if char == after and char in _JOINED else "" for char, after in itertools.pairwise(f"{plain} "))
    text = "".join(f"{_REPLACED.get(char) or _settable(char)}{gap}" for char, gap in zip(plain, apart, strict=True))
    # Behind the end of a row LaTeX takes these for an option of it.
    return f"{{}}{text}" if text.startswith(("[", "*")) else text


def _settable(char: str) -> str:
    """A character of Western and Central European languages as it is, any other by its number."""
    known = char.isascii() or ("\N{NO-BREAK SPACE}" <= char <= "\N{LATIN SMALL LETTER Z WITH CARON}")
    return char if known and char not in _NEVER_SET else f"[U+{ord(char):04X}]"


def _label(name: str) -> str:
    return "".join(char if char.isascii() and char.isalnum() else "-" for char in name)
