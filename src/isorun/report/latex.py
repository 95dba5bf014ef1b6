"""The tables as LaTeX in the manner of booktabs, ready to be put into a paper."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from isorun.analysis.studies.study_result import StudyResult
from isorun.errors import harmless
from isorun.report import Table
from isorun.report.study_view import study_tables, verdict

__all__ = ["breakable_text", "latex_text", "render", "render_table"]

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
_NEVER_SET: Final = frozenset("ĦħĸĿŀŉŦŧſ")
"""Letters among the Latin ones that the fonts of T1 do not have."""
_LONG: Final = 40
"""Texts from this length on are wrapped."""
_LONGEST_PART: Final = 24
_TEXT_WIDTH: Final = 0.6
_BREAKS: Final = re.compile(r"(?<=[/\\._:=,;@+-])(?=\w)")


def render(result: StudyResult) -> str:
    """The verdict as an itemised list, then all tables; needs the package booktabs."""
    sentences = "\n".join(rf"  \item {latex_text(sentence)}" for sentence in verdict(result))
    parts = [
        r"% needs \usepackage[T1]{fontenc} and \usepackage{booktabs}",
        f"\\begin{{itemize}}\n{sentences}\n\\end{{itemize}}",
        *(render_table(table) for table in study_tables(result)),
    ]
    return "\n\n".join(parts) + "\n"


def render_table(table: Table) -> str:
    """One floating table with its caption above and its notes below."""
    table = table.first_rows()
    wrapped = _wrapped(table)
    alignment = "".join(
        width or ("l" if column.key else "r") for column, width in zip(table.columns, wrapped, strict=True)
    )
    lines = [
        r"\begin{table}",
        r"\centering\small",
        rf"\caption{{{latex_text(table.title)}}}",
        rf"\label{{tab:{_label(table.name)}}}",
        rf"\begin{{tabular}}{{{alignment}}}",
        r"\toprule",
        *_group_lines(table),
        _row([column.heading for column in table.columns]),
        r"\midrule",
        *(_row(row, wrapped) for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        *(rf"\par\smallskip{{\footnotesize {latex_text(note)}}}" for note in table.notes),
        r"\end{table}",
    ]
    return "\n".join(lines)


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
    """The alignment of the columns that hold long texts, which share most of the line; "" for the others."""
    lengths = [
        max((len(row[place]) for row in table.rows), default=0) if column.key else 0
        for place, column in enumerate(table.columns)
    ]
    total = sum(length for length in lengths if length > _LONG)
    return [rf"p{{{_TEXT_WIDTH * length / total:.2f}\linewidth}}" if length > _LONG else "" for length in lengths]


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
    return "".join(_REPLACED.get(char) or _settable(char) for char in " ".join(harmless(text).split()))


def _settable(char: str) -> str:
    """A character of Western and Central European languages as it is, any other by its number."""
    known = char.isascii() or ("\N{NO-BREAK SPACE}" <= char <= "\N{LATIN SMALL LETTER Z WITH CARON}")
    return char if known and char not in _NEVER_SET else f"[U+{ord(char):04X}]"


def _label(name: str) -> str:
    return "".join(char if char.isascii() and char.isalnum() else "-" for char in name)
