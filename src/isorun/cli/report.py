"""How much the runs of a study vary, and what made it so.

isorun report study.toml                      verdict, spread, identical runs and warnings in the terminal
isorun report study.toml --full               every table
isorun report study.toml --html report.html   one self-contained file that opens offline
isorun report study.toml --json               the same result for machines

Of a study with searches it says how they went, what their trials showed, and what each change brought.
"""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from isorun import cli
from isorun.errors import UsageError

if TYPE_CHECKING:
    from isorun.analysis.studies.study_result import StudyResult

__all__ = ["declare", "execute"]


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    parser.add_argument(
        "study", nargs="?", metavar="STUDY", help="a study file, or the name of an earlier study (default: the latest)"
    )
    parser.add_argument("--full", action="store_true", help="all tables, not only those of a first look")
    parser.add_argument("--html", metavar="FILE", help="also write one self-contained page")
    parser.add_argument("--markdown", metavar="FILE", help="also write Markdown tables")
    parser.add_argument("--latex", metavar="FILE", help="also write LaTeX tables (booktabs)")
    parser.add_argument("--figures", metavar="FOLDER", help="also write the figures as SVG files")
    parser.add_argument("--pdf", action="store_true", help="with --figures: also as PDF (needs isorun[figures])")
    parser.add_argument("--store", metavar="FOLDER", help="where records are kept (default: .isorun beside the study)")
    cli.declare_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Analyse the study and print or write what was asked for."""
    from isorun import workflow
    from isorun.report import terminal

    result = workflow.analyse(options.study, store=options.store)
    written = [*_write_pages(result, options), *_write_figures(result, options)]
    if options.json:
        from isorun.report import json_report

        cli.print_json(json_report.to_json(result))
        return 0
    text = terminal.render(result, colour=cli.wants_colour(), width=cli.terminal_width(), full=options.full)
    cli.show_text("".join([text, "\n", *(f"written: {path}\n" for path in written)]))
    return 0


def _write_pages(result: StudyResult, options: argparse.Namespace) -> list[str]:
    if options.html:
        from isorun.report import html

        cli.write_file(options.html, html.render(result, beside=Path(options.html).parent), "html")
    asked = {"markdown": options.markdown, "latex": options.latex}
    for renderer, path in asked.items():
        if path:
            cli.write_file(path, importlib.import_module(f"isorun.report.{renderer}").render(result), renderer)
    return [path for path in (options.html, *asked.values()) if path]


def _write_figures(result: StudyResult, options: argparse.Namespace) -> list[str]:
    if options.pdf and not options.figures:
        raise UsageError("--pdf needs --figures FOLDER, the place to write to")
    if not options.figures:
        return []
    from isorun.report.study_view import study_view

    return cli.write_figures(study_view(result, figures=True).figures, options.figures, pdf=options.pdf)
