"""Notebooks: what is shown in place while runs go on, where isorun is used in a Jupyter kernel.

One display, updated as the terminal's line is: a bar, how far the work is, and the last of what was said. It needs
nothing but the kernel (no widgets, no script), and what is left of it when the work has ended is a small part of the
saved notebook. Elsewhere nothing of this is loaded.
"""

from __future__ import annotations

import io
import sys
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from isorun.cli.progress import Progress
from isorun.errors import harmless
from isorun.report import escaped
from isorun.scheduling import Observer, observe_with

if TYPE_CHECKING:
    from isorun.study.design import Study

__all__ = ["NotebookProgress", "install", "is_notebook"]

_LINES_KEPT: Final = 8
_PAUSE: Final = 0.2
"""A notebook is told no more often than this: each update goes through its browser."""


def is_notebook() -> bool:
    """Whether this is the kernel of a notebook: a terminal's IPython, which has no place to update, is none."""
    shell = sys.modules.get("IPython")
    running = shell.get_ipython() if shell is not None else None
    return running is not None and hasattr(running, "kernel")


def install() -> None:
    """From now on work that nobody else watches is shown in its notebook."""
    observe_with(lambda study: NotebookProgress(study) if is_notebook() else Observer())


class _Shown:
    """What a notebook shows: HTML, and the same as text for those that show none."""

    def __init__(self, html: str, text: str) -> None:
        self._html = html
        self._text = text

    def _repr_html_(self) -> str:
        return self._html

    def __repr__(self) -> str:
        return self._text


class NotebookProgress(Progress):
    """The progress of the command line, in one display that is updated in place."""

    def __init__(self, study: Study) -> None:
        super().__init__(study, io.StringIO())
        self._live = True
        self._now = ""
        self._said: deque[str] = deque(maxlen=_LINES_KEPT)
        self._display: Any = None
        self._shown_at = 0.0

    def work_ended(self) -> None:
        """The bar stays as it is, and what was said; who asked gets the outcome."""
        self._now = ""
        if self._display is not None:
            self._show()

    def _rewrite(self, line: str) -> None:
        self._now = harmless(line)
        if time.monotonic() - self._shown_at >= _PAUSE:
            self._show()

    def _say(self, line: str) -> None:
        self._say_plan()
        self._said.append(harmless(line))
        self._show()

    def _show(self) -> None:
        from IPython.display import display  # noqa: PLC0415 - only where a kernel is

        self._shown_at = time.monotonic()
        shown = _Shown(self._html(), "\n".join((*self._said, *filter(None, [self._now]))))
        if self._display is None:
            self._display = display(shown, display_id=True)
        else:
            self._display.update(shown)

    def _html(self) -> str:
        done, total = self.done_and_total()
        bar = f'<progress max="{max(total, 1)}" value="{done}" style="width:20em"></progress>'
        head = f"<div>{bar} {done} of {total} runs</div>" if total else ""
        now = f"<div>{escaped(self._now)}</div>" if self._now else ""
        said = "".join(f'<div style="opacity:.75">{escaped(line)}</div>' for line in self._said)
        return f'<div class="isorun">{head}{now}{said}</div>'
