"""Write docs/results.md, its figures, and our own measurements in docs/levels.md, from the JSON files beside this script.

    python results/make_page.py

Every number on the page is computed from a stored result or is a published constant of the zoo. No literal text here or
in page/ has a digit in it, names apart: tests/test_results.py holds that, makes the page again and compares.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs"
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]  # a checkout without an installation

from page import answers, environments, levels, nested, others  # noqa: E402
from page.figures import drawn_figures  # noqa: E402

from isorun.report.figures.files import save_figure  # noqa: E402

_HEAD = (
    "Every number here is computed by `python results/make_page.py` from what `isorun reproduce` left, which is in "
    "[`results/`](../results/README.md) with every run's value and the machine. Scales are smaller than the papers' (each "
    "section says by how much): what is seen compares in kind, not in size."
)
WIDTH = 120
LEVELS_BEGIN, LEVELS_END = "<!-- made by results/make_page.py -->", "<!-- until here -->"


def page() -> str:
    """The whole of docs/results.md."""
    head = (
        "<!-- made by results/make_page.py from the JSON files in results/: edit those, not this -->",
        "# What came out when we ran the papers",
        _HEAD,
    )
    sections = (
        nested.nested_section(),
        answers.masks_section(),
        levels.levels_section(),
        levels.cpu_paragraph(),
        levels.factors_section(),
        environments.libraries_section(),
        answers.seeds_section(),
        environments.versions_section(),
        others.fewshot_section(),
        others.searches_section(),
        others.dream_section(),
        others.omissions_section(),
    )
    blocks = [*head, *(block for section in sections for block in section if block)]
    return _joined(blocks) + "\n"


def _joined(blocks: Sequence[str]) -> str:
    """Blank lines between blocks; none between items of a list."""
    text = _wrapped(blocks[0])
    for before, block in pairwise(blocks):
        text += ("\n" if before.startswith("- ") and block.startswith("- ") else "\n\n") + _wrapped(block)
    return text


def _wrapped(block: str) -> str:
    """Lines of at most so many characters; tables, headings and figures stay as they are."""
    if block.startswith(("|", "#", "!", "<")):
        return block
    return "\n".join(
        textwrap.fill(
            line,
            WIDTH,
            subsequent_indent=" " * (len(line) - len(line.lstrip()) + 2) if line.lstrip().startswith("- ") else "",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in block.splitlines()
    )


def with_levels(document: str) -> str:
    """docs/levels.md with our measurements between the two marks."""
    before, _, rest = document.partition(LEVELS_BEGIN)
    _, _, after = rest.partition(LEVELS_END)
    return f"{before}{LEVELS_BEGIN}\n{_joined(levels.levels_part())}\n{LEVELS_END}{after}"


def write_figures(folder: Path) -> None:
    """The figures of docs/results.md; the same bytes from the same files."""
    for name, figure in drawn_figures():
        save_figure(figure, folder / f"{name}.svg")


def main() -> None:
    """Write all of it."""
    (DOCS / "results.md").write_text(page())
    write_figures(DOCS / "figures")
    levels_page = DOCS / "levels.md"
    levels_page.write_text(with_levels(levels_page.read_text()))


if __name__ == "__main__":
    main()
