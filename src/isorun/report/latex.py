"""The tables as LaTeX in the manner of booktabs, ready to be put into a paper."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from isorun.analysis.studies.study_result import StudyResult
from isorun.errors import harmless
from isorun.report import Table
from isorun.report.study_view import study_tables, verdict

__all__ = ["latex_text", "render", "render_table"]

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
}


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
    alignment = "".join("l" if column.key else "r" for column in table.columns)
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
        *(_row(list(row)) for row in table.rows),
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


def _row(cells: list[str]) -> str:
    return " & ".join(latex_text(cell) for cell in cells) + r" \\"


def latex_text(text: str) -> str:
    """User text with every character that LaTeX would act on replaced."""
    return "".join(_REPLACED.get(char, char) for char in " ".join(harmless(text).split()))


def _label(name: str) -> str:
    return "".join(char if char.isascii() and char.isalnum() else "-" for char in name)
