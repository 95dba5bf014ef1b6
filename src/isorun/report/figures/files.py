"""Figures in files: the ending of the name tells the format."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from isorun.errors import InputError
from isorun.report.figures import mpl, svg
from isorun.report.figures.description import Figure

__all__ = ["ENDINGS", "save_figure"]

ENDINGS: Final = (".svg", ".pdf", ".png")


def save_figure(figure: Figure, path: str | Path) -> Path:
    """Write the figure and return its path. SVG is our own; PDF and PNG need matplotlib (isorun[figures])."""
    target = Path(path)
    ending = target.suffix.lower()
    if ending not in ENDINGS:
        found = f"the ending {target.suffix!r}" if target.suffix else "no ending"
        raise InputError(f"cannot tell how to draw {target}", found=found, allowed=", ".join(ENDINGS))
    try:
        if ending == ".svg":
            target.write_text(svg.render(figure, standalone=True) + "\n", encoding="utf-8")
        else:
            mpl.save(figure, target)
    except OSError as error:
        raise InputError(f"cannot write the figure {target}", found=str(error.strerror or error)) from error
    return target
