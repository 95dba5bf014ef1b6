"""What all commands print alike: JSON for machines, colour only where it is wanted, files written whole."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isorun.errors import InputError

if TYPE_CHECKING:
    from isorun.report.figures.description import Figure
    from isorun.report.view import View

__all__ = [
    "declare",
    "declare_figure",
    "file_name",
    "made_folder",
    "print_json",
    "show",
    "terminal_width",
    "wants_colour",
    "write_figures",
    "write_file",
]


def declare(parser: argparse.ArgumentParser) -> None:
    """The option that every command has."""
    parser.add_argument("--json", action="store_true", help="print the result as JSON, for machines")


def declare_figure(parser: argparse.ArgumentParser, what: str) -> None:
    """The option of commands that can draw their result."""
    parser.add_argument("--figure", metavar="FILE", help=f"draw {what}: .svg, or .pdf and .png with isorun[figures]")


def print_json(value: Any) -> None:
    """Strict JSON on stdout."""
    print(json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False))


def show(view: View) -> None:
    """Print what a command has to say."""
    from isorun.report.terminal import render_view

    print(render_view(view, colour=wants_colour(), width=terminal_width()), end="")


def wants_colour() -> bool:
    """Whether stdout is a terminal and nobody asked for plain text (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def terminal_width() -> int:
    """How many columns there are, within what is readable."""
    return max(60, min(shutil.get_terminal_size((80, 24)).columns, 160))


def file_name(text: str) -> str:
    """A text from a user as a harmless file name: no path is ever built from it as it stands."""
    return re.sub(r"[^\w.-]+", "_", text).strip("._")[:80] or "figure"


def made_folder(path: str | Path) -> Path:
    """The folder, made when it is missing."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder {folder} cannot be made: {error.strerror or error}") from None
    return folder


def write_file(path: str | Path, text: str) -> None:
    """Write a file whole or not at all, so that a full disk never leaves half a report."""
    target = Path(path)
    try:
        with tempfile.NamedTemporaryFile(
            "w", dir=target.parent, prefix=f".{target.name}.", delete=False, encoding="utf-8"
        ) as file:
            file.write(text)
        Path(file.name).chmod(0o644)
        Path(file.name).replace(target)
    except OSError as error:
        raise InputError(f"{target} cannot be written: {error.strerror or error}") from None


def write_figures(figures: Iterable[Figure], folder: str | Path, *, pdf: bool = False) -> list[str]:
    """Write figures as numbered SVG files, and as PDF beside them where that is wanted; their paths."""
    from isorun.report.figures import files, svg

    place, written = made_folder(folder), []
    for number, figure in enumerate(figures, start=1):
        path = place / f"{number:02}-{file_name(figure.name)}.svg"
        write_file(path, svg.render(figure, standalone=True))
        written.append(str(path))
        if pdf:
            files.save_by_matplotlib(figure, path.with_suffix(".pdf"))
            written.append(str(path.with_suffix(".pdf")))
    return written
